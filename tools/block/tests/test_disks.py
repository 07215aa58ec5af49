# SPDX-License-Identifier: GPL-2.0
"""plugtools.core.disks: what serves a disk, what a user may name, who uses
it."""
import errno
import os

import pytest

from fakehost import calls
from plugtools.core import disks, system


class Machine:
    def __init__(self, host):
        self.host = host
        host.put("proc/swaps", "Filename Type")
        self.disk("nvme0n1", "259:0")
        self.part("nvme0n1", "nvme0n1p1", "259:1")

    def disk(self, name, number):
        self.host.disk(name, files={"dev": number})

    def part(self, disk, name, number):
        self.host.put(f"sys/block/{disk}/{name}/partition", "1")
        self.host.put(f"sys/block/{disk}/{name}/dev", number)
        self.host.put(f"dev/{name}")

    def above(self, name, number, *below):
        """A bio-based disk above directories in sysfs."""
        self.host.bio_disk(name, map(os.path.basename, below), {"dev": number})
        for one in below:
            self.host.put(f"sys/block/{one}/holders/{name}/x")

    def mounted(self, *rows):
        """Devices that are, with where and the source."""
        self.host.put("proc/self/mountinfo", "\n".join(
            f"1 1 {number} / {where} rw - fs {source} rw"
            for number, where, source in rows))

    @staticmethod
    def legs(name):
        return [leg.name for leg in disks.Disk(name).legs()]

    @staticmethod
    def uses(name):
        return disks.uses(disks.find_disk("/dev/" + name))


@pytest.fixture
def machine(host):
    return Machine(host)


# --- what serves a disk ------------------------------------------------------
@pytest.mark.parametrize("disk, name", [
    ("sda", "sda12"), ("sdp", "sdp1"), ("mmcblk0", "mmcblk0p2"),
    ("md_d0", "md_d0p1"), ("cciss!c0d0", "cciss!c0d0p1"),
    ("nvme0n1", "nvme0n1p1")])
def test_partitions(machine, disk, name):
    """The kernel's names of partitions say whose they are."""
    machine.part(disk, name, "1:1")
    assert disks.disk_of_partition(name) == disk
    for other in disk, "sda13", "p1", "1", "":
        assert disks.disk_of_partition(other) is None


def test_legs(machine, host):
    """A disk with requests serves itself; a head is served by the paths of its
    own subsystem and namespace; below some there is nothing to be seen."""
    assert machine.legs("nvme0n1") == ["nvme0n1"]
    host.bio_disk("nvme1n2")
    for name in ("nvme1c0n2", "nvme1c11n2", "nvme1c0n1", "nvme11c0n2",
                 "nvme1c0n21"):
        machine.disk(name, "0:0")
    assert machine.legs("nvme1n2") == ["nvme1c0n2", "nvme1c11n2"]
    assert disks.Disk("nvme1c0n2").node == ""
    assert disks.Disk("nvme1c0n2").hidden()
    assert not disks.Disk("nvme1n2").hidden()
    host.bio_disk("zram0")
    assert machine.legs("zram0") == []


def test_stack(machine):
    """dm on md on a partition and a disk; each disk once."""
    machine.disk("sdb", "8:16")
    machine.part("nvme0n1", "nvme0n1p2", "259:2")
    machine.above("md0", "9:0", "nvme0n1/nvme0n1p1", "sdb",
                  "nvme0n1/nvme0n1p2")
    machine.above("dm-0", "253:0", "md0")
    assert machine.legs("dm-0") == ["nvme0n1", "sdb"]


# --- what a user may name ----------------------------------------------------
@pytest.mark.parametrize("word, name", [
    ("/dev/nvme0n1", "nvme0n1"), ("nvme0n1", "nvme0n1"),
    ("/dev/disk/by-id/x", "nvme0n1"), ("nvme0c0n1", "nvme0c0n1"),
    ("/dev/nvme0c0n1", "nvme0c0n1")])
def test_names(machine, host, word, name):
    """A node, the kernel's name, a link, and a hidden path."""
    machine.disk("nvme0c0n1", "0:0")
    host.link("dev/disk/by-id/x", "dev/nvme0n1")
    assert disks.find_disk(word).name == name


@pytest.mark.parametrize("word, says", [
    ("nvme7n1", "/dev/nvme0n1"), ("", "a whole disk"), ("/dev", "no such"),
    ("/dev/nvme0n1p1", "accepted: /dev/nvme0n1"), ("/dev/tty", "/dev/nvme0n1"),
    ("/sys/block/nvme0n1", "/dev/nvme0n1"),
    ("../dev/nvme0n1", "/dev/nvme0n1")])
def test_refused(machine, host, word, says):
    """With what is accepted."""
    host.put("dev/tty")
    with pytest.raises(system.UsageProblem, match=says):
        disks.find_disk(word)


