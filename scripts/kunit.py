#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests, under User Mode Linux, by the kernel's own kunit.py; with
ARCH=arm64, which that cannot be, in a guest, whose results it reads."""
import json
import sys
from pathlib import Path

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap
from scripts.kbuild import arch

BUILD = Path(kernel.BUILD)
# The suites have run when this starts; quiet, they said so here alone, each as
# a document of its own, which begins with two lines.
JOB = """cd /sys/kernel/debug/kunit
{
	echo "KTAP version 1"
	echo "1..$(ls | wc -l)"
	for suite in *; do
		sed 1,2d "$suite/results"
	done
} >"$VERDICT"
"""


def kunit(*args):
    """(each test's result in the kernel's kunit.py: (name, PASS or so); why it
    is no success)"""
    results = BUILD / "kunit.json"
    results.unlink(missing_ok=True)
    text, code = kernel.run([sys.executable, "tools/testing/kunit/kunit.py", *args,
                             f"--json={results}"], "kunit", cwd=kernel.TREE)
    (BUILD / "kunit.log").write_text(text, encoding="utf-8")
    found = list(rows(json.loads(results.read_text(encoding="utf-8")))) \
        if results.exists() else []
    return found, text[-3000:] if code else ""


def rows(group, suite=""):
    """Each parametrised row is a test of its own."""
    for case in group["test_cases"]:
        yield f"{suite}{case['name']}", case["status"]
    for inner in group["sub_groups"]:
        yield from rows(inner, f"{suite}{inner['name']} ")


def in_guest():
    """The same, of a guest."""
    out = BUILD / "kunit"
    result = guest.run("kunit", str(out), JOB, name="kunit", disks=(), smp=2,
                       timeout=600)
    lines = out / "results"
    lines.write_text("\n".join(result.lines), encoding="utf-8")
    found, why = kunit("parse", lines)
    if result.status != "pass":
        why += f"{result.reason}; see {result.log}"
    return found, why


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    with report.must("kernel with the tests", *guest.ERRORS):
        kernel.build("kunit" if arch.IS_ARM64 else kernel.UML)
        found, why = in_guest() if arch.IS_ARM64 else kunit(
            "exec", "--build_dir", kernel.output(kernel.UML))
    for name, status in found:
        report.take(f"kunit {name}", {"PASS": "pass", "SKIP": "skip"}.get(
            status, "fail"), "skipped by KUnit")
    report.check(not why and found, "KUnit succeeds", why)
    report.exit()


if __name__ == "__main__":
    main()
