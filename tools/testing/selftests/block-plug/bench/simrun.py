# SPDX-License-Identifier: GPL-2.0
"""Runs of plugsim, and what a configuration's runs say.

Regret is 1 - IOPS of adaptive / IOPS of the best fixed group. The largest of
six noisy figures is too large on average; so the best group is chosen by runs
of one seed, and what it is worth is measured with another, which adaptive and
always get as well. Where the regret then looks large, or less than none, all
is done again with some new seeds, each of which measures the group that the
others choose: what only chance made large does not stay so.
"""
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../../../../.."))
TREE = os.path.join(ROOT, "build/linux-7.3")
OUT = os.path.join(ROOT, "build/sim")
PROGRAM = os.path.join(OUT, "plugsim")

ADAPTIVE = 0
ALWAYS = 32
GROUPS = (1, 2, 4, 8, 16, 32)
AGAIN = 0.015                   # a regret that is looked at again, ...
AGAIN_SEEDS = 4                 # ... with so many seeds
ENOUGH = 2000                   # requests that make the first part a figure

# What the mean is taken of.
FIRST = ("regret", "always", "late", "early", "changed")


class SimError(Exception):
    """Something broke; the text says what."""


def build():
    """Compile the simulator, if need be."""
    if not os.path.isdir(os.path.join(TREE, "tools/include")):
        raise SimError("build/linux-7.3 is missing; run: make tree")
    done = subprocess.run(
        ["make", "-s", "-C", os.path.join(HERE, "plugsim"), "OUT=" + OUT,
         "TREE=" + TREE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False)
    if done.returncode:
        raise SimError("plugsim does not compile:\n" + done.stdout)


class Engine:
    """A plugsim that takes one line after the other."""

    def __init__(self):
        self.process = subprocess.Popen(
            [PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
    most = max(phase.get("batch", 1) for phase in config.phases)
    return [group for group in GROUPS if group < most or group == ALWAYS]


def best_of(runs, phase):
    """The fastest group, given {group: result} of some seeds; the larger of
    two that are equal."""
    groups = [group for group in runs[0] if group != ADAPTIVE]
    return max(groups, key=lambda group: (sum(
        one[group]["phases"][phase]["iops"] for one in runs), group))


class Judge:
    """The runs of one configuration."""

    def __init__(self, engine, config):
        self.engine, self.config = engine, config

    def run(self, groups, seed, early=True):
        """{group: result}"""
        return {group: self.engine.run(self.config.line(group, seed, early))
                for group in groups}

    def best(self, runs):
        """The best group of each phase."""
        return [best_of(runs, phase)
                for phase in range(len(self.config.phases))]

    def look(self):
        """Choose with short runs, measure those that matter: [(best group of
        each phase, {group: result})]."""
        best = self.best([self.run(groups_of(self.config), 1, early=False)])
        return [(best, self.run(sorted({ADAPTIVE, ALWAYS, *best}), 2))]

    def look_again(self):
        """The same of more seeds, all groups at length."""
        groups = [ADAPTIVE, *groups_of(self.config)]
        runs = [self.run(groups, 3 + seed) for seed in range(AGAIN_SEEDS)]
        return [(self.best(runs[:seed] + runs[seed + 1:]), runs[seed])
                for seed in range(AGAIN_SEEDS)]


def regret(rounds, group, phase, field):
    """Of a group, over what look() or look_again() found."""
    own = sum(runs[group]["phases"][phase][field] for _, runs in rounds)
    best = sum(runs[chosen[phase]]["phases"][phase][field]
               for chosen, runs in rounds)
    return 1 - own / best if best else 0.0


def early_counts(runs, phase):
    """Is the first part long enough for a figure?"""
    return min(run["phases"][phase]["early_ios"]
               for run in runs.values()) >= ENOUGH


def latency_ratio(rounds, field):
    """Adaptive to always."""
    own, always = (sum(runs[group]["phases"][-1][field]
                       for _, runs in rounds) for group in (ADAPTIVE, ALWAYS))
    return own / always if always else 1.0


def figures(rounds):
    """What the rounds say."""
    last, early = len(rounds[0][0]) - 1, {}
    for name, phase in (("early", 0), ("changed", last)):
        counts = all(early_counts(runs, phase) for _, runs in rounds)
        if counts and (name == "early" or last):
            early[name] = regret(rounds, ADAPTIVE, phase, "early")
    best, runs = rounds[0]
    own = runs[ADAPTIVE]["phases"][-1]
    return {"regret": regret(rounds, ADAPTIVE, last, "iops"),
            "late": regret(rounds, ADAPTIVE, last, "late"),
            "always": regret(rounds, ALWAYS, last, "iops"),
            "best": best[-1], "final": runs[ADAPTIVE]["final_group"],
            "changes": runs[ADAPTIVE]["changes"], "iops": own["iops"],
            "doorbells": own["doorbells"], **early,
            "latency": latency_ratio(rounds, "mean"),
            "p99": latency_ratio(rounds, "p99")}


def judge_one(engine, config):
    """A record: figures, and what a first look said."""
    judge = Judge(engine, config)
    record, seed = figures(judge.look()), 2
    first = {"first_" + key: record[key] for key in FIRST if key in record}
    odd = max(abs(record["regret"]), -record["always"])
    if config.kind != "open" and odd > AGAIN:
        record, seed = figures(judge.look_again()), 3
    return {"index": config.index, "kind": config.kind, **config.queues,
            **record, **first, "line": config.line(ADAPTIVE, seed)}
