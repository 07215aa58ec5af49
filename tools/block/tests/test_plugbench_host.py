# SPDX-License-Identifier: GPL-2.0
"""plugbench: one kernel against another, and what hides a gain."""
import json

import pytest

from benchtree import QUEUE
from plugtools.bench import host
from plugtools.core.disks import Disk
from plugtools.report import changes
from test_plugreport_compare import measured

PCI = "sys/devices/pci0000:00/0000:00:04.0/"


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
    hidden = list(host.hides(host.facts([disk], 0)))
    assert bool(hidden) == (mode in ("strict", "lazy")), hidden


def test_facts(machine, disk):
    machine.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU")
    machine.put("proc/cmdline", "quiet mitigations=off")
    machine.put(QUEUE + "write_cache", "write back")
    found = host.facts([disk], 0)
    assert found["CPU"] == "Fast CPU" and found["mitigations"] == "off"
    assert found["options"] == found["governor"] == "unknown"
    assert found["nvme0n1 interrupts"] == "2 on CPUs 0 1"
    assert found["nvme0n1 queues"] == "1 of 100"
    assert found["nvme0n1 scheduler"] == "mq-deadline"
    assert found["nvme0n1 write_cache"] == "write back"
    assert found["nvme0n1 wbt_lat_usec"] == "unknown"


def test_mitigations(machine):
    for name, text in ("a", "Mitigation: PTI"), ("b", "Not affected"):
        machine.put("sys/devices/system/cpu/vulnerabilities/" + name, text)
    assert host.mitigations() == "1 in force"


def test_debug_kernel(machine, monkeypatch, disk):
    """Also that wbt is on; options that are off are not named."""
    release = host.os.uname().release
    machine.put(f"boot/config-{release}",
                "CONFIG_KASAN=y\n# CONFIG_KCSAN is not set\nCONFIG_BLK_WBT=y")
    machine.put(QUEUE + "wbt_lat_usec", "2000")
    found = host.facts([disk], 0)
    assert found["options"] == "KASAN BLK_WBT"
    said = "\n".join(host.hides(found))
    assert "kernel (KASAN)" in said and "2000 us" in said


def test_recorded_and_said(machine, disk):
    machine.put(PCI + "iommu_group/type", "DMA-FQ")
    assert "lazy IOMMU" in machine.bench("-v")
    result = json.loads(machine.get("plugbench-nvme0n1.json"))
    assert result["meta"]["host"]["nvme0n1 iommu"] == "lazy"


def test_unpatched_kernel(machine):
    """It is measured, and its file is what another kernel is compared with."""
    machine.remove(QUEUE + "plug_policy")
    machine.put(QUEUE + "plug_policy.new", "always never [seq-small] adaptive")
    assert 'called "unpatched always"' in machine.bench("--json", "old.json")
    old = json.loads(machine.get("old.json"))["records"]
    assert {(one["kernel"], one["policy"]) for one in old} == {
        ("unpatched", "always"), ("unpatched", "nomerges2")}
    machine.path(QUEUE + "plug_policy.new").rename(
        machine.path(QUEUE + "plug_policy"))
    machine.put(QUEUE + "scheduler", "none [mq-deadline] kyber")
    said = machine.bench("--compare", "old.json")
    for policy in "always", "never", "seq-small", "adaptive":
        assert f"patched {policy}" in said


def test_unpatched_against_patched():
    """Each policy of the new kernel against all that the old one has; with
    nomerges2 of the old one, nothing."""
    old = measured(kernel="unpatched") + measured(
        2000, kernel="unpatched", policy="nomerges2")
    new = measured(1100) + measured(1200, policy="adaptive")
    found = [one for one in changes.compare(changes.across(old, new), new)
             if one["metric"] == "iops"]
    assert [(one["kernel"], one["policy"], round(one["ratio"], 2))
            for one in found] == [("patched", "always", 1.1),
                                  ("patched", "adaptive", 1.2)]
    assert changes.across(new, new) == new
