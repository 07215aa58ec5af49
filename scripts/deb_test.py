# SPDX-License-Identifier: GPL-2.0
"""The packages of a flavour in a Debian 13 guest: installed, booted, used and
removed again. mmdebstrap installs them, from build/deb; the guest boots the kernel and
the initrd that are there then, as a boot loader would, with systemd.
"""
import argparse
import os
import shlex
import shutil
from pathlib import Path

from lab.qemu import guest
from scripts import common, kernel, packages
from scripts.checks import tap

SUITE = "trixie"
MIRROR = os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"
INCLUDE = "systemd-sysv,udev,kmod,e2fsprogs,python3,man-db,initramfs-tools,zstd"
OUT = Path(kernel.BUILD, "deb/test")
HERE = Path(kernel.ROOT, "scripts/packaging")

# In the Debian, $1, that is made: the list before the packages are there, and these.
# The host's swap is not the guest's.
INSTALL = ('echo guest >"$1/etc/hostname"', 'rm -f "$1/etc/resolv.conf"',
           'echo RESUME=none >"$1/etc/initramfs-tools/conf.d/resume"',
           f"copy-in {shlex.quote(str(OUT / 'debtest'))} /root",
           'chroot "$1" sh /root/debtest/list.sh / >"$1/root/debtest/before"',
           'chroot "$1" sh -c "dpkg -i /root/debtest/*.deb"',
           f"copy-out /boot {shlex.quote(str(OUT))}")

MAKE_IMAGE = """set -e
rm -rf root root.ext4
mkdir root
tar -C root -xf root.tar --exclude='./dev/*'
mke2fs -q -t ext4 -d root root.ext4 1500M
rm -rf root root.tar
"""


def install():
    """The root file system of a Debian 13 with the packages, and boot/ of it beside it."""
    shutil.rmtree(OUT / "boot", ignore_errors=True)
    kernel.quiet(["mmdebstrap", "--variant=minbase", f"--include={INCLUDE}",
                  *(f"--customize-hook={hook}" for hook in INSTALL),
                  SUITE, f"{OUT}/root.tar", MIRROR], f"mmdebstrap {SUITE}")
    kernel.quiet(["fakeroot", "sh", "-c", MAKE_IMAGE], "file system", cwd=OUT,
                 env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"})
    return OUT / "root.ext4"


def disk(path):
    """QEMU's arguments for the root file system. Its cache is the host's, as
    this guest is thrown away."""
    return ("-drive", f"file={guest.boot.quote(str(path))},format=raw,if=none,id=root,"
            "cache=unsafe", "-device", "virtio-blk-pci,drive=root")


def payload(debs):
    top = OUT / "debtest"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    for deb in debs:
        shutil.copy(deb, top)
    names = [kernel.quiet(["dpkg-deb", "-f", deb, "Package"], "dpkg-deb").strip() for deb in debs]
    release = names[-1].replace("linux-image-", "")
    (top / "packages").write_text("\n".join([*names, ""]), encoding="ascii")
    (top / "release").write_text(f"{release}\n", encoding="ascii")
    shutil.copy(HERE / "deb_test_list.sh", top / "list.sh")
    shutil.copy(HERE / "deb_test_guest.sh", top / "guest.sh")
    (top / "guest.sh").chmod(0o755)
    return release


def use(image, release):
    """Boot Debian as it has been installed. Where NVMe is a module, its shadow
    doorbells cannot be kept off, and need not be for so little."""
    return guest.boot.boot(guest.boot.Guest(
        name="use", kernel=f"{OUT}/boot/vmlinuz-{release}",
        initramfs=f"{OUT}/boot/initrd.img-{release}",
        job=str(HERE / "deb_test_guest.sh"), out=str(OUT / "use"),
        devices=disk(image), accel="tcg", timeout=1800, mem=1536, dbcs="on",
        append="root=/dev/vda rw systemd.run=/root/debtest/guest.sh "
        "systemd.run_success_action=poweroff systemd.run_failure_action=poweroff"))


def find(flavour):
    """The packages of a kernel as they are in build/deb, the image last; not
    those of an older point release, which may lie there, too."""
    try:
        release = flavour.release()
        return [str(next(Path(kernel.BUILD, "deb").glob(f"linux-{what}-{release}_*.deb")))
                for what in ("headers", "image")]
    except (kernel.BuildError, StopIteration):
        raise kernel.BuildError(f"build/deb has no kernel of the flavour {flavour.name}: "
                                "make deb builds it") from None


def main():
    parser = argparse.ArgumentParser("deb_test.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--flavour", **packages.FLAVOUR_HELP)
    flavour = parser.parse_args().flavour
    report = tap.Report()
    with report.must("packages in a Debian 13 guest", *guest.ERRORS):
        debs = [packages.tools("deb"), *find(packages.Flavour(flavour, "deb"))]
        release = payload(debs)
        with report.must("the packages are installed", kernel.BuildError):
            image = install()
        report.check(True, "the packages are installed")
        with common.clock(lambda seconds: f"Debian 13: boot and use, {int(seconds)} s"):
            result = use(image, release)
        report.guest("Debian 13", result)
    report.exit()


if __name__ == "__main__":
    main()
