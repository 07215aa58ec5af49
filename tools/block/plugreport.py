#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check, save, tabulate, plot and compare benchmark records of plug_policy.

A file holds {"records": [...], "meta": {...}}, one record per measured cell
and run.  A cell is what was measured: suite, profile, workload, kernel,
policy.  meta is free; of it the command line's report shows claim, command,
kernels and note, or those of meta["suites"][SUITE].
"""
import argparse
import base64
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from html import escape

NOISE = 0.002                   # relative change that means nothing
LARGEST = 1e15                  # no figure of ours is larger

# Canonical orders; names that are not listed follow, by alphabet.
KERNELS = ["unpatched", "rfcera", "patched"]
POLICIES = ["always", "never", "seq-small", "adaptive", "nomerges0",
            "nomerges1", "nomerges2", "noplug"]
# What "adaptive" can be pinned to: in tables, not in plots.
GROUPS = ["group1", "group2", "group4", "group8", "group16", "group32"]
PROFILES = ["gen4", "gen5", "optane", "vm", "lockstep", "saturated", "hdd",
            "null", "nvme-qemu"]
WORKLOADS = ["rand4k-s32", "rand4k-s128", "libaio-rand4k-s32",
             "twodev-rand4k-s32", "twons-rand4k-s32", "seq4k-s32",
             "seq128k-s32", "mix70-s32", "phase-change", "rand4k-qd1",
             "rand4k-qd4", "rand4k-qd32-wait", "onecore-peak"]
LATENCIES = ["mean", "p50", "p99", "p999"]

CELL = ["suite", "profile", "workload", "kernel", "policy"]
ORDER = {"profile": PROFILES, "workload": WORKLOADS, "kernel": KERNELS,
         "policy": POLICIES + GROUPS}
NULLABLE = ["insns_per_io", "doorbells_per_io", "requests_per_io",
            "cpu_busy"]
COLUMNS = [("iops", "IOPS"), ("ratio", "ratio"),
           ("insns_per_io", "insns/IO"), ("lat_us.mean", "mean us"),
           ("lat_us.p50", "p50 us"), ("lat_us.p99", "p99 us"),
           ("lat_us.p999", "p99.9 us"), ("doorbells_per_io", "doorbells/IO"),
           ("requests_per_io", "requests/IO"), ("cpu_busy", "busy")]
HEADINGS = dict(COLUMNS)
COMPARED = ["iops", "insns_per_io", "lat_us.mean", "lat_us.p99",
            "doorbells_per_io", "requests_per_io"]


class ReportError(Exception):
    """What the user did or gave can not be used; the text says why."""


# --- records ---------------------------------------------------------------

def is_number(value, low=0, high=LARGEST):
    """A finite number in the range; a JSON true or NaN is none."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and low <= value <= high)


def is_integer(value):
    """An int, and no JSON true or false."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_line(value):
    """Text that fits a table: one line, not empty, nothing unprintable."""
    return (isinstance(value, str) and value.isprintable()
            and value.strip() != "")


def is_latency(value):
    """An object of numbers; a member may be null or absent."""
    return isinstance(value, dict) and all(
        member is None or is_number(member) for member in value.values())


def number_or_null(high=LARGEST):
    """Test for a field that not every machine can measure."""
    return lambda value: value is None or is_number(value, 0, high)


# field: (test, what is accepted, may it be absent)
FIELDS = {
    "kernel": (lambda value: value in KERNELS,
               "one of " + ", ".join(KERNELS), False),
    "policy": (lambda value: value in POLICIES + GROUPS,
               "one of " + ", ".join(POLICIES + GROUPS), False),
    "profile": (is_line, "one line of text", False),
    "workload": (is_line, "one line of text", False),
    "suite": (is_line, "one line of text", False),
    "iops": (is_number, "a number, 0 or more", False),
    "run": (is_integer, "an integer", False),
    "commit": (lambda value: isinstance(value, str), "text", False),
    "seed": (lambda value: value is None or is_integer(value),
             "an integer or null", True),
    "lat_us": (lambda value: value is None or is_latency(value),
               "null or an object of %s, each a number of 0 or more, or null"
               % ", ".join(LATENCIES), True),
    "insns_per_io": (number_or_null(), "a number, 0 or more, or null", True),
    "doorbells_per_io": (number_or_null(),
                         "a number, 0 or more, or null", True),
    "requests_per_io": (number_or_null(),
                        "a number, 0 or more, or null", True),
    "cpu_busy": (number_or_null(1), "a number from 0 to 1, or null", True),
}


def shown(value):
    """A value as JSON, cut to what an error message bears."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."


def check_record(record, where):
    """Raise ReportError unless this is a record; where names it."""
    if not isinstance(record, dict):
        raise ReportError("%s is %s; accepted: an object"
                          % (where, shown(record)))
    for field, (test, accepted, absent) in FIELDS.items():
        if field not in record:
            if absent:
                continue
            raise ReportError("%s: field %s is missing; accepted: %s"
                              % (where, field, accepted))
        if not test(record[field]):
            raise ReportError("%s: field %s is %s; accepted: %s"
                              % (where, field, shown(record[field]),
                                 accepted))


def cell_key(record):
    """What a record or a cell is about, as a tuple."""
    return tuple(record[name] for name in CELL)


def identity(record):
    """Two records with the same identity are one measurement, twice."""
    return cell_key(record) + (record["run"], record.get("seed"),
                               record["commit"])


def describe(record):
    """The cell of a record, in words."""
    return "%s: %s %s, %s %s" % cell_key(record)


