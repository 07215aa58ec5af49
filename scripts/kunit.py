#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests, under User Mode Linux, by the kernel's own kunit.py; with
ARCH=arm64, which that cannot be, in a guest."""
import argparse
import os
import subprocess
import sys

from scripts.kbuild import arch
from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "kunit")
# The suites have run when this starts; quiet, they said so here alone.
JOB = 'cat /sys/kernel/debug/kunit/*/results >"$VERDICT"\n'


def command():
    """kunit.py's command line, for the kernel as kernel.py has built it."""
    return [sys.executable, "tools/testing/kunit/kunit.py", "exec",
            "--build_dir", kernel.output(kernel.UML), "--raw_output=kunit"]


def as_process():
    """(what was printed, why that is no success)"""
    done = subprocess.run(command(), cwd=kernel.TREE,
                          env=kernel.environment(), text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace")
    return done.stdout, done.stdout[-3000:] if done.returncode else ""


def in_guest():
    """The same: the suites' results, and what went wrong in the guest."""
    result = guest.run("kunit", OUT, JOB, name="kunit", disks=(), smp=2,
                       timeout=600)
    text = "".join(line + "\n" for line in result.lines)
    why = "" if result.status == "pass" else "%s; see %s" % (result.reason,
                                                             result.log)
    return text, why or "\n".join(unfinished(text))


def unfinished(text):
    """What KUnit planned and did not end well, a line each. A suite stands
    between its subtest's head and its result, which is not indented."""
    found, suite = [], ""
    for line in text.splitlines():
        if line.startswith("    # Subtest: "):
            found += ["no end of " + suite] if suite else []
            suite = line.split(": ", 1)[1]
        elif line.startswith("ok ") and line.split()[2] == suite:
            suite = ""
        elif line.startswith("not ok "):
            found.append(line)
            suite = ""
    return found + (["no end of " + suite] if suite else [])


def take_rows(report, text):
    """Each parametrised row is a test of its own."""
    for line in text.splitlines():
        # rows and cases are indented once or twice; the suite sums them up
        result = tap.parse(line.strip()) if line.startswith("    ") else None
        if result and not is_sum(line, text):
            report.take("kunit " + result[0], result[1], "skipped by KUnit")


def is_sum(line, text):
    """Is this the line that sums up the rows of a parametrised case?"""
    name = line.rsplit(" ", 1)[-1]
    return "# Subtest: " + name in text


def main():
    """Run, and report."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    report = tap.Report()
    with report.must("kernel with the tests", *guest.ERRORS):
        kernel.build("kunit" if arch.IS_ARM64 else kernel.UML)
        text, why = in_guest() if arch.IS_ARM64 else as_process()
    with open(os.path.join(kernel.BUILD, "kunit.log"), "w",
              encoding="utf-8") as out:
        out.write(text)
    take_rows(report, text)
    report.check(not why and report.number, "KUnit succeeds", why)
    report.exit()


if __name__ == "__main__":
    main()
