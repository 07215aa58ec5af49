#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The simulator against arithmetic, and what is made of its runs."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import simconfigs  # noqa: E402 pylint: disable=wrong-import-position
import simreport  # noqa: E402 pylint: disable=wrong-import-position
import simrun  # noqa: E402 pylint: disable=wrong-import-position

ENGINE = []


def setUpModule():
    """One simulator for all."""
    if not os.path.isdir(os.path.join(simrun.TREE, "tools/include")):
        raise unittest.SkipTest("build/linux-7.3 is missing: make tree")
    simrun.build()
    ENGINE.append(simrun.Engine())


def tearDownModule():
    """No process stays."""
    while ENGINE:
        ENGINE.pop().stop()


def run(line):
    """The result of a line."""
    return ENGINE[0].run(line)


def outcome(line):
    """That of its last phase."""
    return run(line)["phases"][-1]


class Arithmetic(unittest.TestCase):
    """What a pencil gives."""

    def near(self, value, expected, part=0.001):
        """Within a part of it."""
        self.assertLess(abs(value / expected - 1), part,
                        "%g, not %g" % (value, expected))

    def test_one_at_a_time(self):
        """A core does one thing after the other."""
        got = outcome("group=1 depth=1 batch=1 complete=1 lat=fixed:10000 "
                      "submit=300 reap=200 doorbell=100 flush=40 ios=1000")
        self.near(got["iops"], 1e9 / 10640)
        self.near(got["mean"], 10640)
        self.near(got["p99"], 10640, 0.01)
        self.assertEqual(got["doorbells"], 1)

    def test_submit_and_wait(self):
        """The last group's commands are the last to return."""
        line = ("group=%d depth=32 batch=32 complete=32 lat=fixed:100000 "
                "submit=300 reap=100 doorbell=50 ios=3200")
        for group in (8, 32):
            cycle = 32 * 300 + 32 / group * 50 + 100000 + group * 100
            self.near(outcome(line % group)["iops"], 32e9 / cycle)

    def test_cpu_bound(self):
        """Doorbells are shared by a group."""
        for group in simrun.GROUPS:
            got = outcome("group=%d lat=fixed:0 doorbell=800" % group)
            self.near(got["iops"], 1e9 / (250 + 150 + 800 / group))
            self.near(got["doorbells"], 1 / group)

    def test_units(self):
        """Saturated: the device's own rate, however many queues."""
        line = "group=8 hctxs=%d units=64 service=fixed:600000 lat=fixed:1000"
        for hctxs in (1, 5):
            self.near(outcome(line % hctxs)["iops"], 64e9 / 600000)

    def test_queues_add(self):
        """Without units, cores do not disturb each other."""
        self.near(outcome("group=8 hctxs=8 tasks=2 lat=fixed:1000")["iops"],
                  16 * outcome("group=8 lat=fixed:1000")["iops"], 0.01)

    def test_stalls(self):
        """A device that is away a quarter of the time."""
        line = "group=8 units=1 service=fixed:10000"
        self.near(outcome(line + " stall=250000 stall_every=1000000")["iops"],
                  0.75 * outcome(line)["iops"], 0.01)

    def test_mix(self):
        """Half of them take three times as long."""
        got = outcome("units=1 service=fixed:10000 mix=50 mix_factor=3")
        self.near(got["iops"], 1e9 / 20000, 0.01)

    def test_distributions(self):
        """Their means, one command at a time."""
        for text, mean in (("uniform:500000-1500000", 1e6),
                           ("lognormal:1000000:50", 1e6),
                           ("bimodal:400000-600000:10:11", 1e6)):
            got = outcome("depth=1 batch=1 complete=1 lat=" + text)
            self.near(got["mean"], mean, 0.02)

    def test_interrupts(self):
        """They cost the core that takes them."""
        line = ("group=1 depth=1 batch=1 complete=1 lat=fixed:10000 irq=700 "
                "wake=300 irq_core=%d ios=1000")
        for core in (1, 2):
            self.near(outcome(line % core)["iops"],
                      1e9 / (10000 + 250 + 50 + 150 + 1000))
        line = "group=32 lat=fixed:0 irq=700 single=1 irq_core=%d"
        self.assertGreater(outcome(line % 2)["iops"],
                           1.2 * outcome(line % 1)["iops"])

    def test_open_loop(self):
        """The rate is what arrives."""
        for poisson in (0, 1):
            got = outcome("arrive=100000 batch=4 complete=1 lat=fixed:20000 "
                          "group=32 poisson=%d" % poisson)
            self.near(got["iops"], 4e9 / 100000, 0.02)
            self.assertGreater(got["mean"], 20000)

    def test_phases(self):
        """Each has its own figures."""
        both = run("group=8 lat=fixed:100000 then lat=fixed:20000")["phases"]
        for phase, latency in zip(both, (100000, 20000)):
            alone = outcome("group=8 lat=fixed:%d" % latency)
            self.near(phase["iops"], alone["iops"], 0.01)