def check(records, meta=None):
    """Raise ReportError unless both have the shape that a file has."""
    if not isinstance(records, list):
        raise ReportError("records is %s; accepted: a list of objects"
                          % shown(records))
    if not isinstance(meta, (dict, type(None))):
        raise ReportError("meta is %s; accepted: an object" % shown(meta))
    seen = {}
    for number, record in enumerate(records):
        where = "records[%d]" % number
        check_record(record, where)
        first = seen.setdefault(identity(record), where)
        if first != where:
            raise ReportError(
                "%s and %s are the same run of %s; accepted: each run, seed "
                "and commit of a cell once" % (first, where,
                                               describe(record)))


def read_json(path):
    """What the file holds; ReportError if it is no JSON."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise ReportError("%s: %s; accepted: a file of records"
                          % (path, error.strerror)) from error
    except (ValueError, RecursionError) as error:
        raise ReportError("%s is no JSON (%s); accepted: "
                          '{"records": [...], "meta": {...}}'
                          % (path, error)) from error


def load(path):
    """Records and meta of a file."""
    content = read_json(path)
    if not isinstance(content, dict) or "records" not in content:
        raise ReportError("%s holds no records; accepted: "
                          '{"records": [...], "meta": {...}}' % path)
    meta = content.get("meta") or {}
    try:
        check(content["records"], meta)
    except ReportError as error:
        raise ReportError("%s: %s" % (path, error)) from error
    return content["records"], meta


def rank(name, value):
    """Sort key of a name: the canonical order, then the alphabet."""
    known = ORDER.get(name, [])
    return (known.index(value) if value in known else len(known), value)


def cell_order(record):
    """Sort key of records and cells."""
    return tuple(rank(name, record[name]) for name in CELL)


def run_order(record):
    """Sort key of records: the cell, then the run."""
    seed = record.get("seed")
    return (cell_order(record), record["run"], seed is not None, seed or 0,
            record["commit"])


def write_file(path, data):
    """Replace a file at once; on failure nothing is left behind."""
    path = os.path.realpath(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(
            dir=os.path.dirname(path), prefix=os.path.basename(path) + ".")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise ReportError("%s can not be written: %s"
                          % (path, error.strerror)) from error
    finally:
        if temporary:
            os.unlink(temporary)


def save(path, records, meta=None):
    """Check, sort and write records; the same ones give the same bytes."""
    try:
        check(records, meta)
    except ReportError as error:
        raise ReportError("%s not written: %s" % (path, error)) from error
    content = {"records": sorted(records, key=run_order), "meta": meta or {}}
    try:
        text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ReportError("%s not written: a further field or meta is no "
                          "JSON: %s" % (path, error)) from error
    write_file(path, (text + "\n").encode("utf-8"))


# --- cells -----------------------------------------------------------------

def stat(values):
    """Mean, standard deviation (null for one value) and n, or None."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"mean": statistics.fmean(values),
            "sd": statistics.stdev(values) if len(values) > 1 else None,
            "n": len(values)}


def latencies(records):
    """Statistics of each member of lat_us."""
    objects = [record.get("lat_us") or {} for record in records]
    return {name: stat([item.get(name) for item in objects])
            for name in LATENCIES}


def extras(records):
    """Statistics of the further fields that are numbers in some record."""
    values = {}
    for record in records:
        for name, value in record.items():
            if name not in FIELDS and is_number(value, -LARGEST):
                values.setdefault(name, []).append(value)
    return {name: stat(values[name]) for name in sorted(values)}


def cell_of(records):
    """The cell of the records of one cell, still without a ratio."""
    cell = {name: records[0][name] for name in CELL}
    cell.update(n=len(records), ratio=None, ratio_sd=None, baseline=None,
                iops=stat([record["iops"] for record in records]),
                lat_us=latencies(records), extra=extras(records),
                commits=sorted({record["commit"] for record in records}))
    for name in NULLABLE:
        cell[name] = stat([record.get(name) for record in records])
    return cell


def relative_sd(one):
    """Standard deviation as a part of the mean; None if not known."""
    return None if one["sd"] is None else one["sd"] / one["mean"]


def set_ratio(cell, base):
    """Compare a cell with its baseline, which may be itself."""
    if not base or not base["iops"]["mean"]:
        return
    cell["baseline"] = "%s %s" % (base["kernel"], base["policy"])
    cell["ratio"] = cell["iops"]["mean"] / base["iops"]["mean"]
    if cell is base:
        cell["ratio_sd"] = None if cell["n"] == 1 else 0.0
    elif not cell["iops"]["mean"]:
        cell["ratio_sd"] = None
    elif cell["n"] > 1 and base["n"] > 1:
        cell["ratio_sd"] = cell["ratio"] * math.hypot(
            relative_sd(cell["iops"]), relative_sd(base["iops"]))


def groups(items, *names):
    """Items by the values of these fields, in order of first appearance."""
    found = {}
    for item in items:
        found.setdefault(tuple(item[name] for name in names),
                         []).append(item)
    return found


def summarise(records):
    """Cells: statistics over the runs, and the ratio to the baseline.

    The baseline is unpatched always of the same suite, profile and
    workload; where there is none, patched always; `baseline` says which.
    """
    check(records)
    cells = sorted(map(cell_of, groups(records, *CELL).values()),
                   key=cell_order)
    for group in groups(cells, "suite", "profile", "workload").values():
        always = {cell["kernel"]: cell for cell in group
                  if cell["policy"] == "always"}
        base = always.get("unpatched") or always.get("patched")
        for cell in group:
            set_ratio(cell, base)
    return cells


