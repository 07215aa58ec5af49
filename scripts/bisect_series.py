#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Proves that each commit of the series stands on its own.

At every commit of base..series, in a worktree of its own:

on-gcc, off-gcc, on-clang, off-clang
    the options that the series adds, its KUnit tests with them, are all on or
    all off; make W=1 of the directories with hooks, of what else the series
    changes and of kernel/sched/core.o; of these directories clang compiles
    what the series changes, and all of them at the last commit of each
    section.  No message that the base does not draw; on-gcc: from sparse, too.
    No symbol that nothing defines.  What make compiles again, it checks again:
    all that includes a changed header.
patch   checkpatch --strict of the commit as a mail
doc     kernel-doc -Wall of the files that the commit changes
cocci   scripts/coccinelle on the files that the series changes, at the last
        commit of each section, but for those few scripts that need an OCaml
        compiler
model   the modules of ssd_model, and the programs of the kselftests: where the
        commit changes them, and at the last commit
html    the documentation, at the last commit of each section

Left out: what else includes a changed header (drivers, file systems, mm), the
link to vmlinux, and modules.  `make kernel` and `make matrix` have those, at
the last commit.

What was proven is remembered by the content of the sources and by what was
asked of them, so that a second run asks only what is new.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import checks
import common
import kernel
from configs import (Config, DIRECTORIES, TESTS, WIDER, digest, fragment,
                     own_objects, own_options)

TREE = kernel.TREE + "-bisect"
OUT = os.path.join(kernel.BUILD, "bisect")
RESULT = os.path.join(OUT, "result.json")
PLUG = "tools/testing/selftests/block-plug/"

# name: (compiler, are the options on)
CONFIGS = {
    "on-gcc": ("gcc", True),
    "off-gcc": ("gcc", False),
    "on-clang": ("clang-19", True),
    "off-clang": ("clang-19", False),
}
CHECKS = [*CONFIGS, "patch", "doc", "cocci", "model", "html"]

# No compiler reads these, but for the programs of "model".
UNCOMPILED = ("Documentation", "MAINTAINERS", "tools")


def git(*args, tree=kernel.TREE, **more):
    """What git prints."""
    done = subprocess.run(["git", "-C", tree, *args], text=True,
                          errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **more)
    if done.returncode:
        raise kernel.BuildError("git %s: %s" % (args[0], done.stderr.strip()))
    return done.stdout.strip()


def changes(old, new):
    """{path: "A" or "M"} of what lies in new and not so in old."""
    rows = git("diff", "--no-renames", "--diff-filter=AM", "--name-status",
               old, new).splitlines()
    return dict(reversed(row.split("\t")) for row in rows)


def is_c(path):
    """Is this C of the kernel?"""
    return path.endswith((".c", ".h")) and not path.startswith("tools/")


class Commit:
    """A commit, and what of it is checked."""

    def __init__(self, sha, number, parent):
        self.sha = sha
        self.number = number
        self.parent = parent
        self.subject = git("log", "-1", "--format=%s", sha)
        self.files = changes(parent, sha)
        self.last = False
        self.results = {}

    def sources(self):
        """Names the content of all that is compiled."""
        top = [line for line in git("ls-tree", self.sha).splitlines()
               if line.split("\t")[1] not in UNCOMPILED]
        tools = [line for line in git("ls-tree", self.sha,
                                      "tools/").splitlines()
                 if line.split("\t")[1] not in ("tools/testing",
                                                "tools/block")]
        return digest(top, tools)

    def has(self, path):
        """Does this file lie in the commit's tree?"""
        return bool(git("ls-tree", "--name-only", self.sha, path))

    def status(self):
        """The worst of the results."""
        return "FAILED" if any(r["status"] == "failed"
                               for r in self.results.values()) else "ok"


