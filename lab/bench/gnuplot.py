# SPDX-License-Identifier: GPL-2.0
"""What drawings by gnuplot share: colours, quoting, and the run of it."""
import subprocess

from plugtools.report.records import ReportError

# Okabe and Ito's colours, which the colour-blind can tell apart, and point
# types, hollow and filled.
COLOURS = {"always": "#0072B2", "never": "#D55E00", "seq-small": "#009E73",
           "adaptive": "#CC79A7", "nomerges0": "#999999",
           "nomerges1": "#F0E442", "nomerges2": "#E69F00",
           "noplug": "#56B4E9"}
POINTS = {"always": (6, 7), "never": (4, 5), "seq-small": (8, 9),
          "adaptive": (12, 13), "nomerges0": (1, 1), "nomerges1": (2, 2),
          "nomerges2": (10, 11), "noplug": (14, 15)}
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
