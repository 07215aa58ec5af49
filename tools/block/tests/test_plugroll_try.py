# SPDX-License-Identifier: GPL-2.0
"""plugroll try, under a load that depends on the mode."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from unittest import mock

import pytest

from fakehost import KNOB, RULES, TOOLS, Load, finish, offer, wait_until
from plugtools.core import journal
from plugtools.roll import disklist, guard, meter, plugroll, trial

END = meter.Meter.end
GOOD, BAD = {"nvme0n1": {"never": 1.3}}, {"nvme0n1": {"never": .7}}
# plugroll, but for how long it measures the load before
PROGRAM = ("import sys; from plugtools.roll import plugroll, trial; "
           "trial.LEAST_BASELINE = trial.SHORTEST = 0.1; "
           "sys.exit(plugroll.main())")


class Tries:
    """A machine with nvme0n1, and tries of "never" for a minute."""

    def __init__(self, host, roll, monkeypatch):
        self.host, self.roll, self.monkeypatch = host, roll, monkeypatch
        host.disk("nvme0n1")

    def text(self, speeds, *words, disks=("nvme0n1",), legs=()):
        with Load(self.host, speeds, legs):
            return self.roll("try", "never", *disks, "--for", "1m", *words)

    def json(self, speeds, *words, **options):
        """(code, JSON, standard error)"""
        code, out, err = self.text(speeds, "--json", *words, **options)
        return code, json.loads(out or "{}"), err

    def at_end(self, action):
        """Something happens before a block's figures are taken."""
        def end(this):
            action()
            return END(this)
        self.monkeypatch.setattr(meter.Meter, "end", end)

    def mode(self, name="nvme0n1"):
        return self.host.mode(name)


@pytest.fixture
def tries(host, roll, monkeypatch):
    monkeypatch.setattr(trial, "generator", lambda: random.Random(7))
    return Tries(host, roll, monkeypatch)


# --- what is refused changes nothing, and is told what is accepted -----------
GUARD = "--guard.*accepted: limits such as p99=5%"
GAIN = "--require.*accepted: gains such as iops=.0.5%"
NAME = "name disks, or give --all-nvme"


@pytest.mark.parametrize("words, told", [
    *((["try", "never", "nvme0n1", "--guard", text], GUARD) for text in (
        "iops=2%", "p99=-5%", "p99=5%,p99=6%", "cpu=5%", "p99", "iops=-0%",
        "p99=500%", "", "p99=nan%")),
    (["try", "never", "nvme0n1", "--guard", "iops=+1%"],
     "--require takes a gain"),
    *((["try", "never", "nvme0n1", "--require", text], GAIN) for text in (
        "iops=-1%", "p99=5%", "mean=+1%", "iops=1%,iops=2%", "cpu=5%", "",
        "iops=0%", "iops=nan%")),
    *((["try", "never", "nvme0n1", "--for=" + text], "accepted: 12s to 24h")
      for text in ("0", "3d", "-5m", "25h", "ten", "1e3")),
    *((f"try never nvme0n1 {option} {one} {option} {one}".split(),
       f"given twice; accepted: once, as {option}=")
      for option, one in (("--guard", "iops=-2%"), ("--require", "iops=2%"))),
    *((words.split(), told) for words, told in (
        ("try never nvme0n1 --block inf", "accepted: 0.5 to 600"),
        ("try fast nvme0n1", "invalid choice: 'fast'"),
        ("try never", NAME), ("keep never nvme0n1 --all-nvme", NAME),
        ("try never nvme7n1", "nvme7n1: no such disk; accepted"),
        # a try is not longer than it was to be
        ("try never nvme0n1 --for 12s --block 600", "has no room for 3 pairs "
         "of blocks of .*; accepted: --for 3600s or more, or --block 2 or "
         "less"),
        ("try never nvme0n1 --for 59s --block 10", "accepted: --for 60s or "
         "more, or --block 9 or less"),
        # a kernel may have fewer modes
        ("try adaptive nvme0n1", "no mode 'adaptive'; accepted: always, never"),
        ("keep adaptive nvme0n1", "no mode 'adaptive'; accepted: always, never"),
        # all disks below must have it
        ("try never dm-0", "sda has no plug_policy"),
        # nothing can be judged without iostats
        ("try never nvme1n1", "nvme1n1 does not count its I/O: echo 1 >"), ))])
