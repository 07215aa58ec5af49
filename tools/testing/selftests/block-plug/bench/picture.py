#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draw picture.svg, which README.md shows: what each choice is worth.

picture.py [FILE]

The figures are README.md's, which says how they were measured: IOPS as a ratio
to the unpatched plug.  Who measures anew changes them there and here.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, *[".."] * 5))
sys.path.insert(0, os.path.join(ROOT, "tools/block"))
from plugtools import plots, records  # noqa: E402 pylint: disable=wrong-import-position

CHOICES = (("nomerges2", "nomerges=2"), ("noplug", "no plug"),
           ("adaptive", "adaptive"))

# load, standard error where it is known, the ratio of each choice or None
FIGURES = (
    ("no latency: random 4K", None, 1.063, 0.869, 1.037),
    ("no latency: random 4K, 128 per submit", None, 1.059, 0.929, 1.114),
    ("no latency: libaio, random 4K", None, 1.041, 0.707, 1.089),
    ("no latency: sequential 4K", None, 0.984, 0.808, 1.065),
    ("no latency: sequential 128K", None, 1.065, 0.955, 1.003),
    ("gen4: random 4K", 0.007, 1.014, 1.009, 1.014),
    ("gen5: random 4K", 0.005, 1.007, 1.004, 1.013),
    ("vm: random 4K", 0.004, 1.009, None, 1.013),
    ("lockstep: random 4K", 0.012, 0.999, None, 0.994),
    ("optane, saturated: random 4K", None, 1.000, None, 1.000),
    ("gen4: sequential 4K", None, 0.752, 0.771, 0.999),
)
ROW = 30                        # pixels
SPREAD = 0.22                   # rows that choices are apart
SIZE = (820, 100 + ROW * len(FIGURES))


def data(column):
    """gnuplot's rows of one choice: ratio, place, standard error."""
    shift = (column - 1) * SPREAD
    for number, (_, error, *ratios) in enumerate(FIGURES):
        if ratios[column] is not None:
            yield "%g %g %g" % (ratios[column], number + shift, error or 0)


def script():
    """The whole picture, as gnuplot's commands."""
    lines = ["set lmargin 40", "set tmargin 3",
             "set yrange [%g:-0.6]" % (len(FIGURES) - 0.4),
             "set xrange [0.64:1.16]", "set grid xtics lt 1 lc rgb '#d8d8d8'",
             "set xlabel 'IOPS, 1.00 is the unpatched plug'",
             "set key tmargin center horizontal maxrows 1",
             "set tics nomirror", "set format x '%.2f'",
             "set arrow from 1,graph 0 to 1,graph 1 nohead lw 1.5 lc rgb '%s'"
             % plots.INK,
             "set ytics (%s)" % ", ".join(
                 "%s %d" % (plots.quoted(row[0]), number)
                 for number, row in enumerate(FIGURES))]
    plotted = []
    for column, (policy, title) in enumerate(CHOICES):
        lines += ["$choice%d << EOD" % column, *data(column), "EOD"]
        plotted.append(
            "$choice%d using 1:2:3 with xerrorbars pt %d ps 0.9 lw 1.5 "
            "lc rgb '%s' title %s"
            % (column, plots.POINTS[policy][1],
               plots.COLOURS[policy], plots.quoted(title)))
    return lines + ["plot " + ", ".join(plotted)]


def main(words):
    """Command line."""
    if len(words) > 1 or words[:1] and words[0].startswith("-"):
        print(__doc__)
        return 0 if words in (["-h"], ["--help"]) else 2
    path = words[0] if words else os.path.join(HERE, "picture.svg")
    try:
        drawn = plots.render((script(), SIZE), "svg")
        start, _, rest = drawn.partition(b"\n")
        records.write_file(path, start + b"\n<!-- SPDX-License-Identifier: "
                              b"GPL-2.0 -->\n" + rest)
    except records.ReportError as error:
        print("picture.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
