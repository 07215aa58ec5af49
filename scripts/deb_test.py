#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The packages of a flavour in a Debian 13 guest: installed, booted, used and
removed again. They are in build/deb, where make deb leaves them.

The first boot, of the harness's own kernel and initramfs, installs them in the
guest's file system. The second boots the kernel and the initrd that it finds
there, as a boot loader would, with systemd.
"""
import argparse
import glob
import hashlib
import os
import shutil

from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts import packages
from scripts.checks import tap
from scripts.packaging import tools_package

SUITE = "trixie"
MIRROR = os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian"
INCLUDE = ("systemd-sysv,udev,kmod,e2fsprogs,python3,man-db,initramfs-tools,"
           "zstd")
SIZE = "1500M"
CACHE = os.path.join(kernel.CACHE, "debian-" + SUITE)
OUT = os.path.join(kernel.BUILD, "deb/test")
HERE = os.path.join(kernel.ROOT, "scripts/packaging")

MAKE_ROOT = """set -e
mkdir root
tar -C root -xf root.tar --exclude='./dev/*'
mke2fs -q -t ext4 -d root root.ext4.new {size}
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


def slow(command, what, **how):
    """Run what takes a while; its output is shown only if it fails."""
    lines = []
    with common.clock(lambda seconds: "%s: %d s" % (what, seconds)):
        if common.run(command, lines.append, **how):
            raise kernel.BuildError("%s failed:\n%s"
                                    % (what, "".join(lines[-30:])))


def debian():
    """The root file system of a Debian 13; made once."""
    image = os.path.join(CACHE, "root.ext4")
    script = MAKE_ROOT.format(size=SIZE)
    wanted = hashlib.sha256((INCLUDE + script).encode()).hexdigest()
    stamp = image + ".inputs"
    with common.locked(CACHE + ".lock"):
        if os.path.exists(image) and guest.boot.read_text(stamp) == wanted:
            return image
        shutil.rmtree(CACHE, ignore_errors=True)
        os.makedirs(CACHE)
        slow(["mmdebstrap", "--variant=minbase", "--include=" + INCLUDE,
              "--customize-hook=echo guest >\"$1/etc/hostname\"",
              "--customize-hook=rm -f \"$1/etc/resolv.conf\"",
              SUITE, CACHE + "/root.tar", MIRROR], "mmdebstrap " + SUITE)
        slow(["fakeroot", "sh", "-c", script], "file system", cwd=CACHE,
             env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        guest.boot.write_text(stamp, wanted)
    return image


def disk(path):
    """QEMU's arguments for the root file system. Its cache is the host's, as
    this guest is thrown away."""
    return ("-drive", "file=%s,format=raw,if=none,id=root,cache=unsafe"
            % guest.boot.quote(path), "-device", "virtio-blk-pci,drive=root")


def payload(debs):
    """A directory for the guest: packages, their names, and scripts."""
    top = os.path.join(OUT, "debtest")
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    names = []
    for deb in debs:
        shutil.copy(deb, top)
        names.append(field(deb, "Package"))
    release = names[-1].replace("linux-image-", "")
    guest.boot.write_text(top + "/packages", "\n".join(names) + "\n")
    guest.boot.write_text(top + "/release", release + "\n")
    shutil.copy(HERE + "/deb_test_list.sh", top + "/list.sh")
    shutil.copy(HERE + "/deb_test_guest.sh", top + "/guest.sh")
    os.chmod(top + "/guest.sh", 0o755)
    return top, release


def field(deb, name):
    """Of a package."""
    return kernel.quiet(["dpkg-deb", "-f", deb, name], "dpkg-deb").strip()


def take(image, release, name):
    """A file of the guest's /boot, as it was installed there."""
    path = os.path.join(OUT, name)
    kernel.quiet(["/usr/sbin/debugfs", "-R", "dump /boot/%s-%s %s" % (
        name, release, path), image], "debugfs")
    if not os.path.getsize(path):
        raise kernel.BuildError("the guest has no /boot/%s-%s"
                                % (name, release))
    return path


def install(image, top):
    """The first boot."""
    kernel.build("patched")
    return guest.run(
        "patched", os.path.join(OUT, "install"), INSTALL, name="install",
        files=(top + ":/debtest",), devices=disk(image), disks=(),
        accel="tcg", timeout=1800)


def use(image, release):
    """The second boot: Debian as it has been installed. Where NVMe is a module,
    its shadow doorbells cannot be kept off, and need not be for so little."""
    return guest.boot.boot(guest.boot.Guest(
        name="use", kernel=take(image, release, "vmlinuz"),
        initramfs=take(image, release, "initrd.img"),
        system_map=take(image, release, "System.map"),
        job=HERE + "/deb_test_guest.sh", out=os.path.join(OUT, "use"),
        devices=disk(image), accel="tcg", timeout=1800, mem=1536, dbcs="on",
        append="root=/dev/vda rw systemd.run=/root/debtest/guest.sh "
        "systemd.run_success_action=poweroff "
        "systemd.run_failure_action=poweroff"))


def boots(report, debs):
    """Both boots of a fresh Debian, and what they report."""
    image = os.path.join(OUT, "root.ext4")
    os.makedirs(OUT, exist_ok=True)
    kernel.quiet(["cp", "--sparse=always", debian(), image], "cp")
    top, release = payload(debs)
    with common.clock(lambda seconds: "Debian 13: install, %d s" % seconds):
        result = install(image, top)
    if not report.check(result.status == "pass", "the packages are installed",
                        "\n".join([*result.lines[-20:], result.reason])):
        return
    with common.clock(lambda seconds: "Debian 13: boot and use, %d s"
                      % seconds):
        result = use(image, release)
    found = tap.results(result.lines)
    for name, status in found:
        report.take(name, status, "", details(result.lines, name))
    report.check(result.status == "pass" and found, "the guest",
                 "%s; see %s" % (result.reason, result.log))


def details(lines, name):
    """What the guest said of a result, which comes before it."""
    end = next(i for i, line in enumerate(lines) if line.endswith(" " + name))
    start = end
    while start and lines[start - 1].startswith("# "):
        start -= 1
    return "\n".join(line[2:] for line in lines[start:end])


def find(flavour):
    """The packages of a kernel as they are in build/deb, the image last; not
    those of an older point release, which may lie there, too."""
    try:
        release = flavour.release()
        made = [glob.glob("%s/deb/linux-%s-%s_*.deb" % (
            kernel.BUILD, what, release))[0] for what in ("headers", "image")]
    except (kernel.BuildError, IndexError):
        raise kernel.BuildError(
            "build/deb has no kernel of the flavour %s: make deb builds it"
            % flavour.name) from None
    return made


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--flavour", default="lean", metavar="lean|cloud|FILE",
                        help="which kernel, as of packages.py [lean]")
    flavour = parser.parse_args().flavour
    report = tap.Report()
    with report.must("packages in a Debian 13 guest", *guest.ERRORS):
        debs = [tools_package.build("deb"),
                *find(packages.Flavour(flavour, "deb"))]
        if packages.lint(debs):
            report.check(True, "lintian finds no errors")
        else:
            report.skip("lintian finds no errors", "no lintian")
        boots(report, debs)
    report.exit()


if __name__ == "__main__":
    main()
