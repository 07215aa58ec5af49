#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that plugstats share the kernel's switches, and put them back."""
import signal
import subprocess
import sys
import unittest

from stattree import PLUGSTAT, Tree


class Switching(Tree):
    """Counting is on meanwhile, and as before at the end."""

    def test_on_and_back(self):
        seen = []
        self.run_tool("-c", "1", "nullb0", during=lambda: seen.append(
            (self.enabled("nullb0"), self.enabled("nvme0n1"))))
        self.assertEqual(seen, [("1", "0")])
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_all_disks_by_default(self):
        seen = []
        self.run_tool("-c", "1", during=lambda: seen.append(
            (self.enabled("nullb0"), self.enabled("nvme0n1"))))
        self.assertEqual(seen, [("1", "1")])

    def start(self, *args):
        """A plugstat that watches."""
        child = subprocess.Popen(
            [sys.executable, "-B", PLUGSTAT, "-i", "0.1", *args],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        # the header is printed with the first interval: by then it watches
        self.assertIn("req/s", child.stdout.readline())
        return child

    def end(self, child, number=signal.SIGINT):
        """What it says after a signal."""
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
        self.assertEqual((child.returncode, err), (0, ""))
        return out

    def signalled(self, number):
        child = self.start("nullb0")
        self.assertEqual(self.enabled("nullb0"), "1")
        self.assertIn("32 per doorbell?", self.end(child, number))
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_ctrl_c(self):
        self.signalled(signal.SIGINT)

    def test_sigterm(self):
        self.signalled(signal.SIGTERM)

    def test_sighup(self):
        self.signalled(signal.SIGHUP)

    def test_sigquit(self):
        self.signalled(signal.SIGQUIT)

    def test_error_puts_back_too(self):
        def broken():
            raise RuntimeError

        with self.assertRaises(RuntimeError):
            self.run_tool("nullb0", during=broken)
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_the_last_one_switches_off(self):
        for first, second in ((0, 1), (1, 0)):
            both = [self.start("nullb0"), self.start("nullb0", "nvme0n1")]
            self.end(both[first])
            self.assertEqual(self.enabled("nullb0"), "1")
            self.end(both[second])
            self.assertEqual((self.enabled("nullb0"),
                              self.enabled("nvme0n1")), ("0", "0"))

    def test_a_killed_one_is_no_holder(self):
        killed, other = self.start("nullb0"), self.start("nullb0")
        killed.kill()
        killed.wait()
        self.assertEqual(self.enabled("nullb0"), "1")
        self.end(other)
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_what_a_killed_one_left_is_put_back_by_the_next(self):
        killed = self.start("nullb0")
        killed.kill()
        killed.wait()
        self.assertEqual(self.enabled("nullb0"), "1")
        self.run_tool("nullb0", "1", "1")
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_many_at_once(self):
        children = [subprocess.Popen(
            [sys.executable, "-B", PLUGSTAT, "nullb0", "0.01", "1"],
            stdout=subprocess.DEVNULL) for _ in range(8)]
        for child in children:
            self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(self.enabled("nullb0"), "0")


class Keeping(Tree):
    """--counting: on and off beyond the end of the run."""

    def keep(self, *args):
        code, out, err = self.run_tool("--counting", *args)
        self.assertEqual((code, out, err), (0, "", ""))

    def levels(self):
        return self.enabled("nullb0"), self.enabled("nvme0n1")

    def test_on_and_off(self):
        self.keep("on")
        self.assertEqual(self.levels(), ("1", "1"))
        self.run_tool("nullb0", "1", "1")
        self.assertEqual(self.levels(), ("1", "1"))
        self.keep("off")
        self.assertEqual(self.levels(), ("0", "0"))

    def test_of_one_disk(self):
        self.keep("on")
        self.add_disk("nvme1n1", "nvme1")
        self.keep("off", "nvme0n1")
        self.assertEqual(self.levels(), ("1", "0"))

    def test_waits_for_who_still_watches(self):
        self.keep("on")
        self.run_tool("nullb0", "1", "1", during=lambda: self.keep("off"))
        self.assertEqual(self.levels(), ("0", "0"))
        self.run_tool("nullb0", "1", "1", during=lambda: self.keep("on"))
        self.assertEqual(self.levels(), ("1", "1"))

    def test_off_does_not_disturb_who_still_watches(self):
        seen = []

        def off():
            self.keep("off")
            seen.append(self.levels())

        self.keep("on")
        self.run_tool("nullb0", "1", "1", during=off)
        self.assertEqual(seen, [("1", "0")])



if __name__ == "__main__":
    unittest.main()
