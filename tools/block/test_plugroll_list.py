# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll list, and of how response times are sampled."""
import json
import os
import shutil
import unittest
from unittest import mock

import rolltree
from plugtools import rolllist, rollmeter
from plugtools.disks import Disk

# 20000 reads, 8000 ms in flight within 1000 ms
BUSY = "20000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
SINGLE = "20000 0 0 1000 0 0 0 0 0 1000 1000 0 0 0 0 0 0"
BEGIN = " fio-1 [001] ..... %s: block_getrq: %s R %s + 8 [fio]\n"
END = " <idle>-0 [001] d.h.. %s: block_rq_complete: 259,0 R () %s + 8 none\n"
TRACE = (BEGIN % ("12.000100", "259,1", "1234") +
         BEGIN % ("12.000110", "259,0", "5555") +
         END % ("12.000350", "1234") + END % ("12.000360", "9999"))


class ListTest(rolltree.Tree):
    """What is said of a disk."""

    def row(self, *disks):
        """plugroll list --json, of one disk."""
        code, out, said = self.run_roll("list", "--json", *disks)
        self.assertEqual((code, said), (0, ""))
        return json.loads(out)["disks"][0]

    def recommended(self, **files):
        """(mode, first evidence) for a disk with these files."""
        shutil.rmtree(self.path("sys/block/nvme0n1"), ignore_errors=True)
        self.disk("nvme0n1", **{"stat": BUSY, **files})
        row = self.row("nvme0n1")
        return row["recommended"], row["evidence"][0]

    def test_facts(self):
        """One after the other, as plug-policy.rst has them."""
        for files, mode, evidence in (
                ({}, "adaptive", "8.0 requests in flight"),
                ({"stat": SINGLE}, "always", "one I/O at a time"),
                ({"stat": "9 " * 17}, None, "not enough I/O to tell"),
                ({"queue__scheduler": "none [mq-deadline]"}, "always",
                 "an I/O scheduler, mq-deadline"),
                ({"queue__rotational": "1"}, "always", "rotational"),
                ({"queue__plug_policy_fallback": "no-queue_rqs"}, "always",
                 "takes no groups"),
                ({"device__model": "QEMU NVMe Ctrl"}, "always",
                 "virtual (QEMU NVMe Ctrl)")):
            with self.subTest(files):
                got = self.recommended(**files)
                self.assertEqual(got[0], mode)
                self.assertIn(evidence, got[1])

    def test_not_in_force(self):
        """What is set, and why something else is in force."""
        self.disk("nvme0n1", "adaptive",
                  queue__plug_policy_fallback="elevator")
        row = self.row()
        self.assertEqual((row["set"], row["in_force"], row["why"]),
                         ("adaptive", "always", "elevator"))

    def test_tries(self):
        """A try says more than a guess: of what is better, and what not."""
        for speed, tried, mode, text in (
                (1.3, "seq-small", "seq-small", "the guard held; iops +"),
                (.7, "adaptive", "always", "the guard tripped; iops -")):
            self.disk("nvme0n1", wwid="eui.%s" % speed)
            with rolltree.Load(self, "nvme0n1", {tried: speed}):
                self.run_roll("try", tried, "nvme0n1", "--for", "1m")
            self.write("sys/block/nvme0n1/stat", BUSY)
            row = self.row()
            self.assertEqual(row["recommended"], mode)
            self.assertIn(text, row["evidence"][0])
            shutil.rmtree(self.path("sys/block/nvme0n1"))

    def test_damaged_tries(self):
        """What cannot be read is no evidence."""
        self.disk("nvme0n1")
        for text in ("{", "[]", '{"eui.nvme0n1": 3}',
                     '{"eui.nvme0n1": {"never": {}}}'):
            self.write(rolllist.TRIES, text)
            self.assertEqual(self.row()["recommended"], None, text)

    def test_head(self):
        """Its paths have the policy; disks without any, or without a
        medium, are left out."""
        self.head()
        self.disk("loop0", mode="", mq__0="")
        self.disk("loop1", size="0")
        code, out, _ = self.run_roll("list")
        self.assertEqual(code, 0)
        self.assertIn("its policy is that of nvme0c0n1, nvme0c1n1", out)
        self.assertNotIn("loop", out)

    def test_none(self):
        """A kernel without the series."""
        self.disk("sda", mode="", mq__0="")
        code, _, said = self.run_roll("list")
        self.assertEqual(code, 1)
        self.assertIn("CONFIG_BLK_PLUG_POLICY", said)


class TraceTest(rolltree.Tree):
    """Requests that are followed by trace events."""

    def tracefs(self):
        """As the kernel would make an instance."""
        where = "sys/kernel/tracing/instances/plugroll/"
        os.makedirs(self.path("sys/kernel/tracing/instances"))
        for event in rollmeter.EVENTS:
            for name in ("filter", "enable"):
                self.write(where + "events/block/%s/%s" % (event, name), "0")
        self.write(where + "trace_pipe", TRACE.rstrip())
        self.patch(mock.patch("os.mkdir"))
        return where

    def test_times(self):
        """From the allocation to the completion, partitions included; what
        has no beginning or no end is left out."""
        self.disk("nvme0n1", nvme0n1p1__partition="1", nvme0n1p1__dev="259:1",
                  dev="259:0")
        where = self.tracefs()
        tracer = rollmeter.Tracer({Disk("nvme0n1"): 20000})
        self.assertEqual(tracer.collect(), {"nvme0n1": [250]})
        self.assertEqual(self.read(where + "events/block/block_getrq/filter"),
                         "(dev == 271581184 || dev == 271581185) && "
                         "!(sector & 120)")
        tracer.close()
        self.assertEqual(self.read(where + "events/block/block_getrq/enable"),
                         "0")

    def test_lost(self):
        """After lost events no pair is certain."""
        self.disk("nvme0n1", dev="259:0")
        self.tracefs()
        tracer = rollmeter.Tracer({Disk("nvme0n1"): 100})
        lines = TRACE.splitlines()
        tracer.times = {"nvme0n1": []}
        tracer.take([lines[1].replace("5555", "1234"),
                     "CPU:1 [LOST 27 EVENTS]", lines[2]])
        self.assertEqual(tracer.times, {"nvme0n1": []})
        tracer.close()

    def test_percentile(self):
        """The 99th of 1000; too few have none."""
        old = rollmeter.Counters(0, 0, 0, 0)
        new = rollmeter.Counters(1, 5000, 5000, 500)
        self.assertEqual(rollmeter.figures(old, new, range(1000))["p99"], .99)
        self.assertNotIn("p99", rollmeter.figures(old, new, range(400)))


if __name__ == "__main__":
    unittest.main()
