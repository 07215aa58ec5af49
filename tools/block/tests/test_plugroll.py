# SPDX-License-Identifier: GPL-2.0
"""Tests of plugroll try, on a made-up machine whose load depends on the mode.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import rolltree
from faketree import TOOLS
from plugtools.core.disks import Disk
from plugtools.roll import guard, meter, plugroll, trial

QUICK = ("--for", "1m")
# plugroll, but for how long it measures the load before
PROGRAM = ("import sys; from plugtools.roll import plugroll, trial; "
           "trial.LEAST_BASELINE = trial.SHORTEST = 0.1; "
           "sys.exit(plugroll.main())")


def pairs(changes, metric="iops"):
    """Pairs of blocks with these changes."""
    return [({metric: 100.0}, {metric: 100.0 * (1 + change)})
            for change in changes]


class GuardTest(unittest.TestCase):
    """What trips a guard, and what does not."""

    def test_clear_harm_trips(self):
        """Beyond the limit, and the same each time."""
        why = guard.tripped(pairs([-.07, -.08, -.075]), {"iops": -.05})
        self.assertRegex(why, r"iops by -7\.5% .*limit is -5%")

    def test_two_pairs_do_not(self):
        """However clear: it may be the load."""
        self.assertIsNone(guard.tripped(pairs([-.5, -.5]),
                                        {"iops": -.05}))

    def test_noise_does_not(self):
        """Beyond the limit on average, but not for sure."""
        self.assertIsNone(guard.tripped(pairs([-.3, .2, -.2]),
                                        {"iops": -.05}))

    def test_small_harm_does_not(self):
        """For sure, but within the limit."""
        self.assertIsNone(guard.tripped(pairs([-.02, -.021, -.02]),
                                        {"iops": -.05}))

    def test_gain_does_not(self):
        """More I/Os, and shorter response times."""
        for metric, sign, limit in (("iops", 1, -.05), ("mean", -1, .05),
                                    ("p99", -1, .05)):
            self.assertIsNone(guard.tripped(
                pairs([.2 * sign, .21 * sign, .2 * sign], metric),
                {metric: limit}), metric)

    def test_latency_trips_upwards(self):
        """Response times may rise, not fall."""
        self.assertRegex(guard.tripped(
            pairs([.2, .21, .2], "p99"), {"p99": .05}), "p99 by .20.3%")

    def test_not_ruled_out(self):
        """An interval that reaches beyond the limit decides nothing."""
        noise = pairs([-.05, .05, .04, -.04])
        self.assertIn("not ruled out",
                      guard.undecided(noise, {"iops": -.02}))
        self.assertIsNone(guard.undecided(noise, {"iops": -.5}))
        self.assertIn("too few", guard.undecided(noise, {"p99": .1}))

    def test_chance_seldom_trips(self):
        """Equal modes under a load that scatters by 5%, and is asked after
        each of 30 pairs: the guard trips in a few percent of all tries."""
        draw = random.Random(16)
        trips = 0
        for _ in range(300):
            drawn = pairs([draw.gauss(0, .05) for _ in range(30)])
            trips += any(guard.tripped(drawn[:count], {"iops": -.02})
                         for count in range(3, 31))
        self.assertLess(trips, 300 * .06)

    def test_text(self):
        """Guards as the user writes them."""
        self.assertEqual(guard.parse_guard("p99=5%,iops=-2%"),
                         {"p99": .05, "iops": -.02})
        self.assertEqual(guard.guard_text({"p99": .05, "iops": -.02}),
                         "p99=+5%,iops=-2%")


class RefusalTest(rolltree.Tree):
    """Bad input changes nothing, and is told what is accepted."""

    def setUp(self):
        super().setUp()
        self.disk("nvme0n1")

    def refused(self, text, *words, code=2):
        """Exit code, the message, and the mode."""
        with mock.patch("argparse.ArgumentParser._print_message") as usage:
            got, out, said = self.run_roll(*words)
        said += "".join(str(call.args[0]) for call in usage.call_args_list)
        self.assertEqual(got, code, said)
        self.assertRegex(said.replace("\n", " "), text)
        self.assertEqual(self.mode("nvme0n1"), "always")
        self.assertEqual((out, self.read("etc/udev/rules.d/65-plugroll.rules"),
                          os.listdir(self.path("run"))), ("", "", []))

    def test_words(self):
        """Guards, times, modes and disks that are none."""
        for text in ("iops=2%", "p99=-5%", "p99=5%,p99=6%", "cpu=5%", "p99",
                     "iops=-0%", "p99=500%", "", "p99=nan%"):
            with self.subTest(text):
                self.refused("--guard.*accepted: limits such as p99=5%",
                             "try", "never", "nvme0n1", "--guard", text)
        self.refused("--require takes a gain", "try", "never", "nvme0n1",
                     "--guard", "iops=+1%")
        for text in ("iops=-1%", "p99=5%", "mean=+1%", "iops=1%,iops=2%",
                     "cpu=5%", "", "iops=0%", "iops=nan%"):
            with self.subTest(text):
                self.refused("--require.*accepted: gains such as iops=.0.5%",
                             "try", "never", "nvme0n1", "--require", text)
        for text in ("0", "3d", "-5m", "25h", "ten", "1e3"):
            with self.subTest(text):
                self.refused("accepted: 12s to 24h", "try", "never",
                             "nvme0n1", "--for=" + text)
        self.refused("accepted: 0.5 to 600", "try", "never", "nvme0n1",
                     "--block", "inf")
        self.refused("invalid choice: 'fast'", "try", "fast", "nvme0n1")
        self.refused("name disks, or give --all-nvme", "try", "never")
        self.refused("name disks, or give --all-nvme", "keep", "never",
                     "nvme0n1", "--all-nvme")
        self.refused("nvme7n1: no such disk; accepted", "try", "never",
                     "nvme7n1")

    def test_mode_not_offered(self):
        """A kernel may have fewer modes."""
        self.write("sys/block/nvme0n1/queue/plug_policy", "[always] never")
        for verb in ("try", "keep"):
            self.refused("no mode 'adaptive'; accepted: always, never", verb,
                         "adaptive", "nvme0n1")

    def test_no_counting(self):
        """Nothing can be judged without iostats."""
        self.write("sys/block/nvme0n1/queue/iostats", "0")
        self.refused("does not count its I/O: echo 1 >", "try", "never",
                     "nvme0n1", code=1)

    def test_leg_without_knob(self):
        """All disks below must have it."""
        self.disk("dm-0", mode="", slaves__nvme0n1__x="", slaves__sda__x="")
        self.disk("sda", mode="", mq__0="")
        self.refused("sda has no plug_policy", "try", "never", "dm-0")

    def test_p99_without_tracing(self):
        """Asked for by name, it is not replaced by something else."""
        with rolltree.Load(self, "nvme0n1", {}):
            code, _, said = self.run_roll("try", "never", "nvme0n1", *QUICK,
                                          "--guard", "p99=5%")
        self.assertEqual((code, self.mode("nvme0n1")), (1, "always"))
        self.assertIn("p99 cannot be measured: no tracefs", said)


class TryTest(rolltree.Tree):
    """Tries in this process."""

    def attempt(self, speeds, *words, name="nvme0n1", legs=()):
        """plugroll try never, under a load."""
        with rolltree.Load(self, name, speeds, legs):
            return self.run_roll("try", "never", name, *QUICK, *words)

    def test_trips(self):
        """A mode that does harm: within its time, with the reason."""
        self.disk("nvme0n1", "seq-small")
        lines = self.log()
        code, out, said = self.attempt({"never": .8}, "--guard", "iops=-5%")
        self.assertEqual((code, self.mode("nvme0n1")), (3, "seq-small"), said)
        self.assertRegex(out, r"guard tripped: nvme0n1: iops by -\d+\.\d% .*"
                              "limit is -5%; the mode before is back")
        self.assertRegex(lines[-1], "never on nvme0n1: the guard tripped")
        self.assertFalse([name for name in
                          os.listdir(self.path("run/plug-policy"))
                          if not name.endswith(".lock")])

    def test_holds(self):
        """A mode that does good is not kept unless asked for."""
        self.disk("nvme0n1")
        code, out, said = self.attempt({"never": 1.3}, "--json")
        found = json.loads(out)
        self.assertEqual((code, found["status"], self.mode("nvme0n1")),
                         (0, "held", "always"), said)
        self.assertEqual((found["version"], found["kept"]), (2, False))
        self.assertGreater(
            found["disks"]["nvme0n1"]["figures"]["iops"]["low"], .2)
        code, _, said = self.attempt({"never": 1.3}, "--keep")
        self.assertEqual((code, self.mode("nvme0n1")), (0, "never"), said)
        self.assertIn('"never"', self.read("etc/udev/rules.d/"
                                           "65-plugroll.rules"))

    def test_required_gain(self):
        """Kept only if the gain is sure; a mode that does nothing is not, nor
        one that gains less, and neither is a failure."""
        for speed, require, want in (
                (1.3, "iops=+0.5%", 0), (1.0, "iops=+0.5%", 5),
                (1.3, "iops=35%", 5), (1.3, "mean=-1%", 0),
                (1.0, "mean=-1%", 5), (1.3, "iops=1%,mean=-50%", 5),
                (.7, "iops=+0.5%", 3)):
            with self.subTest(speed=speed, require=require):
                shutil.rmtree(self.path("sys/block/nvme0n1"),
                              ignore_errors=True)
                self.disk("nvme0n1")
                code, out, said = self.attempt(
                    {"never": speed}, "--require", require, "--keep", "--json")
                found = json.loads(out)
                self.assertEqual((code, self.mode("nvme0n1"), found["kept"]), (
                    want, "always" if want else "never", not want), said)
                if want == 5:
                    self.assertEqual(found["status"], "no gain")
                    self.assertIn("% is required", found["why"])

    def test_nomerges(self):
        """A host that merges nothing is told what a try is worth."""
        self.disk("nvme0n1", queue__nomerges="2")
        self.assertIn("nvme0n1: the host keeps nomerges=2",
                      self.attempt({"never": 1.3})[1])
        _, out, _ = self.attempt({"never": 1.3}, "--json")
        self.assertEqual(json.loads(out)["nomerges"], ["nvme0n1"])
        self.assertIn("nomerges=2",
                      self.run_roll("keep", "never", "nvme0n1")[1])

    def test_tripped_is_not_kept(self):
        """--keep is for modes whose guard held."""
        self.disk("nvme0n1")
        self.assertEqual(self.attempt({"never": .7}, "--keep")[0], 3)
        self.assertEqual(self.mode("nvme0n1"), "always")
        self.assertFalse(os.listdir(self.path("etc")))

    def test_idle(self):
        """Too little I/O: nothing is even set."""
        self.disk("nvme0n1")
        with mock.patch.object(trial.Modes, "set") as touched:
            code, out, _ = self.attempt({"always": 0.001})
        self.assertEqual((code, touched.called), (4, False))
        self.assertIn("not enough I/O to tell", out)

    def test_goes_idle(self):
        """A load that ends during the try says nothing of the mode."""
        self.disk("nvme0n1")
        load = rolltree.Load(self, "nvme0n1", {})
        load.last = 8
        with load:
            code, out, _ = self.run_roll("try", "never", "nvme0n1", *QUICK)
        self.assertEqual((code, self.mode("nvme0n1")), (4, "always"))
        self.assertIn("nvme0n1: not enough I/O to tell", out)

    def test_stops_the_disk(self):
        """A mode with which nothing is done any more is the worst."""
        self.disk("nvme0n1")
        code, out, _ = self.attempt({"never": 0}, "--guard", "iops=-50%")
        self.assertEqual((code, self.mode("nvme0n1")), (3, "always"), out)

    def test_idle_beside_busy(self):
        """An idle disk keeps its mode while another is tried."""
        self.disk("nvme0n1")
        self.disk("nvme1n1")
        with rolltree.Load(self, "nvme0n1", {"never": 1.3}):
            code, out, _ = self.run_roll("try", "never", "--all-nvme", *QUICK,
                                         "--json")
        found = json.loads(out)
        self.assertEqual((code, found["idle"], list(found["disks"])),
                         (0, ["nvme1n1"], ["nvme0n1"]))

    def test_head(self):
        """Measured on the head, set on each path, put back on each."""
        self.head()
        self.write("sys/block/nvme0c1n1/queue/plug_policy",
                   rolltree.offer("adaptive"))
        seen = set()

        def end(meter):
            seen.add((self.mode("nvme0c0n1"), self.mode("nvme0c1n1")))
            return END(meter)

        with mock.patch.object(meter.Meter, "end", end):
            code, _, said = self.attempt({"never": .5}, "--guard", "iops=-5%",
                                         legs=("nvme0c0n1", "nvme0c1n1"))
        self.assertEqual(code, 3, said)
        self.assertIn(("never", "never"), seen)
        self.assertEqual((self.mode("nvme0c0n1"), self.mode("nvme0c1n1")),
                         ("always", "adaptive"))

    def test_somebody_else(self):
        """A mode set by hand meanwhile ends the try, and stays."""
        self.disk("nvme0n1")
        path = "sys/block/nvme0n1/queue/plug_policy"

        def end(meter):
            if self.mode("nvme0n1") == "never":
                self.write(path, rolltree.offer("seq-small"))
            return END(meter)

        with mock.patch.object(meter.Meter, "end", end):
            code, _, said = self.attempt({})
        self.assertEqual((code, self.mode("nvme0n1")), (1, "seq-small"))
        self.assertIn("somebody else has set", said)

    def test_error(self):
        """Whatever goes wrong, the mode is back."""
        self.disk("nvme0n1")
        with mock.patch.object(trial.Try, "note",
                               side_effect=OSError(5, "Broken", "x")):
            code, _, said = self.attempt({})
        self.assertEqual((code, self.mode("nvme0n1")), (1, "always"))
        self.assertIn("x: Broken", said)

    def test_merges(self):
        """A merged I/O is an I/O: fewer merges are no gain."""
        old = meter.Counters(0, 0, 0, 0)
        few = meter.Counters(1, 32000, 1000, 500)
        many = meter.Counters(1, 32000, 32000, 500)
        self.assertEqual(meter.figures(old, few)["iops"],
                         meter.figures(old, many)["iops"])
        self.disk("nvme0n1", stat="10 5 1 7 20 6 1 8 0 0 0 9 9 9 9 9 9")
        found = meter.counters(rollmeter_disk())
        self.assertEqual(found[1:], (41, 30, 15))

    def test_log(self):
        """Into the system's log, by its socket."""
        with rolltree.socket_at(self.path("dev/log")) as socket:
            trial.log("never on nvme0n1: the guard held")
            self.assertRegex(socket.recv(500).decode(),
                             r"^<29>plugroll\[\d+\]: never on nvme0n1: the")


