# SPDX-License-Identifier: GPL-2.0
"""What an I/O does to memory: cache lines, atomics, lines that CPUs share.

QEMU runs the guest with a plugin (plugin/lines.c), which sees every access with
its physical address. It counts while null_blk, which completes at once, is
loaded from each CPU.
"""
import collections
import dataclasses
import os
import sys
import time

from lab.bench import cells as c
from lab.bench import lab
from lab.bench import linesmap
from scripts.checks import tap
from lab.qemu import boot, guest
from scripts import common, kernel
from plugtools.report.tables import aligned

NAME = "lines"
CLAIM = ("What the CPU waits for is memory: a batch touches fewer cache lines "
         "per I/O, takes fewer atomics, and shares no more lines between CPUs.")
NOTE = """\
All per I/O, user space included. lines: distinct 64-byte lines that a CPU
touches from one submission's first I/O to the next's, per I/O. L1, L2: misses of
a modelled data cache of 32 KiB, 8-way, and of 1 MiB, 16-way, per CPU; they know
nothing of other CPUs. contended: accesses to lines that two CPUs access and one
writes, within the window; "no tag" is without requests and the words of tags,
since which CPUs come to use the same tags is chance. All touches of such a line
count, even if it is written once a tick. Counts, no times."""

PLUGIN = os.path.join(lab.HERE, "plugin")
OUT = os.path.join(lab.OUT, "lines")
# The function that is called once per bio.
IO = "submit_bio"

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

# I/Os that count; those before, in which the caches fill; and those before, in
# which all processes start, or "adaptive" finds its group. Of all CPUs.
IOS, FILL, START, LEARN = 12800, 3200, 800, 32000
WORST = 20
FIELDS = 60                     # characters of a table
SECONDS_PER_CELL = 300
# A CPU's turn ends with some CPU's tick: four times as often, so that all have
# many turns in a window.
FINER_TURNS = ("-icount", "shift=2,sleep=off")

# What a tag has: whether CPUs use the same ones is chance.
OF_TAGS = ("request", "tags->rqs", "sbitmap_word")
LINE_COUNTS = ["touches", "l1", "l2", "contended"]
COUNTS = ["insns", "loads", "stores", "atomics", "l1", "l2", "contended"]
NAMES = {"l1": "l1_misses", "l2": "l2_misses"}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A measurement."""

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
        return "%s/%s/%s/%d" % (self.workload, self.policy, self.probe,
                                self.run)

    def line(self, first):
        """The call of lines_guest.sh. Of a guest's first cell, the memory that
        I/Os are made of has yet to be allocated."""
        options, batch = LOADS[self.workload]
        warm = LEARN if first or self.policy == "adaptive" else START
        return "PROBE=%s lines_cell %s %s %d %d %d %d %d %s" % (
            self.probe, self.name, self.policy, self.cpus, warm // self.cpus,
            FILL // self.cpus, IOS // self.cpus, batch, options)


@dataclasses.dataclass
class Window:
    """What the plugin counted: by instruction, and the contended lines."""

    ios: int
    distinct: int
    sites: list = dataclasses.field(default_factory=list)
    lines: list = dataclasses.field(default_factory=list)


def every():
    """The cells."""
    return [Cell(name, policy, load, cpus, hctxs) for cpus, hctxs in CONFIGS
            for name, policy in PAIRS for load in LOADS]


# --- the guest ---------------------------------------------------------------

class Tools:
    """The plugin, and what talks to it."""

    def __init__(self):
        os.makedirs(OUT, exist_ok=True)
        self.plugin = self.compile("lines.so", "lines.c", "-fPIC", "-shared",
                                   "-fvisibility=hidden", "-D_GNU_SOURCE")
        self.say = self.compile("linessay", "linessay.c", "-static")

    @staticmethod
    def compile(name, source, *flags):
        """A program of the plugin's room; its path."""
        path = os.path.join(OUT, name)
        kernel.quiet(["gcc", "-Wall", "-Wextra", "-Werror", "-O2", *flags,
                      "-o", path, os.path.join(PLUGIN, source)], name)
        return path


def guest_module(variant):
    """Build lines_guest.ko for a kernel built already."""
    where = os.path.join(kernel.output(variant), "lines_guest")
    kernel.quiet(kernel.variant_command(
        variant, kernel.module_source(os.path.join(PLUGIN, "guest"), where),
        "modules"), "lines_guest for the %s kernel" % variant)
    return os.path.join(where, "lines_guest.ko")


