# SPDX-License-Identifier: GPL-2.0
"""Plots of cells, by gnuplot: ratios as bars, latencies as points."""
import math
import os
import re
import subprocess

from .records import LATENCIES, ReportError, rank, write_file
from .summary import baseline_name, groups, is_baseline
from .tables import group_title

# Okabe and Ito's colours, which the colour-blind can tell apart, and point
# types, hollow and filled.
COLOURS = {"always": "#0072B2", "never": "#D55E00", "seq-small": "#009E73",
           "adaptive": "#CC79A7", "nomerges0": "#999999",
           "nomerges1": "#F0E442", "nomerges2": "#E69F00",
           "noplug": "#56B4E9"}
POINTS = {"always": (6, 7), "never": (4, 5), "seq-small": (8, 9),
          "adaptive": (12, 13), "nomerges0": (1, 1), "nomerges1": (2, 2),
          "nomerges2": (10, 11), "noplug": (14, 15)}
FILLS = {"unpatched": "solid 0.35", "rfcera": "pattern 4",
         "patched": "solid 1.0"}
DASHES = {"unpatched": 2, "rfcera": 3, "patched": 1}
INK = "#333333"
GRID = 'set grid ytics back lt 1 lw 0.7 lc rgb "#d8d8d8"'
INSTALL = ("gnuplot is missing; install it (Debian: apt-get install "
           "gnuplot-nox)")


def quoted(text):
    """A gnuplot string; nothing in it can be special to gnuplot."""
    return '"%s"' % "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 or
        chr(byte) in " .,-+/:()=" else "\\%03o" % byte
        for byte in text.encode("utf-8"))


def series_of(cells):
    """(kernel, policy) pairs, in order."""
    pairs = groups(cells, "kernel", "policy")
    return sorted(pairs, key=lambda pair: (rank("policy", pair[1]),
                                           rank("kernel", pair[0])))


def ticks(names):
    """Names below an axis, at 0, 1 and so on; gnuplot takes them as formats.
    """
    return "set xtics (%s)" % ", ".join(
        "%s %d" % (quoted(name.replace("%", "%%")), place)
        for place, name in enumerate(names))


def change(cell):
    """A cell's data: what it changes in percent, and the deviation."""
    if cell is None:
        return "NaN NaN"
    return "%.4f %.4f" % (100 * (cell["ratio"] - 1),
                          100 * (cell["ratio_sd"] or 0))


def ratio_panel(cells, title, number):
    """Commands of one panel of bars."""
    names = sorted({cell["workload"] for cell in cells},
                   key=lambda name: rank("workload", name))
    script, plot = ["set title %s" % quoted(title), ticks(names)], []
    for index, pair in enumerate(series_of(cells)):
        data = "$d%d_%d" % (number, index)
        found = {cell["workload"]: cell for cell in cells
                 if (cell["kernel"], cell["policy"]) == pair}
        script += [data + " << END",
                   *(change(found.get(name)) for name in names), "END"]
        plot.append('%s using 1:2 title %s lc rgb "%s" fs %s border' % (
            data, quoted(" ".join(pair)), COLOURS[pair[1]], FILLS[pair[0]]))
    return script + ["plot " + ", ".join(plot)]


def ratio_plot(cells):
    """Script and size of the bars, or None if there are no ratios."""
    cells = [cell for cell in cells
             if cell["ratio"] is not None and not is_baseline(cell)]
    if not cells:
        return None
    panels = groups(cells, "suite", "profile")
    most = max(len(group) for group in panels.values())
    script = ["set multiplot layout %d,1" % len(panels),
              "set style data histograms",
              "set style histogram errorbars gap 1.5", "set boxwidth 0.9",
              "set key outside top center horizontal", "set xtics rotate by "
              "20 right nomirror", "set ytics nomirror", "set border 3",
              "set xzeroaxis lt -1", GRID, "set ylabel %s" % quoted(
                  "IOPS to %s, %%" % baseline_name(cells))]
    several = len({suite for suite, _ in panels}) > 1
    for number, ((suite, profile), group) in enumerate(panels.items()):
        script += ratio_panel(group, "%s: %s" % (suite, profile) if several
                              else profile, number)
    return script, (max(900, 100 + 17 * most), 380 * len(panels))


