# SPDX-License-Identifier: GPL-2.0
"""What an I/O does to memory: cache lines, atomics, lines that CPUs share.

QEMU runs the guest with a plugin (plugin/lines.c), which sees every access with
its physical address. It counts while null_blk, which completes at once, is
loaded from each CPU.
"""
import bisect
import collections
import dataclasses
import os
import re
import sys
import time

from lab.bench import cells as c
from lab.bench import lab
from lab.qemu import boot, guest
from plugtools.report.tables import aligned
from scripts import common, kernel
from scripts.checks import tap

NAME = "lines"
CLAIM = ("What the CPU waits for is memory: a batch touches fewer cache lines "
         "per I/O, takes fewer atomics, and shares no more lines between CPUs.")
NOTE = """\
All per I/O, user space included. lines: distinct 64-byte lines that a CPU
touches from one submission's first I/O to the next's, per I/O. contended:
accesses to lines that two CPUs access and one writes, within the window, even
if it is written once a tick; which CPUs come to use the same tags is chance.
Counts, no times."""

PLUGIN = os.path.join(lab.HERE, "plugin")
OUT = os.path.join(lab.OUT, "lines")
# The functions that are called once per bio, and once per window.
CALLS = {"io": "submit_bio", "sync": "ksys_sync"}

# CPUs and hardware queues.
CONFIGS = [(1, 1), (4, 4), (8, 1), (8, 2)]
# name: (plug_load's options, I/Os of a submission)
LOADS = {"rand4k-s32": ("-a rand -d 128 -s 32 -c 32", 32),
         "rand4k-s128": ("-a rand -d 128 -s 128 -c 128", 128),
         "seq4k-s32": ("-a seq -d 128 -s 32 -c 32", 32),
         "rand4k-qd1": ("-a rand -d 1 -s 1 -c 1", 1)}
PAIRS = [("unpatched", "always"), ("unpatched", "nomerges2"),
         ("batching", "always"), *c.OURS]
BUILDS = {**c.BUILDS, "batching": "batching"}

# I/Os that count; those before, by which it is known what CPUs share; and those
# before, in which all processes start, or "adaptive" finds its group. Of all
# CPUs.
IOS, FILL, START, LEARN = 12800, 3200, 800, 32000
WORST = 20
SECONDS_PER_CELL = 900          # some 15, where the machine is not busy
USER_END = 1 << 63              # addresses
# A CPU's turn ends with some CPU's tick: four times as often, so that all have
# many turns in a window.
FINER_TURNS = ("-icount", "shift=2,sleep=off")

COUNTS = ["insns", "loads", "stores", "atomics", "contended"]


