# SPDX-License-Identifier: GPL-2.0
"""Run the kselftests in a guest: installed as from a bare kernel tree, on an
emulated NVMe disk that they may destroy."""
import argparse
import functools
import glob
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

from lab.qemu import boot, guest
from scripts import common, kernel
from scripts.checks import tap
from scripts.kbuild import arch

OUT = os.path.join(kernel.BUILD, "selftest")
SUITE = os.path.relpath(kernel.SELFTESTS, kernel.ROOT)
SLOW = 4        # times as long takes the kernel with KASAN and lockdep
TEST_SECONDS = 600
BOOT = 60       # seconds that a guest may be mute besides
# What User Mode Linux does not have, as tests require it, and what some tests leave
# out where it is missing.
NOT_IN_UML = re.compile(r"^require .*\b(profiler|nvme)\b", re.M)
LEFT_OUT = re.compile(r"\b(nvme_if_any|with_two_cpus|nproc|has_profiler)\b")
# What two CPUs at once, or the profiler's own count, show as well; and what wants
# a steady time, but NVMe, too.
IN_BOTH = ("adaptive_learns.sh", "fallback.sh", "siblings_write.sh", "tags.sh",
           "tags_waits.sh")
# What run_kselftest.sh wants to find on a machine. Its prefix.pl passes on each
# line at once, as sed does not: a test may end the guest.
JOB = """export BLOCK_PLUG_DEVS=%s PATH=/usr/bin:/bin BLOCK_PLUG_COUNTS=%s
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
END = re.compile(r"(not )?ok \d+ " + HEAD)


def install(tree, out):
    """make install of the kselftests, from the tree alone, for a guest that has its
    files there; the names of the tests."""
    where = Path(out, "install")
    if not Path(tree, SUITE, "Makefile").exists():
        raise guest.GuestError(f"{SUITE} is not in this section")
    shutil.rmtree(where, ignore_errors=True)
    # the host's programs must not be taken for those of another processor
    made_by = [*arch.MAKE, f"CC={' '.join(arch.gcc())}", f"O={out}/build"] if arch.IS_ARM64 else []
    said = kernel.quiet(["make", "-s", "-C", f"{tree}/tools/testing/selftests",
                         "TARGETS=block-plug", f"INSTALL_PATH={where}", *made_by, "install"],
                        "kselftest install")
    listed = boot.read_text(where / "kselftest-list.txt")
    if not listed:
        raise guest.GuestError(f"kselftest install listed no test: {said}")
    return re.findall(r"^[^:\n]*:(.*)", listed, re.M)


def limit(variant):
    """Seconds for one test: on a machine that does nothing else, none takes a
    sixth of it."""
    return TEST_SECONDS * (SLOW if variant == "debug" else 1)


def choose(tests, wanted):
    names = [name if name.endswith(".sh") else name + ".sh" for name in wanted]
    unknown = [name for name in names if name not in tests]
    if unknown:
        raise guest.GuestError(f"no test '{unknown[0]}'; there are: {' '.join(tests)}")
    return names or tests


def source(test):
    """Of one test, whose lines may be continued."""
    return Path(kernel.SELFTESTS, test).read_text(encoding="ascii").replace("\\\n", " ")


def fit(tests, uml, rest=False):
    """Those that can run in a kernel that is a process, or else those of which it
    would leave something out; rest: the former without the latter."""
    fitting = [test for test in tests if not NOT_IN_UML.search(source(test))]
    others = [test for test in tests if test not in fitting or LEFT_OUT.search(source(test))]
    if rest:
        return [test for test in fitting if test not in others or test in IN_BOTH]
    return fitting if uml else [test for test in tests if test in (*others, *IN_BOTH)]


def help_text():
    tests = set(glob.glob(kernel.SELFTESTS + "/*.sh"))
    for path in sorted(tests.difference(kernel.selftest_libraries())):
        yield os.path.basename(path)[:-3]
        yield textwrap.fill(common.description(path), 79, initial_indent="    ",
                            subsequent_indent="    ")


def settings(variant, out):
    if variant == kernel.UML:
        return {"out": out, "disks": ()}
    disk = Path(out, "disk.img")
    disk.unlink(missing_ok=True)
    return {"out": out, "disks": (f"file:{disk}:256m",), "accel": os.environ.get("ACCEL") or "auto"}


def programs():
    """SRC:DST of what the guest's busybox lacks: timeout has no --foreground
    there."""
    paths = [arch.find(name) for name in ("timeout", "dmsetup")]
    return (*guest.linked(*paths), *guest.into("/usr/bin", *paths))


def arguments(variant, tests):
    return " ".join([*(f"-t block-plug:{test}" for test in tests), f"-o {limit(variant)}"])


def run(variant, out, tests, counts="", where="", **how):
    """Boot with a job that runs the tests; the boot.Result. where: what is
    installed in out may serve several guests, each of which has a place."""
    disk = "" if variant == kernel.UML else "/dev/nvme0n1"
    ended = []
    with common.clock(lambda seconds: "# " + common.how_far(
            "kselftests, " + variant, len(ended), len(tests), "tests", seconds)):
        return guest.run(
            variant, job=JOB % (disk, counts, arguments(variant, tests)),
            files=(f"{out}/install:/kselftest", *programs()),
            on_line=lambda line: ended.append(line) if END.match(line) else None,
            **{"name": "selftests", **settings(variant, where or out),
               "timeout": BOOT + limit(variant), **how})


def run_all(variant, out, tests):
    """The boot.Results of one guest, or of two that are processes, each of
    which has one CPU."""
    if variant != kernel.UML:
        return [run(variant, out, tests)]
    halves = [tests[number::2] for number in range(min(2, len(tests)))]
    return list(guest.together({
        number: functools.partial(run, variant, out, half, where=f"{out}/{number}")
        for number, half in enumerate(halves)}).values())


def report_test(report, test, lines, status, end):
    """What one test printed, case by case, and what became of it."""
    results = tap.results(lines)
    for name, of_case in results:
        report.take(f"{test}: {name}", of_case, skip_reason(lines))
    if status != "skip":
        failed = any(of_case == "fail" for _, of_case in results)
        report.check(status == "pass" or failed, f"{test}: exit", "\n".join([end, *lines[-20:]]))
    elif not results:
        report.skip(test, skip_reason(lines))


def skip_reason(lines):
    """Why a test skipped, in its own words."""
    for line in lines:
        if "skip" in line.lower():
            return line.rpartition("# SKIP ")[2].lstrip("# ")
    return "no reason given"


def by_test(lines):
    """{test: what it said}, {test: (status, line) of its end}, of what
    run_kselftest.sh said."""
    seen, ends, current = {}, {}, []
    for line in lines:
        result = tap.parse(line)
        if result:
            ends[result[0].removeprefix(HEAD)] = result[1], line
        elif line.startswith("# " + HEAD):
            current = seen.setdefault(line[len("# " + HEAD):], [])
        else:
            current.append(line.removeprefix("# "))
    return seen, ends


def report_all(report, tests, lines):
    seen, ends = by_test(lines)
    for test in tests:
        said = seen.get(test, [])
        for line in said:
            if line.startswith("#"):
                print(line)
        report_test(report, test, said, *ends.get(test, ("fail", "no end")))


def shell(variant, out):
    result = guest.run(variant, job="", interactive=True, name="shell",
                       **settings(variant, out))
    if result.status == "fail":
        sys.exit("shell: " + result.reason)


def choose_kernel(args):
    if args.uml:
        return kernel.UML
    if args.section:
        return kernel.add_stack(args.section)
    return "debug" if args.debug else "patched"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    kernels = parser.add_mutually_exclusive_group()
    kernels.add_argument("--debug", action="store_true",
                         help="KASAN, lockdep and DEBUG_ATOMIC_SLEEP")
    kernels.add_argument("--uml", action="store_true",
                         help="in a kernel that is a process of this machine; "
                         "default: the tests that fit it")
    kernels.add_argument("--not-uml", action="store_true",
                         help="only the tests of which --uml leaves something "
                         "out, for want of NVMe, a second CPU or the profiler")
    parser.add_argument("--rest", action="store_true", help="with --uml: only the tests "
                        "that show as much there as with --not-uml, or more")
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
        out = os.path.join(OUT, variant)
        kernel.ensure_tree(variant)
        # what is refused is refused before a build
        tests = [] if args.shell else choose(
            install(kernel.VARIANTS[variant][0], out), args.tests)
        if (args.uml or args.not_uml) and not args.tests:
            tests = fit(tests, args.uml, args.rest)
        if variant == kernel.UML or args.section:
            kernel.build(variant)
        if args.shell:
            shell(variant, out)
            return
        results = run_all(variant, out, tests)
    report = tap.Report()
    report_all(report, tests, [line for result in results for line in result.lines])
    for result in results:
        report.check(result.ok, "the guest saw no warning, hang or crash",
                     f"{result.reason}; see {result.log}")
    report.exit()


if __name__ == "__main__":
    main()
