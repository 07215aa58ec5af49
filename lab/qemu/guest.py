# SPDX-License-Identifier: GPL-2.0
"""What all guests boot from, and the harness that boots them."""
import concurrent.futures
import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.qemu import boot
from scripts import common, kernel
from scripts.kbuild import arch

HERE = Path(__file__).parent
# No fault of who asked for guests.
ERRORS = (kernel.BuildError, boot.UsageError, arch.ArchError)
# What a script that reports in TAP sources.
TAP = str(HERE / "tap.sh")


class GuestError(kernel.BuildError):
    """The guest could not do its work; the message says why."""


libraries = arch.libraries


def into(directory, *paths):
    """SRC:DST of files for a directory of a guest."""
    return tuple(f"{path}:{directory}/{os.path.basename(path)}" for path in paths)


def linked(*programs):
    """SRC:DST of what programs link."""
    return [f"{path}:{arch.in_guest(path)}" for path in libraries(*programs)[0]]


# --- the initramfs: busybox, /init, fio, plug_load --------------------------

def plug_load():
    """The sources of the program: the laboratory's own includes the other."""
    return [HERE.parent / "load/plug_load.c", Path(kernel.SELFTESTS, "plug_load.c")]


def program(name, package):
    path = arch.find(name)
    if not path:
        raise kernel.BuildError(f"the guests need {name}: apt-get install {package}")
    return path


def busybox():
    """Debian's package busybox takes the place of busybox-static, and needs
    libraries, so that no init starts and the kernel says nothing."""
    path = program("busybox", "busybox-static")
    if libraries(path)[0]:
        raise kernel.BuildError(f"{path} wants libraries, which no guest has: "
                                "apt-get install busybox-static")
    return path


def compile_static(to, *words):
    kernel.quiet([*arch.gcc(), "-O2", "-static", "-o", to, *map(str, words), "-luring"],
                 f"{os.path.basename(to)} (Debian: libc6-dev, liburing-dev)")


def stripped(path):
    """A program's bytes, without what only a debugger reads."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run([arch.CROSS + "strip", "--strip-unneeded", "-o",
                               out.name, path], check=False, capture_output=True)
        return Path(path if done.returncode else out.name).read_bytes()


def entries(shell, fio):
    """The archive, part by part. It is not compressed: unpacking would be
    emulated, loading it is not."""
    for name in ("bin", "dev", "etc", "mnt", "proc", "run", "sys", "tmp"):
        yield boot.cpio_entry(name, 0o040755)
    yield boot.cpio_entry("sbin", 0o120777, b"bin")
    # The host's busybox has the same as the guest's, and can be asked.
    for name in kernel.quiet(["busybox", "--list"], "busybox").split():
        if name != "busybox":
            yield boot.cpio_entry(f"bin/{name}", 0o120777, b"busybox")
    yield boot.cpio_entry("bin/busybox", 0o100755, Path(shell).read_bytes())
    yield boot.cpio_entry("init", 0o100755, (HERE / "init").read_bytes())
    yield boot.cpio_entry("bin/mark", 0o120777, b"../init")
    for pair in (f"{fio}:/bin/fio", *linked(fio)):
        path, _, name = pair.rpartition(":")
        yield from boot.cpio_parents(name)
        yield boot.cpio_entry(name, 0o100755, stripped(path))
    with tempfile.TemporaryDirectory() as top:
        compile_static(f"{top}/plug_load", plug_load()[0])
        yield boot.cpio_entry("bin/plug_load", 0o100755, stripped(f"{top}/plug_load"))
    yield boot.cpio_entry("TRAILER!!!", 0)


def initramfs():
    """Built if its inputs changed; returns its path."""
    path = Path(kernel.BUILD) / "guest/initramfs.cpio"
    programs = busybox(), program("fio", "fio")
    inputs = hashlib.sha256(b"".join(
        Path(name).read_bytes() for name in (
            *programs, HERE / "init", __file__, *plug_load()))).hexdigest()
    known, new = path.with_suffix(".inputs"), path.with_suffix(".new")
    with common.locked(str(path.with_name(".lock"))):
        if not path.exists() or boot.read_text(known) != inputs:
            known.unlink(missing_ok=True)
            with new.open("wb") as out:
                out.writelines(entries(*programs))
            new.rename(path)
            known.write_text(inputs, encoding="ascii")
    return str(path)


# --- guests ----------------------------------------------------------------

def run(variant, out, job, **how):
    """Boot a kernel for a job, the text of a script; its boot.Result."""
    os.makedirs(out, exist_ok=True)
    path = Path(out, "job")
    path.write_text(job, encoding="utf-8")
    return boot.boot(boot.Guest(kernel=kernel.image(variant), job=str(path),
                                initramfs=initramfs(), out=out, **how))


def work(variant, out, job, **how):
    """The same for a job that must pass; it may say "error WHY"."""
    result = run(variant, out, job, **how)
    if result.status != "pass":
        errors = [line[6:] for line in result.lines if line[:6] == "error "]
        raise GuestError(f"{how['name']}: {errors[0] if errors else result.reason}; "
                         f"see {result.log}")
    return result


def together(calls, text=None, workers=len(os.sched_getaffinity(0)), **pool):
    """{key: what it returned} of {key: call}, side by side, until one fails. An
    interrupt ends this process at once, with which guests die that threads have booted.

    text: for the clock, given how many are done and the seconds; pool: how the
    threads are made."""
    def done():
        return sum(job.done() for job in jobs.values())

    clock = common.clock(lambda seconds: text(done(), seconds)) \
        if text else contextlib.nullcontext()
    with concurrent.futures.ThreadPoolExecutor(workers, **pool) as threads:
        jobs = {key: threads.submit(call) for key, call in calls.items()}
        with clock:
            try:
                for job in concurrent.futures.as_completed(jobs.values()):
                    job.result()
            except KeyboardInterrupt:
                print("interrupted", file=sys.stderr, flush=True)
                os._exit(130)
            finally:
                for job in jobs.values():
                    job.cancel()
    return {key: job.result() for key, job in jobs.items()}
