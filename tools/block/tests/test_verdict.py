#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtools' intervals and verdict, with chance of a fixed seed."""
import math
import random
import unittest

from reportcases import record, runs
from plugtools.report import intervals, verdict

MODES = ["always", "never", "seq-small", "adaptive"]


def rounds(dice, count=5, changes=None, modes=None, scatter=0.003,
           workloads=("rand4k-s32",), tail=0.01, drift=0.05):
    """Records as plugbench makes them: what drifts hits a round's modes alike.

    changes: {mode: what it adds to the logarithm of IOPS}
    """
    found = []
    for number in range(count):
        for workload in workloads:
            base = math.log(1e5) + dice.gauss(0, drift)
            for mode in modes or MODES:
                change = (changes or {}).get(mode, 0)
                found.append(record(
                    mode, math.exp(base + change + dice.gauss(0, scatter)),
                    number, workload=workload, cpu_busy=0.5,
                    lat_us={name: value * math.exp(dice.gauss(0, tail))
                            for name, value in (("p50", 50), ("p99", 90),
                                                ("p999", 200))}))
    return found


def said(found):
    """(decision, mode) of the only, or the last, verdict."""
    last = verdict.of(found)["verdicts"][-1]
    return last["decision"], last["mode"]


class Student(unittest.TestCase):
    """tail and quantile."""

    def test_table(self):
        """What is printed in every textbook."""
        for freedom, five, one in ((1, 12.706, 63.657), (2, 4.303, 9.925),
                                   (4, 2.776, 4.604), (9, 2.262, 3.250),
                                   (30, 2.042, 2.750), (1000, 1.962, 2.581)):
            self.assertAlmostEqual(intervals.quantile(0.05, freedom), five, 3)
            self.assertAlmostEqual(intervals.quantile(0.01, freedom), one, 3)

    def test_tail(self):
        """Both sides of 0 are alike; 0 is no difference at all."""
        self.assertEqual(intervals.tail(0, 5), 1)
        self.assertEqual(intervals.tail(-2, 5), intervals.tail(2, 5))
        self.assertAlmostEqual(intervals.tail(1, 1), 0.5)


class Ratio(unittest.TestCase):
    """ratio, correct and enough."""

    def test_paired(self):
        """Drift that both have in common does not count."""
        old = [100, 200, 400, 800]
        new = [110, 221, 441, 879]
        paired = intervals.ratio(new, old, True, "iops")
        apart = intervals.ratio(new, old, False, "iops")
        self.assertAlmostEqual(paired["ratio"], 1.1, 2)
        self.assertEqual(paired["ratio"], apart["ratio"])
        self.assertLess(paired["high"] / paired["low"], 1.01)
        self.assertGreater(apart["high"] / apart["low"], 4)
        self.assertLess(paired["p"], 0.001)
        self.assertGreater(apart["p"], 0.5)

    def test_by_hand(self):
        """mean +- t * s / sqrt(n) of the logarithms."""
        steps = [0.01, 0.02, 0.03]
        one = intervals.ratio([math.exp(step) for step in steps], [1, 1, 1],
                              True, "iops")
        half = 4.302653 * 0.01 / math.sqrt(3)
        self.assertAlmostEqual(math.log(one["low"]), 0.02 - half, 5)
        self.assertAlmostEqual(math.log(one["high"]), 0.02 + half, 5)

    def test_welch(self):
        """Two samples of unlike scatter: a textbook's t and freedom."""
        new, old = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8]
        error, freedom = intervals.spread(new, old, False)
        self.assertAlmostEqual(error, math.sqrt(
            15.724 / 6 + 11.19 / 3), 3)
        self.assertEqual(freedom, 4)

    def test_not_finer_than_the_instrument(self):
        """Percentiles that fio rounds alike are no proof of a difference."""
        one = intervals.ratio([100] * 3, [100] * 3, True, "lat_us.p99")
        self.assertGreaterEqual(one["high"], 1 + 1 / 64)
        self.assertEqual(one["p"], 1)
        one = intervals.ratio([103, 103], [100, 100], True, "lat_us.p99")
        self.assertGreater(one["p"], 0.05)
        one = intervals.ratio([100.1] * 50, [100] * 50, True, "iops")
        self.assertEqual(one["p"], 1)

    def test_one_run(self):
        """Has no interval; 0 has no ratio."""
        one = intervals.ratio([110], [100], True, "iops")
        self.assertEqual((one["low"], one["high"], one["p"], one["n"]),
                         (None, None, None, 1))
        self.assertIsNone(intervals.ratio([0, 1], [1, 1], True, "iops"))
        self.assertIsNone(intervals.ratio([], [1], True, "iops"))

    def test_safe(self):
        """Less IOPS are worse, more of a latency is."""
        for metric, low, high, want in (
                ("iops", 0.985, 1.5, True), ("iops", 0.97, 1.5, False),
                ("lat_us.p99", 0.5, 1.015, True),
                ("lat_us.p99", 0.99, 1.03, False)):
            one = {"metric": metric, "low": low, "high": high}
            self.assertIs(intervals.safe(one, 0.02), want)

    def test_holm(self):
        """Each p times those not yet rejected, never less than before."""
        some = [{"p": p} for p in (0.03, 0.01, None, 0.02, 0.9)]
        self.assertEqual(intervals.correct(some), 4)
        self.assertEqual([one.get("p_all") for one in some],
                         [0.06, 0.04, None, 0.06, 0.9])

    def test_enough(self):
        """The runs it asks for do, and one less do not."""
        one = {"ratio": 1.0, "error": 0.02, "n": 5}
        runs_needed = intervals.enough(one, 0.02, 1)
        def half(number):
            return intervals.quantile(0.05, number - 1) * 0.02 * math.sqrt(
                5 / number)
        self.assertLessEqual(half(runs_needed), math.log1p(0.02))
        self.assertGreater(half(runs_needed - 1), math.log1p(0.02))
        self.assertGreater(intervals.enough(dict(one, n=900), 0.0001, 1),
                           900)


