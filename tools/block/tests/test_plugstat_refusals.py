#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugstat says when it cannot."""
import errno
import os
import shutil
import unittest
from unittest import mock

from stattree import DEBUGFS, STAT, Tree
from plugtools.stat import plugstat, source, switch

LOCKDOWN = "sys/kernel/security/lockdown"


class Refusals(Tree):
    """Clear errors."""

    def refuses(self, *args, code=1):
        got, out, err = self.run_tool("-c", "1", *args)
        self.assertEqual((got, out), (code, ""), err)
        self.assertNotIn("Traceback", err)
        return err

    def test_unknown_disk(self):
        self.assertEqual(self.refuses("sdx"),
                         "plugstat: sdx: no such disk\n")
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_bio_based_disk(self):
        self.put("sys/block/dm-0/stat", STAT)
        self.assertIn("dm-0: its plugs cannot be counted",
                      self.refuses("dm-0"))

    def test_dev_path_is_a_disk(self):
        code, out, _ = self.run_tool("-c", "1", "/dev/nullb0")
        self.assertEqual(code, 0)
        self.assertIn("nullb0", out)

    def test_other_names(self):
        """A link, as plugbench and plugroll take it; and a partition."""
        self.put("dev/nullb0")
        self.put("dev/nullb0p1")
        self.put("sys/block/nullb0/nullb0p1/partition", "1")
        os.makedirs(self.path("dev/disk/by-id"))
        os.symlink(self.path("dev/nullb0"), self.path("dev/disk/by-id/x"))
        code, out, err = self.run_tool("-c", "1", "/dev/disk/by-id/x")
        self.assertEqual(code, 0, err)
        self.assertIn("nullb0", out)
        self.assertIn("accepted: /dev/nullb0\n",
                      self.refuses("/dev/nullb0p1", code=2))

    def test_kernel_without_the_counters(self):
        for disk in ("nullb0", "nvme0n1"):
            os.unlink(self.path(DEBUGFS
                                + "block/%s/plug_stats_enabled" % disk))
        self.assertIn("CONFIG_BLK_PLUG_STAT", self.refuses())

    def test_debugfs_not_mounted(self):
        shutil.rmtree(self.path(DEBUGFS + "block"))
        self.assertIn("mount -t debugfs", self.refuses())

    def denied(self, user, number=errno.EPERM):
        """What is said if a switch cannot be written."""
        with mock.patch.object(switch, "write", side_effect=OSError(
                number, "no", "/sys/y")), \
                mock.patch.object(source.os, "geteuid", lambda: user):
            return self.refuses("nullb0")

    def test_no_permission(self):
        for number in errno.EACCES, errno.EPERM:
            with mock.patch.object(source.os, "listdir", side_effect=
                                   OSError(number, "no", "/sys/x")), \
                    mock.patch.object(source.os, "geteuid", lambda: 9):
                self.assertIn("no permission for /sys/x: run as root",
                              self.refuses())
            self.assertIn("/sys/y: run as root", self.denied(9, number))

    def test_root_is_not_told_to_be_root(self):
        self.put(LOCKDOWN, "[none] integrity confidentiality\n")
        self.assertIn("a security module", self.denied(0))

    def test_lockdown(self):
        for state in "integrity", "confidentiality":
            self.put(LOCKDOWN, "none integrity confidentiality\n".replace(
                state, "[%s]" % state))
            said = self.denied(0)
            self.assertIn("locked down (%s)" % state, said)
            self.assertIn("plugstat --policy", said)
            self.assertNotIn("run as root", said)

    def test_no_memory(self):
        def full(path, text):
            if text != "0":
                raise OSError(errno.ENOMEM, "no memory", path)
        with mock.patch.object(switch, "write", full):
            self.assertIn("plug_stats_enabled: no memory",
                          self.refuses("nullb0"))

    def test_usage(self):
        for args in (["-i", "0"], ["-i", "x"], ["-i", "-1"], ["-c", "0"],
                     ["--json", "--prometheus"], ["--bogus"],
                     ["1", "2", "3"], ["nullb0", "0"], ["-1"],
                     ["nullb0", "1", "2.5"], ["-i", "1", "1"],
                     ["--policy", "--top"], ["--counting", "maybe"],
                     ["--counting", "off", "1", "1"], ["--top"],
                     ["--textfile", "", "-c", "1"]):
            got, _, err = self.run_tool(*args)
            self.assertEqual(got, 2, args)
            self.assertIn("usage:", err)

    def test_numbers(self):
        """What is no number is told what is accepted."""
        for option, word in (("-i", "x"), ("-i", "nan"), ("-i", "0"),
                             ("-c", "1.5"), ("-c", "0")):
            err = self.run_tool(option, word)[2]
            self.assertIn("'%s'; accepted: " % word, err)

    def test_disk_that_goes_while_modes_are_checked(self):
        self.mode("nullb0", "always")

        def go(*_args):
            shutil.rmtree(self.path("sys/block/nullb0"))
        with mock.patch.object(plugstat, "print_policies", go):
            self.assertIn("nullb0", self.refuses("--policy", "--check",
                                                 "nullb0"))

    def test_disk_that_goes_meanwhile(self):
        def remove():
            shutil.rmtree(self.path(DEBUGFS + "block/nullb0"),
                          ignore_errors=True)

        code, out, err = self.run_tool("-c", "2", "nullb0", "nvme0n1",
                                       during=remove)
        self.assertEqual(code, 0)
        self.assertEqual(err, "plugstat: nullb0: the disk is gone\n")
        self.assertEqual(out.count("\nnvme0n1 "), 2)
        self.assertEqual(self.enabled("nvme0n1"), "0")

    def test_last_disk_goes(self):
        code, _, err = self.run_tool("-c", "9", "nullb0", during=lambda:
                                     shutil.rmtree(self.path(
                                         DEBUGFS + "block/nullb0")))
        self.assertEqual(code, 1)
        self.assertIn("nullb0: the disk is gone", err)
        self.assertIn("no disk is left", err)
        self.assertNotIn("not put back", err)

    def test_switch_that_cannot_be_put_back_is_told(self):
        def fail(path, text):
            if text == "0":
                raise OSError(errno.EACCES, "Permission denied", path)
            self.put(os.path.relpath(path, self.root), text)

        with mock.patch.object(switch, "write", fail):
            _, _, err = self.run_tool("-c", "1", "nullb0")
        self.assertIn("is not put back: Permission denied", err)


if __name__ == "__main__":
    unittest.main()
