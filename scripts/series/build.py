# SPDX-License-Identifier: GPL-2.0
"""From entries of the series to commits and back.

Commits are made on an index of our own, so that neither the work tree nor its
build outputs notice before all of them exist.
"""

import hashlib
import json
import re

from .env import BASE
from .files import Entry, rejected
from .git import Failure, GitError, nul_list


class Cache:
    """What was made before, by a digest of all that went into it."""

    LIMIT = 1000

    def __init__(self, git):
        self.git = git
        self.file = git.dir / "plug-policy" / "cache.json"
        try:
            self.known = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.known = {}

    def get(self, key):
        commit = self.known.get(key)
        return commit and self.git.ref(f"{commit}^{{commit}}")

    def put(self, key, commit):
        self.known[key] = commit
        latest = dict(list(self.known.items())[-self.LIMIT:])
        self.file.write_text(json.dumps(latest, indent=0))


def digest(*parts):
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


# --- entries to commits ------------------------------------------------------

class DoesNotApply(Failure):
    """The message shows the hunks."""


class Builder:
    def __init__(self, git, base, step=lambda text: None):
        self.base, self.step = base, step
        self.git = git.having(GIT_INDEX_FILE=str(git.dir / "plug-policy" / "index"))
        self.cache = Cache(git)
        self.loaded = None

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
        if self.loaded != parent:
            self.git("read-tree", parent)
        self.loaded = None
        if entry.diff:
            self.check_hooks(entry)
            self.apply_hooks(parent, entry)
        self.add_files(entry)
        tree = self.git.get("write-tree")
        if tree == self.git.tree_of(parent):
            raise Failure(f"{entry.name} changes nothing")
        self.loaded = self.git.commit(tree, entry.message, parent)
        return self.loaded

    def check_hooks(self, entry):
        """A mail edits existing files; what is new lies in a room."""
        numstat = nul_list(self.git("apply", "--numstat", "-z", stdin=entry.diff))
        paths = {line.split("\t", 2)[2] for line in numstat}
        unknown = sorted(paths.difference(self.git.files(self.base, paths)))
        if unknown:
            raise Failure(f"{entry.name} edits {unknown[0]}, which the kernel does not have: keep "
                          "new files at their path in the repository and list them in the series")

    def apply_hooks(self, parent, entry):
        try:
            self.git("apply", "--cached", "--whitespace=nowarn", stdin=entry.diff)
        except GitError as error:
            raise DoesNotApply(self.reject_text(parent, entry, str(error))) from None

    def reject_text(self, parent, entry, complaint):
        base = self.git.message(self.base)[0]
        lines = [f"{entry.name} does not apply to {base}"
                 + (" and the patches before it" if parent != self.base else ""), complaint]
        if entry.shared:
            lines.insert(1, f"its text is that of {entry.shared}; if {BASE} needs another, write "
                            f"{BASE}/{entry.name}")
        for path, hunk in rejected(entry.diff, complaint):
            lines += [f"rejected in {path}:", hunk.rstrip("\n")]
        return "\n".join(lines)

    def add_files(self, entry):
        taken = sorted(self.git.files(self.base, entry.files))
        if taken:
            raise Failure(f"{taken[0]}, listed as new with {entry.name}, exists in the kernel: "
                          "an edit to it belongs into the mail")
        lines = [f"{mode} {blob}\t{path}\0" for path, (mode, blob) in entry.files.items()]
        self.git("update-index", "-z", "--index-info", stdin="".join(lines))


# --- commits to entries ------------------------------------------------------

SECTION = re.compile(r"^Section:[ \t]*(\S+)[ \t]*(?:\n|\Z)", re.M)


def hook_diff(git, commit, paths):
    """A commit's diff, of these paths only."""
    return git("diff-tree", "--no-commit-id", "-r", "--no-renames", "-p", "--full-index",
               "--binary", f"{commit}^", commit, "--", *sorted(paths)) if paths else ""


def read_commit(git, base, commit):
    """The entry of a commit, and the new files it changes in any way."""
    subject, body = git.message(commit)
    section = SECTION.search(body)
    changed = set(git.changed(f"{commit}^", commit))
    hooks = git.files(base, changed)
    entry = Entry(section[1] if section else "", "", subject,
                  SECTION.sub("", body).strip("\n"), hook_diff(git, commit, hooks))
    return entry, changed.difference(hooks)


def read_commits(git, base, tip):
    """[(entry, new files it changes)]; a file is with the first commit that has
    it, in the state of the last."""
    found, seen = [], set()
    for commit in git.commits(base, tip):
        entry, changed = read_commit(git, base, commit)
        entry.files = git.files(tip, changed - seen)
        seen |= changed
        found.append((entry, changed))
    return found
