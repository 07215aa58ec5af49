# SPDX-License-Identifier: GPL-2.0
"""plugtools' records, summary and tables."""
import copy
import errno
import json
import os
import re

import pytest

from reportcases import cell, record, runs
from plugtools.report import records, summary, tables, verdict

NUMBER = "0 or a number from 1e-15 to 1e+15"


def write(name, content):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else (
            content if isinstance(content, str) else json.dumps(content))
                   .encode())
    return name


def refuses(content, *words):
    with pytest.raises(records.ReportError) as caught:
        records.load(write("in.json", content))
    for word in ("in.json",) + words:
        assert word in str(caught.value)


# --- load ------------------------------------------------------------------
def test_nowhere(here):
    for action in (lambda path: records.save(path, [record()], {}),
                   records.load):
        with pytest.raises(records.ReportError, match="nix/o.json"):
            action("nix/o.json")


@pytest.mark.parametrize("content, words", [
    *((content, ["is no JSON", '{"records": [...]']) for content in (
        "hello", "", "[" * 100000, '{"records": [}', b"\xff\xfe\x00")),
    *((content, ["holds no records"]) for content in ([], {"meta": {}}, "1")),
    ({"records": {}}, ["a list of objects"]),
    ({"records": [7]}, ["records[0]", "an object"]),
    ({"records": [], "meta": [1]}, ["meta is [1]"]),
    *(({"version": version, "records": [record()]},
       ["version is ", "accepted: 1 to "])
      for version in (records.VERSION + 1, 0, "2", True, None))],
    ids=range(16))
def test_wrong_shape(here, content, words):
    refuses(content, *words)


@pytest.mark.parametrize("field, value, accepted", [
    ("kernel", "7.3", "one of unpatched, rfcera, patched"),
    ("kernel", [], "one of unpatched"),
    ("policy", "sometimes", "one of always, never"),
    ("profile", "", "one line"), ("workload", "a\nb", "one line"),
    ("workload", 7, "one line"), ("suite", " ", "one line"),
    ("iops", "12", NUMBER), ("iops", None, NUMBER), ("iops", True, NUMBER),
    ("iops", -1, NUMBER), ("iops", 5e-324, NUMBER),
    ("iops", float("nan"), NUMBER), ("iops", float("inf"), NUMBER),
    ("iops", 10 ** 400, NUMBER), ("lat_us", {"p99": 1e-16}, "null"),
    ("run", 1.5, "an integer"), ("run", False, "an integer"),
    ("seed", "1", "an integer or null"), ("commit", None, "text"),
    ("cpu_busy", -0.1, NUMBER), ("insns_per_io", "x", NUMBER + ", or null"),
    ("doorbells_per_io", -1, NUMBER), ("requests_per_io", [], NUMBER),
    ("lat_us", 5, "null or an object of mean, p50"),
    ("lat_us", {"p99": "x"}, "null or an object")])
def test_wrong_field(here, field, value, accepted):
    refuses({"records": [record(), record(number=2, **{field: value})]},
            "records[1]", f"field {field} ", "accepted: " + accepted)


@pytest.mark.parametrize("field", record())
def test_missing_field(here, field):
    some = record()
    del some[field]
    if field.endswith("_per_io") or field in ("seed", "lat_us", "cpu_busy"):
        records.load(write("x.json", {"records": [some]}))
    else:
        refuses({"records": [some]}, f"field {field} is missing")


@pytest.mark.parametrize("field, good, bad", [
    ("note", ["", None, "x"], [["x"], 5]), ("size", [None], [5]),
    ("model", ["x"], [{}]), ("holds", [None, [], ["x"]], ["abc", 5, [5]]),
    ("warnings", [["x"]], [[1, 2]]), ("legs", [["x"]], [{}]),
    ("fio", [None, {}, {"a": None}, {"a": "fio 'x y'"}],
     ["x", ["x"], {"a": 5}]), ("machines", [1, {}, []], [])])
def test_meta(here, field, good, bad):
    """What others rely on is looked at; the rest is free."""
    for value in good:
        records.load(write("x.json", {"version": 1, "records": [record()],
                                      "meta": {field: value}}))
    for value in bad:
        refuses({"records": [record()], "meta": {field: value}},
                f"meta: field {field} is ", "accepted: ")


def test_meta_of_another_host(here):
    """No terminal obeys it; only the note may have lines."""
    evil = "a\x1b]0;t\x07\nb\u202e\udcf6\u00f6"
    good = "a\\x1b]0;t\\x07{}b\\u202e\\udcf6\u00f6"
    _, meta = records.load(write("x.json", {"records": [record()], "meta": {
        "holds": [evil], "note": evil, "size": evil, "cpu": 3,
        "fio": {evil: "fio"}}}))
    line = good.format("\\n")
    assert meta == {"holds": [line], "note": good.format("\n"), "size": line,
                    "cpu": 3, "fio": {line: "fio"}}


