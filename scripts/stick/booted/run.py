# SPDX-License-Identifier: GPL-2.0
"""From the stick's menu to its measurements. Every disk is set read-only before
anything else; whatever comes of the rest, the report is written."""
import sys
import time
import traceback

from .bench import Bench
from .disks import Disks
from .report import Report
from .talk import Consoles

MENU_SECONDS = 30
FIND_SECONDS = 60


def find_disks(disks, consoles, stick):
    """They turn up one after the other."""
    for left in range(FIND_SECONDS, 0, -1):
        if disks.settled(stick):
            break
        if left % 10 == 0:
            consoles.say(f"Waiting for the stick and for NVMe disks, {left} s.")
        time.sleep(1)
    # Some come late, behind a bridge of their own.
    time.sleep(3)
    disks.protect()


def choice(report):
    """What plug-policy.conf says, or the user"""
    settings, wrong = report.settings()
    if wrong:
        report.consoles.say(
            f"plug-policy.conf: '{wrong[0]}' is not understood. Accepted: RUN=menu, short, "
            "full or off; SECONDS and ROUNDS=1 to 99; WORKLOADS=a,b.")
    chosen = "menu" if wrong else settings.get("RUN", "menu")
    return report.consoles.menu(MENU_SECONDS) if chosen == "menu" else chosen


def run(report, form):
    """form: short or full"""
    consoles, disks = report.consoles, report.disks
    report.describe()
    report.save("machine.txt", "dmesg.txt")
    consoles.say("Working out what there is to do.")
    disks.protect()
    bench = Bench(report, form)
    bench.plan()
    consoles.drain()
    bench.show_plan()
    if consoles.ask(10):
        report.fail("stopped by the user before it began")
        return
    for name in bench.plans:
        bench.measure(name)


def run_and_report(report, form):
    try:
        report.new_run()
    except OSError as error:
        report.consoles.say(f"The stick is full, or cannot be written ({error.strerror}): "
                            "nothing is done.")
        return
    try:
        run(report, form)
    except Exception as error:  # pylint: disable=broad-except # it is for the report
        traceback.print_exc()
        report.fail(f"the run ended with {error!r}")
    report.write()
    report.consoles.say(report.outcome().rstrip("\n"))
    if (report.where / "report.html").exists():
        report.consoles.say(f"The report is on the stick: {report.where.name}/report.html")
    else:
        report.consoles.say("FAILED: the report cannot be written to the stick.")


def main():
    disks = Disks()
    disks.protect()
    consoles = Consoles()
    report = Report(disks, consoles)
    consoles.say("plug_policy stick. Disks have been set read-only.")
    find_disks(disks, consoles, report.stick)
    if not disks.stick:
        consoles.say("The stick that this was booted from is not found: nothing is done.")
        return 1
    chosen = choice(report)
    if chosen != "off":
        run_and_report(report, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
