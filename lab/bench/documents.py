# SPDX-License-Identifier: GPL-2.0
"""Fills measured figures into README.md, its picture, and
Documentation/block/plug-measurements.rst.

They come from patches/7.3/figures.json, by the clock, and models.json beside it.
What lies between a line with "make figures: NAME" and one with "figures: end"
is replaced; the rest is written by hand.
"""
import re
import textwrap

from lab.bench import model_figures
from lab.native import native_loads
from lab.bench import picture
from lab.bench import suites
from plugtools.report.records import rank
from scripts.series import env, measured as store
from scripts.series.files import write_file

README = env.ROOT / "README.md"
PAGE = env.ROOT / "Documentation/block/plug-measurements.rst"
PLACE = re.compile(r"(?<=make figures: )([a-z]+)(?P<close>[^\n]*\n)"
                   r"(?P<old>.*?)(?=^[^\n]*figures: end)", re.S | re.M)
ALWAYS, ADAPTIVE = "patched always", "patched adaptive"
# README's rows: what is done, in which mode, and where that was measured: the
# suite or the clock, profile, load. What is missing shows as such.
ROWS = (
    ("random 4K, 32 per submission; the CPU is the limit", ALWAYS,
     store.WHOLE, "", "rand4k-s32"),
    ("sequential 4K, likewise 32", ALWAYS, store.WHOLE, "", "seq4k-s32"),
    ("as row 1, by io_uring; system calls are slower here than on bare metal",
     ALWAYS, store.WHOLE, "", "uring-rand4k-s32"),
    ("random 4K; a flash SSD is the limit", ADAPTIVE, "rfc", "gen4",
     "rand4k-s32"),
    ("random 4K; an SSD that completes commands together is the limit", ADAPTIVE,
     "device", "lockstep", "rand4k-s32"),
)
# Columns of the page, as wide as 80 characters allow.
CHOICES = {"unpatched nomerges2": "nomerges2", "unpatched noplug": "no plug",
           "patched always": "always", "patched never": "never",
           "patched seq-small": "seq-small", "patched adaptive": "adaptive"}


class DocumentError(Exception):
    """A document has no place for what it must show; the text says which."""


# --- figures as text ---------------------------------------------------------

def percent(one, sign="%"):
    """A change and half of its interval, in percent."""
    if not one:
        return "-"
    text = "%+.1f%s" % (100 * (one["ratio"] - 1), sign)
    if one["ci_low"] is None:
        return text
    half = 50 * (one["ci_high"] - one["ci_low"])
    return "%s ±%.1f" % (text, max(half, 0.1))


def clock():
    """Of the whole series: {load: {choice: change}} against Linux as it is."""
    rows = store.load().get(store.WHOLE, {}).get("rows", {})
    return {name: rows[name] for name in native_loads.LOADS if name in rows}


def quiet(rows):
    """Was the machine, while these were measured?"""
    return all(one["quiet"] for row in rows.values() for one in row.values())


def found_in(source, profile, load):
    """{choice: change} of a row of README's."""
    if source == store.WHOLE:
        return clock().get(load, {})
    rows = model_figures.known().get(source, {}).get("rows", {})
    return rows.get(profile, {}).get(load, {})


def readme_table():
    """Five rows, a number each."""
    lines = ["| load | mode | change of IOPS | measured |", "|---|---|---|---|"]
    for what, choice, source, profile, load in ROWS:
        one = found_in(source, profile, load).get(choice)
        lines.append("| %s | `%s` | %s | %s |" % (
            what, choice.split()[1],
            percent(one).replace("±", "± ") if one else "not measured yet",
            "by the clock" if source == store.WHOLE else "on a model"))
    return lines