def is_baseline(cell):
    """Is it what the others of its workload are compared with?"""
    return cell["baseline"] == "%s %s" % (cell["kernel"], cell["policy"])


def baseline_name(cells):
    """What the ratios are to, for headings."""
    names = {cell["baseline"] for cell in cells} - {None}
    return names.pop() if len(names) == 1 else "always"


def stat_of(cell, column):
    """The statistic behind a column, or None."""
    if column == "ratio":
        if cell["ratio"] is None:
            return None
        return {"mean": cell["ratio"], "sd": cell["ratio_sd"],
                "n": cell["n"]}
    if column.startswith("lat_us."):
        return cell["lat_us"].get(column[len("lat_us."):])
    return cell[column] if column in HEADINGS else cell["extra"].get(column)


def threshold(old, new, noise):
    """Relative difference of two statistics that chance can explain."""
    known = [one["sd"] for one in (old, new) if one["sd"] is not None]
    if not known or not old["mean"]:
        return noise
    error = math.sqrt(sum(
        (known[0] if one["sd"] is None else one["sd"]) ** 2 / one["n"]
        for one in (old, new)))
    return max(noise, 3 * error / old["mean"])


def best(group, noise=NOISE):
    """Cells of one workload with the most IOPS, as far as one can tell.

    None are if the slowest can not be told from the fastest.
    """
    top = max(group, key=lambda cell: cell["iops"]["mean"])["iops"]
    if not top["mean"]:
        return []
    near = [cell for cell in group if
            1 - cell["iops"]["mean"] / top["mean"]
            <= threshold(top, cell["iops"], noise)]
    return near if len(near) < len(group) else []


# --- text tables -----------------------------------------------------------

def decimals(value, column=None):
    """Digits after the point: four that count, and all before it."""
    if column == "ratio":
        return 3
    if column == "cpu_busy":
        return 2
    if not value:
        return 0
    return min(6, max(0, 3 - math.floor(math.log10(abs(value)))))


def figures(one, column=None):
    """A statistic as two texts: the value, and the spread if n > 1."""
    if one is None:
        return "-", ""
    places = decimals(one["mean"], column)
    spread = "" if not one["sd"] else "±%.*f" % (places, one["sd"])
    return "%.*f" % (places, one["mean"]), spread


def choose_columns(cells, columns=None):
    """Columns that have data; wanted ones may be further fields."""
    known = set(HEADINGS).union(*(cell["extra"] for cell in cells))
    for column in columns or []:
        if column not in known:
            raise ReportError("no column %s; accepted: %s"
                              % (column, ", ".join(sorted(known))))
    return [column for column in columns or HEADINGS
            if any(stat_of(cell, column) for cell in cells)]


def group_title(key, cells):
    """Heading of a workload's rows; names the suite if there are several."""
    several = len({cell["suite"] for cell in cells}) > 1
    return "%s: %s, %s" % key if several else "%s, %s" % key[1:]


def spread_note(cells):
    """What ± means, if there is one."""
    runs = {cell["n"] for cell in cells}
    if max(runs) == 1:
        return "One run each."
    many = str(min(runs)) if len(runs) == 1 else \
        "%d to %d" % (min(runs), max(runs))
    return "Means of %s runs, ± one standard deviation." % many


def notes(cells):
    """Sentences that a table of these cells needs."""
    said = []
    names = sorted({cell["baseline"] for cell in cells} - {None})
    if names:
        said.append("Ratio: IOPS to %s." % " or ".join(names))
    if "patched always" in names:
        said.append("Patched always is the baseline where there is no "
                    "unpatched kernel.")
    if any(cell["ratio"] is None for cell in cells):
        said.append("No ratio where always was not measured.")
    said.append(spread_note(cells))
    mixed = sum(len(cell["commits"]) > 1 for cell in cells)
    if mixed:
        said.append("%d of %d rows average several commits."
                    % (mixed, len(cells)))
    return said


def aligned(rows):
    """Lines of rows of cells; a cell is text, or a (value, spread) pair."""
    pairs = [[cell if isinstance(cell, tuple) else (cell, "")
              for cell in row] for row in rows]
    widths = [[max(len(cell[part]) for cell in column) for part in (0, 1)]
              for column in zip(*pairs)]
    for row in pairs:
        yield "  ".join(
            value.ljust(left) if number < 2 else
            (value.rjust(left) + " " * bool(right) + spread.ljust(right))
            for number, ((value, spread), (left, right))
            in enumerate(zip(row, widths))).rstrip()


def table(cells, columns=None):
    """Text table: one row per kernel and policy, grouped by workload."""
    if not cells:
        return "no records"
    chosen = choose_columns(cells, columns)
    rows = [["kernel", "policy"] +
            [HEADINGS.get(column, column) for column in chosen]]
    rows += [[cell["kernel"], cell["policy"]] +
             [figures(stat_of(cell, column), column) for column in chosen]
             for cell in cells]
    lines = aligned(rows)
    text = ["  " + next(lines)]
    line_of = {id(cell): line for cell, line in zip(cells, lines)}
    grouped = groups(cells, "suite", "profile", "workload")
    for key, group in grouped.items():
        text += ["", group_title(key, cells)]
        text += ["  " + line_of[id(cell)] for cell in group]
    return "\n".join(text + [""] + notes(cells))


# --- comparison ------------------------------------------------------------

class Changes(list):
    """Changes, and how many cells were compared, beyond which noise."""

    def __init__(self, changes, compared, noise):
        super().__init__(changes)
        self.compared = compared
        self.noise = noise