class Rates(unittest.TestCase):
    """How often chance fools it, by simulation."""

    def test_coverage(self):
        """95% intervals hold the truth 95 times of 100."""
        for paired in (True, False):
            dice = random.Random(16)
            inside = 0
            for _ in range(2000):
                old = [math.exp(dice.gauss(0, 0.02)) for _ in range(5)]
                new = [1.03 * math.exp(dice.gauss(0, 0.02)) for _ in range(5)]
                one = intervals.ratio(new, old, paired, "iops")
                inside += one["low"] <= 1.03 <= one["high"]
            self.assertAlmostEqual(inside / 2000, 0.955, delta=0.02)

    def test_two_equal_modes(self):
        """At most one report in 20 names one; the rest says so."""
        dice = random.Random(16)
        found = [said(rounds(dice, modes=MODES[:2]))[0] for _ in range(400)]
        # 400 reports at 5%: 20, and 33 is three deviations more
        self.assertLessEqual(found.count("use"), 33)
        self.assertGreaterEqual(found.count("no difference"), 360)

    def test_many_equal_modes(self):
        """Nor if it has 24 comparisons in which to find one."""
        dice = random.Random(16)
        loads = ("rand4k-s32", "rand4k-s128", "seq4k-s32", "rand4k-qd1")
        found = [any(one["decision"] == "use" for one in verdict.of(
            rounds(dice, workloads=loads))["verdicts"]) for _ in range(150)]
        self.assertLessEqual(found.count(True), 15)

    def test_planted(self):
        """3% more are found in five rounds, though rounds drift by 5%."""
        dice = random.Random(16)
        found = [said(rounds(dice, changes={"adaptive": 0.03}))
                 for _ in range(60)]
        self.assertGreaterEqual(found.count(("use", "adaptive")), 57)


