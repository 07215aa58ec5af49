# SPDX-License-Identifier: GPL-2.0
"""plugtools' charts and page."""
import re
import xml.etree.ElementTree

import pytest

from reportcases import NASTY, record, runs
from plugtools.report import chart, page, summary, verdict

SVG = "{http://www.w3.org/2000/svg}"


def sample():
    return [record(mode, iops + number, number, workload=workload, **more)
            for workload in ("rand4k-s32", "seq4k-s32", NASTY)
            for number in (1, 2) for mode, iops, more in (
                ("always", 1000, {"kernel": "unpatched"}), ("never", 1030, {}),
                ("seq-small", 900, {}))]


def judged(**changes):
    """A verdict on always and modes that change IOPS by so much, in five
    rounds that differ a little."""
    return verdict.of([record(mode.replace("_", "-"), (1000 + number * 1.1)
                              * ratio, number) for number in range(1, 6)
                       for mode, ratio in {"always": 1, **changes}.items()])


# --- charts ----------------------------------------------------------------
def charts(found):
    """{metric: root of its SVG}"""
    return {metric: xml.etree.ElementTree.fromstring(drawn)
            for _, metric, drawn in chart.charts(found)}


def bars(root):
    """{mode: (class, left, right, ends of the interval)} in pixels."""
    found = {}
    for group in root.iter(SVG + "g"):
        rect, ends = group.find(SVG + "rect"), group.find(SVG + "line")
        left = float(rect.get("x"))
        found[group.find(SVG + "text").text] = (
            group.get("class"), left, left + float(rect.get("width")),
            ends is not None and (float(ends.get("x1")),
                                  float(ends.get("x2"))))
    return found


def test_bars():
    """To the right of zero is more; the interval is around the end."""
    root = charts(judged(never=1.1, seq_small=.9, adaptive=1))["iops"]
    zero, = [float(one.get("x1")) for one in root.iter(SVG + "line")
             if one.get("class") == "zero"]
    found = bars(root)
    kind, left, right, (low, high) = found["never"]
    assert (kind, left) == ("better", zero)
    assert zero < low <= right <= high <= chart.WIDTH
    # a hundredth of the ten percent is still to be seen
    assert right - zero > 80
    kind, left, right, (low, high) = found["seq-small"]
    assert (kind, right) == ("worse", zero)
    assert chart.LABEL <= low <= left <= high < zero
    assert found["adaptive"][0] not in ("better", "worse")


def test_chart_says_everything():
    """The figures as words, also for who only hears or points."""
    drawn = {metric: svg for _, metric, svg in chart.charts(judged(never=1.1))}
    assert set(drawn) == set(verdict.MARGINS)
    texts = [(one.get("class"), one.text) for one in
             xml.etree.ElementTree.fromstring(drawn["iops"]).iter(SVG + "text")]
    assert {("figure", "+10.0%"), ("name", "rand4k-s32")} < set(texts)
    assert re.search(r"<title>never \+10\.0% \(.*better<", drawn["iops"])
    assert "p99; less is better" in drawn["lat_us.p99"]


@pytest.mark.parametrize("low, high", [
    (-.5, .5), (-1, 12), (-90, 3), (0, 100), (-3, .1)])
def test_ticks(low, high):
    found = chart.ticks(low, high)
    assert 0 in found and 3 <= len(found) <= 7
    assert low <= found[0] and found[-1] <= high


@pytest.mark.parametrize("ratio", [1, 1e-6, 1e9])
def test_odd_figures(ratio):
    """One run, and far outliers: within the picture, and no interval where
    there is none."""
    bar = bars(charts(verdict.of([
        record(), record("never", 1000 * ratio)]))["iops"])["never"]
    assert not bar[3]
    assert 0 <= bar[1] <= bar[2] <= chart.WIDTH


