#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools' plots and page."""
import html.parser
import os
import shutil
import sys
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from plugtools import page, plots, records, summary, verdict
from reportcases import NASTY, Scratch, cell, record, runs


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

    def draw(self, found, name="x"):
        """Names of the files that plots() says it wrote."""
        paths = plots.plots(summary.summarise(found), self.dir, name)
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
        self.assertIn("IOPS to ", self.read("x-ratio.svg"))
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
        found = [record("always", 1000, lat_us=flat),
                   record("never", 0, lat_us=flat),
                   record("seq-small", 1e6, lat_us={"p999": 1e7})]
        self.assertEqual(len(self.draw(found, "../a b")), 4)

    def test_no_gnuplot(self):
        """Says how to install it."""
        old = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", old)
        os.environ["PATH"] = self.dir
        with self.assertRaisesRegex(records.ReportError, "gnuplot-nox"):
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
        with self.assertRaisesRegex(records.ReportError, "no cairo"):
            self.draw(sample())
        self.assertEqual(os.listdir(self.dir), ["gnuplot"])

    def test_bars_leave_the_baseline_out(self):
        """It is the line at 0, where all bars start."""
        script = "\n".join(plots.ratio_plot(summary.summarise(sample()))[0])
        self.assertNotIn('"unpatched always"', script)
        self.assertIn('"patched never"', script)
        self.assertIn("set xzeroaxis", script)

    def test_bar_data(self):
        """The change in percent, and its deviation, which may be unknown."""
        one = cell(runs("always", [100]) + runs("never", [80]), "never")
        self.assertEqual(plots.change(one), "-20.0000 0.0000")
        one["ratio_sd"] = 0.03
        self.assertEqual(plots.change(one), "-20.0000 3.0000")
        self.assertEqual(plots.change(None), "NaN NaN")

    def test_bars_are_below_their_names(self):
        """A workload that a mode lacks leaves a gap, and moves no bar."""
        found = [record(workload=name) for name in ("rand4k-s32",
                                                    "seq4k-s32")]
        found += [record("never", 500, workload="seq4k-s32")]
        script = plots.ratio_plot(summary.summarise(found + [
            record("adaptive", 900, workload=name)
            for name in ("rand4k-s32", "seq4k-s32")]))[0]
        start = script.index("$d0_0 << END")
        self.assertEqual(script[start + 1:start + 3],
                         ["NaN NaN", "-50.0000 0.0000"])
        self.assertIn('set xtics ("rand4k-s32" 0, "seq4k-s32" 1)', script)

    def test_latency_rows(self):
        """Mean and percentiles; what a logarithm cannot show is left out."""
        self.assertEqual(list(plots.latency_rows(cell([record()], "always"))),
                         ["0 50", "1 45", "2 90", "3 200"])
        self.assertEqual(list(plots.latency_rows(cell([record(
            lat_us={"mean": 0, "p99": 7})], "always"))), ["2 7"])

    def test_axis_name(self):
        """The baseline's, or just always if there are two."""
        cells = summary.summarise([record()])
        self.assertEqual(summary.baseline_name(cells), "patched always")
        cells += summary.summarise([record(kernel="unpatched")])
        self.assertEqual(summary.baseline_name(cells), "always")

    def test_quoted(self):
        """Nothing special is left between the quotes."""
        self.assertRegex(plots.quoted(NASTY), r'^"(\\\d{3}|[\w .,/:()=+-])*"$')
        self.assertEqual(plots.quoted("a`µ"), '"a\\140\\302\\265"')

    def test_styles_are_complete(self):
        """Every policy and kernel has one, and no colour is used twice."""
        for styles in (plots.COLOURS, plots.POINTS):
            self.assertEqual(set(styles), set(records.POLICIES))
        for styles in (plots.FILLS, plots.DASHES):
            self.assertEqual(set(styles), set(records.KERNELS))
        self.assertEqual(len(set(plots.COLOURS.values())),
                         len(records.POLICIES))


class Page(html.parser.HTMLParser):
    """What a browser would see; complains of tags that do not match."""

    VOID = {"meta", "img"}

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


