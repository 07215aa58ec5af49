# SPDX-License-Identifier: GPL-2.0
"""Disks: all are made read-only, then the stick alone writable again."""
import fcntl
import re
import struct
import subprocess
from pathlib import Path

# <linux/fs.h>
BLKROSET, BLKROGET = 0x125d, 0x125e
OPTIONS = "noatime,nosuid,nodev,noexec"


def read(path):
    """What a file holds, or nothing."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def run(*command):
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


class Disks:
    """left: {an NVMe disk that is left alone: why}; stick: the disk that this was booted
    from, once it is found.

    root: a tree in place of the machine's, for tests."""

    def __init__(self, root=""):
        self.sys, self.dev = Path(f"{root}/sys"), Path(f"{root}/dev")
        self.mine = read(f"{root}/stick/id")
        self.left, self.stick = {}, ""

    def all(self):
        """Those that are hardware. A hidden one, a path of NVMe multipath, cannot be
        reached by itself."""
        return [path.name for path in sorted((self.sys / "block").glob("*"))
                if (path / "device").exists() and read(path / "hidden") != "1"]

    def nvme(self):
        return [disk for disk in self.all() if disk.startswith("nvme")]

    def place(self, disk):
        """A name by where it is attached: numbers are dealt anew in each boot."""
        address = read(self.sys / "block" / disk / "device/address").replace(":", "-")
        return re.sub(r"\d+", f"-{address}-", disk, count=1) if address else disk

    def describe(self, disk):
        top = self.sys / "block" / disk
        size = int(read(top / "size") or 0) * 512 / 1e9
        link = (read(top / f"device/device/current_link_{name}") for name in ("speed", "width"))
        text = (f"{disk}: {read(top / 'device/model')}, firmware "
                f"{read(top / 'device/firmware_rev')}, {size:.1f} GB, {' x'.join(link)}")
        return "".join(char if char.isprintable() else "?" for char in text)

    @property
    def measured(self):
        return [disk for disk in self.nvme() if disk not in self.left]

    def parts(self, disk):
        return [disk, *sorted(path.parent.name for path in
                              (self.sys / "block" / disk).glob("*/partition"))]

    def flag(self, name, value=None):
        """Does the kernel refuse to write to a disk or partition? value: it shall,
        or shall not."""
        with open(self.dev / name, "rb", buffering=0) as device:
            if value is not None:
                fcntl.ioctl(device, BLKROSET, struct.pack("i", value))
            return fcntl.ioctl(device, BLKROGET, bytes(4)) == struct.pack("i", 1)

    def is_read_only(self, disk):
        try:
            return all(self.flag(name) for name in self.parts(disk))
        except OSError:
            return False

    def set_read_only(self, disk):
        """Fails if anything of it could be written afterwards."""
        try:
            for name in self.parts(disk):
                self.flag(name, True)
        except OSError:
            return False
        return self.is_read_only(disk)

    def protect(self):
        """All disks but the stick's. May be called again when more appear: who once
        could not be protected is not tried again."""
        for disk in self.all():
            if disk not in (self.stick, *self.left) and not self.set_read_only(disk):
                self.left[disk] = "cannot be set read-only"

    def sectors_written(self, disk):
        """Since the kernel found it, discards included"""
        counts = read(self.sys / "block" / disk / "stat").split()
        return int(counts[6]) + int(counts[13]) if counts else 0

    def find_stick(self):
        """(disk, partition) whose table names it as this very image was named when it
        was built. On an NVMe disk it would be a copy: never that."""
        for path in sorted((self.sys / "block").glob("*/*/uevent")):
            disk, part = path.parts[-3:-1]
            if not disk.startswith("nvme") \
                    and f"PARTNAME={self.mine}" in read(path).splitlines():
                return disk, part
        return None

    def mount(self, where):
        """Fails if the stick is not there, or is another after all. It is written to
        only once that is known."""
        disk, part = self.find_stick() or ("", "")
        node = str(self.dev / part)
        if not disk or not run("mount", "-t", "vfat", "-o", f"ro,{OPTIONS}", node, str(where)):
            return False
        if read(Path(where, "plug-policy.id")) == self.mine:
            self.stick = disk
            try:
                for name in (disk, part):
                    self.flag(name, False)
                if run("mount", "-o", f"remount,rw,{OPTIONS}", node, str(where)):
                    return True
            except OSError:
                pass
        run("umount", str(where))
        self.stick = ""
        self.set_read_only(disk)
        return False

    def settled(self, where):
        """The stick is there, and each NVMe controller has come up or given up. What
        has come by now is protected before the stick becomes writable."""
        self.protect()
        if not self.stick and not self.mount(where):
            return False
        states = [read(path) for path in self.sys.glob("class/nvme/nvme*/state")]
        return not {"new", "connecting", "resetting"} & set(states)
