# SPDX-License-Identifier: GPL-2.0
"""plugbench on disks in use, with limits, and with --write."""
import contextlib
import re
import sys
from unittest import mock

import pytest

from benchtree import SHORT
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
