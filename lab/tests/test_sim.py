# SPDX-License-Identifier: GPL-2.0
"""The simulator against arithmetic, and what is made of its runs."""
import os
import subprocess
import sys
import unittest
from unittest import mock

from lab.sim import ablate
from lab.bench import crosscheck
from lab.sim import simconfigs
from lab.sim import simreport
from lab.sim import simrun

ENGINE = []


def setUpModule():
    """One simulator for all."""
    if not os.path.isdir(os.path.join(simrun.TREE, "tools/include")):
        raise unittest.SkipTest("no kernel tree: make tree")
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
                      "submit=300 reap=200 doorbell=100 flush=40 enter=250 "
                      "poll=110 ios=1000")
        self.near(got["iops"], 1e9 / 11000)
        self.near(got["mean"], 11000)
        self.near(got["p99"], 11000, 0.01)
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


    def test_beginnings(self):
        """The first 50 and 200 ms, of which the measured part has nothing, or
        as much of them as there is before it."""
        line = ("group=1 depth=1 batch=1 complete=1 lat=fixed:9600 submit=250 "
                "reap=150 doorbell=0 poll=0 ios=1000 ")
        for words, ms in (("", (50, 200)), ("warm=120000000", (50, 120)),
                          ("warm=20000000", (20, 20)), ("warm=0", (0, 0)),
                          ("warm_ios=7000", (50, 70)),
                          ("warm_ios=3000", (30, 30))):
            got = outcome(line + words)
            for name, length in zip(simrun.BEGINNINGS, ms):
                self.assertLessEqual(abs(got[name]["ios"] - 100 * length), 2,
                                     (name, words))
                if length:
                    self.near(got[name]["iops"], 1e5)
                    self.near(got[name]["p99"], 10000, 0.01)
            self.near(got["ns"], 1002 * 10000, 0.002)

    def test_latencies_of_beginnings(self):
        """Each I/O takes 10 us and one comes every 9: the more have come, the
        longer the last one waits."""
        got = run("arrive=9000 depth=1 batch=1 complete=1 lat=fixed:9600 "
                  "submit=250 reap=150 doorbell=0 group=1 ios=4000")
        phase, whole = got["phases"][0], got["all"]
        self.near(phase["first50"]["p99"], 0.99 * 5000 * 1000, 0.01)
        self.near(phase["first200"]["p99"], 0.99 * 20000 * 1000, 0.01)
        for part in (phase, whole):
            self.near(part["mean"], 102000 * 1000, 0.001)
            self.near(part["ns"], 4000 * 10000)

    def test_warm(self):
        """A second passes before anything is measured."""
        samples = simrun.trace("lat=uniform:62522-145886 ios=84000")
        self.assertGreater(samples[-1][0], 1_050_000_000)
        self.assertLess(samples[-1][0], 1_150_000_000)
        for index in range(99):
            config = simconfigs.generate(2, index)
            self.assertEqual(config.lengths(True)["warm"],
                             0 if config.period else 1_000_000_000)

    def test_random_sizes(self):
        """A submission of 1 to 32 I/Os has a doorbell, and 16.5 on average."""
        got = outcome("group=32 ragged=1 lat=fixed:1000 ios=200000")
        self.near(got["doorbells"], 1 / 16.5, 0.02)

    def test_bursts(self):
        """A quarter of the time nothing is submitted."""
        line = "group=8 lat=fixed:0 time=400000000 ios=10000000"
        self.near(outcome(line + " burst=3000000 pause=1000000")["iops"],
                  0.75 * outcome(line)["iops"], 0.01)

    def test_cycles(self):
        """Phases that alternate: all of it is the mean of them."""
        load = "depth=%d batch=%d complete=%d lat=fixed:%d "
        loads = [load % words for words in (
            (1, 1, 1, 100000), (1, 1, 1, 20000), (2, 2, 2, 20000))]
        rates = [outcome("group=8 " + load)["iops"] for load in loads]
        got = run("group=8 warm=0 cycles=5 time=50000000 ios=10000000 " +
                  "then ".join(loads))
        self.near(got["all"]["ns"], 5 * 3 * 50000000, 0.02)
        self.near(got["all"]["iops"], sum(rates) / 3, 0.01)
        for phase, rate in zip(got["phases"], rates):
            self.near(phase["iops"], rate, 0.01)

    def test_mixed_loads(self):
        """Queues take the loads in turn."""
        got = run("group=1 hctxs=3 lat=fixed:100000 warm=0 time=100000000 "
                  "ios=10000000 depth=8 batch=1 complete=1 also depth=2")
        self.assertEqual(len(got["ios"]), 3)
        self.near(got["ios"][0], got["ios"][2], 0.01)
        self.near(got["ios"][0], 4 * got["ios"][1], 0.03)

    def test_link(self):
        """It carries I/Os, in however many commands they come."""
        for group in (1, 32):
            self.near(outcome("group=%d seq=100 transfer=4000 lat=fixed:9000"
                              % group)["iops"], 1e9 / 4000)


