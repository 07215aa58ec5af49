# SPDX-License-Identifier: GPL-2.0
"""The configurations that the simulator sweeps: drawn from a seed, each from
its own number, so that one can be had again without the others.

Times are in ns. Every word is explained by `plugsim --help`."""
import dataclasses
import math
import random
import statistics

KINDS = ("closed", "wait", "open", "change")
MOST_IN_FLIGHT = 8192           # of all queues, or a sweep takes too long
WARM_NS = 1_000_000_000         # that adaptive learns before it is measured

# How many requests a run measures, and how many its first part has at most;
# more queues need more, since each has a controller of its own.
MEASURED = 48_000
WARM = 1_000_000
PER_QUEUES = 8

# Phases that alternate: how long, I/Os of the faster one, and of all of them.
PHASE_NS = (1e7, 1e9)
PHASE_IOS = (2_000, 400_000)
CHANGE_IOS = 1_600_000
MAX_CYCLES = 10
LEFT = 5
# Bursts that are measured: so many pairs, at least.
BURSTS = 8
MAX_NS = 10**12                 # that plugsim measures

CLASSES = ("one queue", "several queues", "several submitters", "changing",
           "open loop")

LATENCIES = ((1e4, "below 10 us"), (1e5, "10 to 100 us"),
             (1e6, "100 us to 1 ms"), (math.inf, "1 ms and more"))

# Where a lognormal distribution is drawn exactly; a table has 16 places, and a
# mixture needs twice as many.
LOGNORMAL = (0.00025, 0.1, 0.4, 0.7, 0.9, 0.97, 0.995, 0.99975)


@dataclasses.dataclass(frozen=True)
class Times:
    """A distribution: its quantile function, linear between (share, ns)."""

    points: tuple

    def __str__(self):
        """As media.c reads it."""
        if len(self.points) == 1:
            return f"fixed:{self.points[0][1]:.0f}"
        words, last = [], -1
        for left, (share, ns) in enumerate(self.points, 1 - len(self.points)):
            # in steps of 0.0001%: room for those that follow, up to 100%
            last = min(max(last + 1, round(1e6 * share)), 10**6 + left)
            words.append(f"{last / 1e4:g}={ns:.0f}")
        return "table:" + ",".join(words)

    def mean(self):
        if len(self.points) == 1:
            return self.points[0][1]
        return sum((after - before) * (low + high) / 2 for (before, low), (
            after, high) in zip(self.points, self.points[1:]))

    def below(self, ns):
        """What share is not above that."""
        share = 0.0
        for (before, low), (after, high) in zip(self.points, self.points[1:]):
            if ns >= high:
                share = after
            elif ns > low:
                share = before + (after - before) * (ns - low) / (high - low)
        return share

    def mixed(self, share, factor):
        """The same, but that some take longer by a factor."""
        longer = Times(tuple((part, factor * ns) for part, ns in self.points))
        points = [((1 - share) * self.below(ns) + share * longer.below(ns), ns)
                  for ns in sorted({ns for times in (self, longer)
                                    for _, ns in times.points})]
        return Times(tuple(points))


NOTHING = Times(((1, 0),))


