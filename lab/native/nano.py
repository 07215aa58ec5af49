#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make nano: what a change costs or gains in time, within a minute.

Two states of build/linux-7.3 are built and compared as SUITE=native does it: by
default the last commit and what is not committed yet, or if there is no such
thing the commit before and the last one.
"""
import argparse


from lab.bench import lab
from lab.native import native
from lab.native import native_build
from lab.native import native_loads
from lab.native import native_rounds
from scripts import common
from lab.native.native_rounds import Cell

WORKTREE = "worktree"
LOADS = ["rand4k-s1", "rand4k-s4", "rand4k-s32", "rand4k-s128",
         "rand4k-s32-cold", "seq4k-s32", "twodev-rand4k-s32"]
ROUNDS = 12


def commits(before, after):
    """The two states, as commits."""
    is_clean = not native_build.git()("status", "--porcelain", "-uno")
    after = after or ("HEAD" if is_clean else WORKTREE)
    before = before or ("HEAD~1" if after == "HEAD" else "HEAD")
    return {name: native_build.snapshot() if what == WORKTREE else
            native_build.git().get("rev-parse", what + "^{commit}")
            for name, what in (("before", before), ("after", after))}


def report(rounds, cells, names):
    """A line for each load."""
    print("%-26s %8s %8s %8s  %s" % ("", "before", "after", "saved",
                                     "ratio, 95% interval"))
    for name in names:
        one = native.compare(rounds, name, *cells)
        base = native.compare(rounds, name, cells[0], cells[0])
        print("%-26s %8.1f %8.1f %8.2f  %.3f (%.3f to %.3f)" % (
            name, base["ns_per_io"], one["ns_per_io"], one["ns_saved"],
            one["ratio"], one["ci_low"], one["ci_high"]))


def run(args):
    """Build, measure, report."""
    found = commits(args.before, args.after)
    cells = [Cell(name, args.policy, args.counters) for name in found]
    names = args.loads.split() or LOADS
    plan = native_rounds.Plan(native.images(found), cells, names, args.rounds)
    report(native_rounds.measure(plan), cells, names)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--before", default="", metavar="COMMIT", help="or: " + WORKTREE)
    add("--after", default="", metavar="COMMIT", help="or: " + WORKTREE)
    add("--policy", default="always", choices=[*native.MODES, "nomerges2"],
        help="of both [%(default)s]")
    add("--counters", action="store_true", help="of both are on")
    add("--rounds", type=int, default=ROUNDS, help="[%(default)s]")
    add("--loads", default="", metavar="'a b'", help="of: %s" % " ".join(
        native_loads.LOADS))
    args = parser.parse_args()
    unknown = set(args.loads.split()) - set(native_loads.LOADS)
    if unknown:
        parser.error("no load '%s'" % unknown.pop())
    with common.program("nano", *lab.ERRORS):
        run(args)


if __name__ == "__main__":
    main()
