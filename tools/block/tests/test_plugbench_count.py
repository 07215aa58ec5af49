#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugbench counts beside fio."""
import os
import unittest
from unittest import mock

from benchtree import DEBUG, FAKE_FIO, FAKE_PERF, Case
from plugtools.bench import counters, measure
from plugtools.bench.plan import BASELINE
from plugtools.core.disks import Disk

class Adaptive(Case):
    """It starts anew, has a second to learn, and says where it arrived."""

    FILE = "sys/kernel/debug/block/nvme0n1/hctx%d/plug_adaptive"

    def test_warm_up(self):
        """Under each policy, with the same load; it is in no record."""
        self.bench("--repeat", "1", "--runtime", "3")
        self.assertEqual([(one["policy"], one["--runtime"])
                          for one in self.machine.log()[4:8]],
                         [("seq-small", "1"), ("seq-small", "3"),
                          ("adaptive", "1"), ("adaptive", "3")])
        self.assertEqual(len(self.machine.records()), 5)

    def test_starts_anew(self):
        """The mode is left and set again before each measurement."""
        disk, calls = Disk("x", "/dev/x"), []
        disk.has_knob = lambda: True
        settings = mock.Mock(set=lambda path, value: calls.append(
            (os.path.basename(path), value)))
        measure.set_policy(disk, "adaptive", settings)
        self.assertEqual(calls, [("nomerges", "0"), ("plug_policy", "always"),
                                 ("plug_policy", "adaptive")])
        calls.clear()
        measure.set_policy(disk, BASELINE, settings)
        self.assertEqual(calls, [("nomerges", "2"), ("plug_policy", "always")])

    def test_group(self):
        """Of the hardware queues that have learnt; None if none has."""
        self.assertIsNone(counters.group({}, {}))
        self.assertEqual(counters.group({"a": "group 32", "b": "group 2"},
                                    {"a": "group 4\nx 1", "b": "group 2"}), 4)
        self.assertEqual(counters.group({}, {"a": "group 4", "b": "group 2",
                                         "c": ""}), 3)
        self.assertIsNone(counters.group({"a": ""}, {"a": ""}))

    def test_group_is_shown(self):
        """In the record and in a column."""
        self.machine.put(self.FILE % 0, "group 32")
        self.machine.program("fio", FAKE_FIO.replace(
            "read -r r a", "printf 'group 4\\nsample_ns %%s\\n' $$ >%s\n"
            "read -r r a" % (self.FILE % 0)))
        text = self.bench("--repeat", "1", "--policies", "always,adaptive",
                          "--verbose")
        groups = {one["policy"]: one["group"]
                  for one in self.machine.records()}
        self.assertEqual(groups, {"always": None, "adaptive": 4})
        self.assertRegex(text, r"kernel +policy .* group\n")

    def test_no_group(self):
        """A kernel whose file is not there."""
        self.bench("--repeat", "1", "--policies", "adaptive")
        self.assertIsNone(self.machine.records()[0]["group"])

    def test_report_says_it(self):
        """What the figures leave out."""
        text = self.bench("--policies", "adaptive", "--verbose")
        self.assertIn("runs for a second that no figure counts", text)


class Counting(Case):
    """perf and the driver's doorbells, where they are."""

    def test_no_perf(self):
        """Said once; null in the records."""
        text = self.bench()
        self.assertEqual(text.count("perf is not installed"), 1)
        self.assertIsNone(self.machine.records()[0]["cycles_per_io"])

    def test_perf(self):
        """Counts per I/O; the tracepoint only in runs of its own."""
        self.machine.program("perf", FAKE_PERF)
        self.bench("--repeat", "1", "--runtime", "3")
        for one in self.machine.records():
            for name in ("insns_per_io", "cycles_per_io", "unplugs_per_io",
                         "ctx_switches_per_io"):
                self.assertEqual(one[name], 7000, name)
        self.assertEqual([one["--runtime"] for one in self.machine.log()],
                         ["1", "1", "3"] * 5)

    def test_perf_can_some(self):
        """The rest is left out and said once."""
        self.machine.program("perf", FAKE_PERF)
        self.machine.put("perf.cannot", "instructions\ncycles")
        text = self.bench()
        self.assertEqual(text.count("cannot count here: instructions, cycles"
                                    "\n"), 1)
        one = self.machine.records()[0]
        self.assertIsNone(one["insns_per_io"])
        self.assertEqual(one["unplugs_per_io"], 7000)

    def test_hybrid_cpu(self):
        """Two kinds of cores are added up; what was not counted is no 0."""
        values = counters.perf_values(
            "# started\n\n5,,cpu_core/cycles/,1,50.00,,\n"
            "7,,cpu_atom/cycles/,1,50.00,,\n"
            "<not counted>,,instructions,0,100.00,,\n"
            "3,,context-switches:u,1,100.00,,\n")
        self.assertEqual(values, {"cycles": 12, "context-switches": 3})

    def test_doorbells(self):
        """Differences, of I/O queues only, in timed runs."""
        self.machine.put(DEBUG + "nvme0/doorbells",
                         "queue 0 doorbells 5 commands 5\n"
                         "queue 1 doorbells 100 commands 900")
        self.bench("--repeat", "1", "--policies", "always")
        self.assertEqual(self.machine.records()[0]["doorbells_per_io"], 0.031)


if __name__ == "__main__":
    unittest.main()