def latency_rows(cell):
    """A cell's data; a logarithmic axis cannot show 0."""
    for place, name in enumerate(LATENCIES):
        one = cell["lat_us"][name]
        if one and one["mean"] > 0:
            yield "%d %.6g" % (place, one["mean"])


def line_style(pair):
    """The colour and shape are the policy's, the dashes the kernel's."""
    return 'with linespoints dt %d lw 1.5 pt %d lc rgb "%s"' % (
        DASHES[pair[0]], POINTS[pair[1]][pair[0] == "patched"],
        COLOURS[pair[1]])


def latency_panel(cells, title, number):
    """Commands of one panel of percentiles."""
    script, plot = ["set title %s" % quoted(title)], []
    for index, cell in enumerate(cells):
        data = "$d%d_%d" % (number, index)
        script += [data + " << END", *latency_rows(cell), "END"]
        plot.append("%s using 1:2 %s notitle" % (
            data, line_style((cell["kernel"], cell["policy"]))))
    return script + ["plot " + ", ".join(plot)]


def legend(pairs):
    """A panel that holds the key of all the others."""
    return ["set border 0", "unset tics", "unset title", "set key center",
            "set yrange [1:2]", "plot " + ", ".join(
                "NaN %s title %s" % (line_style(pair), quoted(" ".join(pair)))
                for pair in pairs)]


def latency_plot(cells):
    """Script and size of the percentiles, or None if there are none."""
    cells = [cell for cell in cells if any(latency_rows(cell))]
    if not cells:
        return None
    panels = groups(cells, "suite", "profile", "workload")
    across = min(4, len(panels) + 1)
    down = math.ceil((len(panels) + 1) / across)
    script = ["set multiplot layout %d,%d title %s" % (
        down, across, quoted("Latency in us, logarithmic")),
              "set logscale y 2", "set xrange [-0.5:3.5]", GRID, "set border 3",
              "set tics nomirror", ticks(["mean", "p50", "p99", "p99.9"])]
    for number, (key, group) in enumerate(panels.items()):
        script += latency_panel(group, group_title(key, cells), number)
    return script + legend(series_of(cells)), (330 * across, 280 * down)


def gnuplot(script):
    """Bytes that gnuplot writes to its standard output."""
    try:
        done = subprocess.run(
            ["gnuplot", "-d"], input="\n".join(script).encode("utf-8"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except FileNotFoundError as error:
        raise ReportError(INSTALL) from error
    except OSError as error:
        raise ReportError("gnuplot can not be run: %s"
                          % error.strerror) from error
    if done.returncode or not done.stdout:
        raise ReportError("gnuplot failed: %s" % done.stderr.decode(
            "utf-8", "replace").strip())
    return done.stdout


def render(plot, suffix):
    """A plot as bytes of SVG or PNG; the latter at twice the size."""
    script, (width, height) = plot
    terminal = 'svg size %d,%d font "sans-serif,12"' % (width, height)
    if suffix == "png":
        terminal = 'pngcairo size %d,%d font "sans-serif,12" fontscale 1.5 ' \
            "linewidth 2 pointscale 1.4" % (2 * width, 2 * height)
    return gnuplot(["set encoding utf8",
                    "set terminal %s noenhanced background rgb '#ffffff'"
                    % terminal] + script + [""])


def file_name(text):
    """A name that is safe as part of a file's."""
    return re.sub(r"[^\w.-]+", "-", text).strip(".-") or "plots"


def plots(cells, directory, name):
    """Write NAME-ratio and NAME-latency as .svg and .png; their paths.

    What there is no data for is not written.
    """
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise ReportError("%s: %s" % (directory, error.strerror)) from error
    paths = []
    for kind, plot in (("ratio", ratio_plot(cells)),
                       ("latency", latency_plot(cells))):
        for suffix in ("svg", "png") if plot else ():
            path = os.path.join(directory, "%s-%s.%s" % (file_name(name),
                                                         kind, suffix))
            write_file(path, render(plot, suffix))
            paths.append(path)
    return paths
