#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench: what it refuses, in which order it runs, and what it
writes.
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from benchtree import QUEUE, SHORT, Case
from plugtools.records import load


class BadInput(Case):
    """Refused with what is accepted, exit code 2, nothing changed."""

    def test_options(self):
        """Values that cannot be."""
        for words, says in (
                (["--policies", "sometimes"],
                 "never, seq-small, adaptive, nomerges2"),
                (["--policies", ""], "'' is none of"),
                (["--workloads", "always"], "none of: rand4k-s32"),
                (["--workloads", "rand4k-s32,"], "'' is none of"),
                (["--workloads", "rand4k"], "none of: rand4k-s32"),
                (["--workloads", "mix70-s32"], "needs --write"),
                (["--runtime", "0"], "a whole number from 1"),
                (["--repeat", "-1"], "--repeat"),
                (["--cpu", "99999"], "CPUs that this process may use"),
                (["--cpu", "x"], "the number of a CPU"),
                (["--yes"], "--yes needs --write"),
                (["--null"], "either /dev/DISK or --null"),
                (["--restore"], "either /dev/DISK or --null"),
                (["--budget", "0"], "with s, m or h, as 5m"),
                (["--budget", "5 m"], "with s, m or h, as 5m"),
                (["--iops", "x"], "a whole number from 1"),
                (["--fail-below", "0.9"], "needs --compare"),
                (["--compare", "x.json", "--fail-below", "2"],
                 "a ratio above 0 and up to 1"),
                (["--compare", "none.json"], "none.json"),
                (["--jobfile", "x", "--workloads", "rand4k-s32"],
                 "either --jobfile or --workloads"),
                (["--frobnicate"], "unrecognized")):
            with self.subTest(words):
                self.check_untouched("/dev/nvme0n1", *words, code=2,
                                     says=says)

    def test_no_device(self):
        """Neither a missing node, nor something else."""
        for device in ("nvme7n1", "/dev/nvme7n1", "/dev/other", "/dev"):
            with self.subTest(device):
                self.check_untouched(device, code=2,
                                     says="accepted: a whole disk")

    def test_partition(self):
        """The message names the disk."""
        self.check_untouched("/dev/nvme0n1p1", code=2,
                             says="accepted: /dev/nvme0n1\n")


class Environment(Case):
    """What the machine lacks: exit code 1, nothing changed."""

    def test_no_knob(self):
        """An unpatched kernel."""
        os.unlink(self.machine.path(QUEUE + "plug_policy"))
        self.check_untouched("/dev/nvme0n1", code=1,
                             says="needs the series and "
                             "CONFIG_BLK_PLUG_POLICY=y")

    def test_no_fio(self):
        """It says how to get it."""
        os.unlink(os.path.join(self.machine.bin, "fio"))
        self.check_untouched("/dev/nvme0n1", code=1, says="apt install fio")

    def test_result_cannot_be_written(self):
        """That is found out before, not after, measuring."""
        self.check_untouched("/dev/nvme0n1", "--json", "/nowhere/x", code=1,
                             says="cannot write /nowhere/x")
        self.check_untouched("/dev/nvme0n1", "--json", "/dev/null", code=1,
                             says="cannot write /dev/null")

    def test_dry_run(self):
        """Plan and checks, and nothing else."""
        before = self.machine.snapshot()
        text = self.bench("--dry-run")
        self.assertIn("scheduler mq-deadline makes every policy", text)
        self.assertIn("1 s each after 1 s to warm up:\n  5 runs, some",
                      text)
        self.assertEqual(self.machine.snapshot(), before)

    def test_vanished(self):
        """The disk goes while fio runs."""
        self.machine.put("fio.vanish", "")
        text = self.bench(code=1)
        self.assertIn("nvme0n1 has vanished", text)
        self.assertNotIn("Traceback", text)
        self.assertNotIn("is not restored", text)


class Scheduler(Case):
    """An elevator makes every policy do as "always"."""

    def test_none_during_the_run(self):
        """By default it is taken out, and put back."""
        self.bench()
        self.assertEqual({one["scheduler"] for one in self.machine.log()},
                         {"none"})
        self.check_restored()

    def test_kept(self):
        """On request, with a warning."""
        text = self.bench("--keep-scheduler")
        self.assertIn("warn:  scheduler mq-deadline is kept", text)
        self.assertIn("[mq-deadline]", self.machine.get("fio.log"))

    def test_none_not_offered(self):
        """Refused, unless it may stay."""
        self.machine.put(QUEUE + "scheduler", "[bfq]")
        self.check_untouched("/dev/nvme0n1", code=1, says="--keep-scheduler")
        self.bench("--keep-scheduler")

    def test_effect(self):
        """The kernel says that a policy is not in force: so do we, once."""
        self.machine.put("sys/kernel/debug/block/nvme0n1/hctx0/plug_policy",
                         "set: never\nhold: always (no queue_rqs)")
        text = self.bench("--policies", "never")
        self.assertEqual(text.count("does as \"always\" here: no queue_rqs"),
                         1)


