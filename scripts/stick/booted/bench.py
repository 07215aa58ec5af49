# SPDX-License-Identifier: GPL-2.0
"""What a run measures, how long it takes, and plugbench under a deadline."""
import contextlib
import re
import signal
import subprocess
import sys
import threading

from .disks import read

# What the short run measures of those that plugbench knows.
SHORT = "rand4k-s32,seq4k-s32,rand4k-qd4"
SHORT_RUNS = 15                 # in a round: three workloads, five policies
SHORT_SECONDS = 600
LONG_ENOUGH = 30                # to put settings back, on SIGTERM

PLAN = """
Read, and only read, since the kernel now refuses writes:
{disks}
Also: a disk in memory (null_blk), with perf.
{about}
Rounds: {rounds}; of a measurement: {seconds} s; altogether some {minutes} min.
The report goes to {where} on the stick. Then the machine is switched off.

It starts in 10 seconds. To stop it, press Enter."""


def runs_take(runs, seconds):
    """With what plugbench spends beside them on a run, to warm up, to count and to
    start fio"""
    return runs * (seconds * 10 + 44) // 10


def short_form(disks):
    """(rounds, seconds), as many as fit into the ten minutes"""
    forms = [(3, 2), (2, 2), (2, 1)]
    return next((form for form in forms
                 if runs_take(SHORT_RUNS * form[0] * disks, form[1]) <= SHORT_SECONDS), forms[-1])


class Bench:
    """The null disk and the disks that may be measured.

    names: of those that can be; total: seconds that they take
    """

    def __init__(self, report, form):
        settings, _ = report.settings()
        self.report, self.disks, self.consoles = report, report.disks, report.consoles
        short = form == "short"
        rounds, seconds = short_form(1 + len(self.disks.measured)) if short else (5, 5)
        self.rounds = int(settings.get("ROUNDS", rounds))
        self.seconds = int(settings.get("SECONDS", seconds))
        self.workloads = settings.get("WORKLOADS", SHORT if short else "")
        self.names, self.total, self.about = [], 0, ""

    def plugbench(self, name, *args):
        return [sys.executable, "/stick/plugbench", "--verbose", "--runtime", str(self.seconds),
                "--repeat", str(self.rounds),
                *(["--workloads", self.workloads] if self.workloads else []),
                "--commit", read("/stick/commit"), "--json", f"{self.report.out}/{name}.json",
                *args, "--null" if name == "null" else f"/dev/{name}"]

    def plan(self):
        """Asks plugbench how many runs it needs; who cannot be measured is told."""
        for name in ["null", *self.disks.measured]:
            done = subprocess.run(self.plugbench(name, "--dry-run"), check=False, text=True,
                                  capture_output=True)
            runs = re.search(r"^  (\d+) runs, ", done.stdout, re.M)
            why = [line for line in done.stderr.splitlines() if line][-1:] or ["no plan"]
            if not done.returncode and runs:
                self.names.append(name)
                self.total += runs_take(int(runs[1]), self.seconds)
                self.about = done.stdout
            elif name == "null":
                self.report.fail(f"null_blk: {why[0]}")
            else:
                self.disks.leave_alone(name, why[0])

    def show_plan(self):
        """Before anything of it is done"""
        disks = [f"  {self.report.describe_disk(disk)}" for disk in self.disks.measured]
        disks = disks or ["  no NVMe disk"]
        disks += [f"Left alone: {disk}: {why}" for disk, why in self.disks.left.items()]
        about = [f"{what.capitalize()}: {text}" for what, text in re.findall(
            r"^  (policies|workload): *(.*)", self.about, re.M)]
        self.consoles.say(PLAN.format(
            disks="\n".join(disks), about="\n".join(about), rounds=self.rounds,
            seconds=self.seconds, minutes=(self.total + 59) // 60,
            where=self.report.where.name))

    def measure(self, name):
        """null or a disk; what fails is noted, and the next one has its turn."""
        if name != "null" and not self.disks.is_read_only(name):
            self.disks.leave_alone(name, "is no longer read-only")
            return
        self.consoles.say(f"== {name}")
        limit = self.total * 2 + 600
        status = self.within(limit, self.plugbench(name), self.report.out / f"{name}.txt")
        self.note_end(name, status, limit)
        self.report.save(f"{name}.txt", f"{name}.json", "dmesg.txt")

    def within(self, seconds, command, path):
        """The exit code of a command whose output is shown and kept; None if it had
        to be ended. One that hangs in the kernel is left behind."""
        with open(path, "w", encoding="utf-8", errors="replace") as kept:
            child = subprocess.Popen(  # pylint: disable=consider-using-with
                command, text=True, errors="replace", stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

            def show():
                for line in child.stdout:
                    kept.write(line)
                    kept.flush()
                    self.consoles.say(line.rstrip("\n"))

            shown = threading.Thread(target=show, daemon=True)
            shown.start()
            for number, wait in ((None, seconds), (signal.SIGTERM, LONG_ENOUGH),
                                 (signal.SIGKILL, 1)):
                if number:
                    child.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(wait)
                    break
            shown.join(1 if number else LONG_ENOUGH)    # who hangs keeps its output open
            return None if number else child.returncode

    def note_end(self, name, status, limit):
        if status is None:
            self.report.fail(f"{name}: not done after {limit} seconds")
        elif status:
            last = read(self.report.out / f"{name}.txt").splitlines()[-1:] or [""]
            self.report.fail(f"{name}: plugbench ended with {status}: {last[0]}")
        written = self.disks.sectors_written(name)
        if written:
            self.report.fail(f"{name}: the kernel counts {written} sectors written")
