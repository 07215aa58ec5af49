#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""make sim: what the controller of `adaptive` loses to the best fixed group.

Claim: nowhere much, and on average next to nothing, on devices and under loads
that nobody chose. plugsim compiles block/blk-plug-adaptive.c and simulates
them; configurations are drawn from a seed. This is a report, not a test: goals
that are missed do not make it fail.
"""
import argparse
import json
import os
import sys

from lab.sim import ablate
from lab.sim import simconfigs
from lab.sim import simreport
from lab.sim import simrun
from plugtools.report.records import ReportError, write_file
from scripts import common

CONFIGS = 5000


class Worker:
    """Judges configurations of a seed, one after the other."""

    def __init__(self, seed):
        self.seed, self.engine = seed, simrun.Engine()

    def judge(self, index):
        """The record of one."""
        return simrun.judge_one(self.engine,
                                simconfigs.generate(self.seed, index))

    def stop(self):
        """Whoever waits for a result gets an error."""
        self.engine.process.kill()


def report(records, seed):
    """What all of it says; printed, and returned for the file."""
    found = simreport.summaries(records)
    traits = simreport.by_trait(records)
    print("\n\n".join([
        "", simreport.regret_table(found), simreport.beginning_table(records),
        simreport.trait_table(traits),
        simreport.beside_table(records), simreport.share_table(records),
        simreport.open_table(records), simreport.worst(records, seed),
        simreport.goals(found)]))
    return {"regret": found, "traits": traits,
            "goals": simreport.goals(found)}


def sweep(args):
    """Everything."""
    count = args.configs or CONFIGS
    print("sim: seed %d, %d configurations, %d jobs" % (
        args.seed, count, args.jobs), flush=True)
    records = simrun.all_of(
        [Worker(args.seed) for _ in range(args.jobs)], range(count), "sim")
    result = {"seed": args.seed, **report(records, args.seed),
              "records": records}
    path = os.path.join(simrun.OUT, "result.json")
    write_file(path, json.dumps(result, indent=0).encode("ascii"))
    paths = [path, *simreport.plots(records)]
    print("Records and plots: " + ", ".join(
        os.path.relpath(one, simrun.ROOT) for one in paths))
    if len(records) < count:
        raise KeyboardInterrupt


def row(result):
    """A run, as a row."""
    group = result["group"]
    cells = ["adaptive, ends at %g" % result["final_group"]
             if group == simrun.ADAPTIVE else str(group)]
    for phase in result["phases"]:
        cells += ["%.0f" % phase[name]["iops"] for name in simrun.BEGINNINGS]
        cells += ["%.0f" % phase["iops"],
                  "%.1f" % (phase["mean"] / 1000),
                  "%.1f" % (phase["p99"] / 1000), "%.3f" % phase["doorbells"]]
    return cells


def show(config):
    """One configuration, with every group."""
    with simrun.Engine() as engine:
        lines = [config.line(group, 2)
                 for group in (*simrun.GROUPS, simrun.ADAPTIVE)]
        results = [engine.run(line) for line in lines]
        record = simrun.judge_one(engine, config)
    names = [name + ", IOPS" for name in simrun.BEGINNINGS.values()] + [
        "IOPS", "mean us", "p99 us", "doorbells/IO"]
    rows = [["group"] + names * len(config.phases), *map(row, results)]
    print(simreport.lines(rows))
    print("%s '%s'" % (os.path.relpath(simrun.PROGRAM, simrun.ROOT),
                       lines[-1]))
    print(json.dumps(record))


def number(low, high):
    """Type of an option that is a number."""
    def convert(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                "'%s'; accepted: %d to %d" % (text, low, high))
        return int(text)
    return convert


def arguments(words):
    """Command line; exits with 2 if it can not be used."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--configs", type=number(1, 10**7),
                        help="how many configurations (default: %d, with "
                        "--ablate %d)" % (CONFIGS, ablate.CONFIGS))
    parser.add_argument("--ablate", action="store_true",
                        help="what each rule of the controller is worth")
    parser.add_argument("--seed", type=number(0, 2**63), default=1,
                        help="that they are drawn from (default: 1)")
    parser.add_argument("--jobs", type=number(1, 1024),
                        default=len(os.sched_getaffinity(0)),
                        help="at a time (default: one per CPU)")
    parser.add_argument("--only", type=number(0, 10**7), metavar="N",
                        help="show configuration N of the seed, every group")
    return parser.parse_args(words)


def main():
    """All of it."""
    args = arguments(sys.argv[1:])
    with common.program("sim", simrun.SimError, ReportError):
        simrun.build()
        if args.ablate:
            ablate.run(args.seed, args.configs or ablate.CONFIGS, args.jobs)
        elif args.only is None:
            sweep(args)
        else:
            show(simconfigs.generate(args.seed, args.only))


if __name__ == "__main__":
    main()
