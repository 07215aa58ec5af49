# SPDX-License-Identifier: GPL-2.0
"""Tests of gnuplot.py: what is drawn, or why nothing is."""
import os
import shutil
import tempfile
import unittest
from unittest import mock

from lab.bench import gnuplot
from plugtools.report import records

NASTY = 'a`touch OWNED`% "q" \\ <b>&amp; {x}_y'
SCRIPT = (["plot %s" % NASTY], (100, 100))


class Gnuplot(unittest.TestCase):
    """In a directory that holds what PATH has."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def draw(self, script, path):
        """What render() makes with this PATH."""
        with mock.patch.dict(os.environ, PATH=path):
            return gnuplot.render((script, (100, 100)), "svg")

    def test_missing(self):
        """Says how to install it."""
        with self.assertRaisesRegex(records.ReportError, "gnuplot-nox"):
            self.draw(["plot x"], self.dir)

    def test_fails(self):
        """What it said is passed on."""
        path = os.path.join(self.dir, "gnuplot")
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho half\necho no cairo >&2\nexit 1\n")
        os.chmod(path, 0o755)
        with self.assertRaisesRegex(records.ReportError, "no cairo"):
            self.draw(["plot x"], self.dir + ":" + os.environ["PATH"])

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_quoted(self):
        """Nothing special is left between the quotes, and it is drawn."""
        self.assertRegex(gnuplot.quoted(NASTY),
                         r'^"(\\\d{3}|[\w .,/:()=+-])*"$')
        self.assertEqual(gnuplot.quoted("a`µ"), '"a\\140\\302\\265"')
        self.assertIn(b"touch OWNED`", self.draw(
            ["plot x title %s" % gnuplot.quoted(NASTY)], os.environ["PATH"]))
