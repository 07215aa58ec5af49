# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll list, and of how response times are sampled."""
import json
import os
import shutil
import subprocess
import threading
import unittest
from unittest import mock

import rolltree
from plugtools import rolllist, rollmeter
from plugtools.disks import Disk

# 20000 reads, 8000 ms in flight within 1000 ms
BUSY = "20000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
SINGLE = "20000 0 0 1000 0 0 0 0 0 1000 1000 0 0 0 0 0 0"
WRAPPED = "500000000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
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
                ({"stat": WRAPPED}, None, "may have wrapped in 500000000"),
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

    def note(self, *names):
        """What came of a try of disks on "never"."""
        rolllist.note_try({"mode": "never", "disks": {name: {
            "status": "held", "figures": {}} for name in names}},
                          list(map(Disk, names)))

    def test_two_at_once(self):
        """A try that ends while another one is being noted is noted, too."""
        for name in ("nvme0n1", "nvme1n1"):
            self.disk(name)
        known, second = rolllist.tries, threading.Thread(
            target=self.note, args=("nvme1n1",))

        def slow():
            found = known()
            if not second.ident:
                second.start()
                second.join(.2)
            return found

        with mock.patch.object(rolllist, "tries", slow):
            self.note("nvme0n1")
            second.join()
        self.assertEqual(sorted(rolllist.tries()),
                         ["eui.nvme0n1", "eui.nvme1n1"])

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

    def tracefs(self, pid=None, enable="0"):
        """As the kernel would make an instance."""
        where = "sys/kernel/tracing/instances/plugroll-%d/" % (
            pid or os.getpid())
        for event in rollmeter.EVENTS:
            self.write(where + "events/block/%s/filter" % event, "0")
            self.write(where + "events/block/%s/enable" % event, enable)
        self.write(where + "trace_pipe", TRACE.rstrip())
        return where

    def tracer(self, rates):
        """One, whose instance is there already."""
        with mock.patch("os.mkdir"):
            return rollmeter.Tracer(rates)

    def enabled(self, where):
        """Of both events."""
        return [self.read(where + "events/block/%s/enable" % event)
                for event in rollmeter.EVENTS]

    def test_times(self):
        """From the allocation to the completion, partitions included; what
        has no beginning or no end is left out."""
        self.disk("nvme0n1", nvme0n1p1__partition="1", nvme0n1p1__dev="259:1",
                  dev="259:0")
        where = self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 20000})
        self.assertEqual(tracer.collect(), {"nvme0n1": [250]})
        self.assertEqual(self.read(where + "events/block/block_getrq/filter"),
                         "(dev == 271581184 || dev == 271581185) && "
                         "!(sector & 120)")
        self.assertEqual(self.enabled(where), ["1", "1"])
        tracer.close()
        self.assertEqual(self.enabled(where), ["0", "0"])

    def test_others(self):
        """The instance of another plugroll stays as it is; that of a dead one
        goes, if nobody uses it."""
        self.disk("nvme0n1", dev="259:0")
        with subprocess.Popen("true") as dead:
            pass
        others = [self.tracefs(pid, "1") for pid in (1, dead.pid)]
        self.tracefs()
        with mock.patch("os.rmdir") as removed:
            self.tracer({Disk("nvme0n1"): 20000}).close()
        self.assertEqual(list(map(self.enabled, others)), [["1", "1"]] * 2)
        self.assertEqual({os.path.basename(call.args[0])
                          for call in removed.call_args_list},
                         {"plugroll-%d" % pid
                          for pid in (dead.pid, os.getpid())})

    def test_second_event(self):
        """One that cannot be switched on: the first one is not left on."""
        self.disk("nvme0n1", dev="259:0")
        where, write = self.tracefs(), rollmeter.write

        def refuse(path, value):
            if path.endswith("block_rq_complete/enable") and value == "1":
                raise OSError(12, "Cannot allocate memory", path)
            write(path, value)

        with mock.patch.object(rollmeter, "write", refuse), \
             mock.patch("os.rmdir") as removed, \
             self.assertRaisesRegex(rollmeter.NoTracing, "Cannot allocate"):
            self.tracer({Disk("nvme0n1"): 20000})
        self.assertEqual(self.enabled(where), ["0", "0"])
        removed.assert_called_with(self.path(where).rstrip("/"))

    def test_legs(self):
        """Of a head, what its paths do: each has the same sectors, and sysfs
        does not have the number of a hidden one."""
        self.head()
        os.unlink(self.path("sys/block/nvme0c1n1/dev"))
        self.write("sys/block/nvme0c0n1/dev", "259:0")
        self.write("proc/diskstats", "259 3 nvme0n1 9 9\n"
                   " 259       4 nvme0c1n1 9 9\n")
        where = self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 100})
        self.assertEqual(self.read(where + "events/block/block_getrq/filter"),
                         "(dev == 271581184 || dev == 271581188)")
        tracer.take([line.replace("259,1", "259,4").replace("5555", "1234")
                     for line in TRACE.splitlines()])
        self.assertEqual(tracer.times, {"nvme0n1": [240]})
        self.write("proc/diskstats", "0 0 nvme0c1n1 9 9")
        with self.assertRaisesRegex(rollmeter.NoTracing,
                                    "number of nvme0c1n1 is not known"):
            self.tracer({Disk("nvme0n1"): 100})

    def test_lost(self):
        """After lost events no pair is certain."""
        self.disk("nvme0n1", dev="259:0")
        self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 100})
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

    def test_wrap(self):
        """The kernel shows 32 bits of the time."""
        old = rollmeter.Counters(0, 0, 0, (1 << 32) - 100)
        new = rollmeter.Counters(1, 500, 500, 400)
        self.assertEqual(rollmeter.figures(old, new)["mean"], 1)


if __name__ == "__main__":
    unittest.main()