class Merges(unittest.TestCase):
    """I/Os that join a request, and what a decision does to them."""

    LINE = ("lat=fixed:0 doorbell=80 submit=300 join=200 reap=150 "
            "reap_join=100 group=%d seq=%d")

    def test_whatever_the_group(self):
        """I/Os are scored; a full group waits for one that joins it."""
        for group, merge in ((1, 1), (8, 1), (32, 1), (1, 0)):
            got = outcome(self.LINE % (group, 100) + " merge=%d" % merge)
            requests = 1 if merge else 32
            self.assertAlmostEqual(got["requests"], requests / 32, 4)
            ns = requests * (450 + 80) + (32 - requests) * 300
            self.assertAlmostEqual(got["iops"], 32e9 / ns, delta=2000)

    def test_limits(self):
        """31 I/Os of 4 KiB fit in 127 KiB, and the last one does not."""
        got = outcome(self.LINE % (32, 100) + " max_size=130048")
        self.assertAlmostEqual(got["requests"], 2 / 32, 4)
        # 128 KiB are held until the next request comes: 3 flushes of 64
        got = outcome(self.LINE % (32, 100) + " depth=64 batch=64 "
                      "max_size=131072")
        self.assertAlmostEqual(got["requests"], 2 / 64, 4)
        self.assertAlmostEqual(got["doorbells"], 2 / 64, 4)

    def test_random(self):
        """Nothing joins; of two streams, every other one does."""
        self.assertGreater(outcome(self.LINE % (32, 0))["requests"], 0.99)
        got = outcome(self.LINE % (32, 100) + " streams=2 ios=200000")
        self.assertAlmostEqual(got["requests"], (1 + 31 / 2) / 32, delta=0.01)

    def test_too_large_to_join(self):
        """What can not join leaves in groups, random or not."""
        for seq in (100, 0):
            got = outcome(self.LINE % (4, seq) + " size=65536 max_size=65536")
            self.assertAlmostEqual(got["doorbells"], 1 / 4, delta=0.001)
            self.assertGreater(got["requests"], 0.99)

    def test_controller_sees_requests(self):
        """As the kernel counts them, however many I/Os they carry."""
        line = "seq=100 max_size=130048 lat=fixed:0 ios=100000 warm=0"
        samples = simrun.trace(line + " group=32")
        self.assertGreater(len(samples), 5)
        for one in samples:
            self.assertIn(one[6], (128, 512))
        # 31 and 1 in a plug of 32 I/Os
        self.assertEqual(2 * sum(one[7] for one in samples),
                         sum(one[6] for one in samples))

    def test_controller_sees_what_is_in_flight(self):
        """All of them, at the moment of a flush: a multiple of the batch."""
        samples = simrun.trace("lat=fixed:100000 depth=256 batch=32 "
                               "complete=32 ios=200000 warm=0")
        self.assertGreater(len(samples), 5)
        for one in samples[2:]:
            self.assertLessEqual(one[8], 256)
            self.assertGreater(one[8], 192)
            # 16 round trips, or a quarter of that in a transition
            self.assertIn(one[4], (16 * one[8], 4 * one[8]))


class Waits(unittest.TestCase):
    """What a latency is."""

    def test_waiting_for_the_submission(self):
        """Its own turn is in an I/O's latency."""
        line = ("arrive=1000000 depth=64 batch=64 complete=1 enter=500 "
                "submit=1000 doorbell=0 reap=0 lat=fixed:10000 group=%d")
        # the first group's are seen when the second has been sent out
        sent = 64 * 500 + 64 * 1000
        got = outcome(line % 32)
        self.assertAlmostEqual(got["mean"], sent + 10000 / 2, delta=10)

    def test_waiting_for_room(self):
        """What has arrived waits until there is room: the latency grows."""
        line = ("arrive=%d depth=1 batch=1 complete=1 lat=fixed:10000 "
                "group=32 ios=4000 warm=0")
        self.assertLess(outcome(line % 20000)["p99"], 12000)
        self.assertGreater(outcome(line % 9000)["mean"], 1000000)


