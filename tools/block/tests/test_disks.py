#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools.disks on a tree in place of /sys, /proc and /dev."""
import errno
import os
import unittest
from unittest import mock

import faketree
from plugtools.core import disks, system


class Case(faketree.Tree):
    """Some disks."""

    def setUp(self):
        super().setUp()
        self.put("proc/swaps", "Filename Type\n")
        self.disk("nvme0n1", "259:0")
        self.part("nvme0n1", "nvme0n1p1", "259:1")

    def disk(self, name, number, node=True, queue=True):
        """Make a disk."""
        self.put("sys/block/%s/dev" % name, number)
        self.put("sys/block/%s/stat" % name, "1 0 0 0 2 0 0 0 0 0 0")
        if node:
            self.put("dev/" + name)
        if queue:
            self.put("sys/block/%s/mq/0/cpu_list" % name)
            self.put("sys/block/%s/queue/plug_policy" % name,
                     "always [never]")

    def part(self, disk, name, number):
        """Make a partition."""
        self.put("sys/block/%s/%s/partition" % (disk, name), "1")
        self.put("sys/block/%s/%s/dev" % (disk, name), number)
        self.put("dev/" + name)

    def above(self, name, number, *below):
        """Make a bio-based disk above directories in sysfs."""
        self.disk(name, number, queue=False)
        for one in below:
            self.put("sys/block/%s/holders/%s/x" % (one, name))
            self.put("sys/block/%s/slaves/%s/x" % (name,
                                                   os.path.basename(one)))

    def legs(self, name):
        """Names of a disk's legs."""
        return [leg.name for leg in disks.Disk(name).legs()]

    def uses(self, name):
        """Who uses a disk."""
        return disks.uses(disks.find_disk("/dev/" + name))


class Legs(Case):
    """What serves a disk."""

    def test_partitions(self):
        """The kernel's names of partitions say whose they are."""
        for disk, name in (("sda", "sda12"), ("sdp", "sdp1"),
                           ("mmcblk0", "mmcblk0p2"), ("md_d0", "md_d0p1"),
                           ("cciss!c0d0", "cciss!c0d0p1"),
                           ("nvme0n1", "nvme0n1p1")):
            self.part(disk, name, "1:1")
            self.assertEqual(disks.disk_of_partition(name), disk)
        for name in "sda", "sda13", "nvme0n1", "p1", "1", "":
            self.assertIsNone(disks.disk_of_partition(name), name)

    def test_itself(self):
        """A disk with requests."""
        self.assertEqual(self.legs("nvme0n1"), ["nvme0n1"])

    def test_head(self):
        """The paths of the head's own subsystem and namespace."""
        self.disk("nvme1n2", "259:9", queue=False)
        for name in ("nvme1c0n2", "nvme1c11n2", "nvme1c0n1", "nvme11c0n2",
                     "nvme1c0n21"):
            self.disk(name, "0:0", node=False)
        self.assertEqual(self.legs("nvme1n2"), ["nvme1c0n2", "nvme1c11n2"])
        self.assertEqual(disks.Disk("nvme1c0n2").node, "")
        self.assertTrue(disks.Disk("nvme1c0n2").hidden())
        self.assertFalse(disks.Disk("nvme1n2").hidden())

    def test_stack(self):
        """dm on md on a partition and a disk; each disk once."""
        self.disk("sdb", "8:16")
        self.part("nvme0n1", "nvme0n1p2", "259:2")
        self.above("md0", "9:0", "nvme0n1/nvme0n1p1", "sdb",
                   "nvme0n1/nvme0n1p2")
        self.above("dm-0", "253:0", "md0")
        self.assertEqual(self.legs("dm-0"), ["nvme0n1", "sdb"])

    def test_none(self):
        """Nothing below that could be seen."""
        self.disk("zram0", "252:0", queue=False)
        self.assertEqual(self.legs("zram0"), [])

    def test_controller(self):
        """By the link, not by what the name seems to say."""
        self.disk("nvme0c0n1", "0:0", node=False)
        self.put("sys/class/nvme/nvme5/model", "x")
        os.symlink("../../class/nvme/nvme5", os.path.join(
            self.root, "sys/block/nvme0c0n1/device"))
        self.assertEqual(disks.Disk("nvme0c0n1").controller(), "nvme5")


