#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugstat's screen, with a terminal of their own."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from stattree import BUSY, PLUGSTAT, Tree
from plugtools.stat import top

ENTER, LEAVE, SHOW = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


class Top(Tree):
    """What a user sees, and what the terminal is like afterwards."""

    def start(self, *args, rows=24, columns=120, term="xterm"):
        """plugstat in a terminal."""
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.addCleanup(os.close, slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        self.slave, self.seen = slave, b""
        self.before = termios.tcgetattr(slave)
        self.child = subprocess.Popen(
            [sys.executable, "-B", PLUGSTAT, "--top", "0.1", *args],
            stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TERM": term}, start_new_session=True)
        self.addCleanup(self.child.communicate)
        self.addCleanup(self.child.kill)

    def wait_for(self, text):
        """Until the screen has been sent a text."""
        end = time.monotonic() + 20
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        self.assertIn(text, self.seen)

    def ends(self):
        """The terminal is as before, and counting is off."""
        _, err = self.child.communicate(timeout=20)
        self.assertEqual((self.child.returncode, err), (0, ""))
        self.wait_for(LEAVE)
        self.assertIn(SHOW, self.seen)
        self.assertEqual(termios.tcgetattr(self.slave), self.before)
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_busiest_disk_first(self):
        old = {"a": {"time": 0}, "b": {"time": 0}, "c": {"time": 0}}
        new = {"a": {"time": 1, "stat_ios": 5}, "c": {"time": 1},
               "b": {"time": 1, "stat_ios": 9}}
        self.assertEqual([text.split()[0] for text in
                          top.rows_of(old, new)], ["b", "a", "c"])

    def test_screen(self):
        self.mode("nvme0n1", "never", "elevator")
        self.start()
        self.wait_for(b"Disk")
        self.wait_for(b"elevator")
        self.assertIn(ENTER, self.seen)
        self.assertEqual(self.enabled("nullb0"), "1")
        self.seen = b""
        self.counters("nvme0n1", BUSY)
        self.wait_for(b"finish")
        os.write(self.master, b"q")
        self.ends()

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                       signal.SIGQUIT):
            with self.subTest(number=number):
                self.start("nullb0")
                self.wait_for(b"nullb0")
                self.child.send_signal(number)
                self.ends()

    def test_count(self):
        self.start("2", "nullb0")
        self.ends()

    def test_small_terminal(self):
        self.start(rows=2, columns=10)
        self.wait_for(b"Disk")
        os.write(self.master, b"q")
        self.ends()

    def test_no_colours(self):
        """As on a serial line."""
        for term in "vt220", "vt100":
            with self.subTest(term):
                self.start("1", "nullb0", term=term)
                _, err = self.child.communicate(timeout=20)
                self.assertEqual((self.child.returncode, err), (0, ""))
                self.wait_for(b"Disk")

    def test_unfit_terminal(self):
        """Unknown, or one whose cursor goes to no place."""
        for term, says in ("no-such-terminal", ""), ("dumb", "its cursor"):
            with self.subTest(term):
                self.start("nullb0", term=term)
                _, err = self.child.communicate(timeout=20)
                self.assertEqual(self.child.returncode, 1)
                self.assertIn("cannot use this terminal", err)
                self.assertIn(says, err)
                self.assertEqual(self.enabled("nullb0"), "0")

    def test_no_terminal(self):
        code, _, err = self.run_tool("--top", "nullb0")
        self.assertEqual(code, 2)
        self.assertIn("--top needs a terminal", err)


if __name__ == "__main__":
    unittest.main()
