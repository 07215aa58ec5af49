# SPDX-License-Identifier: GPL-2.0
"""plugbench: however it ends, settings are as before and nothing runs."""
import json
import os
import pathlib
import signal

import pytest

from benchtree import FAKE_FIO, FIO_JSON, QUEUE, SHORT
from fakehost import stopped, wait_until
from plugtools.bench import measure
from plugtools.core.system import start_time

RESULT = "plugbench-nvme0n1.json"


def start(machine, *words, **options):
    """plugbench with an fio that does not end."""
    machine.put("fio.sleep")
    return machine.begin("/dev/nvme0n1", *SHORT, *words, until="fio.pids",
                         **options)


def test_success(machine):
    """During the runs they are what the measurement needs; each policy warms
    up with the same load."""
    machine.bench("--runtime", "3")
    machine.check_restored()
    assert [[one[name] for name in ("policy", "nomerges", "iostats",
                                    "scheduler", "--runtime")]
            for one in machine.log()] == [
        [policy, merges, "1", "none", seconds] for policy, merges in (
            ("always", "0"), ("never", "0"), ("seq-small", "0"),
            ("adaptive", "0"), ("always", "2")) for seconds in "13"]
    assert len(machine.records()) == 5


@pytest.mark.parametrize("path, text, says", [
    ("fio.fail", "", "fio failed with exit code 1 on rand4k-s32: fio: boom"),
    ("fio.json", "{ nonsense", "fio failed"),
    ("fio.json", json.dumps({"jobs": [dict(FIO_JSON["jobs"][0], error=5)]}),
     "fio failed")])
def test_fio_fails(machine, path, text, says):
    machine.put(path, text)
    assert says in machine.bench(code=1)
    machine.check_restored()


@pytest.mark.parametrize("numbers", [
    [signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP],
    [signal.SIGINT, signal.SIGINT, signal.SIGTERM]])
def test_signals(machine, numbers):
    """One, after which fio can end in order; and more, with one that does not
    listen to SIGTERM."""
    if len(numbers) > 1:
        machine.put("fio.deaf")
    with start(machine) as process:
        assert "Traceback" not in stopped(process, *numbers).fails(
            130, f"interrupted by {numbers[0].name}")
    machine.check_ended()
    assert machine.path("fio.told").exists() == (len(numbers) == 1)
    assert not machine.path(RESULT).exists()


def test_before_the_runs(machine):
    machine.program("bwrap", "#!/bin/sh\necho x >$PLUGTOOLS_ROOT/started\n"
                    "sleep 1\n")
    machine.put("x.fio", "[a]")
    before = machine.snapshot()
    with machine.begin("/dev/nvme0n1", "--jobfile", "x.fio",
                       until="started") as process:
        stopped(process, signal.SIGTERM).text(130)
    machine.remove("started")
    assert machine.snapshot() == before


# --- rounds: what is whole is kept -----------------------------------------
ROUNDS = ["--policies", "always,never", "--repeat", "5"]


def second_round(machine, flag):
    """Its first run is as the flag says."""
    machine.program("fio", FAKE_FIO.replace(
        f"if [ -f {flag} ]", '[ "$(grep -c . fio.log)" = 5 ] && '
        f"echo >{flag}\nif [ -f {flag} ]"))


def check_kept(machine):
    assert {(one["run"], one["policy"]) for one in machine.records()} == {
        (0, "always"), (0, "never")}


@pytest.mark.parametrize("number, code, says", [
    (signal.SIGINT, 130, "interrupted by SIGINT: 1 of 5 rounds"),
    (signal.SIGKILL, -9, "not finished: 1 of 5 rounds")])
def test_ended_in_the_second_round(machine, number, code, says):
    """Reported as if no more had been asked for; if it is killed, there is
    the file."""
    second_round(machine, "fio.sleep")
    with machine.begin("/dev/nvme0n1", *SHORT, *ROUNDS,
                       until="fio.pids") as process:
        done = stopped(process, number)
    done.text(code)
    machine.check_gone(*machine.get("fio.pids").split())
    check_kept(machine)
    assert says in machine.get(RESULT)
    if code == 130:
        done.fails(130, "interrupted by SIGINT; 1 whole round is in "
                   f"./{RESULT}")
        assert "Verdict:" in done.out
        machine.check_restored()


