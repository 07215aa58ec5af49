#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools' plots and page."""
import html.parser
import os
import unittest
import xml.etree.ElementTree

from reportcases import NASTY, Scratch, record, runs
from plugtools.report import chart, page, records, summary, verdict

SVG = "{http://www.w3.org/2000/svg}"


def sample():
    """Records of two profiles, with names that are special to markup."""
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


def judged(**changes):
    """A verdict on always and modes that change IOPS by so much, in five
    rounds that differ a little."""
    found = []
    for number in range(1, 6):
        found.append(record("always", 1000 + number, number))
        found += [record(mode.replace("_", "-"), (1000 + number * 1.1) * ratio,
                         number) for mode, ratio in changes.items()]
    return verdict.of(found)


def texts_of(svg):
    """[(class, text)] of a chart."""
    return [(one.get("class"), one.text) for one in
            xml.etree.ElementTree.fromstring(svg).iter() if
            one.tag.endswith("text")]


class Chart(Scratch):
    """chart: the change of each mode as a bar, with its interval."""

    def charts(self, found):
        """{metric: root of its SVG}"""
        return {metric: xml.etree.ElementTree.fromstring(drawn)
                for _, metric, drawn in chart.charts(found)}

    def bars(self, root):
        """{mode: (class, left, right, ends of the interval)} in pixels."""
        found = {}
        for group in root.iter(SVG + "g"):
            rect = group.find(SVG + "rect")
            left = float(rect.get("x"))
            ends = group.find(SVG + "line")
            found[group.find(SVG + "text").text] = (
                group.get("class"), left, left + float(rect.get("width")),
                ends is not None and (float(ends.get("x1")),
                                      float(ends.get("x2"))))
        return found

    def test_bars(self):
        """To the right of zero is more; the interval is around the end."""
        root = self.charts(judged(never=1.1, seq_small=.9,
                                  adaptive=1))["iops"]
        zero = float(next(one.get("x1") for one in root.iter(SVG + "line")
                          if one.get("class") == "zero"))
        bars = self.bars(root)
        kind, left, right, (low, high) = bars["never"]
        self.assertEqual((kind, left), ("better", zero))
        self.assertTrue(zero < low <= right <= high <= chart.WIDTH)
        kind, left, right, (low, high) = bars["seq-small"]
        self.assertEqual((kind, right), ("worse", zero))
        self.assertTrue(chart.LABEL <= low <= left <= high < zero)
        self.assertNotIn(bars["adaptive"][0], ("better", "worse"))
        # a hundredth of the ten percent is still to be seen
        self.assertGreater(bars["never"][2] - zero, 80)

    def test_says_everything(self):
        """The figures as words, also for who only hears or points."""
        drawn = dict((metric, svg) for _, metric, svg in
                     chart.charts(judged(never=1.1)))
        self.assertEqual(set(drawn), set(verdict.MARGINS))
        self.assertIn(("figure", "+10.0%"), texts_of(drawn["iops"]))
        self.assertIn(("name", "rand4k-s32"), texts_of(drawn["iops"]))
        self.assertRegex(drawn["iops"], r"<title>never \+10\.0% \(.*better<")
        self.assertIn("p99; less is better", drawn["lat_us.p99"])

    def test_ticks(self):
        """Round, few, and with zero."""
        for low, high in ((-.5, .5), (-1, 12), (-90, 3), (0, 100), (-3, .1)):
            found = chart.ticks(low, high)
            self.assertIn(0, found)
            self.assertTrue(3 <= len(found) <= 7, found)
            self.assertTrue(low <= found[0] and found[-1] <= high, found)

    def test_odd_figures(self):
        """One run, and far outliers: within the picture, and no interval
        where there is none."""
        for ratio in 1, 1e-6, 1e9:
            found = verdict.of([record(), record("never", 1000 * ratio)])
            bar = self.bars(self.charts(found)["iops"])["never"]
            self.assertFalse(bar[3])
            self.assertTrue(0 <= bar[1] <= bar[2] <= chart.WIDTH)

    def test_files(self):
        """Each by itself, with its colours, and a name that is safe."""
        found = verdict.of([dict(one, profile="../a b") for one in sample()
                            if one["profile"] != "hdd"])
        paths = chart.write(found, self.path("d"), "x")
        self.assertEqual([os.path.basename(path) for path in paths], [
            "x-..-a-b-IOPS.svg", "x-..-a-b-p99.svg",
            "x-..-a-b-CPU-per-I-O.svg"])
        text = self.read("d/x-..-a-b-IOPS.svg")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("touch OWNED`", dict((text, kind) for kind, text in
                                           texts_of(text)).__repr__())
        self.assertEqual(chart.write(None, self.dir, "x"), [])
        self.write("file", "")
        with self.assertRaisesRegex(records.ReportError, "file"):
            chart.write(found, self.path("file"), "x")


class Page(html.parser.HTMLParser):
    """What a browser would see; complains of tags that do not match."""

    VOID = {"meta"}

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
                     "kernels": "", "note": "",
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
                         ["h1", "h2"])
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

    def test_charts_inside(self):
        """Drawn in the page, from nowhere else; folded if there are more."""
        found = [dict(one, profile=name) for name in ("a", "b")
                 for one in sample() if one["profile"] != "hdd"]
        for some, folds in ((found[:len(found) // 2], 1), (found, 3)):
            shown = self.page(self.section(some, verdict=verdict.of(some)))
            self.assertEqual(len(shown.all("svg")), 3 if folds == 1 else 6)
            self.assertEqual(len(shown.all("details")), folds)
        self.assertNotRegex(self.read("r.html"), r"(src|href)=.https?:")

    def test_order(self):
        """What to do first, then what it is drawn from; notes last."""
        found = runs("always", [1000, 1001, 1002]) + runs(
            "never", [1200, 1201, 1202])
        shown = self.page(self.section(
            found, verdict=verdict.of(found), note="N1", claim="C1",
            facts=[("Disk", "M1, firmware 2"), ("Kernel", "K1"),
                   ("Measured", "")],
            holds=["scheduler none"])).words()
        places = [shown.index(word) for word in (
            "Use never: IOPS", "M1, firmware 2 · K1", "with scheduler none.",
            "Change of IOPS", "never (use)", "Details", "C1",
            "95% intervals of the ratio", "N1")]
        self.assertEqual(places, sorted(places))

    def test_prints(self):
        """No row is cut, no region scrolls, and what is folded shows."""
        self.page(self.section([record()]))
        style = self.read("r.html").partition("@media print")[2]
        for word in ("overflow: visible", "break-inside: avoid",
                     "::details-content"):
            self.assertIn(word, style)
        self.assertNotIn("max-height", self.read("r.html"))

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
