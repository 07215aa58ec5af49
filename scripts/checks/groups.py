# SPDX-License-Identifier: GPL-2.0
"""The groups of tests of make check and make quick.

seconds: on two CPUs, about; needs: the last preparation; touches: what it reads
besides what its programs import (touches.py); command: what speaks TAP, but for
git-am. Two run at a time, in this order: what fails quickly first, what takes
long before what can fill the time that is left."""
import collections
import fnmatch
import sys

from scripts import kernel
from scripts.checks.touches import Touches
from scripts.series import env

Group = collections.namedtuple(
    "Group", "seconds needs touches about command kver", defaults=(kernel.KVER,))


def module(name, *args):
    return [sys.executable, "-m", name, *args]


# What must work before anything can be tested: (what, command). With the first
# two a group's result may be known already.
PREPARE = {
    "kernel source": ["sh", "scripts/source.sh"],
    "tree": module("scripts.series", "tree"),
    "series": module("scripts.series", "export"),
    "patched kernel": module("scripts.kernel", "patched", kernel.UML),
    "kernel": module("scripts.kernel", "base", "batching"),
}
SOON = 2

# What makes the kernel; all but the controller, for what never sets "adaptive":
# its headers are in the hooks of all modes.
KERNEL = ("block lib patches/KVER/*.patch patches/KVER/series "
          "lab/qemu/*.config scripts/*.sh ")
HOOKS = KERNEL + ("!block/blk-plug-adaptive.c !block/tests !lib/tests "
                  "block/tests/*.kunitconfig ")
GUEST = "lab/qemu lab/load tools/testing/selftests/block-plug/plug_load.c "
SUITE = "tools/testing/selftests/block-plug "
BENCH = "lab/bench/*_guest* lab/bench/*.ini lab/bench/*.c "
MAILS = KERNEL + SUITE + "Documentation MAINTAINERS patches/KVER "
PLAIN = "git-am", "compile"

GROUPS = {name: Group(*row) for name, *row in (
    ("cost", 60, "kernel", HOOKS + GUEST, "instructions that 'always' costs",
     module("scripts.checks.always_cost")),
    ("git-am", 30, "series", MAILS, "git am of the mails makes the tree",
     module("scripts.series", "verify")),
    ("option-off", 60, "kernel", KERNEL,
     "without the option nothing is compiled in",
     module("scripts.checks.option_off")),
    ("kunit", 90, "tree", KERNEL, "unit tests of the kernel's code",
     module("scripts.kunit")),
    ("compile-arm64", 90, "tree", KERNEL, "the hooks compile for arm64",
     ["env", "ARCH=arm64", *module("scripts.kernel", "hooks")]),
    ("guest-runner", 90, "kernel", GUEST, "tests of what boots the guests",
     module("lab.tests.guest_runner")),
    ("host-tools", 60, "kernel", ".", "unit tests of the Python programs",
     # without what the first fetches, what Prometheus takes is skipped
     ["sh", "-c", "sh scripts/fetch_debian.sh prometheus; pytest-3 --tap"]),
    ("selftests-uml", 60, "tree", KERNEL + GUEST + SUITE,
     "the kselftests that a guest does not show better, in a process",
     module("scripts.selftest", "--uml", "--rest")),
    ("selftests", 420, "kernel", KERNEL + GUEST + SUITE,
     "those that need NVMe or several CPUs, in a guest",
     module("scripts.selftest", "--not-uml")),
    ("native", 60, "kernel", KERNEL + GUEST + BENCH + "lab/native",
     "is SUITE=native of make bench right?",
     module("lab.native.native", "--tap")),
    ("torture", 150, "kernel", KERNEL + GUEST + SUITE + "lab/torture lab/ssd_model",
     "90 s of make torture", module("lab.torture.torture", "--tap")),
    ("audit", 150, "kernel", HOOKS + GUEST + SUITE,
     "what reproduces a defect fails on the unpatched kernel",
     module("scripts.audit", "--brief")),
    ("laboratory", 180, "kernel",
     KERNEL + GUEST + BENCH + "lab/ssd_model tools/block", "the model SSD, plugbench, in guests",
     module("lab.tests.laboratory", *(f"--only={name}" for name in (
         "model, exact time", "model, unpatched", "plugbench")))),
    ("roll-out", 150, "kernel", KERNEL + GUEST + "lab/bench/*_guest* tools/block/plug[rst]*",
     "plugroll's guard, under a live load",
     module("lab.tests.laboratory", "--only=plugroll")),
    ("loads", 60, "kernel", KERNEL + GUEST + BENCH + "lab/ssd_model", "software of others",
     module("lab.bench.loads", "--tap")),
    ("tags", 120, "kernel", HOOKS + GUEST + SUITE,
     "does anybody wait for tags more often?",
     module("scripts.audit", "--waits")),
    ("style", 20, "tree", ".", "shellcheck, kernel-doc, columns, licences",
     module("scripts.lint", "style")),
    ("mails", 40, "series", MAILS, "checkpatch of each mail",
     module("scripts.lint", "mails")),
    ("sparse", 60, "tree", KERNEL + "lab/ssd_model", "sparse, W=1",
     module("scripts.lint", "sparse")),
)}