@dataclasses.dataclass(frozen=True)
class Cell:
    kernel: str
    policy: str
    workload: str
    cpus: int
    hctxs: int
    probe: str = "off"          # or a known cost, see guest/lines_guest.c
    run: int = 1

    @property
    def name(self):
        """As the plugin writes it; the kernel is the boot's."""
        return f"{self.workload}/{self.policy}/{self.probe}/{self.run}"

    def line(self):
        return (f"PROBE={self.probe} lines_cell {self.name} {self.policy} "
                f"{self.cpus} {LOADS[self.workload][0]}")

    def window(self, first):
        """What the plugin counts. Of a guest's first cell, the memory that I/Os
        are made of has yet to be allocated."""
        warm = LEARN if first or self.policy == "adaptive" else START
        each = " ".join(str(ios // self.cpus) for ios in (warm, FILL, IOS))
        return f"{self.name} {self.cpus} {each} {LOADS[self.workload][1]}\n"


@dataclasses.dataclass
class Window:
    """What the plugin counted: in all, and by instruction."""

    ios: int
    distinct: int
    contended: int
    sites: list = dataclasses.field(default_factory=list)


def every():
    return [Cell(name, policy, load, cpus, hctxs) for cpus, hctxs in CONFIGS
            for name, policy in PAIRS for load in LOADS]


# --- the guest ---------------------------------------------------------------

def make_plugin():
    os.makedirs(OUT, exist_ok=True)
    kernel.quiet(["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC",
                  "-shared", "-fvisibility=hidden", "-D_GNU_SOURCE", "-o",
                  os.path.join(OUT, "lines.so"),
                  os.path.join(PLUGIN, "lines.c")], "lines.so")


def guest_module(variant):
    where = os.path.join(kernel.output(variant), "lines_guest")
    kernel.quiet(kernel.variant_command(
        variant, kernel.module_source(os.path.join(PLUGIN, "guest"), where),
        "modules"), f"lines_guest for the {variant} kernel")
    return os.path.join(where, "lines_guest.ko")


class Boot:
    """A guest for the cells of one kernel, so many CPUs and queues."""

    def __init__(self, wanted):
        self.wanted, self.done = wanted, 0
        first = wanted[0]
        self.variant, self.cpus = BUILDS[first.kernel], first.cpus
        self.module = guest_module(self.variant)
        self.where = os.path.join(
            OUT, f"{first.kernel}-{first.cpus}cpus-{first.hctxs}hctxs")
        self.counts = os.path.join(self.where, "counts")

    def job(self):
        return "\n".join([
            "set -eu", ". /cells_guest.sh", ". /lines_guest.sh",
            f"null_disk {self.wanted[0].hctxs}",
            *(cell.line() for cell in self.wanted), ""])

    def wait_for(self, name):
        """Until the plugin has written a cell's result."""
        for _ in range(10 * SECONDS_PER_CELL):
            if last_line(self.counts) == "end " + name:
                self.done += 1
                return
            time.sleep(0.1)
        advice = "" if self.cpus == 1 else \
            "; QEMU 10 lets one CPU run under -icount: take QEMU 7.2"
        raise lab.LabError(f"{self.where}: the plugin has not counted {name} "
                           f"after {SECONDS_PER_CELL} s{advice}")

    def plugin(self):
        os.makedirs(self.where, exist_ok=True)
        with open(self.counts, "w", encoding="ascii"):
            pass
        with open(self.counts + ".plan", "w", encoding="ascii") as plan:
            plan.writelines(cell.window(cell is self.wanted[0])
                            for cell in self.wanted)
        system_map = os.path.join(kernel.output(self.variant), "System.map")
        turns = FINER_TURNS if self.cpus > 1 else ()
        return (*turns, "-plugin", ",".join([
            f"{OUT}/lines.so,out={boot.quote(self.counts)}",
            f"plan={boot.quote(self.counts)}.plan",
            *(f"{name}={boot.symbol(system_map, call):x}"
              for name, call in CALLS.items())]))

    def run(self):
        """{cell: record}, without what all have."""
        parts = guest.into("", os.path.join(lab.HERE, "cells_guest.sh"),
                           os.path.join(lab.HERE, "lines_guest.sh"))
        guest.work(
            self.variant, self.where, self.job(), name=self.where, icount=True,
            files=(*parts, *guest.into("/modules", self.module)),
            smp=self.cpus, mem=2048, disks=(), timeout=1800,
            on_mark=self.wait_for, devices=self.plugin(),
            # on one CPU, the kernel would take LOCK out of its code
            append="noreplace-smp")
        known, found = Symbols(self.variant), read_counts(self.counts)
        return {cell: figures(found[cell.name], known)
                for cell in self.wanted}


class Symbols:
    """The symbols of a kernel."""

    def __init__(self, variant):
        found = []
        with open(os.path.join(kernel.output(variant), "System.map"),
                  encoding="ascii") as lines:
            for line in lines:
                address, kind, name = line.split()
                if kind not in "aA":
                    found.append((int(address, 16), name))
        found.sort()
        self.addresses = [address for address, _ in found]
        self.names = [name for _, name in found]

    def of(self, address):
        """The symbol's name, without what a compiler adds to it."""
        if address < USER_END:
            return "(user space)"
        if address >= self.addresses[-1]:
            return "(modules)"
        at = bisect.bisect(self.addresses, address) - 1
        name = self.names[at] if at >= 0 else "?"
        return re.sub(r"\.(isra|part|constprop|cold)\b.*", "", name)


def last_line(path):
    """Only a whole one; the guest is stopped by it."""
    with open(path, "rb") as text:
        text.seek(-min(256, os.path.getsize(path)), os.SEEK_END)
        return text.read().decode("ascii").rpartition("\n")[0].rpartition("\n")[2]


def read_counts(path):
    """{name: Window} that the plugin wrote."""
    found, window = {}, None
    with open(path, encoding="ascii") as lines:
        for line in lines:
            kind, first, *rest = line.split()
            if kind == "window":
                window = Window(*map(int, rest))
            elif kind == "site":
                window.sites.append((int(first, 16), *map(int, rest)))
            elif kind == "end":
                found[first] = window
    return found


# --- records -----------------------------------------------------------------

def worst(sums, column):
    """Those whose instructions have most of something, as rows."""
    at = COUNTS.index(column)
    order = sorted(sums.items(), key=lambda item: -item[1][at])[:WORST]
    return [{"symbol": name, **{key: round(value, 3)
                                for key, value in zip(COUNTS, counts)}}
            for name, counts in order if counts[at]]


def figures(window, known):
    sums = {}
    for pc, *counts in window.sites:
        found = sums.setdefault(known.of(pc), [0] * len(COUNTS))
        for at, count in enumerate(counts):
            found[at] += count / window.ios
    totals = {f"{key}_per_io": round(sum(one[at] for one in sums.values()), 4)
              for at, key in enumerate(COUNTS)}
    # Of code the plugin counts those alone that it knew of by then.
    totals["contended_per_io"] = round(window.contended / window.ios, 4)
    return {"ios": window.ios, **totals,
            "lines_per_io": round(window.distinct / window.ios, 4),
            "symbols": {key: worst(sums, key)
                        for key in ("insns", "atomics", "contended")}}


def record(cell, found, commit):
    return {"suite": NAME, "kernel": cell.kernel, "policy": cell.policy,
            "profile": "null_blk", "workload": cell.workload, "run": cell.run,
            "commit": commit, "cpus": cell.cpus, "hctxs": cell.hctxs, **found}


def measure_cells(wanted, commit):
    """The records of cells, in order; guests that take longest begin."""
    for name in dict.fromkeys(cell.kernel for cell in wanted):
        kernel.build(BUILDS[name])
    make_plugin()
    parts = collections.defaultdict(list)
    for cell in wanted:
        parts[cell.kernel, cell.cpus, cell.hctxs].append(cell)
    boots = sorted(map(Boot, parts.values()),
                   key=lambda one: -one.cpus * len(one.wanted))
    found = guest.together(
        {one.where: one.run for one in boots},
        lambda _, seconds: common.how_far(
            NAME, sum(one.done for one in boots), len(wanted), "cells",
            seconds))
    known = {cell: one for part in found.values() for cell, one in part.items()}
    return [record(cell, known[cell], commit) for cell in wanted]


def measure(_runs, commit):
    """All records: counts repeat, so that one run does."""
    return measure_cells(every(), commit)


# --- the tables --------------------------------------------------------------

COLUMNS = ["insns", "lines", "atomics", "contended"]


def table(records):
    """The figures of one set of CPUs and queues, by load."""
    rows = [["load", "kernel", "policy", *COLUMNS]]
    for load in LOADS:
        rows += [[load, one["kernel"], one["policy"],
                  *(f"{one[key + '_per_io']:.2f}" for key in COLUMNS)]
                 for one in records if one["workload"] == load]
    return "\n".join(aligned(rows))


def worst_table(one, column):
    rows = [["symbol", *COUNTS]]
    rows += [[row["symbol"], *(f"{row[key]:.2f}" for key in COUNTS)]
             for row in one["symbols"][column]]
    return [f"{one['kernel']} {one['policy']}, {one['workload']}: symbols by "
            f"{column}", *aligned(rows), ""]


def text(records):
    """Tables of each configuration, and who has most in two of them."""
    parts = []
    for cpus, hctxs in CONFIGS:
        some = [one for one in records
                if (one["cpus"], one["hctxs"]) == (cpus, hctxs)]
        if some:
            parts += [f"{cpus} CPUs, {hctxs} hctxs", table(some), ""]
    for cpus, column in ((1, "atomics"), (8, "contended")):
        for one in records:
            if (one["cpus"], one["hctxs"], one["workload"],
                    one["policy"]) == (cpus, 1, "rand4k-s32", "always"):
                parts += worst_table(one, column)
    return "\n".join(parts)


# --- is it true? -------------------------------------------------------------

# Accesses of an atomic: QEMU shows its load and its store.
RMW = 2
# A window's figures differ by as much from the next one's. Atomics are few, and
# a tick or RCU's work in the window shows: 1.2% over eight windows, and once
# 2.04% of the lines.
REPEATS = {"insns_per_io": 0.015, "loads_per_io": 0.015, "atomics_per_io": 0.03,
           "lines_per_io": 0.04}


def of_module(one, key):
    """What the module's code does per I/O. The scheduler's lines are shared in
    some windows and not in others, by chance."""
    return sum(row[key] for row in one["symbols"][key]
               if row["symbol"] == "(modules)")


def check_probe(report, what, ours, base, contended):
    """Is there one more atomic, and what it must do to other CPUs?"""
    for key, wanted in (("atomics", 1), ("contended", contended)):
        found = of_module(ours, key) - of_module(base, key)
        report.check(abs(found - wanted) < 0.02,
                     f"lines: {what}: {key} {wanted:+d}",
                     f"it is {found:+.3f} per I/O")
    more = ours["atomics_per_io"] - base["atomics_per_io"]
    report.check(0.7 < more < 1.3, f"lines: {what} is one more of all",
                 f"it is {more:+.3f} per I/O")


def check(report):
    """Known costs are found, and nothing else; a window repeats."""
    cells = [Cell("patched", "always", "rand4k-s32", 2, 2, probe, run)
             for run, probe in enumerate("0120", 1)]
    base, shared, own, again = measure_cells(cells, "")
    check_probe(report, "an atomic that CPUs share", shared, base, RMW)
    check_probe(report, "an atomic of each CPU, on a line of its own", own,
                base, 0)
    for key, within in REPEATS.items():
        report.check(abs(again[key] / base[key] - 1) <= within,
                     f"lines: {key} repeats to {100 * within:g}%",
                     f"{base[key]:g} and {again[key]:g}")
    names = [row["symbol"] for row in base["symbols"]["insns"]]
    report.check("blk_mq_submit_bio" in names, "lines: symbols have names",
                 " ".join(names))


def main():
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: lines.py --tap (make bench SUITE=lines is the suite)")
    report = tap.Report()
    with report.must("lines: guests to count in", *lab.ERRORS):
        check(report)
    report.exit()


if __name__ == "__main__":
    main()
