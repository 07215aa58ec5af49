#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugstat computes and prints, on a fake machine."""
import datetime
import json
import os
import time
import unittest
from unittest import mock

from stattree import BUSY, BUSY_STAT, STAT, Tree
from plugtools import VERSION
from plugtools.stat import figures, output, plugstat


class Numbers(Tree):
    """What is computed."""

    def json(self, *args, during):
        code, out, _ = self.run_tool("--json", "-c", "1", *args,
                                     during=during)
        self.assertEqual(code, 0)
        first, last = map(json.loads, out.splitlines())
        return first["disks"], last["answers"]

    def busy(self):
        half = {name: value // 2 for name, value in BUSY.items()}
        rest = {name: BUSY[name] - half[name] for name in BUSY}
        self.counters("nullb0", half, 0)
        self.counters("nullb0", rest, 1)
        self.put("sys/block/nullb0/stat", BUSY_STAT)

    def test_sums_hardware_queues(self):
        disks, _ = self.json("nullb0", during=self.busy)
        self.assertEqual(list(disks), ["nullb0"])
        counters = disks["nullb0"]["counters"]
        for name, value in BUSY.items():
            self.assertEqual(counters[name], value, name)
        self.assertEqual(counters["stat_ios"], 3200)
        self.assertEqual(counters["stat_merges"], 31)

    def test_figures(self):
        disks, _ = self.json("nullb0", during=self.busy)
        fig = disks["nullb0"]["figures"]
        self.assertEqual(fig["requests"], 3200)
        self.assertAlmostEqual(fig["merged"], 0.01)
        self.assertEqual(fig["requests_per_flush"], 32)
        self.assertEqual(fig["flush_reason"], "finish")
        self.assertEqual(fig["tags_in_batches"], 0.5)
        self.assertEqual(fig["tags_per_batch"], 32)
        self.assertEqual(fig["no_batch"], {"busy": 1500, "depth": 100})
        self.assertIsNone(fig["commands_per_doorbell"])
        self.assertEqual(fig["completions_per_batch"], 16)

    def test_only_the_interval_counts(self):
        self.counters("nullb0", {"tags_single": 100})
        disks, _ = self.json("nullb0", during=lambda: self.counters(
            "nullb0", {"tags_single": 130}))
        self.assertEqual(disks["nullb0"]["counters"]["tags_single"], 30)

    def test_a_disk_that_comes_back_gives_no_negative_number(self):
        self.counters("nullb0", {"tags_single": 100})
        disks, _ = self.json("nullb0", during=lambda: self.counters(
            "nullb0", {"tags_single": 5}))
        self.assertEqual(disks["nullb0"]["counters"]["tags_single"], 5)

    def test_rate(self):
        old = {"time": 10.0, "stat_ios": 100}
        new = {"time": 12.0, "stat_ios": 500}
        fig = figures.figures(figures.delta(old, new))
        self.assertEqual(fig["requests_per_s"], 200)

    def test_doorbells_without_the_admin_queue(self):
        self.doorbells(5, 5)

        def busy():
            self.doorbells(15, 325)
            self.put("sys/block/nvme0n1/stat", BUSY_STAT)

        disks, answers = self.json("nvme0n1", during=busy)
        self.assertEqual(
            disks["nvme0n1"]["figures"]["commands_per_doorbell"], 32)
        self.assertEqual(answers["nvme0n1"]["doorbell"],
                         "yes: 32.0 commands per doorbell")

    def test_multipath_path_finds_its_controller(self):
        # the kernel names a path by subsystem, controller and namespace:
        # this is the second controller of the first subsystem
        self.add_disk("nvme0c1n1", "nvme1")
        self.doorbells(0, 0, "nvme0")
        self.doorbells(0, 0, "nvme1")

        def busy():
            self.doorbells(1, 7, "nvme0")
            self.doorbells(2, 64, "nvme1")

        disks, _ = self.json("nvme0c1n1", during=busy)
        counters = disks["nvme0c1n1"]["counters"]
        self.assertEqual((counters["doorbells"], counters["commands"]),
                         (2, 64))

    def test_no_doorbells(self):
        disks, _ = self.json("nvme0n1", "nullb0", during=lambda: None)
        for found in disks.values():
            self.assertNotIn("doorbells", found["counters"])

    def test_head_stands_for_its_paths(self):
        self.put("sys/block/nvme1n1/stat", STAT)
        for path, controller in (("nvme1c2n1", "nvme2"),
                                 ("nvme1c3n1", "nvme3")):
            self.add_disk(path, controller)
        disks, _ = self.json("nvme1n1", during=lambda: None)
        self.assertEqual(list(disks), ["nvme1c2n1", "nvme1c3n1"])

    def test_dm_stands_for_its_legs(self):
        self.put("sys/block/dm-0/stat", STAT)
        os.makedirs(self.path("sys/block/dm-0/slaves/nullb0"))
        disks, _ = self.json("dm-0", during=lambda: None)
        self.assertEqual(list(disks), ["nullb0"])

    def test_answers(self):
        _, answers = self.json("nullb0", during=self.busy)
        said = answers["nullb0"]
        self.assertEqual(said["tags"], "partly: 32.0 tags per batch, 50% of "
                         "all tags come in batches; batches refused: "
                         "busy (1500), depth (100)")
        self.assertEqual(said["doorbell"], "unknown: the driver does not "
                         "count doorbells; 32.0 requests per flush of a plug")

    def test_answers_without_io(self):
        _, answers = self.json("nullb0", during=lambda: None)
        for text in answers["nullb0"].values():
            self.assertEqual(text, "no I/O was seen")

    def test_answers_where_nothing_is_batched(self):
        fig = figures.figures({"stat_ios": 9, "tags_single": 9,
                               "doorbells": 9, "commands": 9,
                               "no_batch_busy": 9})
        said = figures.answers(fig)
        self.assertTrue(said["tags"].startswith("no: - tags"), said)
        self.assertTrue(said["doorbell"].startswith("no: 1.0"), said)

    def test_answers_for_io_without_a_plug(self):
        said = figures.answers(figures.figures(
            {"stat_ios": 9, "tags_single": 9}))
        self.assertIn(" - requests per flush", said["doorbell"])

    def test_verdicts(self):
        for value, share, text in ((32, 1, "yes"), (31, .9, "yes"),
                                   (30.9, 1, "partly"), (32, .89, "partly"),
                                   (32, .1, "partly"), (32, .09, "no"),
                                   (None, 1, "no"), (32, None, "no")):
            self.assertEqual(figures.verdict(value, share), text,
                             (value, share))


class Output(Tree):
    """What is printed."""

    def busy(self):
        self.counters("nullb0", BUSY)
        self.put("sys/block/nullb0/stat", BUSY_STAT)

    def test_table(self):
        code, out, _ = self.run_tool("-c", "2", "nullb0", during=self.busy)
        self.assertEqual(code, 0)
        lines = out.splitlines()
        self.assertEqual(lines[0].split(), list(output.HEADER))
        cells = lines[1].split()
        self.assertEqual([cells[0]] + cells[2:], [
            "nullb0", "1", "32.0", "finish", "50", "32.0", "-", "16.0",
            "-"])
        # nothing happened in the second interval
        self.assertEqual(lines[2].split()[1:],
                         ["0", "-", "-", "-", "-", "-", "-", "-", "-"])
        self.assertEqual(len({len(text) for text in lines[:3]}), 1)
        self.assertEqual(lines[3], "")
        self.assertEqual([text.split(": ")[1].split("?")[0]
                          for text in lines[4:]],
                         ["32 tags at once", "32 per doorbell"])

    def test_header_returns_every_20_lines(self):
        _, out, _ = self.run_tool("-c", "21", "nullb0")
        self.assertEqual(out.count("req/s"), 2)

    def test_iostat_s_words(self):
        for words in (["nullb0", "1", "2"], ["1", "2", "nullb0"],
                      ["nullb0", "-t", "0.5", "2"], ["/dev/nullb0", "1", "2"]):
            code, out, err = self.run_tool(*words, during=self.busy)
            self.assertEqual((code, err), (0, ""), words)
            shown = [text for text in out.splitlines()
                     if text.startswith("nullb0 ")]
            self.assertEqual(len(shown), 2, words)

    def test_interval_of_words(self):
        slept = []
        with mock.patch.object(plugstat, "watch", lambda names, args, output:
                               slept.append((args.interval, args.count))):
            self.run_tool("nullb0", "2.5", "7")
            self.run_tool("3")
            self.run_tool("nullb0")
        self.assertEqual(slept, [(2.5, 7), (3, None), (1, None)])

    def test_time_of_each_interval(self):
        _, out, _ = self.run_tool("-t", "nullb0", "1", "2")
        stamps = [text for text in out.splitlines() if text[:1] == "2"]
        self.assertEqual(len(stamps), 2)
        for text in stamps:
            self.assertIsNotNone(
                datetime.datetime.fromisoformat(text).tzinfo)

    def test_idle_disks_are_left_out(self):
        _, out, _ = self.run_tool("-z", "1", "2", during=self.busy)
        lines = [text.split()[0] for text in out.splitlines() if text]
        self.assertEqual(lines.count("nullb0"), 1)
        self.assertNotIn("nvme0n1", lines)
        _, out, _ = self.run_tool("-z", "--json", "1", "1")
        self.assertEqual(json.loads(out.splitlines()[0])["disks"], {})

    def test_no_report_since_boot(self):
        self.busy()
        for words in (["-y"], []):
            _, out, _ = self.run_tool("nullb0", "1", "1", *words)
            self.assertEqual(out.splitlines()[1].split()[1], "0")

    def test_json_says_when(self):
        before = time.time()
        _, out, _ = self.run_tool("--json", "nullb0", "1", "2")
        for text in out.splitlines():
            said = json.loads(text)
            self.assertEqual(said["version"], output.VERSION)
            when = datetime.datetime.fromisoformat(said["time"])
            self.assertLess(abs(when.timestamp() - before), 60)

    def test_version(self):
        for option in "-V", "--version":
            code, out, _ = self.run_tool(option)
            self.assertEqual((code, out), (0, "plugstat %s\n" % VERSION))

    def test_help_has_a_word_for_each_column(self):
        code, out, _ = self.run_tool("--help")
        self.assertEqual(code, 0)
        for name in output.HEADER[1:] + ("tags", "doorbell", "best",
                                         "state"):
            self.assertIn("\n  %s " % name, out)
        for why in figures.REASONS + figures.NO_BATCH:
            self.assertIn(why, out)


if __name__ == "__main__":
    unittest.main()
