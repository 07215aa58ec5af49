# SPDX-License-Identifier: GPL-2.0
"""make nano: what a change costs or gains in time, within a minute.

Two states of build/linux-7.3 are built and compared as SUITE=native does it: by
default the last commit and what is not committed yet, or if there is no such
thing the commit before and the last one."""
import argparse

from lab.bench import lab
from lab.native import native, native_build, native_loads, native_rounds
from lab.native.native_rounds import Cell
from scripts import common

WORKTREE = "worktree"
LOADS = ["rand4k-s1", "rand4k-s4", "rand4k-s32", "rand4k-s128",
         "rand4k-s32-cold", "seq4k-s32", "twodev-rand4k-s32"]
ROUNDS = 12


def commits(before, after):
    is_clean = not native_build.git()("status", "--porcelain", "-uno")
    after = after or ("HEAD" if is_clean else WORKTREE)
    before = before or ("HEAD~1" if after == "HEAD" else "HEAD")
    return {name: native_build.snapshot() if what == WORKTREE else
            native_build.git().get("rev-parse", what + "^{commit}")
            for name, what in (("before", before), ("after", after))}


def report(rounds, cells, names):
    """A line for each load."""
    print(f"{'':26} {'before':>8} {'after':>8} {'saved':>8}  ratio, 95% interval")
    for name in names:
        before, after = (native.compare(rounds, name, cells[0], cell)
                         for cell in cells)
        print(f"{name:26} {before['ns_per_io']:8.1f} {after['ns_per_io']:8.1f} "
              f"{after['ns_saved']:8.2f}  {after['ratio']:.3f} "
              f"({after['ci_low']:.3f} to {after['ci_high']:.3f})")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--before", default="", metavar="COMMIT", help="or: " + WORKTREE)
    add("--after", default="", metavar="COMMIT", help="or: " + WORKTREE)
    add("--policy", default="always", choices=[*native.MODES, "nomerges2"],
        help="of both [%(default)s]")
    add("--counters", action="store_true", help="of both are on")
    add("--rounds", type=int, default=ROUNDS, help="[%(default)s]")
    add("--loads", default="", metavar="'a b'",
        help="of: " + " ".join(native_loads.LOADS))
    args = parser.parse_args()
    names = args.loads.split() or LOADS
    unknown = set(names) - set(native_loads.LOADS)
    if unknown:
        parser.error(f"no load '{unknown.pop()}'")
    with common.program("nano", *lab.ERRORS):
        found = commits(args.before, args.after)
        cells = [Cell(name, args.policy, args.counters) for name in found]
        plan = native_rounds.Plan(native.images(found), cells, names,
                                  args.rounds)
        report(native_rounds.measure(plan), cells, names)


if __name__ == "__main__":
    main()
