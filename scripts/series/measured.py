# SPDX-License-Identifier: GPL-2.0
"""Measured figures: patches/<base>/figures.json, by section, of single mails, and
of the whole series. Cover letters and mails are filled from them here, documents
in lab/bench/documents.py.

In a cover or a mail they count only for the code that they were measured on."""
import hashlib
import json
import re

from . import env
from .files import parse_series, write_file
from .git import Failure, Git

FILE = env.PATCHES / "figures.json"
PLACE = re.compile(r"^@figures (.*)$", re.M)
# What is no part of what was measured
ELSEWHERE = ("Documentation", "MAINTAINERS", "tools", "block/tests", "lib/tests")

# The name of the whole series, and of what was measured of single mails.
WHOLE, MAILS = "whole", "mails"

UNKNOWN = "  (This code has not been measured: make figures.)"
HEAD = "                            ns per I/O   ratio (95%)"


def load():
    try:
        return json.loads(FILE.read_text())
    except (OSError, ValueError):
        return {}


def section_names():
    return list(parse_series((env.PATCHES / "series").read_text()).sections)


def sections():
    """{section: its figures} of those that were measured, in order."""
    known = load()
    return {name: known[name] for name in section_names() if name in known}


def compact(value, depth=1):
    """JSON with a line for each object that has 1000 characters at most, and for each load."""
    text = json.dumps(value, sort_keys=True)
    if len(text) <= 1000 or depth > 3 or not isinstance(value, dict):
        return text
    lines = [f"{' ' * depth}{json.dumps(key)}: {compact(member, depth + 1)}"
             for key, member in sorted(value.items())]
    return "{\n" + ",\n".join(lines) + "\n" + " " * (depth - 1) + "}"


def code(git, ref):
    """What names all that a measured kernel is made of: lines of ls-tree."""
    lines = git("ls-tree", "--full-tree", ref, ".", "block/", "lib/").splitlines()
    return [line for line in lines if line.split("\t")[1] not in ELSEWHERE]


def code_at(git, ref):
    return hashlib.sha256("\n".join(code(git, ref)).encode()).hexdigest()[:16]


def code_of(section):
    """Names the code of a kernel at the end of a section."""
    git = Git(env.TREE)
    ref = git.ref("refs/heads/series" if section == WHOLE
                  else f"refs/tags/section/{section}")
    if not ref:
        raise Failure(f"the tree has no section {section}; first: make tree")
    return code_at(git, ref)


def save(section, found):
    """Keep what was measured of a section, now: we may be interrupted."""
    keep(section, {"code": code_of(section), **found})


def save_mail(subject, code, rows, there):
    """The same of a mail, and with it what is known of those that are still there,
    by their subjects."""
    known = {name: one for name, one in load().get(MAILS, {}).items() if name in there}
    keep(MAILS, {**known, subject: {"code": code, "rows": rows}})


def keep(section, found):
    names = [*section_names(), WHOLE, MAILS]
    known = {name: one for name, one in load().items() if name in names}
    known[section] = found
    write_file(FILE, (compact(known) + "\n").encode())


def line(name, timed):
    one, = timed
    return (f"  {name:24} {one['ns_per_io']:12.1f}   "
            f"{one['ratio']:.3f} ({one['ci_low']:.3f} to {one['ci_high']:.3f})")


def table(section):
    """The figures of a section, for its cover."""
    one = load().get(section)
    if not one or one["code"] != code_of(section):
        return UNKNOWN
    before = "Linux as it is" if one["before"] == "unpatched" else f"section {one['before']}"
    return rows_of(one, f"  With this section, and its speed as a ratio to {before}:")


def rows_of(one, head):
    cpu = load().get(WHOLE, {}).get("cpu", "a CPU without a name")
    lines = [head, f"  (null_blk in User Mode Linux, on {cpu})", HEAD, *(line(name, row) for name, row in one["rows"].items())]
    if not all(timed["quiet"] for row in one["rows"].values() for timed in row):
        lines.append("  (The machine was not quiet: times may be off.)")
    return "\n".join(lines)


def fill(section, text):
    """A cover letter with its figures."""
    return PLACE.sub(lambda _: table(section), text)


def fill_message(git, commit):
    """(subject, body) of a mail with its figures; none for a base on which nothing
    is measured."""
    subject, body = git.message(commit)
    if not PLACE.search(body):
        return subject, body
    known = load()
    one = known.get(MAILS, {}).get(subject)
    found = UNKNOWN if known else ""
    if one and one["code"] == code_at(git, commit):
        found = rows_of(one, "  With this patch, and its speed as a ratio to the one before:")
    return subject, PLACE.sub(lambda _: found, body).strip("\n")
