# SPDX-License-Identifier: GPL-2.0
"""What "make install" installs, that it all goes again, and the package."""
import email.utils
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from fakehost import TOOLS
from plugtools import VERSION, schemas

PYTHON = ("plugbench", "plugroll", "plugstat")
VERBS = [["list"], ["try"], ["keep"], ["undo"], ["apply"]]
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
SHARE = "share/plug-policy-tools"


def need(name):
    path = shutil.which(name, path=PATH)
    if not path:
        pytest.skip("no " + name)
    return path


def make(target, where=TOOLS, **variables):
    subprocess.run(["make", "-s", "-C", where, target,
                    *map("=".join, variables.items())], check=True)


def said(*words, **options):
    done = subprocess.run(words, text=True, stdin=subprocess.DEVNULL, cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files(root):
    return sorted(path for path in root.rglob("*")
                  if path.is_symlink() or path.is_file())


@pytest.fixture(scope="module", name="there")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("install")
    make("install", PREFIX=str(root))
    return root


@pytest.mark.parametrize("name", [*PYTHON, "plugtrace-perf"])
def test_programs_start(there, name):
    assert said(there / "sbin" / name, "--version") == f"{name} {VERSION}\n"
    assert f"sage: {name}" in said(there / "sbin" / name, "--help")


def test_modes(there):
    """All of plugtools is there, what is a program can be run, and the schemas
    are what their programs print."""
    for path in files(there):
        program = path.parent.name == "sbin" or path.name == "remove.sh"
        if "__pycache__" not in path.parts:
            assert path.stat().st_mode & 0o777 == (
                0o755 if program else 0o644), path
    ours, theirs = ({path.relative_to(top) for path in top.rglob("*.py")}
                    for top in (TOOLS / "plugtools",
                                there / SHARE / "plugtools"))
    assert ours == theirs
    for name in PYTHON:
        made = json.loads((there / SHARE / f"{name}.schema.json").read_text())
        assert getattr(schemas, name.upper()).items() <= made.items()


def options(text):
    return set(re.findall(r"--[a-z]+(?:-[a-z]+)*", text.replace("\\-", "-")))


def test_manual(there):
    pages = sorted(there.glob("share/man/man8/*.8"))
    assert {page.stem for page in pages} == {*PYTHON, "plugtrace",
                                             "plugtrace-perf"}
    assert said(need("mandoc"), "-T", "lint", *pages) == ""
    for name in (*PYTHON, "plugtrace-perf"):
        page = (there / f"share/man/man8/{name}.8").read_text()
        # another program's, in bold
        page = re.sub(rf"\\fB(?!{name})plug.*?\\fR", "", page)
        helps = [said(there / "sbin" / name, *verb, "--help")
                 for verb in [[]] + VERBS * (name == "plugroll")]
        assert options(page) == options("".join(helps))


def test_units(there):
    """They are sound, nothing has enabled them, and what only the counting
    service is for, the timer's do not do."""
    units = sorted(there.glob("lib/systemd/system/*"))
    assert [unit.name for unit in units] == [
        "plugstat-counting.service", "plugstat-textfile.service",
        "plugstat-textfile.timer"]
    for unit in units[1:]:
        assert "counting" not in unit.read_text()
    assert said(need("systemd-analyze"), "verify", "--man=no", *units,
                env={**os.environ, "SYSTEMD_UNIT_PATH":
                     f"{units[0].parent}:"}) == ""


@pytest.mark.parametrize("name", PYTHON)
@pytest.mark.parametrize("version", ["3.6", "3.8"])
def test_a_python_that_is_too_old_is_named(name, version):
    found = [*pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"),
             *filter(None, [shutil.which("python" + version)])]
    if not found:
        pytest.skip("no Python " + version)
    done = subprocess.run([found[0], TOOLS / name, "--help"], text=True,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rf"{name} needs Python 3\.9, and this is {version}.*\n",
                        done.stderr)


@pytest.mark.parametrize("words, offered", [
    ("plugbench --vers", "--version"), ("plugroll --ver", "--version"),
    ("plugstat --ver", "--version"), ("plugstat --tex", "--textfile"),
    ("plugstat --pol", "--policy"), ("plugstat --counting o", "on off"),
    ("plugroll k", "keep"), ("plugstat --textfile /etc/passw", "/etc/passwd"),
    ("plugroll list --che", "--check"), ("plugroll try a", "always adaptive"),
    ("plugroll try --gu", "--guard"), ("plugstat nv", "nvme0n1"),
    ("plugbench /dev/nv", "/dev/nvme0n1"),
    ("plugroll try never nv", "nvme0n1")])
def test_completion(there, words, offered):
    """What bash offers in place of the last word."""
    words = words.split()
    script = f"""
        PATH={there}/sbin:$PATH
        . {there}/share/bash-completion/completions/{words[0]}
        _plugtools_disks() {{ echo "$1"nvme0n1; }}
        COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
        _plugtools "${{COMP_WORDS[0]}}"; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    found = said(need("bash"), "-c", script).split()
    assert set(offered.split()) <= set(found)
    if offered != "/etc/passwd":        # there may be a passwd-, too
        assert offered.split() == found


def test_staged(tmp_path):
    """As a packager calls it: no text names the staging directory or a variable
    of the Makefile, and the files of ours that are named are there.  What is
    not ours stays, directories, too, but nothing that Python has compiled."""
    prefix, named = "/opt/some-where", set()
    variables = {"DESTDIR": str(tmp_path), "PREFIX": prefix}
    others = [tmp_path / f"opt/some-where/{name}"
              for name in ("sbin/other", "share/man/x")]
    for other in others:
        other.parent.mkdir(parents=True)
        other.touch()
    make("install", **variables)
    for path in set(files(tmp_path)) - set(others):
        text = path.read_text("utf-8").replace("\\-", "-")
        assert str(tmp_path) not in text, path
        assert not re.search("@[A-Z]+@", text), path
        if "doc" not in path.parts and not path.is_symlink():
            # what is told in a document is of a package
            named |= set(re.findall(r"(?:/\w[\w-]*)+/share/[\w./-]*[\w-]", text))
    assert len(named) >= 3
    for name in named:
        assert name.startswith(prefix + "/share/")
        assert (tmp_path / name[1:]).exists()
    for where in "", "stat":
        compiled = tmp_path / "opt/some-where" / SHARE / "plugtools" / where
        (compiled / "__pycache__").mkdir()
        (compiled / "__pycache__/x.pyc").touch()
    for _ in range(2):
        make("uninstall", **variables)
        assert files(tmp_path) == others
        assert not list(tmp_path.rglob("*plug-policy*"))


def test_source_of_the_package(there, tmp_path):
    """It is the same each time, whatever the umask, and has what the packages
    are built by; what it installs is what is installed from here."""
    made = []
    for umask in 0o022, 0o077:
        old = os.umask(umask)
        make("dist", OUT=str(tmp_path))
        os.umask(old)
        path, = tmp_path.iterdir()
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert path.name == f"plug-policy-tools-{VERSION}.tar.gz"
    names = said("tar", "-tf", path)
    for name in "debian/rules", "plug-policy-tools.spec", "COPYING":
        assert f"\n{path.name[:-7]}/{name}\n" in "\n" + names
    assert "/tests/" not in names
    said("tar", "-C", tmp_path, "-xf", path)
    make("install", tmp_path / path.name[:-7] / "tools/block",
         PREFIX=str(tmp_path / "prefix"))
    ours, theirs = ({path.relative_to(root) for path in files(root)
                     if "__pycache__" not in path.parts}
                    for root in (there, tmp_path / "prefix"))
    assert ours == theirs


def test_versions():
    packaging = TOOLS / "packaging"
    spec = (packaging / "plug-policy-tools.spec").read_text()
    version, release = (re.search(rf"^{name}:\s*([\d.]+)", spec, re.M)[1]
                        for name in ("Version", "Release"))
    assert version == VERSION
    changes = (packaging / "debian/changelog").read_text()
    assert changes.startswith(f"plug-policy-tools ({version}-{release}) ")
    day = email.utils.parsedate_to_datetime(changes.partition(">  ")[2].strip())
    news = (TOOLS.parents[1] / "NEWS").read_text()
    assert re.search(r"^\d.*", news, re.M)[0] == f"{version}, {day:%Y-%m-%d}"
