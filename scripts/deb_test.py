#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The packages of a flavour in a Debian 13 guest: installed, booted, used and
removed again. They are in build/deb, where make deb leaves them.

The first boot, of the harness's own kernel and initramfs, installs them in the
guest's file system. The second boots the kernel and the initrd that it finds
there, as a boot loader would, with systemd.
"""
import argparse
import os
import shutil
from pathlib import Path

from lab.qemu import guest
from scripts import common, kernel, packages
from scripts.checks import tap

SUITE = "trixie"
MIRROR = os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"
INCLUDE = "systemd-sysv,udev,kmod,e2fsprogs,python3,man-db,initramfs-tools,zstd"
CACHE = Path(kernel.CACHE, f"debian-{SUITE}")
OUT = Path(kernel.BUILD, "deb/test")
HERE = Path(kernel.ROOT, "scripts/packaging")

MAKE_ROOT = """set -e
mkdir root
tar -C root -xf root.tar --exclude='./dev/*'
mke2fs -q -t ext4 -d root root.ext4.new 1500M
rm -rf root root.tar
mv root.ext4.new root.ext4
"""

INSTALL = """\
mount -t ext4 /dev/vda /mnt || exit
for fs in proc sys dev run; do mount -o bind /$fs /mnt/$fs; done
cp -r /debtest /mnt/root
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
# by its path: busybox would take itself for "sh", and for find in it
chroot /mnt /bin/sh /root/debtest/list.sh / >/mnt/root/debtest/before || exit
[ -s /mnt/root/debtest/before ] || exit
chroot /mnt /bin/sh -c 'dpkg -i /root/debtest/*.deb' >&3 2>&1 || exit
for fs in proc sys dev run; do umount /mnt/$fs; done
umount /mnt
"""


def debian():
    """The root file system of a Debian 13; made once."""
    image, stamp = CACHE / "root.ext4", CACHE / "root.ext4.inputs"
    wanted = common.digest(INCLUDE, MAKE_ROOT)
    with common.locked(f"{CACHE}.lock"):
        if image.exists() and kernel.is_stamped(stamp, wanted):
            return image
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        kernel.quiet(["mmdebstrap", "--variant=minbase", f"--include={INCLUDE}",
                      "--customize-hook=echo guest >\"$1/etc/hostname\"",
                      "--customize-hook=rm -f \"$1/etc/resolv.conf\"",
                      SUITE, f"{CACHE}/root.tar", MIRROR], f"mmdebstrap {SUITE}")
        kernel.quiet(["fakeroot", "sh", "-c", MAKE_ROOT], "file system", cwd=CACHE,
                     env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"})
        stamp.write_text(wanted, encoding="ascii")
    return image


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
    return top, release


def take(image, release, name):
    path = OUT / name
    kernel.quiet(["/usr/sbin/debugfs", "-R", f"dump /boot/{name}-{release} {path}", str(image)],
                 "debugfs")
    if not path.stat().st_size:
        raise kernel.BuildError(f"the guest has no /boot/{name}-{release}")
    return str(path)


def install(image, top):
    kernel.build("patched")
    return guest.run("patched", str(OUT / "install"), INSTALL, name="install",
                     files=(f"{top}:/debtest",), devices=disk(image), disks=(),
                     accel="tcg", timeout=1800)


def use(image, release):
    """The second boot: Debian as it has been installed. Where NVMe is a module,
    its shadow doorbells cannot be kept off, and need not be for so little."""
    return guest.boot.boot(guest.boot.Guest(
        name="use", kernel=take(image, release, "vmlinuz"),
        initramfs=take(image, release, "initrd.img"),
        system_map=take(image, release, "System.map"),
        job=str(HERE / "deb_test_guest.sh"), out=str(OUT / "use"),
        devices=disk(image), accel="tcg", timeout=1800, mem=1536, dbcs="on",
        append="root=/dev/vda rw systemd.run=/root/debtest/guest.sh "
        "systemd.run_success_action=poweroff systemd.run_failure_action=poweroff"))


def boots(report, debs):
    image = OUT / "root.ext4"
    OUT.mkdir(parents=True, exist_ok=True)
    kernel.quiet(["cp", "--sparse=always", str(debian()), str(image)], "cp")
    top, release = payload(debs)
    with common.clock(lambda seconds: f"Debian 13: install, {int(seconds)} s"):
        result = install(image, top)
    if not report.check(result.status == "pass", "the packages are installed",
                        "\n".join([*result.lines[-20:], result.reason])):
        return
    with common.clock(lambda seconds: f"Debian 13: boot and use, {int(seconds)} s"):
        result = use(image, release)
    report.guest("Debian 13", result)


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
        boots(report, debs)
    report.exit()


if __name__ == "__main__":
    main()