def test_same_run_twice(here):
    """A run counts once; another seed is another run."""
    refuses({"records": [record(), record("never"), record()]},
            "records[0] and records[2] are the same run of threads: "
            "gen4, rand4k-s32, patched always")
    records.check([record(), record(seed=9)])


# --- save ------------------------------------------------------------------
def test_nulls_are_kept(here):
    one = record(lat_us={"mean": None, "p99": 7}, insns_per_io=None,
                 seed=None, ctx_switches_per_io=0.5, unit="µs", iops=1e15,
                 cpu_busy=7.5, requests_per_io=1e-15, doorbells_per_io=0)
    records.save("o.json", [one], {"note": "n"})
    assert records.load("o.json") == ([one], {"note": "n"})
    assert f'"version": {records.VERSION}' in (here / "o.json").read_text()


def test_save_sorts(here):
    """Any order gives the same bytes, in canonical order."""
    found = (runs("never", [1, 2]) + runs("always", [3]) +
             runs("always", [3], kernel="unpatched") +
             runs("always", [3], workload="aaa", seed=None) +
             runs("always", [3], workload="aaa"))
    before = copy.deepcopy(found)
    records.save("a.json", found, {})
    mask = os.umask(0o022)
    records.save("b.json", found[::-1], {})
    os.umask(mask)
    assert os.stat("b.json").st_mode & 0o777 == 0o644
    assert found == before
    assert (here / "a.json").read_bytes() == (here / "b.json").read_bytes()
    assert [(one["workload"], one["kernel"], one["policy"], one["run"])
            for one in records.load("a.json")[0]][:4] == [
        ("rand4k-s32", "unpatched", "always", 1),
        ("rand4k-s32", "patched", "always", 1),
        ("rand4k-s32", "patched", "never", 1),
        ("rand4k-s32", "patched", "never", 2)]


@pytest.mark.parametrize("bad, meta, says", [
    *((bad, meta, "not written") for bad, meta in (
        ([record(iops="x")], {}), ([record()], []),
        ([record(more={1, 2})], {}), ([record(more=float("nan"))], {}))),
    ([record()], {}, "No space")])
