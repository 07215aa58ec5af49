#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench: whatever happens, all is as before."""
import json
import os
import signal
import time
import unittest

from benchtree import FAKE_FIO, FIO_JSON, QUEUE, SHORT, Case, finish, state_of

class Restore(Case):
    """Whatever happens, settings are as before and nothing runs."""

    def test_success(self):
        """During the runs they are what the measurement needs."""
        self.bench()
        self.check_restored()
        log = self.machine.log()
        self.assertEqual({one["iostats"] for one in log}, {"1"})
        self.assertEqual([(one["policy"], one["nomerges"])
                          for one in log[:10:2]],
                         [("always", "0"), ("never", "0"), ("seq-small", "0"),
                          ("adaptive", "0"), ("always", "2")])
        self.assertEqual([one["policy"] for one in log[::2]],
                         [one["policy"] for one in log[1::2]])

    def test_fio_fails(self):
        """With what fio said."""
        self.machine.put("fio.fail", "")
        text = self.bench(code=1)
        self.assertIn("exit code 1", text)
        self.assertIn("fio: boom", text)
        self.check_restored()

    def test_fio_prints_nonsense(self):
        """An exit code of 0 is not enough."""
        self.machine.put("fio.json", "{ nonsense")
        self.assertIn("fio failed", self.bench(code=1))
        self.check_restored()

    def test_fio_reports_an_error(self):
        """An I/O error in the JSON."""
        told = json.loads(json.dumps(FIO_JSON))
        told["jobs"][0]["error"] = 5
        self.machine.put("fio.json", json.dumps(told))
        self.assertIn("fio failed", self.bench(code=1))
        self.check_restored()

    def interrupt(self, *numbers, deaf=False):
        """Send signals while fio runs."""
        self.machine.put("fio.sleep", "")
        if deaf:
            self.machine.put("fio.deaf", "")
        with self.machine.start("/dev/nvme0n1", *SHORT) as process:
            self.wait_for("fio.pids")
            for number in numbers:
                process.send_signal(number)
                time.sleep(0.3)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 130, out + errors)
        self.assertIn("interrupted by " + numbers[0].name, errors)
        self.assertNotIn("Traceback", errors)
        self.check_restored()
        self.assertFalse(os.path.exists(
            self.machine.path("plugbench-nvme0n1.json")))
        self.check_gone(*self.machine.get("fio.pids").split())

    def test_sigint(self):
        """Ctrl-C."""
        self.interrupt(signal.SIGINT)

    def test_sigterm(self):
        """kill."""
        self.interrupt(signal.SIGTERM)

    def test_sighup(self):
        """The terminal went."""
        self.interrupt(signal.SIGHUP)

    def test_before_the_runs(self):
        """During the checks, here in nvme-cli: the same exit code."""
        self.machine.program("nvme", "#!/bin/sh\n"
                             "echo >$PLUGTOOLS_ROOT/started\nsleep 2\n")
        before = self.machine.snapshot()
        with self.machine.start("/dev/nvme0n1", *SHORT) as process:
            while not os.path.exists(self.machine.path("started")):
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 130, out + errors)
        os.unlink(self.machine.path("started"))
        self.assertEqual(self.machine.snapshot(), before)

    def test_impatient(self):
        """More signals, and an fio that does not listen to SIGTERM."""
        self.interrupt(signal.SIGINT, signal.SIGINT, signal.SIGTERM,
                       deaf=True)


class Rounds(Case):
    """What whole rounds measured is kept, however it ends."""

    WORDS = ["/dev/nvme0n1", *SHORT, "--policies", "always,never",
             "--repeat", "5"]

    def setUp(self):
        super().setUp()
        # the first run of the second round does not end by itself
        self.machine.program("fio", FAKE_FIO.replace(
            "if [ -f fio.sleep ]", '[ "$(grep -c . fio.log)" = 5 ] && '
            "echo >fio.sleep\nif [ -f fio.sleep ]"))

    def end(self, number):
        """plugbench ended by a signal in the second round: its exit code and
        what it printed."""
        with self.machine.start(*self.WORDS) as process:
            self.wait_for("fio.pids")
            process.send_signal(number)
            out, errors = finish(process)
        self.check_gone(*self.machine.get("fio.pids").split())
        self.assertEqual({(one["run"], one["policy"])
                          for one in self.machine.records()},
                         {(0, "always"), (0, "never")})
        return process.returncode, out, errors

    def test_interrupted(self):
        """Reported as if no more had been asked for."""
        code, out, errors = self.end(signal.SIGINT)
        self.assertEqual(code, 130, out + errors)
        self.assertIn("interrupted by SIGINT; 1 whole round is in ./plugbench-"
                      "nvme0n1.json", errors)
        self.assertIn("Verdict:", out)
        self.assertIn("interrupted by SIGINT: 1 of 5 rounds",
                      self.machine.get("plugbench-nvme0n1.json"))
        self.check_restored()

    def test_killed(self):
        """The file is written after each round."""
        self.assertEqual(self.end(signal.SIGKILL)[0], -signal.SIGKILL)
        self.assertIn("not finished: 1 of 5 rounds",
                      self.machine.get("plugbench-nvme0n1.json"))

    def test_failure(self):
        """An error of a later round."""
        self.machine.program("fio", FAKE_FIO.replace(
            "if [ -f fio.fail ]", '[ "$(grep -c . fio.log)" = 5 ] && '
            "echo >fio.fail\nif [ -f fio.fail ]"))
        got, _, errors = self.machine.run(*self.WORDS)
        self.assertEqual(got, 1)
        self.assertIn("boom", errors)
        self.assertIn("1 whole round is in ./plugbench-nvme0n1.json", errors)
        self.assertEqual(len(self.machine.records()), 2)


