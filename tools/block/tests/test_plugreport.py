#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools' records, summary and tables."""
import copy
import os
import re
import unittest

from reportcases import Scratch, cell, record, runs
from plugtools.report import records, summary, tables


class Records(Scratch):
    """load and save."""

    def refuses(self, content, *words):
        """load says no, and says all the words."""
        path = self.write("in.json", content)
        with self.assertRaises(records.ReportError) as caught:
            records.load(path)
        for word in (path,) + words:
            self.assertIn(word, str(caught.exception))

    def refuses_field(self, field, value, accepted):
        """A record with this value is refused, well explained."""
        bad = record(number=2, **{field: value})
        self.refuses({"records": [record(), bad]}, "records[1]",
                     "field %s " % field, "accepted: " + accepted)

    def test_missing_file(self):
        """The error names the file."""
        with self.assertRaisesRegex(records.ReportError, "nix.json"):
            records.load(self.path("nix.json"))

    def test_no_json(self):
        """Text, nothing, too deep: all no JSON."""
        for text in ("hello", "", "[" * 100000, '{"records": [}'):
            self.refuses(text, "is no JSON", '{"records": [...]')

    def test_binary(self):
        """Bytes that are no UTF-8."""
        with open(self.path("b.json"), "wb") as file:
            file.write(b"\xff\xfe\x00")
        with self.assertRaisesRegex(records.ReportError, "is no JSON"):
            records.load(self.path("b.json"))

    def test_wrong_shape(self):
        """JSON, but no records."""
        for content in ([], {"meta": {}}, "1"):
            self.refuses(content, "holds no records")
        self.refuses({"records": {}}, "a list of objects")
        self.refuses({"records": [7]}, "records[0]", "an object")
        self.refuses({"records": [], "meta": [1]}, "meta is [1]")

    def test_version(self):
        """Written; none is the first; what comes later is refused."""
        records.save(self.path("o.json"), [record()])
        self.assertIn('"version": %d' % records.VERSION, self.read("o.json"))
        for version in ({}, {"version": 1}, {"version": records.VERSION}):
            path = self.write("v.json", dict(version, records=[record()]))
            self.assertEqual(records.load(path), ([record()], {}))
        for version in (records.VERSION + 1, 0, "2", True, None):
            self.refuses({"version": version, "records": [record()]},
                         "version is ", "accepted: 1 to ")

    def test_wrong_fields(self):
        """Each field has a test, and an explanation."""
        number = "0 or a number from 1e-15 to 1e+15"
        for field, value, accepted in (
                ("kernel", "7.3", "one of unpatched, rfcera, patched"),
                ("kernel", [], "one of unpatched"),
                ("policy", "sometimes", "one of always, never"),
                ("profile", "", "one line"), ("workload", "a\nb", "one line"),
                ("workload", 7, "one line"), ("suite", " ", "one line"),
                ("iops", "12", number), ("iops", None, number),
                ("iops", True, number), ("iops", -1, number),
                ("iops", 5e-324, number), ("lat_us", {"p99": 1e-16}, "null"),
                ("iops", float("nan"), number),
                ("iops", float("inf"), number), ("iops", 10 ** 400, number),
                ("run", 1.5, "an integer"), ("run", False, "an integer"),
                ("seed", "1", "an integer or null"),
                ("commit", None, "text"), ("cpu_busy", -0.1, number),
                ("insns_per_io", "x", number + ", or null"),
                ("doorbells_per_io", -1, number),
                ("requests_per_io", [], number),
                ("lat_us", 5, "null or an object of mean, p50"),
                ("lat_us", {"p99": "x"}, "null or an object")):
            with self.subTest(field=field, value=value):
                self.refuses_field(field, value, accepted)

    def test_meta(self):
        """What others rely on is looked at; the rest is free."""
        for field, good, bad in (
                ("note", ["", None, "x"], [["x"], 5]),
                ("size", [None], [5]), ("model", ["x"], [{}]),
                ("holds", [None, [], ["x"]], ["abc", 5, [5]]),
                ("warnings", [["x"]], [[1, 2]]), ("legs", [["x"]], [{}]),
                ("fio", [None, {}, {"a": None}, {"a": "fio 'x y'"}],
                 ["x", ["x"], {"a": 5}, {"a": "fio 'x"}]),
                ("machines", [1, {}, []], [])):
            for value in good:
                records.load(self.write("x.json", {
                    "records": [record()], "meta": {field: value}}))
            for value in bad:
                self.refuses({"records": [record()], "meta": {field: value}},
                             "meta: field %s is " % field, "accepted: ")

    def test_meta_of_another_host(self):
        """No terminal obeys it; only the note may have lines."""
        evil = "a\x1b]0;t\x07\nb\u202e\udcf6\u00f6"
        good = "a\\x1b]0;t\\x07%sb\\u202e\\udcf6\u00f6"
        _, meta = records.load(self.write("x.json", {
            "records": [record()], "meta": {
                "holds": [evil], "note": evil, "size": evil, "cpu": 3,
                "fio": {evil: "fio"}}}))
        line = good % "\\n"
        self.assertEqual(meta, {"holds": [line], "note": good % "\n",
                                "size": line, "cpu": 3, "fio": {line: "fio"}})

    def test_missing_fields(self):
        """What must be there, and what need not."""
        for field in record():
            some = {key: value for key, value in record().items()
                    if key != field}
            with self.subTest(field=field):
                if records.FIELDS[field][2]:
                    records.load(self.write("x.json", {"records": [some]}))
                else:
                    self.refuses({"records": [some]}, "field %s is missing"
                                 % field)
        optional = {key for key in record() if records.FIELDS[key][2]}
        self.assertEqual(optional, set(records.NULLABLE) | {"seed", "lat_us"})

    def test_same_run_twice(self):
        """A run counts once; another seed is another run."""
        self.refuses({"records": [record(), record("never"), record()]},
                     "records[0] and records[2] are the same run of threads: "
                     "gen4 rand4k-s32, patched always")
        records.check([record(), record(seed=9)])

    def test_nulls_are_kept(self):
        """null members, further fields and meta survive."""
        one = record(lat_us={"mean": None, "p99": 7}, insns_per_io=None,
                     seed=None, ctx_switches_per_io=0.5, unit="µs")
        records.save(self.path("o.json"), [one], {"note": "n"})
        self.assertEqual(records.load(self.path("o.json")),
                         ([one], {"note": "n"}))

    def test_save_sorts(self):
        """Any order gives the same bytes, in canonical order."""
        found = (runs("never", [1, 2]) + runs("always", [3]) +
                   runs("always", [3], kernel="unpatched") +
                   runs("always", [3], workload="aaa", seed=None) +
                   runs("always", [3], workload="aaa"))
        before = copy.deepcopy(found)
        records.save(self.path("a.json"), found, {})
        records.save(self.path("b.json"), found[::-1], {})
        self.assertEqual(found, before)
        self.assertEqual(self.read("a.json"), self.read("b.json"))
        self.assertEqual(
            [(one["workload"], one["kernel"], one["policy"], one["run"])
             for one in records.load(self.path("a.json"))[0]][:4],
            [("rand4k-s32", "unpatched", "always", 1),
             ("rand4k-s32", "patched", "always", 1),
             ("rand4k-s32", "patched", "never", 1),
             ("rand4k-s32", "patched", "never", 2)])

    def test_save_refuses(self):
        """A bad record leaves the old file, and nothing else."""
        self.write("o.json", "old")
        for bad, meta in (([record(iops="x")], {}), ([record()], []),
                          ([record(further={1, 2})], {}),
                          ([record(further=float("nan"))], {})):
            with self.assertRaisesRegex(records.ReportError, "not written"):
                records.save(self.path("o.json"), bad, meta)
        self.assertEqual(self.read("o.json"), "old")
        self.assertEqual(os.listdir(self.dir), ["o.json"])

    def test_save_is_atomic(self):
        """If the rename fails, the old file is whole and no other there."""
        self.write("o.json", "old")
        rename = os.replace
        self.addCleanup(setattr, os, "replace", rename)

        def fail(source, target):
            raise OSError(28, "No space left on device", source, target)
        os.replace = fail
        with self.assertRaisesRegex(records.ReportError, "No space"):
            records.save(self.path("o.json"), [record()], {})
        self.assertEqual(self.read("o.json"), "old")
        self.assertEqual(os.listdir(self.dir), ["o.json"])

    def test_save_mode(self):
        """Others may read it, as the umask says."""
        mask = os.umask(0o022)
        self.addCleanup(os.umask, mask)
        records.save(self.path("o.json"), [record()], {})
        self.assertEqual(os.stat(self.path("o.json")).st_mode & 0o777, 0o644)

    def test_save_nowhere(self):
        """No directory is an error of ours, not a traceback."""
        with self.assertRaisesRegex(records.ReportError, "nix/o.json"):
            records.save(self.path("nix/o.json"), [record()], {})


