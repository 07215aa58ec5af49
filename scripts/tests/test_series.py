# SPDX-License-Identifier: GPL-2.0
"""scripts/series on a kernel tree of five files."""
import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from unittest import mock

import pytest

from scripts import ROOT, common
from scripts.series import __main__ as series, env, measured
from scripts.series.git import Git

ME = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
      for what, value in (("NAME", "Dev"), ("EMAIL", "dev@example.invalid"))}
MADE = "refs/plug-policy/made"

KERNEL = {
    "Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n",
    "block/Makefile": "obj-y += foo.o\n",
    "block/foo.c": "".join(f"int line{i};\n" for i in range(1, 30)),
    "drivers/bar.c": "int bar;\n",
    ".gitignore": "*.o\n",
}

DEBIAN_RULE = "\n#\n# Debian packaging: ignore everything\n#\n/*\n!/debian/\n"

SERIES = """\
# the file's own comment

[batching]
0001-foo-count.patch block/stat.c \\
	block/stat.h

[policy]
0002-foo-policy.patch block/policy.c
0003-tools.patch tools/policy.sh
"""

ROOMS = {
    "block/stat.c": "int stat;\n",
    "block/stat.h": "extern int stat;\n",
    "block/policy.c": "int policy;\n",
    "tools/policy.sh": "#!/bin/sh\n",
}

COVERS = {
    "batching.cover": "foo: counting\n\nWhy we count.\n\nApplies on: Linux 7.3, each mail alone\n",
    "policy.cover": "[RFC] foo: a policy\n\nWhy \u00fc matters.\n\nApplies on: batching\n",
}


def mail(subject, diff="", body="Because."):
    return ("From " + 40 * "0" + " Mon Sep 17 00:00:00 2001\nFrom: A <a@example.invalid>\n"
            f"Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] {subject}\n\n{body}\n---\n\n"
            f"{diff}")


def hook(line, old, new, path="block/foo.c"):
    """A hunk in the middle of block/foo.c."""
    def context(numbers):
        return "".join(f" int line{i};\n" for i in numbers)
    return (f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
            f"@@ -{line - 3},7 +{line - 3},7 @@\n" + context(range(line - 3, line))
            + f"-{old}\n+{new}\n" + context(range(line + 1, line + 4)))


MAILS = {
    "0001-foo-count.patch": mail("foo: count", hook(10, "int line10;", "int count;")),
    "0002-foo-policy.patch": mail("foo: a policy for \u00fcber",
                                  hook(20, "int line20;", "int pol;"),
                                  "Body\n\n  a   table\n  b   c\n"),
    "0003-tools.patch": mail("tools: show the policy"),
}


def write(top, files):
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)


def state(top):
    """Every file below, with content, mode and time."""
    return {str(p.relative_to(top)): (p.stat().st_mtime_ns, p.stat().st_mode,
                                      hashlib.sha256(p.read_bytes()).hexdigest())
            for p in sorted(top.rglob("*")) if p.is_file()}


