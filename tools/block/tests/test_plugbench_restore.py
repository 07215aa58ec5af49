# SPDX-License-Identifier: GPL-2.0
"""plugbench: however it ends, settings are as before and nothing runs."""
import json
import os
import pathlib
import signal
import time

import pytest

from benchtree import FAKE_FIO, FIO_JSON, QUEUE, SHORT
from fakehost import finish, state_of, wait_until

RESULT = "plugbench-nvme0n1.json"


def start(machine, *words, **options):
    """plugbench with an fio that does not end."""
    machine.put("fio.sleep")
    process = machine.begin("/dev/nvme0n1", *SHORT, *words, **options)
    machine.wait_for("fio.pids")
    return process


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
    """One; and more, with an fio that does not listen to SIGTERM."""
    if len(numbers) > 1:
        machine.put("fio.deaf")
    with start(machine) as process:
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.1)
        code, out, err = finish(process)
    assert code == 130, out + err
    assert f"interrupted by {numbers[0].name}" in err
    assert "Traceback" not in err
    machine.check_ended()
    assert not machine.path(RESULT).exists()


def test_before_the_runs(machine):
    machine.program("bwrap", "#!/bin/sh\necho x >$PLUGTOOLS_ROOT/started\n"
                    "sleep 1\n")
    machine.put("x.fio", "[a]")
    before = machine.snapshot()
    with machine.begin("/dev/nvme0n1", "--jobfile", "x.fio") as process:
        machine.wait_for("started")
        process.send_signal(signal.SIGTERM)
        code, out, err = finish(process)
    assert code == 130, out + err
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
    with machine.begin("/dev/nvme0n1", *SHORT, *ROUNDS) as process:
        machine.wait_for("fio.pids")
        process.send_signal(number)
        got, out, err = finish(process)
    assert got == code, out + err
    machine.check_gone(*machine.get("fio.pids").split())
    check_kept(machine)
    assert says in machine.get(RESULT)
    if code == 130:
        assert f"interrupted by SIGINT; 1 whole round is in ./{RESULT}" in err
        assert "Verdict:" in out
        machine.check_restored()


def test_failure_in_the_second_round(machine):
    second_round(machine, "fio.fail")
    text = machine.bench(*ROUNDS, code=1)
    assert "boom" in text and f"1 whole round is in ./{RESULT}" in text
    check_kept(machine)


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
        process.kill()
        _, out, err = finish(process)
    machine.remove("fio.sleep")
    return fio, out + err


def journals(machine):
    return [path.name for path in
            machine.path("run/plug-policy").glob("*.journal")]


def test_guard(machine):
    fio, text = kill(machine)
    machine.check_gone(*fio)
    wait_until(lambda: not journals(machine))
    machine.check_restored()
    assert "was killed; putting back what it left" in text


@pytest.fixture
def left(machine):
    """What is there if the guard dies, too: fio's processes."""
    fio, _ = kill(machine, guard=False)
    assert state_of(fio[0])
    assert machine.get(QUEUE + "scheduler") == "none"
    assert journals(machine) == ["nvme0n1.journal"]
    return fio


def test_restore(machine, left):
    code, out, err = machine.run("--restore")
    assert code == 0, out + err
    machine.check_gone(*left)
    machine.check_restored()
    assert "scheduler is mq-deadline again" in out
    assert f"process {left[0]} was ended" in out
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


def test_bad_input(machine, left):
    assert machine.run("/dev/nvme0n1", "--policies", "x").code == 2
    assert machine.get(QUEUE + "scheduler") == "none"
    machine.run("--restore")
    machine.check_gone(*left)


# --- others, and the terminal ----------------------------------------------

def test_second(machine):
    """Refused, with who is at work; --restore leaves it alone."""
    with start(machine) as process:
        code, _, err = machine.run("/dev/nvme0n1", *SHORT)
        assert machine.run("--restore").out == "nothing to put back\n"
        assert machine.get(QUEUE + "scheduler") == "none"
        process.send_signal(signal.SIGINT)
        finish(process)
    assert code == 1
    assert "nvme0n1 is being worked on by plugbench (process " \
        f"{process.pid})" in err
    machine.check_restored()


def test_closed_terminal(machine):
    terminal, end = os.openpty()
    with start(machine, terminal=end) as process:
        os.close(end)
        os.close(terminal)
        assert process.wait(60) == 130
    machine.check_ended()
