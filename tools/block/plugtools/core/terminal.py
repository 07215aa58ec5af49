# SPDX-License-Identifier: GPL-2.0
"""Colours and tables."""
import os
import sys

COLOURS = {"good": "32", "warning": "33", "bad": "31"}


def paint(text, kind, file=None):
    """Text in the colour of a kind, or of None; on a terminal that has
    colours, unless NO_COLOR forbids them."""
    file = file or sys.stdout
    if kind is None or os.environ.get("NO_COLOR") or not file.isatty() \
            or os.environ.get("TERM", "dumb") == "dumb":
        return text
    return f"\033[{COLOURS[kind]}m{text}\033[m"


def columns(rows):
    """Lines of cells, each column as wide as it must be."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
