#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench SUITE=native: nanoseconds on a real CPU, not instructions.

The kernels run as processes of this machine, User Mode Linux, on one CPU; what
uml/ adds makes them take the time that they take on bare metal, and loads
disks from within, without system calls. A round boots each cell anew, since
where code and data come to lie differs from boot to boot, and measures all
loads in random order. What counts is the ratio of a cell to the unpatched
kernel in the same round: its mean over the rounds, with the interval that
plugtools has for all ratios.

As a program: that it works, as TAP, and nothing of a policy's speed. To see
what it makes of a kernel against itself: make nano BEFORE=HEAD AFTER=HEAD.
"""
import json
import os
import statistics
import sys

from lab.bench import lab
from lab.bench.cells import MODES
from lab.native import native_build, native_loads, native_rounds, native_uml
from lab.native.native_rounds import Cell
from plugtools.report import intervals
from scripts.checks import tap

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

RUNS = 15
PATIENCE = 120              # seconds that it waits for quiet, all in all
MANY = 16                   # delays that say how long one is
ROUNDS = os.path.join(lab.OUT, "native-rounds.jsonl")

FIELDS = ["kernel", "policy", "counters", "workload", "ratio", "ci_low",
          "ci_high", "rounds", "ns_per_io", "ns_saved", "quiet"]


def compare(rounds, workload, reference, cell):
    """What a cell is worth against another one. One round has no interval."""
    before, after = ([one["ns"][workload][name] for one in rounds]
                     for name in (reference.name, cell.name))
    found = intervals.ratio(before, after, True, "ns_per_io")
    ratio = found["ratio"]
    return {"ratio": round(ratio, 5),
            "ci_low": round(found["low"] or ratio, 5),
            "ci_high": round(found["high"] or ratio, 5),
            "ns_per_io": round(statistics.median(after), 2),
            "ns_saved": round(statistics.median(
                old - new for old, new in zip(before, after)), 2),
            "rounds": len(rounds),
            "quiet": all(one["quiet"] for one in rounds)}


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
    return {name: native_build.build(commit, name)
            for name, commit in commits.items()}


def keys(commits):
    """What rounds are of, to know them by."""
    return {"loads": list(native_loads.LOADS), **{
        name: native_build.key_of(native_build.planted(commit))
        for name, commit in commits.items()}}


def whole_plan(runs):
    commits = kernels()
    return native_rounds.Plan(images(commits), cells(commits),
                              list(native_loads.LOADS), runs or RUNS,
                              PATIENCE, ROUNDS, keys(commits))


def measure(runs, head):
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
    name, policy = one["kernel"], one["policy"]
    if name == SERIES:
        name = policy
    elif policy != "always":
        name = f"{policy} there"
    return name + (", counted" if one["counters"] else "")


def heads(names):
    """The columns' names, a word each line."""
    columns = [name.replace("rand4k-", "").replace("4k-", "-").split("-")
               for name in names]
    depth = max(map(len, columns))
    columns = [[""] * (depth - len(words)) + words for words in columns]
    return [" " * 21 + "".join(f"{word:>11}" for word in line)
            for line in zip(*columns)]


def cell_text(one):
    """A ratio and half of its interval."""
    half = f"{(one['ci_high'] - one['ci_low']) / 2:.3f}"
    return f"{one['ratio']:.3f} {half[1:] if half[0] == '0' else half}"


def table(found):
    rows = {}
    for one in found:
        rows.setdefault(label(one), []).append(one)
    first, *others = rows.items()
    return [*heads([one["workload"] for one in first[1]]),
            f"{first[0] + ', ns':21}" + "".join(
                f"{one['ns_per_io']:11.1f}" for one in first[1]),
            *(f"{name:21}" + "".join(f" {cell_text(one):>10}" for one in row)
              for name, row in others), ""]


def text(found):
    """Tables of a few loads each, as they are listed."""
    lines = []
    for group in native_loads.TABLES:
        some = [one for one in found if one["workload"] in group]
        lines += table(some) if some else []
    if not all(one["quiet"] for one in found):
        lines.append("NOISY: others used the CPUs in some rounds, although "
                     "native waited for them; measure again")
    return "\n".join(lines)


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


# --- the short form ----------------------------------------------------------

SHORT_LOADS = ["rand4k-s32", "seq4k-s32", "half-s32", "twodev-rand4k-s32-batch",
               "sleeping-s32", "uring-rand4k-s32"]
SHORT_CELLS = [Cell(SERIES), Cell(SERIES, counters=True),
               Cell(SERIES, "never"), Cell(SERIES, "adaptive")]
SHORT_ROUNDS = 2
DELAYED = ["rand4k-s32", "twodev-rand4k-s32-batch"]


def check_delay(report, found, tries=3):
    """Is a delay found that is known? It depends on the clock: what was not
    right is measured again, and says nothing if others used the CPUs."""
    name = f"native: 72 cycles are 10 to 40 ns, by {MANY} times that"
    plan = native_rounds.Plan({SERIES: found}, [
        Cell(SERIES, plant=f"delay={n}") for n in (1, MANY)], DELAYED,
                              SHORT_ROUNDS)
    for _ in range(tries):
        rounds = native_rounds.measure(plan)
        each = {load: -compare(rounds, load, *plan.cells)["ns_saved"]
                / (MANY - 1) for load in DELAYED}
        good = all(10 < ns < 40 for ns in each.values())
        said = ", ".join(f"{load}: {ns:.1f} ns" for load, ns in each.items())
        if good:
            break
    if good or all(one["quiet"] for one in rounds):
        report.check(good, name, said)
    else:
        report.skip(name, "others used the CPUs, which this needs, in each of "
                    f"{tries} tries: {said}")


def check_records(report, found):
    """Has each cell a record?"""
    plan = native_rounds.Plan({SERIES: found}, SHORT_CELLS, SHORT_LOADS,
                              SHORT_ROUNDS)
    made = records(native_rounds.measure(plan), plan, "check")
    flaws = [f"{one}: {flaw(one)}" for one in made if flaw(one)]
    if report.check(len(made) == len(SHORT_CELLS) * len(SHORT_LOADS)
                    and not flaws,
                    "native: each cell has a record with an interval",
                    "\n".join(flaws) or f"{len(made)} records"):
        print("# " + text(made).replace("\n", "\n# "))


def check_machine(report, found):
    """Are the loads what they are called? It shows in what merges. What cannot
    be must be said."""
    with native_uml.alone(), native_uml.Machine(
            "alone", found, max(os.sched_getaffinity(0))) as machine:
        machine.has_policies()
        machine.start(0, "always", False)
        for name in SHORT_LOADS[:-1]:
            load = native_loads.LOADS[name]
            one = machine.run(load.command(32000))
            share = one["merged"] / one["ios"]
            report.check(abs(share - load.merged) < 0.02,
                         f"native: {name} merges {100 * load.merged:.0f}%",
                         f"{100 * share:.1f}%")
        said = "it was taken"
        try:
            machine.start(0, "sometimes", False)
        except lab.LabError as error:
            said = str(error)
        report.check("does not take: 0 sometimes" in said,
                     "native: a policy that cannot be set is an error", said)


def main():
    """In "make check"."""
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: native.py --tap (make bench SUITE=native is the suite)")
    report = tap.Report()
    with report.must("native: kernels as processes", *lab.ERRORS):
        found = native_build.build(native_build.SERIES, SERIES)
        check_records(report, found)
        check_delay(report, found)
        check_machine(report, found)
    report.check(native_build.sections(), "native: the series has sections")
    report.exit()


if __name__ == "__main__":
    main()
