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

common.heed_signals()           # which tests send to what they start


class Tap:
    """Prints a result as it comes, with what a failure said before it."""

    def __init__(self):
        self.number = 0

    def say(self, good, name, details="", rest=""):
        for line in details.splitlines():
            print("# " + line)
        self.number += 1
        print(f"{'' if good else 'not '}ok {self.number} {name.replace('#', '')}{rest}",
              flush=True)

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.say(True, report.nodeid, rest=" # SKIP " + str(report.longrepr[2]))
        elif report.failed:
            self.say(False, report.nodeid, report.longreprtext)
        elif report.when == "call":
            self.say(True, report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(False, report.nodeid, report.longreprtext)

    def pytest_sessionfinish(self):
        print(f"1..{self.number}", flush=True)


def pytest_addoption(parser):
    parser.addoption("--tap", action="store_true", help="print results in TAP")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if config.option.tap:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(Tap())
