# SPDX-License-Identifier: GPL-2.0
"""What plugbench makes of its records: file, tables, verdict, page.

All raise UsageProblem for a file that cannot be used and ReportError for one
that cannot be written.
"""
import contextlib
import itertools
import json
import os
import re
import shlex
import sys
import time

from ..core.system import UsageProblem, paint, say
from . import changes, markdown, page, records, tables, verdict
from .summary import summarise

STATUSES = """\
Exit status: 0 ok, 1 the environment does not allow it, 2 usage, 3 --fail-below
found a regression, 4 it cannot be told: too few runs, or a figure is 0, or
lacking in one of the files, 130 interrupted."""

CLAIM = ("plugbench compares the plug policies of one disk: I/Os per second, "
         "latency and\nCPU cost of each, measured here, with these workloads.")
NOTE = """\
What a number means: the mean over the rounds on this machine, this disk and
one CPU; the policies took turns, so that drift hit all alike. A difference
smaller than the spread between rounds means nothing. It says nothing of other
disks or loads, and on a machine that does other work, in a virtual machine,
or on a disk never written (which need not read its medium) little at all.
Latency is from submission to completion as fio sees it, the hold in the plug
included. Per-I/O counts of perf include fio's own work and its start.
Unplugs come from short runs of their own, since counting costs.
Before each measurement the same load runs for a second that no figure counts:
"adaptive" starts anew there, and needs 50 ms or more of a busy disk to find its
groups, longer of a slow one. What it loses meanwhile, or after the load has
changed, is not in the figures. "group" is where it had arrived at the end.
"""
SETTINGS = ["machine", "disk", "size", "legs", "firmware", "runtime",
            "iops_limit", "cpu", "polled", "scheduler"]
BOOTS = """Two kernels, in one boot each: boots of one kernel differ, too, by where memory
lies. What other boots repeat is the kernel's; the USB stick takes them in turns."""
ZERO = ", nomerges=0"
KEPT = re.compile(r"\.~[0-9]+~$")       # keep_earlier() adds it
# what follows is the load; fio before 3.27 knows no "mixed"
FRAME_ENDS = "--unified_rw_reporting=1"
FURTHER = ["cycles_per_io", "cache_misses_per_io", "ctx_switches_per_io",
           "unplugs_per_io", "ios_per_unplug", "group"]


@contextlib.contextmanager
def given():
    """An error of records is of what the user gave."""
    try:
        yield
    except records.ReportError as error:
        raise UsageProblem(str(error)) from error


def old_records(path):
    """(records, meta) of a file that plugbench wrote earlier."""
    with given():
        found, meta = records.load(path)
        if not found:
            raise records.ReportError(f"{path}: its list of records is empty; "
                                      "accepted: one record or more")
    return found, meta


def check_paths(written, read):
    """Refuse to write a file twice, or one that is read, or set aside."""
    taken = {os.path.realpath(path) for path in read if path}
    for path in filter(None, written):
        if taken & {os.path.realpath(path),
                    os.path.realpath(KEPT.sub("", path))}:
            raise UsageProblem(
                f"--json or --html would overwrite {path}; accepted: a file "
                "that is not also read, or written for the other, and no "
                "earlier one of these (FILE.~1~)")
        taken.add(os.path.realpath(path))


def keep_earlier(path):
    """A file that is there already gets another name."""
    if not os.path.isfile(path):
        return
    for number in itertools.count(1):
        kept = f"{path}.~{number}~"
        if not os.path.lexists(kept):
            os.rename(path, kept)
            say(f"the earlier {path} is now {kept}")
            return


def complete(found, identity, profile, patched, commit=None):
    """Add to each record what is the same in all.

    identity: model and firmware; profile: what to call the disk, with the
    nomerges of a record that has one: a verdict is for one of them."""
    uname = os.uname()
    common = dict(
        identity, kernel="patched" if patched else "unpatched",
        suite="plugbench", commit=commit or f"{uname.release} {uname.version}")
    name = " ".join(profile.split())
    return [{**common, "profile": name if "nomerges" not in record else
             f"{name}, nomerges={record['nomerges']}", **record}
            for record in found]


def about(disk, identity, words, **facts):
    """The meta of the result; words: the command line, facts: of the plan."""
    return {
        "claim": " ".join(CLAIM.split()), "note": NOTE,
        "command": shlex.join(["plugbench", *words]),
        "kernels": " ".join(os.uname()[2:4]), "disk": disk.name,
        "size": disk.size(), "machine": os.uname().nodename,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts, **identity}


def facts_of(meta):
    """When, and of what: [(name, text)], for who reads it elsewhere."""
    firmware, time_ = meta.get("firmware"), str(meta.get("time") or "")
    return [("Disk", ", ".join(filter(None, (
        meta.get("model"), firmware and f"firmware {firmware}",
        meta.get("size"))))),
            ("Kernel", str(meta.get("kernels") or "")),
            ("Measured", time_.replace("T", " ").replace("Z", " UTC"))]


def section_of(cells, found, meta):
    return {"suite": "plugbench", "cells": cells, "verdict": found,
            "details": meta.get("warnings"), "facts": facts_of(meta),
            **{name: meta.get(name) for name in ("claim", "command", "note",
                                                 "holds")}}


def print_tables(cells, meta):
    say("\n" + tables.table(cells))
    further = [name for name in FURTHER
               if any(cell["extra"].get(name) for cell in cells)]
    if further:
        say("\n" + tables.body(cells, further))
    say("\n" + (meta.get("note") or ""))


def colour(text):
    """The verdict's lines: what is recommended stands out."""
    return "\n".join(paint(line, "good" if re.search(r" use \w", line) else
                           "warning" if "not enough runs" in line else None)
                     for line in text.split("\n"))


