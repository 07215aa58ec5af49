# SPDX-License-Identifier: GPL-2.0
"""Records of measurements: check, read and write the files that hold them.

A file holds {"version": 2, "records": [...], "meta": {...}}, one record per
measured cell and run, as schemas.py says.  A cell is what was
measured: suite, profile, workload, kernel, policy.  Version 1 is the same without "version".
"""
import json

from ..core.system import EnvironmentProblem, printable, replace_file
from .schema import Schema, is_a

VERSION = 2
LARGEST = 1e15                  # so that any ratio of figures is finite
SCHEMA = Schema("plugbench")
# Canonical orders, as are those of the schema; names that are not listed follow, by alphabet.
PROFILES = ["gen4", "gen5", "optane", "vm", "lockstep", "saturated", "hdd",
            "null", "nvme-qemu"]
WORKLOADS = ["rand4k-s32", "rand4k-s128", "libaio-rand4k-s32",
             "twodev-rand4k-s32", "twons-rand4k-s32", "seq4k-s32",
             "seq128k-s32", "mix70-s32", "phase-change", "rand4k-qd1",
             "rand4k-qd4", "rand4k-qd32-wait", "onecore-peak"]
LATENCIES = ["mean", "p50", "p99", "p999"]

CELL = ["suite", "profile", "workload", "kernel", "policy"]
RECORD = SCHEMA.part("record")
FIELDS = RECORD["properties"]
META = SCHEMA.whole["properties"]["meta"]["properties"]
POLICIES = SCHEMA.part("policy")["enum"]
ORDER = {"profile": PROFILES, "workload": WORKLOADS, "policy": POLICIES,
         "kernel": SCHEMA.part("kernel")["enum"]}


class ReportError(EnvironmentProblem):
    """What the user did or gave can not be used; the text says why."""


def shown(value):
    """A value as JSON, cut to what an error message bears."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."


def check_field(value, schema, where):
    """Raise ReportError unless a field is as the schema says, and can be
    printed if it names a cell."""
    text = schema.get("$ref", "").endswith("/line")
    if not SCHEMA.valid(value, schema) or text and not value.isprintable():
        raise ReportError(f"{where} is {shown(value)}; accepted: "
                          f"{SCHEMA.accepted(schema)}")


def check_record(record, where):
    check_field(record, {"type": "object"}, where)
    for field, schema in FIELDS.items():
        if field in record:
            check_field(record[field], schema, f"{where}: field {field}")
        elif field in RECORD["required"]:
            raise ReportError(f"{where}: field {field} is missing; accepted: "
                              f"{SCHEMA.accepted(schema)}")


def cell_key(record):
    return tuple(record[name] for name in CELL)


def identity(record):
    """Two records with the same identity are one measurement, twice."""
    return cell_key(record) + (record["run"], record.get("seed"),
                               record["commit"])


def describe(record):
    return "{}: {}, {}, {} {}".format(*cell_key(record))


def check(records, meta=None):
    """Raise ReportError unless both have the shape that a file has."""
    check_field(records, {"type": "array", "title": "a list of objects"},
                "records")
    check_field({} if meta is None else meta, {"type": "object"}, "meta")
    for field in META.keys() & (meta or {}).keys():
        check_field(meta[field], META[field], f"meta: field {field}")
    seen = {}
    for number, record in enumerate(records):
        where = f"records[{number}]"
        check_record(record, where)
        first = seen.setdefault(identity(record), where)
        if first != where:
            raise ReportError(
                f"{first} and {where} are the same run of {describe(record)}; "
                "accepted: each run, seed and commit of a cell once")


SHAPE = '{"records": [...], "meta": {...}}'


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}; accepted: a file of "
                          "records") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{path} is no JSON ({error}); accepted: "
                          f"{SHAPE}") from error


def check_version(content):
    """Files of a later form are not guessed at."""
    version = content.get("version", 1)
    if not is_a(version, "integer") or not 1 <= version <= VERSION:
        raise ReportError(
            f"version is {shown(version)}; accepted: 1 to {VERSION}, or none, "
            "which is 1; a newer plugbench may have written the file")


def load(path):
    """Records and meta of a file, such as can be printed."""
    content = read_json(path)
    if not isinstance(content, dict) or "records" not in content:
        raise ReportError(f"{path} holds no records; accepted: {SHAPE}")
    meta = content.get("meta") or {}
    try:
        check_version(content)
        check(content["records"], meta)
        return content["records"], {
            name: printable(value, "\n" if name == "note" else "")
            for name, value in meta.items()}
    except (ReportError, RecursionError) as error:
        raise ReportError(f"{path}: {error}") from error


def rank(name, value):
    """Sort key of a name: the canonical order, then the alphabet."""
    known = ORDER.get(name, [])
    return (known.index(value) if value in known else len(known), value)


def cell_order(record):
    return tuple(rank(name, record[name]) for name in CELL)


def run_order(record):
    """Sort key of records: the cell, then the run."""
    seed = record.get("seed")
    return (cell_order(record), record["run"], seed is not None, seed or 0,
            record["commit"])


def write_file(path, data, **how):
    try:
        replace_file(path, data, **how)
    except OSError as error:
        raise ReportError(f"{path} cannot be written: "
                          f"{error.strerror}") from error


def save(path, records, meta=None, **more):
    """Check, sort and write records; the same ones give the same bytes."""
    content = {"version": VERSION, "records": records, "meta": meta or {},
               **more}
    try:
        check(records, meta)
        content["records"] = sorted(records, key=run_order)
        text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    except (ReportError, TypeError, ValueError) as error:
        raise ReportError(f"{path} not written: {error}") from error
    write_file(path, f"{text}\n".encode("utf-8"))
