# SPDX-License-Identifier: GPL-2.0
"""Bars of what each mode changes, with 95% intervals, as SVG.

A chart is of one metric of one profile.  Its colours are classes, so that it
follows the page it is in, from light to dark and onto paper; words and signs
say the same.
"""
import math
from html import escape

from .intervals import METRICS
from .records import cell_order
from .summary import groups
from .verdict import MARGINS, cell_text

WIDTH, LABEL, FIGURE = 400, 132, 60     # pixels: all, and either side of bars
ROW, HEAD, AXIS = 18, 24, 22
MOST = 100                      # percent; no bar goes further
STYLE = """
.chart { color: #222; max-width: 100%; height: auto; }
.chart text { font: 12px system-ui, sans-serif; fill: currentColor; }
.chart .name { font-weight: 600; }
.chart .tick { fill-opacity: .75; font-size: 11px; }
.chart line { stroke: currentColor; }
.chart .grid { stroke-opacity: .15; }
.chart .bar { fill: #888; fill-opacity: .6; }
.chart .better .bar { fill: #0072b2; fill-opacity: .85; }
.chart .worse .bar { fill: #d55e00; fill-opacity: .85; }
.chart .interval { stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  .chart { color: #ddd; }
  .chart .better .bar { fill: #56b4e9; }
  .chart .worse .bar { fill: #e69f00; }
}
@media print { .chart { color: #000; } }
"""


def percents(one):
    """Of a comparison: (low, change, high) in percent, within bounds; without
    an interval all are the change."""
    def within(ratio):
        return max(-MOST, min(MOST, 100 * (ratio - 1)))
    change = within(one["ratio"])
    if one["low"] is None:
        return change, change, change
    return within(one["low"]), change, within(one["high"])


def ticks(low, high):
    """Round figures from low to high, about five of them, with 0."""
    power = 10 ** math.floor(math.log10((high - low) / 2))
    step = next(factor * power for factor in (1, 2, 5, 10, 20)
                if (high - low) / (factor * power) <= 6)
    return [number * step for number in range(math.ceil(low / step),
                                              math.floor(high / step) + 1)]


class Axis:
    """From percent to pixels."""

    def __init__(self, some):
        ends = [end for one in some for end in percents(one)] + [0.0]
        self.low, self.high = min(ends), max(ends)
        least = max(0.5, 0.04 * (self.high - self.low))
        self.low, self.high = self.low - least, self.high + least

    def at(self, percent):
        return LABEL + (WIDTH - LABEL - FIGURE) * (
            percent - self.low) / (self.high - self.low)


def line(kind, left, top, right, bottom):
    return f'<line class="{kind}" x1="{left:.1f}" y1="{top:.1f}" ' \
        f'x2="{right:.1f}" y2="{bottom:.1f}"/>'


def text(kind, left, top, words, anchor="start"):
    return f'<text class="{kind}" x="{left:.1f}" y="{top:.1f}" ' \
        f'text-anchor="{anchor}">{escape(words)}</text>'


def row(one, axis, top):
    low, change, high = (axis.at(percent) for percent in percents(one))
    zero, middle = axis.at(0), top + ROW / 2
    value, sure = cell_text(one)
    marks = [line("interval", low, middle, high, middle)] + [
        line("interval", end, middle - 3, end, middle + 3)
        for end in (low, high)] if one["low"] is not None else []
    said = one.get("judgement") or ""
    title = escape(f"{one['mode']} {value} {sure} {said}".strip())
    return [f'<g class="{said or "open"}"><title>{title}</title>',
            text("mode", LABEL - 6, middle + 4, one["mode"], "end"),
            f'<rect class="bar" x="{min(zero, change):.1f}" y="{top + 3}" '
            f'width="{abs(change - zero):.1f}" height="{ROW - 6}"/>',
            *marks, text("figure", WIDTH, middle + 4, value, "end"), "</g>"]


def chart(some, metric):
    """SVG of the comparisons of a metric, a profile's: a group of bars for
    each workload, in the order given."""
    heading, more_is_better = METRICS[metric][:2]
    axis, top, parts = Axis(some), 0, []
    for (workload,), group in groups(some, "workload").items():
        parts.append(text("name", 0, top + 16, workload))
        top += HEAD
        for one in group:
            parts += row(one, axis, top)
            top += ROW
    grid = []
    for percent in ticks(axis.low, axis.high):
        grid += [line("grid" if percent else "zero", axis.at(percent), HEAD,
                      axis.at(percent), top),
                 text("tick", axis.at(percent), top + 15,
                      f"{percent:+g}%" if percent else "0", "middle")]
    better = "more" if more_is_better > 0 else "less"
    return "\n".join([
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'viewBox="0 0 {WIDTH} {top + AXIS}" width="{WIDTH}" aria-label="'
        f'Change of {escape(heading)}; {better} is better. The table has the '
        'figures.">', *grid, *parts, "</svg>"])


def charts(verdict):
    """[(profile, metric, SVG)] of what decides a verdict."""
    found = groups([one for one in verdict["comparisons"]
                    if one["metric"] in MARGINS], "profile", "metric")
    return [(*key, chart(sorted(some, key=cell_order), key[1]))
            for key, some in found.items()]
