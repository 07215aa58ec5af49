#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugstat --policy, of many disks, and of output that is lost."""
import io
import itertools
import json
import os
import shutil
import unittest
from unittest import mock

import faketree
from stattree import BUSY, BUSY_STAT, Tree
from plugtools.core import terminal
from plugtools.stat import plugstat


class Check(Tree):
    """Is what is set in force?"""

    def test_check(self):
        """3 if it is not, or is not known to be; else as without --check."""
        self.mode("nvme0n1", "adaptive")
        self.mode("nullb0", "always", "elevator")
        self.assertEqual(self.run_tool("--policy", "--check")[::2], (0, ""))
        self.mode("nvme0n1", "adaptive", "elevator")
        for words in ([], ["--json"], ["nvme0n1"]):
            code, out, said = self.run_tool("--policy", "--check", *words)
            self.assertEqual((code, said), (
                3, "plugstat: nvme0n1: adaptive is set, but always is in "
                "force: elevator\n"))
            self.assertIn("elevator", out)
        self.assertEqual(self.run_tool("--policy", "--check", "nullb0")[0], 0)
        self.assertEqual(self.run_tool("--policy")[0], 0)
        os.unlink(self.path("sys/block/nvme0n1/queue/plug_policy_fallback"))
        self.assertEqual(self.run_tool("--policy", "--check")[0], 3)

    def test_interrupted(self):
        """It is not as if all were in force, or done."""
        self.mode("nvme0n1", "adaptive", "elevator")
        for name, words in (("check_policies", ["--policy", "--check"]),
                            ("print_policies", ["--policy"]),
                            ("export", ["--prometheus"]),
                            ("choose", ["--counting", "on"])):
            for signal in KeyboardInterrupt, plugstat.Interrupted:
                with mock.patch.object(plugstat, name, side_effect=signal):
                    self.assertEqual(self.run_tool(*words)[0], 130, words)

    def test_no_policy(self):
        """A kernel without, and a disk without."""
        for words in ([], ["nullb0"]):
            code, out, said = self.run_tool("--policy", *words)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("CONFIG_BLK_PLUG_POLICY", said)
        shutil.rmtree(self.path("sys/kernel"))
        for words in ([], ["nullb0"]):
            code, out, said = self.run_tool("--prometheus", *words)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("CONFIG_BLK_PLUG_POLICY", said)
        self.mode("nvme0n1", "adaptive")
        code, out, said = self.run_tool("--policy", "nullb0")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("nullb0 has no plug_policy (disks with", said)

    def test_goes_with_policy_only(self):
        """A check that would check nothing is refused."""
        with mock.patch("argparse.ArgumentParser._print_message"):
            self.assertEqual(self.run_tool("--check", "1", "1")[0], 2)


class Disks(Tree):
    """Many, and such that go."""

    def test_going(self):
        """A disk that goes meanwhile costs its own lines, whenever it does."""
        for words in (["--policy", "--json"], ["--prometheus"],
                      ["--prometheus", "nullb0", "nvme0n1"]):
            for access in range(100):
                shutil.rmtree(self.path("sys"))
                self.add_disk("nvme0n1")
                self.add_disk("nullb0")
                self.mode("nvme0n1", "adaptive")
                self.mode("nullb0", "never")
                with self.going("nullb0", access) as gone:
                    code, out, said = self.run_tool(*words)
                self.assertEqual(code, 0, said)
                self.assertIn('"adaptive"', out, access)
                if not gone:
                    break
            self.assertIn('"never"', out)
            self.assertGreater(access, 2, words)

    def test_many(self):
        """Four times the disks take four times as long."""
        for head, paths in (("dm-%d", ("sd%dx0", "sd%dx1")),
                            ("nvme%dn1", ("nvme%dc0n1", "nvme%dc1n1"))):
            took = []
            for number in 20, 80:
                self.many(number, head, paths)
                names = [head % disk for disk in range(number)]
                for path in paths:
                    for disk in range(number):
                        self.put("sys/kernel/debug/block/%s/hctx0/plug_stats"
                                 % path % disk, "tags_single 1\n")
                        self.put("sys/kernel/debug/block/%s/"
                                 "plug_stats_enabled" % path % disk, "1\n")
                took.append([faketree.calls(lambda: self.run_tool(*words))
                             for words in (["--policy"], ["--policy", *names],
                                           ["--prometheus"],
                                           ["--prometheus", *names],
                                           ["1", "1", *names])])
                shutil.rmtree(self.path("sys/kernel"))
            for few, much in zip(*took):
                self.assertLess(much, 5 * few, took)