class Find(Case):
    """What a user may name."""

    def test_names(self):
        """A node, the kernel's name, a link, and a hidden path."""
        self.disk("nvme0c0n1", "0:0", node=False)
        os.makedirs(os.path.join(self.root, "dev/disk/by-id"))
        os.symlink("../../nvme0n1",
                   os.path.join(self.root, "dev/disk/by-id/x"))
        for word, name in (("/dev/nvme0n1", "nvme0n1"),
                           ("nvme0n1", "nvme0n1"),
                           ("/dev/disk/by-id/x", "nvme0n1"),
                           ("nvme0c0n1", "nvme0c0n1"),
                           ("/dev/nvme0c0n1", "nvme0c0n1")):
            self.assertEqual(disks.find_disk(word).name, name, word)

    def test_refused(self):
        """With what is accepted."""
        self.put("dev/tty")
        for word, says in (("nvme7n1", "/dev/nvme0n1"), ("", "a whole disk"),
                           ("/dev/nvme0n1p1", "accepted: /dev/nvme0n1"),
                           ("/dev/tty", "/dev/nvme0n1"),
                           ("/sys/block/nvme0n1", "/dev/nvme0n1"),
                           ("../dev/nvme0n1", "/dev/nvme0n1")):
            with self.assertRaises(system.UsageProblem, msg=word) as caught:
                disks.find_disk(word)
            self.assertIn(says, str(caught.exception))

    def test_disks_that_have_it(self):
        """By a node that is there: of a hidden path, the head's."""
        self.disk("cciss!c0d0", "104:0", node=False)
        self.put("dev/cciss/c0d0")
        self.disk("nvme1n1", "259:3", queue=False)
        for path in "nvme1c0n1", "nvme1c1n1", "nvme2c0n1":
            self.disk(path, "0:0", node=False)
        self.assertEqual(disks.with_knob(), "disks with plug_policy here: "
                         "/dev/cciss/c0d0, /dev/nvme0n1, /dev/nvme1n1")
        os.unlink(self.path("dev/nvme1n1"))     # as in a container
        self.assertIn(", nvme1n1", disks.with_knob())
        self.part("cciss!c0d0", "cciss!c0d0p1", "104:1")
        self.put("dev/cciss/c0d0p1")
        with self.assertRaisesRegex(system.UsageProblem,
                                    "accepted: /dev/cciss/c0d0$"), \
                mock.patch.object(disks, "kernel_name",
                                  lambda *_: "cciss!c0d0p1"):
            disks.find_disk("/dev/cciss/c0d0p1")
        self.put("proc/swaps", "Filename\n/dev/cciss/c0d0p1 partition\n")
        self.assertEqual(disks.uses(disks.Disk("cciss!c0d0")),
                         ["cciss!c0d0p1 is swap"])

    def test_policy(self):
        """Read and set."""
        disk = disks.find_disk("nvme0n1")
        self.assertEqual((disk.policies(), disk.policy()),
                         (["always", "never"], "never"))
        disk.set_policy("always")
        self.assertEqual(disk.policy(), "always")
        self.assertEqual(disk.completed(), 3)