def change_of(cell, kind, metric=None, old=None, new=None, noise=None):
    """One entry of what compare() returns."""
    change = None
    if old and new:
        change = new["mean"] / old["mean"] - 1 if old["mean"] else math.inf
    return dict(zip(CELL, cell_key(cell)), kind=kind, metric=metric,
                old=old and old["mean"], new=new and new["mean"],
                change=change, noise=noise)


def compare_metric(before, after, metric, noise):
    """The change of one metric of a cell, as a list of one or none."""
    old, new = stat_of(before, metric), stat_of(after, metric)
    if not old and not new:
        return []
    if not old or not new:
        return [change_of(after, "came" if new else "went", metric, old,
                          new)]
    limit = threshold(old, new, noise)
    if abs(new["mean"] - old["mean"]) <= limit * old["mean"]:
        return []
    return [change_of(after, "changed", metric, old, new, limit)]


def compare_cells(before, after, noise):
    """Changes between two lists of cells."""
    old = {cell_key(cell): cell for cell in before}
    new = {cell_key(cell): cell for cell in after}
    changes = []
    for cell in sorted({**old, **new}.values(), key=cell_order):
        key = cell_key(cell)
        if key in old and key in new:
            for metric in COMPARED:
                changes += compare_metric(old[key], new[key], metric, noise)
        else:
            changes.append(change_of(cell, "came" if key in new else "went"))
    return Changes(changes, len(old.keys() & new.keys()), noise)


def check_noise(noise):
    """Noise is a relative change."""
    if not is_number(noise, 0, 1):
        raise ReportError("noise is %s; accepted: a number from 0 to 1"
                          % shown(noise))


def compare(old_records, new_records, noise=NOISE):
    """Changes beyond max(noise, 3 standard errors), by cell and metric.

    A side of one run is taken to scatter like the other.  kind is changed,
    came or went; came and went without a metric are whole cells.
    """
    check_noise(noise)
    return compare_cells(summarise(old_records), summarise(new_records),
                         noise)


def change_row(change):
    """A change as a row of text."""
    def value(side):
        number = change[side]
        return "-" if number is None else figures({"mean": number,
                                                   "sd": None})[0]
    relative = change["change"]
    percent = change["kind"] if relative is None else \
        "from 0" if math.isinf(relative) else "%+.2f%%" % (100 * relative)
    noise = change["noise"]
    metric = change["metric"]
    return ["%s %s" % (change["kernel"], change["policy"]),
            HEADINGS.get(metric, "whole cell"), value("old"), value("new"),
            percent, "-" if noise is None else "%.2f%%" % (100 * noise)]


def compare_text(changes, compared=None):
    """What compare() found as a table, or that nothing changed."""
    if compared is None:
        compared = changes.compared
    noise = getattr(changes, "noise", NOISE)
    if not changes:
        return ("nothing changed beyond the noise (%d cells compared, "
                "noise %g)" % (compared, noise))
    lines = aligned([["", "", "old", "new", "change", "noise"]] +
                    [change_row(change) for change in changes])
    text = ["  " + next(lines)]
    for key, group in groups(changes, "suite", "profile",
                             "workload").items():
        text += ["", "%s: %s, %s" % key]
        text += ["  " + next(lines) for _ in group]
    touched = len(groups(changes, *CELL))
    return "\n".join(text + ["", "%d changes beyond the noise, in %d cells "
                             "(%d cells compared, noise %g)"
                             % (len(changes), touched, compared, noise)])


# --- plots -----------------------------------------------------------------

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
# Widths differ because gnuplot's svg joins arrows that differ in dashes only.
DASHES = {"unpatched": "lw 1.4 dt 2", "rfcera": "lw 1.3 dt 3",
          "patched": "lw 1.6 dt solid"}
INK = "#333333"
GRID = 'set grid ytics back lt 1 lw 0.7 lc rgb "#d8d8d8"'
CHARACTER = 7.5                 # pixels, about, of a letter of 12 points
INSTALL = ("gnuplot is missing; install it (Debian: apt-get install "
           "gnuplot-nox)")


def quoted(text):
    """A gnuplot string; nothing in it can be special to gnuplot."""
    return '"%s"' % "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 or
        chr(byte) in " .,-+/:()=" else "\\%03o" % byte
        for byte in text.encode("utf-8"))


def at(x, y, size):
    """Pixels from the top left corner as gnuplot's screen coordinates."""
    return "screen %.5f, screen %.5f" % (x / size[0], 1 - y / size[1])


def label(text, where, size=12, style="left", colour=INK):
    """Command that writes a text."""
    return 'set label %s at %s %s font ",%d" tc rgb "%s"' % (
        quoted(text), where, style, size, colour)


def series_of(cells):
    """(kernel, policy) pairs, in order."""
    pairs = groups(cells, "kernel", "policy")
    return sorted(pairs, key=lambda pair: (rank("policy", pair[1]),
                                           rank("kernel", pair[0])))


def legend_rows(series, width):
    """Entries with their x, broken into rows."""
    rows, x = [[]], 0
    for pair in series:
        space = 48 + CHARACTER * len(" ".join(pair))
        if rows[-1] and x + space > width:
            rows.append([])
            x = 0
        rows[-1].append((pair, x))
        x += space
    return rows


def legend(rows, size, mark):
    """Commands that draw the legend below the title."""
    script = []
    for number, row in enumerate(rows):
        y = 48 + 22 * number
        for pair, x in row:
            script += mark(pair, 20 + x, y, size)
            script.append(label(" ".join(pair), at(52 + x, y, size)))
    return script


