#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run the kselftests in a guest: installed as from a bare kernel tree, on an
emulated NVMe disk that they may destroy."""
import argparse
import glob
import os
import shutil
import sys
import textwrap

from scripts.kbuild import arch
from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "selftest")
INSTALL = os.path.join(OUT, "install")
SUITE = os.path.relpath(kernel.SELFTESTS, kernel.ROOT)
SLOW = 4        # times as long takes the kernel with KASAN and lockdep
# What fits a kernel that is a process: others need NVMe, a second CPU, or the
# function profiler, which User Mode Linux does not have.
UML_TESTS = ["adaptive_forgets", "adaptive_learns", "held_switch_order",
             "keeps_merging", "knob_values", "kyber_iostats",
             "merges_as_always", "polled_two", "several_queues_merge",
             "tags_hoarded"]
# What run_kselftest.sh wants to find on a machine. Its prefix.pl passes on each
# line at once, as sed does not: a test may end the guest.
JOB = """export BLOCK_PLUG_DEVS=%s PATH=/usr/bin:/bin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /bin/env /usr/bin/env
cat >/usr/bin/perl <<'END'
#!/bin/sh
while IFS= read -r line || [ "$line" ]; do
	printf '# %%s\\n' "$line"
done
END
chmod 755 /usr/bin/perl
/kselftest/run_kselftest.sh %s 2>&1 | tee "$VERDICT"
"""
# How it begins to speak of a test, and how it ends.
HEAD = "selftests: block-plug: "


def made_by():
    """make's arguments for another processor than the host's, whose programs
    must not be taken for these."""
    if not arch.IS_ARM64:
        return []
    return [*arch.MAKE, "CC=" + " ".join(arch.gcc()),
            "O=" + os.path.join(OUT, "build")]


def install(tree):
    """make install of the kselftests, from the tree alone."""
    if not os.path.exists(os.path.join(tree, SUITE, "Makefile")):
        raise guest.GuestError("%s is not in this section" % SUITE)
    shutil.rmtree(INSTALL, ignore_errors=True)
    said = kernel.quiet(
        ["make", "-s", "-C", os.path.join(tree, "tools/testing/selftests"),
         "TARGETS=block-plug", "INSTALL_PATH=" + INSTALL, *made_by(),
         "install"],
        "kselftest install")
    listed = os.path.join(INSTALL, "kselftest-list.txt")
    if not os.path.exists(listed):
        raise guest.GuestError("kselftest install listed no test: " + said)
    with open(listed, encoding="ascii") as lines:
        return [line.strip().split(":", 1)[1] for line in lines if ":" in line]


def timeout():
    """Seconds for one test, as the kselftests' own runner has it."""
    with open(os.path.join(kernel.SELFTESTS, "settings"),
              encoding="ascii") as settings:
        return int(dict(line.strip().split("=") for line in settings)
                   ["timeout"])


def choose(tests, wanted):
    """The wanted tests, all if none is named."""
    names = [name if name.endswith(".sh") else name + ".sh" for name in wanted]
    unknown = [name for name in names if name not in tests]
    if unknown:
        raise guest.GuestError("no test '%s'; there are: %s"
                               % (unknown[0], " ".join(tests)))
    return names or tests


def help_text():
    """All tests, each with what it is for."""
    tests = set(glob.glob(kernel.SELFTESTS + "/*.sh"))
    for path in sorted(tests.difference(kernel.selftest_libraries())):
        yield os.path.basename(path)[:-3]
        yield textwrap.fill(common.description(path), 79, initial_indent="    ",
                            subsequent_indent="    ")


def settings(variant):
    """Of the guest that the tests need."""
    os.makedirs(OUT, exist_ok=True)
    if variant == kernel.UML:
        return {"out": os.path.join(OUT, variant), "disks": ()}
    disk = os.path.join(OUT, "disk.img")
    if os.path.exists(disk):
        os.unlink(disk)
    return {"out": os.path.join(OUT, variant),
            "disks": ("file:%s:256m" % disk,),
            "accel": os.environ.get("ACCEL") or "auto"}


