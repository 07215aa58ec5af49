#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools' changes and report: what changed, and is it worse?"""
import contextlib
import io
import json
import os
import subprocess
import sys
import types
import unittest

from faketree import TOOLS
from reportcases import Scratch, record, runs
from plugtools.core import system
from plugtools.report import changes, records, results, verdict

OUT = types.SimpleNamespace(html=None, plots=None, verbose=True,
                            markdown=False)


def measured(iops=1000, p99=90, count=5, **fields):
    """Runs that scatter by some thousandths."""
    return [record(iops=iops * (1 + (number % 3 - 1) / 500), number=number,
                   lat_us={"mean": 50, "p50": 45, "p999": 200,
                           "p99": p99 * (1 + (number % 2) / 100)}, **fields)
            for number in range(count)]


def words(old, new):
    """{metric: what is said of it}"""
    return {one["metric"]: one.get("word")
            for one in changes.compare(old, new)}


class Compare(unittest.TestCase):
    """compare and text."""

    def test_better_and_worse(self):
        """More IOPS are better, more of p99 is worse; p99 has an interval."""
        found = changes.compare(measured(), measured(1100, 99))
        said = {one["metric"]: one for one in found}
        self.assertEqual(said["iops"]["word"], "better")
        p99 = said["lat_us.p99"]
        self.assertEqual(p99["word"], "worse")
        self.assertAlmostEqual(p99["ratio"], 1.1)
        self.assertLess(1.05, p99["low"])
        self.assertLess(p99["high"], 1.15)
        self.assertRegex(changes.text(found), r"p99 us +90\.36 +99\.40 "
                         r"+\+10\.0% \(\+\d\.\d to \+\d+\.\d\) +worse")

    def test_noise(self):
        """The same is the same; what scatters more may be chance."""
        self.assertEqual(set(words(measured(), measured()).values()),
                         {"same"})
        old = runs("always", [900, 1100, 1000, 950])
        new = runs("always", [1100, 1300, 900, 1050])
        self.assertEqual(words(old, new)["iops"], "may be chance")

    def test_many_comparisons(self):
        """What one comparison proves, one of many does not."""
        old, new = measured(count=3), measured(1005, count=3)
        self.assertEqual(words(old, new)["iops"], "may be chance")
        alone = [{name: value for name, value in one.items()
                  if name in ("kernel", "policy", "profile", "workload",
                              "suite", "iops", "run", "commit")}
                 for one in old + new]
        self.assertEqual(words(alone[:3], [dict(
            one, iops=one["iops"] + 4) for one in alone[3:]])["iops"],
                         "better")

    def test_one_run(self):
        """Has no interval, but a difference is told."""
        self.assertEqual(words([record()], [record(iops=1010)])["iops"],
                         "differs, one run")
        self.assertEqual(words([record()], [record(iops=1001)])["iops"],
                         "same")

    def test_every_metric(self):
        """All but the ratio and busy, which others imply."""
        self.assertEqual(set(words([record()], [record()])), {
            "iops", "insns_per_io", "lat_us.mean", "lat_us.p50",
            "lat_us.p99", "lat_us.p999", "cpu_us_per_io", "doorbells_per_io",
            "requests_per_io"})

    def test_came_and_went(self):
        """Cells and metrics of one side only, and from nothing."""
        old = [record(doorbells_per_io=0), record("never")]
        new = [record(insns_per_io=None), record("seq-small")]
        found = changes.compare(old, new)
        self.assertEqual([one["metric"] for one in found
                          if "ratio" not in one],
                         ["insns_per_io", "doorbells_per_io"])
        self.assertIn("from or to nothing", changes.text(found))
        self.assertEqual(changes.missing(old, new), [
            "threads: gen4, rand4k-s32, patched never"])

    def test_nothing_in_common(self):
        """Is refused, as it would always pass."""
        with self.assertRaisesRegex(records.ReportError, "no cell in common"):
            changes.compare([record()], [record(profile="gen5")])

    def test_p99_is_always_shown(self):
        """Before and after, also if it is the same; others are not."""
        text = changes.text(changes.compare(measured(), measured()))
        self.assertRegex(text, r"p99 us +90\.36 +90\.36 .* same")
        self.assertNotIn("p50", text)
        self.assertIn("0 of 9 figures differ, 0 of them beyond chance", text)


