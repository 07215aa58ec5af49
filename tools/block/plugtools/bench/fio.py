# SPDX-License-Identifier: GPL-2.0
"""fio's command line for a workload, and what its JSON says."""
import json

from ..report.results import FRAME_ENDS
from .jobfile import RATES
from .workloads import MIX


def limit(iops, reads):
    """A job's part of --iops as an option of fio's, which would give so many
    to reads and so many to writes of a job that does both."""
    if reads is None:
        return "--rate_iops=%d" % iops
    ours = min(max(1, iops * reads // 100), iops - 1)
    return "--rate_iops=%d,%d" % (ours, iops - ours)


def job_words(one, plan):
    """The user's jobs, but for what the command line has said."""
    drop = ("cpus_allowed", "cpumask", "numa_cpu_nodes") * plan.bound + \
        RATES * bool(plan.iops)
    for part in one.parts:
        yield from (word for word in part.words
                    if word[2:].partition("=")[0] not in drop)
        if plan.iops:
            yield limit(plan.iops // one.jobs, part.reads)


def own_words(one, plan):
    """A workload of ours."""
    words = [
        "--ioengine=" + one.engine, "--rw=" + one.rw, "--bs=" + one.bs,
        "--iodepth=%d" % one.depth, "--norandommap",
        "--iodepth_batch_submit=%d" % one.batch,
        "--iodepth_batch_complete_min=%d" % one.batch,
        "--iodepth_batch_complete_max=%d" % one.batch]
    if one.engine == "io_uring":
        words += ["--registerfiles", "--fixedbufs"]
        words += ["--hipri"] if plan.polled and one.polled else []
    if one.write:
        words.append("--rwmixread=%d" % MIX)
    if plan.iops:
        words.append(limit(plan.iops, MIX if one.write else None))
    return words


def fio_command(plan, name, seed, seconds):
    """The command line of a run."""
    one = plan.workloads[name]
    # options of a job file's jobs follow, but never say any of these
    command = ["fio", "--output-format=json"] + \
        ["--readonly"] * (not one.write) + [
            "--name=global" if one.parts else "--name=" + name,
            "--filename=" + plan.disk.node, "--direct=1", "--thread",
            "--group_reporting", "--time_based", "--runtime=%d" % seconds,
            "--randrepeat=1", "--randseed=%d" % seed, "--lat_percentiles=1",
            "--clat_percentiles=0", "--percentile_list=50:99:99.9",
            FRAME_ENDS]
    if plan.bound:
        command.append("--cpus_allowed=%d" % plan.cpu)
    return command + [*(job_words if one.parts else own_words)(one, plan)]


def fio_job(text):
    """The job of fio's JSON; fio may print notes before it."""
    try:
        job = json.loads(text[text.index("{"):])["jobs"][0]
        return job if job["mixed"]["total_ios"] and not job["error"] else None
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def latencies(job):
    """The latency of a job in microseconds."""
    told = job["mixed"]["lat_ns"]
    found = {"mean": told["mean"]}
    for key, percentile in (("p50", "50.000000"), ("p99", "99.000000"),
                            ("p999", "99.900000")):
        found[key] = told.get("percentile", {}).get(percentile)
    return {key: None if value is None else round(value / 1000, 3)
            for key, value in found.items()}


def busy(job, jobs):
    """CPU time per second; more than 1 if several CPUs were busy.

    fio's figure is the mean of the jobs.
    """
    return round((job["usr_cpu"] + job["sys_cpu"]) / 100 * jobs, 4)