class Cells(unittest.TestCase):
    """summarise."""

    def test_mean_and_deviation(self):
        """Over the runs; nulls do not count."""
        found = runs("always", [10, 20, 30])
        found[0]["lat_us"] = None
        found[1]["lat_us"] = {"mean": 4, "p50": None}
        found[2]["lat_us"] = {"mean": 6}
        one = cell(found, "always")
        self.assertEqual(one["iops"], {"mean": 20, "sd": 10, "n": 3})
        self.assertEqual(one["n"], 3)
        self.assertEqual(one["lat_us"]["mean"]["mean"], 5)
        self.assertAlmostEqual(one["lat_us"]["mean"]["sd"], 2 ** 0.5)
        self.assertEqual(one["lat_us"]["mean"]["n"], 2)
        self.assertIsNone(one["lat_us"]["p50"])

    def test_one_run_has_no_deviation(self):
        """Unknown is not 0."""
        one = cell([record()], "always")
        self.assertIsNone(one["iops"]["sd"])
        self.assertIsNone(one["ratio_sd"])

    def test_ratio_to_unpatched(self):
        """Unpatched always is the baseline, though patched is there."""
        found = (runs("always", [100, 100], kernel="unpatched") +
                   runs("always", [90, 90]) + runs("never", [110, 110]))
        one = cell(found, "never")
        self.assertAlmostEqual(one["ratio"], 1.1)
        self.assertEqual(one["baseline"], "unpatched always")
        self.assertAlmostEqual(cell(found, "always")["ratio"], 0.9)

    def test_ratio_falls_back(self):
        """Patched always, and it is said."""
        one = cell(runs("always", [100]) + runs("never", [110]), "never")
        self.assertAlmostEqual(one["ratio"], 1.1)
        self.assertEqual(one["baseline"], "patched always")

    def test_no_baseline(self):
        """No always, another suite's always, or one of 0: no ratio."""
        for other in ([], runs("always", [5], suite="other"),
                      runs("always", [5], profile="hdd"),
                      runs("always", [5], workload="seq4k-s32"),
                      runs("always", [5], kernel="rfcera"),
                      runs("noplug", [5], kernel="unpatched"),
                      runs("always", [0])):
            one = cell(runs("never", [110]) + other, "never")
            self.assertIsNone(one["ratio"])
            self.assertIsNone(one["baseline"])

    def test_ratio_uncertainty(self):
        """Both relative deviations, in quadrature; the baseline's is 0."""
        found = runs("always", [97, 103]) + runs("never", [196, 204])
        base, one = cell(found, "always"), cell(found, "never")
        parts = (4 * 2 ** 0.5 / 200) ** 2 + (3 * 2 ** 0.5 / 100) ** 2
        self.assertAlmostEqual(one["ratio_sd"], 2 * parts ** 0.5)
        self.assertEqual((base["ratio"], base["ratio_sd"]), (1, 0))
        single = cell(runs("always", [100]) + runs("never", [1, 2]), "never")
        self.assertIsNone(single["ratio_sd"])

    def test_nothing_done(self):
        """0 IOPS is a ratio of 0, not a traceback."""
        one = cell(runs("always", [1, 1]) + runs("never", [0, 0]), "never")
        self.assertEqual((one["ratio"], one["ratio_sd"]), (0, None))

    def test_order(self):
        """Policies and kernels in ours, other names by alphabet."""
        found = [record(policy, kernel=kernel, workload=workload)
                   for policy, kernel in (("never", "patched"),
                                          ("always", "patched"),
                                          ("noplug", "unpatched"))
                   for workload in ("zebra", "apple", "rand4k-s32")]
        self.assertEqual(
            [(one["workload"], one["policy"])
             for one in summary.summarise(found)],
            [(workload, policy)
             for workload in ("rand4k-s32", "apple", "zebra")
             for policy in ("noplug", "always", "never")])

    def test_further_fields(self):
        """Numbers among them are summarised."""
        one = cell([record(ctx=1, unit="x", polled=True),
                    record(number=2, ctx=3)], "always")
        self.assertEqual(list(one["extra"]), ["ctx"])
        self.assertEqual(one["extra"]["ctx"]["mean"], 2)

    def test_cpu_time(self):
        """Of one I/O, in microseconds; not known, or nothing done: none."""
        one = cell([record(iops=200000, cpu_busy=0.5)], "always")
        self.assertAlmostEqual(one["cpu_us_per_io"]["mean"], 2.5)
        for more in ({"cpu_busy": None}, {"cpu_busy": 0}, {"iops": 0}):
            self.assertIsNone(cell([record(**more)],
                                   "always")["cpu_us_per_io"])


