# SPDX-License-Identifier: GPL-2.0
"""Tests of what the packages hold, without a kernel."""
import os
import re
import subprocess
import tempfile
import unittest

from scripts import kernel
from scripts import packages
from scripts.packaging import tools_package


def read(*parts):
    """A file of ours."""
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def options(text):
    """The long options that a text names."""
    return set(re.findall(r"--[a-z]+(?:-[a-z]+)*", text.replace("\\-", "-")))


class Manual(unittest.TestCase):
    """The pages know what the programs take."""

    def compare(self, program, page, verbs=()):
        said = "".join(subprocess.run(
            [os.path.join(tools_package.TOOLS, program), *words, "--help"],
            text=True, check=True, stdout=subprocess.PIPE).stdout
                       for words in [()] + [(verb,) for verb in verbs])
        text = read(tools_package.TOOLS, "man", page)
        # another program's, in bold, as in ".B plugbench --restore"
        others = r"^\.B (?!%s)plug.*" % re.escape(program)
        self.assertEqual(options(said) - {"--"},
                         options(re.sub(others, "", text, flags=re.M)))

    def test_plugstat(self):
        self.compare("plugstat", "plugstat.8")

    def test_plugbench(self):
        self.compare("plugbench", "plugbench.8")

    def test_plugroll(self):
        self.compare("plugroll", "plugroll.8",
                     ("list", "try", "keep", "undo", "apply"))

    def test_plugtrace(self):
        self.compare("plugtrace-perf", "plugtrace.8")


class Lintian(unittest.TestCase):
    """Which of its errors count."""

    def test_errors(self):
        """kbuild's modules lie where Debian 13 has a link; the rest is ours."""
        ours = ["E: plug-policy-tools: missing-dependency-on-libc [usr/bin/x]",
                "W: plug-policy-tools: no-manual-page [usr/bin/x]"]
        self.assertEqual(packages.lint_errors(
            "W: linux-image: no-manual-page [x]\n"
            "E: linux-image: aliased-location [lib/]\n" + "\n".join(ours)),
                         ours)


class Package(unittest.TestCase):
    """The names of the kernel's."""

    def test_flavour_of_a_file(self):
        with tempfile.NamedTemporaryFile(suffix="_My.config") as file:
            flavour = packages.Flavour(file.name, "deb")
        self.assertRegex(flavour.local, "^-plug-policy-[a-z0-9.+-]*-my.config$")

    def test_unknown_flavour(self):
        with self.assertRaisesRegex(kernel.BuildError,
                                    "accepted are lean and cloud"):
            packages.Flavour("fat", "deb")
