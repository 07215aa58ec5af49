# SPDX-License-Identifier: GPL-2.0
"""What plugs batch, and who waits for tags: on the unpatched kernel, and with the
series, side by side.

The kselftests count; here each count is a result, with what is expected of the
patched kernel, and what the unpatched one comes to."""
import argparse
import collections
import re
from pathlib import Path

from lab.qemu import guest
from scripts import kernel, selftest
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


def doorbells(variant):
    """{load: doorbells for 32 I/Os}"""
    result = guest.work(variant, str(OUT / f"{variant}-doorbells"), BELLS,
                        name=f"doorbells, {variant}", accel="tcg",
                        trace_doorbells=True, append="nvme.write_queues=1",
                        disks=("null:256m",), timeout=300)
    return {name: sum(result.between(*(f"{name.replace(' ', '_')}.{end}" for end in
                                       ("begin", "end"))).values()) / SUBMISSIONS
            for name in LOADS}


def compare_counts(report, test, base, patched):
    """What both kernels counted; where a case breaks off, one counts less."""
    before = {(case, nr): seen for case, _, counts in cases(base)
              for nr, (seen, *_) in enumerate(counts)}
    for case, _, counts in cases(patched):
        for nr, (seen, least, most, what) in enumerate(counts):
            old = before.get((case, nr), "none")
            report.check(least <= seen <= most, f"{test}: {case}: {seen} {what}, of {least} to "
                         f"{most}; {old} on the unpatched kernel")


def compare(report, brief):
    """What reproduces a defect must fail without its mail. That it passes with it is
    another group, but for the doorbells that the emulator sees."""
    said = {name: run(name, REPRODUCERS) for name in KERNELS[:1 if brief else 2]}
    for test, lines in said["base"].items():
        failed = [case for case, status, _ in cases(lines) if status == "fail"]
        report.check(failed, f"{test} fails on the unpatched kernel", "it did not")
        print("".join(f"# {test}: {case}\n" for case in failed), end="")
        if not brief:
            compare_counts(report, test, lines, said["patched"][test])
    bells = {name: doorbells(name) for name in KERNELS[brief:]}
    for load, (_, most) in LOADS.items():
        report.check(bells["patched"][load] <= most, f"doorbells for 32 I/Os, {load}: " + ", ".join(
            f"{seen[load]:g} {name}" for name, seen in bells.items()))


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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0].replace("\n", " "))
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--waits", action="store_true",
                       help="who waits for tags, instead of what is batched")
    which.add_argument("--brief", action="store_true",
                       help="no test on the patched kernel, for make check, where another "
                       "group has them all")
    args = parser.parse_args()
    report = tap.Report()
    with report.must("kernels to compare", *guest.ERRORS):
        for name in KERNELS:
            kernel.build(name)
        if args.waits:
            compare_waits(report, lambda take: {
                name: run(name, WAITS, take=take, **STEADY) for name in KERNELS})
        else:
            compare(report, args.brief)
    report.exit()


if __name__ == "__main__":
    main()
