#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make bench SUITE=native: time on the real CPU, instead of instructions.

Three kernels run as processes of this machine, User Mode Linux, in turn on one
CPU. A round boots each anew, since where code and data come to lie differs from
boot to boot, and measures all cells in random order. What counts is the ratio
of a cell to the unpatched kernel in the same round: its median over the rounds,
and the interval that the rounds, drawn again and again, put it in.
"""
import argparse
import contextlib
import dataclasses
import hashlib
import os
import random
import statistics
import sys
import time

import cells
import lab
import native_uml
import tap
from lab import common

NAME = "native"
CLAIM = ("what batching and the policies are worth in time, on this machine's "
         "CPU: random I/O gains, and what has nothing to gain loses nothing.")
NOTE = """\
IOPS as a ratio to the unpatched kernel of the same round, and the interval that
holds it with 95% confidence. "cannot tell": the interval is wider than 2%.
User Mode Linux on null_blk, one CPU: no interrupts, no DMA, and a system call
costs several times what it does on bare metal. rand4k-qd1 is little else, the
others have a 32nd or 128th of it in each I/O, which makes ratios small: "ns
saved" is free of it. There are no jump labels either: each gate of the options
is a load and a branch here, in a real kernel a no-op. The row "batching", whose
options are off, has no such gates; "patched" pays for all of them."""

REFERENCE = ("unpatched", "always")
BUILDS = {"unpatched": "uml-base", "batching": "uml-batching",
          "patched": "uml"}
CELLS = [REFERENCE, ("unpatched", "nomerges2"), ("batching", "always"),
         ("patched", "always"), ("patched", "adaptive"), ("patched", "never"),
         ("patched", "seq-small")]
WORKLOADS = ["rand4k-s32", "rand4k-s128", "libaio-rand4k-s32", "seq4k-s32",
             "twodev-rand4k-s32", "rand4k-qd1"]

RUNS = 15
SECONDS = 0.1               # of a slice of a measurement
SLICES = 4                  # of each cell in a round; the fastest counts
TRIAL_IOS = 30000           # of the run that says how many I/Os that is
PATIENCE = 300              # seconds that it waits for quiet, all in all
WIDE = 0.02                 # an interval that does not tell
FEW = 6                     # rounds whose median has no such interval
DRAWS = 2000
CONFIDENCE = 0.95
MANY = 16                   # delays that say how long one is

# The short form: with one that keeps each bio for a time which is known, and a
# patched kernel that the unit tests need as well.
SHORT_BUILDS = {"patched": lab.kernel.UML, "unpatched": "uml-delay"}
SHORT_CELLS = [REFERENCE, ("unpatched", "delay%d" % MANY),
               ("patched", "always"), ("patched", "adaptive")]

FIELDS = ["kernel", "policy", "workload", "ratio", "ci_low", "ci_high",
          "rounds", "ns_per_io", "ns_saved", "quiet"]


@dataclasses.dataclass
class Plan:
    """What to measure: images by kernel, cells, workloads, rounds."""

    images: dict
    cells: list
    workloads: list
    rounds: int = RUNS
    patience: float = PATIENCE
    seed: int = 1

    def __post_init__(self):
        self.cpu = max(os.sched_getaffinity(0))
        self.rng = random.Random(self.seed)
        self.ios = {}
        self.begin = self.said = time.monotonic()

    @property
    def reference(self):
        """The cell that the others are compared with."""
        return self.cells[0]

    def shuffled(self, items):
        """In an order of this moment."""
        items = list(items)
        return self.rng.sample(items, len(items))


# --- statistics --------------------------------------------------------------

def interval(ratios, rng):
    """What the median might have been, had other such rounds been drawn."""
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(DRAWS))
    cut = int(DRAWS * (1 - CONFIDENCE) / 2)
    return medians[cut], medians[-1 - cut]


def verdict(one):
    """What an interval says, in words."""
    low, high = one["ci_low"], one["ci_high"]
    if one["rounds"] < FEW:
        return "too few rounds to tell"
    if high < 1:
        word = "slower"
    elif low > 1:
        word = "faster"
    else:
        word = "no difference seen"
    if high - low <= WIDE:
        return word
    return "cannot tell" + ("" if low <= 1 <= high else " how much " + word)


def record(times, plan, cell, workload, head):
    """A cell's record: times are those of the rounds, {cell: ns per I/O}."""
    own = [one[cell, workload] for one in times]
    others = [one[plan.reference, workload] for one in times]
    ratios = [other / ns for ns, other in zip(own, others)]
    low, high = interval(ratios, random.Random(1))
    return {
        "suite": NAME, "kernel": cell[0], "policy": cell[1],
        "workload": workload, "commit": head, "rounds": len(times),
        "ratio": round(statistics.median(ratios), 5),
        "ci_low": round(low, 5), "ci_high": round(high, 5),
        "ns_per_io": round(statistics.median(own), 2),
        "ns_saved": round(statistics.median(
            other - ns for ns, other in zip(own, others)), 2),
        "iops": round(1e9 / statistics.median(own)),
    }


