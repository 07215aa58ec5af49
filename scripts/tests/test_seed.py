# SPDX-License-Identifier: GPL-2.0
"""seed.py: what a make does in a build that was started from another one."""
import os
import subprocess
import tempfile
import time
import unittest

from scripts.kbuild import seed

MAKEFILE = """all: out/a.o out/b.o
out/%.o: %.c
	mkdir -p out && cp $< $@ && echo $@ >>made
"""


class Planting(unittest.TestCase):
    """Two trees of two files, of which one differs."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.there = self.tree(top.name, "there", "as there")
        self.make(self.there)
        # as it is in fact: the second tree is younger than the first build
        time.sleep(0.01)
        self.here = self.tree(top.name, "there-too", "as here")

    def tree(self, top, name, text):
        """A source tree."""
        path = os.path.join(top, name)
        os.mkdir(path)
        for file, said in (("Makefile", MAKEFILE), ("a.c", "same"),
                           ("b.c", text)):
            self.write(os.path.join(path, file), said)
        return path

    @staticmethod
    def write(path, text):
        """A file."""
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    @staticmethod
    def read(*path):
        """What a file holds."""
        with open(os.path.join(*path), encoding="ascii") as file:
            return file.read()

    def make(self, tree):
        """The objects that a make built."""
        made = os.path.join(tree, "made")
        if os.path.exists(made):
            os.unlink(made)
        subprocess.run(["make", "-s", "-C", tree], check=True)
        return self.read(made).split() if os.path.exists(made) else []

    def plant(self, differing=("b.c", "not-here.c")):
        """Start the build of the second tree from the first."""
        seed.plant(self.there, self.here, ("out", "out"), differing)

    def test_only_what_differs_is_built(self):
        """The rest is copied, although the sources are younger."""
        self.plant()
        self.assertEqual(self.make(self.here), ["out/b.o"])
        self.assertEqual(self.read(self.here, "out/a.o"), "same")
        self.assertEqual(self.read(self.here, "out/b.o"), "as here")
        self.assertEqual(self.make(self.here), [])

    def test_without_it_all_is_built(self):
        """So the test above can fail."""
        self.assertEqual(self.make(self.here), ["out/a.o", "out/b.o"])

    def test_a_difference_not_told_is_lost(self):
        """Who plants must name them all."""
        self.plant(())
        self.assertEqual(self.make(self.here), [])

    def test_names_of_the_tree(self):
        """Notes of the build name the new tree, other files stay."""
        for name in (".a.o.cmd", "a.txt"):
            self.write(os.path.join(self.there, "out", name),
                       "%s/a.c %s-too/b.c" % (self.there, self.there))
        self.plant()
        self.assertEqual(self.read(self.here, "out/.a.o.cmd"),
                         "%s/a.c %s-too/b.c" % (self.here, self.there))
        self.assertIn(self.there + "/a.c", self.read(self.here, "out/a.txt"))

    def test_configured_anew(self):
        """What kernel.py notes of the options is of the other tree."""
        self.write(os.path.join(self.there, "out/.fragments"), "x")
        self.plant()
        self.assertFalse(os.path.exists(os.path.join(self.here,
                                                     "out/.fragments")))

    def test_what_was_interrupted_is_no_build(self):
        """A half of a copy has another name, and is made again."""
        os.mkdir(os.path.join(self.here, "out.partial"))
        self.write(os.path.join(self.here, "out.partial/c.o"), "half")
        self.plant()
        self.assertEqual(sorted(os.listdir(os.path.join(self.here, "out"))),
                         ["a.o", "b.o"])
        self.assertFalse(os.path.exists(os.path.join(self.here,
                                                     "out.partial")))