class Boot:
    """A guest for the cells of one kernel, so many CPUs and queues."""

    def __init__(self, wanted, tools):
        self.wanted, self.tools, self.done = wanted, tools, 0
        first = wanted[0]
        self.variant, self.cpus = BUILDS[first.kernel], first.cpus
        self.module = guest_module(self.variant)
        self.where = os.path.join(OUT, "%s-%dcpus-%dhctxs" % (
            first.kernel, first.cpus, first.hctxs))
        self.counts = os.path.join(self.where, "counts")

    def job(self):
        """What the guest does."""
        lines = ["set -eu", ". /cells_guest.sh", ". /lines_guest.sh",
                 "make_null %d" % self.wanted[0].hctxs,
                 *(cell.line(cell is self.wanted[0]) for cell in self.wanted),
                 "print_map"]
        return "\n".join(lines) + "\n"

    def wait_for(self, name):
        """Until the plugin has written a cell's result."""
        for _ in range(10 * SECONDS_PER_CELL):
            if last_line(self.counts) == "end " + name:
                self.done += 1
                return
            time.sleep(0.1)
        raise lab.LabError(
            "%s: the plugin has not counted %s after %d s%s" % (
                self.where, name, SECONDS_PER_CELL, "" if self.cpus == 1 else
                "; QEMU 10 lets one CPU run under -icount: take QEMU 7.2"))

    def plugin(self):
        """QEMU's arguments."""
        system_map = os.path.join(kernel.output(self.variant), "System.map")
        turns = FINER_TURNS if self.cpus > 1 else ()
        return (*turns, "-plugin", "%s,out=%s,io=%x" % (
            self.tools.plugin, boot.quote(self.counts),
            boot.symbol(system_map, IO)))

    def run(self):
        """{cell: record}, without what all have."""
        if os.path.exists(self.counts):
            os.unlink(self.counts)
        parts = guest.into("", os.path.join(lab.HERE, "cells_guest.sh"),
                           os.path.join(lab.HERE, "lines_guest.sh"))
        result = guest.work(
            self.variant, self.where, self.job(), name=self.where, icount=True,
            files=(*parts, self.tools.say + ":/bin/linessay",
                   self.module + ":/modules/lines_guest.ko"),
            smp=self.cpus, mem=2048, disks=(), timeout=1800,
            on_mark=self.wait_for, devices=self.plugin(),
            # on one CPU, the kernel would take LOCK out of its code
            append="noreplace-smp")
        return self.records(result.lines)

    def records(self, lines):
        """{cell: figures}"""
        where = linesmap.Map([line[4:] for line in lines
                              if line.startswith("map ")],
                             linesmap.Symbols(self.variant), self.module)
        found = read_counts(self.counts)
        return {cell: figures(found[cell.name], where)
                for cell in self.wanted}


def last_line(path):
    """Of a file that may not be there yet."""
    try:
        with open(path, "rb") as text:
            text.seek(-min(256, os.path.getsize(path)), os.SEEK_END)
            return text.read().decode("ascii").rpartition("\n")[0].rpartition(
                "\n")[2]
    except FileNotFoundError:
        return ""


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
            elif kind == "line":
                window.lines.append((int(first, 16), *map(int, rest)))
            elif kind == "end":
                found[first] = window
    return found


# --- records -----------------------------------------------------------------

def per_io(window, items):
    """{name: counts per I/O} of (name, counts)."""
    found = {}
    for name, counts in items:
        sums = found.setdefault(name, [0] * len(counts))
        for at, count in enumerate(counts):
            sums[at] += count / window.ios
    return found


def worst(sums, names, column):
    """Those that have most of something, as rows."""
    at = names.index(column)
    order = sorted(sums.items(), key=lambda item: -item[1][at])[:WORST]
    return [(key, {NAMES.get(name, name): round(value, 3)
                   for name, value in zip(names, counts)})
            for key, counts in order if counts[at]]


def worst_symbols(sums):
    """{column: rows}: whose instructions have most."""
    return {key: [{"symbol": name, **row}
                  for name, row in worst(sums, COUNTS, key)]
            for key in ("l1", "atomics", "contended")}


def worst_structs(window, where):
    """{column: rows}: which lines have most."""
    sums = per_io(window, ((where.of(address), counts)
                           for address, *counts in window.lines))
    return {key: [{"struct": name, "line": line,
                   "fields": where.fields_of(name, line), **row}
                  for (name, line), row in worst(sums, LINE_COUNTS, key)]
            for key in ("l1", "touches", "contended")}


def contended(window, where):
    """Contended touches, and those that do not depend on a tag."""
    touches = [(where.of(address)[0], counts[-1])
               for address, *counts in window.lines]
    return {name: round(sum(count for _, count in some) / window.ios, 4)
            for name, some in (
                ("contended_per_io", touches),
                ("contended_no_tag_per_io",
                 [one for one in touches if one[0] not in OF_TAGS]))}


def figures(window, where):
    """What a window came to."""
    sums = per_io(window, ((where.known.of(pc), counts)
                           for pc, *counts in window.sites))
    totals = {NAMES.get(key, key) + "_per_io":
              round(sum(counts[at] for counts in sums.values()), 4)
              for at, key in enumerate(COUNTS)}
    # Of code the plugin counts those alone that it knew of by then.
    totals.update(contended(window, where))
    return {"ios": window.ios, **totals,
            "lines_per_io": round(window.distinct / window.ios, 4),
            "symbols": worst_symbols(sums),
            "structs": worst_structs(window, where)}


