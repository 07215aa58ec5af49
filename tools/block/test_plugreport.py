#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugreport.py; python3 test_plugreport.py runs them."""
import contextlib
import copy
import html.parser
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import plugreport as report

PROGRAM = report.__file__
NASTY = 'a`touch OWNED`% "q" \\ <b>&amp; {x}_y'


def record(policy="always", iops=1000.0, number=1, **fields):
    """A record that is right, but for what the test changes."""
    return dict({
        "kernel": "patched", "policy": policy, "profile": "gen4",
        "workload": "rand4k-s32", "iops": iops, "insns_per_io": 5000,
        "lat_us": {"mean": 50.0, "p50": 45, "p99": 90, "p999": 200},
        "doorbells_per_io": 0.03125, "requests_per_io": 1, "cpu_busy": 0.8,
        "run": number, "seed": number, "commit": "abc", "suite": "threads"},
                **fields)


def runs(policy, values, **fields):
    """Records of a cell, one per value of iops."""
    return [record(policy, value, number, **fields)
            for number, value in enumerate(values, 1)]


def cell(records, policy, kernel="patched"):
    """The one cell of a policy."""
    found = [one for one in report.summarise(records)
             if (one["policy"], one["kernel"]) == (policy, kernel)]
    assert len(found) == 1
    return found[0]


class Scratch(unittest.TestCase):
    """With a directory that goes away, and must hold what it should."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        """A file in the directory."""
        return os.path.join(self.dir, name)

    def write(self, name, content):
        """Write text, or anything else as JSON."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str)
                       else json.dumps(content))
        return self.path(name)

    def read(self, name):
        """A file's text."""
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


