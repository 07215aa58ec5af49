# SPDX-License-Identifier: GPL-2.0
"""make check: which groups run for a change, which are believed unrun, and what
is kept and counted of them."""
import re
import subprocess
from types import SimpleNamespace

import pytest

from scripts import check, kunit
from scripts.checks import groups, tap, touches

FILES = {
    "room/code.c": "int a;\n", "room/other.c": "int b;\n",
    "lib/prog.py": "from lib import used\nimport lib.inside\n",
    "lib/__init__.py": "", "lib/used.py": "import os\n",
    "lib/inside/__init__.py": "from . import deep\n",
    "lib/inside/deep.py": "from ..above import x\n",
    "lib/above.py": "",
    "lib/unused.py": "", "lib/odd_one.awk": "", "readme": "",
}


class Repository:
    """One of a few files, {name: text}"""

    def __init__(self, top, files):
        self.top = top
        top.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        for name, text in files.items():
            self.write(name, text)
        self.commit("first")

    def write(self, name, text, commit=False):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return commit and self.commit(name)

    def git(self, *args):
        return subprocess.run(
            ["git", "-c", "user.name=d", "-c", "user.email=d@example.invalid",
             "-C", self.top, *args], check=True, text=True,
            stdout=subprocess.PIPE).stdout.strip()

    def commit(self, what):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", what)
        return self.git("rev-parse", "HEAD")


@pytest.fixture(name="repo")
def repository(tmp_path, monkeypatch):
    """With groups of its own"""
    repo = Repository(tmp_path / "repo", FILES)
    monkeypatch.setattr(touches, "ROOT", repo.top)
    monkeypatch.setattr(check.kernel, "ROOT", str(repo.top))
    monkeypatch.setattr(check, "OUT", tmp_path / "out")
    monkeypatch.setattr(check, "PACKAGES", ["true"])
    monkeypatch.setattr(groups, "PREPARE", {
        "one": ["sh", "-c", "echo one >>../ran"],
        "two": ["sh", "-c", "echo two >>../ran; exit 1"]})
    yield repo
    forget()


@pytest.fixture(name="run")
def runner(repo, tmp_path, monkeypatch, capsys):
    """(exit status, or what it says instead; lines printed) of make check."""
    def run(*args, **rows):
        forget()
        (tmp_path / "ran").unlink(missing_ok=True)
        table = "QUICK" if "--quick" in args else "GROUPS"
        monkeypatch.setattr(groups, table, rows)
        monkeypatch.setattr("sys.argv", ["check", *args])
        code = None
        try:
            check.main()
        except SystemExit as end:
            code = end.code
        return code, capsys.readouterr().out.splitlines()

    run.ran = lambda: (tmp_path / "ran").read_text().split() \
        if (tmp_path / "ran").exists() else []
    run.kept = lambda name: (check.OUT / (name + ".tap")).read_text()
    return run


def forget():
    for one in vars(touches).values():
        if hasattr(one, "cache_clear"):
            one.cache_clear()


def ran(lines):
    """The groups that say how long they took."""
    return {line.split()[1].strip(":") for line in lines if re.match(r"== \S+: \d+ passed", line)}


def shell(text, words="", needs=None):
    """A group that is a command of the shell, and shows that it ran."""
    return groups.Group(1, needs, words, "about",
                        ["sh", "-c", f"echo ran >>../ran; {text}"])


GOOD = "echo ok 1 x"


# --- what runs --------------------------------------------------------------------
def test_chosen_only(run):
    """The others do not run, and leave no file."""
    code, lines = run("--groups", "a,c", a=shell(GOOD), b=shell("exit 1"), c=shell(GOOD))
    assert (code, lines[-1]) == (False, "2 passed, 0 failed, 0 skipped")
    assert sorted(path.name for path in check.OUT.glob("*.tap")) == ["a.tap", "c.tap"]


def test_unknown_or_help(run):
    """All that there are, and nothing runs, not even what installs packages."""
    code, _ = run("--groups", "a nonsense", a=shell(GOOD), b=shell(GOOD))
    assert re.search(r"no group 'nonsense';(.|\n)*  a .*\n  b ", code)
    code, lines = run("--groups", "help", a=shell(GOOD))
    assert (code, lines[1].split()) == (None, ["a", "1", "s", "about"])
    code, _ = run("--since", "nonsense", a=shell(GOOD))
    assert "SINCE=nonsense: accepted: a commit" in code
    assert run.ran() == []