class Fixture:
    def __init__(self, tmp):
        self.root, self.ksrc = tmp / "root", tmp / "ksrc"
        self.tree = self.root / "build/linux-7.3"
        self.patches = self.root / "patches/7.3"
        self.mails = self.root / "build/series-7.3"
        self.extra = {}

    def env(self, **extra):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("GIT_") and name not in ("FROM", "KVER")}
        return {**kept, **ME, "PLUG_POLICY_ROOT": str(self.root), "KSRC": str(self.ksrc),
                "PLUG_POLICY_BUILD": f"{self.root}/build", **self.extra, **extra}

    def run(self, *args, **extra):
        """(exit code, what it says), in this process"""
        said = io.StringIO()
        with mock.patch.dict(os.environ, self.env(**extra), clear=True), \
                contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            importlib.reload(env)
            try:
                series.main([str(arg) for arg in args])
            except SystemExit as end:
                return 1, f"{said.getvalue()}{end.code}"
        return 0, said.getvalue()

    def ok(self, *args, **extra):
        code, text = self.run(*args, **extra)
        assert code == 0, text
        return text

    def refused(self, *args, words=(), **extra):
        code, text = self.run(*args, **extra)
        assert code == 1, f"exit {code}, wanted 1: {text}"
        for word in words:
            assert word in text, f"'{word}' is not in: {text}"
        return text

    def git(self, *args):
        return subprocess.run(["git", "-C", str(self.tree), *args], text=True, env=self.env(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True
                              ).stdout.strip()

    def commit(self, message, files, *options):
        write(self.tree, files)
        self.git("add", "-A")
        self.git("commit", "-q", *options, "-m", message)

    def head_tree(self):
        return self.git("rev-parse", "HEAD^{tree}")

    def read(self, name):
        return (self.root / name).read_text()

    def write(self, files):
        write(self.root, files)

    def edit(self, name, old, new):
        """Of what lies there, or is to lie there; None: it goes."""
        path = self.root / name
        if path.is_dir():
            shutil.rmtree(path)
        elif new is None:
            path.unlink()
        else:
            text = path.read_text() if path.exists() else ""
            assert old in text
            path.write_text(text.replace(old, new))

    def contents(self):
        """Of all files but git's, and what the tree is made of"""
        return {name: found[1:] for name, found in state(self.root).items()
                if "/.git/" not in name and not name.endswith(".lock")}, \
            self.git("rev-parse", "HEAD", MADE)

    def assert_no_tree(self):
        left = {p.name for p in (self.root / "build").iterdir()}
        assert left <= {".series.lock", "series-7.3", "cache"}, f"left behind: {left}"

    def list_mails(self):
        return sorted(p.name for p in self.patches.glob("*.patch"))


@pytest.fixture(name="template", scope="module")
def make_template(tmp_path_factory):
    """A repository, with its tree and its mails as they have been made."""
    top = tmp_path_factory.mktemp("series")
    f = Fixture(top)
    write(f.ksrc, KERNEL)
    f.write(ROOMS)
    (f.root / "tools/policy.sh").chmod(0o755)
    write(f.patches, {**MAILS, **COVERS, "series": SERIES, "source": "pinned=7.3.4-1\n"})
    f.ok("tree")
    f.ok("export")
    yield top
    importlib.reload(env)


@pytest.fixture(name="f")
def copy_template(template, tmp_path):
    shutil.copytree(template, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Fixture(tmp_path)


# --- tree --------------------------------------------------------------------
def test_tree_keeps_times(f):
    """Of all but what a room or the series has changed, and of what is built."""
    write(f.tree, {"o-test/vmlinux": "built", ".kunit/out": "built"})
    before = state(f.tree)
    f.ok("tree")
    f.write({"block/policy.c": "int policy = 2;\n"})
    f.edit(LIST, "0003-tools.patch tools/policy.sh\n", "")
    f.ok("tree")
    after = state(f.tree)
    changed = {n for n in before if not n.startswith(".git/") and before[n] != after.get(n)}
    assert changed == {"block/policy.c", "tools/policy.sh"} and "tools/policy.sh" not in after
    assert f.git("rev-parse", "section/policy") == f.git("rev-parse", "series")


def test_tree_refuses_work_in_it(f):
    """Committed or not, and where a file of the series would go."""
    write(f.tree, {"block/foo.c": "mine\n"})
    f.refused("tree", words=["uncommitted", "block/foo.c", "stash"])
    f.commit("work", {})
    f.refused("tree", words=["commits", "make refresh"])
    assert (f.tree / "block/foo.c").read_text() == "mine\n"
    f.git("reset", "-q", "--hard", MADE)
    write(f.tree, {"block/new.c": "mine\n"})
    f.write({"block/new.c": "theirs\n"})
    f.edit(LIST, "stat.h", "stat.h block/new.c")
    f.refused("tree", words=["block/new.c"])
    assert (f.tree / "block/new.c").read_text() == "mine\n"
    (f.tree / "block/new.c").unlink()
    f.ok("tree")


NEW_FILE = ("diff --git a/block/n.c b/block/n.c\nnew file mode 100644\n--- /dev/null\n"
            "+++ b/block/n.c\n@@ -0,0 +1 @@\n+int n;\n")
LIST, COVER = "patches/7.3/series", "patches/7.3/policy.cover"
KSRC, CONFIG = "../ksrc/Makefile", "../ksrc/.config"
FOO, TOOLS = "patches/7.3/0002-foo-policy.patch", "patches/7.3/0003-tools.patch"
MAILED = "build/series-7.3/batching/0001-foo-count.patch"


@pytest.mark.parametrize("verbs, name, old, new, words", [
    ("tree", LIST, "stat.h", "stat.h none.c", "none.c, missing, 0001-foo-count.patch"),
    ("tree", LIST, "tools/policy.sh", "block/stat.c",
     "series:9, block/stat.c, 0001-foo-count.patch"),
    ("tree", LIST, "tools/policy.sh", "drivers/bar.c", "drivers/bar.c, exists in the kernel"),
    ("tree", LIST, "[batching]\n", "", "before any [section]"),
    ("tree", LIST, "[policy]", "[Policy]", "a section is"),
    ("tree", LIST, "[policy]", "# two hooks\n[policy]", "series:7, '#'"),
    ("tree", LIST, "tools/policy.sh", "tools/*", "tools/*, no plain file, 0003-tools.patch"),
    ("tree", LIST, "tools/policy.sh", "../ksrc/Makefile", "../ksrc/Makefile, outside repository"),
    ("tree", LIST, "0003-tools.patch tools/policy.sh", "0001-foo-count.patch", "same subject"),
    ("tree", LIST, "0003-tools.patch", "0009-no.patch", "0009-no.patch"),
    ("tree", LIST, " tools/policy.sh", "", "0003-tools.patch, brings nothing"),
    ("tree", TOOLS, "---\n\n", f"---\n\n{NEW_FILE}", "0003-tools.patch, block/n.c"),
    ("tree", FOO, "-int line20;", "-int no_such_line;",
     "0002-foo-policy.patch, int line19;\nint no_such_line;, block/foo.c:17"),
    ("tree", KSRC, "7\nPATCHLEVEL = 3", "6\nPATCHLEVEL = 12", "6.12, 7.3"),
    ("tree", KSRC, "", None, "no kernel source tree"),
    ("tree", CONFIG, "", "CONFIG_X=y", "has been built in, mrproper"),
    ("export", COVER, "", None, "policy.cover"),
    ("export", COVER, "Applies on: batching", "", "policy.cover, one line 'Applies on:"),
    ("export", COVER, "on: batching", "on: later", "policy.cover, 'later', batching"),
    ("export", "block/policy.c", "policy", "p", "older than the series, make tree"),
    ("tree export", TOOLS, "Because.", "Signed-off-by: X <x@example.invalid>", "Signed-off-by"),
    ("tree export", TOOLS, "Because.", "Random 4K: 1.5 ns less.", "tools: show, @figures"),
    ("verify", MAILED, "+int count;", "+int other;", "block/foo.c"),
    ("verify", MAILED, "Because.", "Whyever.", "message, foo: count"),
    ("verify", MAILED, "-int line10;", "-int line77;", "git am, batching"),
    ("verify", "build/series-7.3/policy", "", None, "make series")])
def test_refused(f, verbs, name, old, new, words):
    """What is wrong is named, and all stays as it was."""
    f.write({"drivers/bar.c": "int other;\n"})
    f.edit(name, old, new)
    *before, verb = verbs.split()
    for one in before:
        f.ok(one)
    contents = f.contents()
    f.refused(verb, words=words.split(", "))
    assert f.contents() == contents
    if verb == "tree":
        shutil.rmtree(f.tree)
        f.refused(verb, words=words.split(", "))
        f.assert_no_tree()


# --- the kernel source -------------------------------------------------------
def test_ksrc_is_only_read(f):
    shutil.rmtree(f.tree)
    write(f.ksrc, {"block/foo.o": "an object\n"})
    subprocess.run(["git", "init", "-q", str(f.ksrc)], check=True)
    subprocess.run(["git", "-C", str(f.ksrc), "add", "block", "Makefile"], env=f.env(), check=True)
    subprocess.run(["chmod", "-R", "a-w", f.ksrc], check=True)
    before = state(f.ksrc)
    try:
        f.ok("tree")
        f.ok("tree")
        assert state(f.ksrc) == before
    finally:
        subprocess.run(["chmod", "-R", "u+w", f.ksrc], check=True)
    assert not (f.tree / "block/foo.o").exists(), "build output was imported"
    assert (f.tree / "drivers/bar.c").exists(), "untracked file was not imported"


def test_ksrc_may_change(f):
    base = f.git("rev-parse", "base")
    write(f.ksrc, {"drivers/bar.c": "int changed;\n", "drivers/more.c": "int more;\n"})
    (f.ksrc / ".gitignore").unlink()
    before = state(f.tree / "block")
    f.ok("tree")
    assert f.git("rev-parse", "base") != base
    assert (f.tree / "drivers/bar.c").read_text() == "int changed;\n"
    assert (f.tree / "drivers/more.c").exists() and not (f.tree / ".gitignore").exists()
    assert f.git("log", "-1", "--format=%s") == "tools: show the policy"
    assert state(f.tree / "block") == before


def pack(f, where):
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-C", str(f.ksrc.parent), "-cJf",
                    str(where / "linux-source-7.3.tar.xz"), "ksrc"], check=True)


