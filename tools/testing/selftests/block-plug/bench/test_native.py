#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of SUITE=native without kernels: statistics, records, what it says."""
import contextlib
import io
import os
import random
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab  # noqa: E402 pylint: disable=wrong-import-position
import native  # noqa: E402 pylint: disable=wrong-import-position
import native_uml  # noqa: E402 pylint: disable=wrong-import-position

OTHER = ("patched", "always")


def rounds(rng, slower, count=native.RUNS, noise=0.01):
    """Times of two cells, one of them slower by so many ns of 250."""
    return [{(cell, "w"): (250 + extra) * rng.gauss(1, noise)
             for cell, extra in ((native.REFERENCE, 0), (OTHER, slower))}
            for _ in range(count)]


def record(times):
    """The second cell's."""
    plan = native.Plan({}, [native.REFERENCE, OTHER], ["w"])
    return dict(native.record(times, plan, OTHER, "w", "x"), quiet=True)


class Statistics(unittest.TestCase):
    """Ratios of rounds and how far they can be trusted."""

    def test_same(self):
        """1 is outside of the interval in one case of twenty, about."""
        misses = 0
        for seed in range(100):
            one = record(rounds(random.Random(seed), 0))
            misses += not one["ci_low"] <= 1 <= one["ci_high"]
        self.assertLessEqual(misses, 10)
        self.assertGreaterEqual(misses, 1)

    def test_delay(self):
        """20 ns are found, where they should be."""
        one = record(rounds(random.Random(1), 20))
        self.assertLess(one["ci_high"], 1)
        self.assertLess(one["ci_low"], 250 / 270)
        self.assertGreater(one["ci_high"], 250 / 270)
        self.assertAlmostEqual(one["ns_saved"], -20, delta=3)

    def test_drift_is_shared(self):
        """A round in which all was slow says the same."""
        one = record([{(native.REFERENCE, "w"): 100 * pace,
                       (OTHER, "w"): 110 * pace} for pace in (1, 2, 3)])
        self.assertEqual((one["ratio"], one["ci_low"], one["ci_high"]),
                         (0.90909, 0.90909, 0.90909))

    def test_verdict(self):
        """In words; wider than 2% does not tell."""
        for low, high, says in ((0.99, 1.005, "no difference seen"),
                                (1.001, 1.01, "faster"),
                                (0.95, 0.96, "slower"),
                                (0.98, 1.001, "cannot tell"),
                                (1.01, 1.05, "cannot tell how much faster"),
                                (0.9, 0.95, "cannot tell how much slower")):
            one = {"ci_low": low, "ci_high": high, "rounds": native.FEW}
            self.assertEqual(native.verdict(one), says)
            self.assertIn("too few", native.verdict({**one, "rounds": 5}))


class Records(unittest.TestCase):
    """What is written, and shown."""

    def test_flaws(self):
        """Each is found."""
        good = record(rounds(random.Random(1), 0))
        self.assertIsNone(native.flaw(good))
        for change, says in (({"ci_low": 2}, "outside"),
                             ({"ns_per_io": 0}, "nothing"),
                             ({"rounds": 0}, "nothing")):
            self.assertIn(says, native.flaw({**good, **change}))
        for name in native.FIELDS:
            bad = dict(good)
            del bad[name]
            self.assertEqual(native.flaw(bad), "lacks " + name)

    def test_table(self):
        """A noisy machine is not passed over."""
        one = record(rounds(random.Random(1), 20))
        self.assertIn("slower", native.text([one]))
        self.assertNotIn("NOISY", native.text([one]))
        self.assertIn("NOISY", native.text([dict(one, quiet=False)]))


class Measuring(unittest.TestCase):
    """Rounds, on machines that are none."""

    def measure(self, shares, patience):
        """Rounds with so much load of others; (number, quiet, measured)."""
        plan = native.Plan({}, [native.REFERENCE], [], 3, patience)
        others = mock.Mock(share=mock.Mock(side_effect=shares))
        clock = iter(range(0, 1000, 5))
        with mock.patch.object(native_uml, "Others", lambda cpu: others), \
             mock.patch.object(native_uml, "wait_for_quiet",
                               lambda patience: (0, True)), \
             mock.patch.object(native.time, "monotonic",
                               lambda: next(clock)), \
             mock.patch.object(native, "measure_round",
                               return_value={}) as measured, \
             contextlib.redirect_stdout(io.StringIO()):
            times, quiet = native.measure_rounds(plan)
        return len(times), quiet, measured.call_count

    def test_quiet(self):
        """Nothing to wait for."""
        self.assertEqual(self.measure([0] * 3, 100), (3, True, 3))

    def test_disturbed(self):
        """A disturbed round is measured again."""
        self.assertEqual(self.measure([0, 1, 0, 0], 100), (3, True, 4))

    def test_patience_ends(self):
        """Then it counts, and is called noisy."""
        self.assertEqual(self.measure([1] * 9, 12), (3, False, 5))

    def test_fastest(self):
        """The first slice is not counted, of the others the least."""
        plan = native.Plan({}, [native.REFERENCE], [])
        machine = mock.Mock(run=mock.Mock(side_effect=[1, 5, 3, 4, 9]))
        self.assertEqual(native.fastest(plan, {"unpatched": machine}, None, 1),
                         {native.REFERENCE: 3})

    def test_same_image(self):
        """It would compare nothing."""
        with tempfile.NamedTemporaryFile() as image, \
             self.assertRaisesRegex(lab.LabError, "a and b are the same"):
            native.distinct({"a": image.name, "b": image.name})


class Machine(unittest.TestCase):
    """A process that talks as a kernel does, or does not."""

    def ask(self, script):
        """What a load on it comes to."""
        with tempfile.TemporaryDirectory() as where, \
             mock.patch.object(native_uml, "OUT", where), \
             mock.patch.object(native_uml, "ANSWER_SECONDS", 1), \
             mock.patch.object(native_uml, "realtime",
                               lambda: ["sh", "-c", script]):
            with native_uml.Machine("x", "image", 0) as machine:
                machine.has_policies()
                return machine.run("always", mock.Mock(devices=1, args=""), 9)

    READY = "echo ready plug_policy=no; read -r line; "

    def test_result(self):
        """Among what else the console says."""
        self.assertEqual(self.ask(
            self.READY + "echo noise; echo result ios=4 ns=100 x"), 25)

    def test_failures(self):
        """Each has its message."""
        for script, says in (("exit 0", "it has ended"),
                             ("sleep 9", "no answer within 1 s"),
                             (self.READY + "echo error no policy", "no policy"),
                             (self.READY + "echo result ns=1", "is no result"),
                             (self.READY + "echo result ios=0 ns=1",
                              "is no result")):
            with self.subTest(script), \
                 self.assertRaisesRegex(lab.LabError, says):
                self.ask(script)


if __name__ == "__main__":
    unittest.main()