def test_prepares_what_is_needed(run):
    """No more than the groups need; what fails is a failure."""
    assert run(a=shell(GOOD, needs="one"))[0] == 0
    assert run.ran() == ["one", "ran"]
    code, lines = run("--cache", "no", a=shell(GOOD, needs="two"))
    assert (code, lines[-1]) == (True, "0 passed, 1 failed, 0 skipped")
    assert run.ran() == ["one", "two"]


def test_files(run):
    """Of groups that pass, fail, die, and speak no TAP, which are one result; plan and
    numbers are right."""
    code, lines = run(
        good=shell("echo TAP version 13; echo hello; echo ok 7 x; "
                   "echo ok 8 y \\# SKIP no disk; echo 1..9"),
        bad=shell("echo '# why'; echo not ok 1 x; exit 1"),
        dies=shell("echo ok 1 x; exit 3"), mute=shell("exit 0"),
        **{"git-am": shell("echo fine"), "git-am-6.12": shell("exit 2")})
    assert (code, lines[-1]) == (True, "3 passed, 4 failed, 1 skipped")
    for name, text in {
            "good": "1..2\n# hello\nok 1 x\nok 2 y # SKIP no disk\n",
            "bad": "1..1\n# why\nnot ok 1 x\n", "dies": "1..2\nok 1 x\nnot ok 2 exit 3\n",
            "mute": "1..1\nnot ok 1 no test ran\n", "git-am": "1..1\n# fine\nok 1 about\n",
            "git-am-6.12": "1..1\nnot ok 1 about\n"}.items():
        assert run.kept(name) == "KTAP version 1\n" + text


def test_guest(capsys):
    """What it said before a result explains that one; the end is a result."""
    report, ended = tap.Report(), SimpleNamespace(
        status="fail", reason="hang", log="x", lines=[
            "# good", "ok 1 a", "# bad", "so", "not ok 2 b", "ok 3 c # SKIP", "# last"])
    report.guest("g", ended)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "ok 1 g: a", "# bad", "# so", "not ok 2 g: b", "ok 3 g: c # SKIP see x", "# last",
        "# hang; see x", "not ok 4 g: guest"]
    assert report.failed == 2


# --- what a change can break --------------------------------------------------------
def programs(name):
    """A group whose program is a file of the repository."""
    return groups.Group(1, None, "", "about", ["sh", "-c", "echo ran >>../ran; echo ok 1 x", name])


ROWS = {"room": shell(GOOD, "room !room/other.c"), "all": shell(GOOD, "."),
        "program": programs("lib/prog.py")}


def test_since(run, repo):
    """What touches a file that changed runs, and the rest is named."""
    for path, runs in {
            "room/code.c": {"room"}, "room/other.c": set(), "room/new.c": {"room"},
            "readme": set(), "lib/unused.py": set(), "lib/odd_one.awk": set(),
            **dict.fromkeys(("lib/used.py", "lib/inside/deep.py", "lib/above.py", "lib/prog.py"),
                            {"program"})}.items():
        before = FILES.get(path, "")
        repo.write(path, before + "\n")
        _, lines = run("--since", "HEAD", **ROWS)
        assert ran(lines) == {*runs, "all"}, path
        left_out = "".join(line for line in lines if "left out" in line)
        assert set(left_out.rpartition(": ")[2].split()) == set(ROWS) - {*runs, "all"}, path
        repo.write(path, before)
        if path not in FILES:
            (repo.top / path).unlink()
    assert ran(run("--since", "HEAD", **ROWS)[1]) == set()


def test_since_a_commit(run, repo):
    """Committed or not, deleted or not."""
    before = repo.git("rev-parse", "HEAD")
    repo.write("readme", "new", commit=True)
    assert ran(run("--since", before, **ROWS)[1]) == {"all"}
    (repo.top / "room/code.c").unlink()
    assert ran(run("--since", before, **ROWS)[1]) == {"room", "all"}
    repo.commit("third")
    assert ran(run("--since", before, "--cache", "no", **ROWS)[1]) == {"room", "all"}


TWO = {"room": shell(GOOD, "room"), "readme": shell(GOOD, "readme")}


