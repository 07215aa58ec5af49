# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll list, and of how response times are sampled."""
import json
import os
import shutil
import subprocess
import threading
import unittest
from unittest import mock

import faketree
import rolltree
from plugtools.core.disks import Disk
from plugtools.roll import disklist, meter

# 20000 reads, 8000 ms in flight within 1000 ms
BUSY = "20000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
SINGLE = "20000 0 0 1000 0 0 0 0 0 1000 1000 0 0 0 0 0 0"
WRAPPED = "500000000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
BEGIN = " fio-1 [001] ..... %s: block_getrq: %s R %s + 8 [fio]\n"
END = " <idle>-0 [001] d.h.. %s: block_rq_complete: 259,0 R () %s + 8 none\n"
TRACE = (BEGIN % ("12.000100", "259,1", "1234") +
         BEGIN % ("12.000110", "259,0", "5555") +
         END % ("12.000350", "1234") + END % ("12.000360", "9999"))


class ListTest(rolltree.Tree):
    """What is said of a disk."""

    def row(self, *disks):
        """plugroll list --json, of one disk."""
        code, out, said = self.run_roll("list", "--json", *disks)
        self.assertEqual((code, said), (0, ""))
        return json.loads(out)["disks"][0]

    def recommended(self, **files):
        """(mode, first evidence) for a disk with these files."""
        shutil.rmtree(self.path("sys/block/nvme0n1"), ignore_errors=True)
        self.disk("nvme0n1", **{"stat": BUSY, **files})
        row = self.row("nvme0n1")
        self.assertIn(row["worth_a_try"], (None, "adaptive"))
        self.assertFalse(row["worth_a_try"] and row["best"])
        return row["worth_a_try"] or row["best"], row["evidence"][0]

    def test_facts(self):
        """One after the other, as plug-policy.rst has them."""
        for files, mode, evidence in (
                ({}, "adaptive", "8.0 requests in flight"),
                ({"stat": SINGLE}, "always", "one I/O at a time"),
                ({"stat": "9 " * 17}, None, "not enough I/O to tell"),
                ({"stat": WRAPPED}, None, "may have wrapped in 500000000"),
                ({"queue__scheduler": "none [mq-deadline]"}, "always",
                 "an I/O scheduler, mq-deadline"),
                ({"queue__rotational": "1"}, "always", "rotational"),
                ({"queue__plug_policy_fallback": "no-queue_rqs"}, "always",
                 "takes no groups"),
                ({"device__model": "QEMU NVMe Ctrl"}, "always",
                 "virtual (QEMU NVMe Ctrl)")):
            with self.subTest(files):
                got = self.recommended(**files)
                self.assertEqual(got[0], mode)
                self.assertIn(evidence, got[1])

    def test_not_in_force(self):
        """What is set, and why something else is in force."""
        self.disk("nvme0n1", "adaptive",
                  queue__plug_policy_fallback="elevator")
        row = self.row()
        self.assertEqual((row["set"], row["in_force"], row["why"]),
                         ("adaptive", "always", "elevator"))

    def test_tries(self):
        """A try says more than a guess: of what is better, and what not."""
        for speed, tried, mode, text in (
                (1.3, "seq-small", "seq-small", "the guard held; iops +"),
                (.7, "adaptive", "always", "the guard tripped; iops -")):
            self.disk("nvme0n1", wwid="eui.%s" % speed)
            with rolltree.Load(self, "nvme0n1", {tried: speed}):
                self.run_roll("try", tried, "nvme0n1", "--for", "1m")
            self.write("sys/block/nvme0n1/stat", BUSY)
            row = self.row()
            self.assertEqual((row["best"], row["worth_a_try"]), (mode, None))
            self.assertIn(text, row["evidence"][0])
            shutil.rmtree(self.path("sys/block/nvme0n1"))

    def test_try_of_virtual_disk(self):
        """Its doorbells are a guess; not so that a scheduler rules."""
        self.write(disklist.TRIES, json.dumps({"eui.nvme0n1": {"adaptive": {
            "status": "held", "date": "2026-11-01", "figures": {
                "iops": {"change": 3, "low": 2, "high": 4}}}}}))
        for scheduler, mode in (("[none]", "adaptive"),
                                ("none [kyber]", "always")):
            self.assertEqual(self.recommended(
                device__model="QEMU NVMe Ctrl",
                queue__scheduler=scheduler)[0], mode)

    def note(self, *names):
        """What came of a try of disks on "never"."""
        disklist.note_try({"mode": "never", "disks": {name: {
            "status": "held", "figures": {}} for name in names}},
                          list(map(Disk, names)))

    def test_two_at_once(self):
        """A try that ends while another one is being noted is noted, too."""
        for name in ("nvme0n1", "nvme1n1"):
            self.disk(name)
        known, second = disklist.tries, threading.Thread(
            target=self.note, args=("nvme1n1",))

        def slow():
            found = known()
            if not second.ident:
                second.start()
                second.join(.2)
            return found

        with mock.patch.object(disklist, "tries", slow):
            self.note("nvme0n1")
            second.join()
        self.assertEqual(sorted(disklist.tries()),
                         ["eui.nvme0n1", "eui.nvme1n1"])

    def test_damaged_tries(self):
        """What cannot be read is no evidence."""
        self.disk("nvme0n1")
        for text in ("{", "[]", "[" * 100000, '{"eui.nvme0n1": 3}',
                     '{"eui.nvme0n1": {"never": {}}}'):
            self.write(disklist.TRIES, text)
            self.assertEqual(self.row()["best"], None, text)

    def test_head(self):
        """Its paths have the policy; disks without any, or without a
        medium, are left out."""
        self.head()
        self.disk("loop0", mode="", mq__0="")
        self.disk("loop1", size="0")
        code, out, _ = self.run_roll("list")
        self.assertEqual(code, 0)
        self.assertIn("its policy is that of nvme0c0n1, nvme0c1n1", out)
        self.assertNotIn("loop", out)

    def test_none(self):
        """A kernel without the series, for all disks and for one; and a disk
        without a policy beside one that has it."""
        self.disk("sda", mode="", mq__0="")
        self.disk("dm-0", mode="", slaves__sda__x="")
        for words in ([], ["sda"], ["dm-0"]):
            code, out, said = self.run_roll("list", *words)
            self.assertEqual((code, out), (1, ""), words)
            self.assertIn("CONFIG_BLK_PLUG_POLICY", said)
        self.disk("nvme0n1")
        code, out, said = self.run_roll("list", "nvme0n1", "dm-0")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("sda has no plug_policy", said)

    def test_guess(self):
        """What only the load speaks for is not recommended."""
        self.disk("nvme0n1", stat=BUSY)
        code, out, _ = self.run_roll("list")
        self.assertEqual(code, 0)
        self.assertIn("adaptive: worth a try", out)
        self.assertNotIn("recommend", out)

    def test_nomerges(self):
        """A host that keeps 2 is told of it, one with 1 or 0 is not."""
        for value in "012":
            self.disk("nvme0n1", queue__nomerges=value)
            self.assertEqual("nomerges=2" in self.run_roll("list")[1],
                             value == "2")
            self.assertEqual(self.row()["nomerges"], value)
            shutil.rmtree(self.path("sys/block/nvme0n1"))

    def test_check(self):
        """3 if a mode is not in force, or another one is kept."""
        for name in "nvme0n1", "nvme1n1":
            self.disk(name, queue__plug_policy_fallback="none")
        self.run_roll("keep", "adaptive", "nvme0n1")
        self.assertEqual(self.run_roll("list", "--check")[::2], (0, ""))
        self.write("sys/block/nvme0n1/queue/plug_policy",
                   rolltree.offer("never"))
        self.assertEqual(self.run_roll("list", "--check")[::2], (
            3, "nvme0n1: adaptive is kept, but never is set"))
        self.assertEqual(self.run_roll("list")[0], 0)
        shutil.rmtree(self.path("sys/block/nvme0n1"))
        self.write("sys/block/nvme1n1/queue/plug_policy",
                   rolltree.offer("never"))
        for why, text in (("elevator", "but always is in force: elevator"),
                          ("", "but it is not known what is in force: ")):
            self.write("sys/block/nvme1n1/queue/plug_policy_fallback", why)
            if not why:
                os.unlink(self.path(
                    "sys/block/nvme1n1/queue/plug_policy_fallback"))
            code, out, said = self.run_roll("list", "--check", "--json")
            self.assertEqual((code, len(json.loads(out)["disks"])), (3, 1))
            self.assertIn("nvme1n1: never is set, " + text, said)

    def test_columns(self):
        """Those that are asked for, in an order that is asked for."""
        for number, mode in enumerate(("never", "always", "seq-small")):
            self.disk("nvme%dn1" % number, mode, stat=BUSY)
        _, out, _ = self.run_roll("list", "--columns", "set,Disk", "--sort",
                                  "set")
        self.assertEqual([line.split() for line in out.splitlines()], [
            ["set", "Disk"], ["always", "nvme1n1"], ["never", "nvme0n1"],
            ["seq-small", "nvme2n1"]])
        with mock.patch("argparse.ArgumentParser._print_message") as usage:
            self.assertEqual(self.run_roll("list", "--sort", "mode")[0], 2)
        self.assertIn("accepted: Disk, set, in-force", str(usage.mock_calls))

    def test_going(self):
        """A disk that goes meanwhile costs its own line, whenever it does."""
        self.write(disklist.TRIES, "{}")
        for access in range(100):
            for name in ("nvme0n1", "nvme1n1", "nvme2n1"):
                shutil.rmtree(self.path("sys/block/" + name),
                              ignore_errors=True)
                self.disk(name, stat=BUSY)
            with self.going("nvme1n1", access) as gone:
                code, out, said = self.run_roll("list", "--json")
            names = [row["disk"] for row in json.loads(out)["disks"]]
            self.assertEqual((code, set(names) - {"nvme1n1"}),
                             (0, {"nvme0n1", "nvme2n1"}), access)
            self.assertIn(said, ("", "nvme1n1 has gone"))
            if not gone:
                break
            self.assertNotIn("nvme1n1", names, access)
        self.assertGreater(access, 10)

    def test_path_that_goes(self):
        """It does not cost the line of the disk above it."""
        self.many(2)
        with mock.patch.object(disklist, "is_shown", wraps=disklist.is_shown
                               ) as shown:
            def go(disk, legs):
                shutil.rmtree(self.path("sys/block/sd0x1"),
                              ignore_errors=True)
                return mock.DEFAULT
            shown.side_effect = go
            _, out, _ = self.run_roll("list", "--json")
        self.assertIn("dm-0", [row["disk"] for row in
                               json.loads(out)["disks"]])

    def test_full(self):
        """Output that is lost is an error, and told in a line; of a reader
        who has seen enough, nothing is said."""
        self.disk("nvme0n1")
        for words in (["list"], ["list", "--json"], ["list", "--help"],
                      ["--help"], ["--version"]):
            self.assertEqual(faketree.lost("plugroll", *words), [
                (1, "plugroll: output is lost: No space left on device\n"),
                (0, "")], words)

    def test_ascii(self):
        """A name that the terminal cannot show ends nothing."""
        self.disk("nvme0n1", device__model="x")
        with open(self.path("sys/block/nvme0n1/device/model"), "wb") as file:
            file.write("QEMU ±".encode())
        self.assertEqual(faketree.run_program(
            "plugroll", "list", stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONIOENCODING": "ascii"}), (0, ""))

    def test_many(self):
        """Four times the disks take four times as long: paths of dm and of
        NVMe, many that are named, and many that are kept."""
        for head, paths in (("dm-%d", ("sd%dx0", "sd%dx1")),
                            ("nvme%dn1", ("nvme%dc0n1", "nvme%dc1n1"))):
            took = []
            for number in 20, 80:
                self.many(number, head, paths)
                names = [head % disk for disk in range(number)]
                took.append([faketree.calls(
                    lambda: self.run_roll(*words)) for words in (
                        ["list"], ["list", *names],
                        ["keep", "never", *names], ["list"], ["undo"])])
            for few, much in zip(*took):
                self.assertLess(much, 5 * few, took)


class TraceTest(rolltree.Tree):
    """Requests that are followed by trace events."""

    def tracefs(self, pid=None, enable="0"):
        """As the kernel would make an instance."""
        where = "sys/kernel/tracing/instances/plugroll-%d/" % (
            pid or os.getpid())
        for event in meter.EVENTS:
            self.write(where + "events/block/%s/filter" % event, "0")
            self.write(where + "events/block/%s/enable" % event, enable)
        self.write(where + "trace_pipe", TRACE.rstrip())
        return where

    def tracer(self, rates):
        """One, whose instance is there already."""
        with mock.patch("os.mkdir"):
            return meter.Tracer(rates)

    def enabled(self, where):
        """Of both events."""
        return [self.read(where + "events/block/%s/enable" % event)
                for event in meter.EVENTS]

    def test_times(self):
        """From the allocation to the completion, partitions included; what
        has no beginning or no end is left out."""
        self.disk("nvme0n1", nvme0n1p1__partition="1", nvme0n1p1__dev="259:1",
                  dev="259:0")
        where = self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 20000})
        self.assertEqual(tracer.collect(), {"nvme0n1": [250]})
        self.assertEqual(self.read(where + "events/block/block_getrq/filter"),
                         "(dev == 271581184 || dev == 271581185) && "
                         "!(sector & 120)")
        self.assertEqual(self.enabled(where), ["1", "1"])
        tracer.close()
        self.assertEqual(self.enabled(where), ["0", "0"])

    def test_others(self):
        """The instance of another plugroll stays as it is; that of a dead one
        goes, if nobody uses it."""
        self.disk("nvme0n1", dev="259:0")
        with subprocess.Popen("true") as dead:
            pass
        others = [self.tracefs(pid, "1") for pid in (1, dead.pid)]
        self.tracefs()
        with mock.patch("os.rmdir") as removed:
            self.tracer({Disk("nvme0n1"): 20000}).close()
        self.assertEqual(list(map(self.enabled, others)), [["1", "1"]] * 2)
        self.assertEqual({os.path.basename(call.args[0])
                          for call in removed.call_args_list},
                         {"plugroll-%d" % pid
                          for pid in (dead.pid, os.getpid())})

    def test_second_event(self):
        """One that cannot be switched on: the first one is not left on."""
        self.disk("nvme0n1", dev="259:0")
        where, write = self.tracefs(), meter.write

        def refuse(path, value):
            if path.endswith("block_rq_complete/enable") and value == "1":
                raise OSError(12, "Cannot allocate memory", path)
            write(path, value)

        with mock.patch.object(meter, "write", refuse), \
             mock.patch("os.rmdir") as removed, \
             self.assertRaisesRegex(meter.NoTracing, "Cannot allocate"):
            self.tracer({Disk("nvme0n1"): 20000})
        self.assertEqual(self.enabled(where), ["0", "0"])
        removed.assert_called_with(self.path(where).rstrip("/"))

    def test_legs(self):
        """Of a head, what its paths do: each has the same sectors, and sysfs
        does not have the number of a hidden one."""
        self.head()
        os.unlink(self.path("sys/block/nvme0c1n1/dev"))
        self.write("sys/block/nvme0c0n1/dev", "259:0")
        self.write("proc/diskstats", "259 3 nvme0n1 9 9\n"
                   " 259       4 nvme0c1n1 9 9\n")
        where = self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 100})
        self.assertEqual(self.read(where + "events/block/block_getrq/filter"),
                         "(dev == 271581184 || dev == 271581188)")
        tracer.take([line.replace("259,1", "259,4").replace("5555", "1234")
                     for line in TRACE.splitlines()])
        self.assertEqual(tracer.times, {"nvme0n1": [240]})
        self.write("proc/diskstats", "0 0 nvme0c1n1 9 9")
        with self.assertRaisesRegex(meter.NoTracing,
                                    "number of nvme0c1n1 is not known"):
            self.tracer({Disk("nvme0n1"): 100})

    def test_lost(self):
        """After lost events no pair is certain."""
        self.disk("nvme0n1", dev="259:0")
        self.tracefs()
        tracer = self.tracer({Disk("nvme0n1"): 100})
        lines = TRACE.splitlines()
        tracer.times = {"nvme0n1": []}
        tracer.take([lines[1].replace("5555", "1234"),
                     "CPU:1 [LOST 27 EVENTS]", lines[2]])
        self.assertEqual(tracer.times, {"nvme0n1": []})
        tracer.close()

    def test_percentile(self):
        """The 99th of 1000; too few have none."""
        old = meter.Counters(0, 0, 0, 0)
        new = meter.Counters(1, 5000, 5000, 500)
        self.assertEqual(meter.figures(old, new, range(1000))["p99"], .99)
        self.assertNotIn("p99", meter.figures(old, new, range(400)))

    def test_wrap(self):
        """The kernel shows 32 bits of the time."""
        old = meter.Counters(0, 0, 0, (1 << 32) - 100)
        new = meter.Counters(1, 500, 500, 400)
        self.assertEqual(meter.figures(old, new)["mean"], 1)


if __name__ == "__main__":
    unittest.main()
