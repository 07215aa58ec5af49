# SPDX-License-Identifier: GPL-2.0
"""plugroll list, and how response times are sampled."""
import json
import os
import subprocess
from unittest import mock

import pytest

from fakehost import Load
from plugtools.core.disks import Disk
from plugtools.roll import disklist, meter

# 20000 reads, 8000 ms in flight within 1000 ms
BUSY = "20000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
SINGLE = "20000 0 0 1000 0 0 0 0 0 1000 1000 0 0 0 0 0 0"
WRAPPED = "500000000 0 0 8000 0 0 0 0 0 1000 8000 0 0 0 0 0 0"
BEGIN = " fio-1 [001] ..... {}: block_getrq: {} R {} + 8 [fio]\n"
END = " <idle>-0 [001] d.h.. {}: block_rq_complete: 259,0 R () {} + 8 none\n"
TRACE = (BEGIN.format("12.000100", "259,1", "1234") +
         BEGIN.format("12.000110", "259,0", "5555") +
         END.format("12.000350", "1234") + END.format("12.000360", "9999"))


@pytest.fixture
def rows(roll):
    def call(*disks):
        done = roll("list", "--json", *disks)
        assert done.fails(0) == ""
        return {row["disk"]: row for row in json.loads(done.out)["disks"]}
    return call


@pytest.fixture
def recommended(host, rows):
    """(mode, first evidence) for a disk with these files."""
    def call(files):
        host.disk("nvme0n1", files={"stat": BUSY, **files})
        row = rows("nvme0n1")["nvme0n1"]
        assert row["worth_a_try"] in (None, "adaptive")
        assert not (row["worth_a_try"] and row["best"])
        return row["worth_a_try"] or row["best"], row["evidence"][0]
    return call


@pytest.mark.parametrize("files, mode, evidence", [
    ({}, "adaptive", "8.0 requests in flight"),
    ({"stat": SINGLE}, "always", "one I/O at a time"),
    ({"stat": "9 " * 17}, None, "not enough I/O to tell"),
    ({"stat": WRAPPED}, None, "may have wrapped in 500000000"),
    ({"queue/scheduler": "none [mq-deadline]"}, "always",
     "an I/O scheduler, mq-deadline"),
    ({"queue/rotational": "1"}, "always", "rotational"),
    ({"queue/plug_policy_fallback": "no-queue_rqs"}, "always",
     "takes no groups"),
    ({"device/model": "QEMU NVMe Ctrl"}, "always", "virtual (QEMU NVMe Ctrl)"),
    ({"device/model": "QEMU \x1b[31m"}, "always", r"virtual (QEMU \x1b[31m)")])
def test_facts(recommended, files, mode, evidence):
    """One after the other, as plug-policy.rst has them."""
    found = recommended(files)
    assert found[0] == mode
    assert evidence in found[1]


# --- tries are evidence ------------------------------------------------------
@pytest.mark.parametrize("speed, tried, mode, text", [
    (1.3, "seq-small", "seq-small", "the guard held; iops +"),
    (.7, "adaptive", "always", "the guard tripped; iops -")])
def test_tries(host, roll, rows, speed, tried, mode, text):
    """A try says more than a guess: of what is better, and what not."""
    host.disk("nvme0n1")
    with Load(host, {"nvme0n1": {tried: speed}}):
        roll("try", tried, "nvme0n1", "--for", "1m")
    host.put("sys/block/nvme0n1/stat", BUSY)
    row = rows()["nvme0n1"]
    assert (row["best"], row["worth_a_try"]) == (mode, None)
    assert text in row["evidence"][0]


@pytest.mark.parametrize("scheduler, mode", [
    ("[none]", "adaptive"), ("none [kyber]", "always")])
def test_try_of_virtual_disk(host, recommended, scheduler, mode):
    """Its doorbells are a guess; not so that a scheduler rules."""
    host.put(disklist.TRIES, json.dumps({"eui.nvme0n1": {"adaptive": {
        "status": "held", "date": "2026-11-01", "figures": {
            "iops": {"change": 3, "low": 2, "high": 4}}}}}))
    assert recommended({"device/model": "QEMU NVMe Ctrl",
                        "queue/scheduler": scheduler})[0] == mode


@pytest.mark.parametrize("text", [
    "{", "[]", pytest.param("[" * 100000, id="deep"), '{"eui.nvme0n1": 3}',
    '{"eui.nvme0n1": {"never": {}}}'])