def record(cell, found, commit):
    """A cell's, for the file."""
    return {"suite": NAME, "kernel": cell.kernel, "policy": cell.policy,
            "profile": "null_blk", "workload": cell.workload, "run": cell.run,
            "commit": commit, "cpus": cell.cpus, "hctxs": cell.hctxs, **found}


def measure_cells(wanted, commit):
    """The records of cells, in order; guests that take longest begin."""
    for name in dict.fromkeys(cell.kernel for cell in wanted):
        kernel.build(BUILDS[name])
    parts, tools = collections.defaultdict(list), Tools()
    for cell in wanted:
        parts[cell.kernel, cell.cpus, cell.hctxs].append(cell)
    boots = sorted((Boot(part, tools) for part in parts.values()),
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

COLUMNS = [("insns", "insns_per_io", 1), ("lines", "lines_per_io", 2),
           ("atomics", "atomics_per_io", 2), ("L1", "l1_misses_per_io", 2),
           ("L2", "l2_misses_per_io", 3),
           ("contended", "contended_per_io", 2),
           ("no tag", "contended_no_tag_per_io", 2)]


def table(records):
    """The figures of one set of CPUs and queues, by load."""
    rows = [["load", "kernel", "policy", *(title for title, _, _ in COLUMNS)]]
    for load in LOADS:
        rows += [[load, one["kernel"], one["policy"],
                  *("%.*f" % (digits, one[key]) for _, key, digits in COLUMNS)]
                 for one in records if one["workload"] == load]
    return "\n".join(aligned(rows))


def shown(value):
    """A cell of a table."""
    if isinstance(value, str):
        return value if len(value) < FIELDS else value[:FIELDS - 3] + "..."
    return "%.2f" % value


def worst_table(one, kind, column, heads, keys):
    """The rows of a record that have most of something."""
    rows = [[*heads, *keys]]
    rows += [[*(str(row[head]) for head in heads),
              *(shown(row[key]) for key in keys)]
             for row in one[kind][column]]
    return "%s %s, %s: %s by %s\n%s\n" % (
        one["kernel"], one["policy"], one["workload"], kind,
        NAMES.get(column, column), "\n".join(aligned(rows)))


def worst_tables(one, column):
    """Whose instructions, and which lines, have most of something."""
    return [worst_table(one, "symbols", column, ["symbol"],
                        ["insns", "l1_misses", "atomics", "contended"]),
            worst_table(one, "structs", column, ["struct", "line"],
                        ["touches", "l1_misses", "contended", "fields"])]


def text(records):
    """Tables of each configuration, and who has most in two of them."""
    parts = []
    for cpus, hctxs in CONFIGS:
        some = [one for one in records
                if (one["cpus"], one["hctxs"]) == (cpus, hctxs)]
        if some:
            parts += ["%d CPUs, %d hctxs" % (cpus, hctxs), table(some), ""]
    for cpus, column in ((1, "l1"), (8, "contended")):
        for one in records:
            if (one["cpus"], one["hctxs"], one["workload"],
                    one["policy"]) == (cpus, 1, "rand4k-s32", "always"):
                parts += worst_tables(one, column)
    return "\n".join(parts)


# --- is it true? -------------------------------------------------------------

# Accesses of an atomic: QEMU shows its load and its store.
RMW = 2
# A window's figures differ by as much from the next one's. Atomics are few, and
# a tick or RCU's work in the window shows: 1.2% over eight windows, and once
# 2.04% of the lines.
REPEATS = {"insns_per_io": 0.015, "loads_per_io": 0.015, "atomics_per_io": 0.03,
           "lines_per_io": 0.04, "l1_misses_per_io": 0.03}


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
                     "lines: %s: %s %+d" % (what, key, wanted),
                     "it is %+.3f per I/O" % found)
    more = ours["atomics_per_io"] - base["atomics_per_io"]
    report.check(0.7 < more < 1.3, "lines: %s is one more of all" % what,
                 "it is %+.3f per I/O" % more)


def check_names(report, one):
    """Are instructions and lines given their names?"""
    for kind, key, wanted in (("symbols", "symbol", "blk_mq_rq_ctx_init"),
                              ("structs", "struct", "request")):
        names = [row[key] for row in one[kind]["l1"]]
        report.check(wanted in names, "lines: %s have names" % kind,
                     "no %s among %s" % (wanted, " ".join(names)))
    fields = " ".join(row["fields"] for row in one["structs"]["l1"])
    report.check("mq_hctx" in fields, "lines: pahole knows the fields", fields)


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
                     "lines: %s repeats to %g%%" % (key, 100 * within),
                     "%g and %g" % (base[key], again[key]))
    check_names(report, base)


def main():
    """What `make check` runs."""
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: lines.py --tap (make bench SUITE=lines is the suite)")
    report = tap.Report()
    with report.must("lines: guests to count in", *lab.ERRORS):
        check(report)
    report.exit()


if __name__ == "__main__":
    main()