class SignalTest(rolltree.Tree):
    """Tries in a process of their own, which is stopped."""

    def stop(self, number, send=os.kill):
        """Send a signal while "never" is set: (code, what was said)."""
        shutil.rmtree(self.path("sys/block/nvme0n1"), ignore_errors=True)
        self.disk("nvme0n1", "seq-small")
        with rolltree.RealLoad(self, "nvme0n1"):
            with subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, "try", "never", "nvme0n1",
                     "--guard", "iops=-50%", "--for", "60s", "--block", "0.5"],
                    cwd=TOOLS, start_new_session=True, text=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE) as process:
                try:
                    self.wait_for("never")
                finally:
                    send(process.pid, number)
                said = process.communicate(timeout=20)[1]
        self.wait_for("seq-small")
        return process.returncode, said

    def wait_for(self, mode):
        """Until the disk has it."""
        end = time.monotonic() + 10
        while self.mode("nvme0n1") != mode:
            self.assertLess(time.monotonic(), end, "never " + mode)
            time.sleep(.02)

    def test_stopped(self):
        """Ctrl-C, SIGTERM and a closed terminal."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                code, said = self.stop(number)
                self.assertEqual(code, 130, said)
                self.assertIn("interrupted by " + number.name, said)

    def test_killed(self):
        """SIGKILL of the whole group: another process puts the mode back."""
        self.assertEqual(self.stop(signal.SIGKILL, os.killpg)[0],
                         -signal.SIGKILL)
        end = time.monotonic() + 5
        while os.listdir(self.path("run/plug-policy")) != ["nvme0n1.lock"]:
            self.assertLess(time.monotonic(), end, "journal is left")
            time.sleep(.02)

    def test_next_start(self):
        """Where that was killed as well, the next start does it."""
        self.disk("nvme0n1", "never")
        journal = trial.Journal("nvme0n1", ["nvme0n1"], "plugroll")
        path = self.path("sys/block/nvme0n1/queue/plug_policy")
        journal.know(path, "always", "never")
        os.close(journal.file)
        with rolltree.Load(self, "nvme0n1", {"always": 0}):
            code, _, said = self.run_roll("try", "seq-small", "nvme0n1")
        self.assertEqual((code, self.mode("nvme0n1")), (4, "always"))
        self.assertIn("is always again", said)

    def test_locked(self):
        """Two tries of one disk: the second is told who is at work."""
        self.disk("nvme0n1")
        with trial.locked(["nvme0n1"], "plugbench"):
            code, _, said = self.run_roll("try", "never", "nvme0n1", *QUICK)
        self.assertEqual(code, 1)
        self.assertIn("nvme0n1 is being worked on by plugbench", said)


END = meter.Meter.end


def rollmeter_disk():
    """nvme0n1."""
    return Disk("nvme0n1")


if __name__ == "__main__":
    unittest.main()