class Records(Scratch):
    """load and save."""

    def refuses(self, content, *words):
        """load says no, and says all the words."""
        path = self.write("in.json", content)
        with self.assertRaises(report.ReportError) as caught:
            report.load(path)
        for word in (path,) + words:
            self.assertIn(word, str(caught.exception))

    def refuses_field(self, field, value, accepted):
        """A record with this value is refused, well explained."""
        bad = record(number=2, **{field: value})
        self.refuses({"records": [record(), bad]}, "records[1]",
                     "field %s " % field, "accepted: " + accepted)

    def test_missing_file(self):
        """The error names the file."""
        with self.assertRaisesRegex(report.ReportError, "nix.json"):
            report.load(self.path("nix.json"))

    def test_no_json(self):
        """Text, nothing, too deep: all no JSON."""
        for text in ("hello", "", "[" * 100000, '{"records": [}'):
            self.refuses(text, "is no JSON", '{"records": [...]')

    def test_binary(self):
        """Bytes that are no UTF-8."""
        with open(self.path("b.json"), "wb") as file:
            file.write(b"\xff\xfe\x00")
        with self.assertRaisesRegex(report.ReportError, "is no JSON"):
            report.load(self.path("b.json"))

    def test_wrong_shape(self):
        """JSON, but no records."""
        for content in ([], {"meta": {}}, "1"):
            self.refuses(content, "holds no records")
        self.refuses({"records": {}}, "a list of objects")
        self.refuses({"records": [7]}, "records[0]", "an object")
        self.refuses({"records": [], "meta": [1]}, "meta is [1]")

    def test_wrong_fields(self):
        """Each field has a test, and an explanation."""
        number = "a number, 0 or more"
        for field, value, accepted in (
                ("kernel", "7.3", "one of unpatched, rfcera, patched"),
                ("kernel", [], "one of unpatched"),
                ("policy", "sometimes", "one of always, never"),
                ("profile", "", "one line"), ("workload", "a\nb", "one line"),
                ("workload", 7, "one line"), ("suite", " ", "one line"),
                ("iops", "12", number), ("iops", None, number),
                ("iops", True, number), ("iops", -1, number),
                ("iops", float("nan"), number),
                ("iops", float("inf"), number), ("iops", 10 ** 400, number),
                ("run", 1.5, "an integer"), ("run", False, "an integer"),
                ("seed", "1", "an integer or null"),
                ("commit", None, "text"), ("cpu_busy", 1.01, "a number from"),
                ("insns_per_io", "x", number + ", or null"),
                ("doorbells_per_io", -1, number),
                ("requests_per_io", [], number),
                ("lat_us", 5, "null or an object of mean, p50"),
                ("lat_us", {"p99": "x"}, "null or an object")):
            with self.subTest(field=field, value=value):
                self.refuses_field(field, value, accepted)

    def test_missing_fields(self):
        """What must be there, and what need not."""
        for field in record():
            some = {key: value for key, value in record().items()
                    if key != field}
            with self.subTest(field=field):
                if report.FIELDS[field][2]:
                    report.load(self.write("x.json", {"records": [some]}))
                else:
                    self.refuses({"records": [some]}, "field %s is missing"
                                 % field)
        optional = {key for key in record() if report.FIELDS[key][2]}
        self.assertEqual(optional, set(report.NULLABLE) | {"seed", "lat_us"})

    def test_same_run_twice(self):
        """A run counts once; another seed is another run."""
        self.refuses({"records": [record(), record("never"), record()]},
                     "records[0] and records[2] are the same run of threads: "
                     "gen4 rand4k-s32, patched always")
        report.check([record(), record(seed=9)])

    def test_nulls_are_kept(self):
        """null members, further fields and meta survive."""
        one = record(lat_us={"mean": None, "p99": 7}, insns_per_io=None,
                     seed=None, ctx_switches_per_io=0.5, unit="µs")
        report.save(self.path("o.json"), [one], {"note": "n"})
        self.assertEqual(report.load(self.path("o.json")),
                         ([one], {"note": "n"}))

    def test_save_sorts(self):
        """Any order gives the same bytes, in canonical order."""
        records = (runs("never", [1, 2]) + runs("always", [3]) +
                   runs("always", [3], kernel="unpatched") +
                   runs("always", [3], workload="aaa", seed=None) +
                   runs("always", [3], workload="aaa"))
        before = copy.deepcopy(records)
        report.save(self.path("a.json"), records, {})
        report.save(self.path("b.json"), records[::-1], {})
        self.assertEqual(records, before)
        self.assertEqual(self.read("a.json"), self.read("b.json"))
        self.assertEqual(
            [(one["workload"], one["kernel"], one["policy"], one["run"])
             for one in report.load(self.path("a.json"))[0]][:4],
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
            with self.assertRaisesRegex(report.ReportError, "not written"):
                report.save(self.path("o.json"), bad, meta)
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
        with self.assertRaisesRegex(report.ReportError, "No space"):
            report.save(self.path("o.json"), [record()], {})
        self.assertEqual(self.read("o.json"), "old")
        self.assertEqual(os.listdir(self.dir), ["o.json"])

    def test_save_mode(self):
        """Others may read it, as the umask says."""
        mask = os.umask(0o022)
        self.addCleanup(os.umask, mask)
        report.save(self.path("o.json"), [record()], {})
        self.assertEqual(os.stat(self.path("o.json")).st_mode & 0o777, 0o644)

    def test_save_nowhere(self):
        """No directory is an error of ours, not a traceback."""
        with self.assertRaisesRegex(report.ReportError, "nix/o.json"):
            report.save(self.path("nix/o.json"), [record()], {})


class Cells(unittest.TestCase):
    """summarise."""

    def test_mean_and_deviation(self):
        """Over the runs; nulls do not count."""
        records = runs("always", [10, 20, 30])
        records[0]["lat_us"] = None
        records[1]["lat_us"] = {"mean": 4, "p50": None}
        records[2]["lat_us"] = {"mean": 6}
        one = cell(records, "always")
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
        records = (runs("always", [100, 100], kernel="unpatched") +
                   runs("always", [90, 90]) + runs("never", [110, 110]))
        one = cell(records, "never")
        self.assertAlmostEqual(one["ratio"], 1.1)
        self.assertEqual(one["baseline"], "unpatched always")
        self.assertAlmostEqual(cell(records, "always")["ratio"], 0.9)

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
        records = runs("always", [97, 103]) + runs("never", [196, 204])
        base, one = cell(records, "always"), cell(records, "never")
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
        records = [record(policy, kernel=kernel, workload=workload)
                   for policy, kernel in (("never", "patched"),
                                          ("always", "patched"),
                                          ("noplug", "unpatched"))
                   for workload in ("zebra", "apple", "rand4k-s32")]
        self.assertEqual(
            [(one["workload"], one["policy"])
             for one in report.summarise(records)],
            [(workload, policy)
             for workload in ("rand4k-s32", "apple", "zebra")
             for policy in ("noplug", "always", "never")])

    def test_further_fields(self):
        """Numbers among them are summarised."""
        one = cell([record(ctx=1, unit="x", polled=True),
                    record(number=2, ctx=3)], "always")
        self.assertEqual(list(one["extra"]), ["ctx"])
        self.assertEqual(one["extra"]["ctx"]["mean"], 2)

    def test_best(self):
        """The fastest, who can not be told from it, or nobody."""
        def names(*values):
            records = [record(policy, value) for policy, value in
                       zip(("always", "never", "seq-small"), values)]
            return [one["policy"] for one in
                    report.best(report.summarise(records))]
        self.assertEqual(names(1000, 1100, 1050), ["never"])
        self.assertEqual(names(1000, 1100, 1099), ["never", "seq-small"])
        self.assertEqual(names(1000, 1001, 1000), [])
        self.assertEqual(names(0, 0, 0), [])

    def test_best_of_scattered_runs(self):
        """Runs that overlap do not make a winner."""
        records = (runs("always", [900, 1100]) + runs("never", [905, 1105]) +
                   runs("seq-small", [99, 101]))
        self.assertEqual(
            [one["policy"] for one in report.best(report.summarise(records))],
            ["always", "never"])


class Table(unittest.TestCase):
    """table."""

    def lines(self, records, columns=None):
        """Its lines, split."""
        text = report.table(report.summarise(records), columns)
        return [re.split(r"  +", line.strip()) for line in text.split("\n")]

    def test_rows(self):
        """A heading, a row per policy, and what the ratio is to."""
        lines = self.lines(runs("never", [329024]) +
                           runs("always", [320999], kernel="unpatched"))
        self.assertEqual(lines[0], [
            "kernel", "policy", "IOPS", "ratio", "insns/IO", "mean us",
            "p50 us", "p99 us", "p99.9 us", "doorbells/IO", "requests/IO",
            "busy"])
        self.assertEqual(lines[2], ["gen4, rand4k-s32"])
        self.assertEqual(lines[3], [
            "unpatched", "always", "320999", "1.000", "5000", "50.00",
            "45.00", "90.00", "200.0", "0.03125", "1.000", "0.80"])
        self.assertEqual(lines[4][:4], ["patched", "never", "329024",
                                        "1.025"])
        self.assertIn(["Ratio: IOPS to unpatched always."], lines)
        self.assertIn(["One run each."], lines)

    def test_empty_columns_go(self):
        """No data at all: no column; some: a dash for the others."""
        records = runs("always", [5], lat_us=None, insns_per_io=None) + \
            runs("never", [5], lat_us={"p99": 7}, insns_per_io=None)
        lines = self.lines(records)
        self.assertEqual(lines[0], [
            "kernel", "policy", "IOPS", "ratio", "p99 us", "doorbells/IO",
            "requests/IO", "busy"])
        self.assertEqual([line[4] for line in lines[3:5]], ["-", "7.000"])

    def test_spread_only_of_runs(self):
        """± if there is more than one run."""
        text = report.table(report.summarise(runs("always", [100])))
        self.assertNotIn("±", text)
        text = report.table(report.summarise(runs("always", [97, 103])))
        self.assertIn("100.0 ±4.2", text)
        self.assertIn("Means of 2 runs", text)
        self.assertNotIn("1.000 ±", text)

    def test_columns(self):
        """Wanted ones, of the further fields too; unknown are refused."""
        records = [record(ctx=3)]
        self.assertEqual(self.lines(records, ["ctx", "iops"])[0],
                         ["kernel", "policy", "ctx", "IOPS"])
        with self.assertRaisesRegex(report.ReportError, "no column nix; .*"
                                    "ctx.*iops"):
            self.lines(records, ["nix"])

    def test_aligned(self):
        """Figures of a column end below each other."""
        records = runs("always", [9, 9.1]) + runs("never", [12345, 12399])
        rows = report.table(report.summarise(records)).split("\n")[3:5]
        ends = {re.match(r" *\S+ +\S+ +[\d.]+", row).end() for row in rows}
        self.assertEqual(len(ends), 1)

    def test_suites(self):
        """Several are told apart; one is not repeated."""
        text = report.table(report.summarise(
            [record(), record(suite="other")]))
        self.assertIn("\nother: gen4, rand4k-s32\n", text)
        self.assertIn("\nthreads: gen4, rand4k-s32\n", text)

    def test_notes(self):
        """Fallback, absent baseline, mixed commits: all are said."""
        def text(records):
            return report.table(report.summarise(records))
        self.assertIn("Patched always is the baseline", text([record()]))
        self.assertIn("No ratio where always", text([record("never")]))
        self.assertIn("1 of 1 rows average several commits",
                      text([record(), record(commit="def")]))
        self.assertNotIn("commits", text([record(), record(number=2)]))
        self.assertEqual(report.table([]), "no records")

    def test_digits(self):
        """Four that count, and no whole ones lost."""
        for value, text in ((0, "0"), (0.03125, "0.03125"), (78.43, "78.43"),
                            (5123.4, "5123"), (1234567.8, "1234568")):
            self.assertEqual(report.figures({"mean": value, "sd": None}),
                             (text, ""))


class Compare(unittest.TestCase):
    """compare and compare_text."""

    def changes(self, old, new, **args):
        """(kind, policy, metric) of what changed."""
        return [(one["kind"], one["policy"], one["metric"])
                for one in report.compare(old, new, **args)]

    def test_noise(self):
        """Beyond it is a change, within it is none."""
        old = [record(iops=1000)]
        self.assertEqual(self.changes(old, [record(iops=1001.9)]), [])
        self.assertEqual(self.changes(old, [record(iops=998.1)]), [])
        for iops in (1002.1, 997.9):
            self.assertEqual(self.changes(old, [record(iops=iops)]),
                             [("changed", "always", "iops")])
        self.assertEqual(self.changes(old, [record(iops=1040)], noise=0.05),
                         [])

    def test_every_metric(self):
        """Six are compared; p50 and busy are not."""
        new = record(iops=1, insns_per_io=1, doorbells_per_io=1, cpu_busy=0,
                     requests_per_io=2,
                     lat_us={"mean": 1, "p50": 1, "p99": 1, "p999": 1})
        self.assertEqual(
            [metric for _, _, metric in self.changes([record()], [new])],
            ["iops", "insns_per_io", "lat_us.mean", "lat_us.p99",
             "doorbells_per_io", "requests_per_io"])

    def test_standard_errors(self):
        """Three of them, where the runs scatter more than the noise."""
        old = runs("always", [990, 1010] * 8)
        # One standard error of the difference is some 3.65 of 1000.
        self.assertEqual(self.changes(old, runs("always", [1000, 1020] * 8)),
                         [])
        self.assertEqual(self.changes(old, runs("always", [1002, 1022] * 8)),
                         [("changed", "always", "iops")])

    def test_one_run_scatters_alike(self):
        """A single run is no more exact than one of many."""
        old = runs("always", [990, 1010] * 8)
        self.assertEqual(self.changes(old, runs("always", [1025])), [])
        self.assertEqual(self.changes(runs("always", [1025]), old), [])
        self.assertEqual(len(self.changes(old, runs("always", [1040]))), 1)

    def test_came_and_went(self):
        """Cells and metrics that are on one side only."""
        self.assertEqual(
            self.changes([record(), record("never")],
                         [record(insns_per_io=None), record("seq-small")]),
            [("went", "always", "insns_per_io"), ("went", "never", None),
             ("came", "seq-small", None)])

    def test_from_nothing(self):
        """From 0 to something is a change; from 0 to 0 is not."""
        old = [record(doorbells_per_io=0)]
        self.assertEqual(self.changes(old, old), [])
        changes = report.compare(old, [record()])
        self.assertEqual(changes[0]["metric"], "doorbells_per_io")
        self.assertIn("from 0", report.compare_text(changes))

    def test_text(self):
        """The figures, and how many cells were compared."""
        old = [record(), record("never", 2000)]
        changes = report.compare(old, [record(), record("never", 2100),
                                       record("seq-small")])
        text = report.compare_text(changes)
        self.assertRegex(text, r"patched never +IOPS +2000 +2100 +\+5.00% "
                         r"+0.20%")
        self.assertRegex(text, r"patched seq-small +whole cell .* came")
        self.assertIn("2 changes beyond the noise, in 2 cells (2 cells "
                      "compared, noise 0.002)", text)
        self.assertAlmostEqual(changes[0]["change"], 0.05)

    def test_text_of_nothing(self):
        """Says so, with the count and the noise."""
        old = [record(), record("never")]
        self.assertEqual(report.compare_text(report.compare(old, old,
                                                            noise=0.01)),
                         "nothing changed beyond the noise (2 cells "
                         "compared, noise 0.01)")

    def test_bad_noise(self):
        """No number from 0 to 1."""
        for noise in (-1, 2, "x", float("nan")):
            with self.assertRaisesRegex(report.ReportError, "noise is"):
                report.compare([], [], noise)


def sample():
    """Records of two profiles, with names that are special to gnuplot."""
    found = []
    for workload in ("rand4k-s32", "seq4k-s32", NASTY):
        for number in (1, 2):
            found += [record("always", 1000 + number, number,
                             workload=workload, kernel="unpatched"),
                      record("never", 1030 + number, number,
                             workload=workload),
                      record("seq-small", 900 + number, number,
                             workload=workload)]
    return found + runs("never", [5], profile="hdd", lat_us=None) + \
        runs("always", [5], profile="hdd", lat_us=None)


class Plots(Scratch):
    """plots, with gnuplot where it has to run."""

    def draw(self, records, name="x"):
        """Names of the files that plots() says it wrote."""
        paths = report.plots(report.summarise(records), self.dir, name)
        names = [os.path.basename(path) for path in paths]
        self.assertEqual(sorted(names), sorted(os.listdir(self.dir)))
        return names

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_files(self):
        """Four, which are what their names say, and show the names."""
        self.assertEqual(self.draw(sample()), [
            "x-ratio.svg", "x-ratio.png", "x-latency.svg", "x-latency.png"])
        for kind in ("ratio", "latency"):
            root = xml.etree.ElementTree.fromstring(
                self.read("x-%s.svg" % kind))
            text = " ".join(" ".join(root.itertext()).split())
            for word in ("seq4k-s32", "patched never", "patched seq-small",
                         "touch OWNED`", '"q" \\'):
                self.assertIn(word, text)
            with open(self.path("x-%s.png" % kind), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertIn("not at 0", self.read("x-ratio.svg"))
        self.assertIn("p99.9", self.read("x-latency.svg"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_nothing_to_draw(self):
        """No baseline, no latencies: no file, and no mention of one."""
        self.assertEqual(self.draw(runs("never", [5], lat_us=None)), [])
        self.assertEqual(self.draw(runs("always", [5], lat_us=None)), [])
        self.assertEqual(self.draw([record()]),
                         ["x-latency.svg", "x-latency.png"])

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_odd_figures(self):
        """0, far outliers and equal latencies can be drawn."""
        flat = {"mean": 0, "p50": 50, "p99": 50}
        records = [record("always", 1000, lat_us=flat),
                   record("never", 0, lat_us=flat),
                   record("seq-small", 1e6, lat_us={"p999": 1e7})]
        self.assertEqual(len(self.draw(records, "../a b")), 4)

    def test_no_gnuplot(self):
        """Says how to install it."""
        old = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", old)
        os.environ["PATH"] = self.dir
        with self.assertRaisesRegex(report.ReportError, "gnuplot-nox"):
            self.draw(sample())
        self.assertEqual(os.listdir(self.dir), [])

    def test_gnuplot_fails(self):
        """What it said is passed on, and nothing is left."""
        with open(self.path("gnuplot"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho half\necho no cairo >&2\nexit 1\n")
        os.chmod(self.path("gnuplot"), 0o755)
        old = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", old)
        os.environ["PATH"] = self.dir + ":" + old
        with self.assertRaisesRegex(report.ReportError, "no cairo"):
            self.draw(sample())
        self.assertEqual(os.listdir(self.dir), ["gnuplot"])

    def test_bars_leave_the_baseline_out(self):
        """It is the line at 1, which is inside the axis."""
        cells = report.summarise(sample())
        script = "\n".join(report.ratio_plot(cells)[0])
        self.assertNotIn('"unpatched always"', script)
        self.assertIn('"patched never"', script)
        self.assertIn("1 with lines", script)
        for several in (cells, [one for one in cells
                                if one["policy"] == "never"]):
            low, high, _ = report.ratio_range(
                [one for one in several if one["ratio"]], True)
            self.assertLess(low, 1)
            self.assertGreater(high, 1)
            self.assertGreater(low, 0)

    def test_error_bars(self):
        """The deviation is in the data, 0 for one run."""
        def deviation(records):
            return report.bar_data([cell(records, "never")],
                                   {"rand4k-s32": 0}, 2, 0)[0].split()[-1]
        self.assertGreater(float(deviation(
            runs("always", [97, 103]) + runs("never", [97, 103]))), 0.01)
        self.assertEqual(float(deviation(
            runs("always", [97]) + runs("never", [97]))), 0)

    def test_bars(self):
        """Side by side, from 1 to the ratio, inside the axis."""
        one = cell(runs("always", [100]) + runs("never", [80]), "never")
        bars = [[float(word) for word in report.bar_data(
            [one], {"rand4k-s32": 3}, 4, index)[0].split()]
                for index in (0, 1)]
        for index, (x, y, left, right, bottom, top, _) in enumerate(bars):
            self.assertAlmostEqual(x, 3 + (index + 0.5) / 4)
            self.assertEqual((y, bottom, top), (0.8, 0.8, 1))
            self.assertAlmostEqual(x - left, right - x)
        self.assertLess(bars[0][3], bars[1][2])
        for ratio in (0.8, 0.99, 1.004, 1.8):
            one.update(ratio=ratio, ratio_sd=0.01)
            low, high, step = report.ratio_range([one], True)
            self.assertLess(low, min(1, ratio - 0.01))
            self.assertGreater(high, max(1, ratio + 0.01))
            self.assertLess(high - low, 1.6 * (abs(ratio - 1) + 0.025))
            self.assertTrue(2 <= (high - low) / step <= 8)

    def test_latency_lines(self):
        """The mean stands alone; the percentiles are joined."""
        self.assertEqual(
            report.latency_data(cell([record()], "always"), 0.1),
            ["0.100 50", "", "1.100 45", "2.100 90", "3.100 200"])

    def test_axis_name(self):
        """The baseline's, or just always if there are two."""
        cells = report.summarise([record()])
        self.assertEqual(report.baseline_name(cells), "patched always")
        cells += report.summarise([record(kernel="unpatched")])
        self.assertEqual(report.baseline_name(cells), "always")

    def test_ticks(self):
        """Three or more, all inside, however narrow the range."""
        for low, high in ((90, 140), (1, 10000), (99.5, 101), (0.02, 0.3),
                          (8, 11)):
            ticks = report.log_ticks(low, high)
            self.assertGreaterEqual(len(ticks), 3, (low, high))
            self.assertTrue(all(low <= tick <= high * 1.0001
                                for tick in ticks))

    def test_quoted(self):
        """Nothing special is left between the quotes."""
        self.assertRegex(report.quoted(NASTY), r'^"(\\\d{3}|[\w .,/:()=+-])*"$')
        self.assertEqual(report.quoted("a`µ"), '"a\\140\\302\\265"')

    def test_wrapped(self):
        """Names break at hyphens, and lose nothing."""
        self.assertEqual(report.wrapped("libaio-rand4k-s32", 14),
                         ["libaio-rand4k-", "s32"])
        self.assertEqual(report.wrapped("onecorepeak", 4), ["onecorepeak"])
        self.assertEqual(report.wrapped("a b", 9), ["a b"])

    def test_styles_are_complete(self):
        """Every policy and kernel has one, and no colour is used twice."""
        for styles in (report.COLOURS, report.POINTS):
            self.assertEqual(set(styles), set(report.POLICIES))
        for styles in (report.FILLS, report.DASHES):
            self.assertEqual(set(styles), set(report.KERNELS))
        self.assertEqual(len(set(report.COLOURS.values())),
                         len(report.POLICIES))


class Page(html.parser.HTMLParser):
    """What a browser would see; complains of tags that do not match."""

    VOID = {"meta", "img", "br", "use", "path", "circle", "rect", "line"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text, self.ids = [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    def all(self, tag):
        """Attributes of all the tags of a name."""
        return [attrs for name, attrs in self.tags if name == tag]

    def words(self):
        """The text, each blank once."""
        return " ".join(" ".join(self.text).split())


SVG = ('<?xml version="1.0"?>\n<svg viewBox="0 0 1 1"><defs>'
       "<path id='p' d='M0,0'/></defs><use xlink:href='#p'/>"
       '<g id="q" clip-path="url(#p)"></g></svg>')


class Html(Scratch):
    """html."""

    def page(self, *sections, title="T"):
        """Write and parse it."""
        report.html(list(sections), self.path("r.html"), title)
        return Page(self.read("r.html"))

    def section(self, records, **fields):
        """A section with cells."""
        return dict({"suite": "threads", "claim": "", "command": "",
                     "kernels": "", "note": "", "plots": [],
                     "cells": report.summarise(records)}, **fields)

    def test_says_everything(self):
        """Claim, command, kernels, note, table."""
        page = self.page(self.section(
            [record(), record("never", 1100)], claim="C1", command="C2",
            kernels=[{"name": "base", "config": ["-X", "-Y"]}, "K2"],
            note="N1"))
        for word in ("C1", "C2", "name: base; config: -X, -Y", "K2", "N1",
                     "T", "threads", "gen4, rand4k-s32", "1100",
                     "Ratio: IOPS to patched always"):
            self.assertIn(word, page.words())
        self.assertEqual(len(page.all("caption")), 1)
        heads = [one for one in page.all("th") if one["scope"] == "col"]
        spans = [one["colspan"] for one in page.all("th")
                 if one["scope"] == "rowgroup"]
        self.assertEqual(spans, [str(len(heads))])
        self.assertEqual(page.all("html")[0]["lang"], "en")
        self.assertEqual([page.tags[number][0] for number in
                          range(len(page.tags)) if
                          page.tags[number][0] in ("h1", "h2", "h3")],
                         ["h1", "h2", "h3"])
        self.assertEqual(os.listdir(self.dir), ["r.html"])

    def test_escaped(self):
        """Names are text, never markup."""
        nasty = '<script>alert("1")</script>&'
        fields = {name: nasty for name in ("suite", "claim", "command",
                                           "kernels", "note")}
        records = [record(workload=nasty, profile=nasty, suite=nasty)]
        page = self.page(self.section(records, **fields),
                         self.section(records, **fields), title=nasty)
        self.assertEqual(page.all("script"), [])
        self.assertEqual(page.words().count(nasty), 20)
        self.assertTrue(all(nasty in region["aria-label"] for region in
                            page.all("div")))

    def test_best_is_marked(self):
        """By words too, not by colour only."""
        page = self.page(self.section([record(), record("never", 1100)]))
        rows = [row.get("class") for row in page.all("tr")]
        self.assertEqual(rows, [None, "group", None, "best"])
        self.assertIn("patched never (best)", page.words())
        self.assertNotIn("always (best)", page.words())

    def test_best_per_workload(self):
        """Each has its own."""
        page = self.page(self.section(
            [record(), record("never", 1100),
             record(workload="seq4k-s32"),
             record("never", 800, workload="seq4k-s32")]))
        self.assertRegex(page.words(), "never .best.*seq4k.*always .best")

    def test_svg_inside(self):
        """In the page, with own ids, described, and not from the network."""
        paths = [self.write("x-ratio.svg", SVG), self.path("x-ratio.png"),
                 self.write("x-latency.svg", SVG)]
        section = self.section([record()], plots=paths)
        page = self.page(section, dict(section))
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(len(page.all("svg")), 4)
        for picture in page.all("svg"):
            self.assertEqual(picture["role"], "img")
            self.assertIn("threads: ", picture["aria-label"])
        for link in page.all("use"):
            self.assertIn(link["xlink:href"][1:], page.ids)
        clips = [one["clip-path"] for one in page.all("g")]
        self.assertEqual(len(clips), 4)
        self.assertTrue(all(clip[5:-1] in page.ids for clip in clips))
        self.assertNotIn("<?xml", self.read("r.html"))
        self.assertNotRegex(self.read("r.html"), r"(src|href)=.https?:")

    def test_png_inside(self):
        """Where there is no SVG."""
        self.write("x-ratio.png", "pixels")
        page = self.page(self.section([record()],
                                      plots=[self.path("x-ratio.png")]))
        self.assertEqual(page.all("img")[0]["src"],
                         "data:image/png;base64,cGl4ZWxz")
        self.assertIn("ratio", page.all("img")[0]["alt"])

    def test_bad_plots(self):
        """Absent, or no SVG."""
        for path, word in ((self.path("nix.svg"), "No such file"),
                           (self.write("a.svg", "text"), "is no SVG")):
            with self.assertRaisesRegex(report.ReportError, word):
                self.page(self.section([record()], plots=[path]))

    def test_links(self):
        """Several suites have a list, and its links lead somewhere."""
        page = self.page(self.section([record()]), self.section([record()]))
        for link in page.all("a"):
            self.assertIn(link["href"][1:], page.ids)
        self.assertEqual(len(page.all("a")), 2)
        self.assertEqual(self.page(self.section([record()])).all("a"), [])

    def test_style(self):
        """The header stays, and dark readers are thought of."""
        self.page(self.section([record()]))
        for word in ("position: sticky", "prefers-color-scheme: dark"):
            self.assertIn(word, self.read("r.html"))

    def test_sparse(self):
        """A section of a suite and no more."""
        self.assertIn("No records.", self.page({"suite": "x"}).words())


class CommandLine(Scratch):
    """main."""

    def call(self, *words, **env):
        """(exit code, stdout, stderr) of the program."""
        done = subprocess.run(
            [sys.executable, PROGRAM] + list(words), check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PYTHONIOENCODING="utf-8", **env))
        return (done.returncode, done.stdout.decode("utf-8"),
                done.stderr.decode("utf-8"))

    def fails(self, word, *words):
        """Exit code 2, and one clear line on stderr."""
        code, out, errors = self.call(*words)
        self.assertEqual((code, out), (2, ""))
        self.assertIn(word, errors)
        self.assertNotIn("Traceback", errors)

    def file(self, name, records, **meta):
        """A file of records."""
        return self.write(name, {"records": records, "meta": meta})

    def test_table(self):
        """Of one file, and of several."""
        first = self.file("a.json", [record()])
        second = self.file("b.json", [record("never", 1100)])
        self.assertEqual(self.call(first), (0, report.table(
            report.summarise([record()])) + "\n", ""))
        self.assertEqual(self.call(first, second)[1], report.table(
            report.summarise([record(), record("never", 1100)])) + "\n")

    def test_bad_input(self):
        """Errors name the file and what is accepted."""
        good = self.file("a.json", [record()])
        self.fails("nix.json", self.path("nix.json"))
        self.fails("accepted: a number", self.file("b.json",
                                                   [record(iops="x")]))
        self.fails("list of records is empty", self.file("c.json", []))
        self.fails("is in %s already" % good, good, good)
        self.fails("is in %s already" % good, good,
                   self.file("d.json", [record()]))
        self.fails("nix.json", good, "--compare", self.path("nix.json"))

    def test_bad_usage(self):
        """No file, unknown options, bad noise."""
        good = self.file("a.json", [record()])
        self.fails("FILE.json")
        self.fails("--nix", good, "--nix")
        self.fails("--noise needs --compare", good, "--noise", "0.1")
        for noise in ("x", "-1", "nan", "2"):
            self.fails("accepted: a number from 0 to 1", good, "--compare",
                       good, "--noise=" + noise)

    def test_help(self):
        """Names every option and the exit codes."""
        code, out, _ = self.call("--help")
        self.assertEqual(code, 0)
        for word in ("--html", "--plots", "--compare", "--noise", "Exit"):
            self.assertIn(word, out)

    def test_compare(self):
        """Old is the option's, new is the argument's."""
        old = self.file("a.json", [record(iops=1000)])
        new = self.file("b.json", [record(iops=1010)])
        code, out, _ = self.call(new, "--compare", old)
        self.assertEqual(code, 0)
        self.assertIn("+1.00%", out)
        self.assertNotIn("busy", out)
        self.assertEqual(
            self.call(new, "--compare", old, "--noise", "0.02")[1],
            "nothing changed beyond the noise (1 cells compared, "
            "noise 0.02)\n")

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_report(self):
        """Plots, page and meta; two suites, one with its own claim."""
        first = self.file("a.json", sample() + [
            dict(one, suite="a/b") for one in sample()], note="N1",
                          suites={"a/b": {"claim": "C1"}})
        second = self.file("b.json", [record(suite="z")], claim="C2")
        code, out, errors = self.call(
            first, second, "--plots", self.path("p"), "--html",
            self.path("r.html"))
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("wrote %s\n" % self.path("p/a-b-ratio.svg"), out)
        self.assertTrue(out.endswith("wrote %s\n" % self.path("r.html")))
        self.assertEqual(len(os.listdir(self.path("p"))), 10)
        page = Page(self.read("r.html"))
        self.assertEqual(page.words().count("C1"), 1)
        self.assertEqual(page.words().count("C2"), 1)
        self.assertEqual(page.words().count("N1"), 2)
        self.assertEqual(len(page.all("svg")), 5)
        self.assertEqual(len(page.ids), len(set(page.ids)))

    def test_report_without_gnuplot(self):
        """A page without plots, and a warning; --plots is refused."""
        good = self.file("a.json", [record()])
        os.mkdir(self.path("empty"))
        words = (good, "--html", self.path("r.html"))
        code, _, errors = self.call(*words, PATH=self.path("empty"))
        self.assertEqual(code, 0)
        self.assertIn("gnuplot-nox", errors)
        self.assertIn("1000", Page(self.read("r.html")).words())
        code, _, errors = self.call(*words, "--plots", self.path("p"),
                                    PATH=self.path("empty"))
        self.assertEqual(code, 2)
        self.assertIn("gnuplot-nox", errors)

    def test_can_not_write(self):
        """A directory that is not there, and one that is a file."""
        good = self.file("a.json", [record()])
        for option, path in (("--html", "nix/r.html"), ("--plots",
                                                        "a.json/p")):
            code, _, errors = self.call(good, option, self.path(path))
            self.assertEqual(code, 2)
            self.assertIn(self.path(path), errors)

    def test_broken_pipe(self):
        """A reader who leaves is no error."""
        many = [record(workload="w%d" % number) for number in range(3000)]
        with subprocess.Popen(
                [sys.executable, PROGRAM, self.file("a.json", many)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        self.assertEqual((process.returncode, errors), (0, b""))

    def test_ascii_terminal(self):
        """± does not break a terminal that has none."""
        path = self.file("a.json", runs("always", [97, 103]))
        done = subprocess.run(
            [sys.executable, PROGRAM, path], check=False,
            env=dict(os.environ, PYTHONIOENCODING="ascii"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"100.0 ?4.2", done.stdout)

    def test_main_returns(self):
        """Callable from Python too."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(report.main([self.file("a.json", [record()])]),
                             0)
        self.assertIn("rand4k-s32", out.getvalue())


if __name__ == "__main__":
    unittest.main()
