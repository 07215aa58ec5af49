# SPDX-License-Identifier: GPL-2.0
"""What adaptive is worth to software that others wrote.

As a program: a few of its cells, with what must be true of them, as TAP."""
import sys

from lab.bench import cells as c, foreign, lab
from scripts import kernel
from scripts.checks import tap
from plugtools.report.records import ReportError, check
from plugtools.report.summary import groups
from plugtools.report.tables import aligned, figures

ALWAYS, NOMERGES = ("unpatched", "always"), ("unpatched", "nomerges2")
OURS, ADAPTIVE = ("patched", "always"), ("patched", "adaptive")
PAIRS = [ALWAYS, NOMERGES, OURS, ADAPTIVE]

# What is measured on every device, since policies differ there the most.
EVERYWHERE = ["fio-seq4k-s32", "tio-seq4k-s32", "tio-rand4k-s32",
              "fio-rand4k-s32", "fio-mix70-4k-s32", "fio-seq128k-s32"]
DEVICES = ["gen5", "optane", "lockstep", c.NVME, c.NULL_BLK]


def names(loads):
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


# --- the table ---------------------------------------------------------------

def rows(summary):
    """[(device and load, {pair: cell of the summary})], worst adaptive
    first."""
    found = [(f"{profile}: {load}", {(cell["kernel"], cell["policy"]): cell
                                     for cell in group})
             for (profile, load), group in groups(
                 summary, "profile", "workload").items()]
    return sorted(found, key=lambda row: row[1][ADAPTIVE]["ratio"])


def to_best(group):
    """adaptive to the better of what a user of the unpatched kernel has."""
    return group[ADAPTIVE]["iops"]["mean"] / max(
        group[pair]["iops"]["mean"] for pair in (ALWAYS, NOMERGES))


def text(summary, _records):
    found = rows(summary)
    table = [["device: load", "IOPS", "nomerges2", "always", "adaptive",
              "to best", "requests/IO"]]
    table += [[name, f"{group[ALWAYS]['iops']['mean']:.0f}",
               *(f"{group[pair]['ratio']:.3f}" for pair in PAIRS[1:]),
               f"{to_best(group):.3f}",
               " ".join(figures(group[pair]["requests_per_io"])[0]
                        for pair in (ALWAYS, ADAPTIVE))]
              for name, group in found]
    bad = sum(group[ADAPTIVE]["ratio"] < 0.99 for _, group in found)
    worse = sum(to_best(group) < 0.99 for _, group in found)
    return ["IOPS of always of the unpatched kernel, ratio to these, and of "
            "adaptive to the better of both unpatched ones:", "",
            *aligned(table), "",
            f"adaptive is below 0.99 of the unpatched always in {bad} of "
            f"{len(found)}, and of the better one in {worse}"]


# --- the short form ----------------------------------------------------------

# One of each kind: what is checked of them does not hang on speed.
SHORT = ["fio-rand4k-s32", "fio-seq4k-s32", "tio-rand4k-s32",
         "ext4-rand4k-s32", "db-readrandom"]
# At most so many requests of an I/O where all are neighbours.
MERGED = 0.1


def verdicts(record):
    """[(what must be true of a record, whether it is)]."""
    requests = record["requests_per_io"] or 0
    wanted = [("did I/O on the disk", record["iops"] > 0 and requests > 0),
              ("ran under its policy", record["nomerges"] == 0 and
               record["in_force"] == (record["policy"] if record["kernel"]
                                      == "patched" else "none"))]
    if record["workload"].startswith("fio-seq4k"):
        wanted.append(("neighbours merged", requests < MERGED))
    if record["workload"].startswith(("fio-rand4k", "tio-rand4k")):
        wanted.append(("one request for each I/O", 0.99 < requests <= 1))
    return wanted


def tap_main():
    report = tap.Report()
    with report.must("loads of others", ReportError, *lab.ERRORS):
        for variant in ("patched", "base"):
            kernel.build(variant)
        found, _ = lab.measure(c.product("loads", [ALWAYS, ADAPTIVE], ["null"],
                                         SHORT), "loads", "")
        check(found)
    for record in found:
        for what, good in verdicts(record):
            report.check(good, f"{record['workload']}, {record['kernel']} "
                         f"{record['policy']}: {what}", repr(record))
    report.exit()


if __name__ == "__main__":
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: loads.py --tap")
    tap_main()