# --- the page --------------------------------------------------------------
class Page:
    """What a browser would see; complains of tags that do not match."""

    def __init__(self, text):
        self.source, root = text, xml.etree.ElementTree.fromstring(text)
        self.tags = [(one.tag.replace(SVG, ""), one.attrib)
                     for one in root.iter()]
        self.words = " ".join(" ".join(
            text for part in ("head/title", "body")
            for text in root.find(part).itertext()).split())

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def shown(tmp_path):
    def write(*sections, title="T"):
        page.html(list(sections), tmp_path / "r.html", title)
        assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
        return Page((tmp_path / "r.html").read_text("utf-8"))
    return write


def section(found, **fields):
    return {"suite": "threads", "claim": "", "command": "", "kernels": "",
            "note": "", "cells": summary.summarise(found), **fields}


def test_page_says_everything(shown):
    got = shown(section([record(), record("never", 1100)], claim="C1",
                        command="C2", kernels=["K1", "K2"], note="N1"))
    for word in ("C1", "C2", "K1 K2", "N1", "T", "threads",
                 "gen4, rand4k-s32", "1100", "Ratio: IOPS to patched always"):
        assert word in got.words
    assert len(got.all("caption")) == 1
    heads = [one for one in got.all("th") if one["scope"] == "col"]
    assert [one["colspan"] for one in got.all("th")
            if one["scope"] == "rowgroup"] == [str(len(heads))]
    assert got.all("html")[0]["lang"] == "en"
    assert [tag for tag, _ in got.tags if re.fullmatch("h[1-6]", tag)] == [
        "h1", "h2"]
    assert got.all("a") == []


def test_escaped(shown):
    nasty = '<script>alert("1")</script>&'
    one = section([record(workload=nasty, profile=nasty, suite=nasty)],
                  **dict.fromkeys(("suite", "claim", "command", "kernels",
                                   "note"), nasty))
    got = shown(one, one, title=nasty)
    assert got.all("script") == []
    assert got.words.count(nasty) == 20
    assert all(nasty in region["aria-label"] for region in got.all("div"))


def test_the_mode_to_use_is_marked(shown):
    """By words too, not by colour only, and for each workload its own."""
    found = []
    for number in range(5):
        found += [record(iops=1000 + number, number=number),
                  record("never", 1200 + number, number),
                  record(iops=1000, number=number, workload="seq4k-s32"),
                  record("never", 800 + number, number, workload="seq4k-s32")]
    opinion = verdict.of(found)
    got = shown(section(found, verdict=opinion))
    assert [row.get("class") for row in got.all("tr")][:5] == [
        None, "group", "use", "group", None]
    assert got.words.count("(use)") == 1
    for line in verdict.lines_of(opinion):
        assert " ".join(line.split()) in got.words


@pytest.mark.parametrize("profiles, drawn, folds", [("a", 3, 1), ("ab", 6, 3)])
def test_charts_inside(shown, profiles, drawn, folds):
    """Drawn in the page, whatever names there are, from nowhere else; folded
    if there are more."""
    found = [dict(one, profile=name) for name in profiles for one in sample()]
    got = shown(section(found, verdict=verdict.of(found)))
    assert len(got.all("svg")) == drawn
    assert len(got.all("details")) == folds
    assert got.words.count(f" {NASTY} ") > drawn
    assert not re.search(r"(src|href)=.https?:", got.source)


def test_order(shown):
    """What to do first, then what it is drawn from; notes last."""
    found = runs("always", [1000, 1001, 1002]) + runs("never",
                                                      [1200, 1201, 1202])
    words = shown(section(
        found, verdict=verdict.of(found), note="N1", claim="C1",
        facts=[("Disk", "M1, firmware 2"), ("Kernel", "K1"), ("Measured", "")],
        holds=["scheduler none"])).words
    places = [words.index(word) for word in (
        "Use never: IOPS", "M1, firmware 2 · K1", "with scheduler none.",
        "Change of IOPS", "never (use)", "Details", "C1",
        "95% intervals of the ratio", "N1")]
    assert places == sorted(places)


def test_links(shown):
    """To each section, one of which has no records, and one is of words."""
    got = shown(section([record()]), {"suite": "x", "cells": []}, {"suite": "y"})
    ids = [attrs.get("id") for _, attrs in got.tags]
    assert [link["href"][1:] in ids for link in got.all("a")] == [True] * 3
    assert got.words.count("No records.") == 1
