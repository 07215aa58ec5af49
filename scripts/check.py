#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Every test, in an order that finds the cheap failures first."""
import concurrent.futures
import os
import subprocess
import sys
import threading
import time

import guest
import kernel
import tap

PYTHON = sys.executable
SCRIPTS = os.path.join(kernel.ROOT, "scripts")
BENCH = os.path.join(kernel.SELFTESTS, "bench")
TORTURE = os.path.join(kernel.SELFTESTS, "torture")


def script(name, *args):
    """Command line of a script of ours."""
    return [PYTHON, os.path.join(SCRIPTS, name), *args]


def bench(name, *args):
    """Command line of a script of the laboratory."""
    return [PYTHON, os.path.join(BENCH, name), *args]


# What must work before anything can be tested: (what, command).
PREPARE = [
    ("kernel source", ["sh", os.path.join(SCRIPTS, "source.sh")]),
    ("tree", script("series.py", "tree")),
    ("series", script("series.py", "export")),
    ("kernel", script("kernel.py", "patched", "base", "batching")),
]

# Groups of tests, each of which speaks TAP, but for the plain one.  Two run at
# a time, in this order: what fails quickly first, what takes long before what
# can fill the time that is left.
PLAIN = "git am of the mails makes the tree"
AT_A_TIME = 2
GROUPS = [
    ("cost of always", script("cost.py")),
    (PLAIN, script("series.py", "verify")),
    ("option off", script("identity.py")),
    ("kunit", script("kunit.py")),
    ("guest runner", [PYTHON, os.path.join(kernel.QEMU, "test_boot.py")]),
    ("host tools", script("unittests.py")),
    ("series tools", script("test_series.py")),
    ("selftests", script("selftest.py")),
    ("native", bench("native.py", "--tap")),
    ("torture", [PYTHON, os.path.join(TORTURE, "torture.py"), "--tap"]),
    ("audit", script("audit.py", "--tap")),
    ("laboratory", script("labtest.py")),
    ("loads", bench("loads.py", "--tap")),
    ("model against simulation", bench("crosscheck.py")),
    ("lines", bench("lines.py", "--tap")),
    ("lint", script("lint.py")),
]


def environment():
    """For the groups; the runner's tests want to be told what to boot."""
    return dict(os.environ, KERNEL=kernel.image("patched"),
                INITRAMFS=guest.initramfs())


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


def judge(group, text, code, counts):
    """Count what a group printed; a group that printed nothing failed."""
    results = [result for result in map(tap.parse, text.splitlines())
               if result]
    if group == PLAIN:
        results = [(group, "fail" if code else "pass")]
    elif not results:
        results = [("no test ran", "fail")]
    elif code and not any(status == "fail" for _, status in results):
        results.append(("exit %d" % code, "fail"))
    for name, status in results:
        counts.add(group, name, status)


class Runner:
    """Runs the groups; one group's output is printed in one piece."""

    def __init__(self):
        self.counts = Counts()
        self.env = environment()
        self.lock = threading.Lock()
        self.running = {}

    def run_group(self, name, command):
        """One group, from start to count."""
        start = time.monotonic()
        with subprocess.Popen(
                command, env=self.env, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as process:
            self.running[name] = process
            text = process.stdout.read()
        with self.lock:
            del self.running[name]
            print("== %s" % name)
            print("".join("   %s\n" % line for line in text.splitlines()))
            judge(name, text, process.returncode, self.counts)
            print("== %s: %d s" % (name, time.monotonic() - start), flush=True)

    def run(self):
        """All groups; says every ten seconds what is going on."""
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            jobs = [pool.submit(self.run_group, *group) for group in GROUPS]
            try:
                while concurrent.futures.wait(jobs, timeout=10).not_done:
                    print("check: running %s, %d s" % (
                        " and ".join(list(self.running)) or "nothing",
                        time.monotonic() - start), flush=True)
            except KeyboardInterrupt:
                for process in list(self.running.values()):
                    process.terminate()
                os._exit(130)
        for job in jobs:
            job.result()
        return self.counts


def main():
    """All of it; the last line counts."""
    start = time.monotonic()
    if prepare():
        counts = Runner().run()
    else:
        counts = Counts()
        counts.add("preparation", "", "fail")
    for failure in counts.failures:
        print("FAILED %s" % failure)
    print("took %d s" % (time.monotonic() - start))
    print("%d passed, %d failed, %d skipped" % (
        counts.by_status["pass"], counts.by_status["fail"],
        counts.by_status["skip"]))
    sys.exit(1 if counts.failures else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("check: interrupted")