def test_newer_source_that_does_not_fit(f):
    """The hunk is shown, and the version that the series is for is used."""
    shutil.rmtree(f.tree)
    deb, mirror = f.root / "deb", f.root / "mirror"
    pool = mirror / "pool/main/l/linux"
    pack(f, deb / "usr/src")
    write(deb, {"DEBIAN/control": "Package: linux-source-7.3\nVersion: 7.3.4-1\n"
                "Architecture: all\nMaintainer: n <n@example.invalid>\nDescription: test\n"})
    pool.mkdir(parents=True)
    package = pool / "linux-source-7.3_7.3.4-1_all.deb"
    subprocess.run(["dpkg-deb", "-b", str(deb), str(package)], stdout=subprocess.DEVNULL,
                   check=True)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    write(f.patches, {"source": f"suites=none\npinned=7.3.4-1\nsha256={digest}\n"})
    write(f.ksrc, {"block/foo.c": "nothing that a mail knows\n"})
    pack(f, f.root / "build/cache")
    (f.root / "build/cache/linux-source-7.3.version").write_text("7.3.5-1\n")
    env = {"KSRC": "", "DEBIAN_MIRROR": f"file://{mirror}", "DEBIAN_SECURITY": "file:///none"}
    text = f.ok("tree", **env)
    for word in ("error: patch failed: block/foo.c:7", "7.3.5-1 does not take the series", "7.3.4-1)"):
        assert word in text, text
    assert "7.3.4-1" in f.git("log", "-1", "--format=%s", "base")
    f.edit("patches/7.3/0001-foo-count.patch", "-int line10", "-int line99")
    f.refused("tree", words=["does not apply"], **env)


