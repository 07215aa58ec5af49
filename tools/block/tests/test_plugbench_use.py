# SPDX-License-Identifier: GPL-2.0
"""plugbench on disks in use and on stacks, with limits, and with --write."""
import contextlib
import re
import shutil
import sys
from unittest import mock

import pytest

from benchtree import FAKE_FIO, QUEUE, SHORT
from plugtools.bench import measure, plan
from plugtools.core import system

MOUNTED = "36 35 259:1 / /mnt rw - ext4 /dev/x rw"
WRITES = ["/dev/nvme0n1", "--write", "--yes", "--workloads", "mix70-s32"]


def test_in_use(machine):
    """Of what use is, test_disks has more."""
    machine.put("proc/self/mountinfo", MOUNTED)
    machine.check_untouched("/dev/nvme0n1", *SHORT, code=1,
                            says="--force measures nevertheless")
    for more in [], ["--force"]:
        machine.check_untouched(*WRITES, *more, code=1, says="nothing was "
                                "written: nvme0n1p1 is mounted on /mnt")


def test_force(machine):
    machine.put("proc/self/mountinfo", MOUNTED)
    text = machine.bench("--force", "--policies", "never")
    assert "warn:  nvme0n1p1 is mounted on /mnt: it feels" in text
    assert "nvme0n1p1 is mounted" in machine.get("plugbench-nvme0n1.json")
    assert "OVERWRITES" not in text
    assert "--readonly" in machine.log()[0]
    machine.check_restored()


BOTH = ["/dev/nvme0n1", *SHORT, "--policies", "never", "/dev/nvme1n1",
        "/dev/nvme0n1", "--budget", "30s"]
SECOND = {"queue/nomerges": "0", "queue/iostats": "1", "dev": "259:9"}


def test_several_disks(machine):
    """One after the other, each to its own file, and nothing of any if one is
    in use."""
    machine.disk("nvme1n1", files=SECOND)
    machine.put("proc/self/mountinfo", MOUNTED.replace("259:1", "259:9"))
    machine.check_untouched(*BOTH, code=1, says="nvme1n1: nvme1n1 is mounted")
    machine.put("proc/self/mountinfo")
    text = machine.run(*BOTH).text()
    for name in "nvme0n1", "nvme1n1":
        assert f"plan: {machine.path(f'dev/{name}')} " in text
        assert text.count(f"wrote ./plugbench-{name}.json") == 1
    assert "at most 15 s, then it ends" in text


def test_one_disk_fails(machine):
    """The next one has its turn."""
    machine.disk("nvme1n1", files=SECOND)
    machine.put("fio.fail")
    done = machine.run(*BOTH)
    assert done.code == 1
    for name in "nvme0n1", "nvme1n1":
        assert f"plugbench: {name}: fio failed" in done.err

@pytest.mark.parametrize("budget, repeat, fits", [
    (None, 5, (5, 5)), (9999, 5, (5, 5)), (300, 5, (3, 5)), (250, 5, (3, 3)),
    (120, 5, (2, 1)), (250, 1, (1, 5))])
def test_budget(budget, repeat, fits):
    """Shorter runs first, down to three rounds; then fewer rounds."""
    args = mock.Mock(budget=budget, repeat=repeat, runtime=5)
    assert plan.fit(args, 10, True) == fits


def test_budget_in_plan(machine):
    before = machine.snapshot()
    text = machine.bench("--dry-run", "--budget", "1m", "--repeat", "9",
                         "--runtime", "3", "--policies", "always,never")
    assert "at most 60 s, then it ends" in text
    assert re.search(r"for that, \d of 9 rounds, and runs of \d s", text)
    assert re.search(r"\d s each after 1 s to warm up:\n  \d+ runs, some", text)
    assert "scheduler mq-deadline makes every policy" in text
    assert machine.snapshot() == before
    machine.check_untouched("/dev/nvme0n1", "--budget", "5s",
                            says="--budget: one round takes")
    machine.remove("bin/fio")
    machine.check_untouched("/dev/nvme0n1", code=1, says="apt install fio")


@pytest.mark.parametrize("version, says", [
    ("2.99", "fio is 2.99; accepted: 3.16 or later"), ("3.15", "fio is 3.15"),
    ("3.16-dirty", ""), ("4.0", ""), ("g123", "")])
def test_least_fio(machine, monkeypatch, version, says):
    monkeypatch.setenv("FAKE_FIO", version)
    if says:
        machine.check_untouched("/dev/nvme0n1", code=1, says=says)
    else:
        machine.bench("--dry-run")


@pytest.mark.parametrize("release, tells", [
    ("5.15.0-1", True), ("5.16.1", False), ("6.1.0-57-amd64", False),
    ("6.11.9", False), ("6.12.1", True), ("7.3.4+", True), ("odd", True)])
def test_kernels_that_tell_of_unplugs(release, tells):
    assert measure.tells_unplugs(release) == tells


def test_ratios():
    """A counter that went back is no figure."""
    assert [system.per(*pair) for pair in ((3, 4), (-3, 4), (None, 4), (3, 0))
            ] == [0.75, None, None, None]