def bar_style(pair):
    """Fill of a bar: the colour is the policy's, the shade the kernel's."""
    return 'fs %s border rgb "%s"' % (FILLS[pair[0]], COLOURS[pair[1]])


def bar_mark(pair, x, y, size):
    """Legend entry of a bar."""
    return ['set object rectangle from %s to %s fc rgb "%s" %s' % (
        at(x, y + 6, size), at(x + 24, y - 6, size), COLOURS[pair[1]],
        bar_style(pair))]


def point_style(pair):
    """Point type of a line: the shape is the policy's."""
    return 'pt %d lc rgb "%s"' % (
        POINTS[pair[1]][pair[0] == "patched"], COLOURS[pair[1]])


def line_mark(pair, x, y, size):
    """Legend entry of a line with points."""
    return ['set arrow from %s to %s nohead %s lc rgb "%s"' % (
        at(x, y, size), at(x + 26, y, size), DASHES[pair[0]],
        COLOURS[pair[1]]),
            'set label "" at %s point %s' % (at(x + 13, y, size),
                                             point_style(pair))]


def nice_step(span, most):
    """Distance of ticks, so that there are at most so many, and round."""
    raw = span / most
    power = 10 ** math.floor(math.log10(raw))
    return next(step * power for step in (1, 2, 5, 10)
                if step * power >= raw * 0.9999)


def wrapped(text, width):
    """A name broken at its hyphens and blanks into lines of a width."""
    lines = [""]
    for part in re.findall(r"[^- ]*[- ]|[^- ]+", text):
        if lines[-1] and len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.strip() for line in lines]


def box(left, right, top, bottom, size):
    """Commands that put a panel's frame at these pixels."""
    return ["set lmargin at screen %.5f" % (left / size[0]),
            "set rmargin at screen %.5f" % (right / size[0]),
            "set tmargin at screen %.5f" % (1 - top / size[1]),
            "set bmargin at screen %.5f" % (1 - bottom / size[1])]


def ratio_range(cells, labelled):
    """Ends and tick distance of a panel's y axis; 1 is inside.

    A value's label takes a quarter of the height, where there are bars.
    """
    ends = [1 + side * 0.005 for side in (-1, 1)]
    for cell in cells:
        spread = cell["ratio_sd"] or 0
        ends += [cell["ratio"] - spread, cell["ratio"] + spread]
    low, high = min(ends), max(ends)
    below = any(cell["ratio"] < 1 for cell in cells)
    above = any(cell["ratio"] >= 1 for cell in cells)
    room = [(high - low) * (0.27 if labelled and bars else 0.05)
            for bars in (below, above)]
    step = nice_step(high - low + sum(room), 7)
    fine = step / 5
    low = max(0, math.floor((low - room[0]) / fine) * fine)
    return low, math.ceil((high + room[1]) / fine) * fine, step


def bar_value(cell, x, low):
    """Label with the value, at the end of a bar."""
    spread = cell["ratio_sd"] or 0
    up = cell["ratio"] >= 1
    y = cell["ratio"] + (spread if up else -spread)
    return label("%.3f" % cell["ratio"],
                 "first %.5f, first %.6f" % (x, max(low, y)), 10,
                 "%s rotate by 90 offset 0,%s" %
                 (("left", "0.4") if up else ("right", "-0.4")))


def bar_data(cells, places, slots, index):
    """Lines of a series: x, y, left, right, low, high, deviation."""
    lines = []
    for cell in cells:
        x = places[cell["workload"]] + (index + 0.5) / slots
        half = 0.44 / slots
        lines.append("%.5f %.6f %.5f %.5f %.6f %.6f %.6f" % (
            x, cell["ratio"], x - half, x + half, min(1, cell["ratio"]),
            max(1, cell["ratio"]), cell["ratio_sd"] or 0))
    return lines


def ratio_panel(cells, title, top, size, names, block):
    """Commands of one panel of bars; names are the series of all panels."""
    pairs = groups(cells, "kernel", "policy")
    present = [pair for pair in names if pair in pairs]
    places = {key[0]: number for number, key in
              enumerate(sorted(groups(cells, "workload"),
                               key=lambda key: rank("workload", key[0])))}
    slots = len(present) + 1
    pixels = (size[0] - 100) / len(places)
    labelled = pixels / slots >= 12
    low, high, step = ratio_range(cells, labelled)
    script = box(80, size[0] - 20, top + 26, top + 256, size)
    script += ["set xrange [-0.25:%d]" % len(places),
               "set yrange [%.8g:%.8g]" % (low, high),
               "set ytics nomirror %.8g format \"%%.%df\"" % (
                   step, max(1, -math.floor(math.log10(step) + 1e-9))),
               "set ylabel %s offset 0.5,0" %
               quoted("IOPS / " + baseline_name(cells)),
               label(title, at(80, top + 12, size), 13),
               label("bars start at 1; the y axis starts at %g%s" %
                     (low, ", not at 0" if low else ""),
                     at(size[0] - 20, top + 12, size), 11, "right")]
    plot = []
    for index, pair in enumerate(present):
        data = "$d%d_%d" % (block, index)
        script += [data + " << END"]
        script += bar_data(pairs[pair], places, slots, index) + ["END"]
        plot.append('%s using 1:2:3:4:5:6 with boxxyerror lc rgb "%s" %s'
                    % (data, COLOURS[pair[1]], bar_style(pair)))
        plot.append("%s using 1:($7 > 0 ? $2 - $7 : NaN):(0):(2 * $7) with "
                    'vectors heads size screen 0.003,90 lw 1 lc rgb "%s"'
                    % (data, INK))
        if labelled:
            script += [bar_value(cell, places[cell["workload"]] +
                                 (index + 0.5) / slots, low)
                       for cell in pairs[pair]]
    for name, place in places.items():
        for number, line in enumerate(wrapped(name, pixels / CHARACTER)):
            script.append(label(line, "first %.5f, graph %.5f" % (
                place + 0.5 - 0.5 / slots, -(14 + 15 * number) / 230), 12,
                                "center"))
    plot.append('1 with lines lw 1.5 lc rgb "%s"' % INK)
    return script + ["plot " + ", ".join(plot), "unset label",
                     "unset object"]


