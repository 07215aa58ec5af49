# SPDX-License-Identifier: GPL-2.0
"""Tests of boot.py: does a job that must fail really fail? TAP output."""
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.qemu import boot
from lab.qemu.guest import ERRORS, initramfs, together
from scripts.checks import tap
from scripts.kernel import UML, image

KERNELS = {"qemu": image("patched"), "uml": image(UML)}
INITRAMFS = functools.cache(initramfs)      # the same for all
WARNS = "echo 'WARNING: CPU: 0 PID: 1 at here' >/dev/kmsg\n"

# name: (job, status, words of the reason, settings of the guest)
JOBS = {
    "exit 0 passes": (r"printf 'a\tb \\\nlast\n' >&3", "pass", "exit 0", {}),
    "exit 1 fails": ("exit 1", "fail", "exit 1", {}),
    "exit 4 skips": ("exit 4", "skip", "skip", {}),
    # whatever the job returns
    "a warning fails": (WARNS + "exit 0", "fail", "kernel warned", {}),
    "a caller may judge": (WARNS + "exit 0", "pass", "exit 0",
                           {"warns": lambda console: ""}),
    # only the kernel's own lines are judged
    "a job may print it": ("echo 'WARNING: not from the kernel'", "pass", "0", {}),
    # no way out of the guest but a panic: it has no init
    "a panic fails": ("", "fail", "kernel warned",
                      {"append": "rdinit=/nowhere root=/dev/nowhere"}),
    # the timeout of who goes on begins anew
    "a hang is a timeout": (
        "for n in 1 2 3; do echo $n >&3; sleep 5; done; sleep 1000", "fail",
        "timeout", {"timeout": 8}),
    "no verdict fails": ("poweroff -f", "fail", "no verdict", {}),
    # one doorbell for each command of queue depth 1
    "marks count doorbells": (
        "mark a\nplug_load -d 1 -s 1 -c 1 -n 100 /dev/nvme0n1\nmark b", "pass",
        "0", {"disks": ("null:64m",), "icount": True, "trace_doorbells": True}),
}
# What arrives is what the job said
LINES = {"exit 0 passes": ["a\tb \\", "last"], "a hang is a timeout": ["1", "2", "3"]}


def guest(top, kernel, job, **more):
    """A small guest without a disk, so that a boot takes two seconds."""
    (top / "job").write_text(job, encoding="ascii")
    return boot.Guest(**{
        "kernel": kernel, "initramfs": INITRAMFS(), "job": str(top / "job"),
        "out": str(top / "out"), "timeout": 60, "smp": 1, "mem": 320,
        "accel": "tcg", "disks": (), **more})


def running(out):
    """The guests that were started for a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(f"{out}/initrd.cpio") in path.read_bytes():
                found.append(path.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def run_job(top, kernel, name):
    job, _, _, more = JOBS[name]
    made = guest(top, kernel, job, **more)
    return boot.boot(made), running(made.out)


def judge(report, machine, name, result, left):
    _, status, words, _ = JOBS[name]
    said = (f"expected {status} with '{words}'; got {result.status}: "
            f"{result.reason}; {result.lines}; log: {result.log}")
    report.check(result.status == status and words in result.reason
                 and result.lines == LINES.get(name, result.lines)
                 and result.ok == (status != "fail"), f"{machine}: {name}", said)
    report.check(not left, f"{machine}: {name}: no guest is left", said)
    if result.marks:
        counted = sum(result.between("a", "b").values())
        report.check(counted == 100, f"{machine}: {name}: 100 of them", f"counted {counted}")


def kill_runner(top, kernel, number):
    """Whoever boots a guest is ended; so is the guest. (did it begin, what is left)"""
    made = guest(top, kernel, "sleep 1000")
    values = {key: getattr(made, key) for key in (
        "kernel", "initramfs", "job", "out", "accel", "disks", "mem", "smp")}
    with subprocess.Popen([sys.executable, "-c", (
            "from lab.qemu import boot\n"
            f"boot.boot(boot.Guest(**{values!r}))")]) as runner:
        while not running(made.out) and runner.poll() is None:
            time.sleep(0.1)
        began = runner.poll() is None
        runner.send_signal(number)
        runner.wait()
    for _ in range(100):        # the kernel ends it, in its time
        if not running(made.out):
            break
        time.sleep(0.1)
    return began, running(made.out)


def calls(top):
    """{(machine, case): call}; User Mode Linux counts no instructions."""
    for machine, kernel in KERNELS.items():
        for name in JOBS:
            if machine == "qemu" or not JOBS[name][3].get("icount"):
                yield (machine, name), functools.partial(
                    run_job, place(top, machine, name), kernel, name)
        for number in (signal.SIGTERM, signal.SIGKILL):
            yield (machine, number.name), functools.partial(
                kill_runner, place(top, machine, number.name), kernel, number)


def place(top, *names):
    path = top / "-".join(names).replace(" ", "-")
    path.mkdir()
    return path


def main():
    """The logs are kept only if a test failed."""
    report = tap.Report()
    top = Path(tempfile.mkdtemp(prefix="guest_runner."))
    with report.must("the guests can be started", *ERRORS):
        # most of their time is waiting for a hang
        found = together(dict(calls(top)), workers=4)
    for (machine, name), (got, left) in found.items():
        if name in JOBS:
            judge(report, machine, name, got, left)
        else:
            report.check(got and not left, f"{machine}: {name} leaves no guest",
                         f"started: {got}, left: {left}")
    if not report.failed:
        shutil.rmtree(top)
    report.exit()


if __name__ == "__main__":
    main()
