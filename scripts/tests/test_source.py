# SPDX-License-Identifier: GPL-2.0
"""source.sh and setup.sh: what they take, and what they leave alone."""
import hashlib
import os
import subprocess
import tempfile
import unittest

from scripts import kernel

PACKAGE = "linux-source-7.3"
PINNED = "7.3.4-1~test"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def write(path, text, mode=0o644):
    """A file and its directories."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(path, mode)


def read(*parts):
    """A file's text."""
    with open(os.path.join(*parts), encoding="utf-8") as text:
        return text.read()


def run(script, *args, **env):
    """(exit status, what it printed)"""
    ours = ("KSRC", "KVER", "SETUP")
    env = {**{name: value for name, value in os.environ.items()
              if name not in ours}, **env}
    done = subprocess.run(
        ["sh", os.path.join(kernel.ROOT, "scripts", script), *args], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, check=False)
    return done.returncode, done.stdout


class Source(unittest.TestCase):
    """A mirror whose suites have nothing; what is in the pool?"""

    def setUp(self):
        if not os.path.exists(KEYRING):
            self.skipTest("debian-archive-keyring is not installed")
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.root = os.path.join(top.name, "root")
        self.mirror = os.path.join(top.name, "mirror")
        os.makedirs(self.mirror)
        self.url = "file://" + self.mirror
        self.pin("0" * 64)

    def pin(self, sha256):
        """The series is for a package with this sum."""
        write(os.path.join(self.root, "patches/7.3/source"),
              "suites=none\npinned=%s\nsha256=%s\n" % (PINNED, sha256))

    def deb(self, where):
        """A package like Debian's, in a directory of the mirror; its sum."""
        tree = os.path.join(self.root, "deb")
        write(tree + "/usr/src/%s.tar.xz" % PACKAGE, "source")
        write(tree + "/DEBIAN/control",
              "Package: %s\nVersion: %s\nArchitecture: all\n"
              "Maintainer: nobody <n@example.invalid>\nDescription: test\n"
              % (PACKAGE, PINNED))
        path = os.path.join(self.mirror, where, "main/l/linux",
                            "%s_%s_all.deb" % (PACKAGE, PINNED))
        os.makedirs(os.path.dirname(path))
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree,
                        path], stdout=subprocess.DEVNULL, check=True)
        with open(path, "rb") as data:
            return hashlib.sha256(data.read()).hexdigest()

    def source(self, *args, **env):
        """source.sh, with this mirror."""
        return run("source.sh", *args, PLUG_POLICY_ROOT=self.root,
                   PLUG_POLICY_BUILD=os.path.join(self.root, "build"),
                   DEBIAN_MIRROR=self.url + "/debian",
                   DEBIAN_SECURITY=self.url + "/security", **env)

    def have(self):
        """The version in the cache."""
        return read(self.root, "build/cache", PACKAGE + ".version").strip()

    def test_the_pool_has_what_no_suite_lists(self):
        """The pinned package is taken from either archive's pool; that of
        security has a level more."""
        self.pin(self.deb("security/pool/updates"))
        status, text = self.source()
        self.assertEqual(status, 0, text)
        self.assertEqual(self.have(), PINNED)
        self.assertEqual(read(self.root, "build/cache", PACKAGE + ".tar.xz"),
                         "source")
        self.assertEqual(self.source(), (0, ""), "downloaded once more")

    def test_another_package_of_that_name(self):
        """A wrong sum is refused, and nothing is kept."""
        self.deb("debian/pool")
        status, text = self.source()
        self.assertEqual(status, 1, text)
        for word in ("download none", "pool " + self.url, "KSRC"):
            self.assertIn(word, text)
        self.assertFalse(os.path.exists(
            os.path.join(self.root, "build/cache", PACKAGE + ".tar.xz")))

    def test_a_refused_version_goes(self):
        """What does not take the series makes room for what does."""
        self.pin(self.deb("debian/pool"))
        cache = os.path.join(self.root, "build/cache", PACKAGE)
        write(cache + ".version", "7.3.9-1\n")
        write(cache + ".tar.xz", "newer")
        self.assertEqual(self.source(), (0, ""))
        status, text = self.source("--refuse", "7.3.9-1")
        self.assertEqual(status, 0, text)
        self.assertEqual(self.have(), PINNED)
        self.assertRegex(read(cache + ".refused"), "^7.3.9-1 [0-9a-f]{16}\n$")
        status, text = self.source("--refuse", PINNED)
        self.assertEqual(status, 1, text)

    def test_a_kernel_without_a_series(self):
        """It says which there are."""
        status, text = self.source(KVER="5.4")
        self.assertEqual(status, 1, text)
        self.assertIn("accepted: 7.3", text)


