#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Proves that each commit of the series stands on its own, in a work tree of its own.

on-gcc, off-gcc
    the options that the series adds, and its KUnit tests, all on or all off: make
    -Werror of the directories with hooks and of what else it changes, and no
    symbol that nothing defines
on-clang, off-clang
    the same, at the last commit of each section
doc, html
    at the last commit: kernel-doc says no more than of the base, and the pages are
    made without a warning

What has passed is remembered by its sources. --since: only commits that changed, as
a section's mails, another place or a file of theirs show; nothing of the last
commit alone. checkpatch, sparse and W=1 are for make lint, linking for make kernel.
"""
import argparse
import collections
import functools
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

from scripts.checks import c_style, tap, touches
from scripts import common
from scripts import kernel
from scripts.series import env
from scripts.series.files import parse_series
from scripts.kbuild.configs import (Config, Series, TESTS, WIDER, alone, fragment, kconfigs,
                                    own_objects)
from scripts.kernel import git

TREE = kernel.TREE + "-each-commit"
OUT = Path(kernel.BUILD, "each-commit")
PROVEN = OUT / "proven.json"

# name: (compiler, are the options on)
CONFIGS = {
    "on-gcc": ("gcc", True),
    "off-gcc": ("gcc", False),
    "on-clang": ("clang-19", True),
    "off-clang": ("clang-19", False),
}

# No compiler reads these.
UNCOMPILED = ("Documentation", "MAINTAINERS", "tools")


# --- compilers ----------------------------------------------------------------

class Compiler(Config):

    def __init__(self, name, series):
        cc, self.on = CONFIGS[name]
        self.series = series
        # KUnit as a module could not test what is static
        self.options = dict.fromkeys([*TESTS, *series.options()],
                                     "y" if self.on else "n")
        super().__init__(f"each-commit: {name}", TREE, f"o-{name}",
                         WIDER + fragment(self.options), own_objects(series.files), cc)
        self.kconfigs = kconfigs(series.files)

    def compile(self):
        """Build what is checked out; {undefined symbol: object}."""
        self.configure(self.kconfigs, self.options)
        text, code = self.make("-k", "KCFLAGS=-Werror", *self.targets(self.on))
        if code:
            raise kernel.BuildError("\n".join(map(": ".join, c_style.findings(text)))
                                    or text[-2000:])
        return self.symbols()[0]

    def base_symbols(self):
        """What nothing of this defines at the base, either."""
        key = common.digest(self.series.base, self.text, self.version, self.others)
        path = OUT / f"base-{key}.json"
        if not path.exists():
            print(f"each-commit: the base, {self.out[2:]}", flush=True)
            kernel.ensure_checkout(TREE, self.series.base)
            common.write_json(str(path), sorted(self.compile()))
        return set(json.loads(path.read_text(encoding="utf-8")))

    def find(self, sha):
        known = self.base_symbols()
        kernel.ensure_checkout(TREE, sha)
        undefined = self.compile()
        return [f"{undefined[name]}: nothing defines {name}"
                for name in nowhere(sorted(set(undefined) - known), self.series.files)]


def nowhere(symbols, ours):
    """Those of some symbols that only our files name."""
    if not symbols:
        return []
    named = subprocess.run(
        ["git", "-C", TREE, "grep", "-ohwF", *(f"-e{name}" for name in symbols),
         "--", "*.[chS]", *(f":!{path}" for path in ours)],
        stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    return [name for name in symbols if name not in named.stdout.split()]


# --- the last commit ----------------------------------------------------------

def doc(series):
    """What kernel-doc says of C that the series changes and not of the base's."""
    def said(commit, names):
        kernel.ensure_checkout(TREE, commit)
        text = c_style.kernel_doc(TREE, names, TREE)
        # as it would be of the unpatched file
        return collections.Counter(re.sub(r":\d+\b", "", text).splitlines())

    names = [path for path in series.files
             if path.endswith((".c", ".h")) and not path.startswith("tools/")]
    old = [path for path in names if series.files[path] == "M"]
    return list((said(series.tip, names) - said(series.base, old)).elements())


def get_abi():
    """The program that reads Documentation/ABI: 6.12 has it in Perl."""
    for path in Path(TREE, "tools/docs", "get_abi.py"), Path(TREE, "scripts", "get_abi.pl"):
        if path.exists():
            return path
    raise kernel.BuildError(f"no get_abi in {TREE}")


