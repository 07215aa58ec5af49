# SPDX-License-Identifier: GPL-2.0
"""plugtools' page."""
import re
import xml.etree.ElementTree

import pytest

from reportcases import NASTY, record, runs
from plugtools.report import page, summary, verdict


def judged(**changes):
    """A verdict on always and modes that change IOPS by so much, in five
    rounds that differ a little."""
    return verdict.of([record(mode.replace("_", "-"), (1000 + number * 1.1)
                              * ratio, number) for number in range(1, 6)
                       for mode, ratio in {"always": 1, **changes}.items()])


class Page:
    """What a browser would see; complains of tags that do not match."""

    def __init__(self, text):
        self.source, root = text, xml.etree.ElementTree.fromstring(text)
        self.tags = [(one.tag, one.attrib) for one in root.iter()]
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


def bars(shown, found):
    """[(class, left, right)] of each, in percent of its cell."""
    return [(one["class"], left, left + width)
            for one in shown(section([], verdict=found)).all("i")
            for left, width in [map(float, re.findall(r"[\d.]+", one["style"]))]]


def test_bars(shown):
    """To the right of the middle is more; the interval is around the end."""
    rows = [bars(shown, judged(**{mode: ratio, "adaptive": 1}))
            for mode, ratio in (("never", 1.1), ("seq_small", .9))]
    (kind, left, right), (what, low, high) = rows[0][:2]
    assert (kind, left, what) == ("better", 50, "interval")
    assert 90 < low < right < high <= 100
    assert high - right == pytest.approx(right - low, rel=0.2)
    (kind, left, right), (_, low, high) = rows[1][:2]
    assert (kind, right) == ("worse", 50) and 0 <= low < left < high < 50
    assert rows[0][-2][0] == "same"


def test_next_to_nothing_is_short(shown):
    """Though it is the greatest change of its column."""
    (_, left, right), *_ = bars(shown, judged(never=1.001))
    assert 0 < right - left < 3


@pytest.mark.parametrize("ratio", [1, 1e-6, 1e9])
def test_odd_figures(shown, ratio):
    """One run, and far outliers: within the cell, and no interval where there
    is none."""
    found = bars(shown, verdict.of([record(), record("never", 1000 * ratio)]))
    assert {kind for kind, _, _ in found} == {"open"}
    assert all(0 <= left <= right <= 100 for _, left, right in found)


def test_all_of_it_inside(shown):
    """Whatever names there are, and drawn from nowhere else."""
    found = [record(mode, iops + number, number, kernel=kernel,
                    workload=workload)
             for workload in ("rand4k-s32", "seq4k-s32", NASTY)
             for number in (1, 2) for mode, iops, kernel in (
                 ("always", 1000, "unpatched"), ("never", 1030, "patched"),
                 ("seq-small", 900, "patched"))]
    got = shown(section(found, verdict=verdict.of(found)))
    assert got.words.count(f" {NASTY} ") == 3
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
        "Change from always", "never (use)", "Blue is better", "Details", "C1",
        "95% intervals of the ratio", "N1")]
    assert places == sorted(places)


def test_links(shown):
    """To each section, one of which has no records, and one is of words."""
    got = shown(section([record()]), {"suite": "x", "cells": []}, {"suite": "y"})
    ids = [attrs.get("id") for _, attrs in got.tags]
    assert [link["href"][1:] in ids for link in got.all("a")] == [True] * 3
    assert got.words.count("No records.") == 1
