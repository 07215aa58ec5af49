# SPDX-License-Identifier: GPL-2.0
"""What plugbench counts beside fio, how "adaptive" learns, one kernel against
another, and what hides a gain."""
import json
import os
from unittest import mock

import pytest

from benchtree import FAKE_FIO, FAKE_PERF, QUEUE
from plugtools.bench import counters, host, measure
from plugtools.bench.plan import BASELINE, choose_cpu
from plugtools.core.disks import Disk
from plugtools.report import changes
from test_plugreport_compare import measured

PCI = "sys/devices/pci0000:00/0000:00:04.0/"
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
    ({}, {}, None), ({"a": {}}, {"a": {}}, None),
    ({"a": {"group": 32}, "b": {"group": 2}},
     {"a": {"group": 4, "x": 1}, "b": {"group": 2}}, 4),
    ({}, {"a": {"group": 4}, "b": {"group": 2}, "c": {}}, 3)])
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


@pytest.mark.parametrize("node, allowed, cpu", [
    ("1", range(8), 4), ("-1", range(8), 2), ("1", range(4), 2),
    ("0", [0, 1], 1), ("0", [0], 0)])
def test_cpu(machine, disk, monkeypatch, node, allowed, cpu):
    """Near the disk and off CPU 0's core, if it may be used."""
    machine.put("sys/class/nvme/nvme0/numa_node", node)
    machine.put("sys/devices/system/node/node0/cpulist", "0-3")
    machine.put("sys/devices/system/node/node1/cpulist", "4-7")
    machine.put("sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "0-1")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))
    assert choose_cpu(mock.Mock(cpu=None), disk) == cpu


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


# --- the host, and other kernels ----------------------------------------------
@pytest.fixture
def disk(machine):
    """nvme0n1 as /sys has it: class device, then that of the PCI function."""
    machine.put(PCI + "msi_irqs/40", "msix")
    machine.put(PCI + "msi_irqs/41", "msix")
    for number in 0, 1:
        machine.put(f"proc/irq/4{number}/effective_affinity_list", number)
    machine.link("sys/class/nvme/nvme0/device", PCI)
    return Disk("nvme0n1")


@pytest.mark.parametrize("group, mode", [
    ("DMA", "strict"), ("DMA-FQ", "lazy"), ("identity", "passthrough"),
    ("blocked", "blocked"), (None, "none")])
def test_iommu(machine, disk, group, mode):
    if group:
        machine.put(PCI + "iommu_group/type", group)
    assert host.iommu(disk) == mode
    for governor, says in (None, "no frequency governor"), (
            "powersave", "governor is powersave, not"), ("performance", None):
        if governor:
            machine.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                        governor)
        hidden = list(host.hides(host.facts([disk], 0)))
        assert says is None or says in hidden.pop(0)
        assert bool(hidden) == (mode in ("strict", "lazy")), hidden


def test_facts(machine, disk):
    machine.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU")
    for name, text in ("a", "Mitigation: PTI"), ("b", "Not affected"):
        machine.put("sys/devices/system/cpu/vulnerabilities/" + name, text)
    assert host.facts([disk], 0)["mitigations"] == "1 in force"
    machine.put("proc/cmdline", "quiet mitigations=off")
    machine.put(QUEUE + "write_cache", "write back")
    machine.remove(QUEUE + "wbt_lat_usec")
    found = host.facts([disk], 0)
    assert found["CPU"] == "Fast CPU" and found["mitigations"] == "off"
    assert found["options"] == found["governor"] == "unknown"
    assert found["nvme0n1 interrupts"] == "2 on CPUs 0 1"
    assert found["nvme0n1 queues"] == "1 of 100"
    assert found["nvme0n1 scheduler"] == "mq-deadline"
    assert found["nvme0n1 write_cache"] == "write back"
    assert found["nvme0n1 wbt_lat_usec"] == "unknown"


def test_debug_kernel(machine, disk):
    """Also that wbt is on; options that are off are not named."""
    release = host.os.uname().release
    machine.put(f"boot/config-{release}",
                "CONFIG_KASAN=y\n# CONFIG_KCSAN is not set\nCONFIG_BLK_WBT=y")
    machine.put(QUEUE + "wbt_lat_usec", "2000")
    found = host.facts([disk], 0)
    assert found["options"] == "KASAN BLK_WBT"
    said = "\n".join(host.hides(found))
    assert "kernel (KASAN)" in said and "2000 us" in said


def test_unpatched_kernel(machine, disk):
    """It is measured, and its file is what another kernel is compared with; the
    host is in it, and what hides a gain is said."""
    machine.put(PCI + "iommu_group/type", "DMA-FQ")
    machine.remove(QUEUE + "plug_policy")
    machine.put(QUEUE + "plug_policy.new", "always never [seq-small] adaptive")
    said = machine.bench("--json", "old.json")
    assert 'called "unpatched always"' in said and "lazy IOMMU" in said
    old = json.loads(machine.get("old.json"))
    assert old["meta"]["host"]["nvme0n1 iommu"] == "lazy"
    assert {(one["kernel"], one["policy"]) for one in old["records"]} == {
        ("unpatched", "always"), ("unpatched", "nomerges2")}
    machine.path(QUEUE + "plug_policy.new").rename(
        machine.path(QUEUE + "plug_policy"))
    machine.put(QUEUE + "scheduler", "none [mq-deadline] kyber")
    said = machine.bench("--compare", "old.json", "--fail-below", "0.9",
                         code=4)    # one run
    for mode in *(f"patched {policy}" for policy in (
            "always", "never", "seq-small", "adaptive")), "unpatched nomerges2":
        assert mode in said
    assert said.count("told: rand4k-s32 nomerges2, IOPS") == 1


def test_hints_of_many_disks():
    """What is true of several is said once."""
    found = {"governor": "performance", "options": "", "a iommu": "lazy",
             "b iommu": "lazy", "c iommu": "strict"}
    assert [one.partition(" IOMMU")[0] for one in host.hides(found)] == [
        "a, b: lazy", "c: strict"]


def test_unpatched_against_patched():
    """Each policy of the new kernel, and nomerges2 of the old one, against
    "always" of the old one; --fail-below is about the new one alone."""
    old = measured(kernel="unpatched") + measured(
        2000, kernel="unpatched", policy="nomerges2")
    new = measured(1100) + measured(1200, policy="adaptive")
    found = [one for one in changes.compare(*changes.across(old, new))
             if one["metric"] == "iops"]
    assert [(one["kernel"], one["policy"], round(one["ratio"], 2))
            for one in found] == [("unpatched", "nomerges2", 2.0),
                                  ("patched", "always", 1.1),
                                  ("patched", "adaptive", 1.2)]
    assert changes.across(new, new) == (new, new)
    more = measured(kernel="unpatched", workload="seq4k-s32") + measured(
        kernel="unpatched", workload="seq4k-s32", policy="nomerges2")
    before, after = changes.across(old + more, new)
    assert changes.missing(before, after) == [
        "threads: gen4, seq4k-s32, unpatched always"]