def html(series):
    """What sphinx says of our pages, and those that it did not make."""
    kernel.ensure_checkout(TREE, series.tip)
    out = Path(TREE, "o-docs")
    shutil.rmtree(out, ignore_errors=True)
    text, code = kernel.run(["make", "-C", TREE, "O=o-docs", "htmldocs", "SPHINXDIRS=block"],
                            "each-commit: htmldocs")
    if code:
        return [f"make htmldocs failed:\n{text[-2000:]}"]
    pages = [name for name in series.files if name.startswith("Documentation/")]
    text += kernel.run([get_abi(), "validate"], "each-commit: get_abi", cwd=TREE)[0]
    lines = [line for line in text.splitlines()
             if any(name in line for name in pages)]
    made = out / "Documentation/output"
    return lines + [f"{name}: no page was made of it" for name in pages if name.endswith(".rst")
                    and not (made / Path(*Path(name).parts[1:]).with_suffix(".html")).exists()]


OF_THE_TIP = {"doc": doc, "html": html}


# --- the run ------------------------------------------------------------------

def blobs(text, there):
    """The mail of each entry of a series file; a mail that the kernel's own
    directory lacks is its twin.

    there: {path below patches/: blob}
    """
    def title(path):
        return re.sub(r"/\d+-", "/", path)

    twins = {title(path): blob for path, blob in there.items()}
    return [there.get(f"{env.BASE}/{entry.name}") or twins.get(
        title(f"{env.FIRST}/{entry.name}")) for entry in
            parse_series(text, "series").entries]


def changed_commits(series, since):
    path = env.shown(env.PATCHES / "series")
    before = dict(reversed(row.split()[2:]) for row in touches.git(
        "ls-tree", "-r", since + ":patches"))
    mails = [name for name in touches.files() if name.startswith("patches/")]
    now = dict(zip((name.removeprefix("patches/") for name in mails),
                   touches.git("hash-object", *mails)))
    old = blobs("\n".join(touches.git("show", f"{since}:{path}")), before)
    text = (env.ROOT / path).read_text(encoding="utf-8")
    new, entries = blobs(text, now), parse_series(text, path).entries
    sections = {entry.section for entry, blob in zip(entries, new)
                if blob not in old}
    places = set(zip([None, *old], old))
    files = {name for name in touches.changed(since)
             if name.split("/")[0] not in UNCOMPILED}
    return [commit for commit, entry, *place in zip(
        series.commits, entries, [None, *new], new)
            if entry.section in sections or tuple(place) not in places
            or not files.isdisjoint(entry.files)]


def plan(series, wanted, since=""):
    """[(commit, check, what its result depends on, what finds)], in order."""
    compilers = {name: Compiler(name, series) for name in CONFIGS}
    found = [(sha, name, key(series, sha, name, one.text, one.version),
              functools.partial(one.find, sha))
             for sha in series.commits for name, one in compilers.items()
             if one.cc == "gcc" or sha in series.ends]
    if since:
        asked = changed_commits(series, since)
        found = [one for one in found if one[0] in asked]
    else:
        found += [(series.tip, name, key(series, series.tip, name),
                   functools.partial(find, series)) for name, find in OF_THE_TIP.items()]
    return [one for one in found if not wanted or one[1] in wanted]


def key(series, sha, check, *more):
    """Names all that the result of a check depends on."""
    skipped = UNCOMPILED if check in CONFIGS else ()
    return common.digest(check, series.base, [
        row for row in git("ls-tree", sha).splitlines()
        if row.split("\t")[1] not in skipped], more)


def known():
    try:
        return json.loads(PROVEN.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def outcome(find):
    """The findings of a check; what it breaks off with is one."""
    try:
        return find()
    except kernel.BuildError as error:
        return [str(error)]


def run(series, checks, fresh):
    report, proven, last = tap.Report(), {} if fresh else known(), None
    for sha, check, name, find in checks:
        subject = git("log", "-1", "--format=%s", sha)
        if sha != last:
            print(f"# {series.commits.index(sha) + 1}/{len(series.commits)} {subject}",
                  flush=True)
        last, start = sha, time.monotonic()
        found = [] if name in proven else outcome(find)
        took = "passed earlier" if name in proven else f"{time.monotonic() - start:.0f} s"
        report.check(not found, f"{check}, {took}: {sha[:12]} {subject}", "\n".join(found))
        if not found and name not in proven:
            proven[name] = f"{check}: {subject}"
            common.write_json(str(PROVEN), proven)   # now: we may be interrupted
    if not checks:
        report.skip("each-commit", "no commit has changed")
    report.exit()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="append",
                        choices=[*CONFIGS, *OF_THE_TIP],
                        help="make this check only; may be given several times")
    parser.add_argument("--since", metavar="COMMIT", default="",
                        help="only what has changed since")
    parser.add_argument("--fresh", action="store_true",
                        help="do not believe what has passed earlier")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    with common.program("each-commit", kernel.BuildError,
                        advice="; run it again to go on"), \
            alone("each-commit"):
        series = Series("series")
        run(series, plan(series, args.check, args.since), args.fresh)


if __name__ == "__main__":
    main()