class Verdict(unittest.TestCase):
    """of, and its words."""

    def setUp(self):
        self.dice = random.Random(16)

    def test_use(self):
        """The best of those that are better."""
        found = rounds(self.dice, changes={"never": 0.03, "adaptive": 0.05})
        self.assertEqual(said(found), ("use", "adaptive"))
        self.assertRegex(verdict.table(verdict.of(found)),
                         r"rand4k-s32 +use adaptive: IOPS \+[45]\.\d% \(\+")

    def test_use_the_baseline(self):
        """If another does harm and none is better."""
        found = rounds(self.dice, count=9, changes={"never": -0.05})
        self.assertEqual(said(found), ("use", "always"))

    def test_no_difference(self):
        """Is a finding, with a limit."""
        found = rounds(self.dice, count=9)
        self.assertEqual(said(found), ("no difference", None))
        self.assertIn("no difference: IOPS within 2%, p99 within 10%",
                      verdict.table(verdict.of(found)))

    def test_not_enough(self):
        """Says how many more; twice as many surely do."""
        found = rounds(self.dice, scatter=0.03)
        one = verdict.of(found)["verdicts"][0]
        self.assertEqual(one["decision"], "not enough runs")
        self.assertIn("about %d more would do" % one["more_runs"],
                      one["text"])
        found = rounds(self.dice, scatter=0.03,
                       count=5 + 2 * one["more_runs"])
        self.assertNotEqual(said(found)[0], "not enough runs")

    def test_hopeless(self):
        """Is told from a number that somebody could make."""
        found = rounds(self.dice, scatter=0.3)
        self.assertIn("more than 100 more are needed; does other work",
                      verdict.of(found)["verdicts"][0]["text"])

    def test_one_run(self):
        """Is not enough, whatever it says."""
        found = rounds(self.dice, count=1, changes={"adaptive": 1})
        self.assertEqual(said(found), ("not enough runs", None))
        self.assertEqual(verdict.of(found)["verdicts"][0]["more_runs"], 4)

    def test_worse_p99_forbids(self):
        """More IOPS do not pay for a p99 that may be much worse."""
        found = rounds(self.dice, count=9, changes={"adaptive": 0.05})
        for one in found:
            if one["policy"] == "adaptive":
                one["lat_us"]["p99"] *= 1.3
        self.assertEqual(said(found), ("use", "always"))

    def test_unsure_p99_forbids(self):
        """Nobody knows, so more runs are asked for."""
        found = rounds(self.dice, changes={"adaptive": 0.05}, tail=0.2)
        self.assertEqual(said(found)[0], "not enough runs")

    def test_small_but_sure_loss_forbids(self):
        """Though within the margin, and though the CPU has less to do."""
        found = rounds(self.dice, count=9, scatter=0.0005,
                       changes={"adaptive": -0.01})
        for one in found:
            if one["policy"] == "adaptive":
                one["cpu_busy"] *= 0.8
        self.assertEqual(said(found), ("use", "always"))

    def test_better_cpu_recommends(self):
        """The same IOPS for less of the CPU."""
        found = rounds(self.dice, count=9)
        for one in found:
            if one["policy"] == "seq-small":
                one["cpu_busy"] *= 0.9
        self.assertEqual(said(found), ("use", "seq-small"))

    def test_worse_elsewhere_forbids(self):
        """On all workloads together; each has its own verdict."""
        found = rounds(self.dice, count=9, changes={"never": 0.05}) + rounds(
            self.dice, count=9, changes={"never": -0.05},
            workloads=["seq4k-s32"])
        lines = verdict.of(found)["verdicts"]
        self.assertEqual(
            [(one["workload"], one["mode"]) for one in lines],
            [("rand4k-s32", "never"), ("seq4k-s32", "always"),
             (None, "always")])

    def test_all_workloads(self):
        """The mean gain, and where it is better."""
        found = rounds(self.dice, count=9, changes={"never": 0.05},
                       workloads=["rand4k-s32", "seq4k-s32"])
        text = verdict.of(found)["verdicts"][-1]["text"]
        self.assertRegex(text, r"use never: IOPS \+5\.\d% in the mean of 2 "
                         "workloads; better in rand4k-s32, seq4k-s32; worse "
                         "in none")

    def test_pairs_by_round(self):
        """Not by position; unlike rounds are not paired."""
        found = rounds(self.dice, changes={"adaptive": 0.03})
        mixed = sorted(found, key=lambda one: (
            one["policy"], one["run"] * (-1) ** len(one["policy"])))
        self.assertEqual(verdict.of(found), verdict.of(mixed))
        self.assertTrue(verdict.of(found)["comparisons"][0]["paired"])
        short = verdict.of(found[:-1])["comparisons"][-1]
        self.assertEqual((short["mode"], short["paired"], short["n"]),
                         ("adaptive", True, 4))
        for one in found:
            if one["policy"] != "always":
                one["run"] += 100
        self.assertFalse(verdict.of(found)["comparisons"][0]["paired"])

    def test_no_baseline(self):
        """No verdict, and it is said."""
        self.assertIsNone(verdict.of(runs("never", [1, 2])))
        self.assertIn("no verdict", verdict.table(None))

    def test_every_metric(self):
        """Each mode has five, with an interval; null figures have none."""
        found = verdict.of(rounds(self.dice))["comparisons"]
        self.assertEqual(len(found), 3 * len(intervals.METRICS))
        for one in found:
            self.assertLess(one["low"], one["ratio"])
            self.assertLess(one["ratio"], one["high"])
        bare = [dict(one, lat_us=None, cpu_busy=None)
                for one in rounds(self.dice)]
        self.assertEqual({one["metric"] for one in
                          verdict.of(bare)["comparisons"]}, {"iops"})


if __name__ == "__main__":
    unittest.main()
