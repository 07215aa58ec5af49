# SPDX-License-Identifier: GPL-2.0
"""What all guests boot from, and the harness that boots them."""
import concurrent.futures
import contextlib
import os
import sys

from scripts.kbuild import arch
from lab.qemu import boot
from scripts import common
from scripts import kernel

# No fault of who asked for guests.
ERRORS = (kernel.BuildError, boot.UsageError, arch.ArchError)


class GuestError(kernel.BuildError):
    """The guest could not do its work; the message says why."""


@contextlib.contextmanager
def interruptible():
    """For a wait for guests that threads have booted: an interrupt ends this
    process at once, with which the guests die, instead of waiting for them."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(130)


def foreign():
    """What tells initramfs.sh of a processor that is not the host's."""
    if not arch.IS_ARM64:
        return []
    fio = arch.find("fio")
    return ["BUSYBOX=" + arch.find("busybox"), "FIO=" + fio,
            "CC=" + " ".join(arch.gcc()), "STRIP=" + arch.CROSS + "strip",
            "FIO_LIBRARIES=" + " ".join(linked(fio))]


def initramfs():
    """Build the initramfs if its inputs changed; returns its path."""
    path = os.path.join(kernel.BUILD, "guest/initramfs.cpio")
    with common.locked(os.path.join(kernel.BUILD, "guest/.lock")):
        kernel.quiet(["env", *foreign(), "sh",
                      os.path.join(kernel.QEMU, "initramfs.sh"), path],
                     "initramfs")
    return path


# What a script that reports in TAP sources.
TAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tap.sh")


def into(directory, *paths):
    """SRC:DST of files for a directory of a guest."""
    return tuple("%s:%s/%s" % (path, directory, os.path.basename(path))
                 for path in paths)


libraries = arch.libraries


def linked(*programs):
    """SRC:DST of what programs link."""
    return ["%s:%s" % (path, arch.in_guest(path))
            for path in libraries(*programs)[0]]


def run(variant, out, job, **how):
    """Boot a kernel for a job, the text of a script; its boot.Result."""
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "job")
    boot.write_text(path, job)
    return boot.boot(boot.Guest(kernel=kernel.image(variant), job=path,
                                initramfs=initramfs(), out=out, **how))


def work(variant, out, job, **how):
    """The same for a job that must pass; it may say "error WHY"."""
    result = run(variant, out, job, **how)
    if result.status != "pass":
        errors = [line[6:] for line in result.lines if line[:6] == "error "]
        raise GuestError("%s: %s; see %s" % (
            how["name"], errors[0] if errors else result.reason, result.log))
    return result


def together(calls, text=None, workers=len(os.sched_getaffinity(0)), **pool):
    """{key: what it returned} of {key: call}, side by side, until one fails.

    text: for the clock, given how many are done and the seconds; pool: how the
    threads are made.
    """
    def done():
        return sum(job.done() for job in jobs.values())

    clock = common.clock(lambda seconds: text(done(), seconds)) \
        if text else contextlib.nullcontext()
    with concurrent.futures.ThreadPoolExecutor(workers, **pool) as threads:
        jobs = {key: threads.submit(call) for key, call in calls.items()}
        with interruptible(), clock:
            try:
                for job in concurrent.futures.as_completed(jobs.values()):
                    job.result()
            finally:
                for job in jobs.values():
                    job.cancel()
    return {key: job.result() for key, job in jobs.items()}