def test_tarball_is_the_source(f):
    """The way without KSRC. An ignored file of the archive is kept, and its rule that
    all of the kernel's files be ignored is not."""
    shutil.rmtree(f.tree)
    write(f.ksrc, {"block/kept.o": "part of the release\n",
                   ".gitignore": ".*\n" + KERNEL[".gitignore"] + DEBIAN_RULE})
    cache = f.root / "build/cache"
    pack(f, cache)
    f.refused("tree", KSRC="", words=["linux-source-7.3.tar.xz", "KSRC"])
    (cache / "linux-source-7.3.version").write_text("7.3.4-1~test\n")
    f.ok("tree", KSRC="")
    assert "7.3.4-1~test" in f.git("log", "-1", "--format=%s", "base")
    assert f.git("ls-files", "block/kept.o"), "an ignored file of the release was left out"
    assert f.git("status", "--porcelain") == ""
    tip = f.git("rev-parse", "HEAD")
    f.ok("tree")
    assert "unpack" not in f.ok("tree", KSRC=""), "unpacked once more"
    assert f.git("rev-parse", "HEAD") == tip
    new = {"block/new.c": "int new;\n", "block/.kunitconfig": "CONFIG_X=y\n"}
    f.commit("new file", new)
    f.ok("refresh")
    assert {name: f.read(name) for name in new} == new


