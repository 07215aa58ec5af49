#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make figures: what each section of the series buys, by three instruments.

A cover letter names workloads in a line "@figures NAME...". They are measured
on the kernel at the end of the section and on the one before it, side by side:
instructions, misses of a modelled L1 cache and atomics, and time on this machine's
CPU. The result is patches/*/figures.json,
from which "make series" fills the covers in, as long as it is of the same code.
"""
import argparse
import os
import sys

import cells
import lab
import lines
import native

sys.path.insert(0, os.path.join(lab.ROOT, "scripts"))
from serieslib import figures as store  # noqa: E402 pylint: disable=wrong-import-position
from serieslib.env import PATCHES  # noqa: E402 pylint: disable=wrong-import-position
from serieslib.files import parse_series  # noqa: E402 pylint: disable=wrong-import-position
from serieslib.mail import cover  # noqa: E402 pylint: disable=wrong-import-position

kernel = lab.kernel
FIRST = "unpatched"


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
    for name in [FIRST, *sections]:
        kernel.build(cells.BUILDS[name])


def instructions(before, after, workloads):
    """{workload: [per I/O, per I/O]}"""
    pairs = [(before, "always"), (after, "always")]
    records, _ = lab.measure(cells.product("figures", pairs, ["null"],
                                           workloads), "figures", "")
    found = {}
    for one in records:
        found.setdefault(one["workload"], []).append(one["insns_per_io"])
    return found


def accesses(before, after, workloads):
    """{workload: {count: [per I/O, per I/O]}} on one CPU"""
    names = [name for name in workloads if name in lines.LOADS]
    if not names:
        return {}
    wanted = [lines.Cell(one, "always", name, 1, 1) for name in names
              for one in (before, after)]
    found = {}
    for one in lines.measure_cells(wanted, ""):
        counts = found.setdefault(one["workload"], {})
        for key in ("l1_misses_per_io", "atomics_per_io"):
            counts.setdefault(key, []).append(one[key])
    return found


def times(before, after, workloads, rounds):
    """{workload: record} of the native suite"""
    names = [name for name in workloads if name in native.WORKLOADS]
    if not names:
        return {}
    plan = native.Plan(native.images({name: native.BUILDS[name]
                                      for name in (before, after)}),
                       [(before, "always"), (after, "always")], names, rounds)
    return {one["workload"]: one for one in native.run(plan, "")
            if one["kernel"] == after}


def row(insns, counts, time):
    """What one workload came to."""
    found = {"insns": insns}
    if counts:
        found.update(l1=counts["l1_misses_per_io"],
                     atomics=counts["atomics_per_io"])
    if time:
        found.update({key: time[key] for key in ("ratio", "ci_low", "ci_high",
                                                 "quiet")})
    return found


def measure(step, rounds):
    """A section's figures."""
    _, before, after, workloads = step
    insns = instructions(before, after, workloads)
    counts = accesses(before, after, workloads)
    timed = times(before, after, workloads, rounds)
    return {"before": before, "rows": {
        name: row(insns[name], counts.get(name), timed.get(name))
        for name in workloads}}


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=native.RUNS,
                        help="of the measurement of time [%(default)s]")
    parser.add_argument("section", nargs="*", help="only these")
    args = parser.parse_args()
    wanted = asked()
    unknown = [name for name in args.section if name not in wanted]
    if unknown:
        parser.error("no cover of a section '%s' wants figures; there are: %s"
                     % (unknown[0], " ".join(wanted)))
    try:
        add_kernels(wanted)
        for step in steps(wanted):
            if not args.section or step[0] in args.section:
                print("figures: %s, against %s" % step[:2], flush=True)
                store.save(step[0], measure(step, args.rounds))
                print(store.table(step[0]), flush=True)
    except (kernel.BuildError, lab.LabError) as error:
        sys.exit("figures: %s" % error)
    except KeyboardInterrupt:
        sys.exit("figures: interrupted; what was measured is kept")


if __name__ == "__main__":
    main()
