#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugstat with a fake tree: they need no privilege and no disk."""
import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGSTAT = os.environ.get("PLUGSTAT", os.path.join(HERE, "plugstat"))
DEBUGFS = "sys/kernel/debug/"
STAT = "10 2 80 1 20 4 160 2 0 3 4\n"

# 100 submissions of 64: 32 tags in a batch, 32 singles; two hardware queues
BUSY = {"in_flight": 3, "completions": 3197, "requests": 3200,
        "merge_attempts": 3100, "merge_hits": 31, "tags_single": 1600,
        "no_batch_budget": 1500, "no_batch_depth": 100, "queue_rq_calls": 0,
        "plugs": 50, "flush_count": 20, "flush_finish": 80,
        "flush_requests": 3200, "flush_clock_shared": 100,
        "tags_batched": 1600, "tag_batches": 50, "queue_rqs_calls": 100,
        "queue_rqs_requests": 3200, "flush_hist_32": 100, "holds": 100,
        "hold_us": 1250, "completion_batches": 200, "batch_completions": 3200}


def load():
    """plugstat as a module."""
    loader = importlib.machinery.SourceFileLoader("plugstat", PLUGSTAT)
    spec = importlib.util.spec_from_loader("plugstat", loader)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Tree(unittest.TestCase):
    """A fake machine with two disks."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="plugstat.")
        self.addCleanup(shutil.rmtree, self.root)
        self.tool = load()
        self.tool.ROOT = self.root
        self.tool.DEBUGFS = os.path.join(self.root, DEBUGFS[:-1])
        self.add_disk("nvme0n1")
        self.add_disk("nullb0")

    def path(self, name):
        return os.path.join(self.root, name)

    def put(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)

    def get(self, name):
        with open(self.path(name), encoding="ascii") as file:
            return file.read().strip()

    def add_disk(self, disk):
        self.put("sys/block/%s/stat" % disk, STAT)
        self.put(DEBUGFS + "block/%s/plug_stats_enabled" % disk, "0\n")
        for hctx in range(2):
            self.counters(disk, {name: 0 for name in BUSY}, hctx)

    def counters(self, disk, values, hctx=0):
        self.put(DEBUGFS + "block/%s/hctx%d/plug_stats" % (disk, hctx),
                 "".join("%s %d\n" % item for item in values.items()))

    def doorbells(self, bells, commands):
        self.put(DEBUGFS + "nvme_plug/nvme0/doorbells",
                 "queue 0 doorbells 1000 commands 1000\n"
                 "queue 1 doorbells %d commands %d\n"
                 "queue 2 doorbells 0 commands 0\n" % (bells, commands))

    def enabled(self, disk):
        return self.get(DEBUGFS + "block/%s/plug_stats_enabled" % disk)

    def run_tool(self, *args, during=lambda: None):
        """(exit code, stdout, stderr); what happens while it sleeps."""
        out, err = io.StringIO(), io.StringIO()
        old = {number: signal.getsignal(number) for number in
               (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            with mock.patch.object(self.tool.time, "sleep",
                                   lambda _: during()), \
                    contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(err):
                try:
                    code = self.tool.main(list(args))
                except SystemExit as error:
                    code = error.code
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
        return code, out.getvalue(), err.getvalue()


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
        self.put("sys/block/nullb0/stat", "3110 20 0 0 120 17 0 0\n")

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
        self.assertEqual(fig["no_batch"], {"budget": 1500, "depth": 100})
        self.assertIsNone(fig["commands_per_doorbell"])
        self.assertEqual(fig["requests_per_call"], 32)
        self.assertEqual(fig["completions_per_batch"], 16)
        self.assertEqual(fig["in_flight"], 3)
        self.assertEqual(fig["hold_us"], 12.5)
        self.assertEqual(fig["clock_shared"], 1)
        self.assertEqual(fig["requests_per_clock"], 32)

    def test_single_calls_count_among_the_driver_s(self):
        diff = {"queue_rqs_calls": 1, "queue_rqs_requests": 32,
                "queue_rq_calls": 32}
        self.assertAlmostEqual(
            self.tool.figures(diff)["requests_per_call"], 64 / 33)

    def test_only_the_interval_counts(self):
        self.counters("nullb0", {"requests": 100, "in_flight": 9})
        disks, _ = self.json("nullb0", during=lambda: self.counters(
            "nullb0", {"requests": 130, "in_flight": 7}))
        self.assertEqual(disks["nullb0"]["counters"]["requests"], 30)
        self.assertEqual(disks["nullb0"]["counters"]["in_flight"], 7)

    def test_a_reset_by_somebody_else_gives_no_negative_number(self):
        self.counters("nullb0", {"requests": 100})
        disks, _ = self.json("nullb0", during=lambda: self.counters(
            "nullb0", {"requests": 5}))
        self.assertEqual(disks["nullb0"]["counters"]["requests"], 5)

    def test_rate(self):
        old = {"time": 10.0, "requests": 100}
        new = {"time": 12.0, "requests": 500}
        fig = self.tool.figures(self.tool.delta(old, new))
        self.assertEqual(fig["requests_per_s"], 200)

    def test_doorbells_without_the_admin_queue(self):
        self.doorbells(5, 5)

        def busy():
            self.doorbells(15, 325)
            self.counters("nvme0n1", dict(BUSY))

        disks, answers = self.json("nvme0n1", during=busy)
        self.assertEqual(
            disks["nvme0n1"]["figures"]["commands_per_doorbell"], 32)
        self.assertEqual(answers["nvme0n1"]["doorbell"],
                         "yes: 32.0 commands per doorbell")

    def test_multipath_path_finds_its_controller(self):
        self.doorbells(2, 64)
        self.assertEqual(self.tool.doorbells("nvme0c1n1"), (2, 64))
        self.assertIsNone(self.tool.doorbells("sda"))
        self.assertIsNone(self.tool.doorbells("nvme9n1"))

    def test_answers(self):
        _, answers = self.json("nullb0", during=self.busy)
        said = answers["nullb0"]
        self.assertEqual(said["tags"], "partly: 32.0 tags per batch, 50% of "
                         "all tags come in batches; the others do not for "
                         "budget (1500), depth (100)")
        self.assertIn("yes: 32.0 requests per call", said["doorbell"])
        self.assertIn("not counted here", said["doorbell"])
        self.assertEqual(said["clock"], "yes: 100% of the flushes shared one "
                         "reading, for 32.0 requests each")

    def test_answers_without_io(self):
        _, answers = self.json("nullb0", during=lambda: None)
        for text in answers["nullb0"].values():
            self.assertEqual(text, "no I/O was seen")

    def test_answers_where_nothing_is_batched(self):
        fig = self.tool.figures({"requests": 9, "tags_single": 9,
                                 "queue_rq_calls": 9, "flush_finish": 9,
                                 "flush_requests": 9,
                                 "no_batch_budget": 9})
        said = self.tool.answers(fig)
        self.assertTrue(said["tags"].startswith("no: - tags"), said)
        self.assertTrue(said["doorbell"].startswith("no: 1.0"), said)
        self.assertTrue(said["clock"].startswith("no: 0%"), said)

    def test_answers_for_io_without_a_plug(self):
        said = self.tool.answers(self.tool.figures(
            {"requests": 9, "tags_single": 9, "queue_rq_calls": 9}))
        self.assertEqual(said["clock"], "no: no plug sent anything")

    def test_verdicts(self):
        for value, share, text in ((32, 1, "yes"), (31, .9, "yes"),
                                   (30.9, 1, "partly"), (32, .89, "partly"),
                                   (32, .1, "partly"), (32, .09, "no"),
                                   (None, 1, "no"), (32, None, "no")):
            self.assertEqual(self.tool.verdict(value, share), text,
                             (value, share))


class Output(Tree):
    """What is printed."""

    def busy(self):
        self.counters("nullb0", BUSY)

    def test_table(self):
        code, out, _ = self.run_tool("-c", "2", "nullb0", during=self.busy)
        self.assertEqual(code, 0)
        lines = out.splitlines()
        self.assertEqual(lines[0].split(), list(self.tool.HEADER))
        cells = lines[1].split()
        self.assertEqual([cells[0]] + cells[2:], [
            "nullb0", "1", "32.0", "finish", "50", "32.0", "~32.0", "16.0",
            "-", "3"])
        # nothing happened in the second interval
        self.assertEqual(lines[2].split()[1:],
                         ["0", "-", "-", "-", "-", "-", "-", "-", "-", "3"])
        self.assertEqual(len({len(text) for text in lines[:3]}), 1)
        self.assertEqual(lines[3], "")
        self.assertEqual([text.split(": ")[1].split("?")[0]
                          for text in lines[4:]],
                         ["32 tags at once", "32 per doorbell",
                          "timestamps saved"])

    def test_hold_column(self):
        _, out, _ = self.run_tool("-c", "1", "--hold", "nullb0",
                                  during=self.busy)
        lines = out.splitlines()
        self.assertTrue(lines[0].endswith("hold_us"))
        self.assertTrue(lines[1].endswith(" 12.5"))

    def test_header_returns_every_20_lines(self):
        _, out, _ = self.run_tool("-c", "21", "nullb0")
        self.assertEqual(out.count("req/s"), 2)

    def test_prometheus(self):
        intervals = []

        def during():
            intervals.append(1)
            self.busy()

        _, out, _ = self.run_tool("--prometheus", "nullb0", "nvme0n1",
                                  during=during)
        self.assertEqual(len(intervals), 1)
        self.assertIn('# TYPE plugstat_requests_total counter\n'
                      'plugstat_requests_total{disk="nullb0"} 3200\n'
                      'plugstat_requests_total{disk="nvme0n1"} 0\n', out)
        self.assertIn('# TYPE plugstat_in_flight gauge\n'
                      'plugstat_in_flight{disk="nullb0"} 3\n', out)
        types = [text for text in out.splitlines() if text[0] == "#"]
        self.assertEqual(len(types), len(set(types)))
        self.assertNotIn("time", out)

    def test_help_has_a_word_for_each_column(self):
        code, out, _ = self.run_tool("--help")
        self.assertEqual(code, 0)
        for name in self.tool.HEADER[1:] + ("hold_us", "tags", "doorbell",
                                            "clock", "state", "lookup"):
            self.assertIn("\n  %s " % name, out)
        for why in self.tool.REASONS + self.tool.NO_BATCH:
            self.assertIn(why, out)


# as blk_plug_loop_show() writes it
LEARNT = """\
group 4
pinned 0
lookup 0
state parked
from 8
samples_parked 120
plug_fill 4
in_flight 127
epoch 2048
sample_ns 2000000
sample_ios 2000
sample_ns_per_io 1000
sample_response_ns 127500
sample_flushes 500
sample_merged 0
"""


class Adaptive(Tree):
    """What "adaptive" has learnt."""

    def setUp(self):
        super().setUp()
        self.mode("nvme0n1", "always never seq-small [adaptive]")
        self.learnt(LEARNT)
        self.learnt(LEARNT.replace("sample_ios 2000",
                                   "sample_ios 0"), 1)

    def mode(self, disk, text, effect="adaptive (as set)"):
        self.put("sys/block/%s/queue/plug_policy" % disk, text + "\n")
        self.put(DEBUGFS + "block/%s/hctx0/plug_policy" % disk,
                 "set: adaptive\nhold: %s\nmerge: while found (as set)\n"
                 "cheap submission: yes\n" % effect)

    def learnt(self, text, hctx=0, disk="nvme0n1"):
        self.put(DEBUGFS + "block/%s/hctx%d/plug_adaptive" % (disk, hctx),
                 text)

    def json(self, disk="nvme0n1"):
        code, out, _ = self.run_tool("--json", "-c", "1", disk)
        self.assertEqual(code, 0)
        return json.loads(out.splitlines()[0])["disks"][disk]["adaptive"]

    def table(self, *disks):
        """The group column of the first interval, and the lines at the end."""
        code, out, _ = self.run_tool("-c", "1", *disks or ("nvme0n1",))
        self.assertEqual(code, 0)
        lines = out.splitlines()
        ours = [text for text in lines if "adaptive" in text]
        start = lines.index(ours[0]) if ours else len(lines)
        return lines[1].split()[-2], lines[start:]

    def test_json(self):
        found = self.json()
        self.assertIsNone(found["not_in_force"])
        self.assertEqual(list(found["hctx"]), ["0", "1"])
        queue = found["hctx"]["0"]
        for name, value in {
                "group": 4, "pinned": 0, "state": "parked", "lookup": 0,
                "sample_flushes": 500, "iops": 1e6, "response_us": 127.5,
                "ios_per_flush": 4}.items():
            self.assertEqual(queue[name], value, name)

    def test_table(self):
        group, lines = self.table()
        self.assertEqual(group, "4")
        self.assertEqual(lines[0], "nvme0n1: adaptive, last sample of each "
                         "hardware queue:")
        self.assertEqual(lines[1].split(), list(self.tool.QUEUE_HEADER))
        self.assertEqual(lines[2].split(), [
            "0", "4", "parked", "no", "1000000", "127.5", "4.0"])
        self.assertEqual(len(lines[1]), len(lines[2]))
        self.assertIn("has no sample of 1 hardware queues", lines[3])
        self.assertEqual(len(lines), 4)

    def test_range_of_groups(self):
        self.learnt(LEARNT.replace("group 4", "group 16"), 1)
        group, lines = self.table()
        self.assertEqual(group, "4-16")
        self.assertEqual(len(lines), 4)

    def test_hardware_queues_in_order(self):
        for hctx in (10, 9):
            self.learnt(LEARNT, hctx)
        _, lines = self.table()
        self.assertEqual([text.split()[0] for text in lines[2:5]],
                         ["0", "9", "10"])

    def test_pinned(self):
        self.learnt(LEARNT.replace("pinned 0", "pinned 4"))
        _, lines = self.table()
        self.assertEqual(lines[2].split()[1:4], ["pinned", "4", "parked"])
        self.assertEqual(len(lines[1]), len(lines[2]))

    def test_pinned_without_a_sample(self):
        for hctx in range(2):
            self.learnt("group 8\npinned 8\nstate measure\n"
                        "sample_ns_per_io 0\nsample_response_ns 0\n"
                        "sample_ios 0\nsample_flushes 0\n", hctx)
        group, lines = self.table()
        self.assertEqual(group, "8")
        self.assertEqual(lines[2].split(), [
            "0", "pinned", "8", "measure", "-", "-", "-", "-"])

    def test_no_response_time_in_the_sample(self):
        self.learnt(LEARNT.replace("sample_response_ns 127500",
                                   "sample_response_ns 0"))
        self.assertIsNone(self.json()["hctx"]["0"]["response_us"])

    def test_no_sample_at_all(self):
        self.learnt(LEARNT.replace("sample_ios 2000",
                                   "sample_ios 0"))
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertEqual(len(lines), 1)
        self.assertIn("no sample of 2 hardware queues", lines[0])

    def test_no_memory(self):
        self.learnt("state off\n")
        self.assertEqual(self.json()["hctx"]["0"], {})
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertIn('does as "always" on hctx 0, for which there was no '
                      'memory', lines[0])

    def test_other_modes(self):
        self.mode("nvme0n1", "always never [seq-small] adaptive")
        self.assertIsNone(self.json())
        self.assertEqual(self.table(), ("-", []))

    def test_kernel_without_the_file(self):
        for hctx in range(2):
            os.unlink(self.path(
                DEBUGFS + "block/nvme0n1/hctx%d/plug_adaptive" % hctx))
        self.assertEqual(self.json()["hctx"], {})
        self.assertEqual(self.table(), ("-", []))

    def test_kernel_without_the_knob(self):
        self.assertIsNone(self.json("nullb0"))
        self.assertEqual(self.table("nullb0"), ("-", []))

    def test_not_in_force(self):
        self.mode("nvme0n1", "always never seq-small [adaptive]",
                  "always (elevator)")
        self.assertEqual(self.json()["not_in_force"], "elevator")
        group, lines = self.table()
        self.assertEqual(group, "!")
        self.assertEqual(lines, ["nvme0n1: adaptive is not in force "
                                 '(elevator): does as "always"'])

    def test_lines_of_a_later_kernel(self):
        self.learnt(LEARNT + "taste sweet and sour\nalone\n")
        self.assertEqual(self.json()["hctx"]["0"]["taste"], "sweet and sour")

    def test_lines_that_a_later_kernel_lacks(self):
        self.learnt("sample_ios 2000\n")
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertEqual(lines[2].split(), ["0"] + ["-"] * 6)

    def test_prometheus(self):
        _, out, _ = self.run_tool("--prometheus", "nvme0n1", "nullb0")
        self.assertIn('# TYPE plugstat_adaptive_group gauge\n'
                      'plugstat_adaptive_group{disk="nvme0n1",hctx="0"} 4\n',
                      out)
        self.assertEqual(out.count("plugstat_adaptive_group"), 2)
        _, out, _ = self.run_tool("--prometheus", "nullb0")
        self.assertNotIn("adaptive", out)


class Switching(Tree):
    """Counting is on meanwhile, and as before at the end."""

    def test_on_and_back(self):
        seen = []
        self.run_tool("-c", "1", "nullb0", during=lambda: seen.append(
            (self.enabled("nullb0"), self.enabled("nvme0n1"))))
        self.assertEqual(seen, [("1", "0")])
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_all_disks_by_default(self):
        seen = []
        self.run_tool("-c", "1", during=lambda: seen.append(
            (self.enabled("nullb0"), self.enabled("nvme0n1"))))
        self.assertEqual(seen, [("1", "1")])

    def test_hold(self):
        seen = []
        self.run_tool("-c", "1", "--hold", "nullb0", during=lambda:
                      seen.append(self.enabled("nullb0")))
        self.assertEqual(seen, ["2"])
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_more_that_somebody_wanted_stays(self):
        self.put(DEBUGFS + "block/nullb0/plug_stats_enabled", "2\n")
        seen = []
        self.run_tool("-c", "1", "nullb0", during=lambda:
                      seen.append(self.enabled("nullb0")))
        self.assertEqual(seen, ["2"])
        self.assertEqual(self.enabled("nullb0"), "2")

    def test_doorbell_counting_is_switched_too(self):
        self.put(DEBUGFS + "nvme_plug/counting", "0\n")
        seen = []
        self.run_tool("-c", "1", "nvme0n1", during=lambda: seen.append(
            self.get(DEBUGFS + "nvme_plug/counting")))
        self.assertEqual(seen, ["1"])
        self.assertEqual(self.get(DEBUGFS + "nvme_plug/counting"), "0")

    def test_doorbells_are_left_alone_without_nvme(self):
        self.put(DEBUGFS + "nvme_plug/counting", "0\n")
        seen = []
        self.run_tool("-c", "1", "nullb0", during=lambda: seen.append(
            self.get(DEBUGFS + "nvme_plug/counting")))
        self.assertEqual(seen, ["0"])

    def signalled(self, number):
        child = subprocess.Popen(
            [sys.executable, "-B", PLUGSTAT, "-i", "0.1", "nullb0"],
            env={**os.environ, "PLUGSTAT_ROOT": self.root}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 20
        # the header is printed with the first interval: by then it watches
        self.assertIn("req/s", child.stdout.readline())
        self.assertEqual(self.enabled("nullb0"), "1")
        child.send_signal(number)
        out, err = child.communicate(timeout=20)
        self.assertLess(time.monotonic(), deadline)
        self.assertEqual((child.returncode, err), (0, ""))
        self.assertEqual(self.enabled("nullb0"), "0")
        self.assertIn("timestamps saved?", out)

    def test_ctrl_c(self):
        self.signalled(signal.SIGINT)

    def test_sigterm(self):
        self.signalled(signal.SIGTERM)

    def test_sighup(self):
        self.signalled(signal.SIGHUP)

    def test_error_puts_back_too(self):
        def broken():
            raise RuntimeError

        with self.assertRaises(RuntimeError):
            self.run_tool("nullb0", during=broken)
        self.assertEqual(self.enabled("nullb0"), "0")


class Refusals(Tree):
    """Clear errors."""

    def refuses(self, *args, code=1):
        got, out, err = self.run_tool("-c", "1", *args)
        self.assertEqual((got, out), (code, ""), err)
        self.assertNotIn("Traceback", err)
        return err

    def test_unknown_disk(self):
        self.assertEqual(self.refuses("sdx"),
                         "plugstat: sdx: no such disk\n")
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_bio_based_disk(self):
        self.put("sys/block/dm-0/stat", STAT)
        self.assertIn("dm-0: its plugs cannot be counted",
                      self.refuses("dm-0"))

    def test_dev_path_is_a_disk(self):
        code, out, _ = self.run_tool("-c", "1", "/dev/nullb0")
        self.assertEqual(code, 0)
        self.assertIn("nullb0", out)

    def test_kernel_without_the_counters(self):
        for disk in ("nullb0", "nvme0n1"):
            os.unlink(self.path(DEBUGFS
                                + "block/%s/plug_stats_enabled" % disk))
        self.assertIn("CONFIG_BLK_PLUG_STAT", self.refuses())

    def test_debugfs_not_mounted(self):
        shutil.rmtree(self.path(DEBUGFS + "block"))
        self.assertIn("mount -t debugfs", self.refuses())

    def test_no_permission(self):
        for call, number in ((os.listdir, errno.EACCES),
                             (os.listdir, errno.EPERM)):
            with mock.patch.object(self.tool.os, call.__name__, side_effect=
                                   OSError(number, "no", "/sys/x")):
                self.assertIn("no permission for /sys/x: run as root",
                              self.refuses())

    def test_no_permission_to_switch(self):
        with mock.patch.object(self.tool, "write", side_effect=OSError(
                errno.EACCES, "no", "/sys/y")):
            self.assertIn("run as root", self.refuses("nullb0"))

    def test_busy(self):
        def busy(path, text):
            if text != "0":
                raise OSError(errno.EBUSY, "busy", path)
        with mock.patch.object(self.tool, "write", busy):
            self.assertIn("nullb0: hardware queues are being changed",
                          self.refuses("nullb0"))

    def test_usage(self):
        for args in (["-i", "0"], ["-i", "x"], ["-i", "-1"], ["-c", "0"],
                     ["--json", "--prometheus"], ["--bogus"]):
            got, _, err = self.run_tool(*args)
            self.assertEqual(got, 2, args)
            self.assertIn("usage:", err)

    def test_disk_that_goes_meanwhile(self):
        def remove():
            shutil.rmtree(self.path(DEBUGFS + "block/nullb0"),
                          ignore_errors=True)

        code, out, err = self.run_tool("-c", "2", "nullb0", "nvme0n1",
                                       during=remove)
        self.assertEqual(code, 0)
        self.assertEqual(err, "plugstat: nullb0: the disk is gone\n")
        self.assertEqual(out.count("\nnvme0n1 "), 2)
        self.assertEqual(self.enabled("nvme0n1"), "0")

    def test_last_disk_goes(self):
        code, _, err = self.run_tool("-c", "9", "nullb0", during=lambda:
                                     shutil.rmtree(self.path(
                                         DEBUGFS + "block/nullb0")))
        self.assertEqual(code, 1)
        self.assertIn("nullb0: the disk is gone", err)
        self.assertIn("no disk is left", err)
        self.assertNotIn("not put back", err)

    def test_switch_that_cannot_be_put_back_is_told(self):
        def fail(path, text):
            if text == "0":
                raise OSError(errno.EACCES, "Permission denied", path)
            self.put(os.path.relpath(path, self.root), text)

        with mock.patch.object(self.tool, "write", fail):
            _, _, err = self.run_tool("-c", "1", "nullb0")
        self.assertIn("is not put back to 0", err)


if __name__ == "__main__":
    unittest.main()