# --- interruption ------------------------------------------------------------
def run_interrupted(f, command, name):
    """make tree, with a git that signals us once it has done this command"""
    f.write({"fake/git": f'#!/bin/sh\n"{shutil.which("git")}" "$@" || exit\n'
             f'case "$1" in {command}) kill -{name} $PPID; sleep 1;; esac\n'})
    (f.root / "fake/git").chmod(0o755)
    # in a process of its own, which is killed
    done = subprocess.run([sys.executable, "-m", "scripts.series", "tree"], text=True, cwd=ROOT,
                          env=f.env(PATH=f"{f.root}/fake:{os.environ['PATH']}"), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=common.heed_signals)
    return done.returncode, done.stdout


def test_interrupted_creation_leaves_nothing(f):
    """The next one makes all of the series, by the same hashes as ever."""
    tip = f.git("rev-parse", "series")
    shutil.rmtree(f.tree)
    for name in ("INT", "TERM"):
        code, text = run_interrupted(f, "reset", name)
        assert code == 1 and "interrupted" in text, text
        f.assert_no_tree()
    code, _ = run_interrupted(f, "reset", "KILL")
    assert code == -9 and not f.tree.exists()
    f.ok("tree")
    assert not [p for p in (f.root / "build").iterdir() if "new" in p.name]
    assert [f.git("rev-parse", name) for name in ("series", "section/policy", "section/batching")
            ] == [tip, tip, f.git("rev-parse", "series~2")]
    assert f.git("log", "--format=%s", "--reverse", "series").splitlines() == [
        "Linux 7.3.4 (KSRC)", "foo: count", "foo: a policy for \u00fcber", "tools: show the policy"]
    assert f.git("log", "-1", "--format=%b", "series~1") == "Body\n\n  a   table\n  b   c"
    assert f.git("status", "--porcelain") == ""
    assert "int pol;" in (f.tree / "block/foo.c").read_text()
    assert os.access(f.tree / "tools/policy.sh", os.X_OK)


def test_interrupted_update_is_finished(f):
    f.write({"block/policy.c": "int policy = 2;\n"})
    code, _ = run_interrupted(f, "checkout", "KILL")
    assert code == -9 and f.git("rev-parse", "HEAD") != f.git("rev-parse", MADE)
    assert "interrupted" in f.ok("tree")
    assert (f.tree / "block/policy.c").read_text() == "int policy = 2;\n"
    assert f.git("status", "--porcelain") == ""


# --- refresh -----------------------------------------------------------------
def test_refresh_round_trip(f):
    """And a second one is a no-op."""
    foo = (f.tree / "block/foo.c").read_text()
    f.commit("foo: one more\n\nIt is\nneeded.", {"block/foo.c": foo.replace("line5;", "five;"),
                                                  "block/more.c": "int more;\n"})
    f.commit("policy: fix", {"block/policy.c": "int policy = 3;\n"})
    (f.tree / "block/stat.h").unlink()
    f.commit("stat: no header", {})
    tree = f.head_tree()
    text = f.ok("refresh")
    assert "folded 'policy: fix' into 'foo: a policy for \u00fcber'" in text, text
    assert "equals" in text and f.head_tree() == tree
    assert f.read("block/policy.c") == "int policy = 3;\n"
    assert f.read("block/more.c") == "int more;\n" and not (f.root / "block/stat.h").exists()
    assert "stat.h" not in f.read(LIST)
    assert f.list_mails() == ["0001-foo-count.patch", "0002-foo-a-policy-for-ber.patch",
                              "0003-tools-show-the-policy.patch", "0004-foo-one-more.patch"]
    more = f.read("patches/7.3/0004-foo-one-more.patch")
    assert "\n\nIt is\nneeded.\n\ndiff --git a/block/foo.c b/block/foo.c\n" in more, more
    assert "more.c" not in more and "Signed-off" not in more and "Dev" not in more, more
    assert f.read("patches/7.3/series").endswith("0004-foo-one-more.patch \\\n\tblock/more.c\n")
    before = state(f.root / "patches")
    f.ok("refresh")
    assert state(f.root / "patches") == before
    shutil.rmtree(f.tree)
    f.ok("tree")
    assert f.head_tree() == tree


