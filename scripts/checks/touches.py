# SPDX-License-Identifier: GPL-2.0
"""What a test reads of this repository, and what of that has changed.

Modules are found by the imports of its programs, guests' scripts and their like
by the names that these have for them. What no program names is left for the
table of groups to say, in words such as "block" (a file, or all below it),
"patches/7.3/*.patch" and "!block/tests" (not that, whatever stands before).
"""
import ast
import collections
import fnmatch
import functools
import hashlib
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from scripts import common, kernel

ROOT = Path(kernel.ROOT)
# A variable of the environment, as Python and the shell ask for it.
VARIABLE = re.compile(r"(?:environ(?:\.get\(|\[)\"|\$\{)([A-Z]\w+)(?=\"|:?[-=+])")


def git(*args, top=None):
    """The lines that git prints of this repository or another; none if it fails."""
    return subprocess.run(["git", "-C", top or ROOT, *args], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                          ).stdout.splitlines()


@functools.cache
def files():
    """All that is tracked, or about to be."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard")
    return dict.fromkeys(name for name in names if (ROOT / name).is_file())


def changed(since):
    """What differs from a commit, committed or not."""
    return sorted({*git("diff", "--name-only", "--no-renames", since),
                   *git("ls-files", "--others", "--exclude-standard")})


# --- what a file names ---------------------------------------------------------

# A word that can name a file: one with a suffix or so, or with its folder.
WORD = re.compile(r"[\w.+/-]+")
TELLING = re.compile(r"\w[._-]\w")


@functools.cache
def owners():
    """{last part: paths}"""
    found = collections.defaultdict(list)
    for path in files():
        found[os.path.basename(path)].append(path)
    return found


def with_name(word):
    """The file that a word names, by its path's end, if it is only one."""
    name = os.path.basename(word)
    paths = [path for path in owners().get(name, [])
             if TELLING.search(name) or "/" in word.strip("/")]
    if len(paths) > 1:
        paths = [path for path in paths if ("/" + path).endswith("/" + word)]
    return paths if len(paths) == 1 else []


def modules(name, where):
    """Files of a module, as one in a directory imports it, and of what it lies in."""
    for place in "", "tools/block", where:
        path = ROOT / place
        for part in name.split("."):
            path /= part
            yield from (str(one.relative_to(ROOT)) for one in (
                path.with_suffix(".py"), path / "__init__.py", path / "__main__.py")
                        if one.is_file())


def named_in_python(text, where):
    """By imports, and in strings."""
    tree = ast.parse(text)
    said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            level, module = getattr(node, "level", 0), getattr(node, "module", None)
            package = where.split("/")[:1 - level or None] if level else []
            for alias in node.names:
                yield from modules(".".join(filter(None, [*package, module, alias.name])), where)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) \
                and node not in said:
            for word in WORD.findall(node.value):
                yield from with_name(word)
                if re.match(r"(lab|scripts)\.\w", word):
                    yield from modules(word, where)


def named_in_shell(text):
    for word in WORD.findall(re.sub(r"^\s*#.*", "", text, flags=re.M)):
        yield from with_name(word)


@functools.cache
def text_of(path):
    """A program's; nothing of what is none."""
    if os.path.splitext(path)[1] not in ("", ".py", ".sh"):
        return ""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@functools.cache
def named(path):
    text = text_of(path)
    if path.endswith(".py") or re.match(r"#!.*python", text):
        return set(named_in_python(text, os.path.dirname(path)))
    if path.endswith(".sh") or re.match(r"#!/bin/sh", text):
        return set(named_in_shell(text))
    return set()


def closure(programs):
    """Modules and files, with all that these name in turn."""
    found, left = set(), [path for name in programs
                          for path in [name, *modules(name, "")]]
    while left:
        path = left.pop()
        if path not in found and path in files():
            found.add(path)
            left += named(path)
    return found


# --- what a group touches ------------------------------------------------------

def matches(path, words):
    """Is a path one of these words'? The last that is about it decides."""
    good = False
    for word in words:
        name = word.lstrip("!")
        if name == "." or path.startswith(name + "/") \
                or fnmatch.fnmatchcase(path, name):
            good = not word.startswith("!")
    return good


class Touches:
    """Programs, by module or path, and the words for what they do not name."""

    def __init__(self, programs, words):
        self.programs = closure(programs)
        self.words = words.split()

    def __contains__(self, path):
        return path in self.programs or matches(path, self.words)

    def files(self):
        return [path for path in files() if path in self]

    def key(self, *more):
        """Names all that a result depends on: these files, the variables that
        the programs read, the packages of this machine, and what is given."""
        sums = {path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
                for path in self.files()}
        variables = {name: os.environ.get(name) for path in self.programs
                     for name in VARIABLE.findall(text_of(path))}
        return common.digest(sums, variables, machine(), more)


@functools.cache
def machine():
    """All that is installed, and what guests can have; None where nobody can
    tell, so that nothing may be believed."""
    try:
        packages = subprocess.run(["dpkg-query", "-W"], check=True,
                                  stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [hashlib.sha256(packages).hexdigest(), sys.version,
            platform.release(), os.environ.get("PATH"),
            os.access("/dev/kvm", os.W_OK), os.cpu_count()]
