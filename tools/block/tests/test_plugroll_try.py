# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugroll try does when disks stop, go, idle or are many."""
import contextlib
import io
import itertools
import json
import os
import random
import shutil
import signal
import unittest
from unittest import mock

import rolltree
from plugtools.core import journal
from plugtools.roll import disklist, guard, meter, plugroll, trial

KNOB = "sys/block/nvme0n1/queue/plug_policy"
RULES = "etc/udev/rules.d/65-plugroll.rules"
END = meter.Meter.end
OFTEN = (1000, 1000)


def block(ios, **more):
    """Figures of a block."""
    return meter.figures(
        meter.Counters(0, 0, 0, 0),
        meter.Counters(1, ios, more.get("requests", ios), ios),
        more.get("times", ()))


def pairs(*ios):
    """Pairs of blocks with so many I/Os."""
    return [(block(old), block(new)) for old, new in ios]


class CollapseTest(unittest.TestCase):
    """Disks that stop, or seem to."""

    def collapse(self, *ios, limits=None, disks=1):
        """What is said of pairs with so many I/Os."""
        return guard.collapse(pairs(*ios), limits or {"mean": .05}, disks)

    def test_stops(self):
        """Two pairs; one may be chance."""
        for idle in (0, 50, 99):
            self.assertIsNone(self.collapse((1000, idle)))
            self.assertEqual(
                self.collapse((1000, idle), OFTEN, (1000, idle)),
                "collapse: in 2 of 3 pairs next to no I/O with it")

    def test_comes_and_goes(self):
        """A load that is idle in the old mode, too, proves nothing; but one
        such pair is no excuse for good."""
        one = [(1000, 0)] * 6 + [(0, 1000)]
        self.assertIsNone(self.collapse(*one))
        self.assertIsNotNone(self.collapse(*one, (1000, 0)))

    def test_no_figures(self):
        """A tenth of the I/Os, and too few for a percentile, is a collapse;
        where only the percentile is missing, it is none."""
        times = range(600)
        limits = {"p99": .1}
        for ios, seen in ((450, True), (2900, False)):
            found = [(block(4000, times=times), block(ios))] * 2
            self.assertEqual(
                guard.collapse(found, limits) is not None, seen)

    def test_merges(self):
        """A mode that merges needs fewer requests for the same I/Os."""
        found = [(block(32000), block(32000, requests=1000))] * 3
        self.assertIsNone(guard.collapse(found, {"mean": .05}))

    def test_idle_old_block(self):
        """A pair whose old block is idle hides nothing."""
        found = pairs((0, 1000), *[(1000, 500 + count) for count in range(9)])
        for limits in ({"iops": -.05}, {"iops": -.05, "mean": .05}):
            self.assertIn("iops by -49", guard.tripped(found, limits))

    def test_most_pairs(self):
        """A metric that few pairs have has not been guarded."""
        times = range(1000)
        known = [(block(4000, times=times), block(4000, times=times))] * 4
        found = known + [(block(4000), block(4000))] * 26
        limits = {"p99": .1, "iops": -.02}
        self.assertIsNone(guard.undecided(known, limits))
        self.assertEqual(guard.undecided(found, limits),
                         "p99 is known of 4 of 30 pairs only")


class ManyTest(unittest.TestCase):
    """Chance, of which many disks have more."""

    def test_noise(self):
        """Equal modes on 8 disks whose load scatters by 5%: the guard trips
        in a few percent of all tries."""
        draw, trips = random.Random(10), 0
        for _ in range(60):
            drawn = [[({"iops": 100.0}, {"iops": 100 + draw.gauss(0, 5)})
                      for _ in range(30)] for _ in range(8)]
            trips += any(guard.tripped(one[:count], {"iops": -.02}, 8)
                         for one in drawn for count in range(3, 31))
        self.assertLess(trips, 60 * .1)

    def test_metrics(self):
        """The same for many metrics."""
        found = pairs(*[(1000, 900 + step) for step in (0, 12, 24)])
        self.assertIsNotNone(guard.tripped(found, {"iops": -.05}))
        self.assertIsNone(guard.tripped(
            found, {"iops": -.05, "mean": .05, "p99": .05}))
        self.assertIsNone(guard.tripped(found, {"iops": -.05}, 8))

    def test_bursts(self):
        """Each of 24 disks is idle in half the blocks: no disk may seem to
        have stopped in most of the tries."""
        draw, trips = random.Random(11), 0
        for _ in range(40):
            drawn = [pairs(*[(draw.choice((0, 1000)), draw.choice((0, 1000)))
                             for _ in range(30)]) for _ in range(24)]
            trips += any(guard.collapse(one[:count], {"mean": .05}, 24)
                         for one in drawn for count in range(2, 31))
        self.assertLess(trips, 40 * .4)

    def test_order(self):
        """Of four pairs each mode leads two, and not in a fixed order."""
        drawn = list(itertools.islice(
            trial.leaders(random.Random(2)), 400))
        fours = [tuple(drawn[start:start + 4])
                 for start in range(0, 400, 4)]
        self.assertEqual({sum(four) for four in fours}, {2})
        self.assertEqual(len(set(fours)), 6)


