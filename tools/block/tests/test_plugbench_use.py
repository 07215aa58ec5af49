#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench on disks in use, with limits, and with --write."""
import os
import sys
import unittest
from unittest import mock

from benchtree import SHORT, Case
from plugtools.bench import measure, plan
from plugtools.core import system

MOUNTED = "36 35 259:1 / /mnt rw - ext4 /dev/x rw"


class Use(Case):
    """Without --force, nobody's disk is loaded."""

    def test_refused(self):
        """By each use."""
        put = self.machine.put
        for path, text, says in (
                ("proc/self/mountinfo", MOUNTED,
                 "nvme0n1p1 is mounted on /mnt"),
                ("proc/swaps", "/dev/nvme0n1p1 partition 1 0 -2",
                 "nvme0n1p1 is swap"),
                ("sys/block/nvme0n1/nvme0n1p1/holders/md0", "x",
                 "nvme0n1p1 is held by md0")):
            put(path, text)
            self.check_untouched("/dev/nvme0n1", *SHORT, code=1, says=says)
            self.check_untouched("/dev/nvme0n1", *SHORT, code=1,
                                 says="--force measures nevertheless")
            os.unlink(self.machine.path(path))

    def test_force(self):
        """Then a warning, in the result as well."""
        self.machine.put("proc/self/mountinfo", MOUNTED)
        text = self.bench("--force", "--policies", "never")
        self.assertIn("warn:  nvme0n1p1 is mounted on /mnt: it feels", text)
        self.assertNotIn("OVERWRITES", text)
        self.assertIn("--readonly", self.machine.log()[0])
        self.check_restored()


class Limits(Case):
    """What keeps the load, and the time, within bounds."""

    def test_iops(self):
        """For all runs, and in the plan."""
        text = self.bench("--iops", "700", "--policies", "never")
        self.assertLess(text.index("at most 700 I/Os per second"),
                        text.index("[1/1]"))
        self.assertEqual({one["--rate_iops"] for one in self.machine.log()},
                         {"700"})

    def plan(self, budget, repeat=5, runtime=5):
        """(rounds, seconds) that fit into a budget; 10 runs a round."""
        args = mock.Mock(budget=budget, repeat=repeat, runtime=runtime)
        return plan.fit(args, 10, True)

    def test_budget(self):
        """Shorter runs first, down to three rounds; then fewer rounds."""
        self.assertEqual(self.plan(None), (5, 5))
        self.assertEqual(self.plan(9999), (5, 5))
        self.assertEqual(self.plan(300), (3, 5))
        self.assertEqual(self.plan(250), (3, 3))
        self.assertEqual(self.plan(120), (2, 1))
        self.assertEqual(self.plan(250, repeat=1), (1, 5))
        with self.assertRaisesRegex(system.UsageProblem, "one round takes"):
            self.plan(50)

    def test_budget_in_plan(self):
        """Shown first; a budget that is too small changes nothing."""
        text = self.bench("--dry-run", "--budget", "1m", "--repeat", "9",
                          "--runtime", "3", "--policies", "always,never")
        self.assertIn("at most 60 s, then it ends", text)
        self.assertRegex(text, r"for that, \d of 9 rounds, and runs of \d s")
        self.check_untouched("/dev/nvme0n1", "--budget", "5s", code=2,
                             says="--budget: one round takes")

    def test_budget_is_kept(self):
        """On a disk that is slower than planned, by whole rounds."""
        plan = mock.Mock(budget=100, repeat=5, runtime=1)
        one = measure.Bench.__new__(measure.Bench)
        one.plan, one.warnings, one.perf = plan, [], mock.Mock(events=[])
        self.assertFalse(one.over(0, 0))
        self.assertFalse(one.over(80, 4))
        self.assertTrue(one.over(80, 3))
        records = [{"run": 0}, {"run": 0}, {"run": 1}]
        self.assertEqual(one.cut(records, 1), records[:2])
        self.assertIn("1 of 5 rounds", one.warnings[0])
        with self.assertRaisesRegex(system.EnvironmentProblem, "budget"):
            one.cut(records[:1], 0)


class Write(Case):
    """Writing needs --write, --yes, and a disk that nobody uses."""

    WORDS = ["/dev/nvme0n1", "--write", "--yes", "--workloads", "mix70-s32"]

    def test_mounted(self):
        """The disk, or a partition of it; --force does not help."""
        for number in ("259:0", "259:1"):
            self.machine.put("proc/self/mountinfo",
                             "36 35 %s / /mnt rw - ext4 /dev/x rw" % number)
            for more in ([], ["--force"]):
                self.check_untouched(*self.WORDS, *more, code=1,
                                     says="mounted on /mnt")

    def test_swap_and_holders(self):
        """Other ways to use it."""
        self.machine.put("proc/swaps", "/dev/nvme0n1p1 partition 1 0 -2")
        self.check_untouched(*self.WORDS, code=1, says="is swap")
        self.machine.put("proc/swaps", "")
        self.machine.put("sys/block/nvme0n1/nvme0n1p1/holders/dm-0", "")
        self.check_untouched(*self.WORDS, code=1,
                             says="nvme0n1p1 is held by dm-0")

    def test_read_only(self):
        """A disk that cannot be written."""
        self.machine.put("sys/block/nvme0n1/ro", "1")
        self.check_untouched(*self.WORDS, code=1, says="read-only")

    def test_not_confirmed(self):
        """Nobody can be asked."""
        words = [word for word in self.WORDS if word != "--yes"]
        with mock.patch.object(sys, "stdin", mock.Mock(isatty=lambda: False)):
            self.check_untouched(*words, code=2, says="needs --yes")

    def test_writes(self):
        """When all is given; what only reads cannot write even then."""
        text = self.bench("--write", "--yes", "--workloads",
                          "rand4k-s32,mix70-s32")
        self.assertIn("OVERWRITES", text)
        for one in self.machine.log():
            reads = one["--rw"] == "randread"
            self.assertEqual("--readonly" in one, reads)
            self.assertEqual(one.get("--rwmixread"), None if reads else "70")


if __name__ == "__main__":
    unittest.main()
