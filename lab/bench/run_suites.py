#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench: policies and today's baselines, side by side, repeatably.

Every suite boots the unpatched and the patched kernel, of one configuration,
in guests whose time follows the number of instructions, and loads devices that
ssd_model models. A benchmark fails when its environment does, never because of
a speed.
"""
import argparse
import os

from lab.bench import kernels
from lab.bench import lab
from lab.bench import lines
from lab.native import native
from lab.bench import suites
from scripts import common
from plugtools.report import changes, page, tables, verdict
from plugtools.report.records import ReportError, load, save
from plugtools.report.summary import summarise


# Suites with an instrument of their own: what they measure with is not a guest
# whose time is its instructions.
OWN = {one.NAME: one for one in (lines, native)}


class UsageError(Exception):
    """What was asked for is not on offer."""


def pick(text):
    """The suites named, or all, or the default."""
    names = text.replace(",", " ").split() or suites.DEFAULT
    if names == ["all"]:
        names = [*suites.SUITES, *OWN]
    for name in names:
        if name not in suites.SUITES and name not in OWN:
            raise UsageError("SUITE: '%s' is none of: %s, all" % (
                name, ", ".join([*suites.SUITES, *OWN])))
    return names


def commit():
    """Which state of the repository was measured."""
    head = lab.kernel.quiet(["git", "-C", lab.ROOT, "rev-parse", "--short=12",
                             "HEAD"], "git").strip()
    dirty = lab.kernel.quiet(["git", "-C", lab.ROOT, "status", "--porcelain"],
                             "git").strip()
    return head + ("+changes" if dirty else "")


def path_of(name, end):
    """A result file."""
    return os.path.join(lab.OUT, name + end)


def run_suite(suite, runs, known, head):
    """Measure, save and show a suite; its section of the report."""
    print("\n== %s ==\nClaim: %s" % (suite.name, suite.claim), flush=True)
    records, machines = lab.measure(suite.make(runs or suite.runs),
                                    suite.name, head)
    command = "make bench SUITE=%s" % suite.name
    if runs:
        command += " RUNS=%d" % runs
    meta = {"suite": suite.name, "claim": suite.claim, "note": suite.note,
            "command": command, "kernels": known, "machines": machines}
    save(path_of(suite.name, ".json"), records, meta)
    return show(suite.name, records, meta)


def section(name, records, meta):
    """A suite's part of the report."""
    summary = summarise(records)
    details = suites.SUITES[name].details
    several = any(cell["n"] > 1 for cell in summary)
    return {"suite": name, "claim": meta["claim"], "command": meta["command"],
            "kernels": kernels.text(meta["kernels"]), "note": meta["note"],
            "details": details(summary, records) if details else [],
            "cells": summary,
            "verdict": verdict.of(records) if several else None}


def show(name, records, meta):
    """The table on the terminal; a report's section."""
    made = section(name, records, meta)
    print("\n".join([tables.table(made["cells"], suites.SUITES[name].columns),
                     *verdict.lines_of(made["verdict"]), *made["details"],
                     meta["note"]]))
    print("Records: %s" % os.path.relpath(
        path_of(name, ".json"), lab.ROOT))
    return made


def sections_of_others(done):
    """Suites measured earlier stay in the report."""
    return [section(name, *load(path_of(name, ".json")))
            for name in suites.SUITES if name not in done
            and os.path.exists(path_of(name, ".json"))]


def measure_own(suite, runs, head):
    """A suite that has an instrument of its own: records and a table."""
    print("\n== %s ==\nClaim: %s" % (suite.NAME, suite.CLAIM), flush=True)
    records = suite.measure(runs, head)
    path = path_of(suite.NAME, ".json")
    common.write_json(path, {"suite": suite.NAME, "claim": suite.CLAIM,
                             "note": suite.NOTE, "records": records})
    print("%s\n%s\nRecords: %s" % (suite.text(records), suite.NOTE,
                                   os.path.relpath(path, lab.ROOT)))


def measure(chosen, runs):
    """Measure the suites, and write the report; their names."""
    head = commit()
    names = measure_cells([suites.SUITES[name] for name in chosen
                           if name not in OWN], runs, head)
    for name in chosen:
        if name in OWN:
            measure_own(OWN[name], runs, head)
    return names


def measure_cells(chosen, runs, head):
    """Measure those that are made of cells; a report of them."""
    if not chosen:
        return []
    known = kernels.prepare([cell for suite in chosen
                             for cell in suite.make(1)])
    print(kernels.text(known), flush=True)
    sections = [run_suite(suite, runs, known, head) for suite in chosen]
    names = [made["suite"] for made in sections]
    report = path_of("report", ".html")
    page.html(sections + sections_of_others(names), report,
                    "plug_policy: benchmarks")
    print("Report: %s" % os.path.relpath(report, lab.ROOT))
    return names


def compare(old, names):
    """What the suites just measured changed."""
    new = [record for name in names
           for record in load(path_of(name, ".json"))[0]]
    old = [record for record in old if record.get("suite") in names]
    print(changes.text(changes.compare(old, new)))


def run(args):
    """Everything; what was asked for is checked first."""
    chosen = pick(args.suite)
    if args.runs < 0:
        raise UsageError("RUNS: %d is no number of runs" % args.runs)
    if args.compare and set(chosen) <= set(OWN):
        raise UsageError("COMPARE: takes records of other suites than %s"
                         % ", ".join(OWN))
    old = load(args.compare)[0] if args.compare else None
    # two at once would write each other's files
    with common.locked(path_of(".lock", ""),
                       lab.LabError("another 'make bench' is running")):
        names = measure(chosen, args.runs)
        if old is not None:
            compare(old, names)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--suite", default="", metavar="'a b'",
                        help="all, or of: %s (default: %s)" % (
                            ", ".join([*suites.SUITES, *OWN]),
                            " ".join(suites.DEFAULT)))
    parser.add_argument("--runs", type=int, default=0,
                        help="runs of each cell, each with its own seed")
    parser.add_argument("--compare", default="", metavar="OLD.json",
                        help="print what changed beyond the noise")
    args = parser.parse_args()
    with common.program("bench", UsageError, ReportError,
                        lab.profiles.ProfileError, *lab.ERRORS):
        run(args)


if __name__ == "__main__":
    main()
