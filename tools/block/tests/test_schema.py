# SPDX-License-Identifier: GPL-2.0
"""schemas.PLUGBENCH, by which records are checked, and what plugbench
writes."""
import copy
import json

import pytest

from reportcases import record, runs
from plugtools.report import records, verdict

VALID = records.SCHEMA.valid


def content(*found, **more):
    return json.loads(json.dumps({"version": records.VERSION, "meta": {},
                                  "records": found, **more}))


@pytest.mark.parametrize("field, good", [
    ("kernel", ["patched", "rfcera"]), ("policy", records.POLICIES),
    ("profile", ["x y"]), ("iops", [0, 1.5, 1e15, 1e-15]), ("run", [0, 3]),
    ("seed", [None, 7]), ("commit", ["", "abc"]),
    ("cpu_busy", [None, 0, 1, 7.5]), ("insns_per_io", [None, 3]),
    ("lat_us", [None, {}, {"p99": None, "mean": 3}]),
    ("further", [{"a": []}])])
def test_fields(field, good):
    for value in good:
        records.check([record(**{field: value})])


def test_version():
    assert VALID(content(record()))
    assert not VALID({**content(record()), "version": 1})
    assert not VALID({"records": [], "meta": {}})


def test_metrics():
    assert records.SCHEMA.part("comparison")["properties"]["metric"][
        "enum"] == list(verdict.METRICS)


def test_unknown_keyword():
    """Nothing is taken as checked that is not."""
    with pytest.raises(KeyError):
        VALID(3, {"exclusiveMaximum": 2})


@pytest.mark.parametrize("changed", [
    [1000], [1000, 1001, 1002, 1003], [1200, 1201, 1202, 1201],
    [900, 1200, 950, 1100], [500, 501, 500, 501]])
def test_what_plugbench_writes(tmp_path, changed):
    found = runs("never", changed) + runs("always", [1000, 1001, 1000, 1001])
    path = tmp_path / "o.json"
    records.save(path, found, {}, verdict=verdict.of(found))
    written = json.loads(path.read_text())
    assert VALID(written)
    assert records.load(path)[0] == written["records"]


@pytest.mark.parametrize("path, value", [
    (("version",), True), (("records",), {}), (("meta",), []),
    (("more",), 1), (("verdict",), 7), (("verdict", "more"), 1),
    (("verdict", "baseline"), ""), (("verdict", "comparisons", 0, "low"), "x"),
    (("verdict", "comparisons", 0, "judgement"), "good"),
    (("verdict", "comparisons", 0, "more"), 1),
    (("verdict", "verdicts", 0, "decision"), "maybe"),
    (("verdict", "verdicts", 0, "more_runs"), -1)])
def test_what_it_refuses(path, value):
    found = runs("never", [12, 13]) + runs("always", [10, 11])
    good = content(*found, verdict=verdict.of(found))
    assert VALID(good)
    bad = copy.deepcopy(good)
    part = bad
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    assert not VALID(bad)