# --- measuring ---------------------------------------------------------------

def images(builds):
    """Build the kernels; {kernel: image}."""
    found = {}
    for name, variant in builds.items():
        lab.kernel.build(variant)
        found[name] = lab.kernel.image(variant)
    return distinct(found)


def distinct(found):
    """The images, of which two that are the same would compare nothing."""
    seen = {}
    for name, path in found.items():
        with open(path, "rb") as image:
            digest = hashlib.sha256(image.read()).digest()
        if digest in seen:
            raise lab.LabError("the kernels %s and %s are the same file"
                               % (seen[digest], name))
        seen[digest] = name
    return found


def length(plan, machines, workload):
    """How many I/Os take the time of a slice on this machine."""
    if workload.name not in plan.ios:
        name, policy = plan.reference
        ns = machines[name].run(policy, workload, TRIAL_IOS)
        plan.ios[workload.name] = int(SECONDS * 1e9 / ns)
    return plan.ios[workload.name]


def measure_round(plan):
    """{(cell, workload): ns per I/O}: each kernel booted once, all cells."""
    found = {}
    with contextlib.ExitStack() as stack:
        machines = {name: stack.enter_context(native_uml.Machine(
            name, plan.images[name], plan.cpu))
                    for name in plan.shuffled(plan.images)}
        for name, machine in machines.items():
            if machine.has_policies() != (name == "patched"):
                machine.fail("it is another kernel than its name says")
        for name in plan.shuffled(plan.workloads):
            workload = cells.WORKLOADS[name]
            ios = length(plan, machines, workload)
            found.update({(cell, name): ns for cell, ns in fastest(
                plan, machines, workload, ios).items()})
    return found


def fastest(plan, machines, workload, ios):
    """{cell: ns per I/O} of a workload: what others add to a slice is no part
    of what a kernel takes. After a first slice, in which caches fill and
    "adaptive" learns."""
    found = {cell: [] for cell in plan.cells}
    for _ in range(1 + SLICES):
        for cell in plan.shuffled(plan.cells):
            found[cell].append(machines[cell[0]].run(cell[1], workload, ios))
    return {cell: min(slices[1:]) for cell, slices in found.items()}


def measure_rounds(plan):
    """The rounds' times, and whether the machine was quiet in all of them.

    Rounds in which others took CPU time are measured again, as long as there
    is patience; then such rounds count as well, and the records say so.
    """
    times, patience, quiet = [], plan.patience, True
    while len(times) < plan.rounds:
        spent, _ = native_uml.wait_for_quiet(patience)
        patience -= spent
        others, start = native_uml.Others(plan.cpu), time.monotonic()
        found = measure_round(plan)
        spent, share = time.monotonic() - start, others.share()
        is_quiet = share < native_uml.QUIET
        if is_quiet or spent > patience:
            quiet = quiet and is_quiet
            times.append(found)
        else:
            patience -= spent
        progress(plan, len(times), share)
    return times, quiet


def progress(plan, done, share):
    """Say how far it is, and how long it will go on, now and then."""
    now = time.monotonic()
    if now - plan.said < 10:
        return
    plan.said = now
    print("%s; other processes took %.2f CPUs" % (common.how_far(
        "native", done, plan.rounds, "rounds", now - plan.begin), share),
          flush=True)


def run(plan, head):
    """The records of a plan."""
    with native_uml.alone():
        times, quiet = measure_rounds(plan)
    return [dict(record(times, plan, cell, workload, head), quiet=quiet)
            for workload in plan.workloads for cell in plan.cells]


def measure(runs, head):
    """The suite's records."""
    return run(Plan(images(BUILDS), CELLS, WORKLOADS, runs or RUNS), head)


def text(records):
    """The table."""
    lines = ["%-18s %-9s %-9s %7s %8s %7s  %-15s %s" % (
        "workload", "kernel", "policy", "ns/IO", "ns saved", "ratio",
        "95% interval", "which says")]
    for one in records:
        reference = (one["kernel"], one["policy"]) == REFERENCE
        lines.append("%-18s %-9s %-9s %7.1f %8.1f %7.3f  %.3f to %.3f  %s" % (
            one["workload"], one["kernel"], one["policy"], one["ns_per_io"],
            one["ns_saved"], one["ratio"], one["ci_low"], one["ci_high"],
            "the reference" if reference else verdict(one)))
    if not all(one["quiet"] for one in records):
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


