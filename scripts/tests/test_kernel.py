# SPDX-License-Identifier: GPL-2.0
"""What kernel.py says while it builds."""
import os
import tempfile
import unittest
from unittest import mock

from scripts import kernel

MAKE = ["make: Entering directory\n", "  CC      block/a.o\n",
        "  LD      vmlinux.o\n"]


class Progress(unittest.TestCase):
    """How far a build is."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.top = top.name
        cache = mock.patch.object(kernel, "CACHE", top.name + "/cache")
        cache.start()
        self.addCleanup(cache.stop)

    def build(self, config, *files):
        """A build of a configuration, in a directory that has these files
        besides those that configuring leaves."""
        with tempfile.TemporaryDirectory(dir=self.top) as path:
            for name, text in ((".config", config),
                               ("include/generated/autoconf.h", ""),
                               *((name, "") for name in files)):
                name = os.path.join(path, name)
                os.makedirs(os.path.dirname(name), exist_ok=True)
                with open(name, "w", encoding="ascii") as out:
                    out.write(text)
            progress = kernel.Progress("kernel x", path)
            for line in MAKE:
                progress.step(line)
            return progress

    def test_first(self):
        """What nobody knows is not said."""
        self.assertEqual(self.build("A=y").text(7),
                         "kernel x: 2 steps, LD vmlinux.o, 7 s")

    def test_again(self):
        """The same configuration takes as many steps; another one does not."""
        self.build("A=y").done()
        self.assertEqual(self.build("A=y").text(7),
                         "kernel x: 2 of 2 steps, LD vmlinux.o, 7 s")
        self.assertNotIn("of", self.build("B=y").text(7))

    def test_part(self):
        """A build that goes on where another ended knows nothing, and leaves
        no number that would be too small."""
        part = self.build("A=y", "include/generated/bounds.h")
        part.done()
        self.assertNotIn("of", self.build("A=y").text(7))
        self.build("A=y").done()
        self.assertNotIn("of", self.build(
            "A=y", "include/generated/bounds.h").text(7))