def ratio_plot(cells):
    """Script and size of the bars, or None if there are no ratios."""
    cells = [cell for cell in cells
             if cell["ratio"] is not None and not is_baseline(cell)]
    if not cells:
        return None
    series = series_of(cells)
    panels = groups(cells, "suite", "profile")
    most = max(len(groups(group, "workload")) *
               (1 + len(series_of(group))) for group in panels.values())
    width = max(900, 100 + 17 * most)
    rows = legend_rows(series, width - 40)
    start = 48 + 22 * len(rows)
    size = (width, start + 320 * len(panels))
    script = [label("IOPS of each policy, as a ratio to %s (the line at 1)"
                    % baseline_name(cells), at(20, 20, size), 14)]
    script += legend(rows, size, bar_mark)
    script += ["unset key", "unset xtics", GRID,
               "set border 3 lc rgb '%s'" % INK]
    several = len({key[0] for key in panels}) > 1
    for number, (key, group) in enumerate(panels.items()):
        title = "%s: %s" % key if several else key[1]
        script += ratio_panel(group, title, start + 320 * number, size,
                              series, number)
    return script, size


def log_ticks(low, high):
    """Positions of three ticks or more on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)),
                   math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [step * 10.0 ** power for power in powers for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks
    step = nice_step(high - low, 5)
    first = math.ceil(low / step)
    return [number * step for number in
            range(first, math.floor(high / step) + 1)]


def latency_values(cell):
    """(place, value) of each member that a logarithmic axis can show."""
    stats = [cell["lat_us"][name] for name in LATENCIES]
    return [(place, one["mean"]) for place, one in enumerate(stats)
            if one and one["mean"] > 0]


def latency_data(cell, shift):
    """Lines of a series; a gap parts the mean from the percentiles."""
    lines = []
    for place, value in latency_values(cell):
        lines.append("%.3f %.6g" % (place + shift, value))
        if place == 0:
            lines.append("")
    return lines


def latency_panel(cells, title, corner, size, names, block):
    """Commands of one panel of percentiles."""
    values = [value for cell in cells for _, value in latency_values(cell)]
    low, high = min(values) / 1.15, max(values) * 1.15
    left, top = corner
    script = box(left + 70, left + 345, top + 34, top + 214, size)
    script += ["set xrange [-0.5:3.5]", "set yrange [%g:%g]" % (low, high),
               "set ytics nomirror (%s)" % ", ".join(
                   '"%g" %g' % (tick, tick) for tick in log_ticks(low, high))]
    script += [label(line, at(left + 208, top + 10 + 15 * number, size), 12,
                     "center")
               for number, line in enumerate(wrapped(title, 38)[:2])]
    script += [label(name, "first %d, graph -0.08" % place, 12, "center")
               for place, name in enumerate(["mean", "p50", "p99", "p99.9"])]
    plot = []
    for cell in cells:
        pair = (cell["kernel"], cell["policy"])
        data = "$d%d_%d" % (block, len(plot))
        shift = (names.index(pair) - (len(names) - 1) / 2) * \
            min(0.12, 0.6 / len(names))
        script += [data + " << END"] + latency_data(cell, shift) + ["END"]
        plot.append("%s using 1:2 with linespoints %s %s" % (
            data, DASHES[pair[0]], point_style(pair)))
    return script + ["plot " + ", ".join(plot), "unset label", "unset arrow"]


def latency_plot(cells):
    """Script and size of the percentiles, or None if there are none."""
    cells = [cell for cell in cells if latency_values(cell)]
    if not cells:
        return None
    panels = groups(cells, "suite", "profile", "workload")
    series = series_of(cells)
    across = 4 if len(panels) > 9 else min(3, max(2, len(panels)))
    width = 360 * across + 20
    rows = legend_rows(series, width - 40)
    start = 48 + 22 * len(rows)
    size = (width, start + 260 * math.ceil(len(panels) / across))
    script = [label("Latency in us, logarithmic", at(20, 20, size), 14)]
    script += legend(rows, size, line_mark)
    script += ["unset key", "unset xtics", "set logscale y",
               GRID,
               "set border 3 lc rgb '%s'" % INK]
    for number, (key, group) in enumerate(panels.items()):
        corner = (360 * (number % across), start + 260 * (number // across))
        script += latency_panel(group, group_title(key, cells), corner, size,
                                series, number)
    return script, size


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
                    % terminal, "set multiplot"] + script +
                   ["unset multiplot", ""])


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


# --- the report ------------------------------------------------------------

CSS = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff;
  --soft: #f1f3f5; --line: #c9ced4; --good: #dff2e8; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8;
  --paper: #16181b; --soft: #24282d; --line: #454b52; --good: #14402f;
  --link: #8cc2ff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 80rem; margin: 0 auto;
  padding: 1rem; }
a { color: var(--link); }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto;
  margin: 0; }
dt { font-weight: 600; margin-top: .6rem; }
dd { margin: 0; white-space: pre-line; }
.claim { font-size: 1.1rem; }
.scroll { overflow: auto; max-height: 85vh; margin: 1rem 0;
  border: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%;
  font-variant-numeric: tabular-nums; font-size: .85rem; }
caption { text-align: left; padding: .5rem .6rem; }
th, td { padding: .25rem .45rem; text-align: right; white-space: nowrap; }
thead th { position: sticky; top: 0; background: var(--soft);
  box-shadow: inset 0 -1px var(--line); }
.group th { text-align: left; background: var(--soft); }
tbody th { text-align: left; font-weight: 400; }
.group th, .best th, .best td { font-weight: 600; }
.best th, .best td { background: var(--good); }
.sd { opacity: .75; font-weight: 400; font-size: .85em; }
figure { margin: 1.5rem 0; }
figure svg, figure img { max-width: 100%; height: auto; background: #fff;
  border: 1px solid var(--line); }
"""
CAPTIONS = {
    "ratio": "IOPS of each policy as a ratio to the baseline. Bars start at "
             "1, and the axis does not start at 0 unless it says so.",
    "latency": "Latency in microseconds: mean and percentiles, on a "
               "logarithmic axis."}


