#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Every test, in an order that finds the cheap failures first."""
import argparse
import collections
import concurrent.futures
import glob
import os
import subprocess
import sys
import threading
import time

from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "check")
SCRIPTS = os.path.join(kernel.ROOT, "scripts")


def module(name, *args):
    """Command line of a program of ours."""
    return [sys.executable, "-m", name, *args]


# What must work before anything can be tested: (what, command).
PREPARE = [
    ("kernel source", ["sh", os.path.join(SCRIPTS, "source.sh")]),
    ("tree", module("scripts.series", "tree")),
    ("series", module("scripts.series", "export")),
    ("patched kernel", module("scripts.kernel", "patched", kernel.UML)),
    ("kernel", module("scripts.kernel", "base", "batching")),
]

Group = collections.namedtuple(
    "Group", "seconds needs about command kver", defaults=(kernel.KVER,))

# Groups of tests, each of which speaks TAP, but for the plain one: how long it
# takes on two CPUs, about, and the last preparation that it needs.  Two run at
# a time, in this order: what fails quickly first, what takes long before what
# can fill the time that is left.
PLAIN = "git-am"
AT_A_TIME = 2
GROUPS = {name: Group(*row) for name, *row in (
    ("cost", 60, "kernel", "instructions that 'always' costs",
     module("scripts.checks.always_cost")),
    (PLAIN, 30, "series", "git am of the mails makes the tree",
     module("scripts.series", "verify")),
    ("option-off", 60, "kernel", "without the option nothing is compiled in",
     module("scripts.checks.option_off")),
    ("kunit", 90, "tree", "unit tests of the kernel's code",
     module("scripts.kunit")),
    ("kunit-arm64", 240, "tree", "the same for arm64, in a guest",
     ["env", "ARCH=arm64", *module("scripts.kunit")]),
    ("guest-runner", 90, "kernel", "tests of what boots the guests",
     module("lab.tests.guest_runner")),
    ("host-tools", 60, "kernel", "unit tests of the Python programs",
     # without what the first fetches, what Prometheus takes is skipped
     ["sh", "-c", "sh scripts/checks/fetch_prometheus.sh; pytest-3 --tap"]),
    ("plugtrace", 5, None, "does plugtrace-perf start?",
     module("scripts.checks.plugtrace_starts", "--host")),
    ("selftests", 420, "kernel", "the kselftests, in a guest",
     module("scripts.selftest")),
    ("native", 60, "kernel", "is SUITE=native of make bench right?",
     module("lab.native.native", "--tap")),
    ("torture", 150, "kernel", "90 s of make torture",
     module("lab.torture.torture", "--tap")),
    ("audit", 120, "kernel", "what plugs batch, case by case",
     module("scripts.audit", "--tap")),
    ("laboratory", 180, "kernel", "the model SSD, and plugbench, in guests",
     module("scripts.checks.laboratory")),
    ("roll-out", 150, "kernel", "plugroll's guard, under a live load",
     module("scripts.roll_test", "--only", "load")),
    ("loads", 60, "kernel", "some software that others wrote",
     module("lab.bench.loads", "--tap")),
    ("lines", 90, "kernel", "is SUITE=lines of make bench right?",
     module("lab.bench.lines", "--tap")),
    ("tags", 120, "kernel", "does anybody want for tags more often?",
     module("lab.bench.tags", "--short")),
    ("lint", 90, "series", "checkpatch, shellcheck, kernel-doc, sparse, W=1",
     module("scripts.lint")),
)}

# The other kernel that the series is for, too: that it builds, and the tests of
# the policy and of tags.
OTHER = "6.12"
OTHER_TESTS = ["modes_null_blk", "modes_nvme", "merges_as_always", "knob_values",
               "adaptive_learns", "adaptive_forgets", "fallback",
               "verify_flips", "held_switch_order", "polled_two",
               "several_queues_merge", "kyber_iostats", "tags_of_libaio",
               "tags_of_long_plug", "tags_of_merged", "tags_of_small_map",
               "tags_of_two_disks", "tags_of_shared_set", "tags_hoarded",
               "scheduler_limit"]


def of_other(name, seconds, *more, **changed):
    """A group, for the other kernel."""
    group = GROUPS[name]
    return group._replace(
        seconds=seconds, about="%s, Linux %s" % (group.about, OTHER),
        command=[*group.command, *more], kver=OTHER)._replace(**changed)


if kernel.KVER != OTHER:
    GROUPS.update({"%s-%s" % (name, OTHER): group for name, group in (
        (PLAIN, of_other(PLAIN, 60)),
        ("kunit", of_other("kunit", 15, needs="patched kernel")),
        ("selftests", of_other(
            "selftests", 270, *OTHER_TESTS, needs="patched kernel",
            about="some of the kselftests, in a guest, Linux " + OTHER)))})
    for last in "lines", "tags", "lint":
        GROUPS[last] = GROUPS.pop(last)


