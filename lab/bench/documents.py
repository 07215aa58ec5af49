# SPDX-License-Identifier: GPL-2.0
"""Fills measured figures into README.md and
Documentation/block/plug-measurements.rst.

They come from patches/7.3/figures.json, by the clock, models.json beside it, and
run.json, a whole "make run".
What lies between a line with "make figures: NAME" and one with "figures: end"
is replaced; the rest is written by hand."""
import re
import textwrap

from plugtools.report.records import rank
from lab.bench import model_figures, run, suites
from lab.native import native_loads
from scripts.series import env, measured as store
from scripts.series.files import write_file

README = env.ROOT / "README.md"
PAGE = env.ROOT / "Documentation/block/plug-measurements.rst"
PLACE = re.compile(r"(?<=make figures: )([a-z]+)(?P<close>[^\n]*\n)"
                   r"(?P<old>.*?)(?=^[^\n]*figures: end)", re.S | re.M)
# README's columns, all against Linux as it is.
COLUMNS = {"`always`": "patched always", "`adaptive`": "patched adaptive",
           "`nomerges=2` today": "unpatched nomerges2"}
# Its rows: what is done, and where that was measured: the suite or the clock,
# profile, load. What is missing shows as such.
ROWS = (
    ("a program: io_uring, 1024 reads to a system call", store.WHOLE, "",
     "uring-rand4k-s1024"),
    ("in the kernel: 32 reads to a plug", store.WHOLE, "", "rand4k-s32"),
    ("32 writes to a plug", store.WHOLE, "", "write4k-s32"),
    ("32 reads to a plug that is not told how many come, as from file systems", store.WHOLE, "",
     "unannounced-s32"),
    ("32 reads of 128K to a plug", store.WHOLE, "", "rand128k-s32"),
    ("32 reads to a plug, mq-deadline (all modes are `always` there)", store.WHOLE, "",
     "deadline-s32"),
    ("32 reads to a plug, if a flash SSD is the limit", "rfc", "gen4", "rand4k-s32"),
    ("the same, if that SSD completes commands many at a time", "device", "lockstep",
     "rand4k-s32"),
)
# Columns of the page, as wide as 80 characters allow.
CHOICES = {"unpatched nomerges2": "nomerges2", "unpatched noplug": "no plug",
           "patched always": "always", "patched never": "never",
           "patched seq-small": "seq-small", "patched adaptive": "adaptive"}
NOT_YET = "Not measured yet"


class DocumentError(Exception):
    """A document has no place for what it must show; the text says which."""


# --- figures as text ---------------------------------------------------------

def percent(one, sign="%"):
    """A change and half of its interval, in percent."""
    if not one:
        return "-"
    text = f"{100 * (one['ratio'] - 1):+.1f}{sign}"
    if one["ci_low"] is None:
        return text
    half = 50 * (one["ci_high"] - one["ci_low"])
    return f"{text} ±{max(half, 0.1):.1f}"


def clock():
    """Of the whole series: {load: {choice: change}} against Linux as it is; not of
    "never" where it leaves nothing to wait for, which is another load."""
    rows = store.load().get(store.WHOLE, {}).get("rows", {})
    return {name: {choice: one for choice, one in rows[name].items() if (
        name, choice) != ("sleeping-s32", "patched never")}
            for name in native_loads.LOADS if name in rows}


def readme_table():
    """What Linux itself gains today by nomerges=2 stands beside it."""
    lines = [f"| IOPS against Linux 7.3; random 4K | {' | '.join(COLUMNS)} | how |", "|---" * 5 + "|"]
    kept = model_figures.known()
    for what, source, profile, load in ROWS:
        rows = clock() if source == store.WHOLE else \
            kept.get(source, {}).get("rows", {}).get(profile, {})
        row = rows.get(load, {})
        texts = [percent(row[name]).replace("±", "± ") if name in row else
                 NOT_YET.lower() for name in COLUMNS.values()]
        how = "clock" if source == store.WHOLE else "model" + (
            "" if kept.get(source, {}).get("controller") == model_figures.controller()
            else ", earlier `adaptive`")
        lines.append(f"| {' | '.join([what, *texts, how])} |")
    return lines


