# SPDX-License-Identifier: GPL-2.0
"""What a boot measures, and how long that takes; plugbench as long as it speaks."""
import contextlib
import os
import re
import select
import subprocess
import sys

from .disks import read

MUTE = 900                      # s without a line: of a run, which may take 99 s, it has one

PLAN = """
Read, and only read, since the kernel now refuses writes:
{}
Also a disk in memory (null_blk). Policies: {}. Some {} minutes;
boots that follow take {}, and then the machine is switched off.

It starts in 10 seconds. To stop it, press Enter."""

# Of a run: rounds of each boot, seconds of a measurement, workloads
SHORT = "rand4k-s32,seq4k-s32,rand4k-qd4"
FORMS = {"short": (1, 2, SHORT), "full": (2, 5, SHORT + ",rand4k-s128,seq128k-s32,rand4k-qd1,"
                                          "rand4k-qd32-wait,libaio-rand4k-s32")}
# Policies of a kernel. Seconds of a run besides its measurement, and of a boot
POLICIES = {"unpatched": 2, "patched": 5}
BESIDES, BOOT = 4.4, 45


def choose(report, form):
    """(rounds, seconds, workloads), as plug-policy.conf says or the form has it"""
    settings, _ = report.settings()
    rounds, seconds, workloads = (settings.get(name, value) for name, value in zip(
        ("ROUNDS", "SECONDS", "WORKLOADS"), FORMS[form]))
    return int(rounds), int(seconds), workloads


def minutes(report, form, boots):
    """How long these take for all disks, and the one in memory"""
    rounds, seconds, workloads = choose(report, form)
    runs = rounds * len(workloads.split(",")) * sum(
        POLICIES[kind.partition("-")[0]] for kind in boots)
    return round((runs * (seconds + BESIDES) * (1 + len(report.disks.measured))
                  + BOOT * len(boots)) / 60)


class Bench:
    """The disk in memory, and those that may be measured"""

    def __init__(self, report, form):
        self.report, self.disks, self.consoles = report, report.disks, report.consoles
        self.rounds, self.seconds, self.workloads = choose(report, form)
        names = re.findall("[a-z-]+", read(self.disks.sys / "block/nullb0/queue/plug_policy"))
        # Each boot begins with another, as each round does.
        names = [*(names or ["always"]), "nomerges2"]
        first = report.round % len(names)
        self.policies = names[first:] + names[:first]

    def plugbench(self, name):
        return [sys.executable, "/stick/plugbench", "--verbose", "--runtime", str(self.seconds),
                "--repeat", str(self.rounds), "--policies", ",".join(self.policies),
                "--workloads", self.workloads, "--commit", read("/stick/commit"),
                "--json", f"{self.report.out}/{self.disks.place(name)}.json",
                "/dev/nullb0" if name == "null" else f"/dev/{name}"]

    def show_plan(self, form, kind, left):
        """Before anything is done. left: boots that follow"""
        self.consoles.say(PLAN.format(
            "\n".join(map(self.disks.describe, self.disks.measured)) or "no NVMe disk",
            ", ".join(self.policies), *(minutes(self.report, form, boots)
                                        for boots in ([kind], left))))

    def measure(self, name):
        """Whether null or a disk has been; what fails is noted, and the next one has its
        turn."""
        if name != "null" and not self.disks.is_read_only(name):
            self.disks.left[name] = "is no longer read-only"
            return False
        place = self.disks.place(name)
        self.consoles.say(f"== {name}")
        why = self.run(self.plugbench(name), self.report.out / f"{place}.txt")
        if why:
            self.report.fail(f"{name}: plugbench {why}")
        written = self.disks.sectors_written(name)
        if written:
            self.report.fail(f"{name}: the kernel counts {written} sectors written")
        self.report.save(f"{place}.txt", f"{place}.json")
        return not why

    def run(self, command, path):
        """Why a command has failed, or nothing. Its output is kept in a file, and shown
        as it comes. One that hangs in the kernel is left behind."""
        child = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with open(path, "wb", buffering=0) as kept:
            while select.select([child.stdout], [], [], MUTE)[0]:
                said = os.read(child.stdout.fileno(), 65536)
                if not said:
                    status, last = child.wait(), read(path).rpartition("\n")[2]
                    return f"ended with {status}: {last}" if status else ""
                kept.write(said)
                self.consoles.say(said.decode(errors="replace").rstrip("\n"))
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(30)      # long enough to put settings back
        child.kill()
        return f"was ended, as it said nothing for {MUTE} s"
