#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""plugroll in guests: a mode that does harm trips its guard under a live load,
and a mode that is kept reaches paths of NVMe multipath that come later.

The emulated disk's doorbells are expensive, as each leaves the guest; so
"never", which rings one per request, does harm.
"""
import argparse
import socket
import tempfile

from lab.qemu import guest
from scripts import kernel
from scripts.checks import laboratory, tap
from scripts.stick import image as stick

OUT = f"{kernel.BUILD}/roll-test"
UDEV = ("/usr/lib/systemd/systemd-udevd", "/usr/bin/udevadm")
# A subsystem with one controller.  The second one is plugged in later, by the
# PCIe port itself: the kernel of the guest knows no other way.
SHARED = ("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off",
          "-device", "nvme-subsys,id=subsys0,nqn=plugroll",
          "-device", "pcie-root-port,id=port1,chassis=1,slot=1",
          "-device", "nvme,id=first,serial=plugroll,subsys=subsys0",
          "-drive", "driver=null-co,size=64M,read-zeroes=on,if=none,id=n0",
          "-device", "nvme-ns,drive=n0,nsid=1,shared=on,bus=first")
SECOND = "device_add nvme,id=second,serial=plugroll,subsys=subsys0,bus=port1\n"


def run(variant, name, *files, **how):
    """plugroll_guest.sh's part of that name, with plugroll; the boot.Result."""
    tools = guest.into("", *(f"{laboratory.TOOLS}/{name}" for name in (
        "plugroll", "plugtools")),
                       f"{kernel.ROOT}/scripts/checks/plugroll_guest.sh", guest.TAP)
    return guest.run(variant, f"{OUT}/{name}", f"sh /plugroll_guest.sh {name} >&3\n", name=name,
                     files=(*laboratory.python_files(), *tools, *files), accel="tcg",
                     timeout=900, mem=1536, **how)


def run_load():
    return run("patched", "load")


def run_paths():
    """A disk with two paths, the second of which comes when asked for."""
    with tempfile.TemporaryDirectory() as place:
        monitor = f"{place}/monitor"

        def plug_in(_name):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(monitor)
                connection.recv(4096)
                connection.sendall(SECOND.encode())
                connection.recv(4096)

        return run(stick.NAME, "paths",
                   *(f"{path}:{path}" for path in (*UDEV, *guest.libraries(*UDEV)[0])),
                   disks=(), append="nvme_core.multipath=Y", on_mark=plug_in,
                   devices=(*SHARED, "-monitor",
                            f"unix:{guest.boot.quote(monitor)},server=on,wait=off"))


def main():
    parser = argparse.ArgumentParser("roll_test.py", description=__doc__.split("\n\n", 1)[0])
    runs = {"load": (run_load, "patched"), "paths": (run_paths, stick.NAME)}
    parser.add_argument("--only", choices=runs, help="just this one")
    args = parser.parse_args()
    report = tap.Report()
    for name, (boot, variant) in runs.items():
        if args.only in (None, name):
            with report.must(name, *guest.ERRORS):
                kernel.build(variant)
                report.guest(name, boot())
    report.exit()


if __name__ == "__main__":
    main()
