#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build build/stick/plug-policy.img, a USB stick that compares the policies.

It boots on PCs with UEFI, without Secure Boot. The first of its partitions is
for the firmware: the kernel and the initramfs. The second is for people, since
some systems hide the first: what to do, how to choose in advance, the reports.
"""
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import uuid
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
kernel.VARIANTS.setdefault(NAME, (
    kernel.TREE, "o-stick", [kernel.CONFIG, f"{HERE}/stick.config"], ["bzImage"]))

EMPTY = ["dev", "mnt", "proc", "sys", "tmp"]
SECTOR = 512
MIB = 1 << 20

# Types of partitions: the firmware's, and one that all systems show.
ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
DATA = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"
# Where the first begins, as everywhere; room for the backup of the table.
START = MIB
END = MIB
# FAT32 cannot be smaller; reports take less than a megabyte each.
SMALLEST = 48 * MIB
LEVEL = "-9"                    # -15 takes nine times as long, for 1%


class StickError(kernel.BuildError):
    """The image cannot be built; the message says why."""


def program(name):
    """Where a program is that the stick, or its build, needs."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not found:
        raise StickError(f"{name} is not installed; as root: sh scripts/setup.sh stick")
    return found


def run(name, *args):
    return kernel.quiet([program(name), *map(str, args)], name)


# --- the initramfs ---------------------------------------------------------

def contents():
    """{path on the stick: file of this machine} of all but links."""
    programs = [program(name) for name in ("fio", "perf")]
    found, lacking = guest.libraries(*programs)
    if lacking:
        raise StickError(f"libraries are missing here: {', '.join(lacking)}")
    files = {there: here for here, _, there in (
        pair.rpartition(":") for pair in laboratory.python_files())}
    files.update({path: path for path in found})
    files.update({f"/bin/{os.path.basename(path)}": path for path in programs})
    for top, paths in ((HERE, HERE.glob("booted/*.py")),
                       (TOOLS, [*TOOLS.glob("plugbench*"), *TOOLS.glob("plugtools/**/*.py")])):
        files.update({f"/stick/{path.relative_to(top)}": str(path) for path in paths})
    return {**files, "/bin/busybox": program("busybox"), "/init": f"{HERE}/init"}


def archive(files, links):
    """A cpio archive. files: {path there: path here}; links: {path: target}"""
    boot = guest.boot
    yield from (boot.cpio_entry(path, stat.S_IFDIR | 0o755) for path in EMPTY)
    yield from (boot.cpio_file(here, there) for there, here in sorted(files.items()))
    yield from (boot.cpio_entry(path, stat.S_IFLNK | 0o777, target.encode())
                for path, target in sorted(links.items()))
    yield boot.cpio_entry("TRAILER!!!", 0)


def identity(files):
    """A name that no other image has: of the kernel and of all files."""
    digest = hashlib.sha256()
    for path in (kernel.image(NAME), *sorted(files.values())):
        digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()


def initramfs(files, number, path):
    """All that the stick runs. number: a file with the name of this very image"""
    scratch = path.parent
    # What the kernel was built from, for the records
    commit = scratch / "commit"
    commit.write_text(kernel.git("describe", "--always", "--dirty", "--tags"), encoding="ascii")
    files = {**files, "/stick/id": number, "/stick/commit": commit}
    links = {f"/bin/{name}": "busybox" for name in run("busybox", "--list").split()
             if f"/bin/{name}" not in files}
    with open(scratch / "cpio", "wb") as out:
        out.writelines(archive(files, links))
    run("zstd", "-q", "-f", "-T0", LEVEL, "-o", path, scratch / "cpio")


# --- the image -------------------------------------------------------------

def partition_table(path, partitions, digest):
    """Write it, into a file that has its size already. partitions: (name, type, start,
    size) of each; the name is what the stick looks for."""
    table = f"label: gpt\nlabel-id: {uuid.UUID(digest[32:])}\n" + "".join(
        f"start={start // SECTOR}, size={size // SECTOR}, type={kind}, name={name}, "
        f"uuid={uuid.uuid5(uuid.UUID(digest[:32]), name)}\n"
        for name, kind, start, size in partitions)
    done = subprocess.run([program("sfdisk"), "-q", "--no-reread", "--no-tell-kernel", path],
                          input=table, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise StickError(f"sfdisk failed:\n{done.stdout}")


def file_system(path, label, number, start, size, files):
    """A FAT32 in a partition, with {path there: path here}."""
    run("mkfs.vfat", f"--offset={start // SECTOR}", "-F", 32, "-s", 1, "-h", start // SECTOR,
        "-n", label, "-i", number, path, size // 1024)
    for directory in sorted({one for there in files for one in Path(there).parents[:-1]}):
        run("mmd", "-i", f"{path}@@{start}", f"::{directory}")
    for there, here in files.items():
        run("mcopy", "-i", f"{path}@@{start}", here, f"::{there}")


def write_image(path, initrd, number, digest):
    """The whole image. number: a file with its name"""
    name = number.read_text(encoding="ascii").strip()
    # What firmware looks for, and what CONFIG_CMDLINE in stick.config names
    first = {"/EFI/BOOT/BOOTX64.EFI": kernel.image(NAME), "/EFI/BOOT/initrd.zst": initrd}
    used = sum(os.path.getsize(one) for one in first.values()) + 4 * MIB
    size = max(SMALLEST, -(-used // MIB) * MIB)
    second = START + size
    with open(path, "wb") as image:
        image.truncate(second + SMALLEST + END)
    partition_table(path, [("plug_policy-boot", ESP, START, size),
                           (name, DATA, second, SMALLEST)], digest)
    file_system(path, "PLUGBOOT", digest[:8], START, size, first)
    file_system(path, "PLUGREPORT", digest[8:16], second, SMALLEST, {
        "/README.txt": HERE / "README.txt", "/plug-policy.conf": HERE / "plug-policy.conf",
        "/plug-policy.id": number})


def build(path):
    """Kernel, initramfs, image; the image appears when it is whole."""
    kernel.build(NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    with common.clock(lambda seconds: f"stick: packing, {int(seconds)} s"), \
            tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        image, initrd, number = (Path(scratch, name) for name in ("image", "initrd.zst", "id"))
        files = contents()
        digest = identity(files)
        number.write_text(f"plug_policy-{digest[:16]}\n", encoding="ascii")
        initramfs(files, number, initrd)
        write_image(image, initrd, number, digest)
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