def test_refused(host, roll, words, told):
    host.disk("nvme0n1", files={"queue/plug_policy": "[always] never"})
    host.disk("nvme1n1", files={"queue/iostats": "0"})
    host.disk("sda", None)
    host.bio_disk("dm-0", ["nvme0n1", "sda"])
    code, out, said = roll(*words)
    assert code == (1 if "iostats" in said else 2)
    assert re.search(told, said.replace("\n", " "))
    assert host.mode("nvme0n1") == "always"
    assert (out, host.get(RULES, ""), os.listdir(host.path("run"))) == (
        "", "", [])


def test_p99_without_tracing(tries):
    """Asked for by name, it is not replaced by something else."""
    tries.text({"nvme0n1": {}}, "--guard", "p99=5%").fails(
        1, "p99 cannot be measured: no tracefs")
    assert tries.mode() == "always"


@pytest.mark.parametrize("mode", ["always", "never"])
def test_not_in_force(host, tries, mode):
    """A mode without effect is not tried, nor is it kept, also if it is set.
    """
    host.policy("nvme0n1", mode, "elevator")
    done = tries.text(GOOD, "--keep", "--json")
    done.fails(1, "never cannot be tried on nvme0n1, where always is in force: "
               "it has an I/O scheduler")
    assert (done.out, tries.mode()) == ("", mode)
    assert not host.journals() and not host.get(RULES, "")


def test_locked(host, tries):
    """Two tries of one disk: the second is told who is at work, also if it
    would find its mode set."""
    for mode in "always", "never":
        host.policy("nvme0n1", mode)
        with trial.locked(["nvme0n1"], "plugbench"):
            tries.text({"nvme0n1": {}}).fails(
                1, "nvme0n1 is being worked on by plugbench")


# --- verdicts ----------------------------------------------------------------
def test_trips(host, tries, logged):
    """A mode that does harm: within its time, with the reason; it is not
    kept."""
    host.policy("nvme0n1", "seq-small")
    out = tries.text({"nvme0n1": {"never": .8}}, "--guard", "iops=-5%",
                     "--keep").prints(code=3)
    assert re.search(r"guard tripped: nvme0n1: iops by -\d+\.\d% .*"
                     "limit is -5%; the mode before is back", out)
    assert tries.mode() == "seq-small"
    assert "never on nvme0n1: the guard tripped" in logged[-1]
    assert not host.journals() and not os.listdir(host.path("etc"))


@pytest.mark.parametrize("speed, require, want", [
    (1.3, "iops=+0.5%", 0), (1.0, "iops=+0.5%", 5), (1.3, "iops=35%", 5),
    (1.3, "mean=-1%", 0), (1.0, "mean=-1%", 5), (1.3, "iops=1%,mean=-50%", 5),
    (.7, "iops=+0.5%", 3)])
def test_required_gain(tries, speed, require, want):
    """Kept only if the gain is sure; a mode that does nothing is not, nor one
    that gains less, and neither is a failure."""
    code, found, said = tries.json({"nvme0n1": {"never": speed}}, "--require",
                                   require, "--keep")
    assert (code, tries.mode(), found["kept"]) == (
        want, "always" if want else "never", not want), said
    if want == 5:
        assert found["status"] == "no gain"
        assert "% is required" in found["why"]


def test_holds(host, tries, roll):
    """A mode that does good is not kept unless asked for; a host that merges
    nothing is told what a try is worth."""
    host.put("sys/block/nvme0n1/queue/nomerges", "2")
    tries.text(GOOD).prints("nvme0n1: the host keeps nomerges=2",
                            "guarding mean=+10%,iops=-2%: no tracefs")
    code, found, said = tries.json(GOOD)
    assert (code, found["status"], tries.mode()) == (0, "held", "always"), said
    assert (found["kept"], found["nomerges"]) == (False, ["nvme0n1"])
    assert found["disks"]["nvme0n1"]["figures"]["iops"]["low"] > .2
    assert not host.get(RULES, "")
    assert "nomerges=2" in roll("keep", "never", "nvme0n1").out


