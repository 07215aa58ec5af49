# SPDX-License-Identifier: GPL-2.0
"""Build build/stick/plug-policy.img, a USB stick that compares kernels and policies.

It boots on PCs, by UEFI without Secure Boot or by BIOS. The first partition is for the
firmware: a kernel, and the initramfs, which has both. The second is for people, since some
systems hide the first. A BIOS starts GRUB, which is in the third."""
import hashlib
import os
import shutil
import stat
import struct
import tempfile
from pathlib import Path

from lab.qemu import guest
from scripts import common, kernel
from lab.tests import laboratory

NAME = "stick"
HERE = Path(kernel.ROOT, "scripts/stick")
TOOLS = Path(kernel.ROOT, "tools/block")
OUT = Path(kernel.BUILD, NAME)
IMAGE = OUT / "plug-policy.img"

# No modules: all that the machines of others need is in the kernel.
KERNELS = {"patched": (NAME, kernel.TREE), "unpatched": (f"{NAME}-unpatched", kernel.BASE)}
for variant, source in KERNELS.values():
    kernel.VARIANTS.setdefault(variant, (
        source, "o-stick", [kernel.CONFIG, f"{HERE}/stick.config"], ["bzImage"]))
kernel.SEEDS.setdefault(f"{NAME}-unpatched", NAME)

SECTOR = 512
MIB = 1 << 20

# Types of partitions: UEFI's, one that all systems show, and GRUB's.
ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
DATA = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"
BIOS = "21686148-6449-6E6F-744E-656564454649"
# Where the first begins, as everywhere; room for the backup of the table. GRUB is
# between that and the table.
START = MIB
END = MIB
GRUB_START = 34 * SECTOR
GRUB = "/usr/lib/grub/i386-pc"
GRUB_CONFIG = "linux /EFI/BOOT/BOOTX64.EFI\ninitrd /EFI/BOOT/initrd.zst\nboot\n"
# FAT32 cannot be smaller; reports take less than a megabyte each.
SMALLEST = 48 * MIB


