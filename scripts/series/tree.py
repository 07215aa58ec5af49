# SPDX-License-Identifier: GPL-2.0
"""build/linux-$KVER: made of the kernel source and the series, and kept up."""
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import env
from .build import Builder, Cache, DoesNotApply
from .env import remove, say, shown, step
from .files import load_series
from .git import (Failure, Git, GitError, check_version, import_directory, import_user_tree,
                  new_repository)

BASE_REF = "refs/tags/base"
MADE = "refs/plug-policy/made"
NEXT = "refs/plug-policy/next"


# --- the kernel source -------------------------------------------------------

@dataclass
class Source:
    label: str
    key: str = ""
    directory: Path = None
    debian: str = ""


def find_source(ksrc):
    if ksrc:
        directory = Path(ksrc).resolve()
        if directory == env.TREE:
            raise Failure(f"KSRC is {shown(env.TREE)} itself; wanted is a tree without the series")
        full = check_version(directory, env.BASE)
        return Source(f"Linux {full} (KSRC)", directory=directory)
    version = env.TARBALL.with_name(f"linux-source-{env.BASE}.version")
    if not env.TARBALL.is_file() or not version.is_file():
        raise Failure(f"{shown(env.TARBALL)} is missing: run scripts/source.sh, or set KSRC=<dir>")
    debian, stat = version.read_text().strip(), env.TARBALL.stat()
    return Source(f"Linux {env.BASE} (Debian linux-source-{env.BASE} {debian})",
                  f"{debian} {stat.st_size} {stat.st_mtime_ns}", debian=debian)


def pinned():
    """The version of Debian's package that the series is for."""
    return re.search(r"^pinned=(\S+)$", (env.PATCHES / "source").read_text(), re.M)[1]


def refuse(source):
    """Has source.sh put the pinned version in the place of one that is newer."""
    step(f"{source.debian} does not take the series; going back to {pinned()}")
    script = Path(__file__).resolve().parents[1] / "source.sh"
    if subprocess.run(["sh", script, "--refuse", source.debian], check=False).returncode:
        raise Failure(f"{source.debian} does not take the series, and {pinned()} is not to be had")


def import_tarball(git, where):
    step(f"unpack {env.TARBALL.name}")
    tar = ["tar", "-xf", env.TARBALL, "-C", where, "--strip-components=1", "--no-same-owner"]
    if subprocess.run(tar, check=False).returncode:
        raise Failure(f"cannot unpack {env.TARBALL}; remove it and run again")
    check_version(where, env.BASE)
    step("store it as the base commit; half a minute")
    return import_directory(git, where)


def import_source(git, source, is_fresh):
    """The base commit. A fresh tree is unpacked where it is to stay."""
    if source.directory:
        step(f"read {source.directory}")
        return git.commit(import_user_tree(git, source.directory), source.label)
    cache = Cache(git)
    base = cache.get(source.key)
    if base:
        return base
    if is_fresh:
        tree = import_tarball(git, git.top)
    else:
        index = git.having(GIT_INDEX_FILE=str(git.dir / "plug-policy" / "import-index"))
        with tempfile.TemporaryDirectory(dir=env.BUILD, prefix="import-") as where:
            tree = import_tarball(index, Path(where))
    base = git.commit(tree, source.label)
    cache.put(source.key, base)
    return base


# --- the tree ----------------------------------------------------------------

def switch(git, tip):
    """Like reset --hard, but files that stay as they are keep their times, and
    files that nobody ever committed are not overwritten."""
    try:
        git("checkout", "-q", "--no-overwrite-ignore", "-B", "series", tip)
    except GitError:
        git("update-ref", "-d", NEXT)
        raise


def section_tips(base, series, commits):
    tips, tip = {}, base
    for section in series.sections:
        for entry, commit in zip(series.entries, commits):
            tip = commit if entry.section == section else tip
        tips[f"refs/tags/section/{section}"] = tip
    return tips


