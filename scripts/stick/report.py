#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The stick's report: one page of the machine and of each disk measured."""
import glob
import os
import sys

# Beside this file on the stick.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from plugtools.report import page, verdict  # noqa: E402 pylint: disable=wrong-import-position
from plugtools.report.records import load  # noqa: E402 pylint: disable=wrong-import-position
from plugtools.report.results import section_of  # noqa: E402 pylint: disable=wrong-import-position
from plugtools.report.summary import summarise  # noqa: E402 pylint: disable=wrong-import-position

CLAIM = ("The plug policies, and nomerges=2, compared on this machine by the "
         "plug_policy stick. Disks were only read.")


def read(path):
    """What a text file holds, or nothing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def machine(directory):
    """What the machine is, and what failed."""
    return {"suite": "This machine", "claim": CLAIM,
            "details": read(os.path.join(directory, "outcome.txt")) + "\n"
            + read(os.path.join(directory, "machine.txt"))}


def results(path):
    """What plugbench measured on a disk."""
    records, meta = load(path)
    return dict(section_of(summarise(records), verdict.of(records), meta),
                suite=os.path.basename(path)[:-len(".json")])


def main(directory):
    """Writes report.html into the directory with the results."""
    files = sorted(glob.glob(os.path.join(directory, "*.json")))
    page.html([machine(directory), *map(results, files)],
              os.path.join(directory, "report.html"),
              "Plug policies on this machine")


if __name__ == "__main__":
    main(sys.argv[1])
