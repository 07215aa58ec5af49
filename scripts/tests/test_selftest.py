# SPDX-License-Identifier: GPL-2.0
"""Tests of what helps with kselftests: what each is for, and a new one."""
import contextlib
import io
import os
import subprocess
import tempfile
import unittest

from scripts import common
from scripts import kernel
from scripts import audit
from scripts import selftest
from scripts.checks import tap

SCRIPT = os.path.join(kernel.ROOT, "scripts/new_test.sh")


class Help(unittest.TestCase):
    """make selftest TESTS=help"""

    def test_all_say_it(self):
        """A name, and a paragraph below it."""
        lines = list(selftest.help_text())
        self.assertIn("knob_values", lines[::2])
        self.assertFalse([line for line in lines[::2] if "lib" in
                          line.split("_")])
        self.assertFalse([name for name, text in zip(lines[::2], lines[1::2])
                          if "(it does not say)" in text])

    @staticmethod
    def description(name):
        """Of a kselftest."""
        return common.description(os.path.join(kernel.SELFTESTS, name + ".sh"))

    def test_paragraph(self):
        """Its lines are joined, and what follows is left out."""
        self.assertEqual(
            self.description("unused_requests"),
            "rq_qos policies are told of requests that carried an I/O only.")
        self.assertTrue(self.description("knob_values").endswith(
            "to hold them in, has no such file."))


class Fit(unittest.TestCase):
    """Which kernel tests run in."""

    def test_all_run(self):
        """In a process, or in a guest, or, of those that take NVMe if there is
        some, in both."""
        names = [name + ".sh" for name in list(selftest.help_text())[::2]]
        uml, guest = (set(selftest.fit(names, of)) for of in (True, False))
        self.assertEqual(uml | guest, set(names))
        self.assertIn("knob_values.sh", uml - guest)
        self.assertIn("modes.sh", uml & guest)
        self.assertLessEqual({"verify.sh", "unused_requests.sh"}, guest - uml)


class Audit(unittest.TestCase):
    """What audit.py shows of two kernels."""

    SAID = {"base": {"a": ["# count 32 of 0 to 3: singles", "not ok 1 one", "ok 2 two"]},
            "patched": {"a": ["# count 1 of 0 to 3: singles",
                              "# count 5 of 5 to 5: batches", "ok 1 one", "ok 2 two"]}}

    def test_rows(self):
        """What is not as expected has a star, what is not there a dash."""
        self.assertEqual(list(audit.rows(self.SAID)), [
            ("a", "one", "singles", "0-3", "32*", "1 "),
            ("a", "one", "batches", "5", "-", "5 ")])
        self.assertEqual(audit.failed(self.SAID["base"]), {"a": ["one"]})
        self.assertEqual(audit.failed(self.SAID["patched"]), {"a": []})

    def test_waits(self):
        """More than chance fails, if it is seen each time."""
        for news, fails in ((100,), 0), ((130,), 0), ((400, 110), 0), ((400,) * 3, 1):
            said = iter([{name: {audit.WAITS[0]: [f"# count {nr} of 0 to 9999: I/Os",
                                                  "ok 1 x"]}
                          for name, nr in (("base", 100), ("patched", new))}
                         for new in news])
            with contextlib.redirect_stdout(io.StringIO()):
                report = tap.Report()
                audit.compare_waits(report, said.__next__)
            self.assertEqual(report.failed, fails)
            self.assertIsNone(next(said, None))


class New(unittest.TestCase):
    """new_test.sh"""

    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.room = os.path.join(where.name,
                                 "tools/testing/selftests/block-plug")
        os.makedirs(self.room)
        self.env = {**os.environ, "PLUG_POLICY_ROOT": where.name}

    def new(self, *names):
        """The finished program."""
        return subprocess.run(["sh", SCRIPT, *names], env=self.env, text=True,
                              check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def test_skeleton(self):
        """It is a script with a Description, that is not yet there."""
        self.assertIn("TESTS=a_new_one", self.new("a_new_one").stdout)
        path = os.path.join(self.room, "a_new_one.sh")
        self.assertTrue(os.access(path, os.X_OK))
        subprocess.run(["sh", "-n", path], check=True)
        with open(path, encoding="ascii") as test:
            text = test.read()
        self.assertIn("# Description: TODO", text)
        again = self.new("a_new_one")
        self.assertEqual(again.returncode, 1)
        self.assertIn("is there already", again.stderr)
        with open(path, encoding="ascii") as test:
            self.assertEqual(test.read(), text)

    def test_refused(self):
        """Nothing is written."""
        for names in ((), ("Upper",), ("a.sh",), ("../a",), ("1a",), ("lib",),
                      ("my_lib",), ("a", "b")):
            done = self.new(*names)
            self.assertEqual(done.returncode, 1, names)
            self.assertIn("new_test.sh: ", done.stderr)
        self.assertEqual(os.listdir(self.room), [])
