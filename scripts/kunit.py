#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests, under User Mode Linux, by the kernel's own kunit.py."""
import os
import subprocess
import sys

import kernel
import tap



def command():
    """kunit.py's command line, for the kernel as kernel.py has built it."""
    return [sys.executable, "tools/testing/kunit/kunit.py", "exec",
            "--build_dir", kernel.output(kernel.UML), "--raw_output=kunit"]


def main():
    """Run, and report each parametrised row as a test of its own."""
    report = tap.Report()
    with report.must("kernel with the tests", kernel.BuildError):
        kernel.build(kernel.UML)
    done = subprocess.run(command(), cwd=kernel.TREE,
                          env=kernel.environment(), text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace")
    log = os.path.join(kernel.BUILD, "kunit.log")
    with open(log, "w", encoding="utf-8") as out:
        out.write(done.stdout)
    for line in done.stdout.splitlines():
        # rows and cases are indented once or twice; the suite sums them up
        result = tap.parse(line.strip()) if line.startswith("    ") else None
        if result and not is_sum(line, done.stdout):
            report.take("kunit " + result[0], result[1], "skipped by KUnit")
    report.check(done.returncode == 0 and report.number,
                 "kunit.py succeeds", done.stdout[-3000:])
    report.exit()


def is_sum(line, text):
    """Is this the line that sums up the rows of a parametrised case?"""
    name = line.rsplit(" ", 1)[-1]
    return "# Subtest: " + name in text


if __name__ == "__main__":
    main()