def present(cells, found, meta, out):
    """Print the verdict, and the tables if they are wanted; write the page.

    out: html, verbose and markdown, as plugbench's options have them."""
    if out.markdown:
        say(markdown.text(found, facts_of(meta), meta.get("holds") or []))
    else:
        if out.verbose:
            print_tables(cells, meta)
        say("\n" + colour(verdict.table(found, out.verbose)))
        for text in meta.get("holds") or []:
            say(f"  This holds with {text}.")
    if out.html:
        page.html([section_of(cells, found, meta)], out.html,
                  f"Plug policies of {meta.get('disk', 'disk')}")
        say(f"wrote {out.html}", sys.stderr if out.markdown else None)


def save(path, found, meta):
    """The file, with the verdict so far; the verdict."""
    opinion = verdict.of(found)
    records.save(path, found, meta, verdict=opinion)
    return opinion


def publish(found, meta, path, out):
    """File first, so that nothing measured is lost; then the rest.  out: as
    present() has it."""
    opinion = save(path, found, meta)
    present(summarise(found), opinion, meta, out)
    say(f"wrote {path}", sys.stderr if out.markdown else None)


def show(path, out):
    check_paths([out.html], [path])
    found, meta = old_records(path)
    present(summarise(found), verdict.of(found), meta, out)


def judge(found, least, gone):
    """The exit status that --fail-below asks for, said aloud.

    gone: the cells that are only in the old file."""
    failed, unclear = changes.gate(found, least)
    for words, some in (("regression", failed), ("cannot be told", unclear)):
        for one in some:
            change = verdict.percent(one["ratio"]) if "ratio" in one else \
                ", then ".join(tables.figures(one[side])[0]
                               for side in ("old", "new"))
            say(f"{words}: {one['workload']} {one['policy']}, "
                f"{tables.HEADINGS[one['metric']]}: {change}")
    for cell in gone:
        say(f"cannot be told: only in the old: {cell}")
    if not failed and not unclear and not gone:
        say(f"no regression: nothing is surely below {least:g}")
    return 3 if failed else 4 if unclear or gone else 0     # see STATUSES


def load_of(meta, other, name):
    """The words that fio was told of a workload, without what plugbench says
    of any; None if the result does not say.  other: the meta to compare with.
    """
    told = (meta.get("fio") or {}).get(name)
    if told is None:
        return None
    try:
        words = shlex.split(told)
    except ValueError:          # a quote that does not end
        return None
    if FRAME_ENDS in words:
        words = words[words.index(FRAME_ENDS) + 1:]
    ours = ("--cpus_allowed=",) * (meta.get("cpu") is not None) + \
        ("--hipri",) * (meta.get("polled") != other.get("polled"))
    return [word for word in words if not word.startswith(ours)]


def check_loads(had, has):
    """Refuse two results whose workloads have a name in common, no more."""
    for name in has.get("fio") or {}:
        old, new = load_of(had, has, name), load_of(has, had, name)
        if None not in (old, new) and old != new:
            before, then = (
                " ".join(word for word in side if word not in other)
                or "not so" for side, other in ((old, new), (new, old)))
            raise UsageProblem(
                f"--compare: the loads of {name} differ: {before}, then "
                f"{then}; accepted: results of one load")


def without_zero(found):
    """Records by which hosts with another nomerges can be compared: 0 is
    named where a host has 2, and is what all others are measured with."""
    return [dict(record, profile=record["profile"].removesuffix(ZERO))
            for record in found]


def host_of(meta):
    """The facts of the host; those of an only disk as "the disk's", as its
    name may be another after a boot."""
    legs = meta.get("legs") or []
    return {re.sub(rf"^{re.escape(legs[0])} ", "the disk's ", fact)
            if len(legs) == 1 else fact: text
            for fact, text in (meta.get("host") or {}).items()}


def say_settings(had, has):
    say_differences(SETTINGS, had, has)
    hosts = host_of(had), host_of(has)
    say_differences(sorted(hosts[0]), *hosts)


def say_differences(names, had, has):
    for name in names:
        if name in had and name in has and had[name] != has[name]:
            before, then = (" and ".join(map(str, value)) if isinstance(
                value, list) else value for value in (had[name], has[name]))
            say(f"measured differently: {name} {before}, then {then}")


def compare(old, new, least=None, path=None):
    """Print what changed from one file to another; the exit status.

    least: of --fail-below, or None; path: where the comparisons go as JSON."""
    check_paths([path], [old, new])
    (before, had), (after, has) = old_records(old), old_records(new)
    check_loads(had, has)
    before, after = without_zero(before), without_zero(after)
    kernels = {one["kernel"] for one in after}
    before, after = changes.across(before, after)
    for side, meta in ("old", had), ("new", has):
        say(f"{side}: {meta.get('kernels') or 'kernel unknown'}")
    with given():
        found = changes.compare(before, after)
    say(changes.text(found))
    if had.get("kernels") != has.get("kernels"):
        say(BOOTS)
    for name in sorted({one["workload"] for one in found}):
        if None in (load_of(had, has, name), load_of(has, had, name)):
            say(f"cannot be told: whether {name} was the same load, as a "
                "result does not say what ran")
    gone = changes.missing(before, after)
    for side, some in (("old", gone), ("new", changes.missing(after, before))):
        for cell in some:
            say(f"only in the {side}: {cell}")
    say_settings(had, has)
    status = 0 if least is None else judge(
        [one for one in found if one["kernel"] in kernels], least, gone)
    if path:
        keep_earlier(path)
        records.write_file(path, json.dumps(
            {"version": records.VERSION, "old": old, "new": new,
             "fail_below": least, "status": status,
             "comparisons": found}, indent=1).encode("ascii"))
    return status