class Gate(Scratch):
    """report.compare, which is plugbench --compare."""

    def call(self, old, new, *args):
        """(exit status, what it printed)"""
        paths = []
        for name, found in (("old.json", old), ("new.json", new)):
            paths.append(self.path(name))
            records.save(paths[-1], found)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            return results.compare(*paths, *args), out.getvalue()

    def test_statuses(self):
        """0, 3 and 4, and why."""
        for old, new, want, text in (
                (measured(), measured(), 0, "no regression"),
                (measured(), measured(980), 0, "no regression"),
                (measured(), measured(960), 3, "regression: rand4k-s32 "
                 "always, IOPS: -4.0%"),
                (measured(), measured(p99=94), 3, "p99 us: +4.4%"),
                (measured(), measured(1100, 70), 0, "no regression"),
                (measured(), measured(960, count=1), 4, "cannot be told"),
                (measured(), measured(count=1), 4, "cannot be told"),
                (runs("always", [900, 1100]), runs("always", [850, 950]), 4,
                 "cannot be told")):
            status, out = self.call(old, new, 0.97)
            self.assertEqual(status, want, out)
            self.assertIn(text, out)

    def test_what_cannot_be_compared(self):
        """Does not pass; what neither file has is not asked for."""
        old, blind = measured(), [dict(one, lat_us=None) for one in measured()]
        for some, others, want, text in (
                (old, blind, 4, "always, p99 us: 90.36, then -"),
                (blind, old, 4, "always, p99 us: -, then 90.36"),
                (measured(p99=0), old, 4, "always, p99 us: 0, then 90.36"),
                (measured(0), old, 4, "always, IOPS: 0, then 9"),
                (measured(0), measured(0), 4, "always, IOPS: 0, then 0"),
                (measured(p99=0), measured(p99=0), 4, "p99 us: 0, then 0"),
                (old, measured(0), 3, "regression: rand4k-s32 always, IOPS: "),
                (old + [record("never")], old, 4, "cannot be told: only in "
                 "the old: threads: gen4, rand4k-s32, patched never"),
                (old, old + [record("never")], 0, "only in the new: threads"),
                (blind, blind, 0, "no regression")):
            status, out = self.call(some, others, 0.97)
            self.assertEqual(status, want, out)
            self.assertIn(text, out)

    def test_command(self):
        """plugbench ends with these."""
        for name, found in (("old.json", measured()),
                            ("new.json", measured(960)), ("bad.json", [])):
            records.save(self.path(name), found)
        for name, want in (("old.json", 0), ("new.json", 3), ("bad.json", 2)):
            done = subprocess.run(
                [sys.executable, "-B", os.path.join(TOOLS, "plugbench"),
                 "--compare", self.path("old.json"), self.path(name),
                 "--fail-below", "0.97"], check=False, capture_output=True)
            self.assertEqual(done.returncode, want, done.stderr)

    def test_without_a_limit(self):
        """It only tells."""
        status, out = self.call(measured(), measured(500))
        self.assertEqual(status, 0)
        self.assertIn("worse", out)

    def test_nomerges(self):
        """Of a host with 2, the half with 0 is compared with other hosts."""
        both = [dict(one, profile="gen4, nomerges=" + value)
                for value in "02" for one in measured(900)]
        status, out = self.call(measured(), both, 0.97)
        self.assertEqual(status, 3, out)
        self.assertIn("only in the new: threads: gen4, nomerges=2", out)
        self.assertEqual(self.call(both, both, 0.97)[0], 0)

    def test_json(self):
        """The comparisons for a program, with the status."""
        self.call(measured(), measured(900), 0.97, self.path("c.json"))
        found = json.loads(self.read("c.json"))
        self.assertEqual((found["status"], found["fail_below"]), (3, 0.97))
        self.assertEqual(found["comparisons"][0]["word"], "worse")

    def test_measured_differently(self):
        """Is told, since the figures then differ by themselves."""
        for name, limit, scheduler, size, legs in (
                ("old.json", 5000, "none", "100.0 GB", ["sda", "sdb"]),
                ("new.json", None, "bfq", "4000.0 GB", ["sda"])):
            records.save(self.path(name), measured(), {
                "iops_limit": limit, "scheduler": scheduler, "size": size,
                "legs": legs, "disk": "md0"})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            results.compare(self.path("old.json"), self.path("new.json"))
        for text in ("iops_limit 5000, then None", "scheduler none, then bfq",
                     "size 100.0 GB, then 4000.0 GB",
                     "legs sda and sdb, then sda"):
            self.assertIn("measured differently: " + text, out.getvalue())
        self.assertNotIn("md0", out.getvalue())

    def test_old_files(self):
        """Without a version they are read; of a later one they are refused.
        """
        old = self.write("old.json", {"records": measured()})
        self.assertEqual(results.old_records(old)[0], measured())
        for text, word in (({"version": 9, "records": []}, "version is 9"),
                           ({"records": []}, "list of records is empty"),
                           ("x", "is no JSON")):
            with self.assertRaisesRegex(system.UsageProblem, word):
                results.old_records(self.write("bad.json", text))


