# SPDX-License-Identifier: GPL-2.0
"""What plugbench can measure by itself, fio's command line for a workload, and
what its JSON says."""
import collections
import json

from ..report.results import FRAME_ENDS

PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}
# A limit of ours takes the place of these.
RATES = ("rate", "rate_min", "rate_iops", "rate_iops_min", "rate_process")

# parts: the jobs of a job file; files: it, and what it includes; boxed: whether
# fio runs in a sandbox.
Workload = collections.namedtuple(
    "Workload", "rw bs depth batch engine polled write text parts jobs files "
    "boxed", defaults=(None, 1, (), False))

# A job as words of fio's command line.  jobs: how many processes it starts;
# reads: how many of 100 I/Os, None if all are alike.
Part = collections.namedtuple("Part", "words jobs reads")

MIX = 70                        # reads of 100 I/Os, of our own that write


def workload(access, bs, depth, batch, engine="io_uring", polled=True,
             write=False):
    """A workload with the line that --help shows."""
    text = f"{access} {bs}, depth {depth}, by {batch}{', polled' * polled}"
    return Workload(access, bs, depth, batch, engine, polled, write, text)


WORKLOADS = {
    "rand4k-s32": workload("randread", "4k", 128, 32),
    "rand4k-s128": workload("randread", "4k", 128, 128),
    "seq4k-s32": workload("read", "4k", 128, 32),
    "seq128k-s32": workload("read", "128k", 128, 32),
    "rand4k-qd1": workload("randread", "4k", 1, 1),
    "rand4k-qd32-wait": workload("randread", "4k", 32, 32),
    "rand4k-qd4": workload("randread", "4k", 4, 4, polled=False),
    "libaio-rand4k-s32": workload("randread", "4k", 128, 32, "libaio", False),
    "mix70-s32": workload("randrw", "4k", 128, 32, write=True)}


def limit(iops, reads):
    """A job's part of --iops as an option of fio's, which would give so many
    to reads and so many to writes of a job that does both."""
    if reads is None:
        return f"--rate_iops={iops}"
    ours = min(max(1, iops * reads // 100), iops - 1)
    return f"--rate_iops={ours},{iops - ours}"


def job_words(one, plan):
    drop = ("cpus_allowed", "cpumask", "numa_cpu_nodes") * plan.bound + \
        RATES * bool(plan.iops)
    for part in one.parts:
        yield from (word for word in part.words
                    if word[2:].partition("=")[0] not in drop)
        if plan.iops:
            yield limit(plan.iops // one.jobs, part.reads)


def own_words(one, plan):
    yield from (f"--ioengine={one.engine}", f"--rw={one.rw}", f"--bs={one.bs}",
                f"--iodepth={one.depth}", "--norandommap",
                f"--iodepth_batch_submit={one.batch}",
                f"--iodepth_batch_complete_min={one.batch}",
                f"--iodepth_batch_complete_max={one.batch}")
    if one.engine == "io_uring":
        yield from ("--registerfiles", "--fixedbufs")
        if plan.polled and one.polled:
            yield "--hipri"
    if one.write:
        yield f"--rwmixread={MIX}"
    if plan.iops:
        yield limit(plan.iops, MIX if one.write else None)


def fio_command(plan, name, seed, seconds):
    one = plan.workloads[name]
    # options of a job file's jobs follow, but never say any of these
    return [
        "fio", "--output-format=json", *["--readonly"] * (not one.write),
        f"--name={'global' if one.parts else name}",
        f"--filename={plan.disk.node}", "--direct=1", "--thread",
        "--group_reporting", "--time_based", f"--runtime={seconds}",
        "--randrepeat=1", f"--randseed={seed}", "--lat_percentiles=1",
        "--clat_percentiles=0", "--percentile_list=50:99:99.9", FRAME_ENDS,
        *[f"--cpus_allowed={plan.cpu}"] * plan.bound,
        *(job_words if one.parts else own_words)(one, plan)]


def fio_job(text):
    """The job of fio's JSON; fio may print notes before it."""
    try:
        job = json.loads(text[text.index("{"):])["jobs"][0]
        return job if job["mixed"]["total_ios"] and not job["error"] else None
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def latencies(job):
    told = job["mixed"]["lat_ns"]
    found = {"mean": told["mean"], **{
        key: told.get("percentile", {}).get(percentile)
        for key, percentile in PERCENTILES.items()}}
    return {key: None if value is None else round(value / 1000, 3)
            for key, value in found.items()}


def busy(job, jobs):
    """CPU time per second, of which fio tells the mean of its jobs; more than
    1 if several CPUs were busy."""
    return round((job["usr_cpu"] + job["sys_cpu"]) / 100 * jobs, 4)