class Html(Scratch):
    """html."""

    def page(self, *sections, title="T"):
        """Write and parse it."""
        page.html(list(sections), self.path("r.html"), title)
        return Page(self.read("r.html"))

    def section(self, found, **fields):
        """A section with cells."""
        return dict({"suite": "threads", "claim": "", "command": "",
                     "kernels": "", "note": "", "plots": [],
                     "cells": summary.summarise(found)}, **fields)

    def test_says_everything(self):
        """Claim, command, kernels, note, table."""
        shown = self.page(self.section(
            [record(), record("never", 1100)], claim="C1", command="C2",
            kernels=["K1", "K2"], note="N1"))
        for word in ("C1", "C2", "K1 K2", "N1",
                     "T", "threads", "gen4, rand4k-s32", "1100",
                     "Ratio: IOPS to patched always"):
            self.assertIn(word, shown.words())
        self.assertEqual(len(shown.all("caption")), 1)
        heads = [one for one in shown.all("th") if one["scope"] == "col"]
        spans = [one["colspan"] for one in shown.all("th")
                 if one["scope"] == "rowgroup"]
        self.assertEqual(spans, [str(len(heads))])
        self.assertEqual(shown.all("html")[0]["lang"], "en")
        self.assertEqual([shown.tags[number][0] for number in
                          range(len(shown.tags)) if
                          shown.tags[number][0] in ("h1", "h2", "h3")],
                         ["h1", "h2", "h3"])
        self.assertEqual(os.listdir(self.dir), ["r.html"])

    def test_escaped(self):
        """Names are text, never markup."""
        nasty = '<script>alert("1")</script>&'
        fields = {name: nasty for name in ("suite", "claim", "command",
                                           "kernels", "note")}
        found = [record(workload=nasty, profile=nasty, suite=nasty)]
        shown = self.page(self.section(found, **fields),
                         self.section(found, **fields), title=nasty)
        self.assertEqual(shown.all("script"), [])
        self.assertEqual(shown.words().count(nasty), 20)
        self.assertTrue(all(nasty in region["aria-label"] for region in
                            shown.all("div")))

    def test_the_mode_to_use_is_marked(self):
        """By words too, not by colour only, and for each workload its own."""
        found = []
        for number in range(5):
            found += [record(iops=1000 + number, number=number),
                      record("never", 1200 + number, number),
                      record(iops=1000, number=number, workload="seq4k-s32"),
                      record("never", 800 + number, number,
                             workload="seq4k-s32")]
        opinion = verdict.of(found)
        shown = self.page(self.section(found, verdict=opinion))
        self.assertEqual(
            [row.get("class") for row in shown.all("tr")][:5],
            [None, "group", "use", "group", None])
        self.assertEqual(shown.words().count("(use)"), 1)
        for line in verdict.lines_of(opinion):
            self.assertIn(" ".join(line.split()), shown.words())

    def test_pictures_inside(self):
        """Of both formats the SVG; described, and not from the network."""
        paths = [self.write("x-ratio.svg", "drawn"), self.path("x-ratio.png"),
                 self.write("x-latency.png", "pixels")]
        shown = self.page(self.section([record()], plots=paths))
        self.assertEqual([one["src"] for one in shown.all("img")], [
            "data:image/svg+xml;base64,ZHJhd24=",
            "data:image/png;base64,cGl4ZWxz"])
        self.assertIn("threads: Change of IOPS", shown.all("img")[0]["alt"])
        self.assertNotRegex(self.read("r.html"), r"(src|href)=.https?:")

    def test_absent_plot(self):
        """Is an error that names it."""
        with self.assertRaisesRegex(records.ReportError,
                                    "nix.svg: No such file"):
            self.page(self.section([record()], plots=[self.path("nix.svg")]))

    def test_links(self):
        """Several suites have a list, and its links lead somewhere."""
        shown = self.page(self.section([record()]), self.section([record()]))
        for link in shown.all("a"):
            self.assertIn(link["href"][1:], shown.ids)
        self.assertEqual(len(shown.all("a")), 2)
        self.assertEqual(self.page(self.section([record()])).all("a"), [])

    def test_style(self):
        """The header stays, and dark readers are thought of."""
        self.page(self.section([record()]))
        for word in ("position: sticky", "color-scheme: light dark"):
            self.assertIn(word, self.read("r.html"))

    def test_sparse(self):
        """A section of a suite and no more."""
        self.assertIn("No records.", self.page({"suite": "x"}).words())


if __name__ == "__main__":
    unittest.main()
