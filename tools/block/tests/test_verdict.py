# SPDX-License-Identifier: GPL-2.0
"""plugtools' intervals and verdict, with chance of a fixed seed."""
import math
import random

import pytest

from reportcases import record, runs
from plugtools.report import intervals, verdict

MODES = ["always", "never", "seq-small", "adaptive"]


def rounds(count=5, changes=None, scatter=0.003, tail=0.01,
           workloads=("rand4k-s32",), drift=0.05, dice=None):
    """Records as plugbench makes them: what drifts hits a round's modes alike.

    changes: {mode: what it adds to the logarithm of IOPS}"""
    found, dice = [], dice or random.Random(16)
    for number in range(count):
        for workload in workloads:
            base = math.log(1e5) + dice.gauss(0, drift)
            for mode in MODES:
                change = (changes or {}).get(mode, 0)
                found.append(record(
                    mode, math.exp(base + change + dice.gauss(0, scatter)),
                    number, workload=workload, cpu_busy=0.5,
                    lat_us={name: value * math.exp(dice.gauss(0, tail))
                            for name, value in (("p50", 50), ("p99", 90),
                                                ("p999", 200))}))
    return found


def scaled(found, mode, **factors):
    """The same, where these figures of a mode are multiplied."""
    for one in found:
        if one["policy"] == mode:
            for place in one, one["lat_us"]:
                place.update({name: place[name] * factor for name, factor in
                              factors.items() if name in place})
    return found


def said(found):
    """(decision, mode) of the only, or the last, verdict."""
    last = verdict.of(found)["verdicts"][-1]
    return last["decision"], last["mode"]


# --- Student's t -----------------------------------------------------------
@pytest.mark.parametrize("freedom, five, one", [
    (1, 12.706, 63.657), (2, 4.303, 9.925), (4, 2.776, 4.604),
    (9, 2.262, 3.250), (30, 2.042, 2.750), (1000, 1.962, 2.581)])
def test_quantiles(freedom, five, one):
    assert intervals.quantile(0.05, freedom) == pytest.approx(five, abs=5e-4)
    assert intervals.quantile(0.01, freedom) == pytest.approx(one, abs=5e-4)
    assert intervals.tail(0, freedom) == 1
    assert intervals.tail(-five, freedom) == pytest.approx(0.05, abs=5e-5)


def test_paired():
    """Drift that both have in common does not count."""
    old, new = [100, 200, 400, 800], [110, 221, 441, 879]
    paired, apart = (intervals.ratio(new, old, way, "iops")
                     for way in (True, False))
    assert paired["ratio"] == apart["ratio"] == pytest.approx(1.1, abs=0.005)
    assert paired["high"] / paired["low"] < 1.01
    assert apart["high"] / apart["low"] > 4
    assert paired["p"] < 0.001 and apart["p"] > 0.5


def test_by_hand():
    """mean +- t * s / sqrt(n) of the logarithms."""
    one = intervals.ratio([math.exp(step) for step in (0.01, 0.02, 0.03)],
                          [1, 1, 1], True, "iops")
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert [math.log(one[end]) for end in ("low", "high")] == pytest.approx(
        [0.02 - half, 0.02 + half], abs=5e-6)


def test_welch():
    """Two samples of unlike scatter: a textbook's t and freedom."""
    error, freedom = intervals.spread(
        [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8], False)
    assert error == pytest.approx(math.sqrt(15.724 / 6 + 11.19 / 3), abs=5e-4)
    assert freedom == 4


@pytest.mark.parametrize("new, old, metric, p", [
    ([100] * 3, [100] * 3, "lat_us.p99", 1),
    ([103, 103], [100, 100], "lat_us.p99", 0.05),
    ([100.1] * 50, [100] * 50, "iops", 1)])
def test_not_finer_than_the_instrument(new, old, metric, p):
    """Percentiles that fio rounds alike are no proof of a difference."""
    one = intervals.ratio(new, old, True, metric)
    assert one["p"] >= p
    if metric != "iops":
        assert one["high"] >= 1 + 1 / 64


def test_ratio_of_one_run():
    one = intervals.ratio([110], [100], True, "iops")
    assert [one[name] for name in ("low", "high", "p", "n")] == [
        None, None, None, 1]
    assert intervals.ratio([0, 1], [1, 1], True, "iops") is None
    assert intervals.ratio([], [1], True, "iops") is None


def test_holm():
    """Each p times those not yet rejected, never less than before."""
    some = [{"p": p} for p in (0.03, 0.01, None, 0.02, 0.9)]
    assert intervals.correct(some) == 4
    assert [one.get("p_all") for one in some] == [0.06, 0.04, None, 0.06, 0.9]


def test_enough():
    """The runs it asks for do, and one less do not."""
    def half(number):
        return intervals.quantile(0.05, number - 1) * 0.02 * math.sqrt(
            5 / number)
    one = {"ratio": 1.0, "error": 0.02, "n": 5}
    needed = intervals.enough(one, 0.02, 1)
    assert half(needed) <= math.log1p(0.02) < half(needed - 1)
    assert intervals.enough(dict(one, n=20), 0.0001, 1) == 20 + intervals.MOST


