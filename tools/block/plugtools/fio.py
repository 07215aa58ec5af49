# SPDX-License-Identifier: GPL-2.0
"""fio's command line for a workload, and what its JSON says."""
import json


def own_words(one, plan):
    """A workload of ours, or the user's jobs."""
    if one.options:
        ours = ("--cpus_allowed=", "--numa_cpu_nodes=") * plan.bound + \
            ("--rate_iops=",) * bool(plan.iops)
        return [word for words in one.options.values() for word in words
                if not word.startswith(ours)]
    words = [
        "--ioengine=" + one.engine, "--rw=" + one.rw, "--bs=" + one.bs,
        "--iodepth=%d" % one.depth, "--norandommap",
        "--iodepth_batch_submit=%d" % one.batch,
        "--iodepth_batch_complete_min=%d" % one.batch,
        "--iodepth_batch_complete_max=%d" % one.batch]
    if one.engine == "io_uring":
        words += ["--registerfiles", "--fixedbufs"]
        words += ["--hipri"] if plan.polled and one.polled else []
    return words + (["--rwmixread=70"] if one.write else [])


def fio_command(plan, name, seed, seconds):
    """The command line of a run."""
    one = plan.workloads[name]
    # options of a job file's jobs follow, but never say any of these
    command = ["fio", "--output-format=json"] + \
        ["--readonly"] * (not one.write) + [
            "--name=global" if one.options else "--name=" + name,
            "--filename=" + plan.disk.node, "--direct=1", "--thread",
            "--group_reporting", "--time_based", "--runtime=%d" % seconds,
            "--randrepeat=1", "--randseed=%d" % seed, "--lat_percentiles=1",
            "--clat_percentiles=0", "--percentile_list=50:99:99.9",
            "--unified_rw_reporting=mixed"]
    if plan.bound:
        command.append("--cpus_allowed=%d" % plan.cpu)
    if plan.iops:
        command.append("--rate_iops=%d" % (plan.iops // one.jobs))
    return command + own_words(one, plan)


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
