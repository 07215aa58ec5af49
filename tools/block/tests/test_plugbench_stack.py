# SPDX-License-Identifier: GPL-2.0
"""plugbench on heads of NVMe multipath, dm and md."""
import shutil

import pytest

from benchtree import FAKE_FIO, QUEUE, SHORT

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
    (LEGS, ["/dev/nvme0n1"], 1, "no disk below it is to be seen")])
def test_refused(stack, gone, words, code, says):
    for name in gone:
        stack.remove("sys/block/" + name)
    stack.check_untouched(*words, code=code, says=says)
