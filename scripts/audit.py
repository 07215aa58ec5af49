#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What plugs batch, and who waits for tags: on the unpatched kernel, and with the
series, side by side.

The kselftests count; here their counts are shown in two columns, with what is
expected of the patched kernel. What the unpatched one does not do has a star.
"""
import argparse
import collections
import re
from pathlib import Path

from lab.qemu import guest
from plugtools.report.tables import aligned
from scripts import common, kernel, selftest
from scripts.checks import tap

OUT = Path(kernel.BUILD) / "audit"
KERNELS = ("base", "patched")

# Each has a case that fails without its mails.
REPRODUCERS = ["flush_newest_size", "polled_split", "read_queues", "kyber_iostats",
               "unused_requests", "flush_forgets", "several_queues_merge", "tags",
               "tags_shared", "tags_two_disks"]
WAITS = ["tags_waits"]
# Time that follows the instruction count repeats, also on a busy machine.
STEADY = {"icount": True, "smp": 4}

COUNT = re.compile(r"# count (\d+) of (\d+) to (\d+): (.*)")

# Doorbells are the emulator's count, as the unpatched kernel has none: of 32 I/Os,
# and of reads and writes that have hardware queues of their own.
SUBMISSIONS = 100
# load: (options, the most that they may come to)
LOADS = {"random reads": ("", 1.1), "reads and writes on two queues": ("-m 30", 2.2)}
BELLS = "\n".join(
    f"mark {name.replace(' ', '_')}.begin\n"
    f"plug_load -s 32 -c 32 -d 32 -n {32 * SUBMISSIONS} {options} /dev/nvme0n1\n"
    f"mark {name.replace(' ', '_')}.end" for name, (options, _) in LOADS.items())

# Chance moves the number of I/Os that find no tag by that many errors of it, and
# they come in bunches: over seven lengths of "depth 64, 8 tasks, two I/Os to a request"
# the variance was 181 times the mean, 56 times on the patched kernel.
ERRORS, BUNCH, TAKES = 4, 60, 3


def run(variant, tests, take=1, **how):
    """{test: lines} of what the tests have said on a kernel. Each take of a test
    that wants a steady time differs a little in length."""
    out = str(OUT / f"{variant}-{len(tests)}")
    selftest.install(kernel.TREE, out)
    result = selftest.run(variant, out, [f"{test}.sh" for test in tests],
                          counts=str(take), **how)
    if result.exit_code is None:
        raise guest.GuestError(f"audit, {variant}: {result.reason}; see {result.log}")
    said, _ = selftest.by_test(result.lines)
    return {test: said.get(f"{test}.sh", []) for test in tests}


def cases(lines):
    """[(case, status, [(seen, least, most, what)])] of a test."""
    found, counts = [], []
    for line in lines:
        count, result = COUNT.match(line), tap.parse(line)
        if count:
            counts.append((*map(int, count.groups()[:3]), count[4]))
        elif result:
            found.append((*result, counts))
            counts = []
    return found


def rows(said):
    """(test, case, what, expected, base, patched) of what both kernels counted: a
    count that is not as expected has a star."""
    def cell(counts, nr):
        if nr >= len(counts):
            return "-"
        seen, least, most, _ = counts[nr]
        return f"{seen}{'' if least <= seen <= most else '*'}"

    for test in said["patched"]:
        base = {case: counts for case, _, counts in cases(said["base"][test])}
        for case, _, counts in cases(said["patched"][test]):
            for nr, (_, least, most, what) in enumerate(counts):
                yield (test, case, what, f"{least}" if least == most else
                       f"{least}-{most}", cell(base.get(case, []), nr),
                       cell(counts, nr))


def doorbells(variant):
    """{load: doorbells for 32 I/Os}"""
    result = guest.work(variant, str(OUT / f"{variant}-doorbells"), BELLS,
                        name=f"doorbells, {variant}", accel="tcg",
                        trace_doorbells=True, append="nvme.write_queues=1",
                        disks=("null:256m",), timeout=300)
    return {name: sum(result.between(*(f"{name.replace(' ', '_')}.{end}" for end in
                                       ("begin", "end"))).values()) / SUBMISSIONS
            for name in LOADS}


def failed(lines):
    """The cases of a test that failed."""
    return [case for case, status, _ in cases(lines) if status == "fail"]


def check_base(report):
    """For make check: what reproduces a defect must fail without its mail. That it
    passes with it is another group, but for the doorbells that the emulator sees."""
    for test, lines in run("base", REPRODUCERS).items():
        report.check(failed(lines), f"{test} fails on the unpatched kernel", "it did not")
        for name in failed(lines):
            print(f"# {test}: {name}")
    for name, seen in doorbells("patched").items():
        report.check(seen <= LOADS[name][1], f"doorbells for 32 I/Os, {name}: {seen:g}")


def waits(said):
    """{load: I/Os that found no tag}"""
    return {case: counts[0][0] for case, _, counts in cases(said[WAITS[0]]) if counts}


def compare_waits(report, measure):
    """No load may have to wait more often, but for chance. What looks worse is
    measured again, and must be worse in all that was counted."""
    sums = collections.Counter(), collections.Counter()
    for take in range(1, TAKES + 1):
        for counted, said in zip(sums, measure(take).values()):
            counted.update(waits(said))
        old, new = sums
        worse = {case for case in old if new[case] - old[case] >
                 ERRORS * (BUNCH * (old[case] + new[case] + 1)) ** .5}
        seen = {case: f"{case}: {new[case]} I/Os found no tag, {old[case]} on the "
                f"unpatched kernel" for case in old}
        if not worse:
            break
        print(f"# looked worse: {'; '.join(seen[case] for case in sorted(worse))}")
    for case, text in seen.items():
        report.check(case not in worse, text)
    report.check(seen, "loads were compared")


def both(tests, **how):
    return {name: run(name, tests, **how) for name in KERNELS}


def show(tests, **how):
    """Both columns"""
    found = [("test", "case", "count", "expected", "unpatched", "patched"),
             *rows(both(tests, **how))]
    if tests == REPRODUCERS:
        bells = [doorbells(name) for name in KERNELS]
        found += [("doorbells", load, "for 32 I/Os", f"0-{most}", *(
            f"{seen[load]:g}{'*' * (seen[load] > most)}" for seen in bells))
                  for load, (_, most) in LOADS.items()]
    print("\n".join(aligned(found)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0].replace("\n", " "))
    parser.add_argument("--waits", action="store_true",
                        help="who waits for tags, instead of what is batched")
    parser.add_argument("--tap", action="store_true",
                        help="for make check: what reproduces a defect fails on the "
                        "unpatched kernel; with --waits, no load waits more often")
    args = parser.parse_args()
    with common.program("audit", *guest.ERRORS):
        for name in KERNELS:
            kernel.build(name)
        if not args.tap:
            show(WAITS, **STEADY) if args.waits else show(REPRODUCERS)
            return
        report = tap.Report()
        if args.waits:
            compare_waits(report, lambda take: both(WAITS, take=take, **STEADY))
        else:
            check_base(report)
    report.exit()


if __name__ == "__main__":
    main()
