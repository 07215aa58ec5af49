# SPDX-License-Identifier: GPL-2.0
"""Measured figures in cover letters: patches/<base>/figures.json, by section.

They count only for the code that they were measured on.
"""

import hashlib
import json
import re

from .env import PATCHES, TREE
from .files import write_file
from .git import Failure, Git

FILE = PATCHES / "figures.json"
PLACE = re.compile(r"^@figures (.*)$", re.M)
# What is no part of what was measured.
ELSEWHERE = ("Documentation", "MAINTAINERS", "tools")

HEAD = "                       instructions   L1 misses     atomics   time, ratio (95%)"


def load():
    try:
        return json.loads(FILE.read_text())
    except (OSError, ValueError):
        return {}


def code_of(section):
    """Names the code of a kernel at the end of a section."""
    git = Git(TREE)
    ref = git.ref(f"refs/tags/section/{section}")
    if not ref:
        raise Failure(f"the tree has no section {section}; first: make tree")
    lines = [line for line in git("ls-tree", ref).splitlines()
             if line.split("\t")[1] not in ELSEWHERE]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def save(section, found):
    """Keep what was measured of a section, now: we may be interrupted."""
    known = load()
    known[section] = {"code": code_of(section), **found}
    write_file(FILE, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())


def pair(values, digits):
    if not values:
        return ""
    return f"{values[0]:.{digits}f} {values[1]:.{digits}f}"


def line(name, one):
    time = ""
    if "ratio" in one:
        time = f"{one['ratio']:.3f} ({one['ci_low']:.3f} to {one['ci_high']:.3f})"
    return (f"  {name:20} {pair(one['insns'], 0):>11} {pair(one.get('l1'), 1):>11} "
            f"{pair(one.get('atomics'), 1):>11}   {time}").rstrip()


def table(section):
    """The figures of a section, for its cover."""
    one = load().get(section)
    if not one or one["code"] != code_of(section):
        return "  (This code has not been measured: make figures.)"
    before = "without the series" if one["before"] == "unpatched" else f"after {one['before']}"
    rows = [line(name, row) for name, row in one["rows"].items()]
    note = "" if all(row.get("quiet", True) for row in one["rows"].values()) else \
        "\n  (The machine was not quiet: times may be off.)"
    return "\n".join([f"  per I/O, {before} and with this section:", HEAD, *rows]) + note


def fill(section, text):
    """A cover letter with its figures."""
    return PLACE.sub(lambda _: table(section), text)
