# SPDX-License-Identifier: GPL-2.0
"""The unit tests, by the kernel's own kunit.py: under User Mode Linux, or, with
ARCH=arm64, which that cannot be, in QEMU."""
import json
import sys
from pathlib import Path

from scripts import common, kernel
from scripts.checks import tap
from scripts.kbuild import arch

BUILD = Path(kernel.BUILD)


def kunit(variant, *args):
    """(each test's result: (name, PASS or so); why it is no success)"""
    results = BUILD / "kunit.json"
    results.unlink(missing_ok=True)
    text, code = kernel.run([sys.executable, "tools/testing/kunit/kunit.py", "exec", *args,
                             f"--build_dir={kernel.output(variant)}", f"--json={results}"],
                            "kunit", cwd=kernel.TREE)
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


def main():
    common.no_arguments(__doc__)
    # there a warning ends the kernel, which kunit.py takes for a crash
    variant, args = ("kunit", ["--arch=arm64", "--kernel_args=panic_on_warn=1"]) \
        if arch.IS_ARM64 else (kernel.UML, ["--kernel_args=seccomp=on", "--kernel_args=ncpus=2"])
    report = tap.Report()
    with report.must("kernel with the tests", kernel.BuildError):
        kernel.build(variant)
        found, why = kunit(variant, *args)
    for name, status in found:
        report.take(f"kunit {name}", {"PASS": "pass", "SKIP": "skip"}.get(
            status, "fail"), "skipped by KUnit")
    report.check(not why and found, "KUnit succeeds", why)
    report.exit()


if __name__ == "__main__":
    main()
