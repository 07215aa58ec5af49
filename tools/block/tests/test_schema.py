#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench.schema.json: it takes what plugtools.records takes."""
import copy
import json
import os
import re
import unittest

from faketree import TOOLS
from reportcases import Scratch, record, runs
from plugtools.report import records, results, verdict

with open(os.path.join(TOOLS, "plugbench.schema.json"),
          encoding="ascii") as schema_file:
    SCHEMA = json.load(schema_file)
TYPES = {"object": lambda value: isinstance(value, dict),
         "array": lambda value: isinstance(value, list),
         "string": lambda value: isinstance(value, str),
         "boolean": lambda value: isinstance(value, bool),
         "null": lambda value: value is None,
         "integer": records.is_integer,
         "number": lambda value: isinstance(value, (int, float)) and
                   not isinstance(value, bool)}
COMMENTS = {"$comment", "$schema", "$defs", "title", "description"}


def listed(value):
    """type may be one name or several."""
    return value if isinstance(value, list) else [value]


def same(one, other):
    """JSON's equality: true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def members(schema, value):
    """(schema, value) of all members of an object or array."""
    if isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], one) for one in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name, one in value.items():
            yield known.get(name, schema.get("additionalProperties",
                                             True)), one


# keyword: does a value satisfy it?  Of another type, it does.
KEYWORDS = {
    "$ref": lambda want, value, _:
        valid(SCHEMA["$defs"][want.rpartition("/")[2]], value),
    "type": lambda want, value, _:
        any(TYPES[name](value) for name in listed(want)),
    "enum": lambda want, value, _: any(same(one, value) for one in want),
    "const": lambda want, value, _: same(want, value),
    "anyOf": lambda want, value, _: any(valid(one, value) for one in want),
    "minimum": lambda want, value, _:
        not TYPES["number"](value) or value >= want,
    "maximum": lambda want, value, _:
        not TYPES["number"](value) or value <= want,
    "pattern": lambda want, value, _:
        not isinstance(value, str) or re.search(want, value) is not None,
    "required": lambda want, value, _:
        not isinstance(value, dict) or set(want) <= value.keys(),
    **dict.fromkeys(("properties", "additionalProperties", "items"),
                    lambda _, value, schema: all(
                        valid(*pair) for pair in members(schema, value)))}


def valid(schema, value):
    """Does a value match a schema?  A keyword that is not known is an error.
    """
    if isinstance(schema, bool):
        return schema
    return all(KEYWORDS[word](want, value, schema)
               for word, want in schema.items() if word not in COMMENTS)


def content(*found):
    """A file's content."""
    return {"version": records.VERSION, "meta": {}, "records": list(found)}


class Schema(Scratch):
    """The schema, and what plugbench writes."""

    def agree(self, one):
        """The schema and check() say the same of a record; what it is."""
        try:
            records.check([one])
            good = True
        except records.ReportError:
            good = False
        self.assertEqual(valid(SCHEMA, content(one)), good, one)
        return good

    def test_fields(self):
        """Each field, right and wrong, for the schema and for check()."""
        for field, good, bad in (
                ("kernel", ["patched", "rfcera"], ["7.3", None, 1]),
                ("policy", records.POLICIES + records.GROUPS, ["some", []]),
                ("profile", ["x y"], ["", " ", 7, None]),
                ("iops", [0, 1.5, 1e15, 1e-15],
                 ["12", None, True, -1, 2e15, 1e-16]),
                ("run", [0, 3], [1.5, False, "1", None]),
                ("seed", [None, 7], ["1", 0.5, True]),
                ("commit", ["", "abc"], [None, 3]),
                ("cpu_busy", [None, 0, 1, 7.5], [-0.1, "1", True]),
                ("insns_per_io", [None, 3], ["x", -1]),
                ("doorbells_per_io", [None, 3], [-1, True]),
                ("requests_per_io", [None, 3], [[], -1]),
                ("lat_us", [None, {}, {"p99": None, "mean": 3}],
                 [5, [], {"p99": "x"}, {"p50": -1}, {"p50": True}])):
            for number, value in enumerate(good + bad):
                with self.subTest(field=field, value=value):
                    self.assertEqual(self.agree(record(**{field: value})),
                                     number < len(good))

    def test_missing_fields(self):
        """What must be there, and what need not."""
        self.assertTrue(self.agree(record(further={"a": []})))
        for field in record():
            one = record()
            del one[field]
            with self.subTest(field=field):
                self.agree(one)

    def test_names(self):
        """The lists of the schema are those of the code."""
        parts = SCHEMA["$defs"]
        self.assertEqual(parts["kernel"]["enum"], records.KERNELS)
        self.assertEqual(parts["policy"]["enum"],
                         records.POLICIES + records.GROUPS)
        self.assertEqual(parts["comparison"]["properties"]["metric"]["enum"],
                         list(verdict.METRICS))
        self.assertEqual(SCHEMA["properties"]["version"]["const"],
                         records.VERSION)

    def test_what_plugbench_writes(self):
        """With every kind of verdict."""
        for changed in ([1000], [1000, 1001, 1002, 1003],
                        [1200, 1201, 1202, 1201], [900, 1200, 950, 1100],
                        [500, 501, 500, 501]):
            found = runs("never", changed) + runs("always", [1000, 1001, 1000,
                                                             1001])
            with self.subTest(changed=changed):
                path = self.path("o.json")
                records.save(path, found, {}, verdict=verdict.of(found))
                written = json.loads(self.read("o.json"))
                self.assertTrue(valid(SCHEMA, written))
                self.assertEqual(results.old_records(path)[0],
                                 written["records"])

    def test_what_it_refuses(self):
        """Each part is looked at, down to the last."""
        found = runs("never", [12, 13]) + runs("always", [10, 11])
        good = dict(content(*found), verdict=verdict.of(found))
        self.assertTrue(valid(SCHEMA, json.loads(json.dumps(good))))
        for path, value in (
                (("version",), 1), (("version",), True), (("records",), {}),
                (("meta",), []), (("more",), 1), (("verdict",), 7),
                (("verdict", "more"), 1), (("verdict", "baseline"), ""),
                (("verdict", "comparisons", 0, "low"), "x"),
                (("verdict", "comparisons", 0, "judgement"), "good"),
                (("verdict", "comparisons", 0, "more"), 1),
                (("verdict", "verdicts", 0, "decision"), "maybe"),
                (("verdict", "verdicts", 0, "more_runs"), -1)):
            bad = copy.deepcopy(good)
            part = bad
            for name in path[:-1]:
                part = part[name]
            part[path[-1]] = value
            with self.subTest(path=path, value=value):
                self.assertFalse(valid(SCHEMA, bad))
        del good["version"]
        self.assertFalse(valid(SCHEMA, good))


if __name__ == "__main__":
    unittest.main()
