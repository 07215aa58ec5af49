# SPDX-License-Identifier: GPL-2.0
"""Draws picture.svg, which README.md shows: what "adaptive" and "seq-small"
change against "always", in the same kernel, with 95% intervals.

It has no background, and colours that can be told from white and from black
alike: a page may be dark where the browser is not.
"""
import dataclasses
import math

from scripts.series import env, measured as store
from scripts.series.files import write_file

PATH = env.ROOT / "lab/bench/picture.svg"
LOAD = "rand4k-s32"
# text, suites of which the first that has the device counts, device
DEVICES = (("null_blk, by the clock", (store.WHOLE,), ""),
           ("flash SSD, PCIe 4 (model)", ("rfc", "device"), "gen4"),
           ("flash SSD, PCIe 5 (model)", ("rfc", "device"), "gen5"),
           ("virtual disk (model)", ("device",), "vm"),
           ("SSD that completes together (model)", ("device",), "lockstep"))
# mode: colour, shape, rows that it is above the middle
MODES = {"adaptive": ("#c0679a", '<circle cx="%.1f" cy="%.1f" r="5"/>', 0.16),
         "seq-small": ("#159473", '<rect x="%.1f" y="%.1f" width="9" '
                       'height="9" transform="translate(-4.5 -4.5)"/>',
                       -0.16)}
INK = "#757a80"
LEFT, RIGHT, TOP, ROW = 270, 730, 62, 44
WIDTH, BOTTOM = 760, TOP + ROW * len(DEVICES)
HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!-- SPDX-License-Identifier: GPL-2.0 -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" \
height="%d" font-family="sans-serif" font-size="15" fill="%s" role="img">
<title>Change of IOPS with adaptive and seq-small, against always</title>"""


@dataclasses.dataclass(frozen=True)
class Scale:
    """Of changes in percent: from 5% less to 12% more, and further if some
    are."""

    low: int
    high: int

    @classmethod
    def of(cls, found):
        """That has room for all changes."""
        ends = [100 * (one[key] - 1) for row in found for one in row.values()
                for key in ("ratio", "ci_low", "ci_high")
                if one[key] is not None]
        return cls(math.floor(min([-5, *ends])), math.ceil(max([12, *ends])))

    def x(self, percent):
        """Where it is."""
        return LEFT + (RIGHT - LEFT) * (percent - self.low) / (
            self.high - self.low)


def text(x, y, words, anchor="start"):
    """Words at a place."""
    return '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' % (
        x, y, anchor, words)


def line(x1, y1, x2, y2, style):
    """A line."""
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>' % (
        x1, y1, x2, y2, style)


def grid(scale):
    """Lines, their numbers, and what they are."""
    for percent in range(scale.low, scale.high + 1):
        x, major = scale.x(percent), percent % 5 == 0
        yield line(x, TOP, x, BOTTOM, 'stroke="%s" stroke-opacity="%s"' % (
            INK, "1" if percent == 0 else "0.45" if major else "0.18"))
        if major:
            yield text(x, BOTTOM + 20, "%+d%%" % percent if percent else
                       "always", "middle")
    yield text((LEFT + RIGHT) / 2, BOTTOM + 42, "change of IOPS, random 4K "
               "reads, 32 per submission", "middle")


def legend():
    """Which mark is which mode."""
    for number, (mode, (colour, shape, _)) in enumerate(MODES.items()):
        x = LEFT + 120 * number
        yield '<g fill="%s">%s</g>' % (colour, shape % (x + 5, 30))
        yield text(x + 18, 35, mode)


def mark(scale, mode, one, y):
    """A change and its interval."""
    colour, shape, above = MODES[mode]
    y -= above * ROW
    ends = [scale.x(100 * (one[key] - 1)) for key in ("ci_low", "ci_high")
            if one[key] is not None]
    yield '<g fill="%s" stroke="%s">' % (colour, colour)
    if ends:
        yield line(ends[0], y, ends[1], y, 'stroke-width="2.5"')
    yield shape % (scale.x(100 * (one["ratio"] - 1)), y) + "</g>"


def row(scale, words, found, y):
    """A device; found: {mode: change}."""
    yield text(LEFT - 14, y + 5, words, "end")
    for mode, one in found.items():
        yield from mark(scale, mode, one, y)
    if not found:
        yield text(scale.x(0) + 10, y + 5, "not measured yet")


def changes_of(sources, profile, clock, models):
    """{mode: change} of a device, from the first that has it."""
    for name in sources:
        of_device = clock if name == store.WHOLE else models.get(
            name, {}).get("modes", {}).get(profile, {})
        found = of_device.get(LOAD, {})
        if found:
            return {mode: found["patched " + mode] for mode in MODES
                    if "patched " + mode in found}
    return {}


def svg(clock, models):
    """The picture. clock: {load: {"patched MODE": change}}; models: what
    model_figures.py keeps."""
    found = [changes_of(sources, profile, clock, models)
             for _, sources, profile in DEVICES]
    scale = Scale.of(found)
    lines = [HEAD % (WIDTH, BOTTOM + 56, WIDTH, BOTTOM + 56, INK),
             *grid(scale), *legend()]
    for number, (words, _, _) in enumerate(DEVICES):
        lines += row(scale, words, found[number], TOP + ROW * (number + 0.5))
    return "\n".join([*lines, "</svg>", ""])


def draw(clock, models):
    """Write it; whether that changed it."""
    return write_file(PATH, svg(clock, models).encode())