class Series:
    """The commits to check, and what they are compared with."""

    def __init__(self, tip):
        self.base = git("rev-parse", "base^{commit}")
        self.tip = git("rev-parse", "--verify", tip + "^{commit}")
        shas = git("rev-list", "--reverse", "--first-parent",
                   self.base + ".." + self.tip).split()
        parents = [self.base, *shas]
        self.commits = [Commit(sha, number + 1, parents[number])
                        for number, sha in enumerate(shas)]
        self.files = changes(self.base, self.tip)
        self.mark_last()

    def mark_last(self):
        """Which commits end a section; the last one does in any case."""
        ends = git("for-each-ref", "--format=%(objectname)",
                   "refs/tags/section/").split() + [self.tip]
        for commit in self.commits:
            commit.last = commit.sha in ends

    def options(self):
        """The options that the series adds."""
        return own_options(self.files, lambda path: git(
            "diff", self.base, self.tip, "--", path))

    def select(self, only, start):
        """The commits that the user asks for, by number or by name."""
        chosen = self.commits
        if start:
            chosen = chosen[self.find(start).number - 1:]
        if only:
            wanted = [self.find(name).number for name in only]
            chosen = [c for c in chosen if c.number in wanted]
        return chosen

    def find(self, name):
        """A commit of the series."""
        for commit in self.commits:
            if name == str(commit.number) or (
                    len(name) >= 4 and commit.sha.startswith(name)):
                return commit
        raise kernel.BuildError("'%s' is not a commit of the series; wanted is"
                                " a number from 1 to %d or an abbreviated name"
                                % (name, len(self.commits)))


class Store:
    """What was found out earlier, by what it depends on."""

    def __init__(self, name):
        self.path = os.path.join(OUT, name)
        try:
            with open(self.path, encoding="utf-8") as text:
                self.known = json.load(text)
        except (OSError, ValueError):
            self.known = {}

    def add(self, key, value):
        """Remember, now: we may be interrupted."""
        self.known[key] = value
        common.write_json(self.path, self.known)


class Worktree:
    """Our own checkout, which goes from commit to commit."""

    def __init__(self):
        self.head = None

    def go(self, sha):
        """Be at a commit; untouched files keep their time for make."""
        if self.head != sha:
            if not os.path.isdir(TREE):
                git("worktree", "prune")
                git("worktree", "add", "-q", "--detach", TREE, sha)
            git("checkout", "-q", "-f", "--detach", sha, tree=TREE)
        self.head = sha


# --- compilers ----------------------------------------------------------------

class Compiler(Config):
    """One configuration, built by one compiler in one output directory."""

    def __init__(self, name, series):
        cc, self.on = CONFIGS[name]
        value = "y" if self.on else "n"
        # KUnit as a module could not test what is static
        self.options = dict.fromkeys([*TESTS, *series.options()], value)
        super().__init__("bisect: " + name, TREE, "o-" + name,
                         WIDER + fragment(self.options),
                         own_objects(series.files), cc)
        self.name = name
        self.series_files = series.files
        self.kconfigs = [path for path in series.files
                         if os.path.basename(path).startswith("Kconfig")
                         and not path.startswith("tools/")]
        self.dirty = os.path.join(self.path, ".bisect-dirty")
        # With the options off sparse finds what it finds with them on.
        self.sparse = checks.SPARSE[1:2] if cc == "gcc" and self.on else []

    def take(self):
        """Take the options, those that the tree has by now."""
        self.configure(self.kconfigs, self.options)

    def mine(self):
        """What the series changes, and what is not of the directories."""
        # make compiles an explicit goal also where no option asks for it
        kinds = "AM" if self.on else "M"
        mine = [path[:-1] + "o" for path, kind in self.series_files.items()
                if kind in kinds and path.endswith(".c")
                and path.startswith(tuple(DIRECTORIES))
                and os.path.exists(os.path.join(self.tree, path))]
        return [name for name in self.targets(self.on)
                if not name.endswith("/")] + mine

    def calls(self, whole):
        """Arguments of make, call by call: clang and sparse read all of the
        directories only if whole."""
        every = self.targets(self.on)
        if self.sparse:
            return [["C=2", *self.sparse, *every]] if whole else [
                ["C=1", *self.sparse, *self.mine()], every]
        return [every if whole or self.cc == "gcc" else self.mine()]

    def build(self, whole=True):
        """Build: (findings, undefined symbols, what went wrong).

        All is compiled again, and speaks again, next time, unless settle()d.
        """
        self.take()
        if os.path.exists(self.dirty):
            self.wipe()
        self.unsettled()
        text, code = "", 0
        for call in self.calls(whole):
            said, failed = self.make("-k", "W=1", *call)
            text, code = text + said, code or failed
        with open(os.path.join(OUT, self.name + ".log"), "w",
                  encoding="utf-8") as log:
            log.write(text)
        wrong = "make failed:\n" + text[-2000:] if code else ""
        return checks.findings(text), self.symbols()[0], wrong

    def unsettled(self):
        """What is here may have spoken, and nobody heard it."""
        os.makedirs(self.path, exist_ok=True)
        open(self.dirty, "w", encoding="ascii").close()

    def settle(self, files):
        """What was built needs no second look, but for files that spoke; a
        header that did may speak anywhere."""
        if all(name.endswith((".c", ".o")) for name in files):
            for name in files:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name[:-1] + "o"))
            os.unlink(self.dirty)


