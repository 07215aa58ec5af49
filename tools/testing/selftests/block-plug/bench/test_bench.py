#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the benchmarks do before and after a guest has run."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import bench  # noqa: E402 pylint: disable=wrong-import-position
import cells  # noqa: E402 pylint: disable=wrong-import-position
import eventsim  # noqa: E402 pylint: disable=wrong-import-position
import kernels  # noqa: E402 pylint: disable=wrong-import-position
import lab  # noqa: E402 pylint: disable=wrong-import-position
import profiles  # noqa: E402 pylint: disable=wrong-import-position
import records  # noqa: E402 pylint: disable=wrong-import-position
import suites  # noqa: E402 pylint: disable=wrong-import-position

WORDS = {"ios": "900", "ns": "3000000", "lat_mean": "6000", "lat_p50": "5000",
         "lat_p99": "9000", "lat_p999": "12000", "cpu_ns": "1500000",
         "dev_doorbells": "2000", "dev_commands": "64000",
         "dev_interrupts": "0"}


def cell(**changes):
    """A cell of the cpu suite."""
    values = {"suite": "cpu", "kernel": "unpatched", "policy": "always",
              "profile": "null", "workload": "rand4k-s32", **changes}
    return cells.Cell(**values)


class Profiles(unittest.TestCase):
    """profiles.ini."""

    def write(self, text):
        """A profile file of its own."""
        where = tempfile.NamedTemporaryFile("w", suffix=".ini", delete=False)
        self.addCleanup(os.unlink, where.name)
        with where:
            where.write(text)
        return where.name

    def test_all_are_there(self):
        """The ones that the issue names."""
        self.assertLessEqual(
            {"gen4", "gen5", "optane", "vm", "lockstep", "saturated", "hdd",
             "null"}, set(profiles.load()))

    def test_one_scale(self):
        """The CPU is the same CPU for every device."""
        scales = {p["time_scale"] for p in profiles.load().values()}
        self.assertEqual(len(scales), 1)

    def test_section_overrides_common(self):
        """A section's key wins; the others are filled in."""
        path = self.write("[common]\na = 1\nb = 2\n[x]\nb = 3\n")
        self.assertEqual(profiles.load(path)["x"], {"a": "1", "b": "3"})

    def test_bad_files(self):
        """What cannot be is said, with the file's name."""
        for text in ("[x]\na = 1 2\n", "[x]\na =\n", "a = 1\n", "[x]\n[x]\n"):
            path = self.write(text)
            with self.assertRaisesRegex(profiles.ProfileError, path):
                profiles.load(path)


class Plan(unittest.TestCase):
    """What guests are told."""

    def test_every_cell_has_its_line(self):
        """All suites' cells make a plan; no cell is told twice."""
        known = {**profiles.load(), cells.NVME: lab.NVME_PROFILE}
        for suite in suites.SUITES.values():
            wanted = suite.make(suite.runs)
            self.assertEqual(len(wanted), len(set(wanted)), suite.name)
            for number, one in enumerate(wanted):
                self.assertIn(" %d %s " % (number, one.policy),
                              lab.plan_line(number, one, known))

    def test_workload_overrides_profile(self):
        """Two namespaces are asked for once, by the workload."""
        line = lab.plan_line(0, cell(workload="twons-rand4k-s32"),
                             profiles.load())
        self.assertIn("namespaces=2", line)

    def test_unpolled(self):
        """A workload that is not polled has no poll queue."""
        line = lab.plan_line(0, cell(workload="rand4k-qd4"), profiles.load())
        self.assertIn("poll_queues=0", line)
        self.assertNotIn(" -P", line)

    def test_baseline_in_every_suite(self):
        """There is something to compare with, for each workload."""
        for suite in suites.SUITES.values():
            made = suite.make(1)
            base = {(one.profile, one.workload) for one in made if
                    (one.kernel, one.policy) == ("unpatched", "always")}
            self.assertEqual(base, {(one.profile, one.workload)
                                    for one in made}, suite.name)

    def test_chunks_lose_nothing(self):
        """Each cell is in one boot, of its own kernel."""
        wanted = suites.SUITES["device"].make(1)
        seen = {}
        for name, numbered in lab.chunks(wanted):
            for number, one in numbered:
                self.assertEqual(one.kernel, name)
                self.assertNotIn(number, seen)
                seen[number] = one
        self.assertEqual(list(map(seen.get, range(len(wanted)))), wanted)


