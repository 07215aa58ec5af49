# SPDX-License-Identifier: GPL-2.0
"""What can be measured: workloads, policies, and cells made of both."""
import dataclasses

from lab.bench import foreign, pace, profiles

# Which build of kernel.py stands for a kernel, and what a user can choose on
# it. The RFC's hack is a kernel of its own, but as a record it is "unpatched"
# with the policy "noplug".
BUILDS = {"unpatched": "base", "noplug": "noplug", "rfcera": "rfcera",
          "patched": "patched"}
MODES = ["always", "never", "seq-small", "adaptive"]
BASELINES = [("unpatched", "always"), ("unpatched", "nomerges2"),
             ("noplug", "noplug")]
OURS = [("patched", mode) for mode in MODES]
EVERY = BASELINES + OURS
ALWAYS, ADAPTIVE = ("unpatched", "always"), ("patched", "adaptive")

# How long "adaptive" may learn before it is measured, on a real machine, ...
LEARN_MS = foreign.LEARN_MS
# ... and where latency varies by more than what a group size is worth, so that
# finding one takes long: what it does meanwhile is measured apart.
WARM_MS = 1000
WARM = ("gen4", "gen5", "vm", "lockstep")

# Ordinary cells that last as long as one with such a warm-up.
WARM_CELLS = 8

# The profiles of the emulated controller and of null_blk, which no model stands
# for.
NVME = "nvme-qemu"
NULL_BLK = "null_blk"


def is_long(cell):
    """Does it take WARM_CELLS times as long as others?"""
    load = WORKLOADS[cell.workload]
    return isinstance(load, Load) and load.before_ms(cell) >= WARM_MS


def timed(profile):
    return "read_latency" in profile or "service" in profile


@dataclasses.dataclass(frozen=True)
class Load:
    """plug_load loads the devices."""

    name: str
    args: str
    ios: int = 64000
    devices: int = 1
    polled: bool = True
    settings: tuple = ()        # (key, value), over those of the profile
    timed_ios: int = 0          # on a device that takes time, if not ios
    learn_ms: float = None      # before it is measured, if it is the load's

    def command(self, profile, cell):
        """The command of a cell. A device that cannot be polled is not."""
        words = ["plug_load", "-l", "-S", str(cell.run), *self.args.split(),
                 *self.amount(profile, cell)]
        if self.polled and profile["poll_queues"] != "0":
            words.append("-P")
        return words

    def amount(self, profile, cell):
        total, warmup = self.length(profile, cell)
        return ["-n", str(total), "-W", str(warmup)]

    def before_ms(self, cell):
        """ms before it is measured, at least."""
        if self.learn_ms is not None:
            return self.learn_ms
        warm = cell.policy == "adaptive" and cell.profile in WARM
        return WARM_MS if warm else LEARN_MS

    def length(self, profile, cell):
        """All I/Os of a cell, and those of them that are not measured: what
        adaptive learns from. On a device that takes time others have some,
        too, since batches of any policy take long to fall into step."""
        count = timed(profile) and self.timed_ios or self.ios
        warmup = learn = count // 10
        if timed(profile) or cell.policy == "adaptive":
            learn = max(warmup, pace.ios(self, profile, self.before_ms(cell)))
        return count - warmup + learn, learn


@dataclasses.dataclass(frozen=True)
class Timed(Load):
    """A load that lasts as long on every device."""

    ms: float = LEARN_MS        # that are measured, about

    def length(self, profile, cell):
        learn = pace.ios(self, profile, self.before_ms(cell))
        return learn + pace.ios(self, profile, self.ms), learn


@dataclasses.dataclass(frozen=True)
class Beginning(Load):
    """So many ms of a real machine, from an idle device and with nothing
    learnt."""

    learn_ms: float = 0
    ms: float = LEARN_MS

    def amount(self, profile, cell):
        return ["-T", str(int(self.ms * profiles.scale(profile)))]

    def length(self, profile, cell):
        """It is known afterwards."""
        return None, 0


DEEP = "-d 128 -s 32 -c 32"
RAND = f"-a rand -b 4k {DEEP}"
LOADS = (
    Load("rand4k-s32", RAND),
    Load("rand4k-s128", "-a rand -b 4k -d 128 -s 128 -c 128"),
    Load("libaio-rand4k-s32", f"-e libaio {RAND}", polled=False),
    Load("seq4k-s32", f"-a seq -b 4k {DEEP}"),
    Load("seq128k-s32", f"-a seq -b 128k {DEEP}", ios=9600),
    Load("twodev-rand4k-s32", RAND, devices=2),
    Load("twons-rand4k-s32", RAND, settings=(("namespaces", "2"),)),
    Load("rand4k-qd1", "-a rand -b 4k -d 1 -s 1 -c 1", ios=9600,
         timed_ios=1200),
    Load("onecore-peak", f"-a rand -b 512 {DEEP}",
         settings=(("queue.nomerges", "2"), ("queue.iostats", "0"))),
    Load("mix70-s32", f"-a rand -b 4k -m 30 {DEEP}"),
    Load("phase-change", f"-a rand -b 4k --bs2 128k --period 3200 {DEEP}",
         ios=25600),
    Load("rand4k-qd32-wait", "-a rand -b 4k -s 32 -w", ios=32000),
    Load("rand4k-qd4", "-a rand -b 4k -s 4 -w", ios=9600, polled=False),
    Load("rand4k-qd1-irq", "-a rand -b 4k -d 1 -s 1 -c 1", ios=9600,
         polled=False),
)

# From the beginning, and, since others get slower with time, too, with both
# policies warmed up: no part of what suites say of adaptive otherwise.
BEGINNINGS, LATER = {"-first50": 50, "-first200": 200}, "-after1s"


def parts(load):
    same = load.args, load.ios, load.devices, load.polled, load.settings
    yield Timed(load.name + LATER, *same, learn_ms=WARM_MS, ms=80)
    for end, ms in BEGINNINGS.items():
        yield Beginning(load.name + end, *same, ms=ms)


WORKLOADS = {workload.name: workload for workload in (
    *LOADS, *foreign.ALL,
    *(part for load in LOADS for part in parts(load)),
)}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One measurement: a kernel under a policy, a device, a load."""

    suite: str
    kernel: str                 # of BUILDS
    policy: str
    profile: str
    workload: str
    run: int = 1                # and what the load's and the device's chance is of


def product(suite, pairs, names, workloads, runs=1):
    """The cells of all combinations, the policies of a workload together."""
    return [Cell(suite, kernel, policy, profile, workload, run)
            for run in range(1, runs + 1) for profile in names
            for workload in workloads for kernel, policy in pairs]


def start(suite, names, workload, runs=1, ends=tuple(BEGINNINGS)):
    """The cells of how adaptive begins, beside the unpatched plug."""
    return product(suite, [ALWAYS, ADAPTIVE],
                   [name for name in names if name in WARM],
                   [workload + end for end in ends], runs)
