#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make figures: what each section of the series buys, by three instruments.

A cover letter names workloads in a line "@figures NAME...". They are measured
on the kernel at the end of the section and on the one before it, side by side:
instructions, misses of a modelled L1 cache and atomics, and time on this
machine's CPU. The result is patches/*/figures.json, from which "make series"
fills the covers in, as long as it is of the same code. "README" stands for the
whole series, which README.md compares with what a user has today.
"""
import argparse

import cells
import lab
import lines
import native
from lab import common, kernel
from serieslib import figures as store
from serieslib.env import PATCHES
from serieslib.files import parse_series
from serieslib.mail import cover

FIRST = "unpatched"
# What README.md compares: the first with the others.
CHOICES = [("unpatched", "always"), ("unpatched", "nomerges2"),
           ("patched", "always"), ("patched", "adaptive")]
TIMES = ("ratio", "ci_low", "ci_high", "quiet")


def asked():
    """{section: workloads} of those covers that want figures, in order."""
    found = {}
    for section in parse_series((PATCHES / "series").read_text()).sections:
        names = store.PLACE.findall(cover(section))
        if names:
            found[section] = " ".join(names).split()
    return found


def steps(wanted):
    """[(section, before, after, workloads)]: before is the last section that
    was measured, so that each change is seen once."""
    before, found = FIRST, []
    for section, workloads in wanted.items():
        found.append((section, before, section, workloads))
        before = section
    return found


def add_kernels(sections):
    """Kernels at the ends of sections, for all three instruments."""
    for name in sections:
        variant = kernel.add_section(name)
        cells.BUILDS[name] = lines.BUILDS[name] = variant
        native.BUILDS[name] = "uml-" + variant
    for name in sections:
        kernel.build(cells.BUILDS[name])


def instructions(pairs, workloads):
    """{workload: per I/O, of each pair of a kernel and a policy}"""
    records, _ = lab.measure(cells.product("figures", pairs, ["null"],
                                           workloads), "figures", "")
    found = {}
    for one in records:
        found.setdefault(one["workload"], []).append(one["insns_per_io"])
    return found


def accesses(pairs, workloads):
    """{workload: {count: per I/O, of each pair}} on one CPU"""
    names = [name for name in workloads if name in lines.LOADS]
    if not names:
        return {}
    wanted = [lines.Cell(*pair, name, 1, 1) for name in names
              for pair in pairs]
    found = {}
    for one in lines.measure_cells(wanted, ""):
        counts = found.setdefault(one["workload"], {})
        for key in ("l1_misses_per_io", "atomics_per_io"):
            counts.setdefault(key, []).append(one[key])
    return found


def times(pairs, workloads, rounds):
    """{workload: what the native suite records of each pair but the first}"""
    names = [name for name in workloads if name in native.WORKLOADS]
    if not names:
        return {}
    plan = native.Plan(native.images({one: native.BUILDS[one]
                                      for one, _ in pairs}),
                       pairs, names, rounds)
    found = {}
    for one in native.run(plan, ""):
        if (one["kernel"], one["policy"]) != pairs[0]:
            found.setdefault(one["workload"], []).append(
                {key: one[key] for key in TIMES})
    return found


def row(insns, counts, timed):
    """What one workload came to."""
    found = {"insns": insns}
    if counts:
        found.update(l1=counts["l1_misses_per_io"],
                     atomics=counts["atomics_per_io"])
    if timed:
        found["time"] = timed
    return found


def measure(pairs, workloads, rounds):
    """{workload: row}"""
    insns = instructions(pairs, workloads)
    counts = accesses(pairs, workloads)
    timed = times(pairs, workloads, rounds)
    return {name: row(insns[name], counts.get(name), timed.get(name))
            for name in workloads}


def measure_section(step, rounds):
    """A section's figures, kept."""
    section, before, after, workloads = step
    print("figures: %s, against %s" % (section, before), flush=True)
    pairs = [(before, "always"), (after, "always")]
    store.save(section, {"before": before,
                         "rows": measure(pairs, workloads, rounds)})
    print(store.table(section), flush=True)


def measure_whole(rounds):
    """README.md's table."""
    print("figures: %s, against %s" % (store.WHOLE, FIRST), flush=True)
    store.save(store.WHOLE, {"rows": measure(CHOICES, native.WORKLOADS,
                                             rounds)})
    store.fill_readme()
    print(store.whole_table(), flush=True)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=native.RUNS,
                        help="of the measurement of time [%(default)s]")
    parser.add_argument("section", nargs="*", help="only these")
    args = parser.parse_args()
    wanted = asked()
    unknown = [name for name in args.section
               if name not in wanted and name != store.WHOLE]
    if unknown:
        parser.error("no cover of a section '%s' wants figures; there are: %s"
                     % (unknown[0], " ".join([*wanted, store.WHOLE])))
    chosen = args.section or [*wanted, store.WHOLE]
    with common.program("figures", *lab.ERRORS,
                        advice="; what was measured is kept"):
        todo = [step for step in steps(wanted) if step[0] in chosen]
        add_kernels({name for step in todo for name in step[1:3]} - {FIRST})
        for step in todo:
            measure_section(step, args.rounds)
        if store.WHOLE in chosen:
            measure_whole(args.rounds)


if __name__ == "__main__":
    main()