def test_refresh_takes_an_edited_commit(f):
    """A rebase that edits, rewords and drops."""
    f.git("checkout", "-q", "-B", "series", "base")
    f.git("cherry-pick", "section/batching")
    foo = (f.tree / "block/foo.c").read_text()
    f.commit("foo: count", {"block/foo.c": foo.replace("int count;", "long count;")}, "--amend")
    f.git("cherry-pick", MADE + "~1")
    f.git("commit", "-q", "--amend", "-m", "foo: reworded")
    tree = f.head_tree()
    f.ok("refresh")
    assert f.head_tree() == tree
    assert "+long count;" in f.read("patches/7.3/0001-foo-count.patch")
    assert f.list_mails() == ["0001-foo-count.patch", "0002-foo-reworded.patch"]
    assert not (f.root / "tools/policy.sh").exists()
    assert f.git("rev-parse", "section/batching") == f.git("rev-parse", "series~1"), "section lost"


def test_refresh_sections(f):
    """A new one; it may move, with its mails."""
    f.commit("perf: new\n\nWhy.\n\nSection: speed", {"tools/speed.c": "int s;\n"})
    f.ok("refresh")
    assert f.git("rev-parse", "section/speed") == f.git("rev-parse", "series")
    assert "Section" not in f.git("log", "-1", "--format=%B")
    assert f.git("log", "-1", "--format=%b") == "Why."
    f.commit("late\n\nSection: batching", {"tools/late.c": "int s;\n"})
    f.refused("refresh", words=["late", "batching"])
    f.git("checkout", "-q", "-B", "series", "base")
    f.git("cherry-pick", MADE)
    f.git("cherry-pick", f"base..{MADE}~1")
    f.ok("refresh")
    assert re.findall(r"\[.*|#.*", f.read(LIST)) == [
        "# the file's own comment", "[speed]", "[batching]", "[policy]"]
    assert f.list_mails()[0] == "0001-perf-new.patch"


@pytest.mark.parametrize("path, text, word", [
    ("block/stat.c", "int rooms;\n", "git stash"), ("block/policy.c", "int rooms;\n", "cherry-pick"),
    ("patches/7.3/0001-foo-count.patch", mail("foo: count", MAILS["0001-foo-count.patch"].partition(
        "---\n\n")[2], "For a better reason."), "was edited"),
    ("block/more.c", "int rooms;\n", "block/more.c, new in")])
def test_refresh_refuses_newer_rooms(f, path, text, word):
    """Until all is as the tree was made of it, and nothing is where a new file goes."""
    before = f.read(path) if (f.root / path).exists() else None
    f.commit("policy: fix", {"block/policy.c": "int tree;\n", "block/more.c": "int tree;\n"})
    f.write({path: text})
    contents = f.contents()
    f.refused("refresh", words=[word, "nothing was written"])
    assert f.contents() == contents
    f.write({path: before or "int tree;\n"})
    f.ok("refresh")
    assert f.read("block/policy.c") == f.read("block/more.c") == "int tree;\n"


def test_refresh_refuses_what_makes_no_series(f):
    write(f.tree, {"block/foo.c": "mine\n"})
    f.refused("refresh", words=["uncommitted"])
    f.git("commit", "-q", "-a", "-m", "fixup! foo: count")
    f.refused("refresh", words=["autosquash"])
    f.git("commit", "-q", "--amend", "-m", "x\n\nA table:\n--- cut\nlost")
    f.refused("refresh", words=["would not survive a mail"])
    f.edit(LIST, "0003-tools.patch tools/policy.sh\n", "")
    f.refused("refresh", words=["the series, or a file that it lists, was edited"])
    f.git("reset", "-q", "--hard", MADE)
    f.refused("refresh", words=["no new commits", "make tree"])


# --- a series for another kernel ----------------------------------------------
def another(f):
    """Linux 6.12 has three lines more on top, and one that differs. Its series numbers
    the second mail anew and has no mail of its own."""
    f.ok("refresh")  # gives the mails of 7.3 their names
    f.ksrc = f.root.parent / "ksrc-6.12"
    write(f.ksrc, {**KERNEL, "Makefile": "VERSION = 6\nPATCHLEVEL = 12\n",
                   "block/foo.c": "int a;\nint b;\nint c;\n" + KERNEL["block/foo.c"].replace(
                       "int line23;", "int else;")})
    f.first, f.patches = f.patches, f.root / "patches/6.12"
    covers = {path.name: path.read_text().replace("7.3", "6.12")
              for path in f.first.glob("*.cover")}
    write(f.patches, {**covers, "series": f.read("patches/7.3/series").replace("0002", "0009")})
    f.tree, f.mails = f.root / "build/6.12/linux-6.12", f.root / "build/6.12/series-6.12"
    f.extra = {"KVER": "6.12", "KSRC": str(f.ksrc)}