class Loads(rolltree.Load):
    """I/O on some disks, {name: speeds}."""

    def __init__(self, tree, speeds):
        (name, first), *rest = speeds.items()
        super().__init__(tree, name, first)
        self.rest = [rolltree.Load(tree, *one) for one in rest]

    def sleep(self, seconds):
        super().sleep(seconds)
        for one in self.rest:
            one.sleep(seconds)


class Periodic(rolltree.Load):
    """A load that halves every other 2 s, in step with pairs."""

    def sleep(self, seconds):
        half = int((self.now - self.begin) / 2) % 4 in (1, 2)
        self.speeds = dict.fromkeys(rolltree.MODES, .5 if half else 1)
        super().sleep(seconds)

    begin = trial.LEAST_BASELINE


class TryTest(rolltree.Tree):
    """Tries of whole disks."""

    def setUp(self):
        super().setUp()
        self.disk("nvme0n1")
        self.patch(mock.patch.object(trial, "generator",
                                     lambda: random.Random(7)))

    def attempt(self, speeds, *words, disks=("nvme0n1",)):
        """plugroll try never, under a load: (code, JSON, standard error)"""
        with Loads(self, speeds):
            code, out, said = self.run_roll("try", "never", *disks, "--for",
                                            "1m", "--json", *words)
        return code, json.loads(out or "{}"), said

    def left(self):
        """Journals."""
        return [name for name in os.listdir(self.path("run/plug-policy"))
                if name.endswith(".journal")]

    def test_stops_the_disk(self):
        """Whatever is guarded: a mode with which nothing is done ends."""
        code, found, _ = self.attempt({"nvme0n1": {"never": 0}}, "--guard",
                                      "mean=5%")
        self.assertEqual((code, self.mode("nvme0n1")), (3, "always"))
        self.assertEqual(found["disks"]["nvme0n1"]["pairs"], 2)
        self.assertIn("nvme0n1: collapse: in 2 of 2", found["why"])

    def test_comes_back(self):
        """A disk that goes and comes back is another one: its mode is its
        own, and nobody says that the mode before is back."""
        calls = []

        def end(meter):
            calls.append(self.mode("nvme0n1"))
            if len(calls) > 4 and calls[-1] == "always" and \
                    self.read("sys/block/nvme0n1/diskseq") == "7":
                self.write("sys/block/nvme0n1/diskseq", "8")
            return END(meter)

        with mock.patch.object(meter.Meter, "end", end), \
             rolltree.Load(self, "nvme0n1", {}):
            code, out, said = self.run_roll("try", "never", "nvme0n1")
        self.assertEqual((code, self.mode("nvme0n1")), (1, "always"))
        self.assertIn("nvme0n1 has gone, and another disk has its name", said)
        self.assertIn("has gone, and its disk with it", out)

    def test_one_of_two_goes(self):
        """The try goes on without it, and what is kept is the other one's."""
        self.disk("nvme1n1")
        started, measure = [], trial.Try.measure

        def leave(attempt, seconds):
            started.append(seconds)
            if len(started) == 6:
                shutil.rmtree(self.path("sys/block/nvme1n1"))
            return measure(attempt, seconds)

        with rolltree.Load(self, "nvme0n1", {"never": 1.3}) as load, \
             mock.patch.object(trial.Try, "measure", leave):
            tick = load.sleep

            def both(seconds):
                tick(seconds)
                if os.path.exists(self.path("sys/block/nvme1n1")):
                    self.write("sys/block/nvme1n1/stat",
                               self.read("sys/block/nvme0n1/stat"))
            load.sleep = both
            code, out, said = self.run_roll("try", "never", "nvme0n1",
                                            "nvme1n1", "--for", "1m", "--json",
                                            "--keep")
        self.assertEqual(code, 0, said)
        self.assertIn("nvme1n1 has gone: the try goes on without it", said)
        found = json.loads(out)
        self.assertEqual((list(found["disks"]), found["gone"], found["status"],
                          self.mode("nvme0n1")),
                         (["nvme0n1"], ["nvme1n1"], "held", "never"))
        self.assertNotIn("is back", out)
        self.assertFalse(self.left())

    def test_not_back(self):
        """What is said is what is set, also by somebody else in the end."""
        calls = []

        def end(meter):
            calls.append(1)
            if len(calls) == 1 + 2 * 3:
                self.write(KNOB, rolltree.offer("seq-small"))
            return END(meter)

        with mock.patch.object(meter.Meter, "end", end), \
             rolltree.Load(self, "nvme0n1", {"never": .5}):
            code, out, _ = self.run_roll("try", "never", "nvme0n1")
        self.assertEqual((code, self.mode("nvme0n1")), (3, "seq-small"))
        self.assertIn("is left at seq-small, which somebody else has set", out)
        self.assertRegex(out, "the guard tripped: .*; nvme0n1 is seq-small$")

    def test_not_in_force(self):
        """A mode without effect is not tried, nor is it kept, also if it is
        set."""
        self.write(KNOB + "_fallback", "elevator")
        for mode in ("always", "never"):
            self.write(KNOB, rolltree.offer(mode))
            code, found, said = self.attempt({"nvme0n1": {"never": 1.3}},
                                             "--keep")
            self.assertEqual((code, found, self.mode("nvme0n1")),
                             (1, {}, mode))
            self.assertIn("never cannot be tried on nvme0n1, where always is "
                          "in force: it has an I/O scheduler", said)
            self.assertFalse(self.left() or self.read(RULES))

    def test_already(self):
        """There is nothing to try, at once; kept if asked for, and the second
        time that changes nothing."""
        self.write(KNOB, rolltree.offer("never"))
        lines = self.log()
        with mock.patch.object(meter.Meter, "wait") as waited:
            code, found, _ = self.attempt({"nvme0n1": {}})
            self.assertEqual((code, found["status"], found["kept"]),
                             (0, "already set", False))
            self.assertIn("never is already set on nvme0n1", found["why"])
            self.assertIn("already set", lines[-1])
            for changed in (True, False):
                code, found, _ = self.attempt({"nvme0n1": {}}, "--keep")
                self.assertEqual((code, found["kept"], found["changed"]),
                                 (0, True, changed))
        self.assertFalse(waited.called)
        self.assertIn("eui.nvme0n1", self.read(RULES))

    def refused_before(self, *words, code=1, said=""):
        """A try that is not begun, as it could not be kept."""
        with mock.patch.object(plugroll, "try_mode") as tried:
            got, _, text = self.attempt({"nvme0n1": {}}, "--keep", *words)
        self.assertEqual((got, tried.called), (code, False), text)
        self.assertIn(said, text)

    def test_cannot_be_kept(self):
        """What is known before the try is said before it; whatever comes
        after it, its result is told."""
        self.write("sys/block/nvme0n1/wwid", "")
        self.refused_before(code=2, said="neither wwid nor serial")
        self.write("sys/block/nvme0n1/wwid", "eui.1")
        self.write(RULES, "# mine")
        self.refused_before(said="is not plugroll's")
        os.unlink(self.path(RULES))
        with mock.patch.object(os, "access", return_value=False):
            self.refused_before(said="cannot be written")
        self.write("run/plug-policy/nvme0n1.journal", "{")
        self.refused_before(said="could not be put back")
        os.unlink(self.path("run/plug-policy/nvme0n1.journal"))
        with mock.patch.object(plugroll, "keep", side_effect=OSError(
                30, "Read-only file system", "/etc/x")):
            code, found, said = self.attempt(
                {"nvme0n1": {"never": 1.3}}, "--keep")
        self.assertEqual((code, found["status"], found["kept"]),
                         (1, "held", False))
        self.assertIn("/etc/x: Read-only file system", said)

    def test_keep_of_another_disk(self):
        """One that took a disk's name meanwhile is kept by its own WWID; one
        without any that is idle does not matter."""
        self.disk("nvme1n1", wwid="")
        self.write(KNOB, rolltree.offer("never"))

        def swap(*args):
            self.write("sys/block/nvme0n1/wwid", "eui.new")
            return try_mode(*args)
        try_mode = plugroll.try_mode
        with mock.patch.object(plugroll, "try_mode", swap):
            code, found, said = self.attempt({"nvme0n1": {}}, "--keep",
                                             disks=["--all-nvme"])
        self.assertEqual((code, found.get("kept")), (0, True), said)
        self.assertIn("eui.new", self.read(RULES))
        self.assertNotIn("eui.nvme0n1", self.read(RULES))

    def test_busy_disk(self):
        """It is asked again; what another disk's journal tells is its own."""
        self.write("run/plug-policy/sda.journal", "no entry")
        tells = journal.Journal("nvme0n1", ["nvme0n1"], "plugroll")
        tells.set(self.path(KNOB), "never")
        with mock.patch.object(journal, "write", side_effect=OSError(
                16, "Device or resource busy", KNOB)):
            problems = tells.put_back()
        self.assertEqual((len(problems), self.mode("nvme0n1")), (1, "never"))
        with mock.patch.object(trial.time, "sleep"), \
                contextlib.redirect_stderr(io.StringIO()):
            trial.try_again(tells, ["nvme0n1"], problems)
        self.assertEqual((self.mode("nvme0n1"), self.left()),
                         ("always", ["sda.journal"]))

    def test_twice(self):
        """A second guard would silently replace the first."""
        for option, one in ("--guard", "iops=-2%"), ("--require", "iops=2%"):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                code = self.run_roll("try", "never", "nvme0n1", option, one,
                                     option, one)[0]
            self.assertEqual(code, 2)
            self.assertIn("given twice; accepted: once, as %s=" % option,
                          said.getvalue())

    def test_already_but_tried(self):
        """What another plugroll tries right now is not set already."""
        self.write(KNOB, rolltree.offer("never"))
        with trial.locked(["nvme0n1"], "plugroll"):
            code, _, said = self.attempt({"nvme0n1": {}})
        self.assertEqual(code, 1)
        self.assertIn("is being worked on by plugroll", said)

    def test_keep_without_idle(self):
        """An idle disk is left alone, also by --keep, and by a second run."""
        self.disk("nvme1n1")
        for status, changed in (("held", True), ("already set", False)):
            code, found, said = self.attempt(
                {"nvme0n1": {"never": 1.3}}, "--keep", disks=["--all-nvme"])
            self.assertEqual((code, found["status"], found["changed"],
                              found["idle"]),
                             (0, status, changed, ["nvme1n1"]), said)
            self.assertEqual((self.mode("nvme0n1"), self.mode("nvme1n1")),
                             ("never", "always"))
        self.assertIn("eui.nvme0n1", self.read(RULES))
        self.assertNotIn("nvme1n1", self.read(RULES))

    def test_per_disk(self):
        """One disk's trip is not the other's; chance is that of both."""
        self.disk("nvme1n1")
        with mock.patch.object(trial, "tripped",
                               side_effect=guard.tripped) as asked:
            code, found, _ = self.attempt(
                {"nvme0n1": {"never": .7}, "nvme1n1": {}}, "--guard",
                "iops=-5%", disks=["--all-nvme"])
        self.assertEqual((code, self.mode("nvme1n1")), (3, "always"))
        self.assertIn("the guard tripped: nvme0n1: iops by", found["why"])
        self.assertEqual({one["never"]["status"] for name, one in
                          disklist.tries().items() if "1n1" in name},
                         {"unknown"})
        self.assertEqual(disklist.tries()["eui.nvme0n1"]["never"]["status"],
                         "tripped")
        self.assertEqual(asked.call_args.args[2], 2)

    def test_periodic(self):
        """A load that recurs every four blocks is no harm done by a mode."""
        with Periodic(self, "nvme0n1", {}):
            code, out, _ = self.run_roll("try", "never", "nvme0n1", "--for",
                                         "1m", "--guard", "iops=-5%")
        self.assertEqual(code, 4, out)

    def test_room(self):
        """A try is not longer than it was to be."""
        for words in (("--block", "600"), ("--for", "59s", "--block", "10")):
            code, _, said = self.attempt({"nvme0n1": {}}, "--for", "12s",
                                         *words)
            self.assertEqual((code, os.listdir(self.path("run"))), (2, []))
            self.assertRegex(said, "has no room for 3 pairs of blocks of .*; "
                             "accepted: --for (3600|60)s or more, or --block "
                             "(2|9) or less")


