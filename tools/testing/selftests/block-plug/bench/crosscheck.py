#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does the model SSD do what arithmetic says, with Linux on top of it?

Claim: what random 4K reads get from a modelled device is what plugsim predicts,
which shares no code with it, within 1% where a batch is waited for (18 points)
and within 2% where more is in flight: six devices; groups of 32, of 8 and no
plug.  All that the prediction knows of Linux is what an I/O costs the CPU
before and after its completion, measured in the same run on devices that take
next to no time, or all the same; and how often a poll found something.

Within 2% where 128 commands are in flight: in the model's tree and in any
order, they cost up to 100 instructions more than where costs are measured.
Within 5% for rand4k-s32, the load of the benchmarks: what completes beyond the
32 awaited stays idle until it is a batch, up to a quarter of all; how long that
takes depends on how often a poll finds two at once, and is a good part of a
run.

--fit searches the latency of gen4 and gen5 at which the unpatched kernel gets
the RFC's plug column, and prints the lines for profiles.ini.
"""
import argparse
import dataclasses
import json
import os
import re
import statistics
import sys

import cells
import lab
import profiles
import rfc
import simrun
import suites

sys.path.insert(0, os.path.join(lab.ROOT, "scripts"))
import tap  # noqa: E402 pylint: disable=wrong-import-position

TOLERANCE = 0.01
SEEDS = 8       # of the simulation, which costs little
GROUPS = {"always": 32, "group8": 8, "never": 1}
LOAD = "rand4k-s32"
WAIT, DEEP = "rand4k-qd32-wait", "rand4k-s64-c32"
SHAPES = {WAIT: "depth=32 batch=32 complete=32",
          DEEP: "depth=128 batch=64 complete=32",
          LOAD: "depth=128 batch=32 complete=32"}
# Seeds of the guest's runs: they differ by 0.1% but for the last, by 1%.
RUNS = {WAIT: 1, DEEP: 2, LOAD: 4}
DEVICES = ["gen4", "gen5", "lockstep", "saturated", "vm", "optane"]
POINTS = [(device, load, policy) for load in (WAIT, DEEP)
          for device in DEVICES for policy in GROUPS] + [
              (device, LOAD, "always") for device in DEVICES]
# The reasons are above.
WIDER = {DEEP: 0.02, LOAD: 0.05}
BATCH = 32
# A device that is far enough for a batch to be submitted before it answers;
# one that answers in any order, but for the CPU at the same time.
LATE_NS, SPREAD_NS = 20000, 100


def known_profiles():
    """The profiles, with a link as fast as plugsim's, which has none; and
    devices that take no time, but have all that costs the model instructions.
    """
    known = {name: {**profile, "bandwidth_mbs": "1000000"}
             for name, profile in profiles.load().items()}
    known["bare"] = {**known["null"], "read_latency": "uniform:1-2"}
    known["late"] = {**known["bare"], "read_latency": "fixed:%d" % LATE_NS}
    known["mixed"] = {**known["bare"], "read_latency": "uniform:%d-%d" % (
        LATE_NS, LATE_NS + SPREAD_NS)}
    return known


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a cell came to, per I/O, in the guest's ns; the mean over seeds."""

    ns: float
    polls: float
    hits: float         # polls that found something


@dataclasses.dataclass(frozen=True)
class Costs:
    """What an I/O takes the CPU, in the guest's ns, with a group size."""

    submit: float       # all but what a poll does
    reap: float         # what a poll does, per command
    hit: float          # and besides
    admit: float        # of submit, what is after the doorbell


def poll_cost(late, bare, idle):
    """What a poll takes that finds something, besides its commands: the CPU's
    time, less that of a batch of them; idle is a poll that finds nothing."""
    busy = late.ns - (late.polls - late.hits) * idle
    return (busy - bare.ns) / (late.hits - bare.hits)


def calibrate(got, scale):
    """{policy: Costs}, of {(profile, policy): Figures} of a batch and the wait
    for it.

    bare: everything, one after the other. late: the last group's admission
    by the device, and the polls of all groups before it, are while others
    wait. mixed: commands complete in any order, which costs tags.
    """
    late, spread = LATE_NS * scale, SPREAD_NS * scale

    def gained(policy):
        return BATCH * (got["bare", policy].ns -
                        got["late", policy].ns) + late

    admit = gained("always") / BATCH
    far = got["late", "always"]
    idle = (late / BATCH - admit) / (far.polls - far.hits)
    order = got["mixed", "always"].ns - far.ns - spread / BATCH
    hit = poll_cost(got["late", "never"], got["bare", "never"], idle)
    costs = {}
    for policy, group in GROUPS.items():
        behind = "never" if group == BATCH else policy
        size = GROUPS[behind]
        reap = (gained(behind) - size * admit) / (BATCH - size)
        costs[policy] = Costs(got["bare", policy].ns - reap + max(0, order),
                              reap, hit, admit)
    return costs


def device_words(profile, cost, group, depth):
    """A profile as plugsim takes it. What the CPU does between the doorbell
    and its next step, plugsim does before it: its latency is shorter."""
    scale = profiles.scale(profile)
    low, high = (int(text) * scale for text in re.match(
        r"uniform:(\d+)-(\d+)$",
        profile.get("read_latency", "uniform:0-0")).groups())
    units = int(profile.get("units", 0))
    service = int(profile.get("service", "fixed:0").partition(":")[2]) * scale
    words = "doorbell=%d" % (int(profile["doorbell_ns"]) * scale)
    if units >= depth:
        # each finds one that is free
        units, low, high = 0, low + service, high + service
    if units:
        return words + " lat=uniform:%d-%d units=%d service=fixed:%d" % (
            low, high, units, service)
    early = min(low, group * cost.admit)
    return words + " lat=uniform:%d-%d" % (low - early, high - early)


