# SPDX-License-Identifier: GPL-2.0
"""What each_commit.py concludes from what tools print."""
import functools
import time
from types import SimpleNamespace

import pytest

from scripts import common, each_commit, kernel
from scripts.checks import c_style, touches
from scripts.kbuild import configs
from scripts.tests.test_check import Repository

GCC = """  CC      block/blk-mq.o
../block/blk-mq.c: In function 'f':
../block/blk-mq.c:12:6: warning: unused variable 'i' [-Wunused-variable]
   12 | int i;
../include/linux/blkdev.h:7:1: error: expected ';' before 'int'
block/blk-mq.o: warning: objtool: f+0x1f: unreachable instruction
block/Kconfig:3:warning: ignored
../block/blk-mq.c:9:1: note: declared here
../x.c:1:1: fatal error: no.h: No such file or directory
drivers/nvme/host/pci.c:1:1: error: bad constant expression
make[3]: *** [../scripts/Makefile.build:289: block/blk-mq.o] Error 1
"""


# --- c_style.py -----------------------------------------------------------------
def test_each_kind_of_finding():
    """Without its line, and nothing else."""
    assert dict(c_style.findings(GCC)) == {
        ("block/blk-mq.c", "warning: unused variable 'i' [-Wunused-variable]"): 1,
        ("include/linux/blkdev.h", "error: expected ';' before 'int'"): 1,
        ("block/blk-mq.o", "warning: objtool: f: unreachable instruction"): 1,
        ("block/Kconfig", "warning: ignored"): 1,
        ("x.c", "fatal error: no.h: No such file or directory"): 1}


@pytest.mark.parametrize("text, base, added", [
    ("../a.c:9:2: warning: w\n", {("a.c", "warning: w"): 1}, []),     # it has moved
    ("a.c:1:2: warning: w\na.c:5:2: warning: w\n", {("a.c", "warning: w"): 1},
     ["a.c: warning: w"]),
    # a header is read once more
    ("a.h:1:2: warning: w\na.h:5:2: warning: w\n", {("a.h", "warning: w"): 1}, []),
    ("a.h:1:2: warning: w\n", {}, ["a.h: warning: w"])])
def test_added(text, base, added):
    assert c_style.added(c_style.findings(text), base) == added


def test_interrupted(tmp_path):
    """An exception while it runs ends all that it started."""
    def interrupt(_):
        raise KeyboardInterrupt

    late = tmp_path / "late"
    with pytest.raises(KeyboardInterrupt):
        common.run(["sh", "-c", f"(sleep 1; echo >{late}) & echo a; wait"], interrupt)
    time.sleep(1.5)
    assert not late.exists()


# --- configs.py -----------------------------------------------------------------
def test_what_configurations_are_made_of():
    """Symbols that none of the objects defines; options of Kconfig files, and C outside
    of the directories, without tools/; a fragment as merge_config.sh reads it."""
    assert configs.parse_nm(
        "/o/a.o:0000000000000000 T here\n/o/a.o:         U there\n"
        "/o/a.o:         U nowhere\n/o/b.o:0000000000000010 t there\n",
        "/o") == {"nowhere": "a.o"}
    assert configs.own_options(
        ["block/Kconfig.plug", "tools/x/Kconfig", "block/x.c"],
        {"block/Kconfig.plug": "+config A\n config B\n-config C\n+\tconfig D\n"}.get) == ["A"]
    assert configs.own_objects(["fs/aio.c", "block/x.c", "lib/a.h", "tools/b.c"]) == ["fs/aio.o"]
    assert configs.fragment({"A": "n", "B": "m"}) == "# CONFIG_A is not set\nCONFIG_B=m\n"


def test_options():
    """All of the series, or nothing; its tests where KUnit is."""
    series = SimpleNamespace(files=[], options=lambda: ["BLK_PLUG_POLICY", "X", "X_KUNIT_TEST"])
    assert [[configs.Config(name, "tree", series).options.get(one) for one in series.options()]
            for name in ("on-gcc", "off-gcc", "no-nvme")] == [
                ["y", "y", "y"], ["n", "n", None], ["y", "y", None]]


# --- each_commit.py ---------------------------------------------------------------
SERIES = SimpleNamespace(
    base="base", tip="two", commits=["one", "two"], ends={"one", "two"}, options=lambda: [],
    files={"block/a.c": "M", "block/new.c": "A", "tools/b.c": "A", "Documentation/c.rst": "A"})


@pytest.fixture(name="rows", autouse=True)
def listed(tmp_path, monkeypatch):
    """What git ls-tree lists."""
    rows = ["100644 blob 1\tblock", "100644 blob 2\tDocumentation"]
    monkeypatch.setattr(each_commit, "PROVEN", tmp_path / "proven.json")
    monkeypatch.setattr(each_commit, "git", lambda *args: "\n".join(rows))
    return rows


def run(*checks, fresh=False):
    """The exit status of checks that find this, or break off with it, each known by
    its place."""
    def finds(what):
        if isinstance(what, list):
            return what
        raise what

    with pytest.raises((SystemExit, KeyboardInterrupt)) as end:
        each_commit.run(SERIES, [("one", "doc", str(nr), functools.partial(finds, what))
                                 for nr, what in enumerate(checks)], fresh)
    return getattr(end.value, "code", "interrupted")