def test_damaged_tries(host, rows, text):
    """What cannot be read is no evidence."""
    host.disk("nvme0n1")
    host.put(disklist.TRIES, text)
    assert rows()["nvme0n1"]["best"] is None


# --- which disks, and how they are shown -------------------------------------
def test_head(host, roll):
    """Its paths have the policy; disks without any, or without a medium, are
    left out."""
    host.head()
    host.disk("loop0", None)
    host.disk("loop1", files={"size": "0"})
    assert "loop" not in roll("list").prints(
        "its policy is that of nvme0c0n1, nvme0c1n1")


@pytest.mark.parametrize("words", [[], ["sda"], ["dm-0"]])
def test_none(host, roll, words):
    """A kernel without the series, for all disks and for one; and a disk
    without a policy beside one that has it."""
    host.disk("sda", None)
    host.bio_disk("dm-0", ["sda"])
    roll("list", *words).fails(1, "CONFIG_BLK_PLUG_POLICY")
    host.disk("nvme0n1")
    done = roll("list", "nvme0n1", "dm-0")
    done.fails(2, "sda has no plug_policy")
    assert done.out == ""


@pytest.mark.parametrize("value", ["0", "1", "2"])
def test_text(host, roll, rows, value):
    """What only the load speaks for is not recommended; a host that keeps
    nomerges=2 is told of it, one with 1 or 0 is not."""
    host.disk("nvme0n1", files={"queue/nomerges": value, "stat": BUSY})
    out = roll("list").prints("adaptive: worth a try")
    assert "recommend" not in out and ("nomerges=2" in out) == (value == "2")
    assert rows()["nvme0n1"]["nomerges"] == value


def test_check(host, roll):
    """3 if a mode is not in force, or another one is kept."""
    for name in "nvme0n1", "nvme1n1":
        host.disk(name)
    roll("keep", "adaptive", "nvme0n1")
    assert roll("list", "--check")[::2] == (0, "")
    host.policy("nvme0n1", "never")
    assert roll("list", "--check")[::2] == (
        3, "nvme0n1: adaptive is kept, but never is set")
    assert roll("list").code == 0
    host.remove("sys/block/nvme0n1")
    host.policy("nvme1n1", "never", "elevator")
    done = roll("list", "--check", "--json")
    done.fails(3, "nvme1n1: never is set, but always is in force: elevator")
    row, = json.loads(done.out)["disks"]
    assert (row["set"], row["in_force"], row["why"]) == ("never", "always",
                                                         "elevator")


def test_going(host, roll):
    """A disk that goes meanwhile costs its own line, whenever it does."""
    host.put(disklist.TRIES, "{}")
    for name in "nvme0n1", "nvme2n1":
        host.disk(name, files={"stat": BUSY})
    for gone in host.goings("nvme1n1", lambda: host.disk(
            "nvme1n1", files={"stat": BUSY}), 10):
        code, out, said = roll("list", "--json")
        names = {row["disk"] for row in json.loads(out)["disks"]}
        assert (code, names - {"nvme1n1"}) == (0, {"nvme0n1", "nvme2n1"})
        assert said in ("", "nvme1n1 has gone")
        assert not gone or "nvme1n1" not in names


def test_path_that_goes(host, rows, monkeypatch):
    """It does not cost the line of the disk above it."""
    host.many(2)
    shown = disklist.is_shown

    def go(disk, legs):
        if Disk("sd0x1").there():
            host.remove("sys/block/sd0x1")
        return shown(disk, legs)

    monkeypatch.setattr(disklist, "is_shown", go)
    assert "dm-0" in rows()


def test_ascii(host):
    """A name that the terminal cannot show ends nothing."""
    host.disk("nvme0n1", files={"device/model": "QEMU ±"})
    host.environment["PYTHONIOENCODING"] = "ascii"
    host.apart("plugroll", "list").prints(r"QEMU \xb1")