def html_row(cell, chosen, good):
    """One row of the report's table."""
    name = "%s %s" % (cell["kernel"], cell["policy"])
    row = ['<tr class="best">' if good else "<tr>",
           '<th scope="row">%s%s</th>' % (escape(name),
                                          " (best)" if good else "")]
    for column in chosen:
        value, spread = figures(stat_of(cell, column), column)
        if spread:
            value += ' <span class="sd">%s</span>' % spread
        row.append("<td>%s</td>" % value)
    return "".join(row) + "</tr>"


def html_table(cells, suite):
    """The table of a section, which scrolls by itself."""
    if not cells:
        return ["<p>No records.</p>"]
    chosen = choose_columns(cells)
    caption = escape("%s. %s" % (suite, " ".join(notes(cells))))
    text = ['<div class="scroll" role="region" tabindex="0" '
            'aria-label="Results of %s">' % escape(suite),
            "<table><caption>%s</caption><thead><tr>" % caption,
            '<th scope="col" style="text-align:left">kernel, policy</th>']
    text += ['<th scope="col">%s</th>' % HEADINGS[name] for name in chosen]
    text.append("</tr></thead>")
    grouped = groups(cells, "suite", "profile", "workload")
    for key, group in grouped.items():
        good = best(group)
        text += ['<tbody><tr class="group"><th scope="rowgroup" '
                 'colspan="%d">%s</th></tr>' % (
                     len(chosen) + 1, escape(group_title(key, cells)))]
        text += [html_row(cell, chosen, cell in good) for cell in group]
        text.append("</tbody>")
    return text + ["</table></div>"]


def inline_svg(path, prefix, text):
    """An SVG to stand in HTML: own ids, and a text for who can not see."""
    source = read_file(path).decode("utf-8", "replace")
    start = source.find("<svg")
    if start < 0:
        raise ReportError("%s is no SVG; accepted: what plots() wrote" % path)

    def own_ids(tag):
        """Ids of several plots in one page must not collide."""
        return re.sub(r"""(\bid=["']|url\(#|href=["']#)""",
                      lambda match: match.group(1) + prefix, tag.group())
    source = re.sub(r"<[^>]*>", own_ids, source[start:])
    return source.replace("<svg", '<svg role="img" aria-label="%s"'
                          % escape(text), 1)


def read_file(path):
    """Bytes of a plot."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ReportError("%s: %s" % (path, error.strerror)) from error


def figure(path, prefix, suite):
    """A plot with its caption."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    caption = CAPTIONS.get(stem.rpartition("-")[2], stem)
    text = "%s: %s The figures are in the table of this section." % (suite,
                                                                caption)
    if suffix == ".svg":
        picture = inline_svg(path, prefix, text)
    else:
        picture = '<img alt="%s" src="data:image/png;base64,%s">' % (
            escape(text), base64.b64encode(read_file(path)).decode("ascii"))
    return "<figure>%s<figcaption>%s</figcaption></figure>" % (
        picture, escape(caption))


def html_figures(paths, number, suite):
    """The plots of a section; of those in both formats, the SVG."""
    paths = [os.fspath(path) for path in paths]
    vector = {path[:-4] for path in paths if path.endswith(".svg")}
    chosen = [path for path in paths
              if path.endswith(".svg") or path[:-4] not in vector]
    return [figure(path, "s%df%d-" % (number, index), suite)
            for index, path in enumerate(chosen)]


def inline(value):
    """Anything JSON as one line."""
    if isinstance(value, dict):
        return "; ".join("%s: %s" % (key, inline(value[key]))
                         for key in value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(inline, value)) or "-"
    return "-" if value is None else str(value)


def lines_of(value):
    """A section's text, list of texts, or object, as lines."""
    if isinstance(value, dict):
        return "\n".join("%s: %s" % (key, inline(value[key]))
                         for key in value)
    if isinstance(value, (list, tuple)):
        return "\n".join(map(inline, value))
    return str(value or "")


