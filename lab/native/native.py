#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench SUITE=native: nanoseconds on a real CPU, not instructions.

The kernels run as processes of this machine, User Mode Linux, on one CPU; what
uml/ adds makes them take the time that they take on bare metal, and loads
disks from within, without system calls. A round boots each cell anew, since
where code and data come to lie differs from boot to boot, and measures all
loads in random order. What counts is the ratio of a cell to the unpatched
kernel in the same round: its median over the rounds, and the interval that the rounds,
drawn again and again, put it in.
"""
import argparse
import json
import os
import random
import statistics
import sys


from lab.bench import lab
from lab.native import native_build
from lab.native import native_loads
from lab.native import native_rounds
from lab.native import native_uml
from scripts.checks import tap
from scripts import common
from lab.native.native_rounds import Cell

NAME = "native"
CLAIM = ("what each section and each policy costs and gains in time, on this "
         "machine's CPU.")
NOTE = """\
Ratio: ns per I/O of the unpatched kernel / of this row, in a round; above
1 is faster. After it, half of the interval that holds it with 95% confidence.
Rows: the kernel at the end of each section, then the whole series in each mode,
its counters off and on. Columns: I/Os in a plug, random unless they are called
otherwise; "cold": caches are emptied before each plug; "half": every second I/O
continues the last one; "unannounced": the plug is not told how many come;
"batch": polled, completed in batches; "sleeping": every second I/O is waited
for, but by "never", which leaves nothing to wait for. "uring" is plug_load: a
system call, which takes 10 us and more here and far less on bare metal, is most
of its time. User Mode Linux on null_blk, one CPU: no interrupts, no DMA, no
other CPU that a lock or a cache line could come from."""

BASE, SERIES = "unpatched", "patched"
REFERENCE = Cell(BASE)
MODES = ["always", "never", "seq-small", "adaptive"]

RUNS = 15
PATIENCE = 120              # seconds that it waits for quiet, all in all
DRAWS = 2000
CONFIDENCE = 0.95
MANY = 16                   # delays that say how long one is
ROUNDS = os.path.join(lab.OUT, "native-rounds.jsonl")

FIELDS = ["kernel", "policy", "counters", "workload", "ratio", "ci_low",
          "ci_high", "rounds", "ns_per_io", "ns_saved", "quiet"]


# --- statistics --------------------------------------------------------------

def interval(ratios, rng):
    """What the median might have been, had other such rounds been drawn."""
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(DRAWS))
    cut = int(DRAWS * (1 - CONFIDENCE) / 2)
    return medians[cut], medians[-1 - cut]


def compare(rounds, workload, reference, cell):
    """What a cell is worth against another one."""
    pairs = [(one["ns"][workload][reference.name],
              one["ns"][workload][cell.name]) for one in rounds]
    ratios = [before / after for before, after in pairs]
    low, high = interval(ratios, random.Random(1))
    ns = statistics.median(after for _, after in pairs)
    saved = statistics.median(before - after for before, after in pairs)
    return {"ratio": round(statistics.median(ratios), 5),
            "ci_low": round(low, 5), "ci_high": round(high, 5),
            "ns_per_io": round(ns, 2), "ns_saved": round(saved, 2),
            "rounds": len(rounds), "quiet": all(one["quiet"]
                                                for one in rounds)}


def records(rounds, plan, head):
    """Of all cells and loads, those of the reference first."""
    return [{"suite": NAME, "kernel": cell.kernel, "policy": cell.policy,
             "counters": cell.counters, "workload": name, "commit": head,
             **compare(rounds, name, plan.cells[0], cell)}
            for name in plan.loads for cell in plan.cells]


# --- measuring ---------------------------------------------------------------

def kernels():
    """{name: commit}: unpatched, the ends of the sections, patched."""
    return {BASE: "refs/tags/base", **native_build.sections(),
            SERIES: native_build.SERIES}


def cells(names):
    """All of them, of kernels in order; the counters come with a section."""
    return [REFERENCE, Cell(BASE, "nomerges2"),
            *(Cell(name) for name in names if name not in (BASE, SERIES)),
            *(Cell(SERIES, mode, counters) for counters in (False, True)
              for mode in MODES)]


def images(commits):
    """{name: images} of {name: commit}"""
    return {name: native_build.build(commit, name)
            for name, commit in commits.items()}


def keys(commits):
    """What rounds are of, to know them by."""
    return {"loads": list(native_loads.LOADS), **{
        name: native_build.key_of(native_build.planted(commit))
        for name, commit in commits.items()}}


def whole_plan(runs):
    """Of the suite."""
    commits = kernels()
    return native_rounds.Plan(images(commits), cells(commits),
                              list(native_loads.LOADS), runs or RUNS,
                              PATIENCE, ROUNDS, keys(commits))


def measure(runs, head):
    """The suite's records."""
    plan = whole_plan(runs)
    return records(native_rounds.measure(plan), plan, head)