# --- requests that are followed by trace events ------------------------------
class Tracing:
    def __init__(self, host, monkeypatch):
        self.host = host
        self.removed = mock.Mock()
        self.where = self.instance(os.getpid(), "0")
        for name, instead in ("mkdir", mock.Mock()), ("rmdir", self.removed):
            monkeypatch.setattr(os, name, self.of_instances(
                getattr(os, name), instead))

    @staticmethod
    def of_instances(real, instead):
        """A function of os, which does nothing to instances; our own paths are
        no texts."""
        return lambda path, *args, **options: (
            instead if isinstance(path, str) and "plugroll-" in path
            else real)(path, *args, **options)

    def instance(self, pid, enable):
        where = f"sys/kernel/tracing/instances/plugroll-{pid}/"
        for event in meter.EVENTS:
            self.host.put(f"{where}events/block/{event}/filter", "0")
            self.host.put(f"{where}events/block/{event}/enable", enable)
        self.host.put(where + "trace_pipe", TRACE.rstrip())
        return where

    def enabled(self, where=None):
        return "".join(self.host.get(
            f"{where or self.where}events/block/{event}/enable")
            for event in meter.EVENTS)

    def filter(self):
        return self.host.get(self.where + "events/block/block_getrq/filter")


@pytest.fixture
def tracing(host, monkeypatch):
    host.disk("nvme0n1", files={"dev": "259:0"})
    return Tracing(host, monkeypatch)


def test_times(host, tracing):
    """From the allocation to the completion, partitions included; what has no
    beginning or no end is left out."""
    host.put("sys/block/nvme0n1/nvme0n1p1/partition", "1")
    host.put("sys/block/nvme0n1/nvme0n1p1/dev", "259:1")
    tracer = meter.Tracer({Disk("nvme0n1"): 20000})
    assert tracer.collect() == {"nvme0n1": [250]}
    assert tracing.filter() == (
        "(dev == 271581184 || dev == 271581185) && !(sector & 120)")
    assert tracing.enabled() == "11"
    tracer.close()
    assert tracing.enabled() == "00"


def test_instances_of_others(tracing):
    """That of another plugroll stays as it is; that of a dead one goes, if
    nobody uses it, also of one that had our number."""
    with subprocess.Popen("/bin/true") as dead:
        pass
    others = [tracing.instance(pid, "1") for pid in (1, dead.pid)]
    tracer = meter.Tracer({Disk("nvme0n1"): 20000})
    assert list(map(tracing.enabled, others)) == ["11", "11"]
    assert {os.path.basename(call.args[0])
            for call in tracing.removed.call_args_list} == {
                f"plugroll-{pid}" for pid in (dead.pid, os.getpid())}
    tracer.close()


def test_second_event(host, tracing, monkeypatch):
    """One that cannot be switched on: the first one is not left on."""
    write = meter.write

    def refuse(path, value):
        if path.endswith("block_rq_complete/enable") and value == "1":
            raise OSError(12, "Cannot allocate memory", path)
        write(path, value)

    monkeypatch.setattr(meter, "write", refuse)
    with pytest.raises(meter.NoTracing, match="Cannot allocate"):
        meter.Tracer({Disk("nvme0n1"): 20000})
    assert tracing.enabled() == "00"
    tracing.removed.assert_called_with(
        str(host.path(tracing.where)).rstrip("/"))


def test_legs(host, tracing):
    """Of a head, what its paths do: each has the same sectors, and sysfs does
    not have the number of a hidden one."""
    host.remove("sys/block/nvme0n1")
    host.head()
    host.remove("sys/block/nvme0c1n1/dev")
    host.put("sys/block/nvme0c0n1/dev", "259:0")
    host.put("proc/diskstats", "259 3 nvme0n1 9 9\n 259       4 nvme0c1n1 9 9")
    tracer = meter.Tracer({Disk("nvme0n1"): 100})
    assert tracing.filter() == "(dev == 271581184 || dev == 271581188)"
    tracer.take([line.replace("259,1", "259,4").replace("5555", "1234")
                 for line in TRACE.splitlines()])
    assert tracer.times == {"nvme0n1": [240]}
    tracer.close()
    host.put("proc/diskstats", "0 0 nvme0c1n1 9 9")
    with pytest.raises(meter.NoTracing,
                       match="number of nvme0c1n1 is not known"):
        meter.Tracer({Disk("nvme0n1"): 100})


def test_lost_events(tracing):
    """After them no pair is certain."""
    tracer = meter.Tracer({Disk("nvme0n1"): 100})
    begin, end = TRACE.splitlines()[1:3]
    tracer.take([begin.replace("5555", "1234"), "CPU:1 [LOST 27 EVENTS]", end])
    assert tracer.times == {"nvme0n1": []}
    tracer.close()