def publish(git, base, series, commits):
    """Moves work tree and refs to the commits. NEXT stands while that is going
    on, for an interrupted run to be finished by the next."""
    tip = [base, *commits][-1]
    git("update-ref", NEXT, tip)
    if git.ref("HEAD") != tip or git.ref("refs/heads/series") != tip:
        switch(git, tip)
    refs = {BASE_REF: base, MADE: tip, **section_tips(base, series, commits)}
    stale = set(git.refs("refs/heads/section/", "refs/tags/section/")).difference(refs)
    lines = [f"update {ref} {value}" for ref, value in refs.items()]
    lines += [f"delete {ref}" for ref in [*sorted(stale), NEXT]]
    git("update-ref", "--stdin", stdin="\n".join(lines) + "\n")
    return tip


def new_tree(top):
    git = new_repository(top, "series")
    (git.dir / "plug-policy").mkdir()
    (git.dir / "info").mkdir(exist_ok=True)
    # Builds go to o-<name>; KUnit's to .kunit.
    (git.dir / "info" / "exclude").write_text("/o-*\n/.kunit*\n")
    # Ours are the only commits worth keeping, and 90 thousand loose objects
    # would start a collection at any moment.
    git("config", "gc.auto", "0")
    return git


def fill(git, source, is_fresh):
    """Makes the tree what source and series say; the series."""
    series = load_series(git)       # complains before the long part
    base = import_source(git, source, is_fresh)
    commits = Builder(git, base, step).commits(series.entries)
    if is_fresh:
        git("update-ref", "refs/heads/series", base)
        step("write the work tree")
        git("reset", "-q", "--hard", [base, *commits][-1])
    publish(git, base, series, commits)
    return series


def create(source):
    """Makes the tree beside its place and moves it there when it is whole."""
    top = env.TREE.with_name(env.TREE.name + ".new")
    remove(top)
    try:
        series = fill(new_tree(top), source, is_fresh=True)
        top.rename(env.TREE)
    except BaseException:
        remove(top)
        raise
    return series


def open_tree():
    if not env.TREE.exists():
        raise Failure(f"{shown(env.TREE)} does not exist; first: make tree")
    git = Git(env.TREE)
    if not git.dir.exists() or not git.ref(MADE):
        raise Failure(f"{shown(env.TREE)} was not made by this program; move it away")
    pending = git.ref(NEXT)
    if pending:
        step("finish an interrupted update")
        git("checkout", "-q", "-f", "-B", "series", pending)
        git("update-ref", MADE, pending)
        git("update-ref", "-d", NEXT)
    return git


def uncommitted(git):
    return [line[3:] for line in git("status", "--porcelain", "-uno").splitlines()]


def own_work(git):
    """What keeps us from touching the tree, or None."""
    dirty = uncommitted(git)
    if dirty:
        return f"uncommitted changes ({', '.join(dirty[:3])}{', ...' if dirty[3:] else ''})"
    if git.ref("HEAD") != git.ref(MADE):
        return "commits that the series does not have"
    return None


def update(source):
    git = open_tree()
    work = own_work(git)
    if work:
        raise Failure(f"{shown(env.TREE)} has {work}; bring commits back by `make refresh`, or "
                      f"put changes away by git -C {shown(env.TREE)} stash, or commits by "
                      f"git -C {shown(env.TREE)} reset --hard {MADE}")
    before = git.ref("HEAD")
    series = fill(git, source, is_fresh=False)
    changed = git.changed(before, "HEAD")
    if changed:
        step(f"{len(changed)} files differ from before")
    return series


def make(source):
    """(the source it is made of, the series). A point release that does
    not take it is no reason to stop: the one that it was written for will do."""
    try:
        return source, update(source) if env.TREE.exists() else create(source)
    except DoesNotApply as error:
        if not source.debian or source.debian == pinned():
            raise
        say(str(error))
    refuse(source)
    return make(find_source(None))


def cmd_tree(_args):
    source, series = make(find_source(os.environ.get("KSRC")))
    step(f"{shown(env.TREE)}: {source.label} and {len(series.entries)} patches")
