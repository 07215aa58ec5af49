# SPDX-License-Identifier: GPL-2.0
"""What SUITE=native loads its disks with."""
import dataclasses

from lab.bench import cells


@dataclasses.dataclass(frozen=True)
class InKernel:
    """load.c: a plug, bios, the end of the plug, and no system call."""

    words: dict                 # struct shape's
    disks: str = "a"
    merged: float = 0           # share of the I/Os, if the policy merges all
    seconds: float = 0.001      # of a slice

    @property
    def cpus(self):
        """Of the machine."""
        return 2 if "tasks" in self.words else 1

    def command(self, ios, plant=""):
        """What the guest reads, with a cost that is known. Two batches are the
        least: the first tenth is not measured."""
        n = self.words["n"]
        return ["load", self.disks,
                *(f"{name}={value}" for name, value in self.words.items()),
                *plant.split(), f"ios={max(ios // n, 2) * n}"]


@dataclasses.dataclass(frozen=True)
class Program:
    """plug_load: the same through io_uring, of which a system call is most,
    unless many I/Os share it."""

    args: str
    seconds = 0.004
    cpus = 1

    def command(self, ios, plant=""):
        assert not plant, "a program has none"
        return ["run", "plug_load", self.args, "-n", ios, "-W", ios // 10,
                "/dev/a"]


def plug(n, announce=None, disks="a", merged=0, seconds=0.001, **words):
    """So many bios in a plug that knows of as many."""
    return InKernel({"n": n, "announce": n if announce is None else announce,
                     **words}, disks, merged, seconds)


def alternating(run):
    """So many plugs are random, and so many sequential. At 32, these are two
    requests, as of seq4k-s32."""
    return {f"alternate-s{n}{f'-by{run}' if run > 1 else ''}":
            plug(n, change=run, merged=(1 - 1 / n) / 2 if n < 32 else 15 / 32)
            for n in (2, 4, 8, 16, 32)}


# Of two CPUs a slice has eight parts.
BOTH = {"tasks": 2, "seconds": 0.002}
REMOTE = {**BOTH, "remote": 1, "poll": 1, "disks": "pa"}