class Sequential(unittest.TestCase):
    """fio's sequential load, as the crosscheck has it simulated."""

    def test_costs(self):
        """Singly and merged, it takes what was measured, and 2 requests of
        32 I/Os have a doorbell."""
        cost = crosscheck.Costs(2000, 600, 800, 300)
        times = {"never": 4833, "always": 4083}
        words = crosscheck.seq_words(
            {("bare", crosscheck.FIO_SEQ, policy): crosscheck.Figures(
                ns, 0, 0) for policy, ns in times.items()}, {"never": cost})
        for policy, ns in times.items():
            got = outcome("%s %s" % (words, crosscheck.group_words(policy)))
            self.assertAlmostEqual(1e9 / got["iops"] / ns, 1, delta=0.005)
        self.assertAlmostEqual(got["requests"], 2 / 32, 4)


class Ablation(unittest.TestCase):
    """Rules that are knocked out of the controller's source."""

    def test_table_matches(self):
        """Each text is there once, in the controller that is mailed."""
        with open(ablate.CONTROLLER, encoding="ascii") as file:
            source = file.read()
        for name, pairs in ablate.RULES.items():
            self.assertNotEqual(ablate.substituted(source, name, pairs),
                                source)
        for wrong in (source.replace("MAX_ODD", "ODD"), source + source):
            with self.assertRaisesRegex(simrun.SimError, "another load"):
                ablate.substituted(wrong, "another load",
                                   ablate.RULES["another load"])

    def test_knocked_out(self):
        """Without its steps the controller never leaves 32."""
        line = "lat=uniform:62522-145886 ios=100000"
        self.assertGreater(run(line)["changes"], 0)
        program, left = ablate.together(["quarter", "half"])
        self.assertEqual(left, [])
        with simrun.Engine(program) as engine:
            self.assertEqual(engine.run(line)["changes"], 0)

    def test_overlap(self):
        """Of two rules in one place the second stays, and is named."""
        rules = {"all": (("1, 2", "3"),), "a part": (("1", ""),)}
        with mock.patch.object(ablate, "RULES", rules):
            _, left = ablate.without("1, 2;", ["all", "a part"])
        self.assertEqual(left, ["a part"])

    def test_worth(self):
        """Pairs: what is common to both sides is no error."""
        records = [{"class": "one queue", "streams": part > 0.5, "values": {
            None: part, "same": part, "rule": part + 0.01 * (part > 0.1)}}
                   for part in (0.0, 0.2, 0.4, 0.6)]
        self.assertEqual(ablate.worth(records, "same"), (0, 0, 0))
        mean, error, differ = ablate.worth(records, "rule")
        self.assertAlmostEqual(mean, 0.75)
        self.assertAlmostEqual(error, 0.25)
        self.assertEqual(differ, 3)
        self.assertEqual([len(ablate.of_column(records, column))
                          for column in ablate.COLUMNS],
                         [4, 3, 1, 4, 0, 0, 0, 0])
        found = ablate.figures(records, ["same", "rule"])
        self.assertEqual(ablate.harmless(found), ["same"])
        self.assertIn("+0.750 +- 0.250*", ablate.table(found))


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
        self.assertEqual(got["all"]["iops"], record["iops"])

    def test_trace(self):
        """A line per sample, in order of time."""
        samples = simrun.trace("lat=uniform:62522-145886 ios=100000")
        self.assertGreater(len(samples), 3)
        self.assertEqual([one[0] for one in samples],
                         sorted(one[0] for one in samples))
        self.assertTrue(all(1 <= one[2] <= 32 for one in samples))
        # Samples leave no gap, and a flush sends out one request to 32.
        self.assertEqual(sum(one[5] for one in samples), samples[-1][0])
        self.assertTrue(all(one[7] <= one[6] <= 32 * one[7]
                            for one in samples))