def predict(engine, profile, point, cost, hits):
    """IOPS of a real machine, as the simulation has them. A batch's one poll
    is part of what was measured as submission."""
    _, load, policy = point
    shape = SHAPES[load]
    depth = int(shape.split()[0].partition("=")[2])
    total, warm = cells.WORKLOADS[load].length(profile, policy)
    reap = cost.reap + cost.hit * max(0, hits - 1 / BATCH)
    line = "group=%d %s submit=%d reap=%d %s warm=%d warm_ios=%d ios=%d" % (
        GROUPS[policy], shape, cost.submit, reap,
        device_words(profile, cost, GROUPS[policy], depth), 10**12, warm,
        total - warm)
    return profiles.scale(profile) * statistics.fmean(
        engine.run("%s seed=%d" % (line, seed))["phases"][0]["iops"]
        for seed in range(1, SEEDS + 1))


def wanted_cells():
    """What is measured: costs, then points."""
    return [cells.Cell("crosscheck", "patched", policy, profile, WAIT)
            for profile in ("bare", "late", "mixed") for policy in GROUPS] + [
        cells.Cell("crosscheck", "patched", policy, profile, load, run)
        for profile, load, policy in POINTS
        for run in range(1, RUNS[load] + 1)]


def figures(found, scale):
    """{(profile, load, policy): Figures}"""
    by_cell = {}
    for record in found:
        by_cell.setdefault((record["profile"], record["workload"],
                            record["policy"]), []).append(record)

    def mean(some, key):
        return statistics.fmean(record[key] for record in some)

    return {key: Figures(1e9 * scale / mean(some, "iops"),
                         mean(some, "polls_per_io"),
                         mean(some, "poll_hits_per_io"))
            for key, some in by_cell.items()}


def judge(report, got, known):
    """Each point, measured and predicted; records."""
    scale = profiles.scale(known["bare"])
    costs = calibrate({(profile, policy): one
                       for (profile, load, policy), one in got.items()
                       if load == WAIT}, scale)
    points = []
    with simrun.Engine() as engine:
        for point in POINTS:
            iops = 1e9 * scale / got[point].ns
            expected = predict(engine, known[point[0]], point,
                               costs[point[2]], got[point].hits)
            bound = WIDER.get(point[1], TOLERANCE)
            points.append({"profile": point[0], "workload": point[1],
                           "policy": point[2], "iops": round(iops),
                           "simulated": round(expected), "within": bound})
            report.check(abs(iops / expected - 1) <= bound,
                         "%s %s %s: %d measured, %d simulated, %+.2f%%%s" % (
                             *point, iops, expected,
                             100 * (iops / expected - 1),
                             "" if bound == TOLERANCE else
                             " (within %g%%)" % (100 * bound)))
    return points, costs


def check(report):
    """All points, measured and predicted."""
    simrun.build()
    known = known_profiles()
    found, _ = lab.measure(wanted_cells(), "crosscheck", "", known)
    points, costs = judge(
        report, figures(found, profiles.scale(known["bare"])), known)
    os.makedirs(lab.OUT, exist_ok=True)
    with open(os.path.join(lab.OUT, "crosscheck.json"), "w",
              encoding="ascii") as out:
        json.dump({"records": points, "costs": {
            policy: dataclasses.asdict(cost)
            for policy, cost in costs.items()}, "measured": found}, out,
                  indent=1)


def uniform(middle, spread):
    """A latency as ssd_model takes it."""
    return "uniform:%d-%d" % (middle * (1 - spread), middle * (1 + spread))


def measured(name, middles, spread):
    """{middle: IOPS of the unpatched kernel, the mean over the seeds}."""
    known = profiles.load()
    for middle in middles:
        known["%s@%d" % (name, middle)] = {
            **known[name], "read_latency": uniform(middle, spread)}
    wanted = [cells.Cell("fit", "unpatched", "always",
                         "%s@%d" % (name, middle), LOAD, run)
              for middle in middles
              for run in range(1, suites.SUITES["rfc"].runs + 1)]
    found, _ = lab.measure(wanted, "fit " + name, "", known)
    return {middle: statistics.fmean(
        record["iops"] for record in found
        if record["profile"].endswith("@%d" % middle)) for middle in middles}


def fit(name):
    """The latency that gives the RFC's plug column, its spread kept: a line
    through round trips at latencies around the present one."""
    low, high = (int(text) for text in re.match(
        r"uniform:(\d+)-(\d+)$",
        profiles.load()[name]["read_latency"]).groups())
    spread, middle = (high - low) / (high + low), (high + low) / 2
    found = measured(name, [round(middle * factor) for factor in GRID], spread)
    slope, start = statistics.linear_regression(
        list(found), [1e9 / got for got in found.values()])
    target = rfc.TABLES[name, LOAD][0]
    for at, got in found.items():
        print("%s: latency %d gives %d" % (name, at, got))
    print("%s: for %d, read_latency = %s" % (
        name, target, uniform((1e9 / target - start) / slope, spread)),
          flush=True)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fit", action="store_true",
                        help="search the latency of gen4 and gen5")
    args = parser.parse_args()
    try:
        if args.fit:
            lab.kernel.build("base")
            fit("gen4")
            fit("gen5")
            return
        lab.kernel.build("patched")
        report = tap.Report()
        check(report)
        report.exit()
    except (lab.LabError, lab.kernel.BuildError, lab.boot.UsageError,
            profiles.ProfileError, simrun.SimError) as error:
        sys.exit("crosscheck: %s" % error)


if __name__ == "__main__":
    main()
