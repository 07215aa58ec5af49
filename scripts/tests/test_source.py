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
        self.pin("0" * 64)

    def pin(self, sha256):
        """The series is for the package with this sum."""
        write(self.root / "patches/7.3/source",
              f"suites=none\npinned={PINNED}\nsha256={sha256}\n")

    def deb(self, where):
        """A package like Debian's, in a directory of the mirror; the series is for it."""
        tree = self.root / "deb"
        write(tree / f"usr/src/{PACKAGE}.tar.xz", "source")
        write(tree / "DEBIAN/control", f"Package: {PACKAGE}\nVersion: {PINNED}\nArchitecture: "
              "all\nMaintainer: nobody <n@example.invalid>\nDescription: test\n")
        path = self.mirror / where / f"main/l/linux/{PACKAGE}_{PINNED}_all.deb"
        path.parent.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, path],
                       stdout=subprocess.DEVNULL, check=True)
        self.pin(hashlib.sha256(path.read_bytes()).hexdigest())

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


def test_the_pool_has_what_no_suite_lists(archive):
    """The pinned package is taken from either archive's pool; that of security has a
    level more."""
    archive.deb("security/pool/updates")
    status, text = archive.source()
    assert status == 0, text
    assert (archive.cache / f"{PACKAGE}.tar.xz").read_text() == "source"
    assert (archive.cache / f"{PACKAGE}.version").read_text().strip() == PINNED
    assert archive.source() == (0, ""), "downloaded once more"


def test_another_package_of_that_name(archive):
    """A wrong sum is refused, and nothing is kept."""
    archive.deb("debian/pool")
    archive.pin("0" * 64)
    status, text = archive.source()
    assert status == 1 and "KSRC" in text
    assert "download none" in text and f"pool file://{archive.mirror}" in text
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


@pytest.fixture(name="setup")
def make_setup(tmp_path):
    """setup.sh with programs in place of apt's: (exit status, what it says, how it called
    apt-get). plan: lines of shell that print one; "pinned" in it tells whether what is
    installed is held."""
    def setup(*args, plan="", **env):
        log = tmp_path / "log"
        for name, text in {
                "id": "echo 0",
                "dpkg-query": 'case "$*" in *Pin:*) echo Pin: version 1 ;; *) exit 1 ;; esac',
                "apt-get": f'echo "$*" >>{log}\ncase "$*" in *--simulate*)\n'
                "pins=${*##*Dir::Etc::Preferences=}\n"
                "pinned() { grep -qs '^Pin: version 1' \"${pins%% *}\"; }\n"
                f"{plan}\n;; esac"}.items():
            write(tmp_path / "bin" / name, f"#!/bin/sh\n{text}\n", 0o755)
        status, text = run("setup.sh", *args, PATH=f"{tmp_path}/bin:{os.environ['PATH']}", **env)
        return status, text, log.read_text() if log.exists() else ""
    return setup


@pytest.mark.parametrize("plan, status, said", [
    # all of it is said, before it is done
    ("echo 'Inst libfoo (1 Debian)'; echo Conf fio", 0,
     "missing: .* fio (.|\n)*with what they need: fio libfoo \n(.|\n)*installed: "),
    # nothing is upgraded or removed
    ("echo 'Inst libc6 [2.36-9] (2.36-10 Debian)'", 1, "to decide: libc6 ;"),
    ("echo 'Remv busybox [1.35]'", 1, "to decide: busybox ;"),
    # what needs no upgrade is asked for before that
    ("pinned || echo 'Inst libudev1 [252.38] (252.39 Debian)'", 0, "need: fio \n"),
    # where that cannot be, what would be upgraded is said, or it is done otherwise
    ("if pinned; then exit 100; fi\necho 'Inst perl [5.36-2] (5.36-4 Debian)'", 1,
     "to decide: perl ;"),
    ("if pinned; then exit 100; fi", 0, "need: fio \n"), ("exit 100", 1, "cannot install: ")])
def test_plans(setup, plan, status, said):
    found, text, calls = setup(plan=f"echo 'Inst fio (3.33 Debian)'\n{plan}")
    assert found == status and re.search(said, text), text
    assert ("--yes --no-install-recommends install" in calls) == (not status)


@pytest.mark.parametrize("args, env, words", [
    ([], {"SETUP": "No"}, "accepted: yes, no"),
    (["tree", "everything"], {}, "accepted: all, kernel"),
    ([], {"SETUP": "no"}, "fio")])
def test_nothing_is_called(setup, args, env, words):
    """What is refused says what is accepted, and SETUP=no names all."""
    status, text, calls = setup(*args, **env)
    assert (status, calls) == (1, "") and words in text