def test_shared_mails(f):
    """Their hunks move, and they are not kept twice."""
    another(f)
    moved = hook(10, "int line10;", "int count;").replace("-7,7 +7,7", "-10,7 +10,7")
    write(f.patches, {"0001-foo-count.patch": mail("foo: count", moved)})
    f.ok("tree")
    made, before = f.git("rev-parse", MADE), state(f.first)
    text = f.ok("refresh")
    assert "removed patches/6.12/0001-foo-count.patch" in text and "wrote" not in text, text
    assert not f.list_mails() and state(f.first) == before
    assert "0002-foo-a-policy-for-ber.patch" in f.read("patches/6.12/series")
    f.ok("tree")
    assert "removed" not in f.ok("refresh") and f.git("rev-parse", MADE) == made
    foo = (f.tree / "block/foo.c").read_text().splitlines()
    assert foo[12] == "int count;" and foo[22] == "int pol;", foo
    f.ok("export")
    f.ok("verify")
    text = (f.mails / "batching/0001-foo-count.patch").read_text()
    assert "@@ -10,7 +10,7 @@" in text, text


def test_shared_mails_part_when_they_differ(f):
    """One by its message, the next by a hunk; the third stays shared."""
    another(f)
    f.ok("tree")
    before, foo = state(f.first), (f.tree / "block/foo.c").read_text()
    f.git("checkout", "-q", "-B", "series", "section/batching")
    f.git("commit", "-q", "--amend", "-m", "foo: count\n\nFor 6.12.")
    write(f.tree, {"block/foo.c": foo.replace("int pol;", "int older;")})
    f.git("checkout", f"{MADE}~1", "--", "block/policy.c")
    f.git("commit", "-q", "-a", "-C", f"{MADE}~1")
    f.git("cherry-pick", MADE)
    tree = f.head_tree()
    f.ok("refresh")
    assert f.head_tree() == tree and state(f.first) == before
    assert f.list_mails() == ["0001-foo-count.patch", "0002-foo-a-policy-for-ber.patch"]
    assert "\n\nFor 6.12.\n" in (f.patches / "0001-foo-count.patch").read_text()
    text = (f.patches / "0002-foo-a-policy-for-ber.patch").read_text()
    assert "+int older;" in text and "\n\nAs for Linux 7.3.\n\ndiff --git " in text, text
    shutil.rmtree(f.tree)
    f.ok("tree")
    assert f.head_tree() == tree
    assert "  a   table" in f.git("log", "-1", "--format=%b", f"{MADE}~1")


def test_shared_mails_that_do_not_fit(f):
    """Context must match, and so must one name; the message says where to look."""
    another(f)
    foo, own = (f.ksrc / "block/foo.c").read_text(), "6.12/0009-foo-a-policy-for-ber.patch"
    write(f.ksrc, {"block/foo.c": foo.replace("int line22;", "int other;")})
    f.refused("tree", words=["does not apply", own, "block/foo.c",
                             "7.3/0002-foo-a-policy-for-ber.patch"])
    write(f.first, {"0007-foo-a-policy-for-ber.patch": ""})
    f.refused("tree", words=[own, "there or in 7.3"])
    write(f.patches, {own[5:]: mail("foo: a policy", body="As for Linux 7.3.")})
    f.refused("tree", words=[own, "7.3 has no one mail of that name"])


