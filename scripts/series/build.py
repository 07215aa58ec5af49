# SPDX-License-Identifier: GPL-2.0
"""From entries of the series to commits and back.

Commits are made on an index of our own, so that neither the work tree nor its
build outputs notice before all of them exist."""
import json
import re

from scripts.common import digest, write_json
from . import env
from .files import Entry
from .git import Failure, GitError


class Cache:
    """What was made before, by a digest of all that went into it."""

    LIMIT = 1000

    def __init__(self, git):
        self.file = git.dir / "plug-policy" / "cache.json"
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}
        said = git("cat-file", "--batch-check", stdin="\n".join(self.known.values()))
        gone = set(re.findall(r"^(\S+) missing$", said, re.M))
        self.known = {key: one for key, one in self.known.items() if one not in gone}
        self.get = self.known.get

    def put(self, key, commit):
        self.known[key] = commit
        write_json(str(self.file), dict(list(self.known.items())[-self.LIMIT:]))


# --- entries to commits ------------------------------------------------------

class DoesNotApply(Failure):
    """The message shows what was looked for."""


class Builder:
    def __init__(self, git, base, step=lambda text: None):
        self.base, self.step = base, step
        self.git = git.having(GIT_INDEX_FILE=str(git.dir / "plug-policy" / "index"))
        self.cache = Cache(git)
        self.loaded = None, None        # commit, tree

    def commits(self, entries):
        """One commit per entry, on top of the base."""
        made, parent = [], self.base
        for number, entry in enumerate(entries, 1):
            key = digest(parent, entry.message, entry.diff, sorted(entry.files.items()))
            commit = self.cache.get(key)
            if not commit:
                self.step(f"apply {number}/{len(entries)}: {entry.subject}")
                commit = self.apply(parent, entry)
                self.cache.put(key, commit)
            made.append(commit)
            parent = commit
        return made

    def apply(self, parent, entry):
        before = self.loaded[1]
        if self.loaded[0] != parent:
            self.git("read-tree", parent)
            before = self.git.tree_of(parent)
        self.loaded = None, None
        self.check(entry)
        if entry.diff:
            self.apply_hooks(parent, entry)
        self.git.add(entry.files)
        tree = self.git.get("write-tree")
        if tree == before:
            raise Failure(f"{entry.name} changes nothing")
        self.loaded = self.git.commit(tree, entry.message, parent), tree
        return self.loaded[0]

    def check(self, entry):
        """A mail edits existing files; what is new lies in a room."""
        hooks = {path for pair in re.findall(r"^diff --git a/(\S+) b/(\S+)$", entry.diff, re.M)
                 for path in pair}
        kernel = self.git.files(self.base, {*hooks, *entry.files})
        unknown, taken = sorted(hooks - kernel.keys()), sorted(entry.files.keys() & kernel)
        if unknown:
            raise Failure(f"{entry.name} edits {unknown[0]}, which the kernel does not have: keep "
                          "new files at their path in the repository and list them in the series")
        if taken:
            raise Failure(f"{taken[0]}, listed as new with {entry.name}, exists in the kernel: "
                          "an edit to it belongs into the mail")

    def apply_hooks(self, parent, entry):
        try:
            # verbose: its complaint shows what it looked for
            # what is shared was written for another kernel's surroundings
            self.git("apply", "--cached", "--verbose", "--whitespace=nowarn",
                     *["-C2"] * bool(entry.shared), stdin=entry.diff)
        except GitError as error:
            raise DoesNotApply(self.reject_text(parent, entry, str(error))) from None

    def reject_text(self, parent, entry, complaint):
        base = self.git.message(self.base)[0]
        lines = [f"{entry.name} does not apply to {base}"
                 + (" and the patches before it" if parent != self.base else "")]
        if entry.shared:
            lines.append(f"its text is that of {entry.shared}; if {env.BASE} needs another, "
                         f"write {env.BASE}/{entry.name}")
        return "\n".join([*lines, re.sub(r"^Checking patch .*\n", "", complaint, flags=re.M)])


# --- commits to entries ------------------------------------------------------

SECTION = re.compile(r"^Section:[ \t]*(\S+)[ \t]*(?:\n|\Z)", re.M)


def edited(diff):
    """The paths that a diff, without renames, is of"""
    return re.findall(r"^diff --git a/(.*) b/\1$", diff, re.M)


def read_commits(git, base, tip):
    """[(entry, new files it changes)]; a file is with the first commit that has
    it, in the state of the last."""
    text = git("log", "--reverse", "-p", "--full-index", "--binary", "--no-renames",
               "--format=%x00%s%x00%b%x00", f"{base}..{tip}")
    fields, paths = text.split("\0")[1:], edited(text)
    kernel, last = git.files(base, set(paths)), git.files(tip, set(paths))
    found, seen = [], set()
    for subject, body, diff in zip(fields[0::3], fields[1::3], fields[2::3]):
        section = SECTION.search(body)
        parts = re.split(r"^(?=diff --git )", diff, flags=re.M)[1:]
        hooks = "".join(part for part in parts if edited(part)[0] in kernel)
        new = set(edited(diff)) - kernel.keys()
        found.append((Entry(section[1] if section else "", "", subject,
                            SECTION.sub("", body).strip("\n"), hooks,
                            {path: last[path] for path in new - seen if path in last}), new))
        seen |= new
    return found


def as_printed(git, base, tip, series):
    """The entries of the series that the commits up to the tip were made of, with
    their hunks as git prints them."""
    found = [entry for entry, _ in read_commits(git, base, tip)]
    for entry, listed in zip(found, series.entries):
        entry.section, entry.name = listed.section, listed.name
    return found
