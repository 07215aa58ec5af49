# SPDX-License-Identifier: GPL-2.0
"""source.sh and setup.sh: what they take, and what they leave alone."""
import hashlib
import os
import re
import subprocess
import tempfile
import unittest

import pytest

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


class Archive:
    """A mirror whose suites have nothing; what is in the pool?"""

    def __init__(self, top):
        self.root, self.mirror = top / "root", top / "mirror"
        self.cache = self.root / "build/cache"
        self.mirror.mkdir()
        self.pin("sha256", "0" * 64)

    def pin(self, name, sha256):
        """The series is for the package with this sum."""
        write(self.root / "patches/7.3/source",
              f"suites=none\npinned={PINNED}\n{name}={sha256}\n")

    def deb(self, where, member="linux-source-7.3.tar.xz", package=PACKAGE, of="all"):
        """A package like Debian's, in a directory of the mirror; the series is for it."""
        tree = self.root / "deb"
        write(tree / "usr/src" / member, "source")
        write(tree / "DEBIAN/control", f"Package: {package}\nVersion: {PINNED}\nArchitecture: "
              f"{of}\nMaintainer: nobody <n@example.invalid>\nDescription: test\n")
        path = self.mirror / where / f"main/l/linux/{package}_{PINNED}_{of}.deb"
        path.parent.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, path],
                       stdout=subprocess.DEVNULL, check=True)
        self.pin("sha256" if of == "all" else f"config_sha256_{of}",
                 hashlib.sha256(path.read_bytes()).hexdigest())

    def source(self, *args, **env):
        """source.sh, with this mirror."""
        return run("source.sh", *args, PLUG_POLICY_ROOT=str(self.root),
                   PLUG_POLICY_BUILD=str(self.root / "build"),
                   DEBIAN_MIRROR=f"file://{self.mirror}/debian",
                   DEBIAN_SECURITY=f"file://{self.mirror}/security", **env)


@pytest.fixture(name="archive")
def make_archive(tmp_path):
    if not os.path.exists(KEYRING):
        pytest.skip("debian-archive-keyring is not installed")
    return Archive(tmp_path)


@pytest.mark.parametrize("args, of, package, member, kept", [
    ([], "all", PACKAGE, f"{PACKAGE}.tar.xz", f"{PACKAGE}.tar.xz"),
    (["--config", "arm64"], "arm64", "linux-config-7.3",
     "linux-config-7.3/config.arm64_none_cloud-arm64.xz",
     "7.3-config.arm64_none_cloud-arm64.xz")])
def test_the_pool_has_what_no_suite_lists(archive, args, of, package, member, kept):
    """The pinned package is taken from either archive's pool; that of security has a
    level more."""
    archive.deb("security/pool/updates", member, package, of)
    status, text = archive.source(*args)
    assert status == 0, text
    assert (archive.cache / kept).read_text() == "source"
    version = archive.cache / (kept.removesuffix(".tar.xz") + ".version")
    assert version.read_text().strip() == PINNED
    assert archive.source(*args) == (0, ""), "downloaded once more"


def test_another_package_of_that_name(archive):
    """A wrong sum is refused, and nothing is kept."""
    archive.deb("debian/pool")
    archive.pin("sha256", "0" * 64)
    status, text = archive.source()
    assert status == 1, text
    for word in ("download none", f"pool file://{archive.mirror}", "KSRC"):
        assert word in text
    assert not list(archive.cache.glob(f"{PACKAGE}*"))


def test_a_refused_version_goes(archive):
    """What does not take the series makes room for what does."""
    archive.deb("debian/pool")
    version = archive.cache / f"{PACKAGE}.version"
    write(version, "7.3.9-1\n")
    write(archive.cache / f"{PACKAGE}.tar.xz", "newer")
    assert archive.source() == (0, "")
    status, text = archive.source("--refuse", "7.3.9-1")
    assert status == 0, text
    assert version.read_text().strip() == PINNED
    refused = (archive.cache / f"{PACKAGE}.refused").read_text()
    assert re.fullmatch("7.3.9-1 [0-9a-f]{16}\n", refused)
    assert archive.source("--refuse", PINNED)[0] == 1


@pytest.mark.parametrize("args, env, accepted", [
    ([], {"KVER": "5.4"}, "accepted: 7.3"), (["--all"], {}, "accepted: --refuse")])
def test_what_source_refuses(archive, args, env, accepted):
    status, text = archive.source(*args, **env)
    assert status == 1 and accepted in text


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