class Table(unittest.TestCase):
    """table."""

    def lines(self, found, columns=None):
        """Its lines, split."""
        text = tables.table(summary.summarise(found), columns)
        return [re.split(r"  +", line.strip()) for line in text.split("\n")]

    def test_rows(self):
        """A heading, a row per policy, and what the ratio is to."""
        lines = self.lines(runs("never", [329024]) +
                           runs("always", [320999], kernel="unpatched"))
        self.assertEqual(lines[0], [
            "kernel", "policy", "IOPS", "ratio", "insns/IO", "mean us",
            "p50 us", "p99 us", "p99.9 us", "CPU us/IO", "doorbells/IO",
            "requests/IO", "busy"])
        self.assertEqual(lines[2], ["gen4, rand4k-s32"])
        self.assertEqual(lines[3], [
            "unpatched", "always", "320999", "1.000", "5000", "50.00",
            "45.00", "90.00", "200.0", "2.492", "0.03125", "1.000", "0.80"])
        self.assertEqual(lines[4][:4], ["patched", "never", "329024",
                                        "1.025"])
        self.assertIn(["Ratio: IOPS to unpatched always."], lines)
        self.assertIn(["One run each."], lines)

    def test_empty_columns_go(self):
        """No data at all: no column; some: a dash for the others."""
        found = runs("always", [5], lat_us=None, insns_per_io=None) + \
            runs("never", [5], lat_us={"p99": 7}, insns_per_io=None)
        lines = self.lines(found)
        self.assertEqual(lines[0], [
            "kernel", "policy", "IOPS", "ratio", "p99 us", "CPU us/IO",
            "doorbells/IO", "requests/IO", "busy"])
        self.assertEqual([line[4] for line in lines[3:5]], ["-", "7.000"])

    def test_spread_only_of_runs(self):
        """± if there is more than one run."""
        text = tables.table(summary.summarise(runs("always", [100])))
        self.assertNotIn("±", text)
        text = tables.table(summary.summarise(runs("always", [97, 103])))
        self.assertIn("100.0 ±4.2", text)
        self.assertIn("Means of 2 runs", text)
        self.assertNotIn("1.000 ±", text)

    def test_columns(self):
        """Wanted ones, of the further fields too; unknown are refused."""
        found = [record(ctx=3)]
        self.assertEqual(self.lines(found, ["ctx", "iops"])[0],
                         ["kernel", "policy", "ctx", "IOPS"])
        with self.assertRaisesRegex(records.ReportError, "no column nix; .*"
                                    "ctx.*iops"):
            self.lines(found, ["nix"])

    def test_aligned(self):
        """Figures of a column end below each other."""
        found = runs("always", [9, 9.1]) + runs("never", [12345, 12399])
        rows = tables.table(summary.summarise(found)).split("\n")[3:5]
        ends = {re.match(r" *\S+ +\S+ +[\d.]+", row).end() for row in rows}
        self.assertEqual(len(ends), 1)

    def test_suites(self):
        """Several are told apart; one is not repeated."""
        text = tables.table(summary.summarise(
            [record(), record(suite="other")]))
        self.assertIn("\nother: gen4, rand4k-s32\n", text)
        self.assertIn("\nthreads: gen4, rand4k-s32\n", text)

    def test_notes(self):
        """Fallback, absent baseline, mixed commits: all are said."""
        def text(found):
            return tables.table(summary.summarise(found))
        self.assertIn("Patched always is the baseline", text([record()]))
        self.assertIn("No ratio where always", text([record("never")]))
        self.assertIn("1 of 1 rows average several commits",
                      text([record(), record(commit="def")]))
        self.assertNotIn("commits", text([record(), record(number=2)]))
        self.assertEqual(tables.table([]), "no records")

    def test_digits(self):
        """Four that count, and no whole ones lost."""
        for value, text in ((0, "0"), (0.03125, "0.03125"), (78.43, "78.43"),
                            (5123.4, "5123"), (1234567.8, "1234568")):
            self.assertEqual(tables.figures({"mean": value, "sd": None}),
                             (text, ""))


if __name__ == "__main__":
    unittest.main()