def rst_table(rows):
    """A simple table; its first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = " ".join("=" * width for width in widths)
    lines = [" ".join(cell.ljust(width) for cell, width in zip(row, widths))
             .rstrip() for row in rows]
    return [rule, lines[0], rule, *lines[1:], rule]


def choices_table(rows):
    """{load: {choice: change}} with a column for each choice that is there."""
    columns = [name for name in CHOICES
               if any(name in row for row in rows.values())]
    return rst_table([["Load", *map(CHOICES.get, columns)],
                      *([load, *(percent(row.get(name), "")
                                 for name in columns)]
                        for load, row in rows.items())])


# --- the page ----------------------------------------------------------------

def by_the_clock():
    rows, cpu = clock(), store.load().get(store.WHOLE, {}).get("cpu")
    if not rows:
        return [NOT_YET + "."]
    quiet = all(one["quiet"] for row in rows.values() for one in row.values())
    said = [f"Measured on {cpu}."] if cpu else []
    if not quiet:
        said.append("The machine was not quiet.")
    return choices_table(rows) + (["", " ".join(said)] if said else [])


def by_section():
    """What each section gains over those before it."""
    lines = [["Section", "Load", "ns per I/O", "Change"]]
    for section, one in store.sections().items():
        lines += [[section, load, f"{timed['ns_per_io']:.1f}",
                   percent(timed, "")]
                  for load, (timed,) in one["rows"].items()]
    return rst_table(lines) if len(lines) > 1 else [NOT_YET + "."]


def ordered(found, name):
    """A dict by profile or workload, in the order that reports have."""
    return sorted(found.items(), key=lambda item: rank(name, item[0]))


def of_suite(name, kept):
    title = f"Suite {name}"
    lines = ["", title, "~" * len(title)]
    for text in kept["claim"], kept["note"]:
        lines += ["", *textwrap.wrap(text.replace("*", "\\*"), 80)]
    for profile, rows in ordered(kept["rows"], "profile"):
        lines += ["", f"**{profile}**", "",
                  *choices_table(dict(ordered(rows, "workload")))]
    if kept["details"]:
        lines += ["", "::", ""]
    for line in kept["details"]:
        lines += textwrap.wrap(line, 80, initial_indent="  ",
                               subsequent_indent="    ")
    return [*lines, "", f"Measured at {kept['commit']}."]


def on_models():
    kept = model_figures.known()
    return [line for name in suites.SUITES if name in kept
            for line in of_suite(name, kept[name])] or [
                NOT_YET + ": make bench SUITE=all."]


TABLES = {"readme": readme_table, "run": run.example, "clock": by_the_clock,
          "sections": by_section, "models": on_models}


# --- filling in --------------------------------------------------------------

def filled(text, path):
    if not PLACE.search(text):
        raise DocumentError(
            f"{env.shown(path)} has no line 'make figures: NAME' with one "
            f"'figures: end' below it; NAME is one of: {', '.join(TABLES)}")
    # between blank lines, but for a table of Markdown's beside a comment
    gap = "" if path.suffix == ".md" else "\n"

    def fill(place):
        if place[1] not in TABLES:
            raise DocumentError(f"{env.shown(path)}: no table '{place[1]}'; "
                                f"accepted: {', '.join(TABLES)}")
        lines = "\n".join(TABLES[place[1]]()).strip("\n")
        return f"{place[1]}{place['close']}{gap}{lines}\n{gap}"
    return PLACE.sub(fill, text)


def update():
    """Keep what was measured on models and what "make run" left, and fill in;
    lines that say what was done. The documents are of the kernel that the series is for."""
    if env.BASE != env.FIRST:
        return [f"documents show figures of Linux {env.FIRST} alone: not "
                "filled in"]
    lines = [f"kept of make bench: {name}" for name in model_figures.update()]
    lines += ["kept of make run"] if run.keep() else []
    pages = {path: filled(path.read_text(), path) for path in (README, PAGE)}
    return lines + [f"filled in: {env.shown(path)}"
                    for path, text in pages.items()
                    if write_file(path, text.encode())]
