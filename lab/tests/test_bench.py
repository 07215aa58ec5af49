# SPDX-License-Identifier: GPL-2.0
"""What the benchmarks do before and after a guest has run."""
import os
import subprocess
import sys
import tempfile
import unittest

from lab.bench import cell_records
from lab.bench import cells
from lab.bench import kernels
from lab.bench import lab
from lab.bench import pace
from lab.bench import profiles
from lab.bench import rfc
from lab.bench import run_suites
from lab.bench import suites

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
            {"gen4", "gen5", "optane", "vm", "lockstep", "saturated",
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
        known = {**profiles.load(), **lab.DRIVERS}
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

    def test_chunks_take_as_long(self):
        """A guest that warms adaptive up has fewer cells; it starts first."""
        made = lab.chunks(suites.SUITES["rfc"].make(6))
        weights = [sum(cells.WARM_CELLS if cells.is_long(one) else 1
                       for _, one in numbered) for _, numbered in made]
        self.assertLessEqual(max(weights), lab.CELLS_PER_BOOT)
        self.assertEqual(weights, sorted(weights, reverse=True))
        for name, policies in (("rfc", {"adaptive"}),
                               ("device", {"adaptive", "always"})):
            self.assertEqual({one.policy for one in suites.SUITES[name].make(1)
                              if cells.is_long(one)}, policies)


class Records(unittest.TestCase):
    """What guests said, as records."""

    def make(self, said=(), **changes):
        """A record of a cell, of which the guest said this."""
        one = cell(**changes)
        return cell_records.make(one, profiles.load()[one.profile],
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
        """The patches of baselines/ still fit the source, if they are used."""
        unused = {"rfcera.patch"} if rfc.ERA == "unpatched" else set()
        for name in sorted(set(os.listdir(lab.kernel.BASELINES)) - unused):
            done = subprocess.run(
                ["git", "-C", lab.kernel.BASE, "apply", "--check",
                 os.path.join(lab.kernel.BASELINES, name)], check=False,
                stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, name + done.stderr)


class Command(unittest.TestCase):
    """The command line."""

    def test_suites(self):
        """Default, all, a list, and a name that is none."""
        self.assertEqual(run_suites.pick(""), suites.DEFAULT)
        self.assertEqual(run_suites.pick("all"), [*suites.SUITES, *run_suites.OWN])
        self.assertEqual(run_suites.pick("poll,cpu"), ["poll", "cpu"])
        with self.assertRaisesRegex(run_suites.UsageError, "'speed' is none of"):
            run_suites.pick("speed")

    def test_bad_input_measures_nothing(self):
        """A file to compare with that is not there."""
        done = subprocess.run(
            [sys.executable, "-m", "lab.bench.run_suites", "--compare",
             "/nonexistent.json"], check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nonexistent.json", done.stderr)
        self.assertNotIn("==", done.stdout)


class Lengths(unittest.TestCase):
    """How long a cell lasts, and how much of it is measured."""

    def words(self, **changes):
        """{option: value} of a cell's command."""
        one = cell(**changes)
        words = cells.WORKLOADS[one.workload].command(
            profiles.load()[one.profile], one)
        return {key: value for key, value in zip(words, words[1:])
                if key.startswith("-") and not value.startswith("-")}

    def measured(self, **changes):
        """I/Os that are."""
        words = self.words(**changes)
        return int(words["-n"]) - int(words["-W"])

    def test_adaptive_learns(self):
        """1 s, or 50 ms, and as much is measured of it as of others, which have
        50 ms where a device takes time."""
        for profile, least, other in (
                ("gen4", 821000, 41000), ("gen5", 1020000, 51000),
                ("vm", 1500000, 75000), ("lockstep", 1100000, 55000),
                ("optane", 85000, 85000), ("null", 150000, 6400)):
            words = self.words(profile=profile, policy="adaptive")
            self.assertGreaterEqual(int(words["-W"]), least)
            self.assertEqual(self.measured(profile=profile, policy="adaptive"),
                             self.measured(profile=profile))
            for policy in ("always", "never"):
                had = int(self.words(profile=profile, policy=policy)["-W"])
                self.assertGreaterEqual(had, other)
                self.assertLess(had, 2 * other)

    def test_start(self):
        """From an idle device, with nothing learnt, for 50 and 200 ms of a
        real machine: both policies alike, and only where the warm-up hides
        it."""
        for end, ms in (("first50", 370), ("first200", 1480)):
            changes = {"profile": "vm", "workload": "rand4k-s32-" + end}
            words = self.words(policy="adaptive", **changes)
            self.assertEqual(words, self.words(**changes))
            self.assertEqual(words["-T"], str(ms))
            self.assertFalse({"-W", "-n", "-t"} & set(words))
        for name, where in (("device", {"gen4", "gen5", "vm", "lockstep"}),
                            ("rfc", {"gen4", "gen5"})):
            made = [one for one in suites.SUITES[name].make(2)
                    if "-first" in one.workload]
            self.assertEqual(len(made), len(where) * 2 * 2 * 2)
            self.assertEqual({one.profile for one in made}, where)
            self.assertEqual({(one.kernel, one.policy) for one in made},
                             {cells.ALWAYS, cells.ADAPTIVE})

    def test_later(self):
        """Both policies after a second: adaptive as in its own row."""
        changes = {"profile": "gen4", "workload": "rand4k-s32-after1s"}
        words = self.words(**changes)
        self.assertEqual(words, self.words(policy="adaptive", **changes))
        self.assertEqual(words["-W"], self.words(
            profile="gen4", policy="adaptive")["-W"])
        made = [one for one in suites.SUITES["device"].make(1)
                if one.workload == changes["workload"]]
        self.assertEqual({(one.kernel, one.policy) for one in made},
                         {cells.ALWAYS, cells.ADAPTIVE})
        self.assertEqual({one.profile for one in made}, set(cells.WARM))

    def test_runs_of_adaptive(self):
        """Fewer by default, since each takes long; as many if more are asked
        for."""
        for asked, runs in ((1, 1), (suites.RFC_RUNS, suites.WARMED_RUNS),
                            (12, 12)):
            made = suites.SUITES["rfc"].make(asked)
            for policy, expected in (("adaptive", runs), ("never", asked)):
                self.assertEqual(len([one for one in made if (
                    one.policy, one.profile, one.workload) == (
                        policy, "gen4", "rand4k-s32")]), expected)

    def test_start_is_a_row(self):
        """With its own ratio to the unpatched plug, in records and table."""
        found = []
        for kernel, policy, rates in (("unpatched", "always", (100, 200)),
                                      ("patched", "adaptive", (90, 198))):
            for end, rate in zip(cells.BEGINNINGS, rates):
                one = cell(suite="device", profile="gen4", kernel=kernel,
                           policy=policy, workload="rand4k-s32" + end)
                found.append(cell_records.make(
                    one, profiles.load()["gen4"],
                    {**WORDS, "ios": str(rate)}, None, "c"))
        made = run_suites.summarise(found)
        self.assertEqual({one["doorbells_per_io"] for one in found},
                         {20, 10, 22.22222, 10.10101})
        ratios = {one["workload"]: one["ratio"] for one in made
                  if one["policy"] == "adaptive"}
        self.assertAlmostEqual(ratios["rand4k-s32-first50"], 0.9, 5)
        self.assertAlmostEqual(ratios["rand4k-s32-first200"], 0.99, 5)
        text = run_suites.tables.table(made)
        for title in ("gen4, rand4k-s32-first50", "gen4, rand4k-s32-first200"):
            self.assertIn(title, text)

    def test_pace(self):
        """What limits a load: the core, latency, units, or the link."""
        known = profiles.load()
        for profile, args, low, high in (
                ("null", "-d 128", 3e6, 3e6),
                ("gen4", "-d 128", 830e3, 1.2e6),
                ("saturated", "-d 128", 1.06e6, 1.07e6),
                ("gen4", "-d 128 -b 128k", 50e3, 50.2e3),
                ("gen4", "-s 32 -w", 209e3, 230e3),
                ("gen4", "-d 128 -b 4k --bs2 128k --period 9", 9e4, 1e5)):
            got = pace.iops(args, known[profile])
            self.assertTrue(low <= got <= high, (profile, args, got))