class Repeat(unittest.TestCase):
    """The same words, the same figures."""

    def test_deterministic(self):
        """Whatever ran before."""
        line = simconfigs.generate(7, 3).line(simrun.ADAPTIVE, 5)
        first = run(line)
        run("lat=lognormal:5000:10 seed=4")
        self.assertEqual(run(line), first)
        self.assertNotEqual(run(line.replace("seed=5", "seed=6"))["phases"],
                            first["phases"])

    def test_replay(self):
        """A record can be had again: by its number, and by its line."""
        config = simconfigs.generate(1, 11)
        record = simrun.judge_one(ENGINE[0], config)
        again = simrun.judge_one(ENGINE[0], simconfigs.generate(1, 11))
        self.assertEqual(record, again)
        got = run(record["line"])
        self.assertEqual(got["final_group"], record["final"])
        self.assertEqual(got["phases"][-1]["iops"], record["iops"])

    def test_trace(self):
        """A line per sample, in order of time."""
        samples = simrun.trace("lat=uniform:62522-145886 ios=100000")
        self.assertGreater(len(samples), 3)
        self.assertEqual([one[0] for one in samples],
                         sorted(one[0] for one in samples))
        self.assertTrue(all(1 <= one[2] <= 32 for one in samples))
        # Samples leave no gap, and a flush sends out one request to 32.
        self.assertEqual(sum(one[8] for one in samples), samples[-1][0])
        self.assertTrue(all(one[12] <= one[10] <= 32 * one[12]
                            for one in samples))


class Refused(unittest.TestCase):
    """What can not be simulated is said."""

    def test_lines(self):
        """Exit 2, and what is accepted."""
        for line, text in (("depth=0", "1 to 65536"), ("depth=x", "1 to"),
                           ("nothing=1", "--help"), ("depth=4", "batch"),
                           ("lat=fixed", "accepted"), ("ios", "key=value"),
                           ("hctxs=65", "1 to 64"), ("name=a\"b", "letters"),
                           ("lat=uniform:9-3", "accepted")):
            done = subprocess.run([simrun.PROGRAM], input=line + "\n",
                                  text=True, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), line)
            self.assertIn(text, done.stderr)

    def test_command_lines(self):
        """The sweep's."""
        for words in (["--configs", "0"], ["--seed", "x"], ["--bogus"]):
            done = subprocess.run(
                [sys.executable, os.path.join(HERE, "sim.py"), *words],
                text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("sim.py: error", done.stderr)


class Sweep(unittest.TestCase):
    """The configurations, and what is made of the figures."""

    def test_configurations(self):
        """All can be simulated, and are the same each time."""
        for index in range(300):
            config = simconfigs.generate(2, index)
            self.assertEqual(config, simconfigs.generate(2, index))
            last = config.last()
            self.assertLessEqual(last["batch"], last["depth"])
            self.assertLessEqual(last["complete"], last["batch"])
            self.assertLessEqual(config.in_flight(),
                                 simconfigs.MOST_IN_FLIGHT)

    def test_groups(self):
        """Groups that can not differ are not run."""
        config = simconfigs.Configuration(
            0, "closed", {}, ({"batch": 4},))
        self.assertEqual(simrun.groups_of(config), [1, 2, 32])

    def test_best_is_chosen_by_others(self):
        """A seed that is lucky for a group does not measure it."""
        def result(iops):
            return {"phases": [{"iops": iops}]}
        judge = simrun.Judge(None, simconfigs.generate(1, 0))
        judge.config = simconfigs.Configuration(
            0, "closed", {}, ({"batch": 2},))
        found = iter([result(iops) for iops in (
            8, 20, 10, 8, 9, 10, 8, 9, 10, 8, 9, 10)])
        judge.run = lambda groups, *_: {group: next(found)
                                        for group in groups}
        rounds = judge.look_again()
        self.assertEqual([best for best, _ in rounds],
                         [[32], [1], [1], [1]])
        self.assertAlmostEqual(simrun.regret(rounds, 0, 0, "iops"),
                               1 - 32 / 37)

    def test_summary(self):
        """Quantiles of one to a hundred."""
        got = simreport.summary(list(range(1, 101)))
        self.assertEqual((got["n"], got["mean"], got["p50"], got["worst"]),
                         (100, 50.5, 51, 100))
        self.assertIsNone(simreport.summary([]))

    def test_range_class(self):
        """Names of ranges."""
        names = [simreport.range_class("batch", value, (1, 4, 16))
                 for value in (1, 2, 4, 16, 17)]
        self.assertEqual(names, ["batch 1", "batch 2 to 4", "batch 2 to 4",
                                 "batch 5 to 16", "batch 17 and more"])


if __name__ == "__main__":
    unittest.main()