def programs():
    """SRC:DST of what the guest's busybox lacks: timeout has no --foreground
    there."""
    paths = [arch.find(name) for name in ("timeout", "dmsetup")]
    return guest.linked(*paths) + [
        path + ":/usr/bin/" + os.path.basename(path) for path in paths]


def arguments(variant, tests):
    """Of run_kselftest.sh, which reads the timeout from `settings`."""
    words = ["-t block-plug:" + test for test in tests]
    if variant == "debug":
        words.append("-o %d" % (SLOW * timeout()))
    return " ".join(words)


def run(variant, tests):
    """Boot with a job that runs the tests; the boot.Result."""
    disk = "" if variant == kernel.UML else "/dev/nvme0n1"
    return guest.run(
        variant, job=JOB % (disk, arguments(variant, tests)), name="selftests",
        files=(INSTALL + ":/kselftest", *programs()),
        timeout=300 * (SLOW if variant == "debug" else 1),
        **settings(variant))


def report_test(report, test, lines, status, end):
    """What one test printed, case by case, and what became of it."""
    results = tap.results(lines)
    for name, of_case in results:
        report.take("%s: %s" % (test, name), of_case, skip_reason(lines))
    if status != "skip":
        failed = any(of_case == "fail" for _, of_case in results)
        report.check(status == "pass" or failed, "%s: exit" % test,
                     "\n".join([end, *lines[-20:]]))
    elif not results:
        report.skip(test, skip_reason(lines))


def skip_reason(lines):
    """Why a test skipped, in its own words."""
    for line in lines:
        if "skip" in line.lower():
            return line.rpartition("# SKIP ")[2].lstrip("# ")
    return "no reason given"


def report_all(report, tests, lines):
    """Split what run_kselftest.sh said by test."""
    seen, ends, current = {}, {}, []
    for line in lines:
        result = tap.parse(line)
        if result:
            ends[result[0].removeprefix(HEAD)] = result[1], line
        elif line.startswith("# " + HEAD):
            current = seen.setdefault(line[len("# " + HEAD):], [])
        else:
            current.append(line.removeprefix("# "))
    for test in tests:
        said = seen.get(test, [])
        for line in said:
            if line.startswith("#"):
                print(line)
        report_test(report, test, said, *ends.get(test, ("fail", "no end")))


def shell(variant):
    """A prompt in the guest, with the disk attached."""
    result = guest.run(variant, job="", interactive=True, name="shell",
                       **settings(variant))
    if result.status == "fail":
        sys.exit("shell: " + result.reason)


def choose_kernel(args):
    """The variant of kernel.py."""
    if args.uml:
        return kernel.UML
    if args.section:
        return kernel.add_stack(args.section)
    return "debug" if args.debug else "patched"


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    kernels = parser.add_mutually_exclusive_group()
    kernels.add_argument("--debug", action="store_true",
                         help="KASAN, lockdep and DEBUG_ATOMIC_SLEEP")
    kernels.add_argument("--uml", action="store_true",
                         help="in a kernel that is a process of this machine; "
                         "default: the tests that fit it")
    kernels.add_argument("--section", help="its tests and its kernel, with no "
                         "more of the series than its cover names")
    parser.add_argument("--shell", action="store_true", help="just a prompt")
    parser.add_argument("tests", nargs="*", help="default: all; 'help' says "
                        "what each is for, and runs none")
    args = parser.parse_args()
    if args.tests == ["help"]:
        print("\n".join(help_text()))
        return
    with common.program("selftest", *guest.ERRORS):
        variant = choose_kernel(args)
        kernel.ensure_tree(variant)
        # what is refused is refused before a build
        tests = [] if args.shell else choose(
            install(kernel.VARIANTS[variant][0]),
            args.tests or UML_TESTS * args.uml)
        if variant == kernel.UML or args.section:
            kernel.build(variant)
        if args.shell:
            shell(variant)
            return
        result = run(variant, tests)
    report = tap.Report()
    report_all(report, tests, result.lines)
    report.check(result.ok, "the guest saw no warning, hang or crash",
                 "%s; see %s" % (result.reason, result.log))
    report.exit()


if __name__ == "__main__":
    main()
