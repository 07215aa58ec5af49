# SPDX-License-Identifier: GPL-2.0
"""The configurations that the simulator sweeps: drawn from a seed, each from
its own number, so that one can be had again without the others.

Times are in ns. Every word is explained by `plugsim --help`.
"""
import dataclasses
import math
import random

KINDS = ("closed", "wait", "open")
MOST_IN_FLIGHT = 8192           # of all queues, or a sweep takes too long
EARLY_NS = 50_000_000

# How many requests a run measures, and how many its first part has at most;
# more queues need more, since each has a controller of its own.
MEASURED = 48_000
EARLY = 500_000
PER_QUEUES = 8


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A device and its load; the second phase, if there is one, is the first
    with some words changed."""

    index: int
    kind: str
    queues: dict                # words of the run
    phases: tuple               # words of each phase

    def line(self, group, seed, early=True):
        """What plugsim reads. early: with a first part as long as adaptive's;
        a fixed group needs none but for the queues to fill."""
        scale = max(1, self.queues["hctxs"] / PER_QUEUES)
        fill = 2000 + 2 * self.in_flight()
        lengths = {"warm": EARLY_NS,
                   "ios": int(MEASURED * scale / len(self.phases)),
                   "warm_ios": int(EARLY * scale) if early else fill}
        words = {"name": self.index, "seed": seed, "group": group,
                 **self.queues, **self.phases[0], **lengths}
        return " then ".join([text(words), *map(text, self.phases[1:])])

    def in_flight(self):
        """Most requests in flight."""
        return (self.queues["hctxs"] * self.queues["tasks"] *
                max(phase["depth"] for phase in self.phases
                    if "depth" in phase))

    def last(self):
        """All words of the last phase."""
        return {key: value for phase in self.phases
                for key, value in phase.items()}


def text(words):
    """Words as plugsim reads them."""
    return " ".join("%s=%s" % item for item in words.items())


def log_uniform(rng, low, high):
    """A number, each factor of two as likely as any other."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def log_int(rng, low, high):
    """A whole one."""
    return min(high, int(log_uniform(rng, low, high + 1)))


def distribution(rng, mean):
    """Spread from 1% to 100%, in some shape."""
    spread = log_uniform(rng, 0.01, 1)
    shape = rng.choice(["uniform", "uniform", "lognormal", "bimodal"])
    if shape == "uniform":
        return "uniform:%d-%d" % (mean * (1 - spread), mean * (1 + spread))
    if shape == "lognormal":
        return "lognormal:%d:%.2f" % (mean, 100 * spread)
    share, factor = log_uniform(rng, 1, 10), log_int(rng, 2, 10)
    fast = mean / (1 + (factor - 1) * share / 100)
    return "bimodal:%d-%d:%.2f:%d" % (
        fast * (1 - spread), fast * (1 + spread), share, factor)


def stalls(rng, latency):
    """Now and then the device pauses."""
    pause = int(min(1e8, latency * log_uniform(rng, 1, 20)))
    return {"stall": pause,
            "stall_every": int(pause * log_uniform(rng, 10, 100))}


def device(rng):
    """3 us to 10 ms; as many at once as one likes, or 1 to 256."""
    latency = log_uniform(rng, 3e3, 1e7)
    words = {"lat": distribution(rng, latency), "units": 0}
    if rng.random() < 0.4:
        words = {"lat": "fixed:%d" % (latency * rng.random() / 2),
                 "units": log_int(rng, 1, 256),
                 "service": distribution(rng, latency)}
    if rng.random() < 0.2:
        words.update(mix=log_int(rng, 1, 50), mix_factor=log_int(rng, 2, 10))
    if rng.random() < 0.1:
        words.update(stalls(rng, latency))
    return words


