# SPDX-License-Identifier: GPL-2.0
"""Measured figures in cover letters and in README.md: patches/<base>/figures.json,
by section.

In a cover they count only for the code that they were measured on.
"""

import hashlib
import json
import re

from .env import PATCHES, ROOT, TREE
from .files import write_file
from .git import Failure, Git

FILE = PATCHES / "figures.json"
PLACE = re.compile(r"^@figures (.*)$", re.M)
# What is no part of what was measured.
ELSEWHERE = ("Documentation", "MAINTAINERS", "tools")

# The name of the whole series, and the place of its table.
WHOLE = "README"
README = re.compile(r"(?<=<!-- make figures -->\n).*?(?=<!-- end -->)", re.S)
LOADS = {"rand4k-s32": "random 4K, 32 per submission",
         "rand4k-s128": "random 4K, 128 per submission",
         "libaio-rand4k-s32": "random 4K, 32 per io_submit()",
         "seq4k-s32": "sequential 4K, 32 per submission",
         "twodev-rand4k-s32": "random 4K on two disks in turn",
         "rand4k-qd1": "random 4K, one at a time"}

HEAD = "                       instructions   L1 misses     atomics   time, ratio (95%)"


def load():
    try:
        return json.loads(FILE.read_text())
    except (OSError, ValueError):
        return {}


def code_of(section):
    """Names the code of a kernel at the end of a section."""
    git = Git(TREE)
    ref = git.ref("refs/heads/series" if section == WHOLE
                  else f"refs/tags/section/{section}")
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
    for timed in one.get("time", []):
        time = f"{timed['ratio']:.3f} ({timed['ci_low']:.3f} to {timed['ci_high']:.3f})"
    return (f"  {name:20} {pair(one['insns'], 0):>11} {pair(one.get('l1'), 1):>11} "
            f"{pair(one.get('atomics'), 1):>11}   {time}").rstrip()


def quiet(one):
    return all(timed["quiet"] for row in one["rows"].values() for timed in row.get("time", []))


def table(section):
    """The figures of a section, for its cover."""
    one = load().get(section)
    if not one or one["code"] != code_of(section):
        return "  (This code has not been measured: make figures.)"
    before = "without the series" if one["before"] == "unpatched" else f"after {one['before']}"
    rows = [line(name, row) for name, row in one["rows"].items()]
    note = "" if quiet(one) else "\n  (The machine was not quiet: times may be off.)"
    return "\n".join([f"  per I/O, {before} and with this section:", HEAD, *rows]) + note


def fill(section, text):
    """A cover letter with its figures."""
    return PLACE.sub(lambda _: table(section), text)


def ratios(values):
    """Of the first to each of the others: more is better."""
    return " / ".join(f"{values[0] / value:.2f}" for value in values[1:])


def misses(values):
    """Before and after."""
    return f"{values[0]:.0f}: " + " / ".join(f"{value:.0f}" for value in values[1:])


def times(timed):
    """Each with half of its interval."""
    return " / ".join(f"{one['ratio']:.2f} \u00b1 {(one['ci_high'] - one['ci_low']) / 2:.2f}"
                      for one in timed)


def whole_table():
    """The whole series and nomerges=2, each as a ratio to Linux as it is."""
    one = load()[WHOLE]
    rows = [f"| {LOADS[name]} | {ratios(row['insns'])} | "
            f"{misses(row['l1']) if 'l1' in row else ''} | {times(row.get('time', []))} |"
            for name, row in sorted(one["rows"].items(), key=lambda each: [*LOADS].index(each[0]))]
    note = "" if quiet(one) else "\nThe machine was not quiet: times may be off.\n"
    return "\n".join(["| load | I/Os per instruction | L1 misses per I/O | I/Os per second |",
                      "|---|---|---|---|", *rows, note])


def fill_readme():
    path = ROOT / "README.md"
    text, count = README.subn(lambda _: whole_table(), path.read_text())
    if count != 1:
        raise Failure(f"{path.name} has no place for the table: "
                      "'<!-- make figures -->', '<!-- end -->'")
    write_file(path, text.encode())
