#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The USB stick, booted as by firmware, beside two NVMe disks, which must be the
same afterwards.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess

from scripts import common
from lab.qemu import guest
from scripts import kernel
from scripts.stick import image as stick
from scripts.checks import tap

FIRMWARE = "/usr/share/OVMF/OVMF_CODE_4M.fd"
VARIABLES = "/usr/share/OVMF/OVMF_VARS_4M.fd"
POLICIES = {"always", "never", "seq-small", "adaptive", "nomerges2"}
DISK_BYTES = 32 << 20
SERIAL = "SECRET-%s-%d"
# The kernel tests the timer by the processor's clock, which goes on while QEMU
# waits for a processor.
LATE_TIMER = "IO-APIC + timer doesn't work"
TIMEOUT = 900                   # of a boot; it takes three minutes
MENU = "Type a number"


def mtools(command, image, *words):
    """A command of mtools on the second partition, as anybody may read it."""
    where = "%s@@%d" % (image, second_partition(image))
    return kernel.quiet([stick.program(command), "-i", where, *words], command)


def second_partition(image):
    """Where it begins, as its table says."""
    told = kernel.quiet([stick.program("sfdisk"), "--json", image], "sfdisk")
    table = json.loads(told)["partitiontable"]
    return table["partitions"][1]["start"] * stick.SECTOR


def make_disks(out):
    """Two disks of random data: {path: checksum}."""
    disks = {}
    for number in range(2):
        data = os.urandom(DISK_BYTES)
        path = os.path.join(out, "nvme%d.img" % number)
        with open(path, "wb") as file:
            file.write(data)
        disks[path] = hashlib.sha256(data).hexdigest()
    return disks


def checksum(path):
    """Of a disk, after the boot."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def qemu_args(out, image, disks):
    """A PC with UEFI, a screen, and the serial line on stdin and stdout."""
    drive = "if=none,format=raw,id=%s,file=%s"
    # On one CPU: tcg of one thread leaves out the barrier between a shadow
    # doorbell and the read of its event index, and the thread that emulates
    # NVMe then misses a doorbell.
    cpu = str(min(os.sched_getaffinity(0)))
    args = ["taskset", "-c", cpu, guest.boot.QEMU, "-machine", "q35",
            "-cpu", "max", "-accel", "tcg,thread=single", "-smp", "2",
            "-m", "1024", "-nodefaults", "-no-user-config", "-display",
            "none", "-nic", "none", "-no-reboot", "-device", "VGA",
            "-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con",
            "-drive", "if=pflash,format=raw,readonly=on,file=" + FIRMWARE,
            "-drive", "if=pflash,format=raw,file=%s/variables" % out,
            "-device", "qemu-xhci", "-drive", drive % ("stick", image),
            "-device", "usb-storage,drive=stick,bootindex=0,serial="
            + SERIAL % ("stick", 0)]
    for number, path in enumerate(disks):
        name = "nvme%d" % number
        args += ["-drive", drive % (name, path), "-device",
                 "nvme,drive=%s,serial=%s" % (name, SERIAL % (name, number))]
    return args


class Panic(kernel.BuildError):
    """The kernel has stopped; the message is its last words."""


class Console:
    """What the stick prints; it is answered as by somebody at the keyboard.

    Logged, and the last line told to the clock.
    """

    def __init__(self, log, answers):
        self.log, self.answers = log, answers
        self.keyboard, self.keys = os.pipe()
        self.last = "firmware"

    def take(self, line):
        """A line."""
        self.log.write(line)
        self.log.flush()
        self.last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]", "", line)[:50] \
            or self.last
        if "Kernel panic" in line:
            raise Panic(line.strip())
        for text in [text for text in self.answers if text in line]:
            os.write(self.keys, self.answers.pop(text).encode())

    def close(self):
        """After QEMU."""
        os.close(self.keyboard)
        os.close(self.keys)


def boot(out, conf, answers, disks):
    """Boot a copy of the image with a plug-policy.conf; (copy, exit code)."""
    try:
        return boot_once(out, conf, dict(answers), disks)
    except Panic as error:
        if LATE_TIMER not in str(error):
            raise
    print("# the host was too busy for the emulated timer: once more")
    return boot_once(out, conf, dict(answers), disks)


def boot_once(out, conf, answers, disks):
    """The same, whatever comes of it."""
    image = os.path.join(out, "stick.img")
    shutil.copyfile(stick.IMAGE, image)
    shutil.copyfile(VARIABLES, out + "/variables")
    guest.boot.write_text(out + "/plug-policy.conf", conf)
    mtools("mcopy", image, "-o", out + "/plug-policy.conf", "::")
    args = ["timeout", "-k", "5", str(TIMEOUT), *qemu_args(out, image, disks)]
    with open(out + "/console.log", "w", encoding="utf-8") as log:
        console = Console(log, answers)
        try:
            with common.clock(lambda seconds: "# boot, %d s: %s" % (
                    seconds, console.last)):
                code = common.run(args, console.take, stdin=console.keyboard)
        finally:
            console.close()
    return image, code


def fetch_report(image, out):
    """{name: text} of run-1 on the stick."""
    where = os.path.join(out, "run-1")
    shutil.rmtree(where, ignore_errors=True)
    mtools("mcopy", image, "-s", "::run-1", out)
    return {os.path.basename(path): guest.boot.read_text(path)
            for path in glob.glob(where + "/*")}


def is_clean(image, out):
    """Whether the file system with the reports is in order."""
    path = os.path.join(out, "partition")
    with open(image, "rb") as whole, open(path, "wb") as part:
        whole.seek(second_partition(image))
        part.write(whole.read(stick.SMALLEST))
    done = subprocess.run([stick.program("fsck.vfat"), "-n", path],
                          check=False, capture_output=True)
    os.unlink(path)
    return done.returncode == 0


def records_of(files, name):
    """(policy, workload) and perf's counts of the results of a disk."""
    records = json.loads(files.get(name + ".json", "{}")).get("records", [])
    return ({(one["policy"], one["workload"]) for one in records},
            [one["unplugs_per_io"] for one in records])


