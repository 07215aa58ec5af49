#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does anybody want for tags more often than on the unpatched kernel?

Tasks of one disk that submit 32 I/Os at a time, in a guest of four CPUs whose
time follows the instruction count: how many I/Os io_uring, which always tries
without waiting first, gave to a worker, since no tag was free; and how often
the worker slept for one.
"""
import argparse
import functools
import itertools
import os
import statistics

from lab.bench import lab
from scripts.checks import tap
from lab.qemu import guest
from scripts import common, kernel

OUT = os.path.join(lab.OUT, "tags")
KERNELS = ["base", "patched"]
DEPTHS = [1, 2, 16, 32, 64, 128, 1023]
TASKS = [1, 2, 4, 8, 16]
LOADS = ["seq", "pairs", "rand"]
COUNTS = ["punts", "sleeps"]
SEEDS = range(3)
# Of as many loads, chance lets some look worse in three runs: these have as many
# new ones, which decide.
AGAIN = range(3, 11)
ERRORS = 4                      # of the difference of two means
SHORT = ([2, 64], [4, 8], ["seq", "rand"])


def cells(depths, tasks, loads):
    """{depth: [(shared, tasks, load)]}: the depth of a shared set is the
    guest's."""
    return {depth: list(itertools.product((0, 1), tasks, loads))
            for depth in depths}


def job_text(depth, wanted, seeds):
    """The guest's job."""
    lines = ["set -e", "mount -t tmpfs tmpfs /tmp || :", ". /bench/tags_guest.sh"]
    lines += ["tags_cell %s %d %d %d %s %d" % (
        "/".join(map(str, cell)), cell[0], depth, cell[1], cell[2], seed)
              for cell in wanted for seed in seeds]
    return "\n".join(lines) + "\n"


def run(variant, depth, wanted, seeds):
    """{(depth, *cell): counts} of one kernel and depth."""
    result = guest.work(
        variant, os.path.join(OUT, "%s-%d" % (variant, depth)),
        job_text(depth, wanted, seeds), name="tags, %s, depth %d" % (variant, depth),
        disks=(), smp=4, icount=True, timeout=120 + 10 * len(wanted) * len(seeds),
        append="null_blk.hw_queue_depth=%d" % depth,
        files=(os.path.join(lab.HERE, "tags_guest.sh")
               + ":/bench/tags_guest.sh",))
    found = {}
    for line in result.lines:
        name, *words = line.split()
        shared, tasks, load = name.split("/")
        runs = found.setdefault((depth, int(shared), int(tasks), load), [])
        runs.append({key: int(value) for key, value in (
            word.split("=") for word in words)})
    return found


def measure(wanted, seeds=SEEDS):
    """{kernel: {cell: counts}}"""
    for name in KERNELS:
        kernel.build(name)
    calls = {(name, depth): functools.partial(run, name, depth, some, seeds)
             for depth, some in wanted.items() for name in KERNELS}
    found = {name: {} for name in KERNELS}
    for (name, _), counts in guest.together(
            calls, lambda done, seconds: "# " + common.how_far(
                "tags", done, len(calls), "guests", seconds)).items():
        found[name].update(counts)
    return found


def spread(values):
    """The square of what chance does to the mean of some counts."""
    return max(statistics.variance(values), statistics.mean(values), 1) / len(values)


def worse(base, patched):
    """Those counts whose mean is higher than chance makes it."""
    found = []
    for key in COUNTS:
        old, new = ([run[key] for run in runs] for runs in (base, patched))
        if statistics.mean(new) - statistics.mean(old) > ERRORS * (
                spread(old) + spread(new)) ** .5:
            found.append(key)
    return found


def total(runs, key):
    """Of all runs of a load."""
    return sum(run[key] for run in runs)


def table(found, wanted):
    """Summed over the numbers of tasks; base and patched side by side."""
    lines = ["%-6s %-6s %-5s %s" % ("depth", "shared", "load", " ".join(
        "%17s" % (key + ": base, ours") for key in COUNTS))]
    loads = list(dict.fromkeys(cell[2] for cell in next(iter(wanted.values()))))
    for depth, shared, load in itertools.product(wanted, (0, 1), loads):
        lines.append("%-6d %-6s %-5s %s" % (
            depth, "yes" if shared else "no", load, " ".join("%17s" % (
                "%d %d" % tuple(sum(
                    total(runs, key) for cell, runs in found[kind].items()
                    if cell[:2] + cell[3:] == (depth, shared, load))
                                for kind in KERNELS)) for key in COUNTS)))
    return lines


def suspects(found):
    """{cell: those counts that are higher}"""
    bad = {cell: worse(base, found["patched"][cell])
           for cell, base in sorted(found["base"].items())}
    return {cell: keys for cell, keys in bad.items() if keys}


def once_more(bad):
    """What suspects come to, measured anew."""
    wanted = {}
    for depth, *cell in bad:
        wanted.setdefault(depth, []).append(tuple(cell))
    return measure(wanted, AGAIN)


def check(report, found):
    """No load may be worse off."""
    bad = suspects(found)
    again = once_more(bad) if bad else {}
    for cell, keys in (suspects(again) if bad else {}).items():
        report.check(False, "tags: depth %d, shared %d, %d tasks, %s" % cell,
                     ", ".join("%s %d, unpatched %d" % (
                         key, total(again["patched"][cell], key),
                         total(again["base"][cell], key)) for key in keys))
    report.check(len(found["base"]) == len(found["patched"]) > 0,
                 "tags: %d loads were compared" % len(found["base"]))


def main():
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="a few loads only")
    args = parser.parse_args()
    wanted = cells(*(SHORT if args.short else (DEPTHS, TASKS, LOADS)))
    report = tap.Report()
    with common.program("tags", *guest.ERRORS):
        found = measure(wanted)
    print("\n".join("# " + line for line in table(found, wanted)))
    common.write_json(os.path.join(OUT, "result.json"), [
        {"kernel": kind, "depth": cell[0], "shared": cell[1],
         "tasks": cell[2], "load": cell[3], "seed": seed, **counts}
        for kind, loads in found.items()
        for cell, runs in sorted(loads.items())
        for seed, counts in enumerate(runs)])
    check(report, found)
    report.exit()


if __name__ == "__main__":
    main()