def test_quick(run, repo):
    """Of a branch its own change, not what main has by now; on main what is not
    committed, or the last commit."""
    repo.git("checkout", "-q", "-b", "ours")
    repo.write("room/code.c", "int ours;\n", commit=True)
    repo.git("checkout", "-q", "main")
    repo.write("readme", "theirs", commit=True)
    assert ran(run("--quick", **TWO)[1]) == {"readme"}
    repo.write("room/code.c", "int new;\n")
    assert ran(run("--quick", **TWO)[1]) == {"room"}
    repo.git("checkout", "-q", "-f", "ours")
    _, lines = run("--quick", "--cache", "no", **TWO)
    assert ran(lines) == {"room"}
    assert "check: 1 files changed since main" in lines


def test_landing(repo, monkeypatch):
    """In a clone of main alone, what is hours older than its last commit."""
    made = {}
    for hours in 8, 5, 1, 0:
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{10 ** 9 - 3600 * hours} +0000")
        made[hours] = repo.write("readme", f"{hours} hours ago", commit=True)
    assert check.start("", False) == (made[5], "since the last landing")


def test_unit_tests(run, repo):
    """Those that import what changed, and none is no failure."""
    repo.write("lib/tests/test_used.py", "from lib import used\n")
    repo.write("lib/tests/test_unused.py", "from lib import unused\n")
    repo.commit("tests")
    row = groups.Group(1, None, ".", "about", ["sh", "-c", "echo ok 1 $*", "sh", "{tests}"])
    repo.write("lib/used.py", "x = 1\n")
    run("--quick", units=row)
    assert run.kept("units").endswith("\nok 1 lib/tests/test_used.py\n")
    repo.git("checkout", "-q", ".")
    repo.write("readme", "x")
    code, lines = run("--quick", units=row)
    assert (code, lines[-1]) == (False, "0 passed, 0 failed, 0 skipped")


# --- what is known --------------------------------------------------------------------
def is_cached(run, **rows):
    """Nothing ran, and it says so; counted apart."""
    code, lines = run(**rows)
    known = "== a: ok (cached)" in lines
    assert code == 0 and known == (run.ran() == [])
    assert ("cached (CACHE=no runs them): 1 passed, 0 failed, 1 skipped" in lines) == known
    assert lines[-1] == ("0 passed, 0 failed, 0 skipped" if known else
                         "1 passed, 0 failed, 1 skipped")
    return known


ROW = {"a": groups.Group(1, None, "room !room/other.c", "about", [
    "sh", "-c", "echo ran >>../ran; echo ok 1 busy; echo ok 2 y \\# SKIP z", "lib/unused.py"])}


def test_cached(run, repo, monkeypatch):
    """As long as nothing changes that it depends on, and all of that is known."""
    def changed(what, row=None):
        assert not is_cached(run, **(row or ROW)), what
        assert is_cached(run, **(row or ROW)), what

    changed("no run before")
    assert "ok 2 y # SKIP z" in run.kept("a")
    repo.write("readme", "another")
    repo.write("room/other.c", "int c;\n")
    monkeypatch.setenv("OTHER", "9")
    assert is_cached(run, **ROW)
    assert run("--cache", "no", **ROW)[1][-1] == "1 passed, 0 failed, 1 skipped"
    for path in "room/code.c", "room/new.c", "lib/unused.py":
        repo.write(path, FILES.get(path, "") + "\n")
        changed(path)
    (repo.top / "room/new.c").unlink()
    changed("a file less")
    monkeypatch.setenv("ACCEL", "9")
    changed("a variable")
    monkeypatch.setattr(touches, "machine", lambda: "another compiler")
    changed("the machine")
    other = ROW["a"]._replace(command=[*ROW["a"].command, "more"])
    changed("the command", {"a": other})
    changed("the kernel", {"a": other._replace(kver="6.12")})
    monkeypatch.setattr(touches, "machine", lambda: None)
    assert not is_cached(run, **ROW) and not is_cached(run, **ROW)


@pytest.mark.parametrize("text", [
    "echo not ok 1 x", "echo ok 1 x; exit 1", "exit 0",
    "echo ok 1 x \\# SKIP the machine is busy",
    "echo ok 1 x; echo meanwhile >>room/code.c"])
def test_never_cached(run, text):
    """What failed, or skipped for want of time, or was edited while it ran; nor
    what passed before that, once all is as it was."""
    file = check.touches.ROOT / "flag"
    group = shell(f"if [ -e flag ]; then {text}; else echo ok 1 x; fi", "room")
    run(a=group)
    file.touch()
    run("--cache", "no", a=group)
    file.unlink()
    (check.touches.ROOT / "room/code.c").write_text(FILES["room/code.c"])
    run(a=group)
    assert run.ran() == ["ran"]
    run(a=group)
    assert run.ran() == []


