# SPDX-License-Identifier: GPL-2.0
"""What "loads" measures, and what it makes of it."""
import unittest

from lab.bench import cell_records
from lab.bench import cells
from lab.bench import foreign
from lab.bench import lab
from lab.bench import loads
from lab.bench import profiles
from plugtools.report.summary import summarise

SAID = {"bytes": "40960000", "ns": "100000000", "all_bytes": "81920000",
        "dev_commands": "20000", "dev_doorbells": "625", "in_force": "none",
        "nomerges": "0"}
DONE = {"bytes": "4096000", "ops": "500", "us": "1000000",
        "dev_commands": "1000", "in_force": "none", "nomerges": "0"}


def cell(pair=loads.ALWAYS, profile="null", workload="fio-rand4k-s32"):
    """One of the suite's."""
    return cells.Cell("loads", *pair, profile, workload)


def record(said=None, **where):
    """What a guest said of a cell, as a record."""
    one = cell(**where)
    known = {**profiles.load(), **lab.DRIVERS}
    return cell_records.make(one, known[one.profile], said or SAID, None, "c")


class Loads(unittest.TestCase):
    """What is run."""

    def test_all_that_was_asked_for(self):
        """Each engine, pattern, size, submission, number of jobs and program
        is somewhere."""
        lines = [load.command_line for load in foreign.ALL]
        for words in ("io_uring", "libaio", "--rw=read ", "randread", "zipf",
                      "rwmixread=70", "bs=4k", "bs=16k", "bs=64k", "bs=128k",
                      "submit=1 ", "submit=8 ", "submit=32 ", "submit=128 ",
                      "complete_max=128", "numjobs=2", "numjobs=4",
                      "read:-8k", "offset_increment=50%", "roundrobin",
                      "thinktime=1ms", "startdelay", "-R0", "-p1", "fsync",
                      "fillseq", " -S", "readrandom", "multireadrandom",
                      "readwhilewriting", "scan.sql"):
            self.assertTrue(any(words in line + " " for line in lines), words)

    def test_the_review_s(self):
        """These two showed adaptive at 0.93 and 0.88: word for word."""
        fio = cells.WORKLOADS["fio-seq4k-s32"].command_line
        for word in ("--ioengine=io_uring --rw=read --bs=4k --iodepth=128 "
                     "--iodepth_batch_submit=32 --fixedbufs --registerfiles "
                     "--iodepth_batch_complete_min=32").split():
            self.assertIn(word, fio.split())
        tio = cells.WORKLOADS["tio-seq4k-s32"].command_line
        for word in "-d128 -c32 -s32 -R0 -B1 -F1".split():
            self.assertIn(word, tio.split())

    def test_four_policies_each(self):
        """Wherever a load is measured."""
        made = loads.make(1)
        for one in made:
            for kernel, policy in loads.PAIRS:
                self.assertIn(cells.Cell("loads", kernel, policy, one.profile,
                                         one.workload), made)

    def test_every_device(self):
        """That the issue names, null_blk besides."""
        self.assertEqual({one.profile for one in loads.make(1)},
                         {"null", "gen4", "gen5", "optane", "lockstep",
                          cells.NVME, cells.NULL_BLK})

    def test_adaptive_learns(self):
        """50 ms of a real machine; of a guest whose clock is the real
        machine's that many."""
        load = cells.WORKLOADS["fio-rand4k-s32"]
        null, nvme = profiles.load()["null"], lab.DRIVERS[cells.NVME]
        self.assertEqual(load.times(null, "adaptive"), (370, foreign.MS))
        self.assertEqual(load.times(nvme, "adaptive"), (50, foreign.MS))
        self.assertLess(load.times(null, "always")[0], 370)

    def test_phases_are_whole(self):
        """A turn of each, for all policies alike."""
        self.assertEqual(
            {foreign.PHASES.times(profiles.load()["gen4"], policy)
             for policy in ("always", "adaptive")},
            {(2 * foreign.PHASE_MS, 2 * foreign.PHASE_MS)})

    def test_drivers_have_a_command(self):
        """Not the model's."""
        known = {**profiles.load(), **lab.DRIVERS}
        for profile, command in ((cells.NVME, "nvme_load 7 always load_raw "),
                                 (cells.NULL_BLK, "null_blk_load 7 always ")):
            self.assertTrue(lab.plan_line(7, cell(profile=profile), known)
                            .startswith(command))


