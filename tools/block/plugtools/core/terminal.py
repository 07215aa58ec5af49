# SPDX-License-Identifier: GPL-2.0
"""Colours, tables, and numbers that are short."""
import os
import re
import sys

COLOURS = {"good": "32", "warning": "33", "bad": "31"}
UNITS = ("", "k", "M", "G", "T")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def paint(text, kind, file=None):
    """Text in the colour of a kind, or of None; on a terminal that has
    colours, unless NO_COLOR forbids them."""
    file = file or sys.stdout
    if kind is None or os.environ.get("NO_COLOR") or not file.isatty() \
            or os.environ.get("TERM", "dumb") == "dumb":
        return text
    return f"\033[{COLOURS[kind]}m{text}\033[m"


def human(cell):
    """A long number in three digits and unit, "522k"; other cells as is."""
    if not NUMBER.fullmatch(cell) or abs(float(cell)) < 1000:
        return cell
    value, unit = float(cell), 0
    while abs(value) >= 999.5 and unit + 1 < len(UNITS):
        value, unit = value / 1000, unit + 1
    return f"{value:.3g}{UNITS[unit]}"


def columns(rows):
    """Lines of cells, each column as wide as it must be."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