# --- the table itself -------------------------------------------------------------------

# No test but those of documents, of style and of mails reads these.
UNREAD = (
    "*.md *.rst Documentation NEWS COPYING MAINTAINERS .ci Makefile .gitignore pytest.ini "
    "*.cover *.json *.svg patches/*/source patches/blktests "
    # other verbs have tests of their own: deb-test, rpm, stick-test, nano, sim, figures
    "scripts/*.sh scripts/*.py scripts/stick scripts/packaging scripts/series scripts/checks "
    "conftest.py lab/bench/*.py lab/bench/baselines lab/sim lab/native */tests/* "
    "tools/block").split()


def test_names():
    """They are words of GROUPS= and names of files; PREPARE has what they need."""
    for name, group in {**groups.GROUPS, **groups.QUICK}.items():
        assert re.fullmatch(r"[a-z0-9.-]+", name)
        assert group.needs in (None, *groups.PREPARE)
        assert group.about and group.seconds > 0
        assert "scripts/checks/groups.py" in groups.touches(group)
        for pattern in group.touches.replace("KVER", group.kver).split():
            assert any(touches.matches(path, [pattern.lstrip("!")])
                       for path in touches.files()), pattern


def test_all_is_touched():
    """A change of any file can break a group that is there for it, or is one
    of those that only documents, style and unit tests read."""
    broad = [groups.touches(group) for group in groups.GROUPS.values()
             if group.touches != "."]
    untouched = [path for path in touches.files()
                 if not any(path in one for one in broad)
                 and not touches.matches(path, UNREAD)]
    assert untouched == []


@pytest.mark.parametrize("path, names", [
    ("block/blk-plug-adaptive.c", "kunit selftests native loads"),
    ("block/blk-plug-policy.c", "cost kunit option-off selftests torture audit tags"),
    ("lib/tests/sbitmap_kunit.c", "kunit kunit-6.12 git-am"),
    ("patches/7.3/series", "git-am kunit selftests sparse selftests-uml-6.12"),
    ("patches/6.12/series", "kunit-6.12 git-am-6.12"),
    ("tools/block/plugbench", "laboratory host-tools"),
    ("tools/block/plugtools/bench/fio.py", "laboratory host-tools"),
    ("tools/block/plugroll", "roll-out"), ("lab/bench/plugroll_guest.sh", "roll-out"),
    ("lab/qemu/boot.py", "guest-runner selftests torture cost laboratory"),
    ("lab/load/plug_load.c", "selftests torture cost laboratory native"),
    ("lab/qemu/init", "selftests torture cost laboratory"),
    ("lab/qemu/kernel.config", "selftests cost option-off"),
    ("lab/torture/power.sh", "torture"), ("lab/bench/cells_guest.sh", "native loads"),
    ("lab/ssd_model/media.c", "laboratory sparse loads torture"),
    ("tools/testing/selftests/block-plug/fallback.sh", "selftests selftests-uml"),
    ("tools/testing/selftests/block-plug/plug_load.c", "selftests cost torture"),
    ("scripts/series/git.py", "git-am host-tools kunit"),
    ("scripts/source.sh", "git-am kunit selftests"), ("scripts/apt.sh", "kunit"),
    ("scripts/kbuild/configs.py", "each-commit"), ("README.md", "style host-tools")])
def test_touched(path, names):
    """Some that must not be left out."""
    assert path in touches.files()
    for name in names.split():
        assert path in groups.touches(groups.GROUPS[name]), name


def test_left_out():
    """A line of a tool boots no kernel but for that tool."""
    found = {name for name, group in groups.GROUPS.items()
             if "tools/block/plugstat" in groups.touches(group)}
    assert found <= {"host-tools", "style", "laboratory", "roll-out"}


# --- kunit.py -----------------------------------------------------------------------------
def test_rows():
    """Each case, and of a parametrised one each row, once."""
    case = {"name": "a", "status": "PASS"}
    inner = {"name": "rows", "test_cases": [case, {"name": "b", "status": "ERROR"}],
             "sub_groups": []}
    outer = {"name": "suite", "test_cases": [case], "sub_groups": [inner]}
    assert list(kunit.rows({"test_cases": [], "sub_groups": [outer]})) == [
        ("suite a", "PASS"), ("suite rows a", "PASS"), ("suite rows b", "ERROR")]