def rst_table(rows):
    """A simple table; its first row is the head."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths))
             .rstrip() for row in rows]
    return [rule, lines[0], rule, *lines[1:], rule]


def ordered(found, name):
    """A dict by profile or workload, in the order that reports have."""
    return dict(sorted(found.items(), key=lambda item: rank(name, item[0])))


def choices_table(rows):
    """{name: {choice: change}} with a column for each choice that is there."""
    columns = [name for name in CHOICES
               if any(name in row for row in rows.values())]
    return rst_table([["Load", *(CHOICES[name] for name in columns)],
                      *([load, *(percent(row.get(name), "")
                                 for name in columns)]
                        for load, row in rows.items())])


# --- the page ----------------------------------------------------------------

def by_the_clock():
    """The whole series."""
    rows = clock()
    if not rows:
        return ["Not measured yet."]
    note = [] if quiet(rows) else ["", "The machine was not quiet."]
    return choices_table(rows) + note


def by_section():
    """What each section gains over those before it."""
    lines = [["Section", "Load", "ns per I/O", "Change"]]
    for section, one in store.sections().items():
        lines += [[section, load, "%.1f" % timed["ns_per_io"],
                   percent(timed, "")]
                  for load, (timed,) in one["rows"].items()]
    return rst_table(lines) if len(lines) > 1 else ["Not measured yet."]


def paragraph(text):
    """Filled."""
    return textwrap.wrap(text.replace("*", "\\*"), 80)


def literal(line):
    """A line of a literal block, folded."""
    return textwrap.wrap(line, 80, initial_indent="  ",
                         subsequent_indent="    ")


def of_suite(name, kept):
    """A section of the page."""
    lines = ["", "Suite %s" % name, "~" * (6 + len(name)), "",
             *paragraph(kept["claim"]), "", *paragraph(kept["note"]), ""]
    for profile, rows in ordered(kept["rows"], "profile").items():
        lines += ["**%s**" % profile, "",
                  *choices_table(ordered(rows, "workload")), ""]
    if kept["details"]:
        lines += ["::", "", *(part for line in kept["details"]
                              for part in literal(line)), ""]
    return [*lines, "Measured at %s." % kept["commit"]]


def on_models():
    """All suites that are kept."""
    kept = model_figures.known()
    lines = [line for name in suites.SUITES if name in kept
             for line in of_suite(name, kept[name])]
    return lines or ["Not measured yet: make bench SUITE=all."]


TABLES = {"readme": readme_table, "clock": by_the_clock,
          "sections": by_section, "models": on_models}


# --- filling in --------------------------------------------------------------

def filled(text, path):
    """A document with the figures of today."""
    if not PLACE.search(text):
        raise DocumentError("%s has no line 'make figures: NAME' with one "
                            "'figures: end' below it; NAME is one of: %s" % (
                                env.shown(path), ", ".join(TABLES)))
    # between blank lines, but for a table of Markdown's beside a comment
    gap = "" if path.suffix == ".md" else "\n"

    def fill(place):
        if place[1] not in TABLES:
            raise DocumentError("%s: no table '%s'; accepted: %s" % (
                env.shown(path), place[1], ", ".join(TABLES)))
        lines = "\n".join(TABLES[place[1]]()).strip("\n")
        return "%s%s%s%s\n%s" % (place[1], place["close"], gap, lines, gap)
    return PLACE.sub(fill, text)


def fill(path):
    """Write a document anew; whether that changed it."""
    return write_file(path, filled(path.read_text(), path).encode())


def update():
    """Keep what was measured on models, fill in, and draw; lines that say
    what was done. The documents are of the kernel that the series is for."""
    if env.BASE != env.FIRST:
        return ["documents show figures of Linux %s alone: not filled in"
                % env.FIRST]
    lines = ["kept of make bench: " + name for name in model_figures.update()]
    changed = [path for path in (README, PAGE) if fill(path)]
    if picture.draw(store.load().get(store.WHOLE, {}).get("modes", {}),
                    model_figures.known()):
        changed.append(picture.PATH)
    return lines + ["filled in: " + env.shown(path) for path in changed]
