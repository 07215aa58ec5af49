# SPDX-License-Identifier: GPL-2.0
"""make bench SUITE=native: nanoseconds on a real CPU, not instructions.

The kernels run as processes of this machine, User Mode Linux, on one CPU or, for
some of the loads, on two; what uml/ adds makes them take the time that they take
on bare metal, and loads disks from within, without system calls. A round boots each cell anew, since
where code and data come to lie differs from boot to boot, and measures all
loads in random order. What counts is the ratio of a cell to the unpatched
kernel in the same round: its mean over the rounds, with the interval that
plugtools has for all ratios.

As a program: that it works, as TAP, and nothing of a policy's speed. To see
what it makes of a kernel against itself: make nano BEFORE=HEAD AFTER=HEAD."""
import itertools
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
from scripts.series import measured
from scripts.series.mail import cover

NAME = "native"
CLAIM = ("what each section and each policy costs and gains in time, on this "
         "machine's CPU.")
NOTE = """\
Ratio: ns per I/O of the unpatched kernel / of this row, in a round; above
1 is faster. After it, half of the interval that holds it with 95% confidence.
Rows: the kernel at the end of each section, then the whole series in each mode,
its counters off and on. Columns: I/Os in a plug, random unless they are called
otherwise. All loads follow each other on the same disks, in an order of each
round, so that what a kernel has learnt before is part of it.
Documentation/block/plug-measurements.rst says what the loads' names mean; in
"small-full", 4 of the 64 tags are free. "uring" is plug_load; a system call
takes 10 us and more here and far less on bare metal.
User Mode Linux on null_blk: no interrupts but the other CPU's, no DMA."""

BASE, SERIES = "unpatched", "patched"
REFERENCE = Cell(BASE)

# A time that is longer than the rounds' median, by this factor. Few are between a
# tenth and half more than it: who shares a core takes half of its speed.
ALONE = 1.25
RUNS = 8                        # what ends within 20 minutes
PATIENCE = 120              # seconds that it waits for quiet, all in all
MANY = 16                   # delays that say how long one is
ROUNDS = os.path.join(lab.OUT, "native-rounds.jsonl")


def alone(times):
    """Which of the rounds' times are not of one whose slices all met others."""
    most = ALONE * statistics.median(times)
    return [ns <= most for ns in times]


def compare(rounds, workload, reference, cell):
    """What a cell is worth against another one. One round has no interval."""
    before, after = ([one["ns"][workload][name] for one in rounds]
                     for name in (reference.name, cell.name))
    both = [first and second for first, second in zip(alone(before), alone(after))]
    before, after, rounds = (list(itertools.compress(some, both))
                             for some in (before, after, rounds))
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
             "cpus": native_loads.LOADS[name].cpus,
             **compare(rounds, name, plan.cells[0], cell)}
            for name in plan.loads for cell in plan.cells_of(name)]


# --- measuring ---------------------------------------------------------------

def kernels():
    """{name: commit}: unpatched, the ends of the sections, patched."""
    return {BASE: "refs/tags/base", **native_build.sections(),
            SERIES: native_build.SERIES}


def cells(names):
    """All of them, of kernels in order; the counters come with a section."""
    return [REFERENCE, Cell(BASE, "nomerges2"),
            *(Cell(name) for name in names if name not in (BASE, SERIES)),
            *(Cell(SERIES, mode) for mode in MODES), Cell(SERIES, counters=True)]


def asked():
    """{section: loads} of those covers that want figures, in order."""
    found = {}
    for section in measured.section_names():
        names = measured.PLACE.findall(cover(section))
        if names:
            found[section] = " ".join(names).split()
    return found


def narrow(found, wanted):
    """{cell: loads} of the kernels within the series: what some cover wants is
    measured on each of them, all else not."""
    names = sorted({name for names in wanted.values() for name in names})
    return {cell: names for cell in found if cell.kernel not in (BASE, SERIES)}