class Setup(unittest.TestCase):
    """Programs in place of apt's, which write down how they are called."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.bin = os.path.join(top.name, "bin")
        self.log = os.path.join(top.name, "log")
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 0")

    def program(self, name, text):
        """One of them."""
        write(os.path.join(self.bin, name), "#!/bin/sh\n%s\n" % text, 0o755)

    def apt(self, plan):
        """apt-get, which would do this."""
        self.program("apt-get", 'echo "$*" >>%s\ncase "$*" in *--simulate*)\n'
                     "cat <<'END'\n%s\nEND\nesac" % (self.log, plan))

    def apt_with_pins(self, package, source, plan):
        """apt-get that plans this where a package's source may be upgraded;
        "pinned" there tells whether it is held.

        source: its name and version that are installed.
        """
        self.program("dpkg-query", 'case "$*" in *source:Package*%s*)\n'
                     "echo '%s' ;;\n*) exit 1 ;; esac" % (package, source))
        self.program("apt-get", r"""echo "$*" >>%s
pins=${*##*Dir::Etc::Preferences=}
pinned() { grep -qs '^Pin: version %s' "${pins%%%% *}"; }
case "$*" in *--simulate*)
%s ;; esac""" % (self.log, source.split()[1], plan))

    def setup(self, **env):
        """setup.sh, and how it called apt-get."""
        path = self.bin + ":" + os.environ["PATH"]
        status, text = run("setup.sh", PATH=path, **env)
        calls = read(self.log) if os.path.exists(self.log) else ""
        return status, text, calls

    def test_it_says_what_it_installs(self):
        """All of it, before it does."""
        self.apt("Inst fio (3.33 Debian)\nInst libfoo (1 Debian)\nConf fio")
        status, text, calls = self.setup()
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"missing: .*\bfio\b")
        self.assertIn("with what they need: fio libfoo", text)
        self.assertIn("--yes --no-install-recommends install", calls)

    def test_nothing_is_upgraded_or_removed(self):
        """Such a plan is refused, and named."""
        for plan in ("Inst libc6 [2.36-9] (2.36-10 Debian)",
                     "Remv busybox [1.35]"):
            self.apt("Inst fio (3.33 Debian)\n" + plan)
            status, text, calls = self.setup()
            self.assertEqual(status, 1, text)
            self.assertIn(plan.split()[1], text)
            self.assertNotIn("--yes", calls)

    def test_what_goes_with_the_installed_release(self):
        """Before it refuses, it asks for what needs no upgrade."""
        self.apt_with_pins(
            "libudev1", "systemd 252.38", "echo 'Inst udev (252 Debian)'\n"
            "pinned || echo 'Inst libudev1 [252.38] (252.39 Debian)'")
        status, text, calls = self.setup()
        self.assertEqual(status, 0, text)
        self.assertIn("--yes", calls)
        self.assertNotIn("libudev1", text)

    def test_no_plan_without_an_upgrade(self):
        """It says what would be upgraded, not that nothing can be done."""
        self.apt_with_pins(
            "perl", "perl 5.36-2", "if pinned; then exit 100; fi\n"
            "echo 'Inst perl [5.36-2] (5.36-4 Debian)'")
        status, text, calls = self.setup()
        self.assertEqual(status, 1, text)
        self.assertIn("which is for you to decide: perl", text)
        self.assertNotIn("--yes", calls)

    def test_what_is_refused(self):
        """Nothing is looked for, and it says what is accepted."""
        self.apt("")
        for env, args in ({"SETUP": "No"}, ()), ({}, ("tree", "everything")):
            status, text = run("setup.sh", *args, **env, PATH=self.bin + ":"
                               + os.environ["PATH"])
            self.assertEqual(status, 1, text)
            self.assertRegex(text, "accepted: (yes, no|all, kernel)")
        self.assertFalse(os.path.exists(self.log))

    def test_no_means_no(self):
        """SETUP=no calls nothing and names all."""
        self.apt("")
        status, text, calls = self.setup(SETUP="no")
        self.assertEqual((status, calls), (1, ""), text)
        self.assertIn("fio", text)