class Refused(unittest.TestCase):
    """What can not be simulated is said."""

    def test_lines(self):
        """Exit 2, and what is accepted."""
        for line, text in (("depth=0", "1 to 65536"), ("depth=x", "1 to"),
                           ("nothing=1", "--help"), ("depth=4", "batch"),
                           ("lat=fixed", "accepted"), ("ios", "key=value"),
                           ("hctxs=65", "1 to 64"), ("name=a\"b", "letters"),
                           ("lat=uniform:9-3", "accepted"),
                           ("ragged=2", "0 to 1"), ("streams=9", "1 to 8"),
                           ("seq=101", "0 to 100"), ("burst=0", "1 to"),
                           ("size=8192 max_size=4096", "below size"),
                           ("also depth=8", "batch is above"),
                           ("cycles=0", "1 to 10000"),
                           (4 * "also ", "up to 4 loads"),
                           (8 * "then ", "up to 8 phases")):
            done = subprocess.run([simrun.PROGRAM], input=line + "\n",
                                  text=True, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), line)
            self.assertIn(text, done.stderr)

    def test_command_lines(self):
        """The sweep's."""
        for words in (["--configs", "0"], ["--seed", "x"], ["--bogus"]):
            done = subprocess.run(
                [sys.executable, "-m", "lab.sim.sim", *words],
                text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("sim.py: error", done.stderr)


class Interrupted(unittest.TestCase):
    """Ctrl-C in a sweep."""

    class Worker:
        """One that Ctrl-C reaches at some configuration."""

        def __init__(self, at):
            self.at = at

        def judge(self, index):
            """Its number."""
            if index == self.at:
                raise KeyboardInterrupt
            return index

        def stop(self):
            """Nothing to stop."""

    def test_what_is_done_stays(self):
        """And nothing is waited for that has not begun."""
        found = simrun.all_of([self.Worker(3)], range(1000), "sim")
        self.assertEqual(found[:3], [0, 1, 2])
        self.assertNotIn(3, found)

    def test_nothing_done(self):
        """Then there is nothing to report."""
        with self.assertRaises(KeyboardInterrupt):
            simrun.all_of([self.Worker(0)], range(1), "sim")


class Sweep(unittest.TestCase):
    """The configurations, and what is made of the figures."""

    def test_configurations(self):
        """All can be simulated, and are the same each time."""
        for index in range(300):
            config = simconfigs.generate(2, index)
            self.assertEqual(config, simconfigs.generate(2, index))
            for phase in config.phases:
                for last in phase.loads:
                    self.assertLessEqual(last["batch"], last["depth"])
                    self.assertLessEqual(last["complete"], last["batch"])
            self.assertLessEqual(config.in_flight(),
                                 simconfigs.MOST_IN_FLIGHT)

    def test_variety(self):
        """Everything that real loads do is drawn, and plugsim takes it."""
        some = [simconfigs.generate(3, index) for index in range(300)]
        self.assertEqual({one.of_class() for one in some},
                         set(simconfigs.CLASSES))
        found = {trait for one in some for trait in one.traits()}
        self.assertLessEqual({"sequential", "bursts",
                              "submissions of any size",
                              "queues with mixed loads"}, found)
        periods = [one.period for one in some if one.period]
        self.assertTrue(all(10**7 <= one <= 10**9 for one in periods))
        self.assertGreater(max(periods), 20 * min(periods))
        for name in ("sequential", "bursts", "queues with mixed loads",
                     "submissions of any size"):
            run(next(one for one in some if name in one.traits()).line(8, 1))
        run(next(one for one in some if one.period).line(8, 1))

    def test_whole_bursts(self):
        """Are measured, and no more than plugsim takes."""
        for index in range(300):
            config = simconfigs.generate(2, index)
            last = config.phases[0].loads[-1]
            if "pause" in last and not config.period:
                time = config.lengths(True)["time"]
                self.assertEqual(time % (last["burst"] + last["pause"]), 0)
                self.assertLessEqual(time, simconfigs.MAX_NS)

    def test_groups(self):
        """Groups that can not differ are not run."""
        config = simconfigs.Configuration(
            0, "closed", {}, (simconfigs.Phase({}, ({"batch": 4},)),))
        self.assertEqual(simrun.groups_of(config), [1, 2, 32])

    def test_shares(self):
        """What a submitter has, as a ratio to always."""
        def runs(adaptive, always):
            return (32, {simrun.ADAPTIVE: {"ios": adaptive},
                         simrun.ALWAYS: {"ios": always}})
        got = simrun.shares([runs([50, 150], [200, 200])])
        self.assertEqual(got, {"least": 0.5, "largest": 1.5})
        got = simrun.shares([runs([10, 30], [100, 300])])
        self.assertEqual(got, {"least": 1, "largest": 1})

    def test_beside(self):
        """Doorbells, shares and the open loop are in the report."""
        record = simrun.judge_one(ENGINE[0], next(
            one for one in (simconfigs.generate(1, index)
                            for index in range(99))
            if one.tasks() > 1 and one.kind == "closed"))
        self.assertIn("several ", simreport.beside_table([record]))
        self.assertIn("least", simreport.share_table([record]))
        record = {**record, "kind": "open", "p99": 1.25, "first50_p99": 2.5,
                  "first200_p99": 3.75}
        text = simreport.open_table([record])
        for value in ("1.2500", "2.5000", "3.7500"):
            self.assertIn(value, text)

    def test_beginnings(self):
        """Are compared with always and with the best, and are in no other
        figure; those of few I/Os are none."""
        def result(begun, iops, ios=5000):
            first = {name: {"iops": rate, "ios": ios, "p99": 1}
                     for name, rate in zip(simrun.BEGINNINGS, begun)}
            part = {"iops": iops, "late": iops, "mean": 1, "p99": 1,
                    "doorbells": 1, "requests": 1}
            return {"all": part, "phases": [{**part, **first}],
                    "final_group": 8, "changes": 1, "ios": [1]}
        config = simconfigs.Configuration(
            0, "closed", {"hctxs": 1, "tasks": 1}, ())
        runs = {simrun.ADAPTIVE: result((80, 95), 110),
                simrun.ALWAYS: result((100, 100), 100),
                8: result((125, 125), 110)}
        got = simrun.figures(config, [(8, runs)])
        for key, value in (("first50", 0.36), ("first50_to_always", 0.8),
                           ("first200", 0.24), ("first200_to_always", 0.95),
                           ("regret", 0), ("late", 0)):
            self.assertAlmostEqual(got[key], value, msg=key)
        got.update(kind="closed", **{"class": "one queue", "traits": []})
        text = simreport.beginning_table([got])
        for value in ("first 50 ms", "0.8000", "first 200 ms", "0.9500"):
            self.assertIn(value, text)
        found = simreport.summaries([got])
        self.assertAlmostEqual(found["adaptive, first 200 ms"]["mean"], 0.24)
        runs[simrun.ALWAYS] = result((100, 100), 100, 1999)
        got = simrun.figures(config, [(8, runs)])
        self.assertNotIn("first50", got)
        self.assertNotIn("first50_to_always", got)

    def test_best_is_chosen_by_others(self):
        """A seed that is lucky for a group does not measure it."""
        def result(iops):
            return {"all": {"iops": iops}}
        judge = simrun.Judge(None, simconfigs.generate(1, 0))
        judge.config = simconfigs.Configuration(
            0, "closed", {}, (simconfigs.Phase({}, ({"batch": 2},)),))
        found = iter([result(iops) for iops in (
            8, 20, 10, 8, 9, 10, 8, 9, 10, 8, 9, 10)])
        judge.run = lambda groups, *_: {group: next(found)
                                        for group in groups}
        rounds = judge.look_again()
        self.assertEqual([best for best, _ in rounds], [32, 1, 1, 1])
        self.assertAlmostEqual(
            simrun.regret(rounds, 0, simrun.of_all("iops")), 1 - 32 / 37)

    def test_summary(self):
        """Quantiles of one to a hundred."""
        got = simreport.summary(list(range(1, 101)))
        self.assertEqual((got["n"], got["mean"], got["p50"], got["worst"]),
                         (100, 50.5, 51, 100))
        self.assertIsNone(simreport.summary([]))

    def test_range_class(self):
        """Names of ranges."""
        names = [simconfigs.range_class("batch", value, (1, 4, 16))
                 for value in (1, 2, 4, 16, 17)]
        self.assertEqual(names, ["batch 1", "batch 2 to 4", "batch 2 to 4",
                                 "batch 5 to 16", "batch 17 and more"])
