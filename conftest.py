# SPDX-License-Identifier: GPL-2.0
"""For all unit tests: the programs that they start find their modules compiled,
which is most of their time, and heed signals; and --tap, by which make check
reads results."""
import os
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("PLUG_POLICY_BUILD") or Path(__file__).parent / "build")
sys.pycache_prefix = str(BUILD / "cache/pycache")
sys.dont_write_bytecode = False
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from scripts import common  # noqa: E402 pylint: disable=wrong-import-position
from scripts.checks import tap  # noqa: E402 pylint: disable=wrong-import-position

common.heed_signals()           # which tests send to what they start


class Tap:
    """Prints a result as it comes, with what a failure said before it."""

    def __init__(self):
        self.report = tap.Report()

    def take(self, report, status, details=""):
        reason = str(report.longrepr[2]) if status == "skip" else ""
        self.report.take(report.nodeid.replace("#", ""), status, reason, details)

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.take(report, "skip")
        elif report.failed:
            self.take(report, "fail", report.longreprtext)
        elif report.when == "call":
            self.take(report, "pass")

    def pytest_collectreport(self, report):
        if report.failed:
            self.take(report, "fail", report.longreprtext)

    def pytest_sessionfinish(self):
        self.report.say(f"1..{self.report.number}")


def pytest_addoption(parser):
    parser.addoption("--tap", action="store_true", help="print results in TAP")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if config.option.tap:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(Tap())
