#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Show what each plug policy does on an NVMe disk.

Claim: on random 4K reads "always" sends 32 commands per doorbell, "never" 1
with its tags still batched, "seq-small" a number in between, "adaptive" 32 or
what it tries; on sequential 4K reads all but "never" merge alike.

Two guests run side by side: one writes data, reads it back and counts, on a
disk that keeps data; one measures, with a virtual clock that follows the number
of instructions, so that it repeats.  Doorbells are counted twice, by the
driver and by the emulated controller, and the two must agree.
"""
import argparse
import functools
import os

from lab.bench import lab
from lab.bench.cell_records import per
from lab.bench.cells import MODES
from lab.qemu import guest
from plugtools.report.tables import aligned
from scripts import ROOT, common, kernel

OUT = os.path.join(kernel.BUILD, "run")
# {name: (access, block size, I/Os to count, I/Os to time)}
WORKLOADS = {"rand4k": ("rand", "4k", 6400, 64000),
             "seq4k": ("seq", "4k", 6400, 64000),
             "seq128k": ("seq", "128k", 1600, 6400)}
DISK_SIZE = "256m"
PARTS = guest.into("", *(os.path.join(lab.HERE, part) for part in (
    "run_modes_guest.sh", "cells_guest.sh")))
# of a record, after the policy and the workload
COLUMNS = {"requests/IO": "requests_per_io",
           "requests/queue_rqs": "requests_per_queue_rqs",
           "cmds/doorbell": "commands_per_doorbell_driver",
           "(device)": "commands_per_doorbell_device",
           "tags batched": "tags_batched", "tags single": "tags_single"}


class RunError(Exception):
    """The run did not happen as it must; the message says what."""


def parse_modes(text):
    """The modes to show, in the order given, without repeats."""
    modes = list(dict.fromkeys(text.split())) or MODES
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise RunError(f"MODES: '{unknown[0]}' is none of: "
                       f"{', '.join(MODES)}")
    return modes


def job(what, modes):
    """What a guest does. Before it is timed, a load fills caches of the
    kernel's."""
    lines = ["set -eu", ". /run_modes_guest.sh", "prepare"]
    for seed, mode in enumerate(modes, 1):
        lines += [f"set_policy {mode}", f"check_data {seed} {mode}"
                  if what == "count" else "load -a rand -b 4k -n 6400 >/dev/null"]
        lines += [f"{what} {mode} {name} {access} {size} "
                  f"{counted if what == 'count' else timed}"
                  for name, (access, size, counted, timed) in WORKLOADS.items()]
    return "\n".join([*lines, ""])


def boot(what, modes, **how):
    return guest.work("patched", os.path.join(OUT, what), job(what, modes),
                      files=PARTS, name=what, smp=1, timeout=170, **how)


def boot_both(modes):
    image = os.path.join(OUT, "disk.img")
    with open(image, "wb"):
        pass
    reference = list(dict.fromkeys(["always", *modes]))
    found = guest.together(
        {"count": functools.partial(
            boot, "count", modes, disks=(f"file:{image}:{DISK_SIZE}",),
            accel=os.environ.get("ACCEL") or "auto", trace_doorbells=True),
         "speed": functools.partial(
             boot, "speed", reference, disks=(f"null:{DISK_SIZE}",),
             accel="tcg", icount=True)},
        lambda done, seconds: f"run: {done} of 2 guests done, {seconds:.0f} s",
        workers=2)
    return found["count"], found["speed"]


def parse(lines):
    """The guests' "key=value" lines as {(kind, policy, workload): {...}}."""
    found = {}
    for line in lines:
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "kind" in words:
            found[words["kind"], words.get("policy"),
                  words.get("workload")] = words
    return found


def make_record(counts, speeds, result, policy, workload):
    words = counts["count", policy, workload]
    number = {key: int(text) for key, text in words.items() if text.isdigit()}
    mark = f"{policy}.{workload}."
    device = sum(result.between(mark + "begin", mark + "end").values())
    iops, always = (float(speeds["speed", mode, workload]["iops"])
                    for mode in (policy, "always"))
    if not number["doorbells"] or device != number["doorbells"]:
        raise RunError(f"{policy}, {workload}: the driver counted "
                       f"{number['doorbells']} doorbells, the device {device}")
    return {
        "kernel": counts["guest", None, None]["kernel"],
        "policy": policy, "device": "nvme (QEMU)", "workload": workload,
        "iops": round(iops), "ratio_to_always": per(iops, always, 3),
        "requests_per_io": per(number["requests"], number["ios"], 3),
        "requests_per_queue_rqs": per(
            number["requests"] - number["queue_rq"], number["queue_rqs"], 3),
        "commands_per_doorbell_driver": per(number["requests"],
                                            number["doorbells"], 3),
        "commands_per_doorbell_device": per(number["requests"], device, 3),
        "tags_batched": number["requests"] - number["tags_single"],
        "tags_single": number["tags_single"],
    }


def table(records):
    """Grouped by workload so that the policies stand together. IOPS are in the
    records alone: an emulated controller's are no SSD's."""
    def show(number):
        return "-" if number is None else f"{number:g}"
    ordered = sorted(records, key=lambda r: [*WORKLOADS].index(r["workload"]))
    return "\n".join(aligned([
        ["policy", "workload", *COLUMNS],
        *([one["policy"], one["workload"], *(show(one[key]) for key in COLUMNS.values())]
          for one in ordered)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--modes", default="", metavar="'a b'",
                        help="policies to compare (default: all)")
    args = parser.parse_args()
    with common.program("run", RunError, *guest.ERRORS):
        modes = parse_modes(args.modes)
        os.makedirs(OUT, exist_ok=True)
        counted, timed = boot_both(modes)
        counts, speeds = parse(counted.lines), parse(timed.lines)
        records = [make_record(counts, speeds, counted, policy, workload)
                   for policy in modes for workload in WORKLOADS]
    path = os.path.join(OUT, "result.json")
    common.write_json(path, {"records": records})
    print(f"{table(records)}\n"
          "cmds/doorbell: the driver's count, and (device) the controller's. Nothing "
          "here is a\nspeed: this controller is emulated; make bench SUITE=native "
          "takes the time.\nData written under each policy read back right. Records: "
          f"{os.path.relpath(path, ROOT)}")


if __name__ == "__main__":
    main()
