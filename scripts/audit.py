#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does a plug batch what it is expected to batch? On the unpatched kernel, and
with the series.

Guests of both kernels do the same I/O. Calls are counted by the function
profiler, requests by the disks' statistics, doorbells by the emulated
controller, instructions by a clock that follows them. A case fails if the
patched kernel does not do what is expected; the unpatched one is shown.
"""
import argparse
import collections
import functools
import os
import sys

from scripts import common
from scripts.checks import always_cost
from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap
from lab.qemu import boot

OUT = os.path.join(kernel.BUILD, "audit")
RESULT = os.path.join(OUT, "result.json")
SCRIPT = os.path.join(kernel.ROOT, "lab/bench/audit_guest.sh")
SUBMIT_LIST = os.path.join(kernel.SELFTESTS, "submit_list.c")
# Where the script finds what it shares with the kselftests.
THERE = "/kselftest/block-plug/"
KTAP = "tools/testing/selftests/kselftest/ktap_helpers.sh"
KERNELS = ("base", "patched")
SUBMISSIONS = 100

# Of the first controller: its tag set is then a shared one.
SECOND_NAMESPACE = (
    "-drive", "%s,format=raw,if=none,id=n2" % boot.drive("null:256m"),
    "-device", "nvme-ns,drive=n2")

# job: how its guest differs
JOBS = {
    "counts": {"accel": "tcg", "trace_doorbells": True,
               "devices": SECOND_NAMESPACE,
               "append": "null_blk.hw_queue_depth=256"},
    "queues": {"accel": "tcg", "trace_doorbells": True,
               "append": "nvme.write_queues=1"},
    "instructions": {"icount": True, "disks": (),
                     "append": "null_blk.hw_queue_depth=256"},
    "losers": {"icount": True, "append": "null_blk.hw_queue_depth=256"},
    "few_tags": {"icount": True, "disks": (),
                 "append": "null_blk.hw_queue_depth=16"},
}

Case = collections.namedtuple(
    "Case", "name text limit unit since reproducer")


def exactly(number, slack=0.0):
    """The judge of a count; a timer may cut one submission in two."""
    return ("%g" % number, lambda got, _: abs(got - number) <= slack)


def at_least(number):
    """The judge of what has chance in it."""
    return (">= %g" % number, lambda got, _: got >= number)


def at_most(number):
    """Likewise."""
    return ("<= %g" % number, lambda got, _: got <= number)


def goal(workload):
    """The judge of a cost: a share of the unpatched kernel's."""
    ratio = always_cost.GOALS[workload]
    return ("<= %g x unpatched" % ratio,
            lambda got, base: always_cost.within(got, ratio, base))


def no_more(slack=0.0):
    """The judge of a cost that the series must not raise, but for what chance
    does beyond always_cost.TOLERANCE."""
    return ("<= %g x unpatched" % (1 + slack),
            lambda got, base: always_cost.within(got, 1 + slack, base))


def shown():
    """The judge of what is as it should be, and may cost somebody something."""
    return ("-", lambda *_: True)


FIFO = "6.13, 6.12.y (e70c301faece)"
BATCHES = "5.16 (47c122e35d7e)"
SBITMAP = "5.16 (9672b0d43782)"
QUEUE_RQS = "5.17 (->queue_rqs)"
NVME_RQS = "5.17 (d62cbcf62f2f)"
OF_32 = "of 32 tags batched"
ALLOCATED = "requests allocated for 100 used"
COST = "instructions/IO"
SUM = "-"