def cell_of(name):
    """The kernel at the end of a section."""
    return Cell(name if name in kernels() else SERIES)


def rounds_of_now(runs):
    """The rounds of this code: those that there are, if they are enough."""
    commits = kernels()
    try:
        with open(ROUNDS, encoding="ascii") as lines:
            first, *found = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        first, found = {}, []
    if first.get("kernels") == keys(commits) and len(found) >= runs:
        return found
    return native_rounds.measure(whole_plan(runs))


# --- what it says ------------------------------------------------------------

def label(one):
    """A row's name."""
    name = one["kernel"]
    if one["policy"] != "always" or name == SERIES:
        name = one["policy"] if name == SERIES else one["policy"] + " there"
    return name + (", counted" if one["counters"] else "")


def short(workload):
    """A column's name, and its words."""
    return workload.replace("rand4k-", "").replace("4k-", "-").split("-")


def heads(names):
    """The columns' names, a word each line."""
    columns = [short(name) for name in names]
    depth = max(map(len, columns))
    columns = [[""] * (depth - len(words)) + words for words in columns]
    return ["%-21s" % "" + "".join("%11s" % words[i] for words in columns)
            for i in range(depth)]


def cell_text(one):
    """A ratio and half of its interval."""
    return "%11s" % ("%.3f %s" % (one["ratio"], (
        "%.3f" % ((one["ci_high"] - one["ci_low"]) / 2))[1:]))


def text(found):
    """Tables of a few loads each, as they are listed."""
    lines = []
    for group in native_loads.TABLES:
        some = [one for one in found if one["workload"] in group]
        if some:
            lines += table(some) + [""]
    if not all(one["quiet"] for one in found):
        lines.append("NOISY: others used the CPUs in some rounds, although "
                     "native waited for them; measure again")
    return "\n".join(lines)


def table(found):
    """Of some loads: a row for each cell."""
    rows = {}
    names = list(dict.fromkeys(one["workload"] for one in found))
    for one in found:
        rows.setdefault(label(one), []).append(one)
    first, *others = rows.items()
    return [*heads(names),
            "%-21s" % (first[0] + ", ns") + "".join(
                "%11.1f" % one["ns_per_io"] for one in first[1]),
            *("%-21s" % name + "".join(map(cell_text, row))
              for name, row in others)]


# --- is it right? ------------------------------------------------------------

def flaw(one):
    """What is wrong with a record, or None."""
    missing = [name for name in FIELDS if name not in one]
    if missing:
        return "lacks " + ", ".join(missing)
    if not one["ci_low"] <= one["ratio"] <= one["ci_high"]:
        return "its ratio is outside its interval"
    if one["ns_per_io"] <= 0 or one["rounds"] < 1:
        return "it has measured nothing"
    return None


def holds(one, value):
    """Is a value in the interval of a record?"""
    return one["ci_low"] <= value <= one["ci_high"]


def compared(args, names, found, wanted):
    """{load: record of the second cell against the first} of a validation."""
    plan = native_rounds.Plan(found, wanted, names, args.rounds,
                              args.patience)
    rounds = native_rounds.measure(plan)
    return {cell: {name: compare(rounds, name, wanted[0], cell)
                   for name in names} for cell in wanted[1:]}


def validate_same(args):
    """The unpatched kernel against itself: 1 should be in the interval, but for
    one load in twenty, about."""
    base = native_build.build(kernels()[BASE], BASE)
    again = Cell("again")
    one = compared(args, args.loads, {BASE: base, "again": base},
                   [REFERENCE, again])[again]
    for name, found in one.items():
        print("%-26s %.4f, %.4f to %.4f: %s" % (
            name, found["ratio"], found["ci_low"], found["ci_high"],
            "good" if holds(found, 1) else "1 IS NOT IN IT"))
    good = sum(holds(found, 1) for found in one.values())
    print("1 is in %d of %d intervals" % (good, len(one)))
    return good >= 0.85 * len(one)


def validate_delay(args):
    """Some 20 ns before each bio, twice that, and many times: the last says how
    long one is, to half a percent, as it has been at other places in memory.
    None at all is not one less: it lacks the fences."""
    base = native_build.build(kernels()[BASE], BASE)
    names = [name for name in args.loads
             if not native_loads.LOADS[name].system_calls]
    reference, double, many = (Cell(BASE, delay=n) for n in (1, 2, 1 + MANY))
    found = compared(args, names, {BASE: base}, [reference, double, many])
    wrong = 0
    for name, one in found[double].items():
        delay = -found[many][name]["ns_saved"] / MANY
        expected = 1 - delay / one["ns_per_io"]
        good = (one["ci_low"] - 0.005 <= expected <= one["ci_high"] + 0.005
                and one["ci_high"] < 1)
        wrong += not good
        print("%-26s %5.2f ns are %.4f; found: %.4f, %.4f to %.4f: %s" % (
            name, delay, expected, one["ratio"], one["ci_low"],
            one["ci_high"], "good" if good else "WRONG"))
    return not wrong


