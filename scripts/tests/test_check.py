# SPDX-License-Identifier: GPL-2.0
"""Which groups check.py runs, and what it keeps and counts of them."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

from scripts import check
from scripts.checks import tap


def shell(text, needs=None):
    """A group that is a command of the shell."""
    return check.Group(1, needs, "about", ["sh", "-c", text])


class Checking(unittest.TestCase):
    """main(), on groups of our own."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.out = os.path.join(top.name, "check")
        self.ran = os.path.join(top.name, "ran")
        for name, value in (("OUT", self.out), ("PREPARE", [
                ("one", ["sh", "-c", "echo one >>" + self.ran]),
                ("two", ["sh", "-c", "echo two >>%s; exit 1" % self.ran])])):
            patch = mock.patch.object(check, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def main(self, wanted="", **groups):
        """(exit status, or what it says instead; lines printed) of a run."""
        said = io.StringIO()
        with mock.patch.object(check, "GROUPS", groups), \
                mock.patch.object(sys, "argv", ["check", "--groups", wanted]), \
                contextlib.redirect_stdout(said):
            try:
                code = check.main()
            except SystemExit as end:
                code = end.code
        return code, said.getvalue().splitlines()

    def kept(self, name):
        """A group's file."""
        with open(os.path.join(self.out, name + ".tap"),
                  encoding="utf-8") as file:
            return file.read()

    def touch(self):
        """A group that shows that it ran."""
        return shell("echo ok 1 a; echo ran >>" + self.ran)

    def test_chosen_only(self):
        """The others do not run, and leave no file."""
        code, lines = self.main("a,c", a=shell("echo ok 1 x"), b=self.touch(),
                                c=shell("echo ok 1 y"))
        self.assertEqual((code, lines[-1]),
                         (0, "2 passed, 0 failed, 0 skipped"))
        self.assertEqual(sorted(os.listdir(self.out)), ["a.tap", "c.tap"])
        self.assertFalse(os.path.exists(self.ran))

    def test_unknown(self):
        """It is named, with all that there are, and nothing runs."""
        code, _ = self.main("a nonsense", a=self.touch(), b=self.touch())
        self.assertRegex(code, r"no group 'nonsense';(.|\n)*  a .*\n  b ")
        self.assertFalse(os.path.exists(self.ran))

    def test_help(self):
        """A line each, with the time; nothing runs."""
        code, lines = self.main("help", a=self.touch())
        self.assertEqual((code, lines[1].split()), (None,
                                                    ["a", "1", "s", "about"]))
        self.assertFalse(os.path.exists(self.ran))

    def test_prepares_what_is_needed(self):
        """No more than the groups need; what fails is a failure."""
        self.assertEqual(self.main(a=shell("echo ok 1 x", "one"))[0], 0)
        with open(self.ran, encoding="ascii") as ran:
            self.assertEqual(ran.read(), "one\n")
        code, lines = self.main(a=shell("echo ok 1 x", "two"))
        self.assertEqual((code, lines[-1]),
                         (1, "0 passed, 1 failed, 0 skipped"))
        self.assertEqual(os.listdir(self.out), [])

    def test_files(self):
        """Of groups that pass, fail, and die; plan and numbers are right."""
        code, lines = self.main(
            good=shell("echo TAP version 13; echo hello; echo ok 7 x; "
                       "echo ok 8 y \\# SKIP no disk; echo 1..9"),
            bad=shell("echo '# why'; echo not ok 1 x; exit 1"),
            dies=shell("echo ok 1 x; exit 3"), mute=shell("exit 0"))
        self.assertEqual((code, lines[-1]),
                         (1, "2 passed, 3 failed, 1 skipped"))
        self.assertEqual(self.kept("good"), "KTAP version 1\n1..2\n# hello\n"
                         "ok 1 x\nok 2 y # SKIP no disk\n")
        self.assertEqual(self.kept("bad"),
                         "KTAP version 1\n1..1\n# why\nnot ok 1 x\n")
        self.assertEqual(self.kept("dies"), "KTAP version 1\n1..2\nok 1 x\n"
                         "not ok 2 exit 3\n")
        self.assertEqual(self.kept("mute"),
                         "KTAP version 1\n1..1\nnot ok 1 no test ran\n")

    def test_plain(self):
        """What speaks no TAP is one result."""
        for text, number in (("echo fine", 0), ("exit 2", 1)):
            code, _ = self.main(**{check.PLAIN: shell(text)})
            self.assertEqual(code, number)
            self.assertEqual([status for _, status in tap.results(
                self.kept(check.PLAIN).splitlines())],
                             [("pass", "fail")[number]])


class Names(unittest.TestCase):
    """GROUPS itself."""

    def test_names(self):
        """They are words of GROUPS= and names of files; PREPARE has what
        they need."""
        for name, group in check.GROUPS.items():
            self.assertRegex(name, r"^[a-z0-9.-]+$")
            self.assertIn(group.needs, [None, *dict(check.PREPARE)])
            self.assertTrue(group.about and group.seconds > 0)