def test_idle(tries, monkeypatch):
    """Too little I/O: nothing is even set."""
    touched = mock.Mock()
    monkeypatch.setattr(trial.Modes, "set", touched)
    tries.text({"nvme0n1": {"always": 0.001}}).prints(
        "not enough I/O to tell", code=4)
    assert not touched.called


def test_goes_idle(host, tries, roll):
    """A load that ends during the try says nothing of the mode."""
    with Load(host, {"nvme0n1": {}}) as load:
        load.last = 8
        roll("try", "never", "nvme0n1", "--for", "1m").prints(
            "nvme0n1: not enough I/O to tell", code=4)
    assert tries.mode() == "always"


@pytest.mark.parametrize("limit", ["iops=-50%", "mean=5%"])
def test_stops_the_disk(tries, limit):
    """A mode with which nothing is done any more is the worst, whatever is
    guarded."""
    code, found, _ = tries.json({"nvme0n1": {"never": 0}}, "--guard", limit)
    assert (code, tries.mode()) == (3, "always")
    assert found["disks"]["nvme0n1"]["pairs"] == 2
    assert "nvme0n1: collapse: in 2 of 2" in found["why"]


def test_periodic(host, tries, roll):
    """A load that recurs every four blocks is no harm done by a mode."""
    class Periodic(Load):
        def speed(self, name):
            since = self.now - trial.LEAST_BASELINE
            return .5 if int(since / 2) % 4 in (1, 2) else 1

    with Periodic(host, {"nvme0n1": {}}):
        roll("try", "never", "nvme0n1", "--for", "1m", "--guard",
             "iops=-5%").prints(code=4)
    assert tries.mode() == "always"


def test_log(host):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taker:
        taker.settimeout(5)
        taker.bind(str(host.path("dev/log")))
        trial.log("never on nvme0n1: the guard held")
        assert re.match(rb"<29>plugroll\[\d+\]: never on nvme0n1: the",
                        taker.recv(500))


# --- several disks -----------------------------------------------------------
def test_keep_without_idle(host, tries):
    """An idle disk is left alone while another is tried, also by --keep, and
    by a second run."""
    host.disk("nvme1n1")
    for status, changed in ("held", True), ("already set", False):
        code, found, said = tries.json(GOOD, "--keep", disks=["--all-nvme"])
        assert (code, found["status"], found["changed"], found["idle"]) == (
            0, status, changed, ["nvme1n1"]), said
        assert list(found["disks"]) == ["nvme0n1"] * changed
        assert (tries.mode(), tries.mode("nvme1n1")) == ("never", "always")
    assert "eui.nvme0n1" in host.get(RULES)
    assert "nvme1n1" not in host.get(RULES)


def test_head(host, tries):
    """Measured on the head, set on each path, put back on each."""
    host.remove("sys/block/nvme0n1")
    host.head(second="adaptive")
    paths, seen = ("nvme0c0n1", "nvme0c1n1"), set()
    tries.at_end(lambda: seen.add(tuple(map(tries.mode, paths))))
    tries.text({"nvme0n1": {"never": .5}}, "--guard", "iops=-5%",
               legs=paths).prints(code=3)
    assert ("never", "never") in seen
    assert tuple(map(tries.mode, paths)) == ("always", "adaptive")


def test_per_disk(host, tries, monkeypatch):
    """One disk's trip is not the other's; chance is that of both."""
    host.disk("nvme1n1")
    asked = mock.Mock(side_effect=guard.tripped)
    monkeypatch.setattr(trial, "tripped", asked)
    code, found, _ = tries.json({**BAD, "nvme1n1": {}}, "--guard", "iops=-5%",
                                disks=["--all-nvme"])
    assert (code, tries.mode("nvme1n1")) == (3, "always")
    assert "the guard tripped: nvme0n1: iops by" in found["why"]
    assert {name: one["never"]["status"]
            for name, one in disklist.tries().items()} == {
                "eui.nvme0n1": "tripped", "eui.nvme1n1": "unknown"}
    assert asked.call_args.args[2] == 2