class Uses(Case):
    """Who uses a disk, by each way to see it."""

    def test_nobody(self):
        """Nothing to say."""
        self.assertEqual(self.uses("nvme0n1"), [])

    def test_mounted(self):
        """A partition, by number."""
        self.put("proc/self/mountinfo",
                 "1 1 259:1 / /home rw - ext4 /dev/root rw\n")
        self.assertEqual(self.uses("nvme0n1"),
                         ["nvme0n1p1 is mounted on /home"])

    def test_btrfs(self):
        """By the source, since it has a number of its own."""
        self.put("proc/self/mountinfo",
                 "1 1 0:33 / /data rw - btrfs /dev/nvme0n1 rw\n")
        self.assertEqual(self.uses("nvme0n1"), ["nvme0n1 is mounted on /data"])

    def test_swap(self):
        """On a partition, and on LVM."""
        self.put("proc/swaps", "Filename\n/dev/nvme0n1p1 partition 1 0 -2\n")
        self.assertEqual(self.uses("nvme0n1"), ["nvme0n1p1 is swap"])

    def test_lvm(self):
        """What is on it, too."""
        self.above("dm-0", "253:0", "nvme0n1/nvme0n1p1")
        self.put("sys/block/dm-0/dm/name", "vg-root")
        self.put("sys/block/dm-0/dm/uuid", "LVM-xyz")
        self.put("proc/self/mountinfo",
                 "1 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n")
        self.assertEqual(self.uses("nvme0n1"),
                         ["nvme0n1p1 is held by LVM vg-root (dm-0)",
                          "nvme0n1p1 is mounted on /"])
        self.put("proc/self/mountinfo", "")
        self.put("proc/swaps", "Filename\n/dev/mapper/vg-root partition\n")
        self.assertIn("nvme0n1p1 is swap", self.uses("nvme0n1"))

    def test_md(self):
        """Its legs are used by it, but it is used by nobody."""
        self.above("md0", "9:0", "nvme0n1/nvme0n1p1")
        self.put("sys/block/md0/md/level", "raid1")
        self.assertEqual(self.uses("nvme0n1"),
                         ["nvme0n1p1 is held by md0 (raid1)"])
        self.assertEqual(self.uses("md0"), [])
        self.part("nvme0n1", "nvme0n1p2", "259:2")
        self.put("proc/self/mountinfo",
                 "1 1 259:2 / /boot rw - ext4 /dev/nvme0n1p2 rw\n")
        self.assertEqual(self.uses("md0"), ["nvme0n1p2 is mounted on /boot"])

    def test_many(self):
        """Four times the volumes on a disk, all mounted, take four times as
        long; so do four times the other disks."""
        took = []
        for number in 25, 100:
            text = ""
            for count in range(number):
                self.disk("sd%d" % count, "8:%d" % count)
                name = "dm-%d" % count
                self.above(name, "253:%d" % count, "nvme0n1/nvme0n1p1")
                text += "1 1 253:%d / /m%d rw - ext4 /dev/x rw\n" % (
                    count, count)
            self.put("proc/self/mountinfo", text)
            self.assertEqual(len(self.uses("nvme0n1")), 2 * number)
            took.append(faketree.calls(lambda: self.uses("nvme0n1")))
        self.assertLess(took[1], 5 * took[0], took)

    def test_many_legs(self):
        """All disks are listed once for what is below one, not per leg."""
        self.many(30, "dm-%d", ("sd%dx",))
        self.above("md0", "9:0", *("dm-%d" % one for one in range(30)))
        with mock.patch.object(disks, "nvme_paths", return_value={}) as asked:
            self.assertEqual(len(disks.find_disk("/dev/md0").legs()), 30)
            self.assertEqual(len(disks.stack_of(disks.Disk("md0"))), 61)
        self.assertEqual(asked.call_count, 2)

    def exclusively(self, disk, held):
        """What is said if these nodes are held."""
        def opened(node):
            if os.path.basename(node) in held:
                raise OSError(errno.EBUSY, "busy")
            return os.open(os.devnull, os.O_RDONLY)
        with mock.patch.object(disks, "open_exclusively", opened):
            return self.uses(disk)

    def test_zfs(self):
        """It has no holders, but a signature that udev has seen."""
        self.put("run/udev/data/b259:1", "S:x\nE:ID_FS_TYPE=zfs_member\n")
        self.assertEqual(self.exclusively("nvme0n1", ["nvme0n1p1",
                                                      "nvme0n1"]),
                         ["nvme0n1p1 is held exclusively (ZFS)"])
        self.assertEqual(self.exclusively("nvme0n1", []), [])

    def test_held(self):
        """By something that cannot be told; who serves the disk is none."""
        self.assertEqual(self.exclusively("nvme0n1", ["nvme0n1"]),
                         ["nvme0n1 is held exclusively"])
        self.above("md0", "9:0", "nvme0n1")
        self.assertEqual(self.exclusively("md0", ["nvme0n1"]), [])
        self.disk("sdb", "8:16")
        self.part("sdb", "sdb1", "8:17")
        self.above("md1", "9:1", "sdb/sdb1")
        self.assertEqual(self.exclusively("md1", ["sdb1", "sdb"]), [])
        self.assertEqual(self.exclusively("md0", ["nvme0n1p1"]),
                         ["nvme0n1p1 is held exclusively"])
        self.assertEqual(self.exclusively("md0", ["md0"]),
                         ["md0 is held exclusively"])


if __name__ == "__main__":
    unittest.main()
