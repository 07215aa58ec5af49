#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench --null."""
import os
import shutil
import signal
import time
import unittest

from benchtree import FAKE_FIO, FAKE_PERF, QUEUE, SHORT, Case, finish
from faketree import TOOLS

MODPROBE = """#!/bin/sh
cd "$PLUGTOOLS_ROOT" || exit
echo $* >>modprobe.log
[ "$1" = -r ] || mkdir -p sys/module/null_blk
"""
# plugbench, where a directory of configfs is a disk, once its power is on, and
# goes with its files.
NULL_TOOL = """
import os, shutil, sys
sys.path.insert(0, %r)
sys.dont_write_bytecode = True
from plugtools.bench import nulldisk, plugbench
from plugtools.core.system import rooted
write, rmdir = nulldisk.write, os.rmdir
config = rooted("/sys/kernel/config/nullb/plugnull")
disk = rooted("/sys/block/plugnull")


def set_attribute(path, value):
    write(path, value)
    with open(rooted("/null.log"), "a") as log:
        print(os.path.basename(path), value, file=log)
    if path == config + "/power":
        shutil.copytree(rooted("/sys/block/nvme0n1"), disk)
        open(rooted("/dev/plugnull"), "w").close()


def remove(path, **more):
    if path == config:
        for name in os.listdir(config):
            os.unlink(os.path.join(config, name))
        shutil.rmtree(disk, ignore_errors=True)
        if os.path.exists(rooted("/dev/plugnull")):
            os.unlink(rooted("/dev/plugnull"))
    rmdir(path, **more)


nulldisk.write, os.rmdir = set_attribute, remove
sys.exit(plugbench.main(sys.argv[1:]))
"""


