#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests of our Python programs, in TAP."""
import argparse
import glob
import importlib.util
import os
import subprocess
import sys
import unittest

import rooms  # noqa: F401
import common
import kernel
import tap

ROOMS = ["scripts", "lab", "tools/block"]


class Result(unittest.TestResult):
    """Each test is a result of its own."""

    def __init__(self, report):
        super().__init__()
        self.report = report

    def addSuccess(self, test):
        """Passed."""
        super().addSuccess(test)
        self.report.check(True, test.id())

    def addFailure(self, test, err):
        """Failed."""
        super().addFailure(test, err)
        self.report.check(False, test.id(), self.failures[-1][1])

    def addError(self, test, err):
        """Raised what it should not."""
        super().addError(test, err)
        self.report.check(False, test.id(), self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        """A part of a test; the test itself is not told of its failure."""
        super().addSubTest(test, subtest, err)
        if err:
            self.report.check(False, subtest.id(),
                              (self.failures + self.errors)[-1][1])

    def addSkip(self, test, reason):
        """Could not be run."""
        super().addSkip(test, reason)
        self.report.skip(test.id(), reason)


def load(path):
    """The tests of a file."""
    name = os.path.basename(path)[:-3]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def main():
    """All of them, or those of the files named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FILE",
                        help="of tests (default: all test_*.py)")
    names = parser.parse_args().names
    for name in names:
        if not os.path.isfile(name):
            parser.error("no file '%s'" % name)
    common.heed_signals()
    report = tap.Report()
    if not names:
        # without it, what Prometheus takes is not tried; it says why
        subprocess.run(["sh", os.path.join(
            kernel.ROOT, "scripts/check/fetch_prometheus.sh")],
                       check=False)
        names = sorted(name for room in ROOMS for name in glob.glob(
            os.path.join(kernel.ROOT, room, "**/test_*.py"), recursive=True))
    for name in names:
        load(os.path.abspath(name)).run(Result(report))
    report.exit()


if __name__ == "__main__":
    main()
