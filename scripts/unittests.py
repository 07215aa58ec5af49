#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests of our Python programs, in TAP."""
import glob
import importlib.util
import os
import subprocess
import sys
import unittest

import common
import kernel
import tap

PLACES = ["scripts", "tools/block", "tools/testing/selftests/block-plug/bench",
          "tools/testing/selftests/block-plug/torture"]


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
    common.heed_signals()
    report = tap.Report()
    names = sys.argv[1:]
    if not names:
        # without it, what Prometheus takes is not tried; it says why
        subprocess.run(["sh", os.path.join(kernel.ROOT, "scripts",
                                           "fetch_prometheus.sh")],
                       check=False)
        names = sorted(name for place in PLACES for name in glob.glob(
            os.path.join(kernel.ROOT, place, "test_*.py")))
    for name in names:
        load(os.path.abspath(name)).run(Result(report))
    report.exit()


if __name__ == "__main__":
    main()