def help_text():
    """All groups, a line each."""
    return "GROUPS, and about how long each takes:\n" + "\n".join(
        "  %-14s %3d s  %s" % (name, group.seconds, group.about)
        for name, group in GROUPS.items())


def choose(text):
    """The groups named; all if none is."""
    names = text.replace(",", " ").split()
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.exit("check: no group '%s'; %s" % (unknown[0], help_text()))
    return {name: group for name, group in GROUPS.items()
            if not names or name in names}


def prepare(chosen):
    """Run the preparations that these groups need; they speak for themselves.
    """
    names = [what for what, _ in PREPARE]
    for kver in dict.fromkeys(group.kver for group in chosen.values()):
        last = max(names.index(group.needs) + 1 if group.needs else 0
                   for group in chosen.values() if group.kver == kver)
        for what, command in PREPARE[:last]:
            print("== %s, Linux %s" % (what, kver), flush=True)
            if subprocess.run(command, stdin=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, KVER=kver)).returncode:
                print("check: %s failed, so nothing could be tested" % what)
                return False
    return True


def environment(name, group):
    """For a group; the runner's tests want to be told what to boot."""
    env = dict(os.environ, KVER=group.kver)
    if name == "guest-runner":
        env.update(KERNEL=kernel.image("patched"), UML=kernel.image(kernel.UML),
                   INITRAMFS=guest.initramfs())
    return env


def complete(group, text, code):
    """The lines of a group, with a result for what it does not say itself: a
    group that printed no result failed."""
    lines = text.splitlines()
    found = tap.results(lines)
    if group.startswith(PLAIN):
        return ["# " + line for line in lines] + [
            "%sok %s" % ("not " * bool(code), GROUPS[group].about)]
    if not found:
        lines.append("not ok no test ran")
    elif code and not any(status == "fail" for _, status in found):
        lines.append("not ok exit %d" % code)
    return lines


def keep(group, lines):
    """The results of a group, for a CI to show."""
    with open(os.path.join(OUT, group + ".tap"), "w",
              encoding="utf-8") as file:
        file.write(tap.document(lines))


class Runner:
    """Runs groups; one group's output is printed in one piece."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.found = []         # (group, name, status)
        self.lock = threading.Lock()
        self.running = {}

    def run_group(self, name):
        """One group, from start to count."""
        start = time.monotonic()
        group = self.chosen[name]
        with subprocess.Popen(
                group.command, env=environment(name, group), text=True,
                errors="replace", stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            self.running[name] = process
            text = process.stdout.read()
        with self.lock:
            del self.running[name]
            print("== %s" % name)
            print("".join("   %s\n" % line for line in text.splitlines()))
            lines = complete(name, text, process.returncode)
            keep(name, lines)
            self.found += [(name, *one) for one in tap.results(lines)]
            print("== %s: %d s" % (name, time.monotonic() - start), flush=True)

    def state(self, seconds):
        """For the clock."""
        return "check: running %s, %d s" % (
            " and ".join(list(self.running)) or "nothing", seconds)

    def run(self):
        """All groups."""
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            jobs = [pool.submit(self.run_group, name) for name in self.chosen]
            try:
                with common.clock(self.state):
                    concurrent.futures.wait(jobs)
            except KeyboardInterrupt:
                for process in list(self.running.values()):
                    process.terminate()
                os._exit(130)
        for job in jobs:
            job.result()
        return self.found


def check(chosen):
    """Prepare and run; [(group, name, status)]."""
    os.makedirs(OUT, exist_ok=True)
    for path in glob.glob(OUT + "/*.tap"):      # of another run
        os.unlink(path)
    if prepare(chosen):
        return Runner(chosen).run()
    return [("preparation", "", "fail")]


def main():
    """All of it; the last line counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", default="", metavar="'a b'",
                        help="run only these (default: all), or: help")
    wanted = parser.parse_args().groups
    if wanted.split() == ["help"]:
        print(help_text())
        return
    start = time.monotonic()
    found = check(choose(wanted))
    for group, name, status in found:
        if status == "fail":
            print("FAILED %s: %s" % (group, name))
    count = collections.Counter(status for *_, status in found)
    print("took %d s\n%d passed, %d failed, %d skipped" % (
        time.monotonic() - start, count["pass"], count["fail"],
        count["skip"]))
    sys.exit(1 if count["fail"] else 0)


if __name__ == "__main__":
    with common.program("check"):
        main()
