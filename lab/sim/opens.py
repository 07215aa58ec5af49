# SPDX-License-Identifier: GPL-2.0
"""Loads that no group size decides, and loads that do not stay: what adaptive
does to them, compared with always on the same arrivals and commands.

In an open loop a load comes when it comes: the rate is no group's doing, the
latency is. The rates, the commits and the gaps are those of servers; devices
and CPUs are drawn as in simconfigs."""
import random

from lab.bench import profiles
from lab.sim import simconfigs, simrun
from lab.sim.simconfigs import (Configuration, Phase, capacity, log_int,
                                log_uniform)

# Open loops, then those that change and are closed.
SHAPES = ("poisson", "regular", "bursts", "commits", "ramp")
CHANGING = ("device", "load", "depth")
RATES = (1e4, 4e5)              # arrivals per second, ...
MOST = 0.7                      # ... or so much of what is possible
GAPS = ((5, 20), (1, 4))        # ms of a burst and of the pause after it
COMMIT_MS = (5, 20)
COMMIT_IOS = (96, 512)
DEAR_NS = (1000, 3000)          # a doorbell, where a trap or a link is in it
STEPS = 8                       # of a ramp
CHANGE_NS = (1e7, 1e8)
# Half of the devices are profiles of the bench, or their neighbours.
PROFILES = ("gen4", "gen5", "optane", "vm", "saturated")

WARM = 150_000                  # I/Os that are not measured, ...
MEASURED = 350_000              # ... and that are: some 1000 samples in all
MS = 1_000_000
ONE = {"hctxs": 1, "tasks": 1}


def open_load(batch, arrive, **words):
    return {"depth": max(1024, 4 * batch), "batch": batch, "complete": batch,
            "arrive": max(1, int(arrive)), **words}


def arriving(rng, words, batch, *rates):
    """Loads of such rates, or less where the device or the CPU is slower."""
    load = open_load(batch, 1)
    # what always can take, and no other group has to
    shared = {"doorbell": words["doorbell"] / min(batch, simrun.ALWAYS)}
    most = MOST * capacity({**words, **load, **shared}, ONE)
    return [{**load, "arrive": max(1, int(batch / min(rate / 1e9, most)))}
            for rate in rates], rng.randint(0, 1)


def commits(rng, words):
    """Many requests at once, at intervals."""
    words["doorbell"] = log_int(rng, *DEAR_NS)
    batch = log_int(rng, *COMMIT_IOS)
    arrive = rng.uniform(*COMMIT_MS) * MS
    (slow,), poisson = arriving(rng, words, batch, 1e9)
    return [{**slow, "arrive": int(max(arrive, slow["arrive"])),
             "poisson": poisson}]


def open_loads(rng, shape, words):
    if shape == "commits":
        return commits(rng, words)
    batch = log_int(rng, 1, 64)
    rates = [log_uniform(rng, *RATES)]
    if shape == "ramp":
        last = log_uniform(rng, *RATES)
        rates = [rates[0] * (last / rates[0]) ** (step / (STEPS - 1))
                 for step in range(STEPS)]
    loads, poisson = arriving(rng, words, batch, *rates)
    for one in loads:
        one["poisson"] = int(shape == "poisson" or
                             shape not in SHAPES[:2] and poisson)
        if shape == "bursts":
            burst, pause = rng.choice(GAPS)
            one.update(burst=burst * MS, pause=pause * MS)
    return loads


class Opened(Configuration):
    """One that is measured over many samples, however slowly they come."""

    def lengths(self, warm):
        load, steps = self.phases[0].loads[-1], len(self.phases)
        if steps == 1:
            return {"warm": 10**12, "warm_ios": WARM, "ios": MEASURED}
        if not self.period:
            gap = sum(phase.loads[0]["arrive"] for phase in self.phases)
            period = MEASURED / steps / load["batch"] * gap / steps
            return {"warm": 0, "ios": 1 << 40, "cycles": 1,
                    "time": min(simconfigs.MAX_NS, int(period))}
        ios = self.period * sum(map(self.rate, self.phases))
        return {"warm": 0, "ios": 1 << 40, "time": self.period,
                "cycles": int(min(1000, max(2, 2 * MEASURED / ios)))}


def changing(rng, index, shape, words):
    """A closed loop, where something is another one each 10 to 100 ms."""
    most = 1024
    phase = Phase(words, (simconfigs.load(rng, "closed", most),))
    other = simconfigs.changed(rng, phase, most, shape)
    return Opened(index, shape, ONE, (phase, other),
                  int(log_uniform(rng, *CHANGE_NS)))


def times(text, factor):
    """A distribution of profiles.ini, by so much slower."""
    numbers = [factor * float(one) for one in text.split(":")[1].split("-")]
    if len(numbers) == 1:
        return simconfigs.Times(((1, numbers[0]),))
    return simconfigs.Times(tuple(zip((0, 1), numbers)))


def device(rng):
    """Of any kind, or much as a profile."""
    if rng.random() < 0.5:
        return simconfigs.device(rng), {}
    profile = profiles.load()[rng.choice(PROFILES)]
    factor = log_uniform(rng, 0.5, 2)
    words = {"read_latency": simconfigs.NOTHING, "service": simconfigs.NOTHING,
             "units": int(profile.get("units", 0))}
    words.update({key: times(profile[key], factor) for key in
                  ("read_latency", "service") if key in profile})
    return words, {"doorbell": int(profile["doorbell_ns"])}


def generate(seed, index):
    """Configuration number index of a seed."""
    rng = random.Random(f"open {seed}/{index}")
    shape = (SHAPES + CHANGING)[index % len(SHAPES + CHANGING)]
    words, own = device(rng)
    words = {**words, **simconfigs.core(rng), **simconfigs.sizes(rng), **own}
    if shape in CHANGING:
        return changing(rng, index, shape, words)
    phases = tuple(Phase(words, ({"seq": 0, "streams": 1, **one},))
                   for one in open_loads(rng, shape, words))
    return Opened(index, shape, ONE, phases)


def judge(engine, config):
    """What adaptive is to always."""
    lines = {group: config.line(group, 2)
             for group in (simrun.ADAPTIVE, simrun.ALWAYS)}
    runs = {group: engine.run(line) for group, line in lines.items()}
    own, always = (runs[group]["all"] for group in runs)
    return {"index": config.index, "shape": config.kind,
            "final": runs[simrun.ADAPTIVE]["final_group"],
            **{name: own[key] / always[key] if always[key] else 1.0
               for name, key in (("latency", "mean"), ("p99", "p99"),
                                 ("iops", "iops"), ("doorbells", "doorbells"))},
            "line": lines[simrun.ADAPTIVE]}
