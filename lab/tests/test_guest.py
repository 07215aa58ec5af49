# SPDX-License-Identifier: GPL-2.0
"""What guests, and what waits for them, have in common; what selftest.py reads
of run_kselftest.sh."""
import contextlib
import io
import os
import tempfile
import time
import unittest
from unittest import mock

from scripts import common
from lab.qemu import guest
from scripts import selftest
from scripts.checks import tap


def printed(call):
    """The lines that a call prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        call()
    return said.getvalue().splitlines()


class Waiting(unittest.TestCase):
    """common.clock(), common.locked() and guest.together()"""

    def test_clock(self):
        """Speaks as long as it lasts, and no longer."""
        def work():
            with mock.patch.object(common, "SECONDS", 0.02), \
                    common.clock(lambda seconds: "at %d" % seconds):
                time.sleep(0.2)
            said.append(len(lines()))
            time.sleep(0.1)

        said, out = [], io.StringIO()

        def lines():
            return out.getvalue().splitlines()

        with contextlib.redirect_stdout(out):
            work()
        self.assertEqual(set(lines()), {"at 0"})
        self.assertEqual(len(lines()), said[0])

    def test_locked(self):
        """The second one is refused, or has its turn when the first ends."""
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "new/lock")
            with common.locked(path), self.assertRaisesRegex(KeyError, "busy"):
                with common.locked(path, KeyError("busy")):
                    self.fail("two hold the lock")
            with common.locked(path, KeyError("busy")):
                pass

    def test_together(self):
        """Results by key; one that fails ends it, and what has not begun."""
        self.assertEqual(guest.together({"a": lambda: 1, "b": lambda: 2}),
                         {"a": 1, "b": 2})
        later = mock.Mock()
        with self.assertRaisesRegex(OSError, "first"):
            guest.together({"a": mock.Mock(side_effect=OSError("first")),
                            "b": lambda: time.sleep(0.2), "c": later},
                           workers=1)
        later.assert_not_called()


SAID = """TAP version 13
1..4
# selftests: block-plug: a.sh
# 1..2
# ok 1 one
# # a word
# ok 2 two # SKIP no disk
ok 1 selftests: block-plug: a.sh
# selftests: block-plug: b.sh
# ok 1 begun
not ok 2 selftests: block-plug: b.sh # TIMEOUT 180 seconds
# selftests: block-plug: c.sh
# 1..0 # SKIP no such thing
ok 3 selftests: block-plug: c.sh # SKIP
# selftests: block-plug: d.sh
# ok 1 begun
"""


class Kselftests(unittest.TestCase):
    """selftest.py"""

    def report(self, *tests):
        """What it makes of SAID: lines."""
        report = tap.Report()
        selftest.report_all(report, tests, SAID.splitlines())

    def test_cases(self):
        """Each case counts, and how the test ended; skips are skips; words of
        the test are shown."""
        lines = printed(lambda: self.report("a.sh"))
        self.assertEqual(tap.results(lines), [
            ("a.sh: one", "pass"), ("a.sh: two", "skip"),
            ("a.sh: exit", "pass")])
        self.assertIn("# a word", lines)

    def test_ends(self):
        """A timeout and a guest that died fail; a skipped test is a skip."""
        lines = printed(lambda: self.report("b.sh", "c.sh", "d.sh", "e.sh"))
        self.assertEqual(tap.results(lines), [
            ("b.sh: begun", "pass"), ("b.sh: exit", "fail"),
            ("c.sh", "skip"), ("d.sh: begun", "pass"), ("d.sh: exit", "fail"),
            ("e.sh: exit", "fail")])
        self.assertIn("TIMEOUT 180", "\n".join(lines))

    def test_arguments(self):
        """Tests by name; more time for the slow kernel alone."""
        self.assertEqual(selftest.arguments("patched", ["a.sh", "b.sh"]),
                         "-t block-plug:a.sh -t block-plug:b.sh -o %d"
                         % selftest.TEST_SECONDS)
        with mock.patch.object(selftest, "TEST_SECONDS", 7):
            self.assertEqual(selftest.arguments("debug", ["a.sh"]),
                             "-t block-plug:a.sh -o 28")
