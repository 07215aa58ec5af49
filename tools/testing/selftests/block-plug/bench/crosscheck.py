#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does the model SSD do what arithmetic says, with Linux on top of it?

Claim: what random 4K reads get from a modelled device is, within 2%, what an
event simulation predicts that shares no code with it; within 4% where each
has a doorbell of its own, since there the order in which a core submits and
reaps, which the simulation only splits in two, decides about batches. All
that it
knows of Linux is what an I/O costs the CPU, measured in the same run on a
device that takes no time.

--fit searches the latency of gen4 and gen5 at which the unpatched kernel gets
the RFC's plug column, and prints the lines for profiles.ini.
"""
import argparse
import json
import os
import re
import statistics
import sys

import cells
import eventsim
import lab
import profiles
import rfc
import suites

sys.path.insert(0, os.path.join(lab.ROOT, "scripts"))
import tap  # noqa: E402 pylint: disable=wrong-import-position

TOLERANCE = {"always": 0.02, "never": 0.04}
RUNS = 4        # seeds; the same of either
# What the CPU spends on an I/O, how much of it before the doorbell. The share
# matters little where the device is the limit.
SUBMIT_SHARE = 0.625
GROUPS = {"always": 32, "never": 1}
POINTS = [("gen4", "always"), ("gen4", "never"), ("gen5", "always"),
          ("gen5", "never"), ("lockstep", "always"), ("lockstep", "never"),
          ("saturated", "always"), ("vm", "never")]
LOAD = "rand4k-s32"
GRID = (0.94, 0.97, 1, 1.03, 1.06)


def known_profiles():
    """The profiles, and a device that takes no time worth mentioning, but has
    all that costs the model instructions."""
    known = profiles.load()
    known["bare"] = {**known["null"], "read_latency": "uniform:1-2",
                     "bandwidth_mbs": "1000000"}
    return known


def device(profile):
    """A profile as the simulation takes it, in the guest's ns."""
    scale = profiles.scale(profile)
    low, high = (int(text) * scale for text in re.match(
        r"uniform:(\d+)-(\d+)$",
        profile.get("read_latency", "uniform:0-0")).groups())
    service = profile.get("service", "fixed:0").partition(":")[2]
    return eventsim.Device(low, high, int(profile.get("units", 0)),
                           int(service) * scale)


def predict(profile, policy, cost):
    """IOPS of a real machine, as the simulation has them."""
    scale = profiles.scale(profile)
    core = eventsim.Core(cost * SUBMIT_SHARE, cost * (1 - SUBMIT_SHARE),
                         int(profile["doorbell_ns"]) * scale)
    shape = eventsim.Shape(group=GROUPS[policy])
    return eventsim.iops(core, device(profile), shape) * scale


def check(report):
    """All points, measured and predicted."""
    known = known_profiles()
    wanted = [cells.Cell("crosscheck", "patched", policy, profile, LOAD, run)
              for profile, policy in
              [("bare", policy) for policy in GROUPS] + POINTS
              for run in range(1, RUNS + 1)]
    found, _ = lab.measure(wanted, "crosscheck", "", known)
    means = {}
    for record in found:
        means.setdefault((record["profile"], record["policy"]),
                         []).append(record["iops"])
    scale = profiles.scale(known["bare"])
    costs = {policy: 1e9 * scale / statistics.fmean(means["bare", policy])
             for policy in GROUPS}
    points = []
    for profile, policy in POINTS:
        got = statistics.fmean(means[profile, policy])
        expected = predict(known[profile], policy, costs[policy])
        points.append({"profile": profile, "policy": policy, "iops": got,
                       "simulated": round(expected)})
        report.check(abs(got / expected - 1) <= TOLERANCE[policy],
                     "%s %s: %d measured, %d simulated, %+.2f%%" % (
                         profile, policy, got, expected,
                         100 * (got / expected - 1)))
    os.makedirs(lab.OUT, exist_ok=True)
    with open(os.path.join(lab.OUT, "crosscheck.json"), "w",
              encoding="ascii") as out:
        json.dump({"records": points, "ns_per_io": costs}, out, indent=1)


def uniform(middle, spread):
    """A latency as ssd_model takes it."""
    return "uniform:%d-%d" % (middle * (1 - spread), middle * (1 + spread))


def measured(name, middles, spread):
    """{middle: IOPS of the unpatched kernel, the mean over the seeds}."""
    known = profiles.load()
    for middle in middles:
        known["%s@%d" % (name, middle)] = {
            **known[name], "read_latency": uniform(middle, spread)}
    wanted = [cells.Cell("fit", "unpatched", "always", "%s@%d" % (name, middle),
                         LOAD, run)
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
            profiles.ProfileError) as error:
        sys.exit("crosscheck: %s" % error)


if __name__ == "__main__":
    main()