def core(rng):
    """What the CPU takes, how regularly, and how it hears of completions."""
    words = {"submit": log_int(rng, 100, 1000), "reap": log_int(rng, 50, 500),
             "doorbell": log_int(rng, 50, 3000),
             "irq_core": rng.choices([0, 1, 2], [6, 3, 1])[0]}
    if words["irq_core"]:
        words.update(irq=log_int(rng, 300, 3000), wake=log_int(rng, 100, 3000))
        words["single"] = int(words["irq_core"] == 2)
    if rng.random() < 0.3:
        words["jitter"] = log_int(rng, 1, 50)
    if rng.random() < 0.1:
        taken = log_int(rng, 5_000, 1_000_000)
        words.update(steal=taken,
                     steal_every=int(taken * log_uniform(rng, 20, 500)))
    if rng.random() < 0.1:
        words["merge"] = log_int(rng, 1, 90)
    return words


def load(rng, kind, most):
    """Depth, and how many at a time."""
    if kind == "wait":
        depth = log_int(rng, 1, min(128, most))
        return {"depth": depth, "batch": depth, "complete": depth}
    depth = log_int(rng, 1, min(1024, most))
    batch = log_int(rng, 1, min(128, depth))
    complete = batch if rng.random() < 0.5 else log_int(rng, 1, batch)
    return {"depth": depth, "batch": batch, "complete": complete}


def mean_of(words, key):
    """Mean of a distribution's text, about."""
    shape, _, values = words.get(key, "fixed:0").partition(":")
    numbers = [float(number) for number in values.replace("-", ":").split(":")]
    if shape == "uniform":
        return sum(numbers) / 2
    if shape == "bimodal":
        low, high, share, factor = numbers
        return (low + high) / 2 * (1 + (factor - 1) * share / 100)
    return numbers[0]


def latency_of(words):
    """Mean latency of a command that meets no queue."""
    longer = 1 + words.get("mix", 0) / 100 * (words.get("mix_factor", 1) - 1)
    return longer * (mean_of(words, "lat") + mean_of(words, "service"))


def capacity(words, queues):
    """Requests per ns that any group size manages, about: of a task."""
    cpu = 2 * words["submit"] + words["reap"] + words["doorbell"]
    if words["irq_core"]:
        cpu += words["irq"] + words["wake"]
    limits = [1 / cpu, words["depth"] / (latency_of(words) + 10 * cpu)]
    if words["units"]:
        tasks = queues["hctxs"] * queues["tasks"]
        limits.append(words["units"] * mean_of(words, "service") /
                      latency_of(words) / mean_of(words, "service") / tasks)
    return min(limits)


def arrivals(rng, words, queues):
    """An open loop's rate: 2% to 70% of what is possible."""
    rate = capacity(words, queues) * log_uniform(rng, 0.02, 0.7)
    return {"arrive": int(min(1e9, max(1, words["batch"] / rate))),
            "poisson": rng.randint(0, 1)}


def next_phase(rng, kind, most):
    """What changes: the device, the load, or both."""
    what = rng.choice(["device", "load", "both"])
    words = {}
    if what != "load":
        words.update({"mix": 0, "mix_factor": 1, "stall": 0}, **device(rng))
    if what != "device":
        words.update(load(rng, kind, most))
    return words


def generate(seed, index):
    """Configuration number index of a seed."""
    rng = random.Random("%d/%d" % (seed, index))
    kind = rng.choices(KINDS, [6, 2, 2])[0]
    queues = {"hctxs": log_int(rng, 2, 64) if rng.random() < 0.2 else 1,
              "tasks": rng.randint(2, 4) if rng.random() < 0.15 else 1}
    most = MOST_IN_FLIGHT // (queues["hctxs"] * queues["tasks"])
    words = {**device(rng), **core(rng), **load(rng, kind, most)}
    if kind == "open":
        words.update(arrivals(rng, words, queues))
    phases = [words]
    if kind != "open" and rng.random() < 0.15:
        phases.append(next_phase(rng, kind, most))
    return Configuration(index, kind, queues, tuple(phases))
