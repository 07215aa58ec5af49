# SPDX-License-Identifier: GPL-2.0
"""What guests have said, as the records of a result file."""
import json

from lab.bench import cells as c
from lab.bench import foreign
from lab.bench import profiles

# What remains is the tick, and interrupts that hit another task.
BUSY = 0.97


def per(count, of, digits=5):
    """A ratio, or None where there is nothing to divide, or to divide by."""
    if count is None or not of:
        return None
    return round(count / of, digits)


def numbers(words):
    """The counters among the words."""
    return {key: int(text) for key, text in words.items()
            if str(text).lstrip("-").isdigit()}


def head(cell, profile, commit):
    """What every record has."""
    return {
        "suite": cell.suite, "kernel": cell.recorded_kernel,
        "policy": cell.policy, "profile": cell.profile,
        "workload": cell.workload, "run": cell.run, "seed": cell.seed,
        "commit": commit, "time_scale": profiles.scale(profile),
    }


def load_latency(number, scale):
    """plug_load's percentiles in a real machine's microseconds."""
    return {key: round(number["lat_" + key] / 1000 / scale, 3)
            for key in ("mean", "p50", "p99", "p999")}


def of_load(cell, profile, number):
    """The figures of plug_load and of the device."""
    workload, scale = c.WORKLOADS[cell.workload], profiles.scale(profile)
    total = workload.length(profile, cell)[0] or number["ios"]
    busy = min(1, number["cpu_ns"] / number["ns"])
    # Time is instructions only where nothing is waited for.
    bound = cell.profile == "null" and busy > BUSY
    figures = {
        "iops": round(number["ios"] * 1e9 / number["ns"] * scale, 1),
        "insns_per_io": per(number["ns"], number["ios"]) if bound else None,
        "lat_us": load_latency(number, scale),
        "doorbells_per_io": per(number["dev_doorbells"], total),
        "requests_per_io": per(number["dev_commands"], total),
        "interrupts_per_io": per(number.get("dev_interrupts"), total),
        "cpu_busy": round(busy, 4),
    }
    for name in ("queue_rqs", "queue_rq", "tag_batches", "tags_single"):
        if name in number:
            figures[name + "_per_io"] = per(number[name], total)
    for name in ("polls", "poll_hits"):
        if number.get("dev_polls"):
            figures[name + "_per_io"] = per(number["dev_" + name], total)
    return figures


def fio_latency(job, scale):
    """Percentiles over reads and writes: those of the slower."""
    sides = [job[side]["lat_ns"] for side in ("read", "write")
             if job[side]["total_ios"]]

    def worst(get):
        found = [get(side) for side in sides]
        return round(max(found) / 1000 / scale, 3) if found else None

    return {"mean": worst(lambda side: side["mean"]),
            **{key: worst(lambda side, name=name: side["percentile"][name])
               for key, name in (("p50", "50.000000"), ("p99", "99.000000"),
                                 ("p999", "99.900000"))}}


def of_fio(profile, number, words, text):
    """The figures of fio, of the kernel's counters and of the device."""
    job, scale = json.loads(text)["jobs"][0], profiles.scale(profile)
    sides = [job["read"], job["write"]]
    ios = sum(side["total_ios"] for side in sides)
    ms = max(side["runtime"] for side in sides)
    figures = {
        "iops": round(ios * 1e3 / ms * scale, 1), "insns_per_io": None,
        "lat_us": fio_latency(job, scale),
        "doorbells_per_io": per(number["dev_doorbells"], ios),
        "requests_per_io": per(number["dev_commands"], ios),
        "cpu_busy": round(min(1, (job["usr_cpu"] + job["sys_cpu"]) / 100), 4),
        "bandwidth_mbs": round(sum(side["io_bytes"] for side in sides) / ms
                               / 1e3 * scale, 1),
        "ctx_switches": number["ctx"],
        "ctx_switches_per_io": per(number["ctx"], ios),
        "ios_per_flush": per(number["flushed"], number["flushes"], 2),
    }
    if "iostat_wrqm" in words:
        figures["wrqm_per_s"] = round(float(words["iostat_wrqm"]) * scale)
        figures["request_kb"] = float(words["iostat_kb"])
    return figures


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


def make(cell, profile, words, fio, commit):
    """One measured cell, for the result file."""
    number = numbers(words)
    if isinstance(c.WORKLOADS[cell.workload], foreign.Watched):
        figures = of_foreign(cell, profile, number, words)
    else:
        figures = (of_fio(profile, number, words, fio) if fio else
                   of_load(cell, profile, number))
    return {**head(cell, profile, commit), **figures}