def program(name):
    """Where a program is that the stick, or its build, needs."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not found:
        raise kernel.BuildError(f"{name} is not installed; as root: sh scripts/setup.sh stick")
    return found


def run(name, *args, **how):
    return kernel.quiet([program(name), *map(str, args)], name, **how)


# --- the initramfs ---------------------------------------------------------

def contents():
    """The parts of the archive with all that the stick runs, but for its name"""
    boot = guest.boot
    programs = [program(name) for name in ("fio", "perf", "busybox")]
    for name in ("bin", "dev", "mnt", "proc", "sys", "tmp"):
        yield boot.cpio_entry(name, stat.S_IFDIR | 0o755)
    for name in sorted({*run("busybox", "--list").split()} - {"busybox"}):
        yield boot.cpio_entry(f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox")
    for pair in dict.fromkeys([
            *laboratory.python_files(), *guest.linked(*programs), *guest.into("/bin", *programs),
            *guest.into("/stick", TOOLS / "plugbench", TOOLS / "plugtools", HERE / "booted"),
            *(f"{kernel.image(one)}:/stick/{name}" for name, (one, _) in KERNELS.items()),
            f"{HERE}/init:/init"]):
        yield boot.cpio_tree(*pair.rpartition(":")[::2])
    # What the kernels were built from, for the records: the unpatched of its base
    commit = kernel.git("describe", "--always", "--dirty", "--tags")
    yield boot.cpio_entry("stick/commit", stat.S_IFREG | 0o644, commit.encode())


def initramfs(path):
    """Written to a file; returns the name of this very image, which no other has."""
    digest, plain = hashlib.sha256(), path.with_name("cpio")
    with open(plain, "wb") as out:
        for part in contents():
            digest.update(part)
            out.write(part)
        name = f"plug_policy-{digest.hexdigest()[:16]}"
        out.write(guest.boot.cpio_entry("stick/id", stat.S_IFREG | 0o644, name.encode()))
        out.write(guest.boot.cpio_entry("TRAILER!!!", 0))
    run("zstd", "-q", "-f", "-T0", "-9", "-o", path, plain)     # -15: nine times as long, for 1%
    return name


# --- the image -------------------------------------------------------------

def partition_table(path, partitions):
    """Write it, into a file that has its size already. partitions: (name, type, start,
    size) of each; the name is what the stick looks for."""
    table = f"label: gpt\nfirst-lba: {GRUB_START // SECTOR}\n" + "".join(
        f"start={start // SECTOR}, size={size // SECTOR}, type={kind}, name={name}\n"
        for name, kind, start, size in partitions)
    script = path.with_name("table")
    script.write_text(table, encoding="ascii")
    with open(script, "rb") as stdin:
        run("sfdisk", "-q", "--no-reread", "--no-tell-kernel", path, stdin=stdin)


def file_system(path, label, start, size, files):
    """A FAT32 in a partition, with {path there: path here}."""
    run("mkfs.vfat", f"--offset={start // SECTOR}", "-F", 32, "-s", 1, "-h", start // SECTOR,
        "-n", label, path, size // 1024)
    for directory in sorted({one for there in files for one in Path(there).parents[:-1]}):
        run("mmd", "-i", f"{path}@@{start}", f"::{directory}")
    for there, here in files.items():
        run("mcopy", "-i", f"{path}@@{start}", here, f"::{there}")


def write_grub(path, scratch):
    """What a BIOS starts, the first sector, and what that starts. Each has a place for
    the number of the sector where it goes on."""
    config, core = scratch / "grub.cfg", scratch / "core.img"
    config.write_text(GRUB_CONFIG, encoding="ascii")
    run("grub-mkimage", "-O", "i386-pc", "-d", GRUB, "-p", "(,gpt1)/", "-c", config, "-o", core,
        "biosdisk", "part_gpt", "fat", "linux")
    first, rest = bytearray(Path(GRUB, "boot.img").read_bytes()[:440]), bytearray(core.read_bytes())
    struct.pack_into("<Q", first, 0x5c, GRUB_START // SECTOR)
    struct.pack_into("<H", first, 0x66, 0x9090)     # some BIOSes do not tell a disk's number
    struct.pack_into("<Q", rest, 0x1f4, GRUB_START // SECTOR + 1)
    with open(path, "r+b") as image:
        image.write(first)
        image.seek(GRUB_START)
        image.write(rest)


def write_image(path, initrd, name):
    """The whole image"""
    number = initrd.with_name("id")
    number.write_text(f"{name}\n", encoding="ascii")
    # What UEFI looks for, and what CONFIG_CMDLINE in stick.config names
    first = {"/EFI/BOOT/BOOTX64.EFI": kernel.image(NAME), "/EFI/BOOT/initrd.zst": initrd}
    used = sum(os.path.getsize(one) for one in first.values()) + 4 * MIB
    size = max(SMALLEST, -(-used // MIB) * MIB)
    second = START + size
    with open(path, "wb") as image:
        image.truncate(second + SMALLEST + END)
    partition_table(path, [("plug_policy-boot", ESP, START, size), (name, DATA, second, SMALLEST),
                           ("plug_policy-bios", BIOS, GRUB_START, START - GRUB_START)])
    write_grub(path, initrd.parent)
    file_system(path, "PLUGBOOT", START, size, first)
    file_system(path, "PLUGREPORT", second, SMALLEST, {
        "/README.txt": HERE / "README.txt", "/plug-policy.conf": HERE / "plug-policy.conf",
        "/plug-policy.id": number})


def build(path):
    """Kernels, initramfs, image; the image appears when it is whole."""
    for name, _ in KERNELS.values():
        kernel.build(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with common.clock(lambda seconds: f"stick: packing, {int(seconds)} s"), \
            tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        image, initrd = Path(scratch, "image"), Path(scratch, "initrd.zst")
        write_image(image, initrd, initramfs(initrd))
        image.replace(path)


def main():
    common.no_arguments(__doc__)
    with common.program("stick.image", kernel.BuildError, OSError,
                        advice="; nothing is left behind"):
        with common.locked(f"{kernel.BUILD}/.lock-stick-image"):
            build(IMAGE)
        print(f"{os.path.relpath(IMAGE)}: {IMAGE.stat().st_size // 1000000} MB; INSTALL.md says "
              "how to write it to a stick")


if __name__ == "__main__":
    main()