# --- export and verify -------------------------------------------------------
def test_export_and_am_make_the_tree(f):
    text = f.ok("verify")
    assert "ok: git am of 3 mails" in text, text
    names = sorted(str(p.relative_to(f.mails)) for p in f.mails.rglob("*.patch"))
    assert names[:2] == ["batching/0000-cover-letter.patch", "batching/0001-foo-count.patch"]
    assert len(names) == 5 and names[3].startswith("policy/0001-"), names
    first, second = ((f.mails / s / "0000-cover-letter.patch").read_text()
                     for s in ("batching", "policy"))
    assert "Subject: [PATCH 0/1] foo: counting\n" in first and "Why we count." in first, first
    assert "block/stat.c |" in first and "base-commit: " in first
    assert "prerequisite-patch-id" not in first and "prerequisite-patch-id" in second, second
    assert "[RFC PATCH 0/2] foo: a policy\n" in second and "Why \u00fc matters." in second, second
    assert "[RFC PATCH 2/2] tools: show" in (f.mails / names[-1]).read_text(), names
    for path in f.mails.rglob("*.patch"):
        text = path.read_text()
        assert "HERE ***" not in text and "Signed-off-by" not in text
        assert "From: plug_policy series <plug-policy@example.invalid>\n" in text, text
    box = (f.mails / "policy.mbox").read_text()
    assert re.findall(r"PATCH ./2\]", box) == ["PATCH 1/2]", "PATCH 2/2]"], box
    again = state(f.mails)
    f.ok("export")
    assert {n: s[2] for n, s in again.items()} == {n: s[2] for n, s in state(f.mails).items()}
    assert "export/" not in f.git("branch")
    f.git("reset", "-q", "--hard", "section/batching")
    f.git("am", "-q", str(f.mails / "policy.mbox"))
    assert f.head_tree() == f.git("rev-parse", "section/policy^{tree}")


def test_export_fills_figures_of_mails(f, monkeypatch):
    """As long as they are of this very code; where nothing is measured, with none."""
    monkeypatch.setattr(measured, "FILE", f.root / "patches/7.3/figures.json")
    f.edit("patches/7.3/0001-foo-count.patch", "Because.", "Because.\n\n@figures rand4k-s32")
    f.ok("tree")
    f.ok("export")
    f.ok("verify")
    text = (f.root / MAILED).read_text()
    assert "\nBecause.\n---\n" in text, text
    timed = {"ns_per_io": 48.04, "ratio": 1.1, "ci_low": 1.05, "ci_high": 1.2, "quiet": True}
    for code, words in (("0" * 16, "(This code has not been measured"),
                        (None, "rand4k-s32                       48.0   1.100 (1.050 to 1.200)")):
        code = code or measured.code_at(Git(f.tree), "section/batching")
        f.write({"patches/7.3/figures.json": json.dumps({"mails": {"foo: count": {
            "code": code, "rows": {"rand4k-s32": [timed]}}}})})
        f.ok("export")
        assert words in (f.root / MAILED).read_text()
        f.ok("verify")


def test_figures_of_mails_that_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FILE", tmp_path / "figures.json")
    for subject, there in (("a: old", {"a: old", "a: kept"}), ("a: kept", {"a: old", "a: kept"}),
                           ("a: new", {"a: kept", "a: new"})):
        measured.save_mail(subject, "0", {}, there)
    assert list(measured.load()["mails"]) == ["a: kept", "a: new"]


def test_export_from_the_sender(f):
    f.ok("export", FROM="Ada Example <ada@example.invalid>")
    for path in f.mails.rglob("*.patch"):
        text = path.read_text()
        assert "From: Ada Example <ada@example.invalid>\n" in text and "plug-policy@" not in text
    f.ok("verify")
    f.refused("export", FROM="Bob", words=["Bob", "Name <mail@host>"])


def test_verify_takes_covers_at_their_word(f):
    """A hunk beside one of the section before needs that section."""
    mail2 = f.patches / "0002-foo-policy.patch"
    near = hook(12, "int line12;", "int pol;").replace(" int line10;", " int count;")
    mail2.write_text(mail("foo: a policy for \u00fcber", near))
    f.ok("tree")
    f.ok("export")
    f.ok("verify")
    assert f.git("rev-parse", "refs/stacks/policy^{tree}") == f.head_tree()
    assert f.git("diff", "refs/stacks/batching", "section/batching") == ""
    f.edit(COVER, "on: batching", "on: Linux 7.3")
    f.refused("verify", words=["policy on what its cover says", "block/foo.c"])
    assert "stacks/policy" not in f.git("for-each-ref")
