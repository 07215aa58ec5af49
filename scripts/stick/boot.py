#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The USB stick, booted as by firmware, beside two NVMe disks, which must be the
same afterwards.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap
from scripts.stick import image as stick

FIRMWARE = "/usr/share/OVMF/OVMF_CODE_4M.fd"
VARIABLES = "/usr/share/OVMF/OVMF_VARS_4M.fd"
POLICIES = {"always", "never", "seq-small", "adaptive", "nomerges2"}
DISKS = ("nvme0n1", "nvme1n1")
DISK_BYTES = 32 << 20
# The kernel tests the timer by the processor's clock, which goes on while QEMU
# waits for a processor.
LATE_TIMER = "IO-APIC + timer doesn't work"
MUTE = 300                      # seconds without a line; a boot takes three minutes
MENU = "Type a number"


def second_partition(image):
    """Where it begins, as its table says."""
    table = json.loads(stick.run("sfdisk", "--json", image))["partitiontable"]
    return table["partitions"][1]["start"] * stick.SECTOR


def mcopy(image, *words):
    """On the second partition, as anybody may read it"""
    stick.run("mcopy", "-i", f"{image}@@{second_partition(image)}", *words)


def checksum(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_disks(out):
    """Two disks of random data: {path: checksum}."""
    paths = [out / f"nvme{number}.img" for number in range(2)]
    for path in paths:
        path.write_bytes(os.urandom(DISK_BYTES))
    return {path: checksum(path) for path in paths}


def qemu_args(out, image, disks):
    """A PC with UEFI, a screen, and the serial line on stdin and stdout."""
    # On one CPU: tcg of one thread leaves out the barrier between a shadow
    # doorbell and the read of its event index, and the thread that emulates
    # NVMe then misses a doorbell.
    args = ["taskset", "-c", str(min(os.sched_getaffinity(0))), guest.boot.QEMU,
            *"-machine q35 -cpu max -accel tcg,thread=single -smp 2 -m 1024 -nodefaults "
            "-no-user-config -display none -nic none -no-reboot -device VGA -chardev "
            "stdio,id=con,signal=off -serial chardev:con -device qemu-xhci -drive".split(),
            f"if=pflash,format=raw,readonly=on,file={FIRMWARE}",
            "-drive", f"if=pflash,format=raw,file={out}/variables"]
    for number, (name, path, device) in enumerate((
            ("stick", image, "usb-storage,bootindex=0"), *(
                (f"nvme{number}", path, "nvme") for number, path in enumerate(disks)))):
        args += ["-drive", f"if=none,format=raw,id={name},file={path}",
                 "-device", f"{device},drive={name},serial=SECRET-{name}-{number}"]
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
        signal.alarm(MUTE)
        self.log.write(line)
        self.log.flush()
        self.last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]", "", line)[:50] or self.last
        if "Kernel panic" in line:
            raise Panic(line.strip())
        for text in [text for text in self.answers if text in line]:
            os.write(self.keys, self.answers.pop(text).encode())

    def close(self):
        """After QEMU."""
        signal.alarm(0)
        os.close(self.keyboard)
        os.close(self.keys)


def end_mute(_signal, _frame):
    raise kernel.BuildError(f"the stick has said nothing for {MUTE} s")


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
    image = out / "stick.img"
    shutil.copyfile(stick.IMAGE, image)
    shutil.copyfile(VARIABLES, out / "variables")
    (out / "plug-policy.conf").write_text(conf, encoding="ascii")
    mcopy(image, "-o", out / "plug-policy.conf", "::")
    args = qemu_args(out, image, disks)
    signal.signal(signal.SIGALRM, end_mute)
    signal.alarm(MUTE)
    with open(out / "console.log", "w", encoding="utf-8") as log:
        console = Console(log, answers)
        try:
            with common.clock(lambda seconds: f"# boot, {int(seconds)} s: {console.last}"):
                code = common.run(args, console.take, stdin=console.keyboard)
        finally:
            console.close()
    return image, code


