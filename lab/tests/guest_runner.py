#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of boot.py: does a job that must fail really fail? TAP output.

KERNEL names the guest's kernel, UML another that is a process, if there is one,
INITRAMFS what they boot; SYSTEM_MAP is needed when the kernel does not lie in
its build directory.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

from lab.qemu import boot
from scripts.checks import tap

KERNEL = os.environ.get("KERNEL", "")
UML = os.environ.get("UML", "")
INITRAMFS = os.environ.get("INITRAMFS", "")
SYSTEM_MAP = os.environ.get("SYSTEM_MAP", "")


def guest(top, name, job, **more):
    """A small guest without a disk, so that a boot takes two seconds."""
    path = os.path.join(top, name + ".job")
    boot.write_text(path, job)
    values = {"kernel": KERNEL, "initramfs": INITRAMFS, "job": path,
              "out": os.path.join(top, name), "name": name, "timeout": 30,
              "smp": 1, "mem": 320, "accel": "tcg", "disks": (),
              "system_map": SYSTEM_MAP, **more}
    return boot.Guest(**values)


def running(out):
    """The QEMUs that were started for a directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if os.fsencode(out + "/initrd.cpio") in file.read():
                    found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def expect(what, condition, result):
    """An error that shows what the boot came to instead."""
    if not condition:
        raise AssertionError(f"expected {what}; got {result.status}: "
                             f"{result.reason}; log: {result.log}")


def check(top, name, job, status, word, **more):
    """Boots, and compares status and reason."""
    result = boot.boot(guest(top, name, job, **more))
    expect(f"{status} with '{word}'",
           result.status == status and word in result.reason, result)
    return result


def test_exit_0_passes(top):
    """What the job says arrives as it was said."""
    result = check(top, "pass", r"printf 'a\tb \\\nlast\n' >&3", "pass", "0")
    expect("two lines", result.lines == ["a\tb \\", "last"], result)


def test_exit_1_fails(top):
    """The exit code is told."""
    check(top, "exit", "exit 1", "fail", "exit 1")


def test_exit_4_skips(top):
    """As in kselftest."""
    result = check(top, "skip", "exit 4", "skip", "skip")
    expect("a skip to be no failure", result.ok, result)


def test_warning_fails_a_job_that_passed(top):
    """What the kernel says counts, whatever the job returns."""
    job = "echo 'WARNING: CPU: 0 PID: 1 at here' >/dev/kmsg\nexit 0\n"
    check(top, "warn", job, "fail", "kernel warned")


def test_warning_may_be_allowed(top):
    """For tests of what warns."""
    job = "echo 'WARNING: CPU: 0 PID: 1 at here' >/dev/kmsg\nexit 0\n"
    check(top, "allowed", job, "pass", "exit 0", allow_warnings=True)


def test_job_may_print_warning(top):
    """Only the kernel's own lines are judged."""
    check(top, "says", "echo 'WARNING: not from the kernel'", "pass", "0")


def test_panic_fails(top):
    """No way out of the guest but a panic: it has no init."""
    check(top, "panic", "", "fail", "kernel warned",
          append="rdinit=/nowhere root=/dev/nowhere")


def test_hang_is_a_timeout(top):
    """That of who goes on begins anew; it leaves no QEMU behind."""
    job = "for n in 1 2 3; do echo $n >&3; sleep 5; done; sleep 1000"
    hang = guest(top, "hang", job, timeout=8)
    result = boot.boot(hang)
    expect("a timeout", "timeout" in result.reason, result)
    expect("three lines", result.lines == ["1", "2", "3"], result)
    expect("no QEMU left", not running(hang.out), result)


def test_no_verdict_fails(top):
    """A guest that goes off by itself has not passed."""
    check(top, "mute", "poweroff -f", "fail", "no verdict")


def test_what_it_cannot_do_is_refused(top):
    """A process has no instructions to count; QEMU has no KVM that counts."""
    wrong = guest(top, "wrong", "", icount=True, accel="kvm")
    try:
        boot.boot(wrong)
    except boot.UsageError as error:
        if "--icount" in str(error):
            return
        raise
    raise AssertionError("expected a refusal that names --icount")


def test_missing_job_is_refused(top):
    """Before anything is started."""
    missing = guest(top, "missing", "")
    missing.job = os.path.join(top, "nowhere")
    try:
        boot.boot(missing)
    except boot.UsageError as error:
        if "--job" in str(error):
            return
        raise
    raise AssertionError("expected a refusal that names --job")


def test_marks_count_doorbells(top):
    """One doorbell for each command of queue depth 1."""
    job = ("mark a\nplug_load -d 1 -s 1 -c 1 -n 100 /dev/nvme0n1\n"
           "mark b\nexit 0\n")
    result = check(top, "marks", job, "pass", "0", disks=("null:64m",),
                   icount=True, trace_doorbells=True)
    counted = sum(result.between("a", "b").values())
    expect(f"100 doorbells (counted {counted})", counted == 100, result)


def test_sigterm_leaves_no_qemu(top):
    """The runner is ended; so is the guest."""
    hang = guest(top, "term", "sleep 1000")
    with subprocess.Popen(
            [sys.executable, "-m", "lab.qemu.boot", "--kernel", KERNEL,
             "--initramfs", INITRAMFS, "--job", hang.job, "--out", hang.out,
             "--disk", "none", "--accel", "tcg"]) as runner:
        limit = time.monotonic() + 10
        while not running(hang.out) and time.monotonic() < limit:
            time.sleep(0.1)
        was_running = bool(running(hang.out))
        runner.send_signal(signal.SIGTERM)
        code = runner.wait(10)
    if not was_running or running(hang.out) or code != 143:
        raise AssertionError(f"expected a guest, then none, and exit 143; "
                             f"started: {was_running}, left: "
                             f"{running(hang.out)}, exit {code}")


def run_tests(report, top, kernel, names):
    """These tests, of what boots this kernel."""
    global KERNEL       # pylint: disable=global-statement
    KERNEL = kernel
    os.mkdir(top)
    for name in names:
        error = None
        try:
            globals()[name](top)
        except (AssertionError, boot.UsageError) as found:
            error = found
        report.check(not error, "%s: %s" % (os.path.basename(kernel), name[5:]),
                     str(error))


def main():
    """TAP; the logs are kept only if a test failed."""
    if not os.path.isfile(KERNEL) or not os.path.isfile(INITRAMFS):
        print("1..0 # SKIP KERNEL and INITRAMFS must name files")
        sys.exit(boot.KSFT_SKIP)
    report = tap.Report()
    top = tempfile.mkdtemp(prefix="test_boot.")
    names = [name for name in globals() if name.startswith("test_")]
    run_tests(report, os.path.join(top, "qemu"), KERNEL, names)
    if UML:
        names.remove("test_marks_count_doorbells")
        run_tests(report, os.path.join(top, "uml"), UML, names)
    if not report.failed:
        shutil.rmtree(top)
    report.exit()


if __name__ == "__main__":
    main()