class Order(Case):
    """The policies take turns."""

    def test_rotation(self):
        """Each round begins with another policy."""
        self.bench("--repeat", "3", "--policies", "always,never,seq-small")
        self.assertEqual([one["policy"] for one in self.machine.timed()],
                         ["always", "never", "seq-small",
                          "never", "seq-small", "always",
                          "seq-small", "always", "never"])

    def test_seeds(self):
        """The same in a round, another in the next."""
        self.bench("--policies", "always,never", "--repeat", "2")
        self.assertEqual([one["--randseed"] for one in self.machine.timed()],
                         ["1", "1", "2", "2"])


class Result(Case):
    """What is written and printed."""

    def test_json(self):
        """Every policy and workload, as a report reads them."""
        self.bench("--workloads", "rand4k-s32,rand4k-qd1", "--repeat", "2")
        records, meta = load(
            self.machine.path("plugbench-nvme0n1.json"))
        self.assertEqual(
            {(one["workload"], one["policy"], one["run"])
             for one in records},
            {(name, policy, run) for name in ("rand4k-s32", "rand4k-qd1")
             for policy in ("always", "never", "seq-small", "adaptive",
                            "nomerges2")
             for run in (0, 1)})
        self.assertEqual(len(records), 20)
        self.assertEqual(meta["disk"], "nvme0n1")

    def test_compare(self):
        """With an earlier result, after measuring or of two files."""
        words = ["--repeat", "5", "--policies", "nomerges2",
                 "--keep-scheduler"]
        self.bench(*words, "--json", "old.json")
        told = json.loads(self.machine.get("fio.json"))
        told["jobs"][0]["mixed"]["iops"] *= 0.9
        self.machine.put("fio.json", json.dumps(told))
        words += ["--compare", "old.json", "--fail-below", "0.97"]
        self.assertIn("regression", self.bench(*words, code=3))
        files = ["plugbench-nvme0n1.json", "--compare", "old.json"]
        for more, code in (([], 0), (["--fail-below", "0.8"], 0),
                           (["--fail-below", "0.97"], 3)):
            self.assertEqual(self.machine.run(*files, *more)[0], code, more)
        self.check_untouched("/dev/nvme0n1", "--keep-scheduler",
                             "--compare", "old.json", "--json", "old.json",
                             code=1, says="would overwrite old.json")

    def test_record(self):
        """The figures of fio and of the disk."""
        self.bench("--commit", "abc")
        one = self.machine.records()[0]
        for name, value in {
                "iops": 1000.5, "kernel": "patched", "suite": "plugbench",
                "profile": "Fake SSD", "model": "Fake  SSD",
                "firmware": "1.0", "commit": "abc", "requests_per_io": 0.5,
                "cpu_busy": 0.5, "ctx_switches_per_io": 0.5,
                "insns_per_io": None, "doorbells_per_io": None,
                "lat_us": {"mean": 5.0, "p50": 4.0, "p99": 9.0,
                           "p999": 11.0}}.items():
            self.assertEqual(one[name], value, name)

    def test_options_of_fio(self):
        """Batches, CPU, polling where the disk and the workload have it."""
        self.bench("--workloads", "rand4k-s32,rand4k-qd4,libaio-rand4k-s32")
        by_name = {one["--name"]: one for one in self.machine.log()}
        one = by_name["rand4k-s32"]
        for name, value in {
                "--iodepth": "128", "--iodepth_batch_submit": "32",
                "--iodepth_batch_complete_min": "32", "--direct": "1",
                "--iodepth_batch_complete_max": "32", "--bs": "4k",
                "--cpus_allowed": SHORT[-1], "--hipri": "",
                "--registerfiles": "", "--fixedbufs": "",
                "--filename": self.machine.path("dev/nvme0n1")}.items():
            self.assertEqual(one.get(name), value, name)
        self.assertNotIn("--hipri", by_name["rand4k-qd4"])
        self.assertNotIn("--fixedbufs", by_name["libaio-rand4k-s32"])

    def test_no_poll_queues(self):
        """Then interrupts."""
        self.machine.put(QUEUE + "io_poll", "0")
        self.bench()
        self.assertNotIn("--hipri", self.machine.log()[0])

    def test_html(self):
        """A page, without plots where gnuplot is missing."""
        text = self.bench("--html", "page.html")
        self.assertIn("gnuplot is not installed", text)
        self.assertIn("plugbench compares", self.machine.get("page.html"))

    def test_claim_first(self):
        """It opens with what it compares, and says what a number means."""
        text = self.bench()
        self.assertTrue(text.startswith("plugbench compares the plug"))
        self.assertIn("What a number means", text)

    def test_nvme_cli(self):
        """Its word on model and firmware counts more than sysfs'."""
        self.machine.program("nvme", '#!/bin/sh\n'
                             'echo \'{"mn": "Other ", "fr": "2"}\'')
        self.bench()
        self.assertEqual(self.machine.records()[0]["profile"], "Other")
        self.assertEqual(self.machine.records()[0]["firmware"], "2")


if __name__ == "__main__":
    unittest.main()
