# SPDX-License-Identifier: GPL-2.0
"""What a run measures, as plugbench plans it, and plugbench as long as it speaks."""
import contextlib
import re
import signal
import subprocess
import sys
import time

from .disks import read

# What the short run measures of those that plugbench knows.
SHORT = "rand4k-s32,seq4k-s32,rand4k-qd4"
MUTE = 900                      # s without a line: of a run, which may take 99 s, it has one
LONG_ENOUGH = 30                # to put settings back, on SIGTERM

PLAN = """
Read, and only read, since the kernel now refuses writes:
{disks}
Also: a disk in memory (null_blk), with perf: {null}
{about}
The report goes to {where} on the stick. Then the machine is switched off.

It starts in 10 seconds. To stop it, press Enter."""


def choose(form, disks):
    """(rounds, seconds of a measurement, workloads). The short run fits ten minutes
    for two disks."""
    return (3 if disks < 2 else 2, 2, SHORT) if form == "short" else (5, 5, "")


class Bench:
    """The null disk and the disks that may be measured.

    plans: {one that can be: how many runs that takes, and how long}
    """

    def __init__(self, report, form):
        settings, _ = report.settings()
        self.report, self.disks, self.consoles = report, report.disks, report.consoles
        self.rounds, self.seconds, self.workloads = (
            settings.get(name, value) for name, value in zip(
                ("ROUNDS", "SECONDS", "WORKLOADS"), choose(form, len(self.disks.measured))))
        self.plans, self.about = {}, ""

    def plugbench(self, name, *args):
        return [sys.executable, "/stick/plugbench", "--verbose", "--runtime", str(self.seconds),
                "--repeat", str(self.rounds),
                *(["--workloads", self.workloads] if self.workloads else []),
                "--commit", read("/stick/commit"), "--json", f"{self.report.out}/{name}.json",
                *args, "/dev/nullb0" if name == "null" else f"/dev/{name}"]

    def plan(self):
        """Asks plugbench what there is to do; who cannot be measured is told."""
        for name in ["null", *self.disks.measured]:
            done = subprocess.run(self.plugbench(name, "--dry-run"), check=False, text=True,
                                  capture_output=True)
            runs = re.search(r"^  (\d+ runs, .*)", done.stdout, re.M)
            why = [line for line in done.stderr.splitlines() if line][-1:] or ["no plan"]
            if not done.returncode and runs:
                self.plans[name], self.about = runs[1], done.stdout
            elif name == "null":
                self.report.fail(f"null_blk: {why[0]}")
            else:
                self.disks.leave_alone(name, why[0])

    def show_plan(self):
        """Before anything of it is done"""
        disks = [f"  {self.report.describe_disk(disk)}: {self.plans[disk]}"
                 for disk in self.disks.measured] or ["  no NVMe disk"]
        disks += [f"Left alone: {disk}: {why}" for disk, why in self.disks.left.items()]
        about = [f"{what.capitalize()}{text}" for what, text in re.findall(
            r"^  (policies|workload|\d+ rounds)(.*)", self.about, re.M)]
        self.consoles.say(PLAN.format(
            disks="\n".join(disks), null=self.plans.get("null", "cannot be measured"),
            about="\n".join(about), where=self.report.where.name))

    def measure(self, name):
        """null or a disk; what fails is noted, and the next one has its turn."""
        if name != "null" and not self.disks.is_read_only(name):
            self.disks.leave_alone(name, "is no longer read-only")
            return
        self.consoles.say(f"== {name}")
        status = self.run(self.plugbench(name), self.report.out / f"{name}.txt")
        self.note_end(name, status)
        self.report.save(f"{name}.txt", f"{name}.json", "dmesg.txt")

    def run(self, command, path):
        """The exit code of a command whose output is kept in a file, and shown as it
        comes; None if it was ended, as it said nothing. One that hangs in the kernel
        is left behind."""
        with open(path, "wb") as kept, \
                open(path, encoding="utf-8", errors="replace") as said:
            child = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=kept, stderr=subprocess.STDOUT)
            heard, status = time.monotonic(), None
            while status is None and time.monotonic() < heard + MUTE:
                time.sleep(0.1)
                status = child.poll()       # before what it said last is read
                for line in said:
                    heard = time.monotonic()
                    self.consoles.say(line.rstrip("\n"))
            for number, wait in (signal.SIGTERM, LONG_ENOUGH), (signal.SIGKILL, 1):
                if child.poll() is None:
                    child.send_signal(number)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(wait)
            return status

    def note_end(self, name, status):
        if status is None:
            self.report.fail(f"{name}: ended, as it said nothing for {MUTE} s")
        elif status:
            last = read(self.report.out / f"{name}.txt").splitlines()[-1:] or [""]
            self.report.fail(f"{name}: plugbench ended with {status}: {last[0]}")
        written = self.disks.sectors_written(name)
        if written:
            self.report.fail(f"{name}: the kernel counts {written} sectors written")
