# SPDX-License-Identifier: GPL-2.0
"""Runs of plugsim, and what a configuration's runs say.

Regret is 1 - IOPS of adaptive / IOPS of the best fixed group. The largest of
six noisy figures is too large on average; so the best group is chosen by runs
of one seed, and what it is worth is measured with another, which adaptive and
always get as well. Where the regret then looks large, or less than none, all
is done again with some new seeds, each of which measures the group that the
others choose: what only chance made large does not stay so."""
import concurrent.futures
import contextlib
import json
import pathlib
import queue
import subprocess

from scripts import common, kernel

OUT = pathlib.Path(kernel.BUILD, "sim")
PROGRAM = OUT / "plugsim"

ADAPTIVE = 0
ALWAYS = 32
GROUPS = (1, 2, 4, 8, 16, 32)
AGAIN = 0.015                   # a regret that is looked at again, ...
AGAIN_SEEDS = 4                 # ... with so many seeds
ENOUGH = 2000                   # I/Os that make a beginning a figure

# How adaptive begins, before it is measured: of plugsim's results.
BEGINNINGS = {"first50": "first 50 ms", "first200": "first 200 ms"}

# What a profile of the laboratory's says of a device that plugsim has, too.
MEDIA = ("units", "bandwidth_mbs", "read_latency", "write_latency", "service")

# What the mean is taken of.
FIRST = ("regret", "always", "late", *BEGINNINGS)


class SimError(Exception):
    """Something broke; the text says what."""


def build(*words):
    """Compile the simulator, if need be; words: for make, see Makefile."""
    if not pathlib.Path(kernel.TREE, "tools/include").is_dir():
        raise SimError(f"{kernel.TREE} is missing; run: make tree")
    done = subprocess.run(
        ["make", "-s", "-C", pathlib.Path(__file__).parent / "plugsim",
         f"OUT={OUT}", f"TREE={kernel.TREE}", *words], text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SimError(f"plugsim does not compile:\n{done.stdout}")


def device(profile):
    """The words of one of lab/bench/profiles.ini."""
    return " ".join([f"doorbell={profile['doorbell_ns']}", *(
        f"{key}={profile[key]}" for key in MEDIA if key in profile)])


class Engine:
    """A plugsim that takes one line after the other."""

    def __init__(self, program=PROGRAM):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError) as error:
            raise SimError(f"plugsim ended at: {line}") from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def all_of(make_judge, indexes, jobs, what):
    """What a judge says of each index, in order. make_judge(enter) makes that
    of a job, whose engines it has to enter. After Ctrl-C, of those that were
    done by then."""
    free = queue.SimpleQueue()

    def judge(index):
        one = free.get()
        try:
            return one(index)
        finally:
            free.put(one)

    with contextlib.ExitStack() as stack:
        pool = concurrent.futures.ThreadPoolExecutor(jobs)
        stack.callback(pool.shutdown, cancel_futures=True)
        # The engines end before: whoever waits for a result gets an error.
        for _ in range(jobs):
            free.put(make_judge(stack.enter_context))
        futures = [pool.submit(judge, index) for index in indexes]
        try:
            with common.clock(lambda seconds: common.how_far(
                    what, sum(one.done() for one in futures), len(futures),
                    "configurations", seconds)):
                for one in concurrent.futures.as_completed(futures):
                    one.result()
        except KeyboardInterrupt:
            futures = [one for one in futures if one.done() and
                       not one.cancelled() and not one.exception()]
            if not futures:
                raise
            print(f"{what}: interrupted; this is of {len(futures)} of "
                  f"{len(indexes)} configurations", flush=True)
        return [one.result() for one in futures]


def groups_of(config):
    """Groups that differ: a plug never holds more than a submission."""
    most = max(load["batch"] for phase in config.phases
               for load in phase.loads)
    return [group for group in GROUPS if group < most or group == ALWAYS]


def best_of(runs):
    """The fastest group, given {group: result} of some seeds; the larger of
    two that are equal."""
    groups = [group for group in runs[0] if group != ADAPTIVE]
    return max(groups, key=lambda group: (sum(
        one[group]["all"]["iops"] for one in runs), group))