class Records(unittest.TestCase):
    """What guests said, as records."""

    def make(self, said=(), **changes):
        """A record of a cell, of which the guest said this."""
        one = cell(**changes)
        return records.make(one, profiles.load()[one.profile],
                            {**WORDS, **dict(said)}, None, "c")

    def test_scaled_back(self):
        """900 I/Os in 3 ms of a guest, at the one scale."""
        scale = profiles.scale(profiles.load()["null"])
        got = self.make()
        self.assertAlmostEqual(got["iops"], 300000 * scale)
        self.assertAlmostEqual(got["lat_us"]["mean"], 6 / scale, places=3)
        self.assertAlmostEqual(got["cpu_busy"], 0.5)

    def test_counts_cover_the_warm_up(self):
        """The device's counters are of all I/Os, so they are divided by all."""
        got = self.make()
        self.assertAlmostEqual(got["requests_per_io"], 1)
        self.assertAlmostEqual(got["doorbells_per_io"], 0.03125)

    def test_instructions_only_where_time_is_instructions(self):
        """Who waits for a device, or sleeps, counts no instructions."""
        busy = {"cpu_ns": "2999000"}
        self.assertAlmostEqual(self.make(busy)["insns_per_io"], 3333.33333)
        self.assertIsNone(self.make(busy, profile="gen4")["insns_per_io"])
        self.assertIsNone(self.make()["insns_per_io"])

    def test_no_plug_is_a_policy(self):
        """The RFC's hack is recorded as the unpatched kernel's."""
        got = self.make(kernel="noplug", policy="noplug")
        self.assertEqual((got["kernel"], got["policy"]),
                         ("unpatched", "noplug"))


class Kernels(unittest.TestCase):
    """Which kernels may be compared."""

    def test_same_image_is_refused(self):
        """A kernel compared with itself."""
        known = [{"name": "unpatched", "sha256": "a"},
                 {"name": "patched", "sha256": "a"}]
        with self.assertRaisesRegex(lab.LabError, "same image"):
            kernels.refuse_same(known)
        kernels.refuse_same(known[:1] + [{"name": "patched", "sha256": "b"}])

    def test_config_difference(self):
        """Both directions, and only what differs."""
        self.assertEqual(
            kernels.difference({"A": "y", "B": "y"}, {"A": "y", "C": "m"}),
            ["B=y, not n", "C=n, not m"])

    def test_baselines_apply(self):
        """The patches of baselines/ still fit the source."""
        for name in sorted(os.listdir(lab.kernel.BASELINES)):
            done = subprocess.run(
                ["git", "-C", lab.kernel.BASE, "apply", "--check",
                 os.path.join(lab.kernel.BASELINES, name)], check=False,
                stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, name + done.stderr)


class Command(unittest.TestCase):
    """The command line."""

    def test_suites(self):
        """Default, all, a list, and a name that is none."""
        self.assertEqual([s.name for s in bench.pick("")], suites.DEFAULT)
        self.assertEqual(len(bench.pick("all")), len(suites.SUITES))
        self.assertEqual([s.name for s in bench.pick("poll,cpu")],
                         ["poll", "cpu"])
        with self.assertRaisesRegex(bench.UsageError, "'speed' is none of"):
            bench.pick("speed")

    def test_bad_input_measures_nothing(self):
        """A file to compare with that is not there."""
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "bench.py"), "--compare",
             "/nonexistent.json"], check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nonexistent.json", done.stderr)
        self.assertNotIn("==", done.stdout)


class Simulation(unittest.TestCase):
    """The second opinion, against what can be written down."""

    def test_saturated(self):
        """64 units of 60 us are 1.067M a second, whatever the core does."""
        got = eventsim.iops(eventsim.Core(200, 100),
                            eventsim.Device(units=64, service=60000),
                            eventsim.Shape(), 32000, 1)
        self.assertAlmostEqual(got / (64e9 / 60000), 1, delta=0.005)

    def test_cpu_bound(self):
        """Without a device, it is the core's costs and the doorbell's."""
        got = eventsim.iops(eventsim.Core(200, 100, 320), eventsim.Device(),
                            eventsim.Shape(), 32000, 1)
        self.assertAlmostEqual(got / (1e9 / 310), 1, delta=0.001)

    def test_one_at_a_time(self):
        """Depth 1: latency and costs add up."""
        got = eventsim.iops(eventsim.Core(200, 100),
                            eventsim.Device(9700, 9700),
                            eventsim.Shape(1, 1, 1, 1), 3200, 1)
        self.assertAlmostEqual(got, 1e5, delta=1)


if __name__ == "__main__":
    unittest.main()
