# SPDX-License-Identifier: GPL-2.0
"""What each plug policy sends to an NVMe disk: counts, of which none is a speed.

Claim: on random 4K reads "always" sends 32 commands per doorbell, "never" 1
with its tags still batched, "seq-small" 8, "adaptive" 32 or what it tries; on
sequential 4K reads all but "never" merge alike.

A guest writes data in each mode, reads it back, and counts. Its clock follows
the number of instructions, so that a count is the same on each run. Doorbells
are counted twice, by the driver and by the emulated controller, and the two
must agree."""
import os

from lab.bench import lab
from lab.bench.cells import MODES
from lab.qemu import guest
from plugtools.core.system import per
from scripts import common, kernel

OUT = os.path.join(kernel.BUILD, "run")
WORKLOADS = {"rand4k": ("rand", "4k"), "seq4k": ("seq", "4k")}
IOS = 6400
DISK_SIZE = "256m"
PARTS = guest.into("", *(os.path.join(lab.HERE, part) for part in (
    "run_modes_guest.sh", "cells_guest.sh")))


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


def job(modes):
    lines = ["set -eu", ". /run_modes_guest.sh", "prepare"]
    for seed, mode in enumerate(modes, 1):
        lines += [f"set_policy {mode}", f"check_data {seed} {mode}",
                  *(f"count {mode} {name} {access} {size} {IOS}"
                    for name, (access, size) in WORKLOADS.items())]
    return "\n".join([*lines, ""])


def boot(modes):
    image = os.path.join(OUT, "disk.img")
    with open(image, "wb"):
        pass
    with common.clock(lambda seconds: f"counts: a guest boots and reads, {seconds:.0f} s"):
        return guest.work("patched", os.path.join(OUT, "count"), job(modes),
                          files=PARTS, name="count", smp=1, timeout=170,
                          disks=(f"file:{image}:{DISK_SIZE}",), accel="tcg",
                          icount=True, trace_doorbells=True)


def parse(lines):
    """The guest's "key=value" lines as {(kind, policy, workload): {...}}."""
    found = {}
    for line in lines:
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "kind" in words:
            found[words["kind"], words.get("policy"),
                  words.get("workload")] = words
    return found


def make_record(counts, result, policy, workload):
    words = counts["count", policy, workload]
    number = {key: int(text) for key, text in words.items() if text.isdigit()}
    mark = f"{policy}.{workload}."
    device = sum(result.between(mark + "begin", mark + "end").values())
    if not number["doorbells"] or device != number["doorbells"]:
        raise RunError(f"{policy}, {workload}: the driver counted "
                       f"{number['doorbells']} doorbells, the device {device}")
    return {
        "kernel": counts["guest", None, None]["kernel"],
        "policy": policy, "device": "nvme (QEMU)", "workload": workload,
        "requests_per_io": per(number["requests"], number["ios"], 3),
        "requests_per_queue_rqs": per(
            number["requests"] - number["queue_rq"], number["queue_rqs"], 3),
        "commands_per_doorbell_driver": per(number["requests"],
                                            number["doorbells"], 3),
        "commands_per_doorbell_device": per(number["requests"], device, 3),
        "tags_batched": number["requests"] - number["tags_single"],
        "tags_single": number["tags_single"],
    }


def records(modes):
    """Boot, and what that says; it fails unless all data read back right."""
    os.makedirs(OUT, exist_ok=True)
    result = boot(modes)
    counts = parse(result.lines)
    return [make_record(counts, result, policy, workload)
            for policy in modes for workload in WORKLOADS]