def check_results(report, files, workload):
    """Each mode, on each disk and on the one in memory."""
    wanted = {(policy, workload) for policy in POLICIES}
    for name in ("null", "nvme0n1", "nvme1n1"):
        found, unplugs = records_of(files, name)
        report.check(found == wanted, "%s: every mode, and nomerges=2" % name,
                     "%s\n%s" % (found, files.get(name + ".txt")))
        report.check(unplugs and None not in unplugs, "%s: perf counts" % name,
                     str(unplugs))
    page = files.get("report.html", "")
    missing = [word for word in (*POLICIES, "null", "nvme0n1", "nvme1n1",
                                 "QEMU NVMe Ctrl", "Nothing failed", workload)
               if word not in page]
    report.check(not missing, "report.html has it all", str(missing))


def check_machine(report, files):
    """What the stick says of the machine and of itself."""
    dmesg = files.get("dmesg.txt", "")
    report.check("Linux version" in dmesg and
                 not guest.boot.first_warning(dmesg),
                 "dmesg without warnings", guest.boot.first_warning(dmesg))
    report.check("colour frame buffer" in dmesg, "a screen", dmesg[-2000:])
    machine = files.get("machine.txt", "")
    report.check(machine.count("read-only: yes") == 2 and
                 machine.count("sectors written since power-on: 0") == 2,
                 "both disks read-only, no sector written", machine)
    report.check(machine.count("plug_policy: [always]") == 2,
                 "policies are put back", machine)
    secrets = [name for name, text in files.items() if "SECRET" in text]
    report.check(not secrets, "no serial numbers", str(secrets))


def run_and_read(report, out, name, conf, answers):
    """One boot and its report; checks what holds of each boot."""
    out = os.path.join(out, name)
    os.makedirs(out, exist_ok=True)
    disks = make_disks(out)
    with report.must(name + ": a report", *guest.ERRORS):
        image, code = boot(out, conf, answers, disks)
        report.check(code == 0, name + ": switches itself off",
                     "exit code %d; see %s/console.log" % (code, out))
        changed = [path for path, was in disks.items()
                   if checksum(path) != was]
        report.check(not changed, name + ": disks are as before",
                     "changed: %s" % changed)
        files = fetch_report(image, out)
        report.check(is_clean(image, out), name + ": file system is clean")
    for path in (image, *disks):
        os.unlink(path)
    return files


def measures(report, out):
    """A run as by somebody who chooses it from the menu."""
    files = run_and_read(report, out, "menu", "ROUNDS=1\nSECONDS=1\n"
                         "WORKLOADS=rand4k-s32\n", {MENU: "1\n"})
    check_results(report, files, "rand4k-s32")
    check_machine(report, files)


def fails(report, out):
    """A run that cannot measure anything still writes what went wrong."""
    files = run_and_read(report, out, "failure",
                         "RUN=short\nWORKLOADS=rand4k\n", {})
    page = files.get("report.html", "")
    report.check("FAILED: null_blk: plugbench: --workloads" in page and
                 "Left alone: nvme0n1: plugbench: --workloads" in page,
                 "failure: the report says what failed",
                 files.get("outcome.txt", "no outcome.txt"))
    report.check("Linux version" in files.get("dmesg.txt", ""),
                 "failure: dmesg is there")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    report = tap.Report()
    os.makedirs(stick.OUT, exist_ok=True)
    with report.must("the image", *guest.ERRORS):
        stick.build(stick.IMAGE)
    out = os.path.join(stick.OUT, "test")
    measures(report, out)
    fails(report, out)
    report.exit()


if __name__ == "__main__":
    with common.program("stick_test.py", OSError):
        main()