class Publish(Scratch):
    """publish and show."""

    META = {"note": "NOTE", "claim": "CLAIM", "disk": "nvme0n1",
            "warnings": ["WARNING"]}

    def printed(self, call, *args):
        """What a call prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            call(*args)
        return out.getvalue()

    def test_the_verdict_is_everywhere(self):
        """The same in the table, the page and the JSON."""
        found = measured() + [dict(one, policy="never")
                              for one in measured(1100)]
        out = self.printed(results.publish, found, self.META,
                           self.path("o.json"), types.SimpleNamespace(
                               **dict(vars(OUT), html=self.path("o.html"))))
        told = json.loads(self.read("o.json"))["verdict"]
        line = told["verdicts"][0]["text"]
        self.assertEqual(told, json.loads(json.dumps(verdict.of(found))))
        self.assertTrue(line.startswith("use never: IOPS +10.0% ("))
        self.assertIn(line, out)
        self.assertIn(line, self.read("o.html"))
        for word in ("NOTE", "wrote %s\n" % self.path("o.json"),
                     "wrote %s\n" % self.path("o.html")):
            self.assertIn(word, out)
        for word in ("CLAIM", "WARNING", "Plug policies of nvme0n1"):
            self.assertIn(word, self.read("o.html"))

    def test_show(self):
        """What publish() printed, from its file."""
        found = [dict(one, unplugs_per_io=0.25) for one in measured()]
        before = self.printed(results.publish, found, self.META,
                              self.path("o.json"), OUT)
        after = self.printed(results.show, self.path("o.json"), OUT)
        self.assertEqual(after, before.replace(
            "wrote %s\n" % self.path("o.json"), ""))
        self.assertIn("unplugs_per_io", after)
        self.assertIn("no verdict", after)

    def test_odd_words(self):
        """A name of a file that is no UTF-8 has a page, and no note is one.
        """
        path = self.write("o.json", {"records": measured(), "meta": {
            "note": None, "command": "plugbench --json x\udcf6"}})
        self.printed(results.show, path, types.SimpleNamespace(
            **dict(vars(OUT), html=self.path("o.html"))))
        self.assertIn("--json x\\udcf6", self.read("o.html"))

    def test_many_earlier(self):
        """However many there are, the next is set aside, too."""
        for number in range(1, 1001):
            self.write("o.json.~%d~" % number, "")
        path = self.write("o.json", "text")
        self.printed(results.keep_earlier, path)
        self.assertEqual(self.read("o.json.~1001~"), "text")

    def test_cannot_write(self):
        """Names the file."""
        with self.assertRaisesRegex(system.EnvironmentProblem, "nix/o.json"):
            self.printed(results.publish, measured(), {},
                         self.path("nix/o.json"), OUT)

    def test_complete(self):
        """What is the same in all records, in such form as a file takes."""
        some = [{"policy": "always", "iops": 1, "run": 0, "workload": "w"}]
        found = results.complete(some, {"model": "M"}, " A  B ", True, "c")
        records.check(found)
        self.assertEqual(
            [found[0][name] for name in ("profile", "kernel", "model",
                                         "suite", "commit")],
            ["A B", "patched", "M", "plugbench", "c"])


if __name__ == "__main__":
    unittest.main()