def test_signal_after_the_last_run(machine, monkeypatch):
    """Nothing is lost by it, but it is heeded."""
    put_back = measure.put_back
    monkeypatch.setattr(measure, "put_back", lambda journal: (
        signal.raise_signal(signal.SIGTERM), put_back(journal))[1])
    assert "interrupted by SIGTERM" in machine.bench(code=130)
    assert machine.records()
    machine.check_restored()


def test_failure_in_the_second_round(machine):
    second_round(machine, "fio.fail")
    text = machine.bench(*ROUNDS, code=1)
    assert "boom" in text and f"1 whole round is in ./{RESULT}" in text
    check_kept(machine)


def test_nothing_is_said_to_be_kept_that_is_not(machine):
    """The directory of the result goes while fio runs."""
    machine.put("out/here", "")
    machine.program("fio", FAKE_FIO.replace("cat fio.json",
                                            "rm -rf out; cat fio.json"))
    text = machine.bench(*ROUNDS, "--json", "out/r.json", code=1)
    assert "No such file" in text and "whole round" not in text
    machine.check_restored()


# --- SIGKILL, which nobody can catch ---------------------------------------
def kill(machine, guard=True):
    """It while fio runs, and its guard, if that is so wished: fio's processes
    and what was printed."""
    with start(machine) as process:
        fio = machine.get("fio.pids").split()
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/"
                                "children").read_text("ascii")
        other, = set(children.split()) - set(fio)
        if not guard:
            os.kill(int(other), signal.SIGKILL)
        text = stopped(process, signal.SIGKILL).text(-9)
    machine.remove("fio.sleep")
    return fio, text


def test_guard(machine):
    fio, text = kill(machine)
    machine.check_gone(*fio)
    wait_until(lambda: not machine.journals())
    machine.check_restored()
    assert "was killed; putting back what it left" in text


@pytest.fixture
def left(machine):
    """What is there if the guard dies, too: fio's processes."""
    fio, _ = kill(machine, guard=False)
    assert start_time(fio[0])
    assert machine.get(QUEUE + "scheduler") == "none"
    assert machine.journals() == ["nvme0n1.journal"]
    return fio


def test_restore(machine, left):
    """When it is asked for, not by what is refused."""
    machine.run("/dev/nvme0n1", "--policies", "x").fails(2)
    assert machine.get(QUEUE + "scheduler") == "none"
    machine.run("--restore").prints("scheduler is mq-deadline again",
                                    f"process {left[0]} was ended")
    machine.check_gone(*left)
    machine.check_restored()
    assert machine.run("--restore").out == "nothing to put back\n"


def test_next_start(machine, left):
    """By itself, before anything is measured; all is as at first."""
    text = machine.bench("--policies", "nomerges2", "--keep-scheduler")
    machine.check_gone(*left)
    assert [machine.get(QUEUE + name) for name in (
        "plug_policy", "scheduler", "nomerges", "iostats")] == [
            "seq-small", "mq-deadline", "1", "0"]
    assert "was killed; putting back" in text
    assert "scheduler mq-deadline is kept" in text


# --- others, and the terminal ----------------------------------------------
def test_second(machine):
    """Refused, with who is at work; --restore leaves it alone."""
    with start(machine) as process:
        machine.run("/dev/nvme0n1", *SHORT).fails(
            1, "nvme0n1 is being worked on by plugbench (process "
            f"{process.pid})")
        assert machine.run("--restore").out == "nothing to put back\n"
        assert machine.get(QUEUE + "scheduler") == "none"
        stopped(process, signal.SIGINT)
    machine.check_restored()


def test_closed_terminal(machine):
    terminal, end = os.openpty()
    with start(machine, terminal=end) as process:
        os.close(end)
        os.close(terminal)
        assert process.wait(60) == 130
    machine.check_ended()