def cpu_name():
    """Of the machine: a figure without it says little."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines
                 if line.startswith("model name")]
    return names[0] if names else "an unknown CPU"


def loads():
    """The names of those that there are machines for."""
    most = min(len(native_uml.host_cpus()), 1 + native_build.has_two_cpus())
    return [name for name, load in native_loads.LOADS.items()
            if load.cpus <= most]


def images(commits):
    return {name: native_build.build(commit, name)
            for name, commit in commits.items()}


def keys(commits):
    """What rounds are of, to know them by."""
    return {"loads": loads(), "asked": asked(), "cpu": cpu_name(), **{
        name: native_build.key_of(native_build.planted(commit))
        for name, commit in commits.items()}}


def whole_plan(runs):
    commits = kernels()
    chosen = cells(commits)
    return native_rounds.Plan(images(commits), chosen, loads(), runs or RUNS, PATIENCE,
                              ROUNDS, keys(commits), narrow(chosen, asked()))


def measure(runs, head):
    plan = whole_plan(runs)
    return records(native_rounds.measure(plan), plan, head)


def cell_of(name):
    """The kernel at the end of a section."""
    return Cell(name if name in kernels() else SERIES)


def rounds_of_now(runs):
    """The quiet rounds of this code that there are, and as many more as it takes."""
    commits = kernels()
    try:
        with open(ROUNDS, encoding="ascii") as lines:
            first, *found = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        first, found = {}, []
    if first.get("kernels") != keys(commits):
        found = []
    kept = [one for one in found if one["quiet"]]
    return kept if len(kept) >= runs else native_rounds.measure(whole_plan(runs), kept)


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
    """Not all kernels have all loads."""
    rows = {}
    for one in found:
        rows.setdefault(label(one), {})[one["workload"]] = one
    first, *others = rows.items()
    return [*heads(first[1]),
            f"{first[0] + ', ns':21}" + "".join(
                f"{one['ns_per_io']:11.1f}" for one in first[1].values()),
            *(f"{name:21}" + "".join(
                f" {cell_text(row[load]) if load in row else '-':>10}" for load in first[1])
              for name, row in others), ""]


def system_call(found, few="uring-rand4k-s32", many="uring-rand4k-s1024"):
    """What one takes, and its share if many I/Os have one: the two differ in
    little else, as a plug flushes itself each 32."""
    ns = {one["workload"]: one["ns_per_io"] for one in found
          if one["kernel"] == BASE and one["policy"] == "always"}
    if not {few, many} <= set(ns):
        return []
    call = (ns[few] - ns[many]) / (1 / 32 - 1 / 1024)
    return [f"A system call takes {call / 1000:.1f} us: "
            f"{100 * call / 32 / ns[few]:.0f}% of {few}, "
            f"{100 * call / 1024 / ns[many]:.0f}% of {many}."]


def text(found):
    """Tables of a few loads each, as they are listed."""
    lines = [f"{cpu_name()}:"]
    for group in native_loads.TABLES:
        some = [one for one in found if one["workload"] in group]
        lines += table(some) if some else []
    lines += system_call(found)
    if not all(one["quiet"] for one in found):
        lines.append("NOISY: others used the CPUs in some rounds, although "
                     "native waited for them; measure again")
    return "\n".join(lines)


# --- the short form ----------------------------------------------------------

SHORT_LOADS = ["rand4k-s32", "seq4k-s32", "half-s32", "twodev-rand4k-s32-batch",
               "alternate-s4", "sleeping-s32", "uring-rand4k-s32"]
SHORT_LOADS_OF_TWO = ["remote-s32", "remote-seq4k-s32", "twoqueues-s32"]
SHORT_CELLS = [Cell(SERIES), Cell(SERIES, counters=True),
               Cell(SERIES, "never"), Cell(SERIES, "adaptive")]
SHORT_ROUNDS = 2
# What is planted in one cell and not in another, and how many ns of an I/O that
# must be: one of 72 cycles, so many times, in what one CPU does and in what two
# do at a time; a word of each CPU, in a cache line of its own or not.
PLANTS = [
    (f"72 cycles are 10 to 40 ns, by {MANY} times that",
     "delay=1", f"delay={MANY}", {
         "rand4k-s32": 1, "twodev-rand4k-s32-batch": 1, "remote-s32": 1,
         "twoqueues-s32": 2}, MANY - 1, 10, 40),
    ("four cache lines that two CPUs write to are 4 to 400 ns",
     "share=128", "share=8", {"twoqueues-s32": 1}, 1, 4, 400),
]


def check_plant(report, found, plant, tries=3):
    """Is a cost found that is known? It depends on the clock: what was not
    right is measured again, and says nothing if others used the CPUs."""
    what, without, planted, at_a_time, times, least, most = plant
    plan = native_rounds.Plan({SERIES: found}, [
        Cell(SERIES, plant=words) for words in (without, planted)],
                              list(at_a_time), SHORT_ROUNDS)
    for _ in range(tries):
        rounds = native_rounds.measure(plan)
        each = {load: -compare(rounds, load, *plan.cells)["ns_saved"]
                * tasks / times for load, tasks in at_a_time.items()}
        good = all(least < ns < most for ns in each.values())
        said = ", ".join(f"{load}: {ns:.1f} ns" for load, ns in each.items())
        if good:
            break
    if good or all(one["quiet"] for one in rounds):
        report.check(good, f"native: {what}", said)
    else:
        report.skip(f"native: {what}", "others used the CPUs, which this needs, "
                    f"in each of {tries} tries: {said}")


def check_records(report, found):
    """Has each cell a record?"""
    names = SHORT_LOADS + SHORT_LOADS_OF_TWO
    plan = native_rounds.Plan({SERIES: found}, SHORT_CELLS, names, SHORT_ROUNDS)
    made = records(native_rounds.measure(plan), plan, "check")
    bad = [one for one in made if not one["ci_low"] <= one["ratio"] <= one["ci_high"]]
    if report.check(len(made) == len(SHORT_CELLS) * len(names) and not bad,
                    "native: each cell has a record with an interval",
                    f"{len(made)} records; bad: {bad}"):
        print("# " + text(made).replace("\n", "\n# "))


def check_merges(report, machine, names):
    """Are the loads what they are called? It shows in what merges."""
    for name in names:
        load = native_loads.LOADS[name]
        one = machine.run(load.command(32000))
        share = one["merged"] / one["ios"]
        report.check(abs(share - load.merged) < 0.02,
                     f"native: {name} merges {100 * load.merged:.0f}%",
                     f"{100 * share:.1f}%")


def check_machine(report, found, cpus, names):
    """What cannot be must be said."""
    with native_uml.Machine("alone", found, cpus) as machine:
        machine.has_policies()
        machine.start(0, "always", False)
        check_merges(report, machine, names)
        said = "it was taken"
        try:
            machine.start(0, "sometimes", False)
        except lab.LabError as error:
            said = str(error)
        report.check("does not take: 0 sometimes" in said,
                     f"native: on {len(cpus)} CPUs, a policy that cannot be set "
                     "is an error", said)


def main():
    if sys.argv[1:] != ["--tap"]:
        sys.exit("usage: native.py --tap (make bench SUITE=native is the suite)")
    report = tap.Report()
    with report.must("native: kernels as processes", *lab.ERRORS):
        found = native_build.build(native_build.SERIES, SERIES)
        check_records(report, found)
        for plant in PLANTS:
            check_plant(report, found, plant)
        with native_uml.alone():
            cpus = native_uml.host_cpus()[:2]
            check_machine(report, found, cpus[:1], SHORT_LOADS[:-1])
            check_machine(report, found, cpus, SHORT_LOADS_OF_TWO)
    report.check(native_build.sections(), "native: the series has sections")
    report.exit()


if __name__ == "__main__":
    main()