def of_change(group, **changed):
    """A group that is told the commit from which on we have changed things."""
    return group._replace(command=[*group.command, "--since", "{since}"],
                          **changed)


GROUPS["each-commit"] = of_change(Group(
    300, "tree", KERNEL, "commits that changed compile, options on and off",
    module("scripts.each_commit", "{fresh}")))

# The other kernel that the series is for, too: that what we change compiles, and
# the tests of the policy and of tags.
OTHER = "6.12"
OTHER_TESTS = ["modes", "merges_as_always", "knob_values", "adaptive_forgets",
               "fallback", "verify", "held_switch_order", "polled",
               "several_queues_merge", "kyber_iostats", "tags",
               "tags_two_disks", "tags_shared", "tags_waits"]


def of_other(name, seconds, **changed):
    group = GROUPS[name]
    return group._replace(
        seconds=seconds, about=f"{group.about}, Linux {OTHER}",
        kver=OTHER)._replace(**changed)


if kernel.KVER != OTHER:
    GROUPS.update({f"{name}-{OTHER}": group for name, group in (
        ("git-am", of_other("git-am", 60)),
        ("kunit", of_other("kunit", 15)),
        ("compile", Group(90, "tree", KERNEL, f"the hooks compile, Linux {OTHER}",
                          module("scripts.kernel", "hooks"), OTHER)),
        ("selftests-uml", of_other(
            "selftests-uml", 60, command=module("scripts.selftest", "--uml", *OTHER_TESTS),
            about=f"some of the kselftests, in a process, Linux {OTHER}")))})
    for last in "tags", "style", "mails", "sparse":
        GROUPS[last] = GROUPS.pop(last)


# What make quick runs: of most no more than changed.
QUICK = {
    "style": of_change(GROUPS["style"], needs=None),
    "unit-tests": Group(15, None, ".", "unit tests of what changed",
                        ["pytest-3", "--tap", "{tests}"]),
    "unit-tests-2": Group(15, None, ".", "the other half of them",
                          ["pytest-3", "--tap", "{more tests}"]),
    "kunit": GROUPS["kunit"],
    "selftests-uml": GROUPS["selftests-uml"]._replace(
        about="the kselftests that need no NVMe", command=module("scripts.selftest", "--uml")),
    "mails": of_change(GROUPS["mails"]),
    "git-am": GROUPS["git-am"],
    "each-commit": GROUPS["each-commit"]._replace(
        command=[*GROUPS["each-commit"].command, "--check=on-gcc", "--check=off-gcc"],
        touches="patches/KVER/*.patch patches/KVER/series"),
}

# {tests: what they read besides what they import}
READ = {
    "lab/tests/*": SUITE + "lab block Documentation/block patches README.md",
    "scripts/tests/*": "scripts Makefile conftest.py tools/block/packaging",
    "scripts/tests/test_[cp]*": ".",
    "scripts/tests/test_selftest*": SUITE + "patches",
    "tools/block/tests/*": "tools/block/tests/[!t]* tools/block/packaging tools/block/plugbench "
                           "tools/block/plugroll tools/block/plugstat tools/block/plugtrace-perf",
    "tools/block/tests/test_install.py": "tools/block COPYING Documentation/block",
}


def read_by(test):
    return " ".join(words for tests, words in READ.items() if fnmatch.fnmatchcase(test, tests))


def preparation(group):
    names = list(PREPARE)
    return names[:names.index(group.needs) + 1] if group.needs else []


def touches(group):
    """A group's, with those of its preparation, and this table. Another kernel
    shares mails with the first."""
    words = [word for command in (
        group.command, *(PREPARE[name] for name in preparation(group)))
             for word in command]
    return Touches(words, " ".join(
        [*(group.touches.replace("KVER", kver) for kver in (group.kver, env.FIRST)),
         "scripts/checks/groups.py"]))