def test_one_of_two_goes(host, tries, monkeypatch):
    """The try goes on without it, and what is kept is the other one's."""
    host.disk("nvme1n1")
    started, measure = [], trial.Try.measure

    def leave(attempt, seconds):
        started.append(seconds)
        if len(started) == 6:
            host.remove("sys/block/nvme1n1")
            del load["nvme1n1"]
        return measure(attempt, seconds)

    monkeypatch.setattr(trial.Try, "measure", leave)
    load = {**GOOD, "nvme1n1": {"never": 1.3}}
    code, found, said = tries.json(load, "--keep",
                                   disks=["nvme0n1", "nvme1n1"])
    assert code == 0, said
    assert "nvme1n1 has gone: the try goes on without it" in said
    assert (list(found["disks"]), found["gone"], found["status"],
            tries.mode()) == (["nvme0n1"], ["nvme1n1"], "held", "never")
    assert "is back" not in found["why"]
    assert not host.journals()


# --- somebody, or something, else --------------------------------------------
@pytest.mark.parametrize("when, file, code, told, mode", [
    # a mode set by hand ends the try, and stays
    (lambda number, mode: mode == "never", (KNOB, offer("seq-small")), 1,
     ["somebody else has set"], "seq-small"),
    # also in the end: what is said is what is set
    (lambda number, mode: number == 1 + 2 * 3, (KNOB, offer("seq-small")), 3,
     ["is left at seq-small, which somebody else has set",
      "; nvme0n1 is seq-small"], "seq-small"),
    # a disk that goes and comes back is another one: its mode is its own, and
    # nobody says that the mode before is back
    (lambda number, mode: number > 4 and mode == "always",
     ("sys/block/nvme0n1/diskseq", "8"), 1,
     ["nvme0n1 has gone, and another disk has its name",
      "has gone, and its disk with it"], "always"),
    # also in the last block of the pair that decides
    (lambda number, mode: number == 1 + 2 * 3,
     ("sys/block/nvme0n1/diskseq", "8"), 1,
     ["nvme0n1 has gone, and another disk has its name"], "never")],
                         ids=range(4))
def test_meanwhile(host, tries, when, file, code, told, mode):
    calls = []

    def change():
        calls.append(1)
        if when(len(calls), tries.mode()):
            host.put(*file)

    tries.at_end(change)
    said = tries.text({"nvme0n1": {"never": .5}}).text(code)
    assert [text for text in told if text not in said] == []
    assert "is back" not in said
    assert tries.mode() == mode


# --- --keep ------------------------------------------------------------------
def test_already(host, tries, logged, monkeypatch):
    """There is nothing to try, at once; kept if asked for, and the second time
    that changes nothing."""
    host.policy("nvme0n1", "never")
    waited = mock.Mock()
    monkeypatch.setattr(meter.Meter, "wait", waited)
    code, found, _ = tries.json({"nvme0n1": {}})
    assert (code, found["status"], found["kept"]) == (0, "already set", False)
    assert "never is already set on nvme0n1" in found["why"]
    assert "already set" in logged[-1]
    for changed in True, False:
        code, found, _ = tries.json({"nvme0n1": {}}, "--keep")
        assert (code, found["kept"], found["changed"]) == (0, True, changed)
    assert not waited.called
    assert "eui.nvme0n1" in host.get(RULES)


@pytest.mark.parametrize("files, code, told", [
    ({"sys/block/nvme0n1/wwid": ""}, 2, "neither wwid nor serial"),
    ({RULES: "# mine"}, 1, "is not plugroll's"),
    ({}, 1, "cannot be written"),
    ({"run/plug-policy/nvme0n1.journal": "{"}, 1, "could not be put back")])
def test_cannot_be_kept(host, tries, monkeypatch, files, code, told):
    """What is known before the try is said before it."""
    for item in files.items():
        host.put(*item)
    if not files:
        monkeypatch.setattr(os, "access", lambda *_: False)
    tried = mock.Mock()
    monkeypatch.setattr(plugroll, "try_mode", tried)
    tries.text({"nvme0n1": {}}, "--keep").fails(code, told)
    assert not tried.called


def test_was_not_kept(tries, monkeypatch):
    """Whatever comes after a try, its result is told."""
    monkeypatch.setattr(plugroll, "keep", mock.Mock(
        side_effect=OSError(30, "Read-only file system", "/etc/x")))
    code, found, said = tries.json(GOOD, "--keep")
    assert (code, found["status"], found["kept"]) == (1, "held", False)
    assert "/etc/x: Read-only file system" in said