# --- how often chance fools it, by simulation ------------------------------
def test_many_equal_modes():
    """At most one report in 20 names one, though it has 24 comparisons in which
    to find it."""
    dice = random.Random(16)
    loads = ("rand4k-s32", "rand4k-s128", "seq4k-s32", "rand4k-qd1")
    found = [any(one["decision"] == "use" for one in verdict.of(
        rounds(dice=dice, workloads=loads))["verdicts"]) for _ in range(40)]
    assert found.count(True) <= 6


# --- the verdict, and its words --------------------------------------------
@pytest.mark.parametrize("found, decision, mode", [
    # the best of those that are better
    (rounds(changes={"never": 0.03, "adaptive": 0.05}), "use", "adaptive"),
    # another does harm, and none is better
    (rounds(9, {"never": -0.05}), "use", "always"),
    (rounds(9), "no difference", None),
    (rounds(1, {"adaptive": 1}), "not enough runs", None),
    # more IOPS do not pay for a p99 that is much worse, or may be
    (scaled(rounds(9, {"adaptive": 0.05}), "adaptive", p99=1.3), "use",
     "always"),
    (rounds(changes={"adaptive": 0.05}, tail=0.2), "not enough runs", None),
    # nor a better p99 for IOPS that may be much fewer
    (scaled(rounds(9, scatter=0.02), "adaptive", p99=0.7), "not enough runs",
     None),
    # a loss within the margin, but sure, though the CPU has less to do
    (scaled(rounds(9, {"adaptive": -0.01}, scatter=0.0005), "adaptive",
            cpu_busy=0.8), "use", "always"),
    # the same IOPS for less of the CPU
    (scaled(rounds(9), "seq-small", cpu_busy=0.9), "use", "seq-small")])
def test_decision(found, decision, mode):
    assert said(found) == (decision, mode)


@pytest.mark.parametrize("found, says", [
    (rounds(changes={"never": 0.03, "adaptive": 0.05}),
     "rand4k-s32  use adaptive: IOPS +"),
    (rounds(9), "no difference: IOPS within 2%, p99 within 10%"),
    (rounds(scatter=0.3), "more than 100 more are needed; does other work"),
    (rounds(1), "about 4 more would do"),
    (rounds(9, {"never": 0.05}, workloads=["rand4k-s32", "seq4k-s32"]),
     "in the mean of 2 workloads; better in rand4k-s32, seq4k-s32; worse in "
     "none"), (runs("never", [1, 2]), "no verdict"),
    (rounds(9, {"never": 0.05}) + rounds(1, workloads=["seq4k-s32"]),
     "better in rand4k-s32; worse in none, but seq4k-s32 had one run")])
def test_words(found, says):
    assert says in verdict.table(verdict.of(found))


def test_a_question_ends_as_one():
    found = verdict.of(rounds(scatter=0.3))
    assert next(verdict.sentences(found)).endswith("disturb them?")


def test_not_enough():
    one = verdict.of(rounds(scatter=0.03))["verdicts"][0]
    assert one["decision"] == "not enough runs"
    assert f"about {one['more_runs']} more would do" in one["text"]
    assert said(rounds(5 + 2 * one["more_runs"],
                       scatter=0.03))[0] != "not enough runs"


def test_worse_elsewhere_forbids():
    """On all workloads together; each has its own verdict."""
    lines = verdict.of(rounds(9, {"never": 0.05}) + rounds(
        9, {"never": -0.05}, workloads=["seq4k-s32"]))["verdicts"]
    assert [(one["workload"], one["mode"]) for one in lines] == [
        ("rand4k-s32", "never"), ("seq4k-s32", "always"), (None, "always")]


def test_pairs_by_round():
    """Not by position; unlike rounds are not paired."""
    found = rounds(changes={"adaptive": 0.03})
    mixed = sorted(found, key=lambda one: (
        one["policy"], one["run"] * (-1) ** len(one["policy"])))
    assert verdict.of(found) == verdict.of(mixed)
    assert verdict.of(found)["comparisons"][0]["paired"]
    short = verdict.of(found[:-1])["comparisons"][-1]
    assert (short["mode"], short["paired"], short["n"]) == ("adaptive", True, 4)
    for one in found:
        one["run"] += 100 * (one["policy"] != "always")
    assert not verdict.of(found)["comparisons"][0]["paired"]


def test_every_metric():
    found = verdict.of(rounds())["comparisons"]
    assert len(found) == 3 * len(intervals.METRICS)
    assert all(one["low"] < one["ratio"] < one["high"] for one in found)
    bare = [dict(one, lat_us=None, cpu_busy=None) for one in rounds()]
    assert {one["metric"] for one in verdict.of(bare)["comparisons"]} == {
        "iops"}
