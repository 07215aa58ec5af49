#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The unit tests of our Python programs, in TAP."""
import argparse
import glob
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import traceback
import unittest

from scripts import common
from scripts import kernel
from scripts.checks import tap

ROOMS = ["scripts", "lab", "tools/block"]


# Most tests wait for what they have started.
JOBS = 2 * os.cpu_count()


class Result(unittest.TestResult):
    """Each test is a result of its own: what Report.take() takes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def _failed(self, test, problems):
        self.found.append((test.id(), "fail", "", problems[-1][1]))

    def addSuccess(self, test):
        """Passed."""
        super().addSuccess(test)
        self.found.append((test.id(), "pass", ""))

    def addFailure(self, test, err):
        """Failed."""
        super().addFailure(test, err)
        self._failed(test, self.failures)

    def addError(self, test, err):
        """Raised what it should not."""
        super().addError(test, err)
        self._failed(test, self.errors)

    def addSubTest(self, test, subtest, err):
        """A part of a test; the test itself is not told of its failure."""
        super().addSubTest(test, subtest, err)
        if err:
            self._failed(subtest, self.failures + self.errors)

    def addSkip(self, test, reason):
        """Could not be run."""
        super().addSkip(test, reason)
        self.found.append((test.id(), "skip", reason))


def load(path):
    """The tests of a file."""
    name = os.path.basename(path)[:-3]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def results(path):
    """What the tests of a file find, in a process of its own. A file that
    cannot be read is a failure, too."""
    result = Result()
    try:
        load(path).run(result)
    except Exception:   # pylint: disable=broad-exception-caught
        result.found.append((os.path.basename(path), "fail", "",
                             traceback.format_exc()))
    return result.found


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
            kernel.ROOT, "scripts/checks/fetch_prometheus.sh")],
                       check=False)
        names = sorted(name for room in ROOMS for name in glob.glob(
            os.path.join(kernel.ROOT, room, "**/test_*.py"), recursive=True))
    with multiprocessing.get_context("fork").Pool(
            JOBS, maxtasksperchild=1) as pool:
        for found in pool.imap(results, map(os.path.abspath, names), 1):
            for one in found:
                report.take(*one)
        pool.close()
        pool.join()
    report.exit()


if __name__ == "__main__":
    main()
