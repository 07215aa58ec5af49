# SPDX-License-Identifier: GPL-2.0
"""From the stick's menu to its measurements. Every disk is set read-only before
anything else, in each boot; whatever comes of the rest, the report is written.

The firmware boots once, for the menu. Then one kernel starts the next (kexec): a
machine that was told to boot from the stick this once would boot its own system. What
is left to do is in the kernel's command line alone, and is one less each time."""
import ctypes
import os
import time
import traceback

from . import disks as machine
from .bench import Bench, minutes
from .report import Report
from .talk import Consoles

TODO = "STICK"                  # a word for init: run, form, what is to be booted
KEXEC_FILE_LOAD, RB_KEXEC = 320, 0x45584543     # <asm/unistd_64.h>, <sys/reboot.h>


def find_disks(disks, consoles, stick):
    """They turn up one after the other."""
    for left in range(60, 0, -1):
        if disks.settled(stick):
            break
        if left % 10 == 0:
            consoles.say(f"Waiting for the stick and for NVMe disks, {left} s.")
        time.sleep(1)
    # Some come late, behind a bridge of their own.
    time.sleep(3)
    disks.protect()


def boots(report):
    """Those of a run, in turn: kernel, or kernel-passthrough"""
    kinds = ["unpatched", "patched"]
    if report.disks.measured and any(report.disks.sys.glob("kernel/iommu_groups/*")):
        kinds += [f"{kind}-passthrough" for kind in kinds]
    return kinds * int(report.settings()[0].get("BOOTS", 3))


def choice(report, todo):
    """What plug-policy.conf says, or the user"""
    settings, wrong = report.settings()
    if wrong:
        report.consoles.say(
            f"plug-policy.conf: '{wrong[0]}' is not understood. Accepted: RUN=menu, short, "
            "full or off; BOOTS=1 to 9; SECONDS and ROUNDS=1 to 99; WORKLOADS=a,b.")
    chosen = "menu" if wrong else settings.get("RUN", "menu")
    return chosen if chosen != "menu" else report.consoles.menu(
        *(minutes(report, form, todo) for form in ("short", "full")))


def boot(report, name, form, todo):
    """The first of what is to do; comes back only if that fails."""
    kernel, _, passthrough = todo[0].partition("-")
    # Where EFI's table of the initrd was, the next kernel may lie, which would write to it.
    line = f"noefi {TODO}={','.join([name, form, *todo])}"
    line += " iommu.passthrough=1" * bool(passthrough)
    report.consoles.say(f"Booting: {todo[0]}; left after that: {len(todo) - 1}")
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/stick/{kernel}", "rb") as image, open("/sys/firmware/initrd", "rb") as initrd:
        if libc.syscall(KEXEC_FILE_LOAD, image.fileno(), initrd.fileno(),
                        ctypes.c_long(len(line) + 1), line.encode(), ctypes.c_long(0)):
            report.fail(f"{todo[0]} does not boot: {os.strerror(ctypes.get_errno())}")
            return
    os.sync()
    machine.run("umount", str(report.stick))
    libc.reboot(RB_KEXEC)


def measure(report, form, kind, left):
    """Whether the run can go on. form: short or full; left: boots that follow"""
    report.save()
    report.disks.protect()
    bench = Bench(report, form)
    bench.show_plan(form, kind, left)
    if report.consoles.ask(10):
        report.fail("stopped by the user before it began")
        return False
    return any([bench.measure(name) for name in ("null", *report.disks.measured)])


def measure_and_go_on(report, name, form, kind, *todo):
    """One boot of a run; then the next, or the end of the run"""
    report.begin(name, kind)
    goes_on = True
    try:
        goes_on = measure(report, form, kind, todo)
    except Exception:  # pylint: disable=broad-except # it is for the report
        report.fail(f"the run ended with {traceback.format_exc()}")
    for disk in report.disks.nvme():
        why = report.disks.left.get(disk)
        report.note(f"{report.disks.describe(disk)}: {f'left alone: {why}' if why else 'read'}")
    if not report.failed:
        report.note("Nothing failed.")
    if goes_on and todo:
        boot(report, name, form, todo)
    report.finish(name)


def main():
    disks = machine.Disks()
    disks.protect()
    consoles = Consoles()
    report = Report(disks, consoles)
    consoles.say("plug_policy stick. Disks have been set read-only.")
    find_disks(disks, consoles, report.stick)
    if not disks.stick:
        consoles.say("The stick that this was booted from is not found: nothing is done.")
    elif TODO in os.environ:
        measure_and_go_on(report, *os.environ[TODO].split(","))
    elif name := report.cut_short():
        # Not begun anew: a kernel that resets the machine would do that for ever.
        report.finish(name)
    else:
        todo = boots(report)
        form = choice(report, todo)
        if form != "off":
            boot(report, report.new_run(), form, todo)
            report.finish(report.run.name)


if __name__ == "__main__":
    main()
