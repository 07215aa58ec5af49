#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plugroll in guests: a mode that does harm trips its guard under a live load,
and a mode that is kept reaches paths of NVMe multipath that come later.

The emulated disk's doorbells are expensive, as each leaves the guest; so
"never", which rings one per request, does harm.
"""
import argparse
import os
import socket
import sys
import tempfile

from lab.qemu import guest
from scripts import kernel
from scripts.checks import laboratory
from scripts.stick import image as stick
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "roll-test")
UDEVD = "/usr/lib/systemd/systemd-udevd"
UDEVADM = "/usr/bin/udevadm"
# A subsystem with one controller.  The second one is plugged in later, by the
# PCIe port itself: the kernel of the guest knows no other way.
SHARED = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
          "-device", "nvme-subsys,id=subsys0,nqn=plugroll",
          "-device", "pcie-root-port,id=port1,chassis=1,slot=1",
          "-device", "nvme,id=first,serial=plugroll,subsys=subsys0",
          "-drive", "driver=null-co,size=64M,read-zeroes=on,if=none,id=n0",
          "-device", "nvme-ns,drive=n0,nsid=1,shared=on,bus=first")
SECOND = "device_add nvme,id=second,serial=plugroll,subsys=subsys0,bus=port1\n"


def tools():
    """plugroll and what it runs with, for a guest."""
    return (*laboratory.python_files(), *guest.into(
        "", os.path.join(laboratory.TOOLS, "plugroll"),
        os.path.join(laboratory.TOOLS, "plugtools"),
        os.path.join(kernel.ROOT, "scripts/checks/plugroll_guest.sh"),
        guest.TAP))


def udev():
    """udevd, with the libraries that the loader would give it."""
    found = guest.libraries(UDEVD, UDEVADM)[0]
    return tuple("%s:%s" % (path, path) for path in (UDEVD, UDEVADM, *found))


def can_run_udev():
    """Whether the kernel with multipath has what udevd wants."""
    with open(os.path.join(kernel.output(stick.NAME), ".config"),
              encoding="ascii") as config:
        return "CONFIG_INOTIFY_USER=y\n" in config


def run_load():
    """A disk of its own, and a load; the boot.Result."""
    return guest.run(
        "patched", os.path.join(OUT, "load"),
        "sh /plugroll_guest.sh load >&3\n", name="load", files=tools(),
        accel="tcg", timeout=900, mem=1536)


def run_paths():
    """A disk with two paths, the second of which comes when asked for."""
    with tempfile.TemporaryDirectory() as place:
        monitor = os.path.join(place, "monitor")

        def plug_in(_name):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(monitor)
                connection.recv(4096)
                connection.sendall(SECOND.encode())
                connection.recv(4096)

        return guest.run(
            stick.NAME, os.path.join(OUT, "paths"),
            "sh /plugroll_guest.sh paths >&3\n", name="paths",
            files=(*tools(), *udev()), accel="tcg", timeout=900, mem=1536,
            disks=(), append="nvme_core.multipath=Y", on_mark=plug_in,
            devices=(*SHARED, "-monitor", "unix:%s,server=on,wait=off"
                     % guest.boot.quote(monitor)))


def note(report, name, result):
    """The guest's results as ours."""
    results = tap.results(result.lines)
    for line in result.lines:
        if line.startswith("#"):
            print(line)
    for test, status in results:
        report.take("%s: %s" % (name, test), status, "see " + result.log)
    report.check(result.status == "pass" and results, name + ": guest",
                 "%s; see %s" % (result.reason, result.log))


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    runs = {"load": (run_load, "patched"), "paths": (run_paths, stick.NAME)}
    parser.add_argument("--only", choices=runs, help="just this one")
    parser.add_argument("--built", action="store_true",
                        help="with the kernels that are there")
    args = parser.parse_args()
    report = tap.Report()
    for name, (run, variant) in runs.items():
        if args.only in (None, name):
            with report.must(name, *guest.ERRORS):
                if not args.built:
                    kernel.build(variant)
                if name == "paths" and not can_run_udev():
                    report.skip(name, "udevd wants CONFIG_INOTIFY_USER, which "
                                "scripts/stick/stick.config does not set")
                    continue
                note(report, name, run())
    report.exit()


if __name__ == "__main__":
    sys.exit(main())