class Killed(Case):
    """SIGKILL, which nobody can catch."""

    def setUp(self):
        super().setUp()
        self.machine.put("fio.sleep", "")

    def kill(self, guard=True):
        """Kill it while fio runs; without its guard if so wished."""
        with self.machine.start("/dev/nvme0n1", *SHORT) as process:
            self.wait_for("fio.pids")
            fio = self.machine.get("fio.pids").split()
            with open("/proc/%d/task/%d/children" % (process.pid,
                                                     process.pid),
                      encoding="ascii") as file:
                guards = set(file.read().split()) - set(fio)
            self.assertEqual(len(guards), 1)
            if not guard:
                os.kill(int(guards.pop()), signal.SIGKILL)
            process.send_signal(signal.SIGKILL)
            out, errors = finish(process)
        os.unlink(self.machine.path("fio.sleep"))
        return fio, out + errors

    def journals(self):
        """Journals that are there."""
        return [name for name in os.listdir(self.machine.path(
            "run/plug-policy")) if name.endswith(".journal")]

    def test_guard(self):
        """It ends fio and puts the settings back at once, and says so."""
        fio, text = self.kill()
        self.check_gone(*fio)
        self.check_restored()
        self.assertEqual(self.journals(), [])
        self.assertIn("was killed; putting back what it left", text)

    def left(self):
        """What is there if the guard dies, too."""
        fio, _ = self.kill(guard=False)
        self.assertNotEqual(state_of(fio[0]), "")
        self.assertEqual(self.machine.get(QUEUE + "scheduler"), "none")
        self.assertEqual(self.journals(), ["nvme0n1.journal"])
        return fio

    def test_restore(self):
        """On request: fio is ended and all is put back."""
        fio = self.left()
        code, out, errors = self.machine.run("--restore")
        self.assertEqual(code, 0, out + errors)
        self.check_gone(*fio)
        self.check_restored()
        self.assertIn("scheduler is mq-deadline again", out)
        self.assertIn("process %s was ended" % fio[0], out)
        self.assertEqual(self.machine.run("--restore")[1],
                         "nothing to put back\n")

    def test_next_start(self):
        """By itself, before anything is measured; all is as at first."""
        fio = self.left()
        text = self.bench("--policies", "nomerges2", "--keep-scheduler")
        self.check_gone(*fio)
        self.assertEqual([self.machine.get(QUEUE + name) for name in (
            "plug_policy", "scheduler", "nomerges", "iostats")],
                         ["seq-small", "mq-deadline", "1", "0"])
        self.assertIn("was killed; putting back", text)
        self.assertIn("scheduler mq-deadline is kept", text)

    def test_bad_input(self):
        """Refused before anything is put back."""
        fio = self.left()
        got, _, errors = self.machine.run("/dev/nvme0n1", "--policies", "x")
        self.assertEqual(got, 2, errors)
        self.assertEqual(self.machine.get(QUEUE + "scheduler"), "none")
        self.machine.run("--restore")
        self.check_gone(*fio)


class Meanwhile(Case):
    """Others, and the terminal, while fio runs."""

    def start(self, **more):
        """plugbench with an fio that does not end."""
        self.machine.put("fio.sleep", "")
        process = self.machine.start("/dev/nvme0n1", *SHORT, **more)
        self.wait_for("fio.pids")
        return process

    def test_second(self):
        """Refused, with who is at work; --restore leaves it alone."""
        with self.start() as process:
            code, _, errors = self.machine.run("/dev/nvme0n1", *SHORT)
            self.assertEqual(self.machine.run("--restore")[1],
                             "nothing to put back\n")
            self.assertEqual(self.machine.get(QUEUE + "scheduler"), "none")
            process.send_signal(signal.SIGINT)
            finish(process)
        self.assertEqual(code, 1)
        self.assertIn("nvme0n1 is being worked on by plugbench (process %d)"
                      % process.pid, errors)
        self.check_restored()

    def test_closed_terminal(self):
        """A hangup, after which nothing can be printed any more."""
        terminal, end = os.openpty()
        with self.start(terminal=end) as process:
            os.close(end)
            os.close(terminal)
            self.assertEqual(process.wait(30), 130)
        self.check_restored()
        self.check_gone(*self.machine.get("fio.pids").split())


if __name__ == "__main__":
    unittest.main()
