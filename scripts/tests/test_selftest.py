# SPDX-License-Identifier: GPL-2.0
"""Tests of what helps with kselftests: what each is for, and a new one."""
import os
import subprocess
import tempfile
import unittest

from scripts import common
from scripts import kernel
from scripts import selftest

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
            self.description("tags_of_merged"),
            "no tag is taken ahead for I/Os that will be merged.")
        self.assertTrue(self.description("knob_values").endswith(
            "refuses anything else without a change."))


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