class Judge:
    """The runs of one configuration."""

    def __init__(self, engine, config):
        self.engine, self.config = engine, config

    def run(self, groups, seed, warm=True):
        """{group: result}"""
        return {group: self.engine.run(self.config.line(group, seed, warm))
                for group in groups}

    def look(self):
        """Choose with short runs, measure those that matter: [(best group,
        {group: result})]."""
        best = best_of([self.run(groups_of(self.config), 1, warm=False)])
        return [(best, self.run(sorted({ADAPTIVE, ALWAYS, best}), 2))]

    def look_again(self):
        """The same of more seeds, all groups at length."""
        groups = [ADAPTIVE, *groups_of(self.config)]
        runs = [self.run(groups, 3 + seed) for seed in range(AGAIN_SEEDS)]
        return [(best_of(runs[:seed] + runs[seed + 1:]), runs[seed])
                for seed in range(AGAIN_SEEDS)]


def total(rounds, group, path):
    """A figure of what look() or look_again() found, summed: of a group, or
    of the best ones if it is None. path: "all.iops", of a result; "phase." is
    its first phase."""
    found = 0
    for best, runs in rounds:
        one = runs[best if group is None else group]
        one = {**one, "phase": one["phases"][0]} if "phases" in one else one
        for name in path.split("."):
            one = one[name]
        found += one
    return found


def regret(rounds, group, path):
    best = total(rounds, None, path)
    return 1 - total(rounds, group, path) / best if best else 0.0


def ratio(rounds, path):
    """Adaptive to always."""
    always = total(rounds, ALWAYS, path)
    return total(rounds, ADAPTIVE, path) / always if always else 1.0


def shares(rounds):
    """The least and the largest share of a submitter, each compared with what
    it has under always."""
    found = []
    for _, runs in rounds:
        own, always = runs[ADAPTIVE]["ios"], runs[ALWAYS]["ios"]
        scale = sum(always) / max(1, sum(own))
        found += [scale * one / other
                  for one, other in zip(own, always) if other]
    return {"least": min(found), "largest": max(found)} if found else {}


def stationary(rounds):
    """Figures of a load that has a first part: of its beginnings, if they have
    enough I/Os."""
    found = {"late": regret(rounds, ADAPTIVE, "phase.late")}
    for name in BEGINNINGS:
        if min(run["phases"][0][name]["ios"] for _, runs in rounds
               for run in runs.values()) >= ENOUGH:
            path = f"phase.{name}.iops"
            found[name] = regret(rounds, ADAPTIVE, path)
            found[name + "_to_always"] = ratio(rounds, path)
    return found


def figures(config, rounds):
    best, runs = rounds[0]
    found = {"regret": regret(rounds, ADAPTIVE, "all.iops"),
             "always": regret(rounds, ALWAYS, "all.iops"),
             "best": best, "final": runs[ADAPTIVE]["final_group"],
             "iops": runs[ADAPTIVE]["all"]["iops"],
             "latency": ratio(rounds, "all.mean"),
             "p99": ratio(rounds, "all.p99"),
             **{name + "_p99": ratio(rounds, f"phase.{name}.p99")
                for name in BEGINNINGS}}
    for name, group in (("", ADAPTIVE), ("_always", ALWAYS), ("_best", None)):
        for key in ("doorbells", "requests"):
            found[key + name] = total(rounds, group, "all." + key) / len(rounds)
    if not config.period:
        found.update(stationary(rounds))
    if config.tasks() > 1:
        found.update(shares(rounds))
    return found


def judge_one(engine, config):
    """A record: figures, and what a first look said."""
    judge = Judge(engine, config)
    record, seed = figures(config, judge.look()), 2
    first = {"first_" + key: record[key] for key in FIRST if key in record}
    odd = max(abs(record["regret"]), -record["always"])
    if config.kind != "open" and odd > AGAIN:
        record, seed = figures(config, judge.look_again()), 3
    return {"index": config.index, "kind": config.kind,
            "class": config.of_class(), "traits": config.traits(),
            **config.queues, **record, **first,
            "line": config.line(ADAPTIVE, seed)}