def validate_same(args):
    """The unpatched kernel against itself: 1 should be in the interval."""
    image = images({"unpatched": "uml-base"})["unpatched"]
    hits = 0
    for number in range(1, args.tries + 1):
        plan = Plan({"unpatched": image, "again": image},
                    [REFERENCE, ("again", "always")], [args.workload],
                    args.rounds, args.patience, number)
        one = run(plan, "")[1]
        hit = one["ci_low"] <= 1 <= one["ci_high"]
        hits += hit
        print("try %d: ratio %.4f, %.4f to %.4f: %s; %d of %d so far" % (
            number, one["ratio"], one["ci_low"], one["ci_high"],
            "good" if hit else "WRONG", hits, number), flush=True)
    return hits >= CONFIDENCE * args.tries


def validate_delay(args):
    """A kernel that keeps each bio for some 20 ns more than the same kernel
    does: many such delays say what one is."""
    image = images({"delayed": "uml-delay"})["delayed"]
    # None at all is not one less: between the fences something else runs then.
    plan = Plan({"unpatched": image, "delayed": image},
                [("unpatched", "delay1"), ("delayed", "delay2"),
                 ("delayed", "delay%d" % (1 + MANY))], [args.workload],
                args.rounds, args.patience)
    records = run(plan, "")
    print(text(records))
    none, single, many = records
    delay = (many["ns_per_io"] - none["ns_per_io"]) / MANY
    expected = none["ns_per_io"] / (none["ns_per_io"] + delay)
    good = single["ci_low"] <= expected <= single["ci_high"] < 1
    print("a delay is %.2f ns: a ratio of %.4f is expected, %.4f was found, "
          "%.4f to %.4f: %s" % (delay, expected, single["ratio"],
                                single["ci_low"], single["ci_high"],
                                "good" if good else "WRONG"))
    return good


VALIDATIONS = {"same": validate_same, "delay": validate_delay}


def refuses(report, name, call):
    """A result: what cannot be must be said."""
    try:
        call()
    except lab.LabError as error:
        report.check(True, name, str(error))
    else:
        report.check(False, name, "it was taken")


def ask_nonsense(plan):
    """Have a kernel set a policy that there is not."""
    with native_uml.Machine("patched", plan.images["patched"],
                            plan.cpu) as machine:
        machine.has_policies()
        machine.run("sometimes", cells.WORKLOADS["rand4k-s32"], TRIAL_IOS)


def chain(records):
    """ns of one chain of multiplications, of the last workload's records."""
    saved = {one["policy"]: one["ns_saved"] for one in records}
    return -saved["delay%d" % MANY] / MANY


def short_form():
    """In "make check": that it works, and nothing of a policy's speed."""
    report = tap.Report()
    plan = Plan(images(SHORT_BUILDS), SHORT_CELLS, WORKLOADS[:2], 3, patience=0)
    records = run(plan, "check")
    flaws = ["%s: %s" % (one, flaw(one)) for one in records if flaw(one)]
    if report.check(len(records) == 2 * len(SHORT_CELLS) and not flaws,
                    "native: each cell has a record with an interval",
                    "\n".join(flaws) or "%d records" % len(records)):
        print("# " + text(records).replace("\n", "\n# "))
    report.check(10 < chain(records) < 40,
                 "native: 72 cycles are 10 to 40 ns, by %d times that" % MANY,
                 "%.1f ns" % chain(records))
    refuses(report, "native: no kernel is compared with itself",
            lambda: distinct(dict.fromkeys("ab", plan.images["patched"])))
    refuses(report, "native: a policy that cannot be set is an error",
            lambda: ask_nonsense(plan))
    report.exit()


def main():
    """What "make bench" does not ask for."""
    parser = argparse.ArgumentParser(description="Is SUITE=native right?")
    add = parser.add_argument
    add("--tap", action="store_true", help="a short form, for 'make check'")
    add("--validate", choices=VALIDATIONS, help="'same': the unpatched "
        "kernel against itself; 'delay': is a known delay found?")
    add("--tries", type=int, default=20, help="of 'same' [20]")
    add("--rounds", type=int, default=RUNS, help="of a try [%d]" % RUNS)
    add("--workload", choices=WORKLOADS, default=WORKLOADS[0])
    add("--patience", type=int, default=PATIENCE, help="seconds that each run "
        "waits for a quiet machine [%d]" % PATIENCE)
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
