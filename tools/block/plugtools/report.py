# SPDX-License-Identifier: GPL-2.0
"""What plugbench makes of its records: file, tables, verdict, plots, page.

plugbench calls, in this order:

old_records(path)           before anything is measured, to refuse --compare's
                            file early; also for --show
complete(records, ...)      adds what is the same in all records
about(disk, ...)            the meta of the result
publish(records, meta, ...) writes and prints everything
compare(old, new, ...)      --compare; returns the exit status
show(path, ...)             tables, verdict and page of a file, again

All raise UsageProblem for a file that cannot be used and EnvironmentProblem
for one that cannot be written.
"""
import contextlib
import json
import os
import shlex
import shutil
import tempfile
import time

from . import changes, page, plots, records, tables, verdict
from .summary import summarise
from .system import EnvironmentProblem, UsageProblem, say

REGRESSION = 3                  # exit status: --fail-below found one
UNCLEAR = 4                     # exit status: too few runs to tell
STATUSES = """\
Exit status: 0 ok, 1 the environment does not allow it, 2 usage, 3 --fail-below
found a regression, 4 it cannot be told from so few runs, 130 interrupted."""

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
Unplugs and doorbells come from short runs of their own, since counting costs.
Before each measurement the same load runs for a second that no figure counts:
"adaptive" starts anew there, and needs 50 ms or more of a busy disk to find its
groups, longer of a slow one. What it loses meanwhile, or after the load has
changed, is not in the figures. "group" is where it had arrived at the end.
"""
SETTINGS = ["runtime", "iops_limit", "cpu", "polled"]
FURTHER = ["cycles_per_io", "cache_misses_per_io", "ctx_switches_per_io",
           "unplugs_per_io", "ios_per_unplug", "group"]


@contextlib.contextmanager
def told(problem):
    """An error of the records is a problem of this kind."""
    try:
        yield
    except records.ReportError as error:
        raise problem(str(error)) from error


def old_records(path):
    """(records, meta) of a file that plugbench wrote earlier."""
    with told(UsageProblem):
        found, meta = records.load(path)
        if not found:
            raise records.ReportError("%s: its list of records is empty; "
                                      "accepted: one record or more" % path)
    return found, meta


def complete(found, identity, profile, patched, commit=None):
    """Add to each record what is the same in all.

    identity: model and firmware; profile: what to call the disk.
    """
    uname = os.uname()
    common = dict(
        identity, kernel="patched" if patched else "unpatched",
        suite="plugbench", profile=" ".join(profile.split()),
        commit=commit or "%s %s" % (uname.release, uname.version))
    return [dict(common, **record) for record in found]


def about(disk, identity, words, **facts):
    """The meta of the result; words: the command line, facts: of the plan."""
    return {
        "claim": " ".join(CLAIM.split()), "note": NOTE,
        "command": shlex.join(["plugbench", *words]),
        "kernels": " ".join(os.uname()[2:4]), "disk": disk.name,
        "size": disk.size(), "machine": os.uname().nodename,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **facts, **identity}


def write_pages(cells, found, meta, html, directory):
    """Plots and the page, where asked for; their paths."""
    disk, drawn = str(meta.get("disk", "disk")), []
    with tempfile.TemporaryDirectory(prefix="plugbench-") as scratch:
        if directory or (html and shutil.which("gnuplot")):
            drawn = plots.plots(cells, directory or scratch,
                                "plugbench-" + disk)
        if html:
            section = {name: meta.get(name)
                       for name in ("claim", "command", "kernels", "note")}
            section.update(suite="plugbench", cells=cells, plots=drawn,
                           details=meta.get("warnings"), verdict=found)
            page.html([section], html, "plug policies of %s" % disk)
    return (drawn if directory else []) + [html] * bool(html)


def present(cells, found, meta, html, directory):
    """Print the tables and the verdict; write the page."""
    say("\n" + tables.table(cells))
    further = [name for name in FURTHER
               if any(cell["extra"].get(name) for cell in cells)]
    if further:
        say("\n" + tables.body(cells, further))
    say("\n%s\n%s" % (meta.get("note", ""), verdict.table(found)))
    for path in write_pages(cells, found, meta, html, directory):
        say("wrote %s" % path)


def publish(found, meta, path, html=None, directory=None):
    """File first, so that nothing measured is lost; then the rest.

    directory: of the plots.
    """
    with told(EnvironmentProblem):
        opinion = verdict.of(found)
        records.save(path, found, meta, verdict=opinion)
        present(summarise(found), opinion, meta, html, directory)
    say("wrote %s" % path)


def show(path, html=None, directory=None):
    """What publish() printed of a file, and the page anew."""
    found, meta = old_records(path)
    with told(EnvironmentProblem):
        present(summarise(found), verdict.of(found), meta, html, directory)


def judge(found, least):
    """The exit status that --fail-below asks for, said aloud."""
    failed, unclear = changes.gate(found, least)
    for words, some in (("regression", failed), ("cannot be told", unclear)):
        for one in some:
            say("%s: %s %s, %s: %s" % (
                words, one["workload"], one["policy"],
                tables.HEADINGS[one["metric"]],
                verdict.percent(one["ratio"])))
    if not failed and not unclear:
        say("no regression: nothing is surely below %g" % least)
    return REGRESSION if failed else UNCLEAR if unclear else 0


def compare(old, new, least=None, path=None):
    """Print what changed from one file to another; the exit status.

    least: of --fail-below, or None; path: where the comparisons go as JSON.
    """
    (before, had), (after, has) = old_records(old), old_records(new)
    with told(UsageProblem):
        found = changes.compare(before, after)
    say(changes.text(found))
    for line in changes.missing(before, after):
        say(line)
    for name in SETTINGS:
        if had.get(name) != has.get(name):
            say("measured differently: %s %s, then %s" % (
                name, had.get(name), has.get(name)))
    status = 0 if least is None else judge(found, least)
    if path:
        with told(EnvironmentProblem):
            records.write_file(path, json.dumps(
                {"version": records.VERSION, "old": old, "new": new,
                 "fail_below": least, "status": status,
                 "comparisons": found}, indent=1).encode("ascii"))
    return status