class Null(Case):
    """A disk of null_blk, made for the run."""

    CONFIG = "sys/kernel/config/nullb/"

    def setUp(self):
        super().setUp()
        machine = self.machine
        machine.put("null.py", NULL_TOOL % TOOLS)
        machine.tool = machine.path("null.py")
        machine.put("sys/module/null_blk/x", "")
        machine.put(self.CONFIG + "features", "")
        machine.program("fio", FAKE_FIO.replace("nvme0n1", "plugnull"))
        # a virtual disk has no device, and null_blk no elevator by default
        os.unlink(machine.path("sys/block/nvme0n1/device"))
        machine.put(QUEUE + "scheduler", "[none] mq-deadline")

    def unload(self):
        """The driver is a module, and not there."""
        shutil.rmtree(self.machine.path("sys/module"))

    def null(self, *words, code=0):
        """Run; stdout and stderr together. Whatever happens, it is gone."""
        got, out, errors = self.machine.run("--null", *SHORT, *words)
        self.assertEqual(got, code, out + errors)
        self.assertNotIn("Traceback", errors)
        self.check_removed()
        return out + errors

    def check_removed(self):
        """Neither the disk nor its directory."""
        self.assertEqual(os.listdir(self.machine.path(self.CONFIG)),
                         ["features"])
        self.assertFalse(os.path.exists(self.machine.path("dev/plugnull")))

    def test_policies(self):
        """All on offer, and nomerges2, on that disk."""
        self.null("--repeat", "1")
        self.assertEqual(
            [(one["policy"], one["nomerges"]) for one in self.machine.timed()],
            [("always", "0"), ("never", "0"), ("seq-small", "0"),
             ("adaptive", "0"), ("always", "2")])
        for one in self.machine.log():
            self.assertEqual(one["--filename"],
                             self.machine.path("dev/plugnull"))
        self.assertEqual({(one["profile"], one["kernel"]) for one in
                          self.machine.records("plugnull")},
                         {("null", "patched")})

    def test_attributes(self):
        """Set before the power."""
        self.null("--repeat", "1")
        log = self.machine.get("null.log").splitlines()
        self.assertIn("irqmode 0", log)
        self.assertIn("poll_queues 0", log)
        self.assertIn("hw_queue_depth 1023", log)
        self.assertEqual(log[-1], "power 1")

    def test_cache_misses(self):
        """Counted, shown, or said not to be there."""
        self.machine.program("perf", FAKE_PERF)
        text = self.null("--repeat", "1", "--verbose")
        self.assertIn("cache_misses_per_io", text)
        for one in self.machine.records("plugnull"):
            self.assertEqual(one["cache_misses_per_io"], 7000)
        self.machine.put("perf.cannot", "cycles\ncache-misses")
        self.assertIn("cannot count here: cycles, cache-misses",
                      self.null("--repeat", "1"))

    def test_unpatched(self):
        """A kernel without the series can be compared with itself."""
        os.unlink(self.machine.path(QUEUE + "plug_policy"))
        text = self.null("--repeat", "1")
        self.assertIn("no plug_policy", text)
        self.assertEqual(
            [(one["kernel"], one["policy"])
             for one in self.machine.records("plugnull")],
            [("unpatched", "always"), ("unpatched", "nomerges2")])

    def test_failure(self):
        """Of fio, and of an attribute."""
        self.machine.put("fio.fail", "")
        self.null(code=1)
        self.machine.put("null.py", NULL_TOOL.replace(
            "    write(path, value)", "    write(path + '/x', value)")
            % TOOLS)
        self.assertIn("size/x", self.null(code=1))

    def test_signals(self):
        """One, and one who cannot wait."""
        for numbers in ([signal.SIGTERM], [signal.SIGHUP],
                        [signal.SIGINT, signal.SIGINT]):
            self.machine.put("fio.sleep", "")
            self.machine.put("fio.pids", "")
            with self.machine.start("--null", *SHORT) as process:
                while not self.machine.get("fio.pids"):
                    time.sleep(0.05)
                for number in numbers:
                    process.send_signal(number)
                    time.sleep(0.05)
                out, errors = finish(process)
            self.assertEqual(process.returncode, 130, out + errors)
            self.check_removed()

    def test_killed(self):
        """By SIGKILL: its guard removes the disk."""
        self.machine.put("fio.sleep", "")
        with self.machine.start("--null", *SHORT) as process:
            self.wait_for("fio.pids")
            process.kill()
            finish(process)
        self.check_gone(*self.machine.get("fio.pids").split())
        self.check_removed()

    def test_refused(self):
        """Each with what would help."""
        os.rename(self.machine.path("sys/module"),
                  self.machine.path("sys/modules"))
        self.assertIn("CONFIG_BLK_DEV_NULL_BLK", self.null(code=1))
        self.machine.program("modprobe", "#!/bin/sh\necho boom >&2; exit 1")
        self.assertIn("boom", self.null(code=1))
        os.rename(self.machine.path("sys/modules"),
                  self.machine.path("sys/module"))
        os.mkdir(self.machine.path(self.CONFIG + "plugnull"))
        got, out, errors = self.machine.run("--null", *SHORT)
        self.assertEqual(got, 1, out + errors)
        self.assertIn("no plugbench has it", errors)
        shutil.rmtree(self.machine.path(self.CONFIG))
        self.assertIn("mount -t configfs",
                      self.machine.run("--null", *SHORT)[2])

    def test_module(self):
        """Loaded without disks of its own, and unloaded."""
        self.unload()
        self.machine.program("modprobe", MODPROBE)
        self.null("--repeat", "1")
        self.assertEqual(self.machine.get("modprobe.log"),
                         "null_blk nr_devices=0\n-r null_blk")

    def test_plan_only(self):
        """Neither is anything loaded nor a disk made, nor a file locked."""
        self.unload()
        self.machine.program("modprobe", MODPROBE)
        for more in ["--dry-run"], ["--showcmd"]:
            before = self.machine.snapshot()
            got, out, errors = self.machine.run("--null", *SHORT, *more)
            self.assertEqual((got, errors), (0, ""), out)
            self.assertEqual(self.machine.snapshot(), before)
            self.assertIn("/dev/plugnull", out)
        self.machine.put("x.json/y", "")
        self.assertIn("cannot write ./x.json", self.null(
            "--dry-run", "--json", "./x.json", code=1))

    def test_signal_meanwhile(self):
        """One that comes while it is being removed: all is removed, and what
        was measured is there."""
        self.unload()
        log = self.machine.path("modprobe.log")
        self.machine.program("modprobe", MODPROBE +
                             "sleep 1\necho done >>modprobe.log\n")
        with self.machine.start("--null", "--policies", "always",
                                *SHORT) as process:
            for _ in range(200):
                if os.path.exists(log) and "-r" in self.machine.get(log):
                    break
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 130, out + errors)
        self.assertIn("1 whole round is in", errors)
        self.assertEqual(self.machine.get(log).count("done"), 2)
        self.check_removed()

    def test_options(self):
        """Not with a disk, and it only reads."""
        for words, says in ((["/dev/nvme0n1", "--null"], "either"),
                            (["--null", "--write"], "no --write")):
            got, _, errors = self.machine.run(*words)
            self.assertEqual(got, 2)
            self.assertIn(says, errors)


if __name__ == "__main__":
    unittest.main()