@pytest.mark.parametrize("runs, fresh, code, words", [
    ([[["bad"]]], False, 1, "# bad\nnot ok 1 doc, 0 s: one"),
    ([[kernel.BuildError("no make")]], False, 1, "# no make\nnot ok"),
    ([[]], False, 0, "ok 1 each-commit # SKIP"),
    # what failed, or could not be asked, is asked again; not what has passed
    ([[["bad"]], [[]]], False, 0, "ok 1 doc, 0 s: one"),
    ([[[]], [AssertionError()]], False, 0, "ok 1 doc, passed earlier: one"),
    ([[[]], [["bad"]]], True, 1, "not ok 1 doc, 0 s"),
    ([[[], KeyboardInterrupt()], [AssertionError()]], False, 0, "ok 1 doc, passed earlier")])
def test_passed_is_remembered(capsys, runs, fresh, code, words):
    found = [run(*checks, fresh=fresh) for checks in runs]
    assert found[-1] == code and words in capsys.readouterr().out


def test_symbols_that_nobody_else_names(tmp_path, monkeypatch):
    """In a header or so: those are defined by what is not built here."""
    monkeypatch.setattr(each_commit, "TREE", str(tmp_path))
    Repository(tmp_path, {"include/a.h": "there();", "block/a.c": "gone(); there();"})
    assert each_commit.nowhere(["gone", "there"], ["block/a.c"]) == ["gone"]


def test_key(rows):
    """Compilers do not read the documentation; all read the rest."""
    def keys():
        return [each_commit.key(SERIES, "one", name) for name in ("on-gcc", "html")]

    build, pages = keys()
    rows[1] = "100644 blob 3\tDocumentation"
    assert keys()[0] == build and keys()[1] != pages
    rows[0] = "100644 blob 4\tblock"
    assert keys()[0] != build


def test_plan(monkeypatch):
    """gcc builds each commit, clang the last of a section, the other configurations the
    last of all; of a change, what changed, clang the last of all, and nothing else of it."""
    monkeypatch.setattr(each_commit, "Config", lambda name, *_: SimpleNamespace(
        kind=each_commit.CONFIGS[name], text="", version=""))
    monkeypatch.setattr(each_commit, "changed_commits", lambda *_: ["one"])
    each = [(sha, f"{state}-{cc}") for sha in ("one", "two") for cc in ("gcc", "clang")
            for state in ("on", "off")]
    last = [("two", name) for name in (*list(each_commit.CONFIGS)[4:], "doc", "html")]
    assert [one[:2] for one in each_commit.plan(SERIES, None)] == each + last
    assert ("two", "i386") in last
    assert [one[:2] for one in each_commit.plan(SERIES, ["html"])] == [("two", "html")]
    assert [one[:2] for one in each_commit.plan(SERIES, None, "since")] == [
        ("one", "on-gcc"), ("one", "off-gcc")]
    monkeypatch.setattr(each_commit, "changed_commits", lambda *_: ["two"])
    assert ("two", "on-clang") in [one[:2] for one in each_commit.plan(SERIES, None, "since")]


LISTED = "[a]\n1-one.patch\n2-two.patch block/new.c\n[b]\n3-three.patch tools/x.c\n4-four.patch\n"


@pytest.mark.parametrize("files, commits", [
    ({}, ""), ({"patches/7.3/1-one.patch": "x\ndiff --git x"}, "12"),
    ({"patches/7.3/4-four.patch": "x\ndiff --git x"}, "34"),
    ({"patches/7.3/1-one.patch": "another message\ndiff --git 1-one"}, ""),
    ({"block/new.c": "x"}, "2"), ({"tools/x.c": "x"}, ""), ({"patches/7.3/a.cover": "x"}, ""),
    # another place: only that commit, and the next
    ({"patches/7.3/series": LISTED.replace("3-three.patch tools/x.c\n4-four.patch\n",
                                           "4-four.patch\n3-three.patch tools/x.c\n")}, "34"),
    ({"patches/7.3/series": LISTED.replace("1-one.patch\n", "")}, "1"),
    # another number is none; a mail more is a change of its section
    ({"patches/7.3/series": LISTED.replace("1-one", "7-one"),
      "patches/7.3/7-one.patch": "\ndiff --git 1-one"}, ""),
    ({"patches/7.3/series": LISTED + "5-five.patch\n",
      "patches/7.3/5-five.patch": "\ndiff --git 5"}, "345")])
def test_changed_commits(tmp_path, monkeypatch, files, commits):
    """The sections of mails that changed, commits at another place, and those
    that bring a file that changed."""
    monkeypatch.setattr(touches, "ROOT", tmp_path)
    monkeypatch.setattr(each_commit, "env", SimpleNamespace(
        BASE="7.3", FIRST="7.3", ROOT=tmp_path, PATCHES=tmp_path / "patches/7.3",
        shown=lambda path: str(path.relative_to(tmp_path))))
    repo = Repository(tmp_path, {
        "block/new.c": "", "tools/x.c": "", "patches/7.3/series": LISTED,
        **{f"patches/7.3/{name}.patch": f"A message\ndiff --git {name}"
           for name in "1-one 2-two 3-three 4-four".split()}})
    for name, text in files.items():
        repo.write(name, text)
    touches.files.cache_clear()
    try:
        assert each_commit.changed_commits(
            SimpleNamespace(commits=list("12345")), "HEAD") == list(commits)
    finally:
        touches.files.cache_clear()


def test_doc(monkeypatch):
    """Only what the base's files do not say as often, and of C alone."""
    said = {"block/a.c block/new.c": "a.c:3 x\na.c:4 x\na.c:5 y", "block/a.c": "a.c:9 x"}
    monkeypatch.setattr(kernel, "ensure_checkout", lambda tree, sha: sha)
    monkeypatch.setattr(c_style, "kernel_doc", lambda _, names, __: said[" ".join(names)])
    assert each_commit.doc(SERIES) == ["a.c x", "a.c y"]