class Figures(unittest.TestCase):
    """What guests said."""

    def test_watched(self):
        """10000 blocks of 4K in 100 ms; counters are of the whole run."""
        scale = profiles.scale(profiles.load()["null"])
        got = record()
        self.assertAlmostEqual(got["iops"], 100000 * scale)
        self.assertAlmostEqual(got["requests_per_io"], 1)
        self.assertAlmostEqual(got["doorbells_per_io"], 625 / 20000)

    def test_larger_blocks(self):
        """An I/O is as large as the load's."""
        got = record(workload="fio-seq128k-s32")
        self.assertAlmostEqual(got["requests_per_io"], 32)

    def test_no_doorbells(self):
        """null_blk has none to count."""
        said = {key: value for key, value in SAID.items()
                if key != "dev_doorbells"}
        self.assertIsNone(record(said, profile=cells.NULL_BLK)
                          ["doorbells_per_io"])

    def test_work(self):
        """Operations a second, and requests of 4K."""
        got = record(DONE, profile=cells.NVME, workload="db-readrandom")
        self.assertAlmostEqual(got["iops"], 500)
        self.assertAlmostEqual(got["requests_per_io"], 1)

    def test_missing_program(self):
        """Is said by its name."""
        with self.assertRaisesRegex(lab.LabError, "no-such-program"):
            lab.with_libraries("no-such-program")


class Table(unittest.TestCase):
    """What is shown."""

    def setUp(self):
        """Two loads: adaptive loses in the second, whose nomerges=2 wins."""
        found = []
        for workload, factors in (("fio-rand4k-s32", (1, 1.02, 1.01, 1.03)),
                                  ("fio-seq4k-s32", (1, 1.25, 1, 0.9))):
            for pair, factor in zip(loads.PAIRS, factors):
                said = {**SAID, "bytes": str(int(40960000 * factor))}
                found.append(record(said, pair=pair, workload=workload))
        self.summary = summarise(found)

    def test_worst_first(self):
        """By adaptive's ratio, which is also taken to the better one."""
        first, second = loads.rows(self.summary)
        self.assertEqual(first[0], "null: fio-seq4k-s32")
        self.assertAlmostEqual(loads.to_best(first[1]), 0.72)
        self.assertAlmostEqual(loads.to_best(second[1]), 1.03 / 1.02)

    def test_count(self):
        """Of those that lose."""
        said = loads.mean_lines(loads.rows(self.summary))[-1]
        self.assertIn("in 1 of 2", said)

    def test_plot(self):
        """A place for each load, a point for each policy."""
        drawn = "\n".join(loads.script(loads.rows(self.summary)))
        self.assertIn('"null: fio-seq4k-s32" 0', drawn)
        self.assertIn("\n0.9 0\n", drawn)


class Verdicts(unittest.TestCase):
    """What the short form asserts, and that it can fail."""

    def bad(self, said=(), **where):
        """What is wrong with a record, of which a guest said this, too."""
        one = record({**SAID, "dev_commands": "20000", **dict(said)}, **where)
        return [what for what, good in loads.verdicts(one) if not good]

    def test_good(self):
        """Nothing is."""
        self.assertEqual(self.bad(), [])
        self.assertEqual(self.bad({"in_force": "adaptive"},
                                  pair=loads.ADAPTIVE), [])
        self.assertEqual(self.bad({"dev_commands": "625"},
                                  workload="fio-seq4k-s32"), [])

    def test_each_can_fail(self):
        """One thing at a time."""
        self.assertEqual(self.bad({"bytes": "0"}), ["did I/O on the disk"])
        self.assertEqual(self.bad({"in_force": "always"},
                                  pair=loads.ADAPTIVE),
                         ["ran under its policy"])
        self.assertEqual(self.bad({"nomerges": "2"}),
                         ["ran under its policy"])
        self.assertEqual(self.bad(workload="fio-seq4k-s32"),
                         ["neighbours merged"])
        self.assertEqual(self.bad({"dev_commands": "10000"}),
                         ["one request for each I/O"])
