# SPDX-License-Identifier: GPL-2.0
"""make sim: what the controller of `adaptive` loses to the best fixed group.

Claim: nowhere much, and on average next to nothing, on devices and under loads
that nobody chose. plugsim compiles block/blk-plug-adaptive.c and simulates
them; configurations are drawn from a seed. This is a report, not a test: goals
that are missed do not make it fail."""
import argparse
import json
import os

from lab.sim import ablate, opens, simconfigs, simreport, simrun
from plugtools.core.system import matching
from plugtools.report.records import ReportError, write_file
from scripts import ROOT, common

CONFIGS = 5000
PER_OPEN = 10           # of so many one more, that opens.py draws


def judged(args, count, judge, generate, what):
    """What judge() says of the first configurations."""
    def make_judge(enter):
        engine = enter(simrun.Engine())
        return lambda index: judge(engine, generate(args.seed, index))
    return simrun.all_of(make_judge, range(count), args.jobs, what)


def sweep(args):
    count = args.configs or CONFIGS
    print(f"sim: seed {args.seed}, {count} configurations, {args.jobs} jobs",
          flush=True)
    records = judged(args, count, simrun.judge_one, simconfigs.generate, "sim")
    against = judged(args, -(-count // PER_OPEN), opens.judge, opens.generate,
                     "open and changing loads")
    result = {"seed": args.seed, **simreport.report(records, args.seed),
              "against_always": simreport.against_always(against),
              "records": records, "against_always_records": against}
    path = simrun.OUT / "result.json"
    write_file(path, json.dumps(result, indent=0).encode("ascii"))
    print(f"Records: {os.path.relpath(path, ROOT)}")
    if len(records) < count:
        raise KeyboardInterrupt


def row(result):
    group = result["group"]
    cells = [f"adaptive, ends at {result['final_group']:g}"
             if group == simrun.ADAPTIVE else str(group)]
    for phase in result["phases"]:
        cells += [f"{one:.0f}" for one in (
            *(phase[name]["iops"] for name in simrun.BEGINNINGS), phase["iops"])]
        cells += [f"{phase['mean'] / 1000:.1f}", f"{phase['p99'] / 1000:.1f}",
                  f"{phase['doorbells']:.3f}"]
    return cells


def show(config):
    """One configuration, with every group."""
    with simrun.Engine() as engine:
        runs = {group: config.line(group, 2)
                for group in (*simrun.GROUPS, simrun.ADAPTIVE)}
        rows = [row(engine.run(line)) for line in runs.values()]
        record = simrun.judge_one(engine, config)
    names = [name + ", IOPS" for name in simrun.BEGINNINGS.values()] + [
        "IOPS", "mean us", "p99 us", "doorbells/IO"]
    print(simreport.lines([["group"] + names * len(config.phases), *rows]))
    print(f"{os.path.relpath(simrun.PROGRAM, ROOT)} "
          f"'{runs[simrun.ADAPTIVE]}'")
    print(json.dumps(record))


def number(low, high):
    return matching(r"\d+", f"{low} to {high}", int, low, high)


def arguments(words):
    """Command line; exits with 2 if it can not be used."""
    parser = argparse.ArgumentParser(
        prog="sim", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--configs", type=number(1, 10**7),
                        help=f"how many configurations (default: {CONFIGS}, "
                        f"with --ablate {ablate.CONFIGS})")
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


def main(words=None):
    args = arguments(words)
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
