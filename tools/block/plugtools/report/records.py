# SPDX-License-Identifier: GPL-2.0
"""Records of measurements: check, read and write the files that hold them.

A file holds {"version": 2, "records": [...], "meta": {...}}, one record per
measured cell and run; plugbench.schema.json describes it.  A cell is what was
measured: suite, profile, workload, kernel, policy.  meta is free, but for META.
Version 1 is the same without "version".
"""
import json
import os
import shlex

from ..core.system import printable, replace_file

VERSION = 2
SMALLEST, LARGEST = 1e-15, 1e15     # so that any ratio of figures is finite
NUMBER = "0 or a number from %g to %g" % (SMALLEST, LARGEST)

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


class ReportError(Exception):
    """What the user did or gave can not be used; the text says why."""


def is_number(value, low=0, high=LARGEST):
    """A finite number in the range; a JSON true or NaN is none."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and low <= value <= high
            and (value == 0 or abs(value) >= SMALLEST))


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
    "iops": (is_number, NUMBER, False),
    "run": (is_integer, "an integer", False),
    "commit": (lambda value: isinstance(value, str), "text", False),
    "seed": (lambda value: value is None or is_integer(value),
             "an integer or null", True),
    "lat_us": (lambda value: value is None or is_latency(value),
               "null or an object of %s, each %s, or null"
               % (", ".join(LATENCIES), NUMBER), True),
    **dict.fromkeys(NULLABLE, (
        number_or_null(), NUMBER + ", or null", True)),
}


def is_text(value):
    """Text, if there is any."""
    return value is None or isinstance(value, str)


def is_texts(value):
    """A list of text, if there is any."""
    return value is None or isinstance(value, list) and all(
        isinstance(one, str) for one in value)


def are_commands(value):
    """An object of command lines, if there is any."""
    try:
        return value is None or isinstance(value, dict) and all(
            is_text(one) and shlex.split(one or "") is not None
            for one in value.values())
    except ValueError:          # a quote that does not end
        return False


# field of meta, if it is there: (test, what is accepted)
META = {
    **dict.fromkeys(["claim", "note", "command", "model", "firmware", "size"],
                    (is_text, "text or null")),
    **dict.fromkeys(["warnings", "holds", "legs"],
                    (is_texts, "a list of text, or null")),
    "fio": (are_commands, "an object of command lines, or null"),
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
    for field, (test, accepted) in META.items():
        if not test((meta or {}).get(field)):
            raise ReportError("meta: field %s is %s; accepted: %s" % (
                field, shown(meta[field]), accepted))
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


def check_version(content):
    """Files of a later form are not guessed at."""
    version = content.get("version", 1)
    if not is_integer(version) or not 1 <= version <= VERSION:
        raise ReportError("version is %s; accepted: 1 to %d, or none, which "
                          "is 1; a newer plugbench may have written the file"
                          % (shown(version), VERSION))


def load(path):
    """Records and meta of a file, such as can be printed."""
    content = read_json(path)
    if not isinstance(content, dict) or "records" not in content:
        raise ReportError("%s holds no records; accepted: "
                          '{"records": [...], "meta": {...}}' % path)
    meta = content.get("meta") or {}
    try:
        check_version(content)
        check(content["records"], meta)
        return content["records"], {
            name: printable(value, "\n" if name == "note" else "")
            for name, value in meta.items()}
    except (ReportError, RecursionError) as error:
        raise ReportError("%s: %s" % (path, error)) from error


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
    try:
        replace_file(path, data)
    except OSError as error:
        raise ReportError("%s can not be written: %s"
                          % (os.path.realpath(path), error.strerror)) \
            from error


def save(path, records, meta=None, **more):
    """Check, sort and write records; the same ones give the same bytes."""
    content = {"version": VERSION, "records": records, "meta": meta or {},
               **more}
    try:
        check(records, meta)
        content["records"] = sorted(records, key=run_order)
        text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    except ReportError as error:
        raise ReportError("%s not written: %s" % (path, error)) from error
    except (TypeError, ValueError) as error:
        raise ReportError("%s not written: a further field or meta is no "
                          "JSON: %s" % (path, error)) from error
    write_file(path, (text + "\n").encode("utf-8"))
