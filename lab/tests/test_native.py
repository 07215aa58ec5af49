# SPDX-License-Identifier: GPL-2.0
"""Tests of SUITE=native without kernels: statistics, records, what it says."""
import contextlib
import io
import os
import random
import tempfile
import unittest
from unittest import mock

from lab.bench import lab
from lab.native import nano
from lab.native import native
from lab.native import native_build
from lab.native import native_loads
from lab.native import native_rounds
from lab.native import native_uml

Cell, Plan = native_rounds.Cell, native_rounds.Plan
OTHER = Cell("patched")
LOAD = "rand4k-s32"


def one_round(before, after):
    """Times of two cells, with one load."""
    return {"quiet": True, "ns": {LOAD: {native.REFERENCE.name: before,
                                         OTHER.name: after}}}


def rounds(rng, slower, noise=0.01):
    """Rounds of two cells, one of them slower by so many ns of 60."""
    return [one_round(60 * rng.gauss(1, noise),
                      (60 + slower) * rng.gauss(1, noise))
            for _ in range(native.RUNS)]


def compare(found):
    """The second cell against the first."""
    return native.compare(found, LOAD, native.REFERENCE, OTHER)


class Statistics(unittest.TestCase):
    """Ratios of rounds and how far they can be trusted."""

    def test_same(self):
        """1 is outside of the interval in one case of twenty, about."""
        misses = sum(not native.holds(compare(rounds(random.Random(seed), 0)),
                                      1) for seed in range(100))
        self.assertLessEqual(misses, 10)
        self.assertGreaterEqual(misses, 1)

    def test_delay(self):
        """6 ns are found, where they should be."""
        one = compare(rounds(random.Random(1), 6))
        self.assertTrue(native.holds(one, 60 / 66))
        self.assertLess(one["ci_high"], 1)
        self.assertAlmostEqual(one["ns_saved"], -6, delta=1)

    def test_drift_is_shared(self):
        """A round in which all was slow says the same."""
        one = compare([one_round(100 * pace, 110 * pace)
                       for pace in (1, 2, 3)])
        self.assertEqual((one["ratio"], one["ci_low"], one["ci_high"]),
                         (0.90909, 0.90909, 0.90909))

    def test_noisy_round(self):
        """One is enough to say so."""
        found = [one_round(1, 1), dict(one_round(1, 1), quiet=False)]
        self.assertFalse(compare(found)["quiet"])


class Records(unittest.TestCase):
    """What is written, and shown."""

    def setUp(self):
        plan = Plan({}, [native.REFERENCE, OTHER], [LOAD], 1)
        self.records = native.records(rounds(random.Random(1), 6), plan, "x")

    def test_flaws(self):
        """Each is found."""
        good = self.records[1]
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
        """ns of the reference, ratios of others; noise is not passed over."""
        text = native.text(self.records)
        self.assertRegex(text, r"unpatched, ns +\d\d\.\d\n")
        self.assertRegex(text, r"always +0\.\d{3} \.\d{3}\n")
        self.assertNotIn("NOISY", text)
        self.records[0]["quiet"] = False
        self.assertIn("NOISY", native.text(self.records))

    def test_rows_differ(self):
        """No two cells have the same row, nor the same machine."""
        names = ["unpatched", "tags", "patched"]
        wanted = native.cells(names)
        for key in (lambda cell: cell.name,
                    lambda cell: native.label(vars(cell))):
            self.assertEqual(len({key(cell) for cell in wanted}), len(wanted))

    def test_width(self):
        """Each table fits a terminal."""
        for group in native_loads.TABLES:
            self.assertTrue(all(len(line) <= 80
                                for line in native.heads(list(group))))


class Measuring(unittest.TestCase):
    """Rounds, on machines that are none."""

    def measure(self, shares, patience):
        """Rounds with so much load of others; (rounds, times measured)."""
        plan = Plan({}, [native.REFERENCE], [], 3, patience)
        others = mock.Mock(share=mock.Mock(side_effect=shares))
        clock = iter(range(0, 1000, 5))
        with mock.patch.object(native_uml, "Others", lambda cpu: others), \
             mock.patch.object(native_uml, "wait_for_quiet",
                               lambda patience: 0), \
             mock.patch.object(native_uml, "alone", contextlib.nullcontext), \
             mock.patch.object(native_rounds.time, "monotonic",
                               lambda: next(clock)), \
             mock.patch.object(native_rounds.common, "clock",
                               lambda text: contextlib.nullcontext()), \
             mock.patch.object(native_rounds, "measure_round",
                               return_value={}) as measured, \
             contextlib.redirect_stdout(io.StringIO()):
            found = native_rounds.measure(plan)
        return [one["quiet"] for one in found], measured.call_count

    def test_quiet(self):
        """Nothing to wait for."""
        self.assertEqual(self.measure([0] * 3, 100), ([True] * 3, 3))

    def test_disturbed(self):
        """A disturbed round is measured again."""
        self.assertEqual(self.measure([0, 1, 0, 0], 100), ([True] * 3, 4))

    def test_patience_ends(self):
        """Then it counts, and is called noisy."""
        self.assertEqual(self.measure([1] * 9, 12), ([False] * 3, 5))

    def test_interrupted(self):
        """What was measured counts; if nothing was, it ends."""
        self.assertEqual(self.measure([0, KeyboardInterrupt], 0), ([True], 2))
        with self.assertRaises(KeyboardInterrupt):
            self.measure([KeyboardInterrupt], 0)

    def test_fastest(self):
        """The first slice is longer and not counted, of the others the least.
        """
        machine = mock.Mock()
        machine.run.side_effect = [{"ns": 10 * ns, "ios": 10}
                                   for ns in (1, 5, 3, 4, 9)]
        load = native_loads.plug(4)
        self.assertEqual(native_rounds.fastest({OTHER: machine}, load, 40),
                         {OTHER: 3})
        words = [" ".join(call.args[0]) for call in machine.run.call_args_list]
        self.assertIn("ios=120", words[0])
        self.assertIn("ios=40", words[1])