@dataclasses.dataclass(frozen=True)
class Phase:
    """A device, CPUs, and the loads that the queues have in turn."""

    words: dict
    loads: tuple

    def text(self):
        return text(self.words) + " " + " also ".join(map(text, self.loads))


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Devices and their loads; a second phase alternates with the first."""

    index: int
    kind: str
    queues: dict                # words of the run
    phases: tuple
    period: int = 0             # ns of a phase, if they alternate

    def line(self, group, seed, warm=True):
        """What plugsim reads. warm: with a first part as long as adaptive's;
        a fixed group needs none but for the queues to fill."""
        words = {"seed": seed, "group": group, **self.queues,
                 **self.lengths(warm)}
        return text(words) + " " + " then ".join(
            phase.text() for phase in self.phases)

    def lengths(self, warm):
        """How much is simulated. Of phases that alternate all is measured;
        of bursts, whole ones."""
        scale = max(1, self.queues["hctxs"] / PER_QUEUES)
        if self.period:
            ios = self.period * sum(map(self.rate, self.phases))
            return {"warm": 0, "time": self.period, "ios": 1 << 40,
                    "cycles": int(min(MAX_CYCLES, max(2, CHANGE_IOS / ios)))}
        words = {"warm": WARM_NS, "ios": int(MEASURED * scale), "warm_ios": int(
            WARM * scale) if warm else 2000 + 2 * self.in_flight()}
        load = self.phases[0].loads[-1]
        if load.get("pause"):
            cycle = load["burst"] + load["pause"]
            on = load["burst"] * self.rate(self.phases[0])
            pairs = max(BURSTS, int(MEASURED * scale / on / 2))
            words.update(ios=1 << 40,
                         time=2 * cycle * min(MAX_NS // cycle // 2, pairs))
        return words

    def rate(self, phase):
        """I/Os per ns, about."""
        share = self.tasks() / len(phase.loads)
        return sum(share * capacity({**phase.words, **load}, self.queues)
                   for load in phase.loads)

    def tasks(self):
        return self.queues["hctxs"] * self.queues["tasks"]

    def in_flight(self):
        return self.tasks() * max(load["depth"] for phase in self.phases
                                  for load in phase.loads)

    def traits(self):
        """What else it is like, by name; of the first phase's last load."""
        words = {**self.phases[0].words, **self.phases[0].loads[-1]}
        core = ("polled", "interrupts", "interrupts of another core")
        latency = next(name for limit, name in LATENCIES
                       if latency_of(words) < limit)
        found = ["latency " + latency,
                 "batch " + range_class(words["batch"], (1, 4, 16, 32)),
                 f"{core[words['irq_core']]}, {self.kind}",
                 "units limit" if words["units"] else "no limit of units"]
        return found + [name for name, has in (
            ("sequential", words["seq"]), ("bursts", "pause" in words),
            ("submissions of any size", words["ragged"]),
            ("queues with mixed loads", len(self.phases[0].loads) > 1)) if has]

    def of_class(self):
        """Which of CLASSES this is in."""
        if self.kind in ("open", "change"):
            return CLASSES[4 if self.kind == "open" else 3]
        if self.queues["tasks"] > 1:
            return CLASSES[2]
        return CLASSES[self.queues["hctxs"] > 1]


def text(words):
    return " ".join(f"{key}={value}" for key, value in words.items())


def log_uniform(rng, low, high):
    """A number, each factor of two as likely as any other."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def log_int(rng, low, high):
    return min(high, int(log_uniform(rng, low, high + 1)))


def uniform(mean, spread):
    return Times(((0, mean * (1 - spread)), (1, mean * (1 + spread))))


def lognormal(mean, sigma):
    bell = statistics.NormalDist()
    quantiles = [mean * math.exp(sigma * bell.inv_cdf(share) - sigma**2 / 2)
                 for share in LOGNORMAL]
    return Times(tuple(zip((0, *LOGNORMAL[1:-1], 1), quantiles)))


def distribution(rng, mean):
    """Spread from 1% to 100%, in some shape."""
    spread = log_uniform(rng, 0.01, 1)
    shape = rng.choice(["uniform", "uniform", "lognormal", "bimodal"])
    if shape == "uniform":
        return uniform(mean, spread)
    if shape == "lognormal":
        return lognormal(mean, spread)
    share, factor = log_uniform(rng, 1, 10) / 100, log_int(rng, 2, 10)
    return uniform(mean / (1 + (factor - 1) * share),
                   spread).mixed(share, factor)


def device(rng):
    """3 us to 10 ms; as many at once as one likes, or 1 to 256."""
    latency = log_uniform(rng, 3e3, 1e7)
    words = {"read_latency": distribution(rng, latency), "units": 0,
             "service": NOTHING}
    drawn = "read_latency"
    if rng.random() < 0.4:
        fixed = Times(((1, latency * rng.random() / 2),))
        words = {"read_latency": fixed, "units": log_int(rng, 1, 256),
                 "service": distribution(rng, latency)}
        drawn = "service"
    if rng.random() < 0.2:
        words[drawn] = words[drawn].mixed(log_int(rng, 1, 50) / 100,
                                          log_int(rng, 2, 10))
    if rng.random() < 0.1:
        pause = int(min(1e8, latency * log_uniform(rng, 1, 20)))
        words.update(stall=pause,
                     stall_every=int(pause * log_uniform(rng, 10, 100)))
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
    words["join"] = int(words["submit"] * rng.uniform(0.7, 1))
    words["reap_join"] = int(words["reap"] * rng.uniform(0.6, 1))
    return words


def sizes(rng):
    """Of I/Os and requests; half of the devices have a link that counts."""
    size = rng.choices([4096, 16384, 65536, 131072], [7, 1, 1, 1])[0]
    words = {"size": size,
             "max_size": max(size, rng.choice([130048, 131072, 524288]))}
    if rng.random() < 0.5:
        words["bandwidth_mbs"] = int(1000 * log_uniform(rng, 3, 14))
    return words


def places(rng):
    """Most loads are random, others have streams."""
    if rng.random() < 0.75:
        return {"seq": 0, "streams": 1}
    return {"seq": 100 if rng.random() < 0.5 else log_int(rng, 10, 100),
            "streams": rng.choice([1, 1, 2, 4])}


def load(rng, kind, most):
    """Depth, and how many at a time."""
    if kind == "wait":
        depth = batch = complete = log_int(rng, 1, min(128, most))
    else:
        depth = log_int(rng, 1, min(1024, most))
        batch = log_int(rng, 1, min(128, depth))
        complete = batch if rng.random() < 0.5 else log_int(rng, 1, batch)
    return {"depth": depth, "batch": batch, "complete": complete,
            "ragged": int(rng.random() < 0.2), **places(rng)}


def bursts(rng, latency):
    """On and off, each for some round trips."""
    return {"burst": int(min(5e7, latency * log_uniform(rng, 5, 500))),
            "pause": int(min(5e7, latency * log_uniform(rng, 1, 100)))}


def loads_of(rng, kind, most, queues, latency):
    """One load, or queues that differ."""
    mixed = kind == "closed" and queues["hctxs"] > 1 and rng.random() < 0.4
    loads = [load(rng, kind, most)
             for _ in range(rng.randint(2, 4) if mixed else 1)]
    if kind in ("closed", "wait") and rng.random() < 0.15:
        loads[-1].update(bursts(rng, latency))
    return tuple(loads)


def latency_of(words):
    """Mean latency of a command that meets no queue."""
    return words["read_latency"].mean() + words["service"].mean()


def range_class(value, limits):
    """Such as "2 to 4"."""
    low = 1
    for limit in limits:
        if value <= limit:
            return str(low) if low == limit else f"{low} to {limit}"
        low = limit + 1
    return f"{low} and more"


def capacity(words, queues):
    """I/Os per ns that any group size manages, about: of a task."""
    tasks = queues["hctxs"] * queues["tasks"]
    cpu = 2 * words["submit"] + words["reap"] + words["doorbell"]
    if words["irq_core"]:
        cpu += words["irq"] + words["wake"]
    limits = [1 / cpu, words["depth"] / (latency_of(words) + 10 * cpu)]
    if words["units"]:
        limits.append(words["units"] / latency_of(words) / tasks)
    if words.get("bandwidth_mbs"):
        limits.append(words["bandwidth_mbs"] / 1000 / words["size"] / tasks)
    return min(limits)


def arrivals(rng, words, queues):
    """An open loop's rate: 2% to 70% of what is possible."""
    rate = capacity(words, queues) * log_uniform(rng, 0.02, 0.7)
    return {"arrive": int(min(1e9, max(1, words["batch"] / rate))),
            "poisson": rng.randint(0, 1)}


