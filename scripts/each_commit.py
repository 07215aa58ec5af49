# SPDX-License-Identifier: GPL-2.0
"""Proves that each commit of the series stands on its own, in a work tree of its own.

on-gcc, off-gcc
    the options that the series adds, and its KUnit tests, all on or all off: make
    -Werror of the directories with hooks and of what else it changes, and no
    symbol that nothing defines
on-clang, off-clang
    the same, at the last commit of each section
i386, no-debugfs, ...
    the same at the last commit, in configurations that nothing else here builds
doc, html
    at the last commit: kernel-doc says no more than of the base, and the pages are
    made without a warning

What has passed is remembered by its sources. --since: only commits that changed, as a
section's mails, another place or a file of theirs show; clang for the last of all, and
nothing else of it. checkpatch, sparse and W=1 are for make lint, linking for make kernel."""
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
from scripts import common, kernel
from scripts.series import env
from scripts.series.files import parse_series
from scripts.kbuild.configs import CONFIGS, Config, EACH, ENDS, LAST, Series
from scripts.kernel import git

TREE = kernel.TREE + "-each-commit"
OUT = Path(kernel.BUILD, "each-commit")
PROVEN = OUT / "proven.json"

# Who may name what the directories with hooks use. All of the tree takes a minute.
NEAR = ("include", "arch/x86/include", *kernel.HOOKED_IN)

# No compiler reads these.
UNCOMPILED = ("Documentation", "MAINTAINERS", "tools")


# --- compilers ----------------------------------------------------------------

def compile_one(config, sha):
    """What is wrong with a commit."""
    kernel.ensure_checkout(TREE, sha)
    config.configure()
    text, code = config.make("-k", "KCFLAGS=-Werror", *config.targets())
    if code:
        return list(map(": ".join, c_style.findings(text))) or [text[-2000:]]
    undefined = config.undefined()
    # what the series does not mention is as it was at the base
    ours = re.findall(r"\w+", git("diff", "-U0", config.series.base, sha))
    return [f"{undefined[name]}: nothing defines {name}"
            for name in nowhere(sorted(undefined.keys() & ours), config.series.files)]


def nowhere(symbols, ours):
    """Those of some symbols that only our files name."""
    if not symbols:
        return []
    named = subprocess.run(
        ["git", "-C", TREE, "grep", "-ohwF", *(f"-e{name}" for name in symbols),
         "--", *NEAR, *(f":!{path}" for path in ours)],
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

def title(path):
    """What a mail is known by, whatever its number and its kernel."""
    return re.sub(r"^\d+-", "", Path(path).name)


def hunks(lines):
    """Of a mail: nobody compiles the message."""
    return "\n".join(lines).partition("\ndiff --git ")[2]


def places(entries):
    titles = [title(entry.name) for entry in entries]
    return list(zip(["", *titles], titles))


def changed_commits(series, since):
    path = env.shown(env.PATCHES / "series")
    before = {hunks(touches.git("show", f"{since}:{name}")) for name in touches.git(
        "ls-tree", "-r", "--name-only", since, "patches") if name.endswith(".patch")}
    changed = {title(name) for name in touches.files() if name.split("/")[:2] in
               (["patches", env.BASE], ["patches", env.FIRST])
               and hunks((env.ROOT / name).read_text(encoding="utf-8").splitlines()) not in before}
    files = {name for name in touches.changed(since) if name.split("/")[0] not in UNCOMPILED}
    old, new = (parse_series("\n".join(lines), path).entries for lines in (
        touches.git("show", f"{since}:{path}"),
        (env.ROOT / path).read_text(encoding="utf-8").splitlines()))
    sections = {entry.section for entry in new if title(entry.name) in changed}
    return [commit for commit, entry, place in zip(series.commits, new, places(new))
            if entry.section in sections or place not in places(old)
            or not files.isdisjoint(entry.files)]


def plan(series, wanted, since=""):
    """[(commit, check, what its result depends on, what finds)], in order."""
    asked = changed_commits(series, since) if since else series.commits
    ends = {series.tip} if since else series.ends
    where = {EACH: series.commits, ENDS: ends, LAST: [] if since else [series.tip]}
    configs = {name: Config(name, TREE, series) for name, kind in CONFIGS.items()
               if where[kind.where] and (not wanted or name in wanted)}
    found = [(sha, name, key(series, sha, name, one.text, one.version, one.kind.args),
              functools.partial(compile_one, one, sha))
             for sha in asked for name, one in configs.items() if sha in where[one.kind.where]]
    if not since:
        found += [(series.tip, name, key(series, series.tip, name),
                   functools.partial(find, series)) for name, find in OF_THE_TIP.items()]
    return [one for one in found if not wanted or one[1] in wanted]


def key(series, sha, check, *more):
    """Names all that the result of a check depends on."""
    skipped = UNCOMPILED if check in CONFIGS else ()
    return common.digest(check, series.base, [
        row for row in git("ls-tree", sha).splitlines()
        if row.split("\t")[1] not in skipped], more)


def told(report, check, what, find):
    """A result: whether a check finds nothing. What it breaks off with is a finding."""
    start = time.monotonic()
    try:
        found = find()
    except kernel.BuildError as error:
        found = [str(error)]
    return report.check(not found, f"{check}, {time.monotonic() - start:.0f} s: {what}",
                        "\n".join(found))


def run(series, checks, fresh):
    report, proven = tap.Report(), {}
    if PROVEN.exists() and not fresh:
        proven = json.loads(PROVEN.read_text(encoding="utf-8"))
    for sha, check, name, find in checks:
        what = f"{sha[:12]} {git('log', '-1', '--format=%s', sha)}"
        print(f"# {series.commits.index(sha) + 1}/{len(series.commits)} {check}", flush=True)
        if name in proven:
            report.check(True, f"{check}, passed earlier: {what}")
        elif told(report, check, what, find):
            proven[name] = f"{check}: {what}"
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
            common.locked(f"{OUT}/lock", kernel.BuildError("another each-commit is running")):
        series = Series("series")
        run(series, plan(series, args.check, args.since), args.fresh)


if __name__ == "__main__":
    main()