def test_disks_that_have_it(machine, host, monkeypatch):
    """By a node that is there: of a hidden path, the head's."""
    machine.disk("cciss!c0d0", "104:0")
    host.put("dev/cciss/c0d0")
    host.bio_disk("nvme1n1")
    for path in "nvme1c0n1", "nvme1c1n1", "nvme2c0n1":
        machine.disk(path, "0:0")
    assert disks.with_knob() == ("disks with plug_policy here: /dev/cciss/c0d0,"
                                 " /dev/nvme0n1, /dev/nvme1n1")
    host.remove("dev/nvme1n1")          # as in a container
    assert ", nvme1n1" in disks.with_knob()
    machine.part("cciss!c0d0", "cciss!c0d0p1", "104:1")
    host.put("dev/cciss/c0d0p1")
    monkeypatch.setattr(disks, "kernel_name", lambda *_: "cciss!c0d0p1")
    with pytest.raises(system.UsageProblem, match="accepted: /dev/cciss/c0d0$"):
        disks.find_disk("/dev/cciss/c0d0p1")
    host.put("proc/swaps", "Filename\n/dev/cciss/c0d0p1 partition")
    assert disks.uses(disks.Disk("cciss!c0d0")) == ["cciss!c0d0p1 is swap"]


# --- who uses a disk, by each way to see it ----------------------------------
@pytest.mark.parametrize("mounted, swaps, told", [
    ([], "", []),
    # a partition, by number
    ([("259:1", "/home", "/dev/root")], "", ["nvme0n1p1 is mounted on /home"]),
    # btrfs, by the source, since it has a number of its own
    ([("0:33", "/data", "/dev/nvme0n1")], "", ["nvme0n1 is mounted on /data"]),
    ([], "/dev/nvme0n1p1 partition 1 0 -2", ["nvme0n1p1 is swap"])])
def test_mounted(machine, host, mounted, swaps, told):
    machine.mounted(*mounted)
    host.put("proc/swaps", "Filename\n" + swaps)
    assert machine.uses("nvme0n1") == told


def test_lvm(machine, host):
    """What is on it, too."""
    machine.above("dm-0", "253:0", "nvme0n1/nvme0n1p1")
    host.put("sys/block/dm-0/dm/name", "vg-root")
    host.put("sys/block/dm-0/dm/uuid", "LVM-xyz")
    machine.mounted(("253:0", "/", "/dev/mapper/vg-root"))
    assert machine.uses("nvme0n1") == [
        "nvme0n1p1 is held by LVM vg-root (dm-0)", "nvme0n1p1 is mounted on /"]
    machine.mounted()
    host.put("proc/swaps", "Filename\n/dev/mapper/vg-root partition")
    assert "nvme0n1p1 is swap" in machine.uses("nvme0n1")


def test_md(machine, host):
    """Its legs are used by it, but it is used by nobody."""
    machine.above("md0", "9:0", "nvme0n1/nvme0n1p1")
    host.put("sys/block/md0/md/level", "raid1")
    assert machine.uses("nvme0n1") == ["nvme0n1p1 is held by md0 (raid1)"]
    assert machine.uses("md0") == []
    machine.part("nvme0n1", "nvme0n1p2", "259:2")
    machine.mounted(("259:2", "/boot", "/dev/nvme0n1p2"))
    assert machine.uses("md0") == ["nvme0n1p2 is mounted on /boot"]


def test_many(machine):
    """Volumes on a disk, all mounted, and other disks."""
    def took(number):
        for count in range(number):
            machine.disk(f"sd{count}", f"8:{count}")
            machine.above(f"dm-{count}", f"253:{count}", "nvme0n1/nvme0n1p1")
        machine.mounted(*((f"253:{count}", f"/m{count}", "/dev/x")
                          for count in range(number)))
        assert len(machine.uses("nvme0n1")) == 2 * number
        return calls(lambda: machine.uses("nvme0n1"))

    assert 4 * took(25) * 1.25 > took(100)


@pytest.mark.parametrize("disk, held, told", [
    # it has no holders, but a signature that udev has seen
    ("sdz", ["sdz1", "sdz"], ["sdz1 is held exclusively (ZFS)"]),
    ("sdz", [], []),
    # something that cannot be told; who serves the disk is none
    ("nvme0n1", ["nvme0n1"], ["nvme0n1 is held exclusively"]),
    ("md0", ["nvme0n1"], []), ("md1", ["sdb1", "sdb"], []),
    ("md0", ["nvme0n1p1"], ["nvme0n1p1 is held exclusively"]),
    ("md0", ["md0"], ["md0 is held exclusively"])])
def test_held_exclusively(machine, host, monkeypatch, disk, held, told):
    def opened(node):
        if os.path.basename(node) in held:
            raise OSError(errno.EBUSY, "busy")
        return os.open(os.devnull, os.O_RDONLY)

    for name, number in ("sdb", 16), ("sdz", 32):
        machine.disk(name, f"8:{number}")
        machine.part(name, name + "1", f"8:{number + 1}")
    host.put("run/udev/data/b8:33", "S:x\nE:ID_FS_TYPE=zfs_member")
    if disk == "md0":
        machine.above("md0", "9:0", "nvme0n1")
    if disk == "md1":
        machine.above("md1", "9:1", "sdb/sdb1")
    monkeypatch.setattr(disks, "open_exclusively", opened)
    assert machine.uses(disk) == told
