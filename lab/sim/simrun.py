# SPDX-License-Identifier: GPL-2.0
"""Runs of plugsim, and what a configuration's runs say.

Regret is 1 - IOPS of adaptive / IOPS of the best fixed group. The largest of
six noisy figures is too large on average; so the best group is chosen by runs
of one seed, and what it is worth is measured with another, which adaptive and
always get as well. Where the regret then looks large, or less than none, all
is done again with some new seeds, each of which measures the group that the
others choose: what only chance made large does not stay so.
"""
import concurrent.futures
import json
import os
import queue
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))

from scripts import ROOT, common, kernel  # noqa: F401

TREE = kernel.TREE
OUT = os.path.join(kernel.BUILD, "sim")
PROGRAM = os.path.join(OUT, "plugsim")

ADAPTIVE = 0
ALWAYS = 32
GROUPS = (1, 2, 4, 8, 16, 32)
AGAIN = 0.015                   # a regret that is looked at again, ...
AGAIN_SEEDS = 4                 # ... with so many seeds
ENOUGH = 2000                   # I/Os that make a beginning a figure

# How adaptive begins, before it is measured: of plugsim's results.
BEGINNINGS = {"first50": "first 50 ms", "first200": "first 200 ms"}

# What the mean is taken of.
FIRST = ("regret", "always", "late", *BEGINNINGS)


class SimError(Exception):
    """Something broke; the text says what."""


def build(*words):
    """Compile the simulator, if need be; words: for make, see Makefile."""
    if not os.path.isdir(os.path.join(TREE, "tools/include")):
        raise SimError("%s is missing; run: make tree" % TREE)
    done = subprocess.run(
        ["make", "-s", "-C", os.path.join(HERE, "plugsim"), "OUT=" + OUT,
         "TREE=" + TREE, *words], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SimError("plugsim does not compile:\n" + done.stdout)


class Engine:
    """A plugsim that takes one line after the other."""

    def __init__(self, program=PROGRAM):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)

    def run(self, line):
        """The result of a line."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            return json.loads(answer)
        except (OSError, ValueError) as error:
            raise SimError("plugsim ended at: %s" % line) from error

    def stop(self):
        """No more."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def all_of(workers, indexes, what):
    """What judge() of some worker says of each index, in order; the workers
    are stopped then. After Ctrl-C, of those that were done by then."""
    free = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def judge(index):
        worker = free.get()
        try:
            return worker.judge(index)
        finally:
            free.put(worker)

    pool = concurrent.futures.ThreadPoolExecutor(len(workers))
    try:
        jobs = [pool.submit(judge, index) for index in indexes]
        with common.clock(lambda seconds: common.how_far(
                what, sum(job.done() for job in jobs), len(jobs),
                "configurations", seconds)):
            for job in concurrent.futures.as_completed(jobs):
                job.result()
        return [job.result() for job in jobs]
    except KeyboardInterrupt:
        done = [job.result() for job in jobs if job.done() and
                not job.cancelled() and not job.exception()]
        if not done:
            raise
        print("%s: interrupted; this is of %d of %d configurations" % (
            what, len(done), len(jobs)), flush=True)
        return done
    finally:
        for worker in workers:
            worker.stop()
        pool.shutdown(cancel_futures=True)


def trace(line):
    """The samples of a run: lists of numbers, as plugsim --help has them."""
    done = subprocess.run([PROGRAM, "--trace", line], stdout=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        raise SimError("plugsim failed at: %s" % line)
    return [[float(word) for word in row.split("\t")[1:]]
            for row in done.stdout.splitlines() if row.startswith("sample")]


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


def regret(rounds, group, figure):
    """Of a group, over what look() or look_again() found; figure: of a
    result."""
    own = sum(figure(runs[group]) for _, runs in rounds)
    best = sum(figure(runs[chosen]) for chosen, runs in rounds)
    return 1 - own / best if best else 0.0


def of_all(key):
    """That figure of all that was measured."""
    return lambda result: result["all"][key]


def of_phase(key):
    """That figure of the first phase."""
    return lambda result: result["phases"][0][key]


def of_beginning(name, key):
    """That figure of a beginning."""
    return lambda result: result["phases"][0][name][key]


def mean(rounds, group, key):
    """Of a group, or of the best ones if it is None."""
    return sum(runs[chosen if group is None else group]["all"][key]
               for chosen, runs in rounds) / len(rounds)


def ratio(rounds, figure):
    """Adaptive to always."""
    own, always = (sum(figure(runs[group]) for _, runs in rounds)
                   for group in (ADAPTIVE, ALWAYS))
    return own / always if always else 1.0


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
    found = {"late": regret(rounds, ADAPTIVE, of_phase("late"))}
    for name in BEGINNINGS:
        ios = of_beginning(name, "ios")
        if min(ios(run) for _, runs in rounds
               for run in runs.values()) >= ENOUGH:
            found[name] = regret(rounds, ADAPTIVE, of_beginning(name, "iops"))
            found[name + "_to_always"] = ratio(rounds,
                                               of_beginning(name, "iops"))
    return found


def figures(config, rounds):
    """What the rounds say."""
    best, runs = rounds[0]
    found = {"regret": regret(rounds, ADAPTIVE, of_all("iops")),
             "always": regret(rounds, ALWAYS, of_all("iops")),
             "best": best, "final": runs[ADAPTIVE]["final_group"],
             "changes": runs[ADAPTIVE]["changes"],
             "iops": runs[ADAPTIVE]["all"]["iops"],
             "latency": ratio(rounds, of_all("mean")),
             "p99": ratio(rounds, of_all("p99")),
             **{name + "_p99": ratio(rounds, of_beginning(name, "p99"))
                for name in BEGINNINGS}}
    for name, group in (("", ADAPTIVE), ("_always", ALWAYS), ("_best", None)):
        for key in ("doorbells", "requests"):
            found[key + name] = mean(rounds, group, key)
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