def test_keep_of_another_disk(host, tries, monkeypatch):
    """One that took a disk's name meanwhile is kept by its own WWID; one
    without any that is idle does not matter."""
    host.disk("nvme1n1", files={"wwid": ""})
    host.policy("nvme0n1", "never")
    try_mode = plugroll.try_mode

    def swap(*args):
        host.put("sys/block/nvme0n1/wwid", "eui.new")
        return try_mode(*args)

    monkeypatch.setattr(plugroll, "try_mode", swap)
    code, found, said = tries.json({"nvme0n1": {}}, "--keep",
                                   disks=["--all-nvme"])
    assert (code, found.get("kept")) == (0, True), said
    assert "eui.new" in host.get(RULES)
    assert "eui.nvme0n1" not in host.get(RULES)


# --- a try that does not end by itself ---------------------------------------
@pytest.mark.parametrize("number", [
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_signals(host, number):
    """Ctrl-C, SIGTERM, a closed terminal; after SIGKILL of the whole group,
    another process puts the mode back."""
    host.disk("nvme0n1", "seq-small")
    load = Load(host, {"nvme0n1": {}})
    with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "try", "never", "nvme0n1",
             "--guard", "iops=-50%", "--for", "60s", "--block", "0.5"],
            cwd=TOOLS, start_new_session=True, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: load.sleep(0.02) or
                       host.mode("nvme0n1") == "never", "the try")
        finally:
            killing = number == signal.SIGKILL
            (os.killpg if killing else os.kill)(process.pid, number)
        done = finish(process)
    wait_until(lambda: host.mode("nvme0n1") == "seq-small", "the mode before")
    wait_until(lambda: os.listdir(host.path("run/plug-policy")) == [
        "nvme0n1.lock"], "the end of the journal")
    assert done.code == (-signal.SIGKILL if killing else 130)
    assert killing or f"interrupted by {number.name}" in done.err


def test_next_start(host, tries, roll):
    """Where that was killed as well, the next start does it."""
    host.killed("nvme0n1", "never")
    with Load(host, {"nvme0n1": {"always": 0}}):
        roll("try", "seq-small", "nvme0n1").fails(4, "is always again")
    assert tries.mode() == "always"


@pytest.fixture
def slept(host, monkeypatch):
    """A disk that cannot be put back for some seconds; the naps since."""
    nap, clock = mock.Mock(), mock.Mock(wraps=trial.time)
    clock.sleep = nap

    def refuse(path, value):
        if value == "always" and nap.call_count < 4:
            raise OSError(16, "Device or resource busy", path)
        host.kernel_write(path, value)

    monkeypatch.setattr(journal, "write", refuse)
    monkeypatch.setattr(trial, "time", clock)
    return nap


def test_killed(host, tries, monkeypatch, slept):
    """It is asked again; the instance of the killed one goes."""
    left, removed = host.killed("nvme0n1", "never"), mock.Mock()
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup2", mock.Mock())
        patch.setattr(trial, "remove_instance", removed)
        trial.killed(left.path, 77)
    assert (tries.mode(), host.journals(), slept.call_count) == (
        "always", [], 4)
    removed.assert_called_once_with(77)


@pytest.mark.parametrize("seconds, mode, told", [
    (10, "always", "plug_policy is always again"),
    (3, "never", "is not put back (Device or resource busy); it was: always")])
def test_busy_disk(host, tries, monkeypatch, slept, seconds, mode, told):
    """So it is at the end of a try, but not for ever."""
    monkeypatch.setattr(trial, "AGAIN_SECONDS", seconds)
    tries.text({"nvme0n1": {}}).fails(1, told)
    assert (tries.mode(), bool(host.journals())) == (mode, mode == "never")


def test_nohup(host, monkeypatch):
    """What the shell has us ignore is ignored."""
    host.disk("nvme0n1")
    handled = mock.Mock()
    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN
                      if number == signal.SIGHUP else signal.SIG_DFL)
        patch.setattr(signal, "signal", handled)
        plugroll.main(["list"])
    assert {call.args[0] for call in handled.call_args_list} == {
        signal.SIGINT, signal.SIGTERM, signal.SIGQUIT}
