#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugtrace-perf on recorded events, with a perf that replays them.

Whether the kernel's events are these is tried in a guest.
"""
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import faketree  # noqa: E402
from plugtools import VERSION  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(HERE), "plugtrace-perf")
TRACEFS = "sys/kernel/tracing/"
# it records nothing; meanwhile the kernel counts
PERF = """#!/bin/sh
case $1 in
record)
    while [ "$1" != -o ]; do shift; done
    echo data >"$2"
    cp "$PLUGTOOLS_ROOT"/after/* "$PLUGTOOLS_ROOT/proc/" ;;
script) cat "$PLUGTOOLS_ROOT/events" ;;
esac
"""
CPUS = "cpu  0 0 0 0 0 0 0 0 0 0\n%sintr 7 8 9\n"
CPU = "cpu%d %d 0 0 %d 0 0 0 0 0 0\n"
DISK = " 259 0 nvme0n1 0 0 0 0 0 0 0 0 0 %d %d 0 0 0 0 0 0\n"
GETRQ = " 77 [001] block:block_getrq: 259,0 R %d + %d [fio]\n"
MERGE = " 77 [001] block:block_bio_backmerge: 259,0 R %d + %d [fio]\n"
UNPLUG = " 77 [001] block:block_unplug: [fio] %d\n"


def random(plugs, size):
    """Events of plugs full of random reads."""
    text = ""
    for plug in range(plugs):
        text += "".join(GETRQ % (1000 * (plug * size + number + 1), 8)
                        for number in range(size)) + UNPLUG % size
    return text


def sequential(plugs, size, merged=True):
    """Events of plugs whose bios follow each other, and merge or do not."""
    text = ""
    for number in range(plugs * size):
        first = number % size == 0
        text += (GETRQ if first or not merged else MERGE) % (8 * number, 8)
        if number % size == size - 1:
            text += UNPLUG % (1 if merged else size)
    return text


class Gain(faketree.Tree):
    """What the last sentence says, and why."""

    def setUp(self):
        super().setUp()
        for name, text in (("perf", PERF), ("id", "#!/bin/sh\necho 0\n")):
            self.put("bin/" + name, text)
            os.chmod(self.path("bin/" + name), 0o755)
        self.put(TRACEFS + "events/block/block_unplug/format")
        self.put(TRACEFS + "kprobe_events")
        self.put("proc/kallsyms", "ffff t nvme_queue_rq\n")
        self.put("sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n")
        self.put("sys/block/nvme0n1/queue/rotational", "0\n")
        self.machine(cpu=30, flight=8)

    def machine(self, cpu, flight):
        """What the kernel counts meanwhile: per cent of CPU 1, and a mean in
        flight while the disk is busy."""
        self.put("after/stat", CPUS % (
            CPU % (0, 105, 5) + CPU % (1, 500 + cpu, 500 + 100 - cpu)))
        self.put("after/diskstats", DISK % (5000, 90000 + 1000 * flight))

    def run_tool(self, *words, out=subprocess.PIPE):
        """(exit code, what is printed)"""
        self.put("proc/stat", CPUS % (CPU % (0, 5, 5) + CPU % (1, 500, 500)))
        self.put("proc/diskstats", DISK % (4000, 90000))
        done = subprocess.run(
            ["sh", PROGRAM, *words], text=True, check=False,
            stdout=out, stderr=subprocess.STDOUT, env={
                **os.environ, "TMPDIR": self.root,
                "PATH": self.path("bin") + ":" + os.environ["PATH"]})
        return done.returncode, done.stdout

    def gain(self, events):
        """(word, why); people are told the same."""
        self.put("events", events)
        code, out = self.run_tool("--json", "1")
        self.assertEqual(code, 0, out)
        found = json.loads(out)
        code, out = self.run_tool("1")
        self.assertEqual((code, out.splitlines()[-1]), (0, {
            "likely": "This load would probably gain from plug_policy: ",
            "unlikely": "This load would hardly gain from plug_policy: ",
            "unknown": "Whether this load would gain from plug_policy cannot "
                       "be told: "}[found["gain"]] + found["why"]))
        return found["gain"], found["why"]

    def test_lost_output(self):
        """It is not as if all were well."""
        self.put("events", random(100, 16))
        for words in ["1"], ["--json", "1"], ["--help"], ["--version"]:
            with open("/dev/full", "w", encoding="ascii") as full:
                self.assertEqual(self.run_tool(*words, out=full)[0], 1, words)

    def test_stopped(self):
        """By a signal is well, but not if the output is lost."""
        self.put("events", random(100, 16))
        self.put("bin/perf", PERF.replace(
            "proc/\" ;;", "proc/\"; kill -s INT $PPID ;;"))
        self.assertEqual(self.run_tool("1")[0], 0)
        self.assertEqual(self.run_tool("--", "false")[0], 0)
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assertEqual(self.run_tool("1", out=full)[0], 1)

    def test_latency(self):
        """The disk waits for plugs."""
        self.assertEqual(self.gain(random(100, 16)), (
            "likely", "100% of its I/Os are random and leave in plugs of 4 or "
            "more (16.0 on average); nvme0n1 has 8.0 in flight while busy, "
            "and CPU 1, which submits most, is 30% busy: the disk waits for "
            "plugs, so latency is the limit, where adaptive gains"))

    def test_cpu(self):
        """The CPU that submits is busy, however much is in flight; another
        one does not matter."""
        self.machine(cpu=95, flight=300)
        word, why = self.gain(random(100, 16))
        self.assertEqual(word, "likely")
        self.assertIn("95% busy: the CPU is the limit, where every mode gains",
                      why)

    def test_disk(self):
        """Much in flight, and an idle CPU."""
        self.machine(cpu=30, flight=33)
        word, why = self.gain(random(100, 16))
        self.assertEqual(word, "unlikely")
        self.assertIn("33.0 in flight", why)
        self.assertIn("the disk is the limit", why)

    def test_sequential(self):
        """Bios that merge, and large ones that only follow each other."""
        for merged in True, False:
            self.assertEqual(self.gain(sequential(100, 16, merged)), (
                "unlikely", "only 0% of its I/Os are random and leave in "
                "plugs of 4 or more, and CPU 1, which submits most, is 30% "
                "busy"))

    def test_sequential_cpu(self):
        """The kernel takes no tags for what merges: plugs of 4 or more gain,
        whatever is in them; those of 3 do not, nor does I/O without any."""
        self.machine(cpu=95, flight=300)
        for merged in True, False:
            self.assertEqual(self.gain(sequential(100, 16, merged))[0],
                             "likely")
            self.assertEqual(self.gain(sequential(400, 3, merged))[0],
                             "unlikely")
        alone = random(1100, 1).replace(UNPLUG % 1, "")
        self.assertEqual(self.gain(alone + UNPLUG % 1)[0], "unlikely")

    def test_small_plugs(self):
        """Of three, and of four; I/O without a plug joins none."""
        self.machine(cpu=30, flight=5)
        self.assertEqual(self.gain(random(400, 3))[0], "unlikely")
        self.assertEqual(self.gain(random(400, 4))[0], "likely")
        alone = random(1100, 1).replace(UNPLUG % 1, "")
        self.assertEqual(self.gain(alone + UNPLUG % 1)[0], "unlikely")

    def test_mixed(self):
        """A fifth is enough, less is not; the bound is the documented one."""
        for plugs, word in ((20, "likely"), (19, "unlikely")):
            rest = sequential(100 - plugs, 10)
            self.assertEqual(self.gain(random(plugs, 10) + rest)[0], word)

    def test_scheduler(self):
        """No mode does anything with one, nor on a rotational disk."""
        self.put("sys/block/nvme0n1/queue/scheduler", "none [mq-deadline]\n")
        self.assertEqual(self.gain(random(100, 16)), (
            "unlikely", "nvme0n1 has an I/O scheduler, mq-deadline, and with "
            "one every mode does as always"))
        self.put("sys/block/nvme0n1/queue/scheduler", "none\n")
        self.put("sys/block/nvme0n1/queue/rotational", "1\n")
        self.assertEqual(self.gain(random(100, 16)),
                         ("unlikely", "nvme0n1 is rotational"))

    def test_unknown(self):
        """Too little I/O, and a disk that is not counted."""
        self.assertEqual(self.gain(random(10, 16)), (
            "unknown", "160 I/Os were seen, 1000 are needed"))
        self.assertEqual(self.gain("")[0], "unknown")
        self.put("after/diskstats", DISK % (4000, 90000))
        self.assertEqual(self.gain(random(100, 16)), (
            "unknown", "the kernel does not count how busy nvme0n1 is"))

    def test_table(self):
        """The figures are those of before the sentence came."""
        self.put("events", random(100, 16))
        _, out = self.run_tool("1")
        self.assertRegex(out, r"\nflush of a plug +100 +1600 +16\.00 ")

    def test_version(self):
        """That of the other programs."""
        self.assertEqual(self.run_tool("--version"),
                         (0, "plugtrace-perf %s\n" % VERSION))


class GainBusybox(Gain):
    """The same with another awk: this one has no extensions, and does not say
    that its output is lost."""

    def setUp(self):
        super().setUp()
        self.put("bin/awk", "#!/bin/sh\nexec busybox awk \"$@\"\n")
        os.chmod(self.path("bin/awk"), 0o755)


if __name__ == "__main__":
    unittest.main()