class Reuse(unittest.TestCase):
    """Rounds that were measured before."""

    def rounds_of_now(self, keys, runs):
        """With a file of two rounds of the code k."""
        with tempfile.TemporaryDirectory() as where, \
             mock.patch.object(native, "ROUNDS", where + "/rounds"), \
             mock.patch.object(native, "kernels", dict), \
             mock.patch.object(native, "keys", lambda commits: keys), \
             mock.patch.object(native, "whole_plan"), \
             mock.patch.object(native_rounds, "measure",
                               return_value="new"):
            plan = Plan({}, [], [], 2, path=native.ROUNDS, key={"a": "k"})
            plan.begin()
            for _ in range(2):
                plan.save({"ns": 1})
            return native.rounds_of_now(runs)

    def test_same_code(self):
        """They count."""
        self.assertEqual(self.rounds_of_now({"a": "k"}, 2), [{"ns": 1}] * 2)

    def test_others(self):
        """Too few, or of other code, they do not."""
        self.assertEqual(self.rounds_of_now({"a": "k"}, 3), "new")
        self.assertEqual(self.rounds_of_now({"a": "l"}, 2), "new")


class Patch(unittest.TestCase):
    """What is added to a kernel."""

    def test_applies(self):
        """To both ends of the series; that a file comes along."""
        for commit in ("refs/tags/base", native_build.SERIES):
            planted = native_build.planted(commit)
            names = native_build.git()("diff", "--name-only", commit, planted)
            for place in native_build.FILES.values():
                self.assertIn(place, names.split())

    def test_key(self):
        """The same code has the same, and the series is not the base."""
        keys = [native_build.key_of(native_build.planted(commit))
                for commit in ("refs/tags/base", "refs/tags/base",
                               native_build.SERIES)]
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[0], keys[2])


class Loads(unittest.TestCase):
    """What the guest is told."""

    def test_whole_plugs(self):
        """Two are the least."""
        command = native_loads.plug(32, "poll=1").command
        self.assertIn("ios=96", command(100))
        self.assertIn("ios=64", command(1))

    def test_words(self):
        """Each is one that load.c knows."""
        with open(os.path.join(native_build.HERE, "load.c"),
                  encoding="ascii") as source:
            known = source.read()
        for load in native_loads.LOADS.values():
            if not load.system_calls:
                for word in load.words.split():
                    self.assertIn('{ "%s",' % word.split("=")[0], known)


class Nano(unittest.TestCase):
    """Which two states are compared."""

    def commits(self, before, after, dirty):
        """As git would call them."""
        git = mock.Mock(return_value="M" if dirty else "")
        git.get = lambda _, what: what.removesuffix("^{commit}")
        with mock.patch.object(native_build, "git", lambda: git), \
             mock.patch.object(native_build, "snapshot", lambda: "now"):
            return list(nano.commits(before, after).values())

    def test_default(self):
        """What is not committed, or the last commit."""
        self.assertEqual(self.commits("", "", True), ["HEAD", "now"])
        self.assertEqual(self.commits("", "", False), ["HEAD~1", "HEAD"])

    def test_named(self):
        """Either or both."""
        self.assertEqual(self.commits("a", "b", True), ["a", "b"])
        self.assertEqual(self.commits("a", "", True), ["a", "now"])
        self.assertEqual(self.commits("", "b", False), ["HEAD", "b"])
        self.assertEqual(self.commits("", "worktree", False), ["HEAD", "now"])


class Machine(unittest.TestCase):
    """A process that talks as a kernel does, or does not."""

    def ask(self, script):
        """What a load on it comes to."""
        with tempfile.TemporaryDirectory() as where, \
             mock.patch.object(native_uml, "RUN", where), \
             mock.patch.object(native_uml, "ANSWER_SECONDS", 1), \
             mock.patch.object(native_uml, "realtime",
                               lambda: ["sh", "-c", script]):
            with native_uml.Machine("x", [os.devnull], 0) as machine:
                machine.has_policies()
                return machine.run(["load"])

    READY = "echo ready plug_policy=no; read -r line; "

    def test_result(self):
        """Among what else the console says."""
        self.assertEqual(self.ask(
            self.READY + "echo noise; echo result ios=4 ns=100 x"),
                         {"ios": 4, "ns": 100})

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
