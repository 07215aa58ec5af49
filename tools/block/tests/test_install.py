#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what "make install" installs, and that it all goes again."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from faketree import TOOLS
from plugtools import VERSION

PYTHON = ("plugbench", "plugroll", "plugstat")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def need(name):
    """A program, or the test is skipped."""
    path = shutil.which(name, path=PATH)
    if not path:
        raise unittest.SkipTest("no " + name)
    return path


def make(target, **variables):
    """make, with nothing of the user's."""
    subprocess.run(["make", "-s", "-C", TOOLS, target,
                    *("%s=%s" % item for item in variables.items())],
                   check=True)


def files(root):
    """All files and links below a directory."""
    return sorted(os.path.join(top, name)
                  for top, _, names in os.walk(root) for name in names)


class Installed(unittest.TestCase):
    """As on a machine, with a prefix of its own."""

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="install.")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        make("install", PREFIX=cls.root)

    def run_installed(self, *words, **options):
        """(exit code, what is said) by an installed program."""
        done = subprocess.run(
            words, text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT, cwd="/", check=False, **options)
        return done.returncode, done.stdout

    def test_programs_start(self):
        for name in PYTHON:
            path = os.path.join(self.root, "sbin", name)
            code, said = self.run_installed(path, "--version")
            self.assertEqual((code, said), (0, "%s %s\n" % (name, VERSION)))
            code, said = self.run_installed(path, "--help")
            self.assertEqual(code, 0)
            self.assertIn("usage: " + name, said)
        code, said = self.run_installed(self.root + "/sbin/plugtrace-perf",
                                        "--help")
        self.assertEqual(code, 0)

    def test_programs_run_what_was_installed(self):
        code, said = self.run_installed(
            sys.executable, "-v", self.root + "/sbin/plugstat", "--version")
        self.assertEqual(code, 0)
        used = set(re.findall(r"(/\S*/plugtools)/stat/plugstat\.py", said))
        self.assertEqual(used, {
            self.root + "/share/plug-policy-tools/plugtools"})

    def test_modes(self):
        for path in files(self.root):
            mode = os.stat(path).st_mode & 0o777
            self.assertEqual(mode, 0o755 if "/sbin/" in path else 0o644, path)

    def test_manual(self):
        mandoc = need("mandoc")
        pages = glob.glob(self.root + "/share/man/man8/*.8")
        self.assertEqual({os.path.basename(page)[:-2] for page in pages},
                         {*PYTHON, "plugtrace", "plugtrace-perf"})
        self.assertEqual(self.run_installed(mandoc, "-T", "lint", *pages),
                         (0, ""))

    def test_units(self):
        units = glob.glob(self.root + "/lib/systemd/system/*")
        self.assertEqual(len(units), 3)
        said = self.run_installed(
            need("systemd-analyze"), "verify", "--man=no", *units,
            env={**os.environ, "SYSTEMD_UNIT_PATH":
                 self.root + "/lib/systemd/system:"})
        self.assertEqual(said, (0, ""))

    def test_counting_is_asked_for(self):
        """The timer and what it starts count nothing."""
        for path in glob.glob(self.root + "/lib/systemd/system/*textfile*"):
            with open(path, encoding="utf-8") as unit:
                self.assertNotIn("counting", unit.read(), path)

    def test_rule(self):
        rules = glob.glob(self.root + "/lib/udev/rules.d/*")
        self.assertEqual(len(rules), 1)
        udevadm = need("udevadm")
        if self.run_installed(udevadm, "verify", "--help")[0]:
            self.skipTest("this udevadm has no verify; that of systemd 254 "
                          "has")
        with open(rules[0], encoding="utf-8") as rule, \
                tempfile.NamedTemporaryFile("w", suffix=".rules") as example:
            example.write(re.sub(r"^#(?! )|^#(?=  )", "", rule.read(),
                                 flags=re.M))
            example.flush()
            for path in rules[0], example.name:
                code, said = self.run_installed(udevadm, "verify", path)
                self.assertEqual(code, 0, said)

    def complete(self, *words):
        """What bash offers in place of the last word."""
        script = """
            PATH=%s:$PATH; . %s
            _plugtools_disks() { echo "$1"nvme0n1; }
            COMP_WORDS=(%s); COMP_CWORD=%d
            _plugtools "${COMP_WORDS[0]}"; printf '%%s\\n' "${COMPREPLY[@]}"
        """ % (self.root + "/sbin", self.root
               + "/share/bash-completion/completions/" + words[0],
               " ".join("'%s'" % word for word in words), len(words) - 1)
        code, said = self.run_installed(need("bash"), "-c", script)
        self.assertEqual(code, 0, said)
        return said.split()

    def test_completion(self):
        for name in PYTHON:
            self.assertIn("--version", self.complete(name, "--ver"))
        self.assertEqual(self.complete("plugstat", "--tex"), ["--textfile"])
        self.assertEqual(self.complete("plugstat", "--counting", "o"),
                         ["on", "off"])
        self.assertEqual(self.complete("plugroll", "k"), ["keep"])
        self.assertEqual(self.complete("plugroll", "su"), ["summary"])
        self.assertIn("/etc/passwd", self.complete("plugroll", "summary",
                                                   "/etc/pass"))
        self.assertEqual(self.complete("plugroll", "list", "--che"),
                         ["--check"])
        self.assertEqual(self.complete("plugstat", "--pol"), ["--policy"])
        self.assertEqual(self.complete("plugroll", "try", "a"),
                         ["always", "adaptive"])
        self.assertEqual(self.complete("plugroll", "try", "--gu"),
                         ["--guard"])

    def test_completion_of_disks(self):
        for words, disk in ((("plugstat", "nv"), "nvme0n1"),
                            (("plugbench", "/dev/nv"), "/dev/nvme0n1"),
                            (("plugroll", "try", "never", "nv"), "nvme0n1")):
            self.assertEqual(self.complete(*words), [disk], words)