def test_save_is_all_or_nothing(here, monkeypatch, bad, meta, says):
    def fail(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", source, target)
    write("o.json", "old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(records.ReportError, match=says):
        records.save("o.json", bad, meta)
    assert (here / "o.json").read_text() == "old"
    assert os.listdir() == ["o.json"]


# --- summarise -------------------------------------------------------------
def test_mean_and_deviation():
    """Over the runs; nulls do not count; of further fields, numbers do."""
    found = runs("always", [10, 20, 30], unit="x", polled=True)
    for one, lat in zip(found, (None, {"mean": 4, "p50": None}, {"mean": 6})):
        one["lat_us"] = lat
    found[0]["ctx"], found[2]["ctx"] = 1, 3
    one = cell(found, "always")
    assert (list(one["extra"]), one["extra"]["ctx"]["mean"]) == (["ctx"], 2)
    assert one["iops"] == {"mean": 20, "sd": 10, "n": 3}
    assert one["n"] == 3
    assert one["lat_us"]["mean"] == {
        "mean": 5, "sd": pytest.approx(2 ** 0.5), "n": 2}
    assert one["lat_us"]["p50"] is None


@pytest.mark.parametrize("base, ratio, name", [
    (runs("always", [100, 100], kernel="unpatched") + runs("always", [90, 90]),
     1.1, "unpatched always"),
    (runs("always", [100, 100]), 1.1, "patched always"),
    *((some, None, None) for some in (
        [], runs("always", [5], suite="other"),
        runs("always", [5], profile="hdd"),
        runs("always", [5], workload="seq4k-s32"),
        runs("always", [5], kernel="rfcera"),
        runs("noplug", [5], kernel="unpatched"), runs("always", [0])))])
def test_baseline(base, ratio, name):
    """Unpatched always, or patched, and it is said; else there is none."""
    one = cell(runs("never", [110, 110]) + base, "never")
    assert one["ratio"] == (ratio and pytest.approx(ratio))
    assert one["baseline"] == name


def test_ratio_uncertainty():
    found = runs("always", [97, 103]) + runs("never", [196, 204])
    base, one = cell(found, "always"), cell(found, "never")
    parts = (4 * 2 ** 0.5 / 200) ** 2 + (3 * 2 ** 0.5 / 100) ** 2
    assert one["ratio_sd"] == pytest.approx(2 * parts ** 0.5)
    assert (base["ratio"], base["ratio_sd"]) == (1, 0)
    for found, ratio in (       # of one run, the deviation is not known
            (runs("always", [100]) + runs("never", [1, 2]), .015),
            (runs("never", [1, 2]) + runs("always", [5]), 1),
            (runs("always", [1, 1]) + runs("never", [0, 0]), 0)):
        one = cell(found, found[-1]["policy"])
        assert (one["ratio"], one["ratio_sd"]) == (ratio, None)
        assert (one["iops"]["sd"] is None) == (len(found) == 3 and ratio == 1)


@pytest.mark.parametrize("fields, want", [
    ({"iops": 200000, "cpu_busy": 0.5}, 2.5), ({"cpu_busy": None}, None),
    ({"cpu_busy": 0}, None), ({"iops": 0}, None)])
def test_cpu_time(fields, want):
    """Of one I/O, in microseconds."""
    found = cell([record(**fields)], "always")["cpu_us_per_io"]
    assert (found and found["mean"]) == (want and pytest.approx(want))


# --- tables ----------------------------------------------------------------
def table(found):
    return tables.table(summary.summarise(found))


def lines(found):
    return [re.split(r"  +", line.strip())
            for line in table(found).split("\n")]


def test_rows():
    found = lines(runs("never", [329024]) +
                  runs("always", [320999], kernel="unpatched"))
    assert found[0] == [
        "kernel", "policy", "IOPS", "ratio", "insns/IO", "mean us", "p50 us",
        "p99 us", "p99.9 us", "CPU us/IO", "doorbells/IO", "requests/IO",
        "busy"]
    assert found[2:4] == [["gen4, rand4k-s32"], [
        "unpatched", "always", "320999", "1.000", "5000", "50.00", "45.00",
        "90.00", "200.0", "2.492", "0.03125", "1.000", "0.80"]]
    assert found[4][:4] == ["patched", "never", "329024", "1.025"]
    assert ["Ratio: IOPS to unpatched always."] in found
    assert ["One run each."] in found


def test_empty_columns_go():
    """No data at all: no column; some: a dash for the others."""
    found = lines(runs("always", [5], lat_us=None, insns_per_io=None) +
                  runs("never", [5], lat_us={"p99": 7}, insns_per_io=None))
    assert found[0] == ["kernel", "policy", "IOPS", "ratio", "p99 us",
                        "CPU us/IO", "doorbells/IO", "requests/IO", "busy"]
    assert [line[4] for line in found[3:5]] == ["-", "7.000"]


def test_aligned():
    rows = table(runs("always", [9, 9.1]) +
                 runs("never", [12345, 12399])).split("\n")[3:5]
    assert len({re.match(r" *\S+ +\S+ +[\d.]+", row).end()
                for row in rows}) == 1


@pytest.mark.parametrize("found, has, lacks", [
    (runs("always", [100]), ["One run each.", "Patched always is the baseline"],
     ["±", "commits"]),
    (runs("always", [97, 103]), ["100.0 ±4.2", "Means of 2 runs"], ["1.000 ±"]),
    (runs("always", [97, 103, 99]) + runs("never", [1]),
     ["Means of 1 to 3 runs"], []),
    ([record(), record(suite="other")], ["\nother: gen4, rand4k-s32\n",
                                         "\nthreads: gen4, rand4k-s32\n"], []),
    ([record("never")], ["No ratio where always"], []),
    ([record(), record(commit="def")],
     ["1 of 1 rows average several commits"], []),
    ([record(), record(number=2)], [], ["commits"]),
    ([], ["no records"], [])])
def test_notes(found, has, lacks):
    text = table(found)
    assert [word for word in has if word not in text] == []
    assert [word for word in lacks if word in text] == []


# --- schemas.PLUGBENCH: what is checked by it, and what plugbench writes ------
VALID = records.SCHEMA.valid


def test_schema():
    """It wants a version and knows each metric; nothing is taken as checked
    that is not."""
    assert not VALID({"records": [], "meta": {}})
    assert records.SCHEMA.part("comparison")["properties"]["metric"][
        "enum"] == list(verdict.METRICS)
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
    (("version",), True), (("version",), 1), (("records",), {}),
    (("meta",), []), (("more",), 1), (("verdict",), 7),
    (("verdict", "more"), 1), (("verdict", "baseline"), ""),
    (("verdict", "comparisons", 0, "low"), "x"),
    (("verdict", "comparisons", 0, "judgement"), "good"),
    (("verdict", "comparisons", 0, "more"), 1),
    (("verdict", "verdicts", 0, "decision"), "maybe"),
    (("verdict", "verdicts", 0, "more_runs"), -1)])
def test_what_it_refuses(path, value):
    found = runs("never", [12, 13]) + runs("always", [10, 11])
    bad = part = json.loads(json.dumps({
        "version": records.VERSION, "meta": {}, "records": found,
        "verdict": verdict.of(found)}))
    assert VALID(bad)
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    assert not VALID(bad)