class EndTest(rolltree.Tree):
    """How a try ends that does not end by itself."""

    def test_killed(self):
        """A disk that refuses the mode for some seconds gets it all the
        same; the instance of the killed one goes."""
        self.disk("nvme0n1", "never")
        journal = trial.Journal("nvme0n1", ["nvme0n1"], "plugroll")
        journal.know(self.path(KNOB), "always", "never")
        os.close(journal.file)
        was, refusals = self.kernel_write, [1] * 4

        def refuse(path, value):
            if refusals:
                raise OSError(refusals.pop(), "Device or resource busy", path)
            was(path, value)

        with mock.patch("plugtools.core.journal.write", refuse), \
             mock.patch("os.dup2"), mock.patch("time.sleep") as slept, \
             mock.patch.object(trial, "remove_instance") as removed:
            trial.killed(journal.path, 77)
        self.assertEqual(self.mode("nvme0n1"), "always")
        self.assertFalse(os.path.exists(journal.path))
        self.assertEqual(slept.call_count, 4)
        removed.assert_called_once_with(77)

    def test_nohup(self):
        """What the shell has us ignore is ignored."""
        def handler(number):
            return signal.SIG_IGN if number == signal.SIGHUP \
                else signal.SIG_DFL

        with mock.patch("signal.getsignal", handler), \
             mock.patch("signal.signal") as handled, \
             mock.patch("plugtools.core.system.print", create=True):
            plugroll.main(["list"])
        self.assertEqual({call.args[0] for call in handled.call_args_list},
                         {signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    unittest.main()