# {name: load}, as they are shown side by side
TABLES = [{
    "rand4k-s1": plug(1, announce=0),
    "rand4k-s2": plug(2),
    "rand4k-s4": plug(4),
    "rand4k-s8": plug(8),
    "rand4k-s32": plug(32),
}, {
    "rand4k-s128": plug(128),
    "rand4k-s32-cold": plug(32, cold=256),
    # Two requests, since the limit of a disk is 255 sectors by default.
    "seq4k-s32": plug(32, follow=2, merged=30 / 32),
    "half-s32": plug(32, follow=1, merged=31 / 64),
    "twodev-rand4k-s32": plug(32, disks="a b"),
}, {
    "unannounced-s32": plug(32, announce=1),
    # As NVMe completes when it is polled. The first has no plug, as rand4k-s1:
    # on 6.12 that load does not show what a real disk gains, since its disk
    # completes while 6.12's own plug around each bio still caches the time.
    "rand4k-s1-batch": plug(2, poll=1, announce=0, disks="pa"),
    "rand4k-s32-batch": plug(32, poll=1, disks="pa"),
    "twodev-rand4k-s32-batch": plug(32, poll=1, disks="pa pb"),
    # Each second I/O is waited for: schedule() flushes the plug.
    "sleeping-s32": plug(32, sleep=2),
}, {
    f"uring-{name}": Program(cells.WORKLOADS[name].args)
    for name in ("rand4k-s32", "rand4k-s128", "seq4k-s32")
} | {
    # A thousand I/Os share a system call; their plug flushes itself, each 32.
    f"uring-{name}4k-s1024": Program(f"-a {name} -d 1024 -s 1024 -c 1024")
    for name in ("rand", "seq")
}, {
    "rand4k-s1-plugged": plug(1),
    "rand4k-s16": plug(16),
    "rand4k-s64": plug(64),
    "half-s4": plug(4, follow=1, merged=3 / 8),
    "half-s8": plug(8, follow=1, merged=7 / 16),
}, {
    "unannounced-s2": plug(2, announce=1),
    "unannounced-s4": plug(4, announce=1),
    "unannounced-upto8": plug(8, announce=1, least=1),
    "unannounced-alternate-s8": plug(8, announce=1, change=1, merged=7 / 16),
    "unannounced-twodev-s32": plug(32, announce=1, disks="a b"),
}, alternating(1), alternating(4), alternating(64), {
    # So many I/Os that no two plugs are the same; and fewer than announced.
    "upto8": plug(8, least=1),
    "upto32": plug(32, least=1),
    "s4-of-32": plug(4, announce=32),
    "s16-of-32": plug(16, announce=32),
    "upto31-of-32": plug(31, announce=32, least=1),
}, {
    "rand16k-s32": plug(32, kb=16),
    "rand64k-s32": plug(32, kb=64),
    "rand128k-s32": plug(32, kb=128, disks="large"),
    "write4k-s4": plug(4, write=1),
    "write4k-s32": plug(32, write=1),
}, {
    # 64 tags; 1023, of which 64 are free, each between others that are not
    "small-s4": plug(4, disks="small"),
    "small-s32": plug(32, disks="small"),
    "full-s4": plug(4, full=16),
    "full-s32": plug(32, full=16),
    # out of an L2 cache as well, which takes much longer than the plug
    "rand4k-s32-colder": plug(32, cold=8192, seconds=0.0002),
}, {
    "deadline-s32": plug(32, disks="deadline"),
    "deadline-write4k-s32": plug(32, disks="deadline", write=1),
    "kyber-s32": plug(32, disks="kyber"),
    "noiostats-s32": plug(32, disks="noiostats"),
    "partition-s32": plug(32, disks="part1"),
}, {
    "seq4k-s2": plug(2, follow=2, merged=1 / 2),
    "seq4k-s4": plug(4, follow=2, merged=3 / 4),
    "seq4k-s8": plug(8, follow=2, merged=7 / 8),
    "threedev-s32": plug(32, disks="a b c"),
    "fourdev-s32": plug(32, disks="a b c d"),
}, {
    # Two CPUs: the second one completes what the first one sends, as where
    # interrupts go to another CPU,
    "remote-s1": plug(1, announce=0, **REMOTE),
    "remote-s4": plug(4, **REMOTE),
    "remote-s32": plug(32, **REMOTE),
    "remote-half-s8": plug(8, follow=1, merged=7 / 16, **REMOTE),
    "remote-seq4k-s32": plug(32, follow=2, merged=30 / 32, **REMOTE),
}, {
    # or both send: to one hardware queue, to one each, with few tags,
    "onequeue-s4": plug(4, **BOTH),
    "onequeue-s32": plug(32, **BOTH),
    "twoqueues-s4": plug(4, disks="two", **BOTH),
    "twoqueues-s32": plug(32, disks="two", **BOTH),
    "small-both-s32": plug(32, disks="small", **BOTH),
}, {
    # to two disks that share their tags; completed by a softirq, or a timer.
    "shared-both-s4": plug(4, disks="sa sb", **BOTH),
    "shared-both-s32": plug(32, disks="sa sb", **BOTH),
    "softirq-s32": plug(32, tasks=1, disks="softirq"),
    "softirq-both-s32": plug(32, disks="softirq", **BOTH),
    "timer-both-s32": plug(32, disks="timer", **BOTH),
}, {
    "kyber-write4k-s32": plug(32, disks="kyber", write=1),
    # as of a disk whose completions are no batch
    "remote-s32-singly": plug(32, **{**REMOTE, "poll": 2}),
    # of 64 tags 60 are held by others
    "small-full-s4": plug(4, disks="small", full=16),
}]
LOADS = {name: load for table in TABLES for name, load in table.items()}
