#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What adaptive is worth to software that others wrote.

As a program: a few of its cells, with what must be true of them, as TAP.
"""
import os
import sys

from lab.bench import cells as c
from lab.bench import foreign, lab
from scripts.checks import tap
from lab.bench.gnuplot import COLOURS, INK, POINTS, quoted, render
from plugtools.report.records import ReportError, check, write_file
from plugtools.report.summary import groups
from plugtools.report.tables import figures

ALWAYS, NOMERGES = ("unpatched", "always"), ("unpatched", "nomerges2")
OURS, ADAPTIVE = ("patched", "always"), ("patched", "adaptive")
PAIRS = [ALWAYS, NOMERGES, OURS, ADAPTIVE]

# What is measured on every device, since policies differ there the most.
EVERYWHERE = ["fio-seq4k-s32", "tio-seq4k-s32", "tio-rand4k-s32",
              "fio-rand4k-s32", "fio-mix70-4k-s32", "fio-seq128k-s32"]
DEVICES = ["gen5", "optane", "lockstep", c.NVME, c.NULL_BLK]


def names(loads):
    """Of workloads."""
    return [load.name for load in loads]


def make(runs):
    """The cells: nearly every load on null and gen4, the most telling ones on
    the other devices."""
    return [cell for devices, loads in (
        (["null", "gen4"], names((*foreign.RAW, *foreign.FILES))),
        (["null"], names(foreign.LARGE)),
        (["gen4"], names((*foreign.WORK, foreign.PHASES))),
        (["null", c.NULL_BLK], [foreign.LATER.name]),
        (DEVICES, EVERYWHERE))
            for cell in c.product("loads", PAIRS, devices, loads, runs)]


# --- the table, and the plot -------------------------------------------------

def rows(summary):
    """[(device and load, {pair: cell of the summary})], worst adaptive
    first."""
    found = [("%s: %s" % key, {(cell["kernel"], cell["policy"]): cell
                               for cell in group})
             for key, group in groups(
                 summary, "profile", "workload").items()]
    return sorted(found, key=lambda row: row[1][ADAPTIVE]["ratio"])


def to_best(group):
    """adaptive to the better of what a user of the unpatched kernel has."""
    return group[ADAPTIVE]["iops"]["mean"] / max(
        group[pair]["iops"]["mean"] for pair in (ALWAYS, NOMERGES))


def text(summary, _records):
    """Each load in a line; draws the plot, too."""
    found = rows(summary)
    draw(found)
    lines = ["IOPS of always of the unpatched kernel, ratio to these, and of "
             "adaptive to the better of both unpatched ones:", "",
             "%-30s %9s %9s %7s %8s %7s   %s" % (
                 "device: load", "IOPS", "nomerges2", "always", "adaptive",
                 "to best", "requests/IO")]
    for name, group in found:
        lines.append("%-30s %9.0f %9.3f %7.3f %8.3f %7.3f   %s" % (
            name, group[ALWAYS]["iops"]["mean"],
            *(group[pair]["ratio"] for pair in PAIRS[1:]), to_best(group),
            " ".join(figures(group[pair]["requests_per_io"])[0]
                     for pair in (ALWAYS, ADAPTIVE))))
    return lines + mean_lines(found)


def mean_lines(found):
    """How often adaptive loses, and how much."""
    bad = [name for name, group in found if group[ADAPTIVE]["ratio"] < 0.99]
    return ["", "adaptive is below 0.99 of the unpatched always in %d of %d, "
            "and of the better one in %d" % (
                len(bad), len(found),
                sum(to_best(group) < 0.99 for _, group in found))]


COLOUR = {NOMERGES: "nomerges2", OURS: "always", ADAPTIVE: "adaptive"}


def script(found):
    """gnuplot's commands: a line for each load, a point for each policy."""
    lines = ["set lmargin 34", "set tmargin 3", "set tics nomirror",
             "set yrange [%g:-0.6]" % (len(found) - 0.4),
             "set grid xtics ytics lt 1 lc rgb '#d8d8d8'",
             "set xlabel 'IOPS, 1.00 is always of the unpatched kernel'",
             "set key tmargin center horizontal maxrows 1",
             "set arrow from 1,graph 0 to 1,graph 1 nohead lw 1.5 lc rgb '%s'"
             % INK,
             "set ytics (%s)" % ", ".join(
                 "%s %d" % (quoted(name), at)
                 for at, (name, _) in enumerate(found))]
    plots = []
    for number, (pair, policy) in enumerate(COLOUR.items()):
        lines += ["$p%d << EOD" % number, *(
            "%g %d" % (group[pair]["ratio"], at)
            for at, (_, group) in enumerate(found)), "EOD"]
        plots.append("$p%d using 1:2 with points pt %d ps 0.8 lc rgb '%s' "
                     "title %s" % (number, POINTS[policy][1],
                                   COLOURS[policy],
                                   quoted(" ".join(pair))))
    return lines + ["plot " + ", ".join(plots)]


def draw(found):
    """build/bench/loads.svg and .png."""
    size = (860, 110 + 17 * len(found))
    for suffix in ("svg", "png"):
        write_file(
            os.path.join(lab.OUT, "loads." + suffix),
            render((script(found), size), suffix))


# --- the short form ----------------------------------------------------------

# One of each kind: what is checked of them does not hang on speed.
SHORT = ["fio-rand4k-s32", "fio-seq4k-s32", "tio-rand4k-s32",
         "ext4-rand4k-s32", "db-readrandom"]
# At most so many requests of an I/O where all are neighbours.
MERGED = 0.1


def verdicts(record):
    """[(what must be true of a record, whether it is)]."""
    patched = record["kernel"] == "patched"
    wanted = [("did I/O on the disk", record["iops"] > 0
               and (record["requests_per_io"] or 0) > 0),
              ("ran under its policy", record["in_force"] == (
                  record["policy"] if patched else "none")
               and record["nomerges"] == 0)]
    if record["workload"].startswith("fio-seq4k"):
        wanted.append(("neighbours merged",
                       record["requests_per_io"] < MERGED))
    if record["workload"].startswith(("fio-rand4k", "tio-rand4k")):
        wanted.append(("one request for each I/O",
                       0.99 < record["requests_per_io"] <= 1))
    return wanted


def tap_measure():
    """The records of the short form."""
    for variant in ("patched", "base"):
        lab.kernel.build(variant)
    return lab.measure(c.product("loads", [ALWAYS, ADAPTIVE], ["null"], SHORT),
                       "loads", "")[0]


def tap_main():
    """Reports as TAP."""
    report = tap.Report()
    with report.must("loads of others", ReportError, *lab.ERRORS):
        found = tap_measure()
        check(found)
    report.check(True, "records are well-formed")
    for record in found:
        for what, good in verdicts(record):
            report.check(good, "%s, %s %s: %s" % (
                record["workload"], record["kernel"], record["policy"], what),
                repr(record))
    report.exit()


if __name__ == "__main__":
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: loads.py --tap")
    tap_main()