class Staged(unittest.TestCase):
    """As a packager does it."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="install.")
        self.addCleanup(shutil.rmtree, self.root)
        self.where = {"DESTDIR": self.root, "PREFIX": "/usr"}

    def test_uninstall_leaves_nothing(self):
        make("install", **self.where)
        package = self.root + "/usr/share/plug-policy-tools/plugtools"
        for where in "/__pycache__", "/stat/__pycache__":
            os.makedirs(package + where)
            with open(package + where + "/x.pyc", "wb"):
                pass
        self.assertGreater(len(files(self.root)), 20)
        make("uninstall", **self.where)
        self.assertEqual(files(self.root), [])
        self.assertEqual([top for top, _, _ in os.walk(self.root)
                          if "plug-policy" in top], [])

    def test_uninstall_leaves_directories_of_others(self):
        os.makedirs(self.root + "/usr/share/man/man8")
        make("install", **self.where)
        make("uninstall", **self.where)
        self.assertTrue(os.path.isdir(self.root + "/usr/share/man/man8"))

    def test_uninstall_leaves_what_is_not_ours(self):
        make("install", **self.where)
        other = self.root + "/usr/sbin/other"
        with open(other, "wb"):
            pass
        make("uninstall", **self.where)
        self.assertEqual(files(self.root), [other])

    def test_uninstall_twice(self):
        make("uninstall", **self.where)
        self.assertEqual(os.listdir(self.root), [])

    def test_nothing_names_the_staging_directory(self):
        make("install", **self.where)
        for path in files(self.root):
            with open(path, "rb") as file:
                text = file.read()
            self.assertNotIn(self.root.encode(), text, path)
            self.assertNotRegex(text, rb"@[A-Z]+@", path)

    def test_what_is_named_is_there(self):
        """Files of ours that an installed text names are where it says."""
        for prefix in "/usr", "/usr/local", "/opt/some-where":
            where = {"DESTDIR": self.root + "/x", "PREFIX": prefix}
            make("install", **where)
            named = set()
            for path in files(where["DESTDIR"]):
                if "/doc/" in path or os.path.islink(path):
                    continue        # what is told there is of a package
                with open(path, encoding="utf-8") as file:
                    text = file.read().replace("\\-", "-")
                named |= set(re.findall(
                    r"(?:/\w[\w-]*)+/share/[\w./-]*[\w-]", text))
            self.assertGreaterEqual(len(named), 4, named)
            for name in named:
                self.assertTrue(name.startswith(prefix + "/share/"), name)
                self.assertTrue(os.path.exists(where["DESTDIR"] + name), name)
            make("uninstall", **where)
            self.assertEqual(files(where["DESTDIR"]), [])

    def test_nothing_is_in_force(self):
        make("install", **self.where)
        for name in ("udev/rules.d/60-plug-policy.rules",
                     "tmpfiles.d/plug-policy.conf"):
            with open(self.root + "/usr/lib/" + name,
                      encoding="utf-8") as file:
                self.assertRegex(file.read(), r"\A(#.*\n|\n)*\Z", name)
        self.assertEqual(glob.glob(self.root + "/usr/lib/systemd/system/*.d"),
                         [])

    def test_all_of_the_package_is_installed(self):
        make("install", **self.where)
        share = self.root + "/usr/share/plug-policy-tools"
        ours, theirs = ({os.path.relpath(path, top)
                         for path in files(top + "/plugtools")
                         if path.endswith(".py")} for top in (TOOLS, share))
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main()
