# SPDX-License-Identifier: GPL-2.0
"""What plugbench counts beside fio, and how "adaptive" learns."""
import os
from unittest import mock

import pytest

from benchtree import FAKE_FIO, FAKE_PERF
from plugtools.bench import counters, measure
from plugtools.bench.plan import BASELINE
from plugtools.core.disks import Disk

COUNTING = "sys/kernel/debug/block/nvme0n1/plug_stats_enabled"
LEARNT = "sys/kernel/debug/block/nvme0n1/hctx0/plug_adaptive"


@pytest.mark.parametrize("policy, merges, last", [
    ("adaptive", "0", ["adaptive"]), (BASELINE, "2", [])])
def test_starts_anew(policy, merges, last):
    """The mode is left and set again before each measurement."""
    disk, calls = Disk("x", "/dev/x"), []
    disk.has_knob = lambda: True
    measure.set_policy(disk, policy, mock.Mock(set=lambda path, value:
        calls.append((os.path.basename(path), value))))
    assert calls == [("nomerges", merges), *(
        ("plug_policy", one) for one in ["always", *last])]


@pytest.mark.parametrize("before, after, size", [
    ({}, {}, None), ({"a": ""}, {"a": ""}, None),
    ({"a": "group 32", "b": "group 2"}, {"a": "group 4\nx 1", "b": "group 2"},
     4), ({}, {"a": "group 4", "b": "group 2", "c": ""}, 3)])
def test_group(before, after, size):
    assert counters.group(before, after) == size


def test_group_is_shown(machine):
    machine.put(LEARNT, "group 32")
    machine.program("fio", FAKE_FIO.replace(
        "read -r r a", "printf 'group 4\\nsample_ns %s\\n' $$ >"
        f"{LEARNT}\nread -r r a"))
    text = machine.bench("--policies", "always,adaptive", "--verbose")
    assert {one["policy"]: one["group"] for one in machine.records()} == {
        "always": None, "adaptive": 4}
    assert any(line.split()[:2] == ["kernel", "policy"] and
               line.endswith(" group") for line in text.splitlines())
    assert "runs for a second that no figure counts" in text


def test_nothing_counts(machine):
    """Said once; null in the records, also where a kernel lacks the file."""
    text = machine.bench("--policies", "adaptive")
    assert text.count("perf is not installed") == 1
    one = machine.records()[0]
    assert (one["cycles_per_io"], one["group"]) == (None, None)


def test_perf(machine):
    """Counts per I/O; the tracepoint only in runs of its own."""
    machine.program("perf", FAKE_PERF)
    machine.bench("--runtime", "3")
    for one in machine.records():
        assert {one[name] for name in (
            "insns_per_io", "cycles_per_io", "unplugs_per_io",
            "cache_misses_per_io", "ctx_switches_per_io")} == {7000}
    assert [one["--runtime"] for one in machine.log()] == ["1", "1", "3"] * 5


def test_perf_can_some(machine):
    machine.program("perf", FAKE_PERF)
    machine.put("perf.cannot", "instructions\ncycles")
    text = machine.bench("--policies", "always", "--verbose")
    assert text.count("cannot count here: instructions, cycles\n") == 1
    assert "cache_misses_per_io" in text
    one = machine.records()[0]
    assert (one["insns_per_io"], one["unplugs_per_io"]) == (None, 7000)


def test_hybrid_cpu():
    """Two kinds of cores are added up; what was not counted is no 0."""
    assert counters.perf_values(
        "# started\n\n5,,cpu_core/cycles/,1,50.00,,\n"
        "7,,cpu_atom/cycles/,1,50.00,,\n"
        "<not counted>,,instructions,0,100.00,,\n"
        "3,,context-switches:u,1,100.00,,\n") == {
            "cycles": 12, "context-switches": 3}


@pytest.mark.parametrize("before, stats, told", [
    *((before, "flushes 7\ndoorbells 100", 0.031) for before in "01"),
    # of a driver that does not tell, 0 would be a lie
    ("0", "flushes 7", None)])
def test_doorbells(machine, before, stats, told):
    """Counted in a run of its own; where that was off, it is off again."""
    machine.put(COUNTING, before)
    machine.put("sys/kernel/debug/block/nvme0n1/hctx0/plug_stats", stats)
    machine.bench("--policies", "always", "--runtime", "3")
    assert machine.records()[0]["doorbells_per_io"] == told
    assert [one["counting"] for one in machine.log()] == [before, "1", before]
    assert machine.get(COUNTING).strip() == before