def nowhere(symbols, known):
    """Those of some symbols that the base's sources do not even name."""
    unknown = [name for name in symbols if name not in known]
    if unknown:
        kernel.ensure_checkout(kernel.BASE, "base")
        # one pass, over files: out of a commit it takes minutes
        done = subprocess.run(
            ["git", "-C", kernel.BASE, "grep", "-ohwF",
             *["-e" + name for name in unknown], "--", "*.[chS]"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            errors="replace", check=False)
        named = set(done.stdout.split())
        known.update((name, name in named) for name in unknown)
    return [name for name in symbols if not known[name]]


# --- checks that compile nothing ----------------------------------------------

# Of 37 files at once deref_null.cocci needs more stack than the usual 8 MiB.
SPATCH = """report()
{
	spatch -D report --no-show-diff --very-quiet --cocci-file "$script" \\
		$(sed -n 's/.*Options://p' "$script") -I include "$@" 2>&1
}
script=$0
out=$(report "$@") || out=$(for file; do
	report "$file" || echo "$script: exit $?: $file"
done)
printf '%s\\n' "$out"
"""


def cocci_scripts():
    """The semantic patches that can report, without an OCaml compiler."""
    found = []
    for name in git("ls-files", "scripts/coccinelle/*.cocci",
                    tree=TREE).split():
        path = os.path.join(TREE, name)
        with open(path, encoding="utf-8", errors="replace") as text:
            script = text.read()
        if re.search(r"^virtual\s+report", script, re.M) \
                and ":ocaml" not in script:
            found.append(path)
    return found


def cocci(names, top=TREE):
    """What coccinelle says of files below top: lines without line numbers."""
    with tempfile.TemporaryFile("w+") as scripts:
        scripts.write("\n".join(cocci_scripts()))
        scripts.seek(0)
        # the script is $0, so the files go before it
        text, code = checks.run(
            ["xargs", "-P", str(os.cpu_count() or 1), "-I", "{}", "sh", "-c",
             SPATCH, "{}", *names], "bisect: cocci", cwd=top, stdin=scripts)
    lines = [line for line in text.splitlines()
             if re.match(r"\S+:\d+:\d+-\d+: |\S+: exit ", line)]
    if code:
        lines.append("%s: coccinelle: exit %d" % (names[0], code))
    return [without_numbers(line) for line in lines]


def without_numbers(line):
    """A message as it would be of the unpatched file."""
    line = re.sub(r":\d+(:\d+)?(-\d+)?\b", "", line)
    return re.sub(r"\bline \d+", "line N", line)


def new_lines(lines, base):
    """Lines that come more often than in the base."""
    left = list(base)
    result = []
    for line in lines:
        if line in left:
            left.remove(line)
        else:
            result.append(line)
    return result


# --- the run ------------------------------------------------------------------

class Bisect:
    """All checks of all commits."""

    def __init__(self, series, fresh):
        self.series = series
        self.fresh = fresh
        self.proven = Store("proven.json")
        self.facts = Store("facts.json")
        self.symbols = {}
        self.tree = Worktree()
        self.compilers = {name: Compiler(name, series) for name in CONFIGS}
        self.start = time.monotonic()

    # each check: its key, and what it finds

    def base_build(self, compiler):
        """What a compiler says of the base: [findings, undefined symbols]."""
        key = digest("base", compiler.name, compiler.text, compiler.sparse,
                     compiler.version, self.series.base, compiler.others)
        if key not in self.facts.known:
            step("base, %s" % compiler.name)
            self.tree.go(self.series.base)
            compiler.unsettled()
            found, symbols, wrong = compiler.build()
            if wrong:
                raise kernel.BuildError("the base itself: " + wrong)
            self.facts.add(key, [[*k, n] for k, n in found.items()]
                           + [["", name, 1] for name in symbols])
            compiler.settle([])
        rows = self.facts.known[key]
        return ({(a, b): n for a, b, n in rows if a},
                {b for a, b, n in rows if not a})

    def build_key(self, commit, name):
        """What a build depends on."""
        c = self.compilers[name]
        return digest("build", name, c.text, c.sparse, c.version,
                      self.series.base, c.others, DIRECTORIES,
                      commit.sources(), commit.last)

    def build(self, commit, name):
        """One configuration."""
        compiler = self.compilers[name]
        base, base_symbols = self.base_build(compiler)
        self.tree.go(commit.sha)
        found, symbols, wrong = compiler.build(commit.last)
        lines = checks.added(found, base)
        if lines or not wrong:
            compiler.settle([line.split(":")[0] for line in lines])
        if compiler.cc != "gcc" and not commit.last:
            symbols = {}        # what was not built defines most of them
        new = [symbol for symbol in symbols if symbol not in base_symbols]
        lines += ["%s: nothing defines %s" % (symbols[symbol], symbol)
                  for symbol in nowhere(new, self.symbols)]
        return lines or ([wrong] if wrong else [])

    def patch_key(self, commit):
        """What checkpatch depends on: the mail, and the tree it is for."""
        return digest("patch", git("rev-parse", commit.sha + "^{tree}"),
                      git("rev-parse", commit.parent + "^{tree}"),
                      git("log", "-1", "--format=%B", commit.sha),
                      checks.IGNORE)

    def patch(self, commit):
        """checkpatch of the commit's mail."""
        self.tree.go(commit.sha)
        with tempfile.TemporaryFile("w+") as mail:
            mail.write(git("format-patch", "-1", "--stdout", commit.sha) + "\n")
            mail.seek(0)
            text, good = checks.checkpatch(TREE, "bisect: checkpatch", "-",
                                           stdin=mail)
        return [] if good else [line for line in text.splitlines() if line]

    def c_files(self, commit):
        """C of the kernel that a commit changes, ssd_model with it."""
        return sorted(path for path in commit.files
                      if is_c(path) or re.match(PLUG + r"ssd_model/.*\.[ch]$",
                                                path))

    def all_c(self, commit):
        """C of the kernel that the series has changed up to a commit."""
        return sorted(path for path in self.series.files
                      if is_c(path) and commit.has(path))

    def blobs(self, sha, names):
        """[(path, blob)] of files."""
        return [(name, git("rev-parse", "%s:%s" % (sha, name)))
                for name in names]

    def doc_key(self, commit):
        """What kernel-doc depends on."""
        return digest("doc", self.blobs(commit.sha, self.c_files(commit)),
                      self.series.base)

    def doc(self, commit):
        """kernel-doc of the files that changed."""
        names = self.c_files(commit)
        self.tree.go(commit.sha)
        return self.beyond_base(names, self.kernel_doc(names), self.kernel_doc)

    @staticmethod
    def kernel_doc(names, top=TREE):
        """What kernel-doc says of files below top."""
        return [without_numbers(line) for line in
                checks.kernel_doc(TREE, names, top).splitlines()]

    def beyond_base(self, names, lines, find):
        """Lines that find() does not say of the base's files; these are read
        only if there is something to compare."""
        old = [name for name in names if self.series.files.get(name) == "M"]
        if not lines or not old:
            return lines
        key = digest(find.__name__, self.series.base, old)
        if key not in self.facts.known:
            # not checked out: make would have to compile everything again
            with tempfile.TemporaryDirectory() as top:
                for name in old:
                    path = os.path.join(top, name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "w", encoding="utf-8") as out:
                        out.write(git("show", self.series.base + ":" + name)
                                  + "\n")
                self.facts.add(key, find(old, top))
        return new_lines(lines, self.facts.known[key])

    def cocci_key(self, commit):
        """What coccinelle depends on."""
        return digest("cocci", self.blobs(commit.sha, self.all_c(commit)),
                      git("rev-parse", commit.sha + ":scripts/coccinelle"),
                      SPATCH, self.series.base)

    def cocci(self, commit):
        """coccinelle on all that has changed so far."""
        names = self.all_c(commit)
        self.tree.go(commit.sha)
        return self.beyond_base(names, cocci(names), cocci)

    def model_key(self, commit):
        """What ssd_model and the tests' programs depend on."""
        return digest("model", commit.sources(), [
            (c.text, c.version) for c in self.compilers.values()],
                      git("ls-tree", "-r", commit.sha, PLUG))

    def model(self, commit):
        """ssd_model as modules, and the programs of the kselftests."""
        self.tree.go(commit.sha)
        lines = programs()
        if commit.has(PLUG + "ssd_model/Makefile"):
            for name in ("on-gcc", "off-gcc", "on-clang"):
                lines += ["%s: %s" % (name, line)
                          for line in modules(self.compilers[name])]
        return lines

    def html_key(self, commit):
        """What the documentation depends on."""
        return digest("html", git("rev-parse", commit.sha + ":Documentation"),
                      commit.sources(), list(self.series.files))

    def html(self, commit):
        """The documentation, without a warning of ours."""
        self.tree.go(commit.sha)
        return html(sorted(self.series.files))

    def applies(self, commit, name):
        """Is there anything to check?"""
        if name == "doc":
            return bool(self.c_files(commit))
        if name == "model":
            touched = any(re.match(PLUG + r".*\.[ch]$|" + PLUG + ".*Makefile$",
                                   path) for path in commit.files)
            return touched or commit.last and commit.has(PLUG + "Makefile")
        return name not in ("html", "cocci") or commit.last

    def check(self, commit, name):
        """One check of one commit, unless its result is known."""
        if name in CONFIGS:
            key = self.build_key(commit, name)
            find = lambda: self.build(commit, name)
        else:
            key = getattr(self, name + "_key")(commit)
            find = lambda: getattr(self, name)(commit)
        if not self.fresh and key in self.proven.known:
            return {"status": "proven earlier", "seconds": 0, "found": []}
        start = time.monotonic()
        try:
            lines = find()
        except kernel.BuildError as error:
            lines = [str(error)]
        seconds = round(time.monotonic() - start, 1)
        if not lines:
            self.proven.add(key, [name, commit.subject, seconds])
        return {"status": "failed" if lines else "ok", "seconds": seconds,
                "found": lines}

    def commit(self, commit, names=CHECKS):
        """All checks of a commit."""
        step("%d/%d %s %s" % (commit.number, len(self.series.commits),
                              commit.sha[:12], commit.subject))
        for name in names:
            if self.applies(commit, name):
                commit.results[name] = result = self.check(commit, name)
                for line in result["found"]:
                    print("  %s: %s" % (name, line.replace("\n", "\n    ")),
                          flush=True)
        print("  %s" % summary(commit), flush=True)


def step(text):
    """What happens now."""
    print("bisect: " + text, flush=True)


def modules(compiler):
    """What compiler and sparse say of ssd_model; its files are all new."""
    model = os.path.join(TREE, PLUG, "ssd_model")
    out = os.path.join(compiler.path, "ssd_model")
    shutil.rmtree(out, ignore_errors=True)
    compiler.take()
    compiler.must("prepare")
    names = sorted(name[:-1] + "o" for name in os.listdir(model)
                   if name.endswith(".c"))
    if not compiler.on:
        names = [name for name in names if "kunit" not in name]
    args = checks.SPARSE if compiler.cc == "gcc" else ["W=1"]
    text, code = compiler.make(*args, kernel.module_source(model, out), *names)
    found = ["%s: %s" % key for key in checks.findings(text)]
    return found or (["make failed:\n" + text[-2000:]] if code else [])


def programs():
    """What gcc says of the programs of the kselftests."""
    source = os.path.join(TREE, PLUG)
    if not os.path.exists(source + "Makefile"):
        return []
    out = os.path.join(TREE, "o-selftests")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    text, code = checks.run(["make", "-C", source, "OUTPUT=" + out],
                            "bisect: programs of the kselftests", cwd=TREE)
    found = ["%s: %s" % key for key in checks.findings(text)]
    return found or (["make failed:\n" + text[-2000:]] if code else [])


def html(files):
    """What sphinx says of our pages, and those that it did not make."""
    out = os.path.join(TREE, "o-docs")
    shutil.rmtree(out, ignore_errors=True)
    text, code = checks.run(
        ["make", "-C", TREE, "O=o-docs", "htmldocs", "SPHINXDIRS=block"],
        "bisect: htmldocs")
    if code:
        return ["make htmldocs failed:\n" + text[-2000:]]
    pages = [name for name in files if name.startswith("Documentation/")
             and os.path.exists(os.path.join(TREE, name))]
    lines = [line for line in text.splitlines()
             if any(name in line for name in pages)]
    for name in pages:
        if name.endswith(".rst"):
            page = os.path.join(out, "Documentation/output",
                                name[len("Documentation/"):-3] + "html")
            if not os.path.exists(page):
                lines.append("%s: no page was made of it" % name)
    text, _ = checks.run([os.path.join(TREE, "tools/docs/get_abi.py"),
                          "validate"], "bisect: get_abi.py", cwd=TREE)
    return lines + [line for line in text.splitlines()
                    if any(name in line for name in pages)]


def summary(commit):
    """One line on a commit."""
    said = ["%s %s" % (name, result["status"] if result["seconds"] < 1 else
                       "%s (%d s)" % (result["status"], result["seconds"]))
            for name, result in commit.results.items()]
    return ", ".join(said)


# --- results ------------------------------------------------------------------

MARKS = {"ok": "ok", "proven earlier": "(ok)", "failed": "FAIL", None: "-"}


def table(commits):
    """The results of all commits, for the eye."""
    rows = ["  n  commit        s  " + " ".join("%-9s" % n for n in CHECKS)
            + " subject"]
    for c in commits:
        cells = [MARKS[c.results[name]["status"] if name in c.results else None]
                 for name in CHECKS]
        seconds = sum(r["seconds"] for r in c.results.values())
        rows.append("%3d  %s %4d  %s %s" % (
            c.number, c.sha[:10], seconds,
            " ".join("%-9s" % cell for cell in cells), c.subject[:48]))
    return rows + ["(ok): proven earlier, with the same content; -: nothing to"
                   " check"]


def totals(commits):
    """How many results of each kind."""
    every = [r["status"] for c in commits for r in c.results.values()]
    return {status: every.count(status)
            for status in ("ok", "proven earlier", "failed")}


def write_result(bisect, commits, complete):
    """result.json; complete: was none left out by interruption?"""
    common.write_json(RESULT, {
        "base": bisect.series.base, "tip": bisect.series.tip,
        "of": len(bisect.series.commits), "complete": complete,
        "seconds": round(time.monotonic() - bisect.start),
        "totals": totals(commits),
        "commits": [{"number": c.number, "commit": c.sha, "subject": c.subject,
                     "status": c.status(), "checks": c.results}
                    for c in commits if c.results]})


def conclude(bisect, commits):
    """Table and totals; the exit status."""
    print("\n".join(table(commits)))
    count = totals(commits)
    failed = [c for c in commits if c.status() == "FAILED"]
    for c in failed:
        print("FAILED %d %s %s: %s" % (
            c.number, c.sha[:12], c.subject,
            " ".join(name for name, r in c.results.items()
                     if r["status"] == "failed")))
    print("%d of %d commits: %d checks passed, %d proven earlier, %d failed; "
          "took %d s" % (len(commits), len(bisect.series.commits), count["ok"],
                         count["proven earlier"], count["failed"],
                         time.monotonic() - bisect.start))
    return 1 if failed or not commits else 0


def alone(name):
    """Two runs would pull the tree from under each other's feet."""
    os.makedirs(os.path.join(kernel.BUILD, name), exist_ok=True)
    return common.locked(os.path.join(kernel.BUILD, ".lock-" + name),
                         kernel.BuildError("another %s is running" % name))


def parse(args):
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Results are in build/bisect/result.json.",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="start", metavar="COMMIT",
                        help="begin with this commit (number or name)")
    parser.add_argument("--only", action="append", metavar="COMMIT",
                        help="check this one; may be given several times")
    parser.add_argument("--check", action="append", choices=CHECKS,
                        help="make this check only; may be given several times")
    parser.add_argument("--tip", default="series", metavar="COMMIT",
                        help="check base..COMMIT instead of base..series")
    parser.add_argument("--fresh", action="store_true",
                        help="do not believe what was proven earlier")
    parser.add_argument("--prove", action="store_true",
                        help="break copies of the last commit in each way, and "
                        "see that it is found")
    return parser.parse_args(args)


def run(args):
    """Check what was asked for; the exit status."""
    series = Series(args.tip)
    commits = series.select(args.only, args.start)
    bisect = Bisect(series, args.fresh)
    done = False
    try:
        for commit in commits:
            bisect.commit(commit, [name for name in CHECKS
                                   if name in (args.check or CHECKS)])
        done = True
    finally:
        write_result(bisect, commits, done and not args.only
                     and not args.start and not args.check)
    return conclude(bisect, commits)


def main():
    """Command line."""
    args = parse(sys.argv[1:])
    with common.program("bisect", kernel.BuildError,
                        advice="; run it again to go on"), alone("bisect"):
        if args.prove:
            import bisect_prove
            sys.exit(bisect_prove.run(args.tip, args.check))
        sys.exit(run(args))


if __name__ == "__main__":
    main()
