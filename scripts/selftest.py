#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run the kselftests in a guest: installed as from a bare kernel tree, on an
emulated NVMe disk that they may destroy."""
import argparse
import os
import shutil
import sys

import guest
import kernel
import tap
from guest import boot

OUT = os.path.join(kernel.BUILD, "selftest")
INSTALL = os.path.join(OUT, "install")
JOB = """export BLOCK_PLUG_DEVS=/dev/nvme0n1
cd /kselftest/block-plug
for test in %s; do
	{
		echo "begin $test"
		timeout %d ./"$test" 2>&1
		echo "exit $?"
	} | tee "$VERDICT"
done
"""


def install(tree):
    """make install of the kselftests, from the tree alone."""
    shutil.rmtree(INSTALL, ignore_errors=True)
    said = kernel.quiet(
        ["make", "-s", "-C", os.path.join(tree, "tools/testing/selftests"),
         "TARGETS=block-plug", "INSTALL_PATH=" + INSTALL, "install"],
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


def make_guest(variant, **more):
    """The guest that the tests need."""
    os.makedirs(OUT, exist_ok=True)
    disk = os.path.join(OUT, "disk.img")
    if os.path.exists(disk):
        os.unlink(disk)
    return boot.Guest(
        kernel=kernel.image(variant), initramfs=guest.initramfs(),
        out=os.path.join(OUT, variant), disks=("file:%s:256m" % disk,),
        accel=os.environ.get("ACCEL") or "auto", **more)


def run(variant, tests):
    """Boot with a job that runs the tests; the boot.Result."""
    slow = 4 if variant == "debug" else 1
    job = os.path.join(OUT, "job")
    os.makedirs(OUT, exist_ok=True)
    with open(job, "w", encoding="ascii") as script:
        script.write(JOB % (" ".join(tests), timeout() * slow))
    return boot.boot(make_guest(
        variant, job=job, files=(INSTALL + ":/kselftest",), name="selftests",
        timeout=900 * slow))


def report_test(report, test, lines, code):
    """What one test printed, case by case."""
    results = [result for result in map(tap.parse, lines) if result]
    for name, status in results:
        label = "%s: %s" % (test, name)
        if status == "skip":
            report.skip(label, skip_reason(lines))
        else:
            report.check(status == "pass", label)
    if code == boot.KSFT_SKIP and not results:
        report.skip(test, skip_reason(lines))
    elif code != boot.KSFT_SKIP or not results:
        failed = any(status == "fail" for _, status in results)
        report.check(code == 0 or failed, "%s: exit" % test,
                     "exit %s\n%s" % (code, "\n".join(lines[-20:])))


def skip_reason(lines):
    """Why a test skipped, in its own words."""
    for line in lines:
        if "skip" in line.lower():
            return line.lstrip("# ")
    return "no reason given"


def report_all(report, tests, lines):
    """Split what the guest said by test."""
    seen, current = {}, []
    for line in lines:
        if line.startswith("begin "):
            current = seen.setdefault(line[6:].strip(), [])
        else:
            current.append(line)
    for test in tests:
        said = seen.get(test, [])
        code = None
        if said and said[-1].startswith("exit "):
            code = int(said.pop().split()[1])
        for line in said:
            if line.startswith("#"):
                print(line)
        report_test(report, test, said, code)


def shell(variant):
    """A prompt in the guest, with the disk attached."""
    result = boot.boot(make_guest(variant, interactive=True, name="shell"))
    if result.status == "fail":
        sys.exit("shell: " + result.reason)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--debug", action="store_true",
                        help="KASAN, lockdep and DEBUG_ATOMIC_SLEEP")
    parser.add_argument("--shell", action="store_true", help="just a prompt")
    parser.add_argument("tests", nargs="*", help="default: all")
    args = parser.parse_args()
    variant = "debug" if args.debug else "patched"
    try:
        if args.shell:
            shell(variant)
            return
        tests = choose(install(kernel.VARIANTS[variant][0]), args.tests)
        result = run(variant, tests)
    except (kernel.BuildError, boot.UsageError) as error:
        sys.exit("selftest: %s" % error)
    except KeyboardInterrupt:
        sys.exit("selftest: interrupted")
    report = tap.Report()
    report_all(report, tests, result.lines)
    report.check(result.ok, "the guest saw no warning, hang or crash",
                 "%s; see %s" % (result.reason, result.log))
    report.exit()


if __name__ == "__main__":
    main()