class Lost(Tree):
    """Output that cannot be written."""

    def test_full(self):
        """An error, told in a line; who has seen enough is told nothing; and
        either ends the watch, and the counting."""
        self.mode("nvme0n1", "adaptive")
        for words in (["0.1"], ["--json", "0.1"], ["--policy"],
                      ["--policy", "--json"], ["--prometheus"], ["--help"],
                      ["--version"]):
            self.assertEqual(faketree.lost("plugstat", *words), [
                (1, "plugstat: output is lost: No space left on device\n"),
                (0, "")], words)
            self.assertEqual(self.enabled("nvme0n1"), "0")


class Look(Tree):
    """Which columns, in which order, and how."""

    def busy(self):
        """I/O on one of two disks."""
        self.counters("nullb0", BUSY)
        self.put("sys/block/nullb0/stat", BUSY_STAT.replace("3110", "522110"))

    def test_columns(self):
        """Those that are asked for, the busiest disk first."""
        _, out, _ = self.run_tool("--columns", "r/flush,Disk", "--sort",
                                  "r/flush", "1", "1", during=self.busy)
        self.assertEqual([text.split() for text in out.splitlines()[:3]], [
            ["r/flush", "Disk"], ["32.0", "nullb0"], ["-", "nvme0n1"]])

    def test_human(self):
        """Only numbers that are long, on request."""
        def rate(*words):
            with mock.patch("plugtools.stat.source.time.monotonic",
                            side_effect=itertools.count(1)):
                _, out, _ = self.run_tool("1", "1", "nullb0", *words,
                                          during=self.busy)
            self.counters("nullb0", {})
            self.add_disk_again()
            return out.splitlines()[1].split()[1]

        self.assertEqual((rate(), rate("-h")), ("522200", "522k"))
        for text, want in (("999", "999"), ("1000", "1k"), ("-", "-"),
                           ("999999", "1M"), ("12345.6", "12.3k"),
                           ("x1000", "x1000")):
            self.assertEqual(terminal.human(text), want)

    def add_disk_again(self):
        """As it was."""
        self.put("sys/block/nullb0/stat", "10 2 80 1 20 4 160 2 0 3 4\n")

    def test_unknown(self):
        """What is no column, and what has none."""
        for words, said in ((["--sort", "x"], "accepted: Disk, req/s"),
                            (["--policy", "--sort", "req/s"],
                             "accepted: Disk, set"),
                            (["--columns", "set"], "accepted: Disk, req/s"),
                            (["--json", "-h"], "are for tables")):
            with mock.patch("argparse.ArgumentParser._print_message") as told:
                self.assertEqual(self.run_tool(*words)[0], 2)
            self.assertIn(said, str(told.mock_calls))

    def test_colour(self):
        """On a terminal that has it, and not if NO_COLOR is set."""
        screen = io.StringIO()
        screen.isatty = lambda: True
        for tty, variables, coloured in (
                (True, {"TERM": "xterm"}, True), (False, {"TERM": "x"}, False),
                (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
                (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
                (True, {"TERM": "dumb"}, False), (True, {}, False)):
            with mock.patch.dict(os.environ, variables, clear=True):
                got = terminal.paint("x", "bad",
                                     screen if tty else io.StringIO())
            self.assertEqual(got, "\033[31mx\033[m" if coloured else "x")
        self.mode("nvme0n1", "adaptive", "elevator")
        self.assertNotIn("\033", self.run_tool("--policy")[1])


if __name__ == "__main__":
    unittest.main()
