# SPDX-License-Identifier: GPL-2.0
"""Records for the tests of plugbench's report."""
from plugtools.report import summary

NASTY = 'a`touch OWNED`% "q" \\ <b>&amp; {x}_y'


def record(policy="always", iops=1000.0, number=1, **fields):
    """A record that is right, but for what the test changes."""
    return dict({
        "kernel": "patched", "policy": policy, "profile": "gen4",
        "workload": "rand4k-s32", "iops": iops, "insns_per_io": 5000,
        "lat_us": {"mean": 50.0, "p50": 45, "p99": 90, "p999": 200},
        "doorbells_per_io": 0.03125, "requests_per_io": 1, "cpu_busy": 0.8,
        "run": number, "seed": number, "commit": "abc", "suite": "threads"},
                **fields)


def runs(policy, values, **fields):
    """Records of a cell, one per value of iops."""
    return [record(policy, value, number, **fields)
            for number, value in enumerate(values, 1)]


def cell(records, policy, kernel="patched"):
    found, = [one for one in summary.summarise(records)
              if (one["policy"], one["kernel"]) == (policy, kernel)]
    return found
