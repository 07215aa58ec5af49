#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plugbench --null; as a program, it is plugbench with this configfs."""
import os
import pathlib
import shutil
import signal
import sys

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# pylint: disable=wrong-import-position
from benchtree import FAKE_FIO, QUEUE, SHORT  # noqa: E402
from fakehost import stopped  # noqa: E402
from plugtools.bench import nulldisk, plugbench  # noqa: E402
from plugtools.core import system  # noqa: E402

CONFIG = "/sys/kernel/config/nullb/plugnull"
MODPROBE = """#!/bin/sh
cd "$PLUGTOOLS_ROOT" || exit
echo $* >>modprobe.log
[ "$1" = -r ] || mkdir -p sys/module/null_blk
"""
REMOVE = os.rmdir


def write(path, value):
    """In configfs: a directory is a disk, once its power is on."""
    system.write(path, value)
    with open(system.rooted("/null.log"), "a", encoding="ascii") as log:
        print(os.path.basename(path), value, file=log)
    if path == system.rooted(CONFIG + "/power"):
        shutil.copytree(system.rooted("/sys/block/nvme0n1"),
                        system.rooted("/sys/block/plugnull"))
        pathlib.Path(system.rooted("/dev/plugnull")).touch()


def rmdir(path, **more):
    """The disk goes, and the directory with its files."""
    if path == system.rooted(CONFIG):
        for file in pathlib.Path(path).iterdir():
            file.unlink()
        shutil.rmtree(system.rooted("/sys/block/plugnull"), ignore_errors=True)
        pathlib.Path(system.rooted("/dev/plugnull")).unlink(missing_ok=True)
    REMOVE(path, **more)


@pytest.fixture
def null(machine, monkeypatch):
    """The machine, where null_blk is a module that is there."""
    monkeypatch.setattr(nulldisk, "write", write)
    monkeypatch.setattr(os, "rmdir", rmdir)
    machine.tool = __file__
    machine.put("sys/module/null_blk/x")
    machine.put("sys/kernel/config/nullb/features")
    machine.program("fio", FAKE_FIO.replace("nvme0n1", "plugnull"))
    machine.program("modprobe", MODPROBE)
    # a virtual disk has no device, and null_blk no elevator by default
    machine.remove("sys/block/nvme0n1/device")
    machine.put(QUEUE + "scheduler", "[none] mq-deadline")
    return machine


def check_removed(machine):
    assert os.listdir(machine.path(CONFIG).parent) == ["features"]
    assert not machine.path("dev/plugnull").exists()


def run(machine, *words, code=0):
    """stdout and stderr together.  Whatever happens, the disk is gone."""
    text = machine.run("--null", *SHORT, *words).text(code)
    check_removed(machine)
    return text


def test_policies(null):
    run(null)
    assert [(one["policy"], one["nomerges"]) for one in null.timed()] == [
        ("always", "0"), ("never", "0"), ("seq-small", "0"),
        ("adaptive", "0"), ("always", "2")]
    assert {one["--filename"] for one in null.log()} == {
        str(null.path("dev/plugnull"))}
    assert {(one["profile"], one["kernel"]) for one in
            null.records("plugnull")} == {("null", "patched")}
    log = null.get("null.log").splitlines()
    assert {"irqmode 0", "poll_queues 0", "hw_queue_depth 1023"} < set(log)
    assert log[-1] == "power 1"


def test_unpatched(null):
    null.remove(QUEUE + "plug_policy")
    assert "no plug_policy" in run(null)
    assert [(one["kernel"], one["policy"]) for one in
            null.records("plugnull")] == [
        ("unpatched", "always"), ("unpatched", "nomerges2")]


def test_policies_that_no_other_disk_has(null, monkeypatch):
    monkeypatch.setattr(nulldisk, "disks", lambda: [])
    run(null, "--policies", "never")
    assert {one["policy"] for one in null.log()} == {"never"}


@pytest.mark.parametrize("more, says", [("", "boom"), ("/x", "size/x")])
def test_fails(null, monkeypatch, more, says):
    """fio does, or an attribute of the disk."""
    null.put("fio.fail")
    monkeypatch.setattr(nulldisk, "write",
                        lambda path, value: write(path + more, value))
    assert says in run(null, code=1)


@pytest.mark.parametrize("numbers, code", [
    ([signal.SIGTERM], 130), ([signal.SIGHUP], 130), ([signal.SIGKILL], -9),
    ([signal.SIGINT, signal.SIGINT], 130)])
def test_signals(null, numbers, code):
    """One, one who cannot wait, and SIGKILL: its guard removes the disk."""
    null.put("fio.sleep")
    with null.begin("--null", *SHORT, until="fio.pids") as process:
        stopped(process, *numbers).text(code)
    null.check_gone(*null.get("fio.pids").split())
    check_removed(null)


def test_no_null_blk(null):
    null.remove("sys/module")
    null.program("modprobe", "#!/bin/sh\necho boom >&2; exit 1")
    text = run(null, code=1)
    assert "CONFIG_BLK_DEV_NULL_BLK" in text and "boom" in text
    null.remove("bin/modprobe")
    assert "CONFIG_BLK_DEV_NULL_BLK" in run(null, code=1)


def test_configfs(null):
    null.path(CONFIG).mkdir()
    null.run("--null", *SHORT).fails(1, "no plugbench has it")
    null.remove("sys/kernel/config/nullb")
    null.run("--null", *SHORT).fails(1, "mount -t configfs")


def test_plan_only(null):
    """Neither is anything loaded nor a disk made, nor a file locked."""
    null.remove("sys/module")
    for more in "--dry-run", "--showcmd":
        before = null.snapshot()
        done = null.run("--null", *SHORT, more)
        assert done.prints("/dev/plugnull") and done.err == ""
        assert null.snapshot() == before
    null.put("x.json/y")
    assert "cannot write ./x.json" in run(null, "--dry-run", "--json",
                                          "./x.json", code=1)


def test_signal_meanwhile(null):
    """One that comes while it is being removed: all is removed, and what
    was measured is there."""
    null.remove("sys/module")
    null.program("modprobe", MODPROBE.replace(
        "[ ", 'if [ "$1" = -r ]; then echo x >removing; sleep 1; fi\n[ ') +
        "echo done >>modprobe.log\n")
    with null.begin("--null", "--policies", "always", *SHORT,
                    until="removing") as process:
        stopped(process, signal.SIGTERM).fails(130, "1 whole round is in")
    assert null.get("modprobe.log").split("\n") == [
        "null_blk nr_devices=0", "done", "-r null_blk", "done"]
    check_removed(null)


def test_no_write(null):
    null.check_untouched("--null", "--write", says="no --write")


if __name__ == "__main__":
    nulldisk.write, os.rmdir = write, rmdir
    sys.exit(plugbench.main())
