#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugstat tells of "adaptive" and of the policy in force."""
import json
import os
import shutil
import unittest

from stattree import DEBUGFS, Tree
from plugtools.stat import output


# as blk_plug_loop_show() writes it
LEARNT = """\
group 4
pinned 0
from 8
trial 4
samples_parked 0
plug_fill 8
epoch 2048
sample_ns 2000000
sample_requests 2000
sample_flushes 500
sample_in_flight 127
"""


class Adaptive(Tree):
    """What "adaptive" has learnt."""

    def setUp(self):
        super().setUp()
        self.mode("nvme0n1", "adaptive")
        self.learnt(LEARNT)
        self.learnt(LEARNT.replace("requests 2000", "requests 0"), 1)

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
        return lines[1].split()[-1], lines[start:]

    def test_json(self):
        found = self.json()
        self.assertIsNone(found["not_in_force"])
        self.assertEqual(list(found["hctx"]), ["0", "1"])
        queue = found["hctx"]["0"]
        for name, value in {
                "group": 4, "pinned": 0, "from": 8, "trial": 4,
                "sample_flushes": 500, "requests_per_s": 1e6,
                "requests_per_flush": 4}.items():
            self.assertEqual(queue[name], value, name)

    def test_table(self):
        group, lines = self.table()
        self.assertEqual(group, "4")
        self.assertEqual(lines[0], "nvme0n1: adaptive, last sample of each "
                         "hardware queue:")
        self.assertEqual(lines[1].split(), list(output.QUEUE_HEADER))
        self.assertEqual(lines[2].split(), [
            "0", "4", "8", "try", "4", "1000000", "4.0", "127"])
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

    def test_parked(self):
        self.learnt(LEARNT.replace("trial 4", "trial 0"))
        _, lines = self.table()
        self.assertEqual(lines[2].split()[3], "parked")

    def test_pinned(self):
        self.learnt(LEARNT.replace("pinned 0", "pinned 1"))
        _, lines = self.table()
        self.assertEqual(lines[2].split()[1:4], ["pinned", "4", "8"])
        self.assertEqual(len(lines[1]), len(lines[2]))

    def test_pinned_without_a_sample(self):
        for hctx in range(2):
            self.learnt("group 8\npinned 1\nfrom 32\ntrial 0\n"
                        "sample_ns 0\nsample_requests 0\n"
                        "sample_flushes 0\nsample_in_flight 0\n", hctx)
        group, lines = self.table()
        self.assertEqual(group, "8")
        self.assertEqual(lines[2].split(), [
            "0", "pinned", "8", "32", "parked", "-", "-", "0"])

    def test_no_sample_at_all(self):
        self.learnt(LEARNT.replace("requests 2000", "requests 0"))
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertEqual(len(lines), 1)
        self.assertIn("no sample of 2 hardware queues", lines[0])

    def test_no_plug_yet(self):
        self.learnt("")
        self.assertEqual(self.json()["hctx"]["0"], {})
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertIn("no sample of 2 hardware queues", lines[0])

    def test_other_modes(self):
        self.mode("nvme0n1", "seq-small")
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
        self.mode("nvme0n1", "adaptive", "elevator")
        self.assertEqual(self.json()["not_in_force"], "elevator")
        group, lines = self.table()
        self.assertEqual(group, "!")
        self.assertEqual(lines, ["nvme0n1: adaptive is not in force "
                                 '(elevator): does as "always"'])

    def test_lines_of_a_later_kernel(self):
        self.learnt(LEARNT + "taste sweet and sour\nalone\n")
        self.assertEqual(self.json()["hctx"]["0"]["taste"], "sweet and sour")

    def test_lines_that_a_later_kernel_lacks(self):
        self.learnt("sample_requests 2000\n")
        group, lines = self.table()
        self.assertEqual(group, "-")
        self.assertEqual(lines[2].split(), ["0"] + ["-"] * 6)


class Policy(Tree):
    """Which mode is set and in force, without debugfs if need be."""

    def json(self, *args):
        code, out, err = self.run_tool("--policy", "--json", *args)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)["disks"]

    def test_without_debugfs(self):
        shutil.rmtree(self.path("sys/kernel"))
        self.mode("nvme0n1", "adaptive")
        self.mode("nullb0", "always", "elevator")
        self.add_disk("sda")
        self.mode("sda", "never", "no-queue_rqs")
        self.assertEqual({name: list(found.values())
                          for name, found in self.json().items()},
                         {"nvme0n1": ["adaptive", "adaptive", "as set"],
                          "nullb0": ["always", "always", "as set"],
                          "sda": ["never", "always", "no-queue_rqs"]})

    def test_kernel_without_the_reason(self):
        self.mode("nvme0n1", "adaptive")
        os.unlink(self.path("sys/block/nvme0n1/queue/plug_policy_fallback"))
        self.assertEqual(self.json(), {"nvme0n1": {
            "mode": "adaptive", "force": None, "why": "unknown"}})

    def test_head_stands_for_its_paths(self):
        self.put("sys/block/nvme1n1/stat", "")
        self.add_disk("nvme1c2n1", "nvme2")
        self.mode("nvme1c2n1", "never")
        self.assertEqual(list(self.json("nvme1n1")), ["nvme1c2n1"])

    def test_table(self):
        self.mode("nvme0n1", "never")
        self.mode("nullb0", "adaptive", "elevator")
        code, out, _ = self.run_tool("--policy", "nvme0n1", "nullb0")
        self.assertEqual(code, 0)
        self.assertEqual([text.split(None, 3) for text in out.splitlines()],
                         [["Disk", "set", "in-force", "why"],
                          ["nvme0n1", "never", "never", "as set"],
                          ["nullb0", "adaptive", "always", "elevator"]])

    def test_kernel_without_the_knob(self):
        code, out, err = self.run_tool("--policy")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("CONFIG_BLK_PLUG_POLICY", err)

    def test_each_interval_says_it_to_programs(self):
        self.mode("nvme0n1", "never", "elevator")
        _, out, _ = self.run_tool("--json", "nvme0n1", "1", "1")
        self.assertEqual(
            json.loads(out.splitlines()[0])["disks"]["nvme0n1"]["policy"],
            {"mode": "never", "force": "always", "why": "elevator"})


if __name__ == "__main__":
    unittest.main()