def fetch_report(image, out):
    """{name: text} of run-1 on the stick."""
    where = out / "run-1"
    shutil.rmtree(where, ignore_errors=True)
    mcopy(image, "-s", "::run-1", out)
    return {path.name: guest.boot.read_text(path) for path in where.iterdir()}


def is_clean(image, out):
    """Whether the file system with the reports is in order."""
    path = out / "partition"
    with open(image, "rb") as whole:
        whole.seek(second_partition(image))
        path.write_bytes(whole.read(stick.SMALLEST))
    done = subprocess.run([stick.program("fsck.vfat"), "-n", path], check=False,
                          capture_output=True)
    path.unlink()
    return done.returncode == 0


def check_results(report, files, workload):
    """Each mode, on each disk and on the one in memory."""
    for name in ("null", *DISKS):
        records = json.loads(files.get(f"{name}.json", "{}")).get("records", [])
        found = {(one["policy"], one["workload"]) for one in records}
        unplugs = [one["unplugs_per_io"] for one in records]
        report.check(found == {(policy, workload) for policy in POLICIES},
                     f"{name}: every mode, and nomerges=2", f"{found}\n{files.get(f'{name}.txt')}")
        report.check(unplugs and None not in unplugs, f"{name}: perf counts", str(unplugs))
    page = files.get("report.html", "")
    missing = [word for word in (*POLICIES, "null", *DISKS, "QEMU NVMe Ctrl",
                                 "Nothing failed", workload) if word not in page]
    report.check(not missing, "report.html has it all", str(missing))


def check_machine(report, files):
    """What the stick says of the machine and of itself."""
    dmesg, machine = files.get("dmesg.txt", ""), files.get("machine.txt", "")
    warning = guest.boot.first_warning(dmesg)
    report.check("Linux version" in dmesg and not warning, "dmesg without warnings", warning)
    report.check("colour frame buffer" in dmesg, "a screen", dmesg[-2000:])
    report.check(machine.count("read-only: yes") == 2 and
                 machine.count("sectors written since power-on: 0") == 2,
                 "both disks read-only, no sector written", machine)
    report.check(machine.count("plug_policy: [always]") == 2, "policies are put back", machine)
    secrets = [name for name, text in files.items() if "SECRET" in text]
    report.check(not secrets, "no serial numbers", str(secrets))


def run_and_read(report, name, conf, answers):
    """One boot and its report; checks what holds of each boot."""
    out = stick.OUT / "test" / name
    out.mkdir(parents=True, exist_ok=True)
    disks = make_disks(out)
    with report.must(f"{name}: a report", *guest.ERRORS):
        image, code = boot(out, conf, answers, disks)
        report.check(code == 0, f"{name}: switches itself off",
                     f"exit code {code}; see {out}/console.log")
        changed = [path.name for path, was in disks.items() if checksum(path) != was]
        report.check(not changed, f"{name}: disks are as before", f"changed: {changed}")
        files = fetch_report(image, out)
        report.check(is_clean(image, out), f"{name}: file system is clean")
    for path in (image, *disks):
        path.unlink()
    return files


def measures(report):
    """A run as by somebody who chooses it from the menu."""
    files = run_and_read(report, "menu", "ROUNDS=1\nSECONDS=1\nWORKLOADS=rand4k-s32\n",
                         {MENU: "1\n"})
    check_results(report, files, "rand4k-s32")
    check_machine(report, files)


def fails(report):
    """A run that cannot measure anything still writes what went wrong."""
    files = run_and_read(report, "failure", "RUN=short\nWORKLOADS=rand4k\n", {})
    page = files.get("report.html", "")
    report.check("FAILED: null_blk: plugbench: --workloads" in page and
                 "Left alone: nvme0n1: plugbench: --workloads" in page,
                 "failure: the report says what failed", files.get("outcome.txt", "no outcome.txt"))
    report.check("Linux version" in files.get("dmesg.txt", ""), "failure: dmesg is there")


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    stick.OUT.mkdir(parents=True, exist_ok=True)
    with report.must("the image", *guest.ERRORS):
        stick.build(stick.IMAGE)
    measures(report)
    fails(report)
    report.exit()


if __name__ == "__main__":
    with common.program("stick.boot", OSError):
        main()
