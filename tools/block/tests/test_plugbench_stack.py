#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench on heads of NVMe multipath, dm and md."""
import os
import shutil
import unittest

from benchtree import FAKE_FIO, FILES, QUEUE, SHORT, Case, active

SETTINGS = ("plug_policy", "scheduler", "nomerges", "iostats", "nr_requests",
            "iosched/read_expire")


class Stack(Case):
    """Settings are those of the legs; fio runs on top."""

    def setUp(self):
        super().setUp()
        block = self.machine.path("sys/block")
        for name in ("nvme0c0n1", "nvme0c1n1"):
            shutil.copytree(block + "/nvme0n1", "%s/%s" % (block, name),
                            symlinks=True)
            shutil.rmtree("%s/%s/nvme0n1p1" % (block, name))
        for name in ("mq", "queue"):
            shutil.rmtree(block + "/nvme0n1/" + name)
        self.machine.put(QUEUE + "io_poll", "1")
        # logs what is set on the second leg, and names the first's
        self.machine.program("fio", FAKE_FIO.replace(
            "q=sys/block/nvme0n1", "q=sys/block/nvme0c1n1"))

    def queue(self, leg, name):
        """A setting of a leg."""
        return active(self.machine.get(
            QUEUE.replace("nvme0n1", leg) + name))

    def check_restored(self):
        """All legs are as at first."""
        for leg in ("nvme0c0n1", "nvme0c1n1"):
            for name in SETTINGS:
                self.assertEqual(self.queue(leg, name),
                                 active(FILES[QUEUE + name]), leg + name)

    def test_head(self):
        """All policies, on top, and all is put back."""
        text = self.bench()
        self.assertEqual([(one["policy"], one["scheduler"])
                          for one in self.machine.log()[::2]],
                         [("always", "none"), ("never", "none"),
                          ("seq-small", "none"), ("adaptive", "none"),
                          ("always", "none")])
        for one in self.machine.log():
            self.assertEqual(one["--filename"],
                             self.machine.path("dev/nvme0n1"))
            self.assertNotIn("--hipri", one)
        self.assertIn("settings:  of nvme0c0n1, nvme0c1n1", text)
        self.assertIn("nvme0c1n1: scheduler mq-deadline makes", text)
        self.check_restored()

    def test_all_legs(self):
        """The first one is set as well."""
        self.machine.program("fio", FAKE_FIO.replace(
            "q=sys/block/nvme0n1", "q=sys/block/nvme0c0n1"))
        self.bench("--policies", "never")
        self.assertEqual({one["policy"] for one in self.machine.log()},
                         {"never"})
        self.check_restored()

    def test_requests(self):
        """Those of all legs count: here 500 of one, 500 of the other."""
        stat = "sys/block/nvme0c0n1/stat"
        self.machine.program("fio", FAKE_FIO.replace(
            "q=sys/block/nvme0n1", "q=sys/block/nvme0c1n1").replace(
                "block/nvme0n1/stat", "block/nvme0c1n1/stat").replace(
                    "cat fio.json", 'read -r r rest <%s\necho "$((r + 500)) '
                    '$rest" >%s\ncat fio.json' % (stat, stat)))
        self.bench("--policies", "never")
        self.assertEqual(self.machine.records()[0]["requests_per_io"], 1)

    def test_fails(self):
        """Put back on all legs."""
        self.machine.put("fio.fail", "")
        self.bench(code=1)
        self.check_restored()

    def test_leg_vanishes(self):
        """Its name is said; the other leg is put back."""
        self.machine.put("fio.vanish", "")
        self.machine.program("fio", FAKE_FIO.replace(
            "q=sys/block/nvme0n1", "q=sys/block/nvme0c1n1").replace(
                "rm -rf sys/block/nvme0n1", "rm -rf sys/block/nvme0c0n1"))
        self.assertIn("nvme0c0n1 has vanished", self.bench(code=1))
        self.assertEqual(self.queue("nvme0c1n1", "scheduler"), "mq-deadline")

    def test_leg_without_knob(self):
        """Refused with its name."""
        knob = QUEUE.replace("nvme0n1", "nvme0c1n1") + "plug_policy"
        os.unlink(self.machine.path(knob))
        self.check_untouched("/dev/nvme0n1", *SHORT, code=1,
                             says="nvme0c1n1 below nvme0n1 has no plug_pol")

    def test_hidden_path(self):
        """It has no node; the head has."""
        self.check_untouched("/dev/nvme0c1n1", code=2,
                             says="the disk above it, /dev/nvme0n1")

    def test_nothing_below(self):
        """A bio-based disk whose legs cannot be seen."""
        for name in ("nvme0c0n1", "nvme0c1n1"):
            shutil.rmtree(self.machine.path("sys/block/" + name))
        self.check_untouched("/dev/nvme0n1", code=1,
                             says="no disk below it is to be seen")

    def test_md(self):
        """On a partition of one disk, and another: the whole disks."""
        self.machine.put("sys/block/md0/md/level", "raid0")
        self.machine.put("sys/block/md0/slaves/nvme0c0n1/x", "")
        self.machine.put("sys/block/md0/slaves/nvme0c1n1p1/x", "")
        self.machine.put("sys/block/nvme0c1n1/nvme0c1n1p1/partition", "1")
        self.machine.put("dev/md0", "")
        self.machine.put("dev/nvme0c1n1p1", "")
        code, out, errors = self.machine.run("/dev/md0", *SHORT)
        self.assertEqual(code, 0, out + errors)
        self.assertIn("disk: md0 (raid0)", out)
        self.assertEqual([one["policy"] for one in self.machine.log()[::2]],
                         ["always", "never", "seq-small", "adaptive",
                          "always"])
        self.check_restored()


if __name__ == "__main__":
    unittest.main()
