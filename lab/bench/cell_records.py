# SPDX-License-Identifier: GPL-2.0
"""What guests have said, as the records of a result file."""
import functools

from plugtools.core import system
from lab.bench import cells as c, foreign, profiles

# What remains is the tick, and interrupts that hit another task.
BUSY = 0.97
per = functools.partial(system.per, digits=5)


def of_load(cell, profile, number):
    """The figures of plug_load and of the device; latency is a real machine's,
    in us."""
    workload, scale = c.WORKLOADS[cell.workload], profiles.scale(profile)
    total = workload.length(profile, cell)[0] or number["ios"]
    busy = min(1, number["cpu_ns"] / number["ns"])
    # Time is instructions only where nothing is waited for.
    bound = cell.profile == "null" and busy > BUSY
    counts = {name: number[name] for name in (
        "queue_rqs", "queue_rq", "tag_batches", "tags_single") if name in number}
    if number.get("dev_polls"):
        counts.update(polls=number["dev_polls"],
                      poll_hits=number["dev_poll_hits"])
    return {
        "iops": round(number["ios"] * 1e9 / number["ns"] * scale, 1),
        "insns_per_io": per(number["ns"], number["ios"]) if bound else None,
        "lat_us": {key: round(number["lat_" + key] / 1000 / scale, 3)
                   for key in ("mean", "p50", "p99", "p999")},
        "doorbells_per_io": per(number["dev_doorbells"], total),
        "requests_per_io": per(number["dev_commands"], total),
        "interrupts_per_io": per(number.get("dev_interrupts"), total),
        "cpu_busy": round(busy, 4),
        **{f"{name}_per_io": per(count, total)
           for name, count in counts.items()},
    }


def of_foreign(cell, profile, number, words):
    """The figures of a program that was watched, or that did its work."""
    block = c.WORKLOADS[cell.workload].block
    done, ns = number.get("ops"), number.get("us", 0) * 1000
    if done is None:
        done, ns = number["bytes"] / block, number["ns"]
    ios = number.get("all_bytes", number["bytes"]) / block
    return {
        "iops": round(done * 1e9 / ns * profiles.scale(profile), 1),
        "requests_per_io": per(number["dev_commands"], ios),
        "doorbells_per_io": per(number.get("dev_doorbells"), ios),
        "in_force": words["in_force"], "nomerges": number["nomerges"],
    }


def make(cell, profile, words, commit):
    number = {key: int(text) for key, text in words.items()
              if str(text).lstrip("-").isdigit()}
    if isinstance(c.WORKLOADS[cell.workload], foreign.Watched):
        figures = of_foreign(cell, profile, number, words)
    else:
        figures = of_load(cell, profile, number)
    return {
        "suite": cell.suite,
        "kernel": "unpatched" if cell.kernel == "noplug" else cell.kernel,
        "policy": cell.policy, "profile": cell.profile,
        "workload": cell.workload, "run": cell.run, "seed": cell.run,
        "commit": commit, "time_scale": profiles.scale(profile), **figures}
