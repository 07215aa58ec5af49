# SPDX-License-Identifier: GPL-2.0
"""What a guest under torture has in it besides the usual initramfs."""
import os
import shutil
from pathlib import Path

from lab.qemu import guest
from scripts import kernel
from scripts.kbuild import arch

HERE = Path(__file__).parent
OUT = os.path.join(kernel.BUILD, "torture")
ROOT = Path(OUT) / "root"

# What a kind that needs it skips without: Debian's package of it
PROGRAMS = {
    "mdadm": "mdadm", "dmsetup": "dmsetup", "make-bcache": "bcache-tools",
    "mkfs.ext4": "e2fsprogs", "e2fsck": "e2fsprogs", "mkfs.xfs": "xfsprogs",
    "xfs_repair": "xfsprogs", "xfs_db": "xfsprogs", "xfs_io": "xfsprogs",
}


def put(src, dst):
    """A file of the host's into the guest's root."""
    path = Path(f"{ROOT}{dst}")
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(src, path)
    path.chmod(path.stat().st_mode | 0o200)


def add_programs():
    """Those that are there, with their libraries; says which are not."""
    for name, package in PROGRAMS.items():
        # also where only root looks
        path = arch.find(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if not path:
            print(f"torture: no {name} here (Debian: {package}): what needs it "
                  "is skipped", flush=True)
            continue
        put(path, f"/bin/{name}")
        for library in guest.libraries(path)[0]:
            put(library, arch.in_guest(library))


def compile_program(sources, name, *options):
    """A static program of our own, for /bin."""
    path = ROOT / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    guest.compile_static(path, "-Wall", *options, *sources)
    kernel.quiet([arch.CROSS + "strip", str(path)], f"strip {name}")


def add_kublk():
    """The kernel tree's ublk server. It wants the tree's headers, and a newer
    liburing than Debian 12 has; without it the stack ublk is skipped."""
    headers = os.path.join(OUT, "headers")
    room = Path(kernel.TREE) / "tools/testing/selftests/ublk"
    sources = sorted(set(room.glob("*.c")) - {room / "metadata_size.c"})
    if not sources:
        print("torture: ublk will be skipped: this kernel's tree has no "
              "server for it", flush=True)
        return
    try:
        if not os.path.isdir(f"{headers}/usr/include/linux"):
            kernel.quiet(["make", "-s", "-C", kernel.TREE, f"O={headers}",
                          *arch.MAKE, f"INSTALL_HDR_PATH={headers}/usr",
                          "headers_install"], "headers_install")
        # What liburing lacks, its batches alone would call: -b, which is not used.
        compile_program(sources, "kublk", "-w", "-D_GNU_SOURCE",
                        "-isystem", f"{headers}/usr/include", "-include",
                        "linux/io_uring.h",
                        "-Wl,--unresolved-symbols=ignore-all")
    except kernel.BuildError as error:
        print(f"torture: ublk will be skipped: {error}", flush=True)


def build():
    """Fills the root directory anew. /torture stands for the selftests'
    directory, as lib.sh wants it."""
    shutil.rmtree(ROOT, ignore_errors=True)
    add_programs()
    tests = Path(kernel.SELFTESTS)
    for source in (*HERE.glob("*.c"), tests / "submit_list.c",
                   tests / "as_nobody.c"):
        compile_program([source], source.stem)
    add_kublk()
    put(os.path.join(kernel.TREE,
                     "tools/testing/selftests/kselftest/ktap_helpers.sh"),
        "/kselftest/ktap_helpers.sh")
    for path in (*kernel.selftest_libraries(), *HERE.glob("*.sh"),
                 *HERE.glob("*.awk")):
        put(path, f"/torture/{os.path.basename(path)}")


def files(variant):
    """SRC:DST of all that a guest with this kernel gets."""
    modules = kernel.model(variant)
    modules += Path(kernel.output(variant)).glob("drivers/scsi/scsi_debug.ko")
    return (f"{ROOT}:/", *guest.into("/modules", *modules))