VALIDATIONS = {"same": validate_same, "delay": validate_delay}


# --- the short form ----------------------------------------------------------

SHORT_LOADS = ["rand4k-s32", "seq4k-s32", "half-s32", "twodev-rand4k-s32-batch",
               "sleeping-s32", "uring-rand4k-s32"]
SHORT_CELLS = [Cell(SERIES), Cell(SERIES, counters=True),
               Cell(SERIES, "never"), Cell(SERIES, "adaptive")]
SHORT_ROUNDS = 2
DELAY = Cell(SERIES, delay=MANY)
DELAYED = ["rand4k-s32", "twodev-rand4k-s32-batch"]


def refuses(report, name, call):
    """A result: what cannot be must be said."""
    try:
        call()
    except lab.LabError as error:
        report.check(True, name, str(error))
    else:
        report.check(False, name, "it was taken")


def machine_of(found, cpu):
    """A patched kernel."""
    return native_uml.Machine("alone", found, cpu)


def ask_nonsense(found, cpu):
    """Have a kernel set a policy that there is not."""
    with machine_of(found, cpu) as machine:
        machine.has_policies()
        machine.start(0, "sometimes", False)


def check_merges(report, found, cpu):
    """Are the loads what they are called? It shows in what merges."""
    with machine_of(found, cpu) as machine:
        machine.has_policies()
        machine.start(0, "always", False)
        for name in SHORT_LOADS[:-1]:
            load = native_loads.LOADS[name]
            one = machine.run(load.command(32000))
            share = one["merged"] / one["ios"]
            report.check(abs(share - load.merged) < 0.02,
                         "native: %s merges %.0f%%" % (name,
                                                       100 * load.merged),
                         "%.1f%%" % (100 * share))


def check_delay(report, found):
    """Is a delay found that is known?"""
    plan = native_rounds.Plan({SERIES: found}, [Cell(SERIES, delay=1), DELAY],
                              DELAYED, SHORT_ROUNDS)
    rounds = native_rounds.measure(plan)
    for name in DELAYED:
        saved = compare(rounds, name, *plan.cells)["ns_saved"]
        chain = -saved / (MANY - 1)
        report.check(10 < chain < 40, "native: 72 cycles are 10 to 40 ns, by "
                     "%d times that in %s" % (MANY - 1, name),
                     "%.1f ns" % chain)


def check_records(report, found):
    """Has each cell a record?"""
    plan = native_rounds.Plan({SERIES: found}, SHORT_CELLS, SHORT_LOADS,
                              SHORT_ROUNDS)
    made = records(native_rounds.measure(plan), plan, "check")
    flaws = ["%s: %s" % (one, flaw(one)) for one in made if flaw(one)]
    if report.check(len(made) == len(SHORT_CELLS) * len(SHORT_LOADS)
                    and not flaws,
                    "native: each cell has a record with an interval",
                    "\n".join(flaws) or "%d records" % len(made)):
        print("# " + text(made).replace("\n", "\n# "))


def short_form():
    """In "make check": that it works, and nothing of a policy's speed."""
    report = tap.Report()
    found = native_build.build(native_build.SERIES, SERIES)
    check_records(report, found)
    check_delay(report, found)
    with native_uml.alone():
        cpu = max(os.sched_getaffinity(0))
        check_merges(report, found, cpu)
        refuses(report, "native: a policy that cannot be set is an error",
                lambda: ask_nonsense(found, cpu))
    report.check(native_build.sections(), "native: the series has sections")
    report.exit()


def main():
    """What "make bench" does not ask for."""
    parser = argparse.ArgumentParser(description="Is SUITE=native right?")
    add = parser.add_argument
    add("--tap", action="store_true", help="a short form, for 'make check'")
    add("--validate", choices=VALIDATIONS, help="'same': the unpatched "
        "kernel against itself; 'delay': is a known delay found?")
    add("--rounds", type=int, default=RUNS, help="[%d]" % RUNS)
    add("--loads", nargs="+", choices=native_loads.LOADS, metavar="NAME",
        default=list(native_loads.LOADS), help="of: %s (default: all)"
        % " ".join(native_loads.LOADS))
    add("--patience", type=int, default=PATIENCE, help="seconds that it waits "
        "for a quiet machine [%d]" % PATIENCE)
    args = parser.parse_args()
    if args.tap == bool(args.validate):
        parser.error("give either --tap or --validate")
    with common.program("native", *lab.ERRORS):
        if args.tap:
            short_form()
        good = VALIDATIONS[args.validate](args)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
