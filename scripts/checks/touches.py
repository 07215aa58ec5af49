# SPDX-License-Identifier: GPL-2.0
"""What a test reads of this repository, and what of that has changed.

Modules are found by the imports of its programs. The rest is for the table of groups
to say, in words such as "block" (a file, or all below it), "patches/7.3/*.patch" and
"!block/tests" (not that, whatever stands before)."""
import ast
import fnmatch
import functools
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from scripts import common, kernel

ROOT = Path(kernel.ROOT)
# Of the environment: what programs ask for that make does not pass as an argument.
VARIABLES = ("ACCEL", "ARCH", "BLKTESTS", "DEBIAN_MIRROR", "DEBIAN_SECURITY", "FROM", "KSRC",
             "PATH", "PYTHON", "QEMU", "SETUP", "XDG_CACHE_HOME")


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


# --- what a program imports ------------------------------------------------------

def modules(name, where):
    """Files of a module, as one in a directory imports it, and of what it lies in."""
    for place in "", "tools/block", where:
        path = ROOT / place
        for part in name.split("."):
            path /= part
            yield from (str(one.relative_to(ROOT)) for one in (
                path.with_suffix(".py"), path / "__init__.py", path / "__main__.py")
                        if one.is_file())


@functools.cache
def imported(path):
    where, found = os.path.dirname(path), []
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            level, module = getattr(node, "level", 0), getattr(node, "module", None)
            package = where.split("/")[:1 - level or None] if level else []
            for alias in node.names:
                found += modules(".".join(filter(None, [*package, module, alias.name])), where)
    return found


def closure(programs):
    """Modules and files, with all that these import in turn."""
    found, left = set(), [path for name in programs for path in [name, *modules(name, "")]]
    while left:
        path = left.pop()
        if path not in found and path in files():
            found.add(path)
            left += imported(path) if path.endswith(".py") else []
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
    """Programs, by module or path, and the words for what they do not import."""

    def __init__(self, programs, words):
        self.programs = closure(programs)
        self.words = words.split()

    def __contains__(self, path):
        return path in self.programs or matches(path, self.words)

    def files(self):
        return [path for path in files() if path in self]

    def key(self, *more):
        """Names all that a result depends on: these files, variables, the packages of
        this machine, and what is given."""
        sums = {path: hashlib.sha256((ROOT / path).read_bytes()).hexdigest()
                for path in self.files()}
        return common.digest(sums, list(map(os.environ.get, VARIABLES)), machine(), more)


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
            platform.release(), os.access("/dev/kvm", os.W_OK), os.cpu_count()]