def html_section(section, number):
    """A suite: claim, command, kernels, units, details, table, plots."""
    suite = lines_of(section.get("suite")) or "results"
    text = ['<section id="s%d" aria-labelledby="s%dh">' % (number, number),
            '<h2 id="s%dh">%s</h2>' % (number, escape(suite))]
    if section.get("claim"):
        text.append('<p class="claim">%s</p>'
                    % escape(lines_of(section["claim"])))
    text.append("<dl>")
    for name, heading in (("command", "Command"),
                          ("kernels", "Kernels compared"),
                          ("note", "Units")):
        value = escape(lines_of(section.get(name)))
        if value and name == "command":
            value = "<pre><code>%s</code></pre>" % value
        if value:
            text.append("<dt>%s</dt><dd>%s</dd>" % (heading, value))
    text += ["</dl>", "<h3>Results</h3>"]
    if section.get("details"):
        text.append('<pre tabindex="0">%s</pre>'
                    % escape(lines_of(section["details"])))
    text += html_table(section.get("cells") or [], suite)
    drawn = html_figures(section.get("plots") or [], number, suite)
    if drawn:
        text += ["<h3>Plots</h3>"] + drawn
    return text + ["</section>"]


def html(sections, path, title):
    """Write one self-contained page; needs no network to be read."""
    text = ["<!DOCTYPE html>", '<html lang="en"><head>',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            "<title>%s</title><style>%s</style></head><body>"
            % (escape(title), CSS), "<main><h1>%s</h1>" % escape(title)]
    if len(sections) > 1:
        text.append('<nav aria-label="Suites"><ul>')
        text += ['<li><a href="#s%d">%s</a></li>' % (
            number, escape(lines_of(section.get("suite")) or "results"))
                 for number, section in enumerate(sections)]
        text.append("</ul></nav>")
    for number, section in enumerate(sections):
        text += html_section(section, number)
    text.append("</main></body></html>\n")
    write_file(path, "\n".join(text).encode("utf-8"))


# --- command line ----------------------------------------------------------

def noise_of(text):
    """Value of --noise."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not is_number(value, 0, 1):
        raise argparse.ArgumentTypeError(
            "%r; accepted: a number from 0 to 1, as 0.002" % text)
    return value


def arguments(words):
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Tabulate, plot and compare records of plug_policy "
        "benchmarks, as make bench and plugbench save them.",
        epilog="Exit codes: 0 ok, 2 usage or input that can not be used.")
    parser.add_argument("files", nargs="+", metavar="FILE.json",
                        help='{"records": [...], "meta": {...}}')
    parser.add_argument("--html", metavar="OUT",
                        help="write a report, one self-contained page")
    parser.add_argument("--plots", metavar="DIR",
                        help="write SUITE-ratio and SUITE-latency, each as "
                        ".svg and .png")
    parser.add_argument("--compare", metavar="OLD.json",
                        help="print what changed since, not the table")
    parser.add_argument("--noise", metavar="F", type=noise_of, default=None,
                        help="with --compare: relative change that means "
                        "nothing (%g); 3 standard errors do not either"
                        % NOISE)
    given = parser.parse_args(words)
    if given.noise is not None and not given.compare:
        parser.error("--noise needs --compare OLD.json")
    return given


def load_all(paths):
    """Records of several files, and (suites, meta) of each."""
    records, metas, seen = [], [], {}
    for path in paths:
        more, meta = load(path)
        if not more:
            raise ReportError("%s: its list of records is empty; accepted: "
                              "one record or more" % path)
        for record in more:
            if identity(record) in seen:
                raise ReportError(
                    "%s: run %d of %s is in %s already; accepted: each run "
                    "once" % (path, record["run"], describe(record),
                              seen[identity(record)]))
        seen.update((identity(record), path) for record in more)
        records += more
        metas.append(({record["suite"] for record in more}, meta))
    return records, metas


def about(suite, metas, name):
    """What the files' meta say of a suite: claim, command and so on."""
    found = []
    for suites, meta in metas:
        own = meta.get("suites")
        own = own.get(suite) if isinstance(own, dict) else None
        own = own if isinstance(own, dict) else {}
        text = lines_of(own.get(name) or meta.get(name))
        if suite in suites and text and text not in found:
            found.append(text)
    return "\n".join(found)


def sections_of(cells, metas, directory):
    """Sections of the report; plots go to the directory, if there is one."""
    sections = []
    used = set()
    for (suite,), group in groups(cells, "suite").items():
        section = {name: about(suite, metas, name)
                   for name in ("claim", "command", "kernels", "note")}
        name = file_name(suite)
        while name in used:
            name += "-"
        used.add(name)
        drawn = plots(group, directory, name) if directory else []
        sections.append(dict(section, suite=suite, cells=group, plots=drawn))
    return sections


def write_report(given, cells, metas):
    """Do what --plots and --html ask for."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            sections = sections_of(cells, metas, given.plots or scratch)
        except ReportError as error:
            if given.plots or str(error) != INSTALL:
                raise
            print("plugreport: no plots in %s: %s" % (given.html, error),
                  file=sys.stderr)
            sections = sections_of(cells, metas, None)
        if given.html:
            html(sections, given.html, "plug_policy: benchmarks")
    for path in [path for section in sections for path in section["plots"]
                 if given.plots] + [given.html] * bool(given.html):
        print("wrote %s" % path)


def run(given):
    """Print, write, compare."""
    records, metas = load_all(given.files)
    if given.compare:
        old, _ = load(given.compare)
        noise = NOISE if given.noise is None else given.noise
        print(compare_text(compare(old, records, noise)))
    cells = summarise(records)
    if not given.compare:
        print(table(cells))
    if given.html or given.plots:
        write_report(given, cells, metas)
    sys.stdout.flush()


def main(words=None):
    """Entry point; the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    given = arguments(words)
    try:
        run(given)
    except ReportError as error:
        print("plugreport: %s" % error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Who read us has seen enough; let the exit not try to flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
