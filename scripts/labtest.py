#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The laboratory's tests in guests: the model SSD, and plugbench on a disk.

The model runs once with a clock that follows instructions, where timing can
be tested to the nanosecond, and once with two CPUs on the unpatched kernel,
which must take the module as well. plugbench runs as on a real machine, on the
NVMe disk that QEMU emulates.
"""
import argparse
import concurrent.futures
import os
import sys

import guest
import kernel
import tap
from guest import boot

OUT = os.path.join(kernel.BUILD, "labtest")
BENCH = os.path.join(kernel.SELFTESTS, "bench")
TOOLS = os.path.join(kernel.ROOT, "tools/block")


def model_files(variant):
    """The modules and their test, for a guest."""
    return ["%s:/modules/%s" % (path, os.path.basename(path))
            for path in kernel.model(variant)] + [
                os.path.join(kernel.MODEL, "test.sh") + ":/test.sh"]


def plugbench_files(_variant):
    """plugbench, what it needs, and its test, for a guest."""
    pairs = kernel.quiet(["sh", os.path.join(BENCH, "guest_python.sh")],
                         "guest_python.sh").split()
    return pairs + ["%s:/%s" % (os.path.join(where, name), name)
                    for where, name in ((BENCH, "plugbench_guest.sh"),
                                        (TOOLS, "plugbench"),
                                        (TOOLS, "plugreport.py"))]


def disk():
    """An empty file for the emulated disk."""
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "disk.img")
    with open(path, "wb"):
        pass
    return "file:%s:256m" % path


EXACT = {"icount": True, "smp": 1, "disks": ()}
TWO_CPUS = {"accel": "tcg", "smp": 2, "disks": ()}

# name: (kernel, job, files for a kernel, settings of the guest)
RUNS = {
    "model, exact time": ("patched", "EXACT_TIME=1 sh /test.sh >&3",
                          model_files, EXACT),
    "model, unpatched": ("base", "sh /test.sh >&3", model_files, TWO_CPUS),
    "plugbench": ("patched", "sh /plugbench_guest.sh >&3", plugbench_files,
                  {"accel": "tcg", "smp": 2}),
}
DEBUG_RUNS = {"model, debug kernel": ("debug", "sh /test.sh >&3", model_files,
                                      TWO_CPUS)}


def boot_one(name, variant, command, files, how, initramfs):
    """One guest; its boot.Result."""
    out = os.path.join(OUT, name.replace(", ", "-").replace(" ", "-"))
    os.makedirs(out, exist_ok=True)
    job = os.path.join(out, "job")
    with open(job, "w", encoding="ascii") as script:
        script.write(command + "\n")
    if "disks" not in how:
        how = {**how, "disks": (disk(),)}
    return boot.boot(boot.Guest(
        kernel=kernel.image(variant), initramfs=initramfs, job=job, out=out,
        files=tuple(files(variant)), name=name, mem=1536,
        timeout=1500 if variant == "debug" else 600, **how))


def note(report, name, result):
    """The guest's results as ours."""
    results = [found for found in map(tap.parse, result.lines) if found]
    for test, status in results:
        if status == "skip":
            report.skip("%s: %s" % (name, test), "see %s" % result.log)
        else:
            report.check(status == "pass", "%s: %s" % (name, test),
                         "\n".join(result.lines[-20:]))
    report.check(result.status == "pass" and results, "%s: guest" % name,
                 "%s; see %s" % (result.reason, result.log))


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--debug", action="store_true",
                        help="the model on the kernel with KASAN and lockdep")
    runs = DEBUG_RUNS if parser.parse_args().debug else RUNS
    report = tap.Report()
    try:
        for variant in dict.fromkeys(run[0] for run in runs.values()):
            kernel.build(variant)
        initramfs = guest.initramfs()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {name: pool.submit(boot_one, name, *run, initramfs)
                    for name, run in runs.items()}
            with guest.interruptible():
                concurrent.futures.wait(jobs.values())
        for name, job in jobs.items():
            note(report, name, job.result())
    except (kernel.BuildError, boot.UsageError) as error:
        report.check(False, "guests with the model", str(error))
    report.exit()


if __name__ == "__main__":
    sys.exit(main())
