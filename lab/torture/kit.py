# SPDX-License-Identifier: GPL-2.0
"""What a guest under torture has in it besides the usual initramfs."""
import glob
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))

from scripts.kbuild import arch
from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts.checks import tap
from lab.qemu import boot

OUT = os.path.join(kernel.BUILD, "torture")
ROOT = os.path.join(OUT, "root")

# What a kind that needs it skips without: (program, Debian's package)
PROGRAMS = (
    ("mdadm", "mdadm"), ("dmsetup", "dmsetup"),
    ("make-bcache", "bcache-tools"), ("mkfs.ext4", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"), ("mkfs.xfs", "xfsprogs"),
    ("xfs_repair", "xfsprogs"), ("xfs_db", "xfsprogs"),
)


def find_program(name):
    """Where the host has it, for guests; also where only root looks."""
    return arch.find(name, path=os.environ.get("PATH", "")
                     + ":/usr/sbin:/sbin:/usr/bin:/bin")


def put(src, dst):
    """A file of the host's into the guest's root."""
    path = ROOT + dst
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(src, path)
    os.chmod(path, os.stat(path).st_mode | 0o200)


def add_programs():
    """Those that are there, with their libraries; says which are not."""
    for name, package in PROGRAMS:
        path = find_program(name)
        if not path:
            print("torture: no %s here (Debian: %s): what needs it is skipped"
                  % (name, package), flush=True)
            continue
        put(path, "/bin/" + name)
        for library in guest.libraries(path)[0]:
            put(library, arch.in_guest(library))


def compile_program(source, name, *options):
    """A static program of our own, for /bin."""
    path = os.path.join(ROOT, "bin", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    sources = [source] if isinstance(source, str) else source
    kernel.quiet([*arch.gcc(), "-O2", "-Wall", "-static", *options, "-o", path,
                  *sources, "-luring", "-lpthread"], name)
    kernel.quiet([arch.CROSS + "strip", path], "strip " + name)


def add_own_programs():
    """Each *.c of this room, and those of the selftests."""
    for source in glob.glob(os.path.join(HERE, "*.c")):
        compile_program(source, os.path.basename(source)[:-2])
    for name in ("submit_list", "as_nobody"):
        compile_program(os.path.join(kernel.SELFTESTS, name + ".c"), name)


def add_kublk():
    """The kernel tree's ublk server. It wants the tree's headers, and a newer
    liburing than Debian 12 has; without it the stack ublk is skipped."""
    headers = os.path.join(OUT, "headers")
    room = os.path.join(kernel.TREE, "tools/testing/selftests/ublk")
    sources = sorted(name for name in glob.glob(os.path.join(room, "*.c"))
                     if not name.endswith("metadata_size.c"))
    if not sources:
        print("torture: ublk will be skipped: this kernel's tree has no "
              "server for it", flush=True)
        return
    try:
        if not os.path.isdir(headers + "/usr/include/linux"):
            kernel.quiet(["make", "-s", "-C", kernel.TREE, "O=" + headers,
                          *arch.MAKE,
                          "INSTALL_HDR_PATH=" + headers + "/usr",
                          "headers_install"], "headers_install")
        compile_program(sources, "kublk", "-w", "-D_GNU_SOURCE",
                        "-isystem", headers + "/usr/include", "-include",
                        os.path.join(HERE, "kublk_compat.h"))
    except kernel.BuildError as error:
        print("torture: ublk will be skipped: %s" % error, flush=True)


def add_scripts():
    """As lib.sh wants them: /torture stands for the selftests' directory."""
    for path in kernel.selftest_libraries():
        put(path, "/torture/" + os.path.basename(path))
    put(os.path.join(kernel.TREE,
                     "tools/testing/selftests/kselftest/ktap_helpers.sh"),
        "/kselftest/ktap_helpers.sh")
    for path in sorted(glob.glob(os.path.join(HERE, "*.sh"))
                       + glob.glob(os.path.join(HERE, "*.awk"))):
        put(path, "/torture/" + os.path.basename(path))


def build():
    """Fills the root directory anew; returns it."""
    shutil.rmtree(ROOT, ignore_errors=True)
    add_programs()
    add_own_programs()
    add_kublk()
    add_scripts()
    return ROOT


def files(variant):
    """SRC:DST of all that a guest with this kernel gets."""
    modules = kernel.model(variant) + glob.glob(os.path.join(
        kernel.output(variant), "drivers/scsi/scsi_debug.ko"))
    return (ROOT + ":/", *guest.into("/modules", *modules))


__all__ = ["arch", "boot", "build", "common", "files", "guest", "kernel", "tap"]