def changed(rng, phase, most, what=None):
    """Another phase: its device is another one, its load, or its depth."""
    what = what or rng.choice(["device", "load", "depth", "all"])
    words, loads = dict(phase.words), phase.loads
    if what in ("device", "all"):
        words.update({"stall": 0}, **device(rng))
    if what in ("load", "all"):
        loads = (load(rng, rng.choice(["closed", "wait"]), most),)
    elif what == "depth":
        depth = log_int(rng, 1, min(1024, most))
        loads = ({**loads[0], **{key: min(depth, loads[0][key])
                                 for key in ("batch", "complete")},
                  "depth": depth},)
    return Phase(words, loads)


def alternating(rng, config, most):
    """That configuration, and another phase in turn with it."""
    both = (*config.phases, changed(rng, config.phases[0], most))
    low, high = (ios / max(map(config.rate, both)) for ios in PHASE_IOS)
    # what the phase before has left in the device must not be all of it
    low = max(low, LEFT * config.in_flight() / min(map(config.rate, both)))
    period = max(min(log_uniform(rng, *PHASE_NS), high), low)
    period = min(max(period, PHASE_NS[0]), PHASE_NS[1])
    return dataclasses.replace(config, phases=both, period=int(period))


def generate(seed, index):
    """Configuration number index of a seed."""
    rng = random.Random(f"{seed}/{index}")
    kind = rng.choices(KINDS, [5, 2, 2, 2])[0]
    queues = {"hctxs": log_int(rng, 2, 64) if rng.random() < 0.25 else 1,
              "tasks": rng.randint(2, 4) if rng.random() < 0.15 else 1}
    most = MOST_IN_FLIGHT // (queues["hctxs"] * queues["tasks"])
    words = {**device(rng), **core(rng), **sizes(rng)}
    loads = loads_of(rng, kind, most, queues, latency_of(words))
    if kind == "open":
        loads[0].update(arrivals(rng, {**words, **loads[0]}, queues))
    config = Configuration(index, kind, queues, (Phase(words, loads),))
    return alternating(rng, config, most) if kind == "change" else config
