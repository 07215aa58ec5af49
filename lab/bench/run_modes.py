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
from lab.qemu import guest
from scripts import common
from plugtools.report.tables import aligned

OUT = os.path.join(lab.kernel.BUILD, "run")
ALL_MODES = ["always", "never", "seq-small", "adaptive"]
WORKLOADS = ["rand4k", "seq4k", "seq128k"]
DISK_SIZE = "256m"
COLUMNS = ["policy", "workload", "IOPS (ratio)", "requests/IO",
           "requests/queue_rqs", "cmds/doorbell", "(device)", "tags batched",
           "tags single"]


class RunError(Exception):
    """The run did not happen as it must; the message says what."""


def parse_modes(text):
    """The modes to show, in the order given, without repeats."""
    modes = list(dict.fromkeys(text.split())) or ALL_MODES
    unknown = [mode for mode in modes if mode not in ALL_MODES]
    if unknown:
        raise RunError("MODES: '%s' is none of: %s"
                       % (unknown[0], ", ".join(ALL_MODES)))
    return modes


def boot_one(what, modes, icount):
    """Boot a guest for one part of the work; its boot.Result."""
    if icount:
        disk = "null:" + DISK_SIZE
    else:
        path = os.path.join(OUT, "disk.img")
        with open(path, "wb"):
            pass
        disk = "file:%s:%s" % (path, DISK_SIZE)
    return guest.work(
        "patched", os.path.join(OUT, what),
        "exec /run_modes_guest.sh %s %s\n" % (what, " ".join(modes)),
        files=guest.into("", *(os.path.join(lab.HERE, part) for part in (
            "run_modes_guest.sh", "cells_guest.sh", "nvme_guest.sh"))),
        name=what, icount=icount, smp=1, timeout=170, disks=(disk,),
        accel="tcg" if icount else os.environ.get("ACCEL") or "auto",
        trace_doorbells=not icount)


def boot_both(modes):
    """Run both guests side by side; their results, counts first."""
    reference = list(dict.fromkeys(["always"] + modes))
    found = guest.together(
        {"counts": functools.partial(boot_one, "counts", modes, False),
         "speed": functools.partial(boot_one, "speed", reference, True)},
        lambda done, seconds: "run: %d of 2 guests done, %d s"
        % (done, seconds), workers=2)
    return found["counts"], found["speed"]


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
    """One record of the result file."""
    words = counts["count", policy, workload]
    number = {key: int(text) for key, text in words.items() if text.isdigit()}
    mark = "%s.%s." % (policy, workload)
    device = sum(result.between(mark + "begin", mark + "end").values())
    iops = float(speeds["speed", policy, workload]["iops"])
    always = float(speeds["speed", "always", workload]["iops"])
    if not number["doorbells"] or device != number["doorbells"]:
        raise RunError("%s, %s: the driver counted %d doorbells, the device %d"
                       % (policy, workload, number["doorbells"], device))
    return {
        "kernel": counts["guest", None, None]["kernel"],
        "policy": policy, "device": "nvme (QEMU)", "workload": workload,
        "iops": round(iops), "ratio_to_always": per(iops, always, 3),
        "requests_per_io": per(number["requests"], number["ios"], 3),
        "requests_per_queue_rqs": per(
            number["requests"] - number["queue_rq"], number["queue_rqs"], 3),
        "commands_per_doorbell_driver": per(number["commands"],
                                            number["doorbells"], 3),
        "commands_per_doorbell_device": per(number["requests"], device, 3),
        "tags_batched": number["requests"] - number["tags_single"],
        "tags_single": number["tags_single"],
    }


def show(number):
    """A cell of the table."""
    return "-" if number is None else "%g" % number


def row(record):
    """A record as the cells of the table."""
    return [record["policy"], record["workload"],
            "%d (%.3f)" % (record["iops"], record["ratio_to_always"]),
            *(show(record[key]) for key in (
                "requests_per_io", "requests_per_queue_rqs",
                "commands_per_doorbell_driver", "commands_per_doorbell_device",
                "tags_batched", "tags_single"))]


def print_table(records):
    """The table, grouped by workload so that the policies stand together."""
    ordered = sorted(records, key=lambda r: WORKLOADS.index(r["workload"]))
    rows = [COLUMNS] + [row(record) for record in ordered]
    print("\n".join(aligned(rows)))


def main():
    """Command line."""
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
    print_table(records)
    path = os.path.join(OUT, "result.json")
    common.write_json(path, {"records": records})
    print("IOPS are virtual (one instruction takes 1 ns): only their ratios "
          "mean anything, and\nthese are the CPU's and the emulated "
          "controller's, not an SSD's.\nData written under each policy read back right. "
          "Records: %s" % os.path.relpath(path, lab.ROOT))


if __name__ == "__main__":
    main()
