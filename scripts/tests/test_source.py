# SPDX-License-Identifier: GPL-2.0
"""source.sh and setup.sh: what they take, and what they leave alone."""
import hashlib
import os
import re
import subprocess

import pytest

from scripts import ROOT

PACKAGE = "linux-source-7.3"
PINNED = "7.3.4-1~test"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def run(script, *args, **env):
    """(exit status, what it printed)"""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("KSRC", "KVER", "SETUP")}
    done = subprocess.run(["sh", f"{ROOT}/scripts/{script}", *args], env={**kept, **env},
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


class Apt:
    """Programs in place of apt's, which write down how they are called"""

    def __init__(self, top):
        self.bin, self.log = top / "bin", top / "log"
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 0")

    def program(self, name, text):
        write(self.bin / name, f"#!/bin/sh\n{text}\n", 0o755)

    def plans(self, plan):
        """apt-get would do this: lines of shell."""
        self.program("apt-get", f'echo "$*" >>{self.log}\ncase "$*" in *--simulate*)\n{plan}\n'
                     ";; esac")

    def plans_with_pins(self, package, source, version, plan):
        """The same, where a package's source is installed and may be upgraded; "pinned"
        there tells whether it is held."""
        self.program("dpkg-query", f'case "$*" in *source:Package*{package}*)\n'
                     f"echo '{source} {version}' ;;\n*) exit 1 ;; esac")
        self.plans("pins=${*##*Dir::Etc::Preferences=}\n"
                   f"pinned() {{ grep -qs '^Pin: version {version}' \"${{pins%% *}}\"; }}\n{plan}")

    def setup(self, *args, **env):
        """(exit status, what setup.sh says, how it called apt-get)"""
        status, text = run("setup.sh", *args, PATH=f"{self.bin}:{os.environ['PATH']}", **env)
        return status, text, self.log.read_text() if self.log.exists() else ""


@pytest.fixture(name="apt")
def make_apt(tmp_path):
    return Apt(tmp_path)


def test_it_says_what_it_installs(apt):
    """All of it, before it does."""
    apt.plans("echo 'Inst fio (3.33 Debian)'; echo 'Inst libfoo (1 Debian)'; echo Conf fio")
    status, text, calls = apt.setup()
    assert status == 0, text
    assert re.search(r"missing: .*\bfio\b", text)
    assert "with what they need: fio libfoo" in text
    assert "--yes --no-install-recommends install" in calls


@pytest.mark.parametrize("plan", ["Inst libc6 [2.36-9] (2.36-10 Debian)", "Remv busybox [1.35]"])
def test_nothing_is_upgraded_or_removed(apt, plan):
    """Such a plan is refused, and named."""
    apt.plans(f"echo 'Inst fio (3.33 Debian)'; echo '{plan}'")
    status, text, calls = apt.setup()
    assert status == 1 and plan.split()[1] in text and "--yes" not in calls


def test_what_goes_with_the_installed_release(apt):
    """Before it refuses, it asks for what needs no upgrade."""
    apt.plans_with_pins("libudev1", "systemd", "252.38", "echo 'Inst udev (252 Debian)'\n"
                        "pinned || echo 'Inst libudev1 [252.38] (252.39 Debian)'")
    status, text, calls = apt.setup()
    assert status == 0 and "--yes" in calls and "libudev1" not in text, text


def test_no_plan_without_an_upgrade(apt):
    """It says what would be upgraded, not that nothing can be done."""
    apt.plans_with_pins("perl", "perl", "5.36-2", "if pinned; then exit 100; fi\n"
                        "echo 'Inst perl [5.36-2] (5.36-4 Debian)'")
    status, text, calls = apt.setup()
    assert status == 1 and "which is for you to decide: perl" in text and "--yes" not in calls


@pytest.mark.parametrize("args, env, words", [
    ([], {"SETUP": "No"}, "accepted: yes, no"),
    (["tree", "everything"], {}, "accepted: all, kernel"),
    ([], {"SETUP": "no"}, "fio")])
def test_nothing_is_called(apt, args, env, words):
    """What is refused says what is accepted, and SETUP=no names all."""
    apt.plans("")
    status, text, calls = apt.setup(*args, **env)
    assert (status, calls) == (1, "") and words in text