@pytest.mark.parametrize("budget, rounds", [(100, 2), (999, 5), (30, 0)])
def test_budget_is_kept(monkeypatch, budget, rounds):
    """On a disk that is slower than planned, by whole rounds."""
    def slowly(_policy, _name, number, _merges):
        clock.monotonic.return_value += 20
        return {"run": number, "iops": 1}
    clock, saved = mock.Mock(**{"monotonic.return_value": 70}), []
    monkeypatch.setattr(measure, "time", clock)
    one = measure.Bench(mock.Mock(
        budget=budget, repeat=5, runtime=1, legs=[], workloads=["w"],
        policies=["a", "b"], merges=[plan.Merges("0", {})]),
                        None, mock.Mock(directory="/x"))
    one.measure = slowly
    with contextlib.nullcontext() if rounds else pytest.raises(
            system.EnvironmentProblem, match="budget of 30 s is over before"):
        found = one.run(lambda *of: saved.append(of[2]))
        assert [record["run"] for record in found] == sorted([*range(rounds)] * 2)
        assert saved == list(range(1, min(rounds, 4) + 1))
        assert one.warnings == ["the budget of 2 min is over: 2 of 5 rounds"
                                ] * (rounds == 2)


def test_no_writes(machine, monkeypatch):
    monkeypatch.setattr(sys, "stdin", mock.Mock(isatty=lambda: False))
    machine.check_untouched(*(word for word in WRITES if word != "--yes"),
                            says="needs --yes")
    machine.put("sys/block/nvme0n1/ro", "1")
    machine.check_untouched(*WRITES, code=1, says="read-only")


def test_writes(machine):
    """When all is given; what only reads cannot write even then."""
    text = machine.bench("--write", "--yes", "--policies", "always",
                         "--workloads", "rand4k-s32,mix70-s32")
    assert "OVERWRITES" in text
    assert {(one["--rw"], "--readonly" in one, one.get("--rwmixread"))
            for one in machine.log()} == {("randread", True, None),
                                          ("randrw", False, "70")}


# --- heads of NVMe multipath, dm and md --------------------------------------
LEGS = ("nvme0c0n1", "nvme0c1n1")
# logs what is set on the second leg
ON_LEG = FAKE_FIO.replace("q=sys/block/nvme0n1", "q=sys/block/nvme0c1n1")


@pytest.fixture
def stack(machine):
    """Settings are those of the legs; fio runs on top."""
    block = machine.path("sys/block")
    for name in LEGS:
        shutil.copytree(block / "nvme0n1", block / name, symlinks=True)
        machine.remove(f"sys/block/{name}/nvme0n1p1")
    for name in "mq", "queue":
        machine.remove("sys/block/nvme0n1/" + name)
    machine.put(QUEUE + "io_poll", "1")
    machine.program("fio", ON_LEG)
    return machine


def test_head(stack):
    text = stack.bench()
    assert [(one["policy"], one["scheduler"]) for one in stack.log()[::2]] == [
        ("always", "none"), ("never", "none"), ("seq-small", "none"),
        ("adaptive", "none"), ("always", "none")]
    for one in stack.log():
        assert one["--filename"] == str(stack.path("dev/nvme0n1"))
        assert "--hipri" not in one
    assert "settings:  of nvme0c0n1, nvme0c1n1" in text
    assert "nvme0c1n1: scheduler mq-deadline makes" in text
    stack.check_restored(*LEGS)


def test_all_legs(stack):
    """The first one is set as well, and its requests count: here 500 of one,
    500 of the other."""
    stat = "sys/block/nvme0c1n1/stat"
    stack.program("fio", FAKE_FIO.replace("nvme0n1", "nvme0c0n1").replace(
        "cat fio.json", f"read -r r rest <{stat}\n"
        f'echo "$((r + 500)) $rest" >{stat}\ncat fio.json'))
    stack.bench("--policies", "never")
    assert {one["policy"] for one in stack.log()} == {"never"}
    assert stack.records()[0]["requests_per_io"] == 1
    stack.check_restored(*LEGS)


@pytest.mark.parametrize("how, says, left", [
    ("fail", "fio failed", LEGS),
    ("vanish", "nvme0c0n1 has vanished", LEGS[1:])])
def test_fails(stack, how, says, left):
    stack.put("fio." + how)
    stack.program("fio", ON_LEG.replace(
        "rm -rf sys/block/nvme0n1", "rm -rf sys/block/nvme0c0n1"))
    assert says in stack.bench(code=1)
    stack.check_restored(*left)


@pytest.mark.parametrize("gone, words, code, says", [
    (["nvme0c1n1/queue/plug_policy"], ["/dev/nvme0n1", *SHORT], 1,
     "nvme0c1n1 below nvme0n1 has no plug_pol"),
    ([], ["/dev/nvme0c1n1"], 2, "the disk above it, /dev/nvme0n1"),
    (LEGS, ["/dev/nvme0n1"], 1, "no disk below it is to be seen"),
    ([], ["/dev/other"], 2, "/dev/other: no disk; accepted: a whole disk")])
def test_refused(stack, gone, words, code, says):
    for name in gone:
        stack.remove("sys/block/" + name)
    stack.check_untouched(*words, code=code, says=says)
