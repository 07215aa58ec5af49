# SPDX-License-Identifier: GPL-2.0
"""make bench: policies and today's baselines, side by side, repeatably.

Every suite boots the unpatched and the patched kernel, of one configuration,
in guests whose time follows the number of instructions, and loads devices that
ssd_model models. A benchmark fails when its environment does, never because of
a speed."""
import argparse
import os

from lab.bench import kernels, lab, suites
from lab.native import native
from plugtools.report import changes, page, tables, verdict
from plugtools.report.records import ReportError, load, save
from plugtools.report.summary import summarise
from scripts import ROOT, common, kernel

# With an instrument of its own, which is no guest whose time is its instructions
OWN = {native.NAME: native}
EVERY = [*suites.SUITES, *OWN]


class UsageError(Exception):
    """What was asked for is not on offer."""


def pick(text):
    names = text.replace(",", " ").split() or suites.DEFAULT
    if names == ["all"]:
        return EVERY
    for name in names:
        if name not in EVERY:
            raise UsageError(f"SUITE: '{name}' is none of: {', '.join(EVERY)}, "
                             "all")
    return names


def commit():
    """Which state of the repository was measured."""
    head, dirty = (kernel.git(*words.split(), tree=ROOT) for words in (
        "rev-parse --short=12 HEAD", "status --porcelain"))
    return head + ("+changes" if dirty else "")


def path_of(name, end=".json"):
    return os.path.join(lab.OUT, name + end)


def tell(name, path):
    print(f"{name}: {os.path.relpath(path, ROOT)}")


def announce(name, claim):
    print(f"\n== {name} ==\nClaim: {claim}", flush=True)


def run_suite(suite, runs, known, head):
    """Measure, save and show a suite; its section of the report."""
    announce(suite.name, suite.claim)
    records, machines = lab.measure(suite.make(runs or suite.runs), suite.name,
                                    head)
    command = f"make bench SUITE={suite.name}" + (
        f" RUNS={runs}" if runs else "")
    meta = {"suite": suite.name, "claim": suite.claim, "note": suite.note,
            "command": command, "kernels": known, "machines": machines}
    save(path_of(suite.name), records, meta)
    made = section(suite.name, records, meta)
    print("\n".join([tables.table(made["cells"], suite.columns),
                     *verdict.lines_of(made["verdict"]), *made["details"],
                     meta["note"]]))
    tell("Records", path_of(suite.name))
    return made


def section(name, records, meta):
    details, summary = suites.SUITES[name].details, summarise(records)
    several = any(cell["n"] > 1 for cell in summary)
    return {"suite": name, "claim": meta["claim"], "command": meta["command"],
            "kernels": kernels.text(meta["kernels"]), "note": meta["note"],
            "details": details(summary, records) if details else [],
            "cells": summary,
            "verdict": verdict.of(records) if several else None}


def sections_of_others(done):
    """Suites measured earlier stay in the report."""
    return [section(name, *load(path_of(name))) for name in suites.SUITES
            if name not in done and os.path.exists(path_of(name))]


def measure_own(suite, runs, head):
    """A suite that has an instrument of its own: records and a table."""
    announce(suite.NAME, suite.CLAIM)
    records = suite.measure(runs, head)
    path = path_of(suite.NAME)
    common.write_json(path, {"suite": suite.NAME, "claim": suite.CLAIM,
                             "note": suite.NOTE, "records": records})
    print(f"{suite.text(records)}\n{suite.NOTE}")
    tell("Records", path)


def measure_cells(chosen, runs, head):
    """Measure those that are made of cells; a report of them."""
    known = kernels.prepare([cell for suite in chosen
                             for cell in suite.make(1)])
    print(kernels.text(known), flush=True)
    sections = [run_suite(suite, runs, known, head) for suite in chosen]
    report = path_of("report", ".html")
    page.html(sections + sections_of_others([one.name for one in chosen]),
              report, "plug_policy: benchmarks")
    tell("Report", report)


def compare(old, names):
    new = [record for name in names for record in load(path_of(name))[0]]
    old = [record for record in old if record.get("suite") in names]
    print(changes.text(changes.compare(old, new)))


def run(args):
    """Everything; what was asked for is checked first."""
    chosen = pick(args.suite)
    names = [name for name in chosen if name not in OWN]
    if args.runs < 0:
        raise UsageError(f"RUNS: {args.runs} is no number of runs")
    if args.compare and not names:
        raise UsageError("COMPARE: takes records of other suites than "
                         + ", ".join(OWN))
    old = load(args.compare)[0] if args.compare else None
    if args.refuse:
        return
    head = commit()
    # two at once would write each other's files
    with common.locked(path_of(".lock", ""),
                       lab.LabError("another 'make bench' is running")):
        if names:
            measure_cells([suites.SUITES[name] for name in names], args.runs,
                          head)
        for name in chosen:
            if name in OWN:
                measure_own(OWN[name], args.runs, head)
        if old is not None:
            compare(old, names)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--suite", default="", metavar="'a b'", help="all, or "
                        f"of: {', '.join(EVERY)} (default: "
                        f"{' '.join(suites.DEFAULT)})")
    parser.add_argument("--runs", type=int, default=0,
                        help="runs of each cell, each with its own seed")
    parser.add_argument("--compare", default="", metavar="OLD.json",
                        help="print what changed beyond the noise")
    parser.add_argument("--refuse", action="store_true",
                        help="what cannot be; do no more")
    args = parser.parse_args(argv)
    with common.program("bench", UsageError, ReportError, *lab.ERRORS):
        run(args)


if __name__ == "__main__":
    main()
