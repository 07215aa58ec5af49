#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build build/stick/plug-policy.img, a USB stick that compares the policies.

It boots on PCs with UEFI, without Secure Boot. The first of its partitions is
for the firmware: the kernel and the initramfs. The second is for people, since
some systems hide the first: what to do, how to choose in advance, the reports.
"""
import argparse
import glob
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import uuid

from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts.checks import laboratory

NAME = "stick"
HERE = os.path.join(kernel.ROOT, "scripts/stick")
OUT = os.path.join(kernel.BUILD, NAME)
IMAGE = os.path.join(OUT, "plug-policy.img")

# No modules: all that the machines of others need is in the kernel.
kernel.VARIANTS.setdefault(NAME, (
    kernel.TREE, "o-stick", [kernel.CONFIG,
                             os.path.join(HERE, "stick.config")], ["bzImage"]))

# What must be installed to build the image: {program: Debian's package}
PROGRAMS = {"busybox": "busybox-static", "fio": "fio", "perf": "linux-perf",
            "zstd": "zstd", "sfdisk": "fdisk", "mkfs.vfat": "dosfstools",
            "fsck.vfat": "dosfstools", "mcopy": "mtools", "mmd": "mtools"}
EMPTY = ["dev/", "mnt/", "proc/", "state/", "sys/", "tmp/"]
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


# --- the initramfs ---------------------------------------------------------

def program(name):
    """Where a program is that the stick, or its build, needs."""
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise StickError("%s is not installed (Debian: apt install %s)"
                         % (name, PROGRAMS[name]))
    return found


def contents():
    """{path on the stick: file of this machine} of all but links."""
    tools = os.path.join(kernel.ROOT, "tools/block")
    programs = [program(name) for name in ("fio", "perf")]
    found, lacking = guest.libraries(*programs)
    if lacking:
        raise StickError("libraries are missing here: %s" % ", ".join(lacking))
    pairs = [pair.rpartition(":")[::2] for pair in laboratory.python_files()]
    files = {there: here for here, there in pairs}
    files.update({path: path for path in found})
    files.update({"/bin/" + os.path.basename(path): path for path in programs})
    files["/bin/busybox"] = program("busybox")
    for path in (*glob.glob(HERE + "/*.sh"), HERE + "/report.py",
                 tools + "/plugbench"):
        files["/stick/" + os.path.basename(path)] = path
    for path in glob.glob(tools + "/plugtools/**/*.py", recursive=True):
        files["/stick/" + os.path.relpath(path, tools)] = path
    files["/init"] = os.path.join(HERE, "init")
    return files


def applets():
    """The names under which busybox is known."""
    listed = kernel.quiet([program("busybox"), "--list"], "busybox --list")
    return [name for name in listed.split() if name != "busybox"]


def parents(paths):
    """All directories that files need, outermost first."""
    found = set()
    for path in paths:
        parts = path.lstrip("/").split("/")[:-1]
        found.update("/".join(parts[:n + 1]) for n in range(len(parts)))
    return sorted(found)


def archive(files, links, texts):
    """A cpio archive. files: {path there: path here}; links: {path: target};
    texts: {path: bytes}"""
    entry = guest.boot.cpio_entry
    yield from (entry(path, stat.S_IFDIR | 0o755)
                for path in parents([*files, *links, *texts, *EMPTY]))
    for path, source in sorted(files.items()):
        with open(source, "rb") as file:
            mode = os.stat(source).st_mode & 0o755 | 0o644
            yield entry(path, stat.S_IFREG | mode, file.read())
    yield from (entry(path, stat.S_IFLNK | 0o777, target.encode())
                for path, target in sorted(links.items()))
    yield from (entry(path, stat.S_IFREG | 0o644, data)
                for path, data in sorted(texts.items()))
    yield entry("TRAILER!!!", 0)


def commit():
    """What the kernel was built from, for the records."""
    return kernel.quiet(["git", "-C", kernel.TREE, "describe", "--always",
                         "--dirty", "--tags"], "git describe").strip()


def identity(files):
    """A name that no other image has: of the kernel and of all files."""
    digest = hashlib.sha256()
    for path in (kernel.image(NAME), *sorted(files.values())):
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def compress(chunks, path):
    """Through zstd into a file."""
    with subprocess.Popen(
            [program("zstd"), "-q", "-f", "-T0", LEVEL, "-o", path],
            stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            for chunk in chunks:
                process.stdin.write(chunk)
            process.stdin.close()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise StickError("zstd failed")


# --- the image -------------------------------------------------------------

def sized(size):
    """Up to a whole number of MiB."""
    return -(-size // MIB) * MIB


def partition(name, kind, start, size, digest):
    """A line for sfdisk; the name of a partition is what init looks for."""
    return "start=%d, size=%d, type=%s, name=%s, uuid=%s\n" % (
        start // SECTOR, size // SECTOR, kind, name,
        uuid.uuid5(uuid.UUID(digest[:32]), name))


def partition_table(path, partitions, digest):
    """Write it, into a file that has its size already."""
    table = "label: gpt\nlabel-id: %s\n" % uuid.UUID(digest[32:])
    table += "".join(partition(*one, digest) for one in partitions)
    done = subprocess.run(
        [program("sfdisk"), "-q", "--no-reread", "--no-tell-kernel", path],
        input=table, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode:
        raise StickError("sfdisk failed:\n%s" % done.stdout)


def file_system(path, label, start, size, number):
    """An empty FAT32 in a partition."""
    kernel.quiet([program("mkfs.vfat"), "--offset=%d" % (start // SECTOR),
                  "-F", "32", "-s", "1", "-h", str(start // SECTOR),
                  "-n", label, "-i", number, path, str(size // 1024)],
                 "mkfs.vfat")


def copy(path, start, files):
    """{path in the file system: path here} into a partition."""
    where = "%s@@%d" % (path, start)
    for directory in parents(files):
        kernel.quiet([program("mmd"), "-i", where, "::/" + directory], "mmd")
    for there, here in files.items():
        kernel.quiet([program("mcopy"), "-i", where, here, "::" + there],
                     "mcopy")


def firmware_files(initrd):
    """Of the first partition: what firmware looks for, and what
    CONFIG_CMDLINE in stick.config names."""
    return {"/EFI/BOOT/BOOTX64.EFI": kernel.image(NAME),
            "/EFI/BOOT/initrd.zst": initrd}


def people_files(number):
    """Of the second partition."""
    return {"/README.txt": os.path.join(HERE, "README.txt"),
            "/plug-policy.conf": os.path.join(HERE, "plug-policy.conf"),
            "/plug-policy.id": number}


def write_image(path, scratch, digest):
    """The whole image, from what is in the scratch directory."""
    name = "plug_policy-" + digest[:16]
    first = firmware_files(os.path.join(scratch, "initrd.zst"))
    used = sum(os.path.getsize(one) for one in first.values())
    size = max(SMALLEST, sized(used + 4 * MIB))
    second = START + size
    with open(path, "wb") as image:
        image.truncate(second + SMALLEST + END)
    partition_table(path, [("plug_policy-boot", ESP, START, size),
                           (name, DATA, second, SMALLEST)], digest)
    file_system(path, "PLUGBOOT", START, size, digest[:8])
    file_system(path, "PLUGREPORT", second, SMALLEST, digest[8:16])
    copy(path, START, first)
    copy(path, second, people_files(os.path.join(scratch, "id")))


def build(path):
    """Kernel, initramfs, image; the image appears when it is whole."""
    for name in PROGRAMS:
        program(name)
    kernel.build(NAME)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with common.clock(lambda seconds: "stick: packing, %d s" % seconds), \
            tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as scratch:
        files = contents()
        digest = identity(files)
        number = ("plug_policy-%s\n" % digest[:16]).encode()
        with open(os.path.join(scratch, "id"), "wb") as file:
            file.write(number)
        links = {"/bin/" + name: "busybox" for name in applets()
                 if "/bin/" + name not in files}
        texts = {"/stick/id": number,
                 "/stick/commit": (commit() + "\n").encode()}
        compress(archive(files, links, texts),
                 os.path.join(scratch, "initrd.zst"))
        write_image(os.path.join(scratch, "image"), scratch, digest)
        os.replace(os.path.join(scratch, "image"), path)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="INSTALL.md says how to write the image to "
        "a stick, what it will not touch, and where to send the report.",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", default=IMAGE, metavar="FILE",
                        help="where it goes [build/stick/plug-policy.img]")
    path = os.path.abspath(parser.parse_args().image)
    with common.program("stick.py", kernel.BuildError, OSError,
                        advice="; nothing is left behind"):
        with common.locked(os.path.join(kernel.BUILD, ".lock-stick-image")):
            build(path)
        print("%s: %d MB; INSTALL.md says how to write it to a stick" % (
            os.path.relpath(path), os.path.getsize(path) // 1000000))


if __name__ == "__main__":
    sys.exit(main())