CASES = [Case(*row) for row in (
    ("flush_size", "4K, then 31 x 128K in one plug", exactly(31),
     "flushes", FIFO, "flush_newest_size"),
    ("merge_two", "2 disks in turn, sequential, 2 I/Os per request",
     exactly(16), "requests for 32 I/Os", FIFO, "several_queues_merge"),
    ("merge_four", "4 disks in turn, sequential, 2 I/Os per request",
     exactly(16), "requests for 32 I/Os", FIFO, "several_queues_merge"),
    ("sticky_null", "1 to mq-deadline, then 199 to null_blk", exactly(5),
     "calls of queue_rqs", QUEUE_RQS, "flush_forgets"),
    ("sticky_nvme", "1 to mq-deadline, then 199 to nvme", exactly(5),
     "calls of queue_rqs", QUEUE_RQS, "flush_forgets"),
    ("tags_32", "io_uring, 32 per submission", exactly(32, .1),
     OF_32, "works", "tags_of_long_plug"),
    ("tags_64", "io_uring, 64 per submission", exactly(64, .1),
     "of 64 tags batched", BATCHES, "tags_of_long_plug"),
    ("tags_128", "io_uring, 128 per submission", exactly(128, .1),
     "of 128 tags batched", BATCHES, "tags_of_long_plug"),
    ("tags_128.at_once", "io_uring, 128 per submission", at_least(16),
     "tags per batch", "works", "tags_of_long_plug"),
    ("tags_libaio", "libaio, 32 per io_submit()", exactly(32, .1), OF_32,
     BATCHES, "tags_of_libaio"),
    ("tags_two_disks", "2 disks in turn", at_least(31.5), OF_32, BATCHES,
     "tags_of_two_disks"),
    ("tags_shared", "2 null_blk share a tag set", exactly(32, .1), OF_32,
     BATCHES, "tags_of_shared_set"),
    ("tags_shared_sched", "the same, with mq-deadline", exactly(32, .1), OF_32,
     BATCHES, "tags_of_shared_set"),
    ("tags_namespaces", "nvme, 2 namespaces", exactly(32, .1), OF_32,
     BATCHES, "tags_of_shared_set"),
    ("tags_depth32", "depth 32, 8 at once", at_least(31.5), OF_32,
     SBITMAP, "tags_of_small_map"),
    ("tags_depth64", "depth 64 (null_blk's default), 16 at once",
     exactly(32, .1), OF_32, SBITMAP, "tags_of_small_map"),
    ("tags_depth127", "depth 127", at_least(31), OF_32, SBITMAP,
     "tags_of_small_map"),
    ("tags_depth128", "depth 128", exactly(32, .1), OF_32, "works",
     "tags_of_small_map"),
    ("tags_mixed", "nvme, reads have a queue, 30% writes", at_least(28),
     OF_32, BATCHES, "tags_of_two_disks"),
    ("tags_mixed_deadline", "mq-deadline, half are writes, which it limits",
     at_least(14), OF_32, "works", "tags_of_mixed_kinds"),
    ("tags_mixed_kyber", "kyber, half are writes, which it limits",
     at_least(14), OF_32, "works", "tags_of_mixed_kinds"),
    ("allocated_buffered", "buffered reads, 32 per io_submit()",
     at_most(110), ALLOCATED, "works", "tags_of_sleeping_plug"),
    ("allocated_waiting", "128 in flight, of 32 tags, 32 per io_submit()",
     at_most(110), ALLOCATED, "works", "audit"),
    ("misrouted", "nvme, reads have a queue, 30% writes", exactly(0),
     "reads in wrong queue", "not traced", "audit"),
    ("doorbells_rand", "nvme, random 4K", exactly(1, .05),
     "doorbells for 32 I/Os", "works", "modes_nvme"),
    ("doorbells_mixed", "nvme, reads have a queue, 30% writes",
     exactly(2, .05), "doorbells for 32 I/Os", NVME_RQS, "audit"),
    ("doorbells_large", "nvme, 4K, then 31 x 128K in one plug", shown(),
     "doorbells for 32 I/Os", "not traced", "audit"),
    ("clock", "clock reads", at_most(2), "for 32 I/Os", "works",
     "audit"),
    ("clock_iostats0", "clock reads, iostats=0", at_most(2), "for 32 I/Os",
     "works", "audit"),
    ("polls_in_vain", "nvme, polled: polls before the I/O is issued",
     exactly(0), "polls", "refuted", "polled"),
    ("kyber_iostats1", "kyber: total latency taken for the worst", at_most(12),
     "% of looks", "works", "kyber_iostats"),
    ("kyber_iostats0", "the same, iostats=0", at_most(12),
     "% of looks", "not traced", "kyber_iostats"),
    ("insns_rand32", "random 4K, 32 per submission", goal("rand4k-s32"), COST,
     SUM, "cost"),
    ("insns_rand128", "random 4K, 128 per submission", goal("rand4k-s128"),
     COST, SUM, "cost"),
    ("insns_libaio", "random 4K, libaio, 32", goal("libaio-rand4k-s32"),
     COST, SUM, "cost"),
    ("insns_shared", "random 4K, shared tag set, 32",
     goal("shared-rand4k-s32"), COST, SUM, "audit"),
    ("insns_depth64", "random 4K, depth 64, 32",
     goal("depth64-rand4k-s32"), COST, SUM, "audit"),
    ("insns_two_disks", "random 4K, 2 disks in turn, 32",
     goal("two-rand4k-s32"), COST, SUM, "audit"),
    ("insns_seq", "sequential 4K, 32 per submission", goal("seq4k-s32"),
     COST, SUM, "cost"),
    ("insns_seq_libaio", "sequential 4K, libaio, 32",
     goal("libaio-seq4k-s32"), COST, SUM, "audit"),
    *[("insns_rand%d" % size, "random 4K, %d per submission" % size,
       no_more(), COST, SUM, "audit") for size in (2, 4, 8)],
    *[("insns_passthrough%d" % size,
       "nvme passthrough, %d per submission" % size, no_more(), COST, SUM,
       "audit") for size in (8, 32)],
    ("insns_buffered", "buffered reads, 32 per io_submit()", no_more(), COST,
     SUM, "tags_of_sleeping_plug"),
    *[("insns_mixed_" + name, "half are writes, " + name, no_more(), COST, SUM,
       "tags_of_mixed_kinds") for name in ("deadline", "kyber")],
    *[("insns_busy%d.%d.%d" % (depth, part, size),
       "depth %d, %d in flight, %d per submission" % (
           depth, depth * part // 4, size),
       no_more(.02), COST, SUM, "tags_of_busy_map")
      for depth in (128, 256) for part in (1, 2, 3, 4) for size in (8, 32)],
    *[("insns_disks24.%d" % size,
       "24 disks in turn, %d per submission" % size, no_more(), COST, SUM,
       "audit") for size in (32, 128)],
    *[("insns_share4.%d" % size,
       "shared tag set, a share of 4, %d per submission" % size, no_more(),
       COST, SUM, "audit") for size in (2, 4, 32)],
)]


class AuditError(kernel.BuildError):
    """The audit could not be made; the message says what to do."""


# --- guests ----------------------------------------------------------------

def submit_list():
    """Compile the program that submits a given list; its path."""
    if not os.path.exists(SUBMIT_LIST):
        raise AuditError("%s is missing: restore it from git" % SUBMIT_LIST)
    program = os.path.join(OUT, "submit_list")
    kernel.quiet(["gcc", "-O2", "-static", "-o", program, SUBMIT_LIST,
                  "-luring"],
                 "compiling submit_list (Debian: liburing-dev)")
    return program


def boot_one(variant, job, program):
    """One guest; its boot.Result."""
    name = "%s-%s" % (variant, job)
    files = [SCRIPT + ":" + THERE + "audit_guest.sh",
             *[path + ":" + THERE + os.path.basename(path)
               for path in kernel.selftest_libraries()],
             program + ":/bin/submit_list",
             os.path.join(kernel.BASE, KTAP) +
             ":/kselftest/kselftest/ktap_helpers.sh"]
    return guest.run(
        variant, os.path.join(OUT, name),
        "exec sh %saudit_guest.sh %s\n" % (THERE, job),
        **{"name": name, "files": tuple(files), "smp": 1, "timeout": 200,
           "disks": ("null:256m",), **JOBS[job]})


def run_guests(comment):
    """Boot every kernel with every job; {(variant, job): boot.Result}."""
    program = submit_list()
    runs = {(variant, job): functools.partial(boot_one, variant, job, program)
            for job in JOBS for variant in KERNELS}
    return guest.together(runs, lambda done, seconds: comment + common.how_far(
        "audit", done, len(runs), "guests", seconds))


# --- figures ---------------------------------------------------------------

def figures(result):
    """{name: number} of one guest, and which kernel it found itself on."""
    found, which = {}, None
    for line in result.lines:
        words = line.split()
        if words[:1] == ["value"] and len(words) == 3:
            found[words[1]] = float(words[2])
        elif words[:1] == ["kernel"]:
            which = words[1]
    for mark in result.marks:
        name, _, end = mark.name.rpartition(".")
        if end == "end":
            writes = sum(result.between(name + ".begin", mark.name).values())
            found[name] = round(writes / SUBMISSIONS, 1)
    return found, which


def complain(variant, job, result):
    """What became of a guest, for somebody who has to do something."""
    said = [line for line in result.lines if not line.startswith("value ")]
    return AuditError("guest %s, %s: %s; see %s\n%s" % (
        variant, job, result.reason, result.log, "\n".join(said[-5:])))


def collect(results):
    """{variant: {name: number}} of all guests that did their work."""
    found = {variant: {} for variant in KERNELS}
    for (variant, job), result in results.items():
        if result.status != "pass":
            raise complain(variant, job, result)
        numbers, which = figures(result)
        if which != variant:
            raise AuditError(
                "%s boots the %s kernel: run 'make kernel', and see that %s "
                "has the series and %s has not" % (
                    kernel.image(variant), which, kernel.TREE, kernel.BASE))
        found[variant].update(numbers)
    return found


def missing(found):
    """Names of figures that no guest reported."""
    return [case.name for case in CASES for variant in KERNELS
            if case.name not in found[variant]]


def judge(case, found):
    """Whether the patched kernel does what is expected."""
    return case.limit[1](found["patched"][case.name], found["base"][case.name])


def record(case, found):
    """A case for the result file."""
    return {"case": "%s: %s" % (case.name, case.text),
            "expected": case.limit[0], "base": found["base"][case.name],
            "patched": found["patched"][case.name], "unit": case.unit,
            "in": {kernel.KVER: has_finding(case, found)},
            "since": case.since, "reproducer": case.reproducer}


# --- what is printed -------------------------------------------------------

def has_finding(case, found):
    """Does this kernel have what the case found, unpatched?"""
    base = found["base"][case.name]
    if case.since == SUM:
        return "-"
    works = case.since in ("works", "refuted") or case.limit[1](base, base)
    return "no" if works else "yes"


def table(found):
    """The cases, one per line."""
    rows = [("case", "expected", "unpatched", "patched", "unit",
             "in " + kernel.KVER, "since", "reproducer", "")]
    for case in CASES:
        rows.append((case.text, case.limit[0],
                     "%g" % found["base"][case.name],
                     "%g" % found["patched"][case.name], case.unit,
                     has_finding(case, found), case.since, case.reproducer,
                     "" if judge(case, found) else "FAILED"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(
            cell.rjust(width) if i in (1, 2, 3) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def yes(names, found):
    """The answer that these cases give."""
    cases = [case for case in CASES if case.name in names]
    return "yes" if all(judge(case, found) for case in cases) else "no"


def answers(found):
    """The maintainer's three questions, from the figures."""
    old, new = found["base"], found["patched"]

    def both(name):
        return "%g (%g)" % (new[name], old[name])

    tags = [case.name for case in CASES if case.name.startswith("tags_")]
    bells = ["doorbells_rand", "doorbells_mixed"]
    clocks = ["clock", "clock_iostats0"]
    return [
        "32 tags at once: %s: %s of 32 tags batched with io_uring, %s of 128, "
        "libaio %s, two namespaces %s, depth 64 %s in parts of %g." % (
            yes(tags, found), both("tags_32"), both("tags_128"),
            both("tags_libaio"), both("tags_namespaces"),
            both("tags_depth64"), new["tags_depth64.at_once"]),
        "32 commands per doorbell: %s: %s doorbells for 32 random reads, %s "
        "for 32 reads and writes on two queues." % (
            yes(bells, found), both("doorbells_rand"),
            both("doorbells_mixed")),
        "Timestamps saved: %s: %s readings of the clock for 32 I/Os, %s with "
        "iostats=0." % (yes(clocks, found), both("clock"),
                        both("clock_iostats0")),
    ]


def say_all(found):
    """Table and answers, for people."""
    table(found)
    print("\nWith the series (unpatched):")
    print("\n".join(answers(found)))
    print("Records: %s" % os.path.relpath(RESULT, kernel.ROOT))


def say_tap(report, found):
    """One result per case, for make check."""
    for case in CASES:
        report.check(judge(case, found), "%s: %s" % (case.text, case.unit),
                     "expected %s, saw %g (unpatched %g)" % (
                         case.limit[0], found["patched"][case.name],
                         found["base"][case.name]))
    for line in answers(found):
        print("# " + line)
    report.exit()


def audit(comment):
    """Build, boot, count; {variant: {name: number}}."""
    for variant in KERNELS:
        kernel.build(variant)
    os.makedirs(OUT, exist_ok=True)
    if os.path.exists(RESULT):
        os.unlink(RESULT)       # an old one must not pass for a new one
    found = collect(run_guests(comment))
    lost = missing(found)
    if lost:
        raise AuditError("no figure for %s: does audit_guest.sh report it?"
                         % ", ".join(lost))
    common.write_json(RESULT, {"records": [record(case, found)
                                           for case in CASES]})
    return found


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0].replace("\n", " "),
        epilog="Writes build/audit/result.json. Exit: 0 all as expected, 1 "
               "not, or it could not be told.")
    parser.add_argument("--tap", action="store_true",
                        help="each case as a test result, for make check")
    if parser.parse_args().tap:
        report = tap.Report()
        with report.must("guests to audit", *guest.ERRORS):
            found = audit("# ")
        say_tap(report, found)
    with common.program("audit", *guest.ERRORS):
        found = audit("")
    say_all(found)
    if not all(judge(case, found) for case in CASES):
        sys.exit("audit: not all is as expected, see FAILED above")


if __name__ == "__main__":
    main()
