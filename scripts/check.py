#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Every test, in an order that finds the cheap failures first."""
import os
import signal
import subprocess
import sys
import time

import kernel
import tap

PYTHON = sys.executable
SCRIPTS = os.path.join(kernel.ROOT, "scripts")


def script(name, *args):
    """Command line of a script of ours."""
    return [PYTHON, os.path.join(SCRIPTS, name), *args]


# What must work before anything can be tested: (what, command).
PREPARE = [
    ("kernel source", ["sh", os.path.join(SCRIPTS, "source.sh")]),
    ("tree", script("series.py", "tree")),
    ("series", script("series.py", "export")),
    ("kernel", script("kernel.py", "patched", "base")),
]

# Groups of tests, each of which speaks TAP, but for the plain one.
PLAIN = "git am of the mails makes the tree"
GROUPS = [
    ("series tools", script("test_series.py")),
    (PLAIN, script("series.py", "verify")),
    ("lint", script("lint.py")),
    ("option off", script("identity.py")),
    ("cost of always", script("cost.py")),
    ("kunit", script("kunit.py")),
    ("guest runner", [PYTHON, os.path.join(kernel.QEMU, "test_boot.py")]),
    ("selftests", script("selftest.py")),
]


def environment():
    """For the groups; the runner's tests want to be told the kernel."""
    env = dict(os.environ)
    env["KERNEL"] = kernel.image("patched")
    return env


def prepare():
    """Run the preparations; they speak for themselves."""
    for what, command in PREPARE:
        print("== %s" % what, flush=True)
        if subprocess.run(command, stdin=subprocess.DEVNULL,
                          check=False).returncode:
            print("check: %s failed, so nothing could be tested" % what)
            return False
    return True


class Counts:
    """Results of all groups so far."""

    def __init__(self):
        self.by_status = {"pass": 0, "fail": 0, "skip": 0}
        self.failures = []

    def add(self, group, name, status):
        """Count one result."""
        self.by_status[status] += 1
        if status == "fail":
            self.failures.append("%s: %s" % (group, name))

    def total(self):
        """Results of any kind."""
        return sum(self.by_status.values())


def run_group(name, command, counts):
    """Run one group, print and count what it says."""
    start = time.monotonic()
    before = counts.total()
    with subprocess.Popen(command, env=environment(), text=True,
                          errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as group:
        for line in group.stdout:
            print("   " + line.rstrip(), flush=True)
            result = tap.parse(line)
            if result:
                counts.add(name, *result)
    if name == PLAIN and not group.returncode:
        counts.add(name, "exit 0", "pass")
    if group.returncode and not any(f.startswith(name) for f in
                                    counts.failures):
        counts.add(name, "exit %d" % group.returncode, "fail")
    if counts.total() == before:
        counts.add(name, "no test ran", "fail")
    print("== %s: %d s" % (name, time.monotonic() - start), flush=True)


def main():
    """All of it; the last line counts."""
    counts = Counts()
    start = time.monotonic()
    if not prepare():
        counts.add("preparation", "", "fail")
    else:
        for name, command in GROUPS:
            print("== %s" % name, flush=True)
            run_group(name, command, counts)
    for failure in counts.failures:
        print("FAILED %s" % failure)
    print("took %d s" % (time.monotonic() - start))
    print("%d passed, %d failed, %d skipped" % (
        counts.by_status["pass"], counts.by_status["fail"],
        counts.by_status["skip"]))
    sys.exit(1 if counts.failures else 0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("check: interrupted")
