# SPDX-License-Identifier: GPL-2.0
"""Colours, and tables whose columns and order the user chooses."""
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
    return "\033[%sm%s\033[m" % (COLOURS[kind], text)


def human(cell):
    """A long number in three digits and a unit, "522k"; another cell as it
    is."""
    if not NUMBER.fullmatch(cell) or abs(float(cell)) < 1000:
        return cell
    value, unit = float(cell), 0
    while abs(value) >= 999.5 and unit + 1 < len(UNITS):
        value, unit = value / 1000, unit + 1
    return "%.3g%s" % (value, UNITS[unit])


def add_options(parser, names):
    """--columns, --sort and -h, for tables with columns of these names; what
    they are set to is what arrange() takes."""
    def one(text):
        if text not in names:
            parser.error("'%s' is no column; accepted: %s"
                         % (text, ", ".join(names)))
        return text

    parser.add_argument("--columns", metavar="NAME,...",
                        type=lambda text: list(map(one, text.split(","))),
                        help="show these columns, in this order")
    parser.add_argument("--sort", metavar="NAME", type=one,
                        help="sort by this column: numbers from the largest "
                        "on, words by the alphabet")
    parser.add_argument("-h", "--human", action="store_true",
                        help="show long numbers as 522k")


def rank(cell):
    """By which cells are sorted; none comes last."""
    if NUMBER.fullmatch(cell):
        return 0, -float(cell), ""
    return 1 + (cell == "-"), 0, cell


def arrange(header, rows, args):
    """(places of the columns to show, rows in their order and units)"""
    if args.sort:
        place = header.index(args.sort)
        rows = sorted(rows, key=lambda row: rank(row[place]))
    if args.human:
        rows = [[human(cell) if isinstance(cell, str) else cell
                 for cell in row] for row in rows]
    chosen = args.columns or header
    return [header.index(name) for name in chosen], rows


def columns(rows, places):
    """Lines of cells at these places, each column as wide as it must be."""
    widths = [max(len(row[place]) for row in rows) for place in places]
    return ["  ".join(row[place].ljust(width) for place, width in
                      zip(places, widths)).rstrip() for row in rows]
