# SPDX-License-Identifier: GPL-2.0
"""What SUITE=native loads its disks with."""
import dataclasses

from lab.bench import cells


@dataclasses.dataclass(frozen=True)
class InKernel:
    """load.c: a plug, bios, the end of the plug, and no system call."""

    n: int                      # I/Os in a plug
    announce: int               # these are as struct load has them
    follow: int = 0
    cold: int = 0
    poll: int = 0
    sleep: int = 0
    disks: str = "a a"
    merged: float = 0           # share of the I/Os, if the policy merges all
    seconds = 0.008             # of a slice

    def command(self, ios, delay=0):
        """What the guest reads. Two batches are the least: the first tenth
        is not measured."""
        return ["load", self.disks, *(
            f"{name}={getattr(self, name)}" for name in (
                "n", "announce", "follow", "cold", "poll", "sleep")),
                f"delay={delay}", f"ios={max(ios // self.n, 2) * self.n}"]


@dataclasses.dataclass(frozen=True)
class Program:
    """plug_load: the same through io_uring, of which a system call is most."""

    args: str
    seconds = 0.025

    def command(self, ios, delay=0):
        """What the guest reads."""
        assert not delay, "a program has none"
        return ["run", "plug_load", self.args, "-n", ios, "-W", ios // 10,
                "/dev/a"]


def plug(n, announce=None, **fields):
    """So many bios in a plug that knows of as many."""
    return InKernel(n, n if announce is None else announce, **fields)


# {name: load}, as they are shown side by side
TABLES = [{
    "rand4k-s1": plug(1, announce=0),
    "rand4k-s2": plug(2),
    "rand4k-s4": plug(4),
    "rand4k-s8": plug(8),
    "rand4k-s32": plug(32),
}, {
    "rand4k-s128": plug(128),
    "rand4k-s32-cold": plug(32, cold=1),
    # Two requests, since the limit of a disk is 255 sectors by default.
    "seq4k-s32": plug(32, follow=2, merged=30 / 32),
    "half-s32": plug(32, follow=1, merged=31 / 64),
    "twodev-rand4k-s32": plug(32, disks="a b"),
}, {
    "unannounced-s32": plug(32, announce=1),
    # As NVMe completes when it is polled. The first has no plug, as rand4k-s1:
    # on 6.12 that load does not show what a real disk gains, since its disk
    # completes while 6.12's own plug around each bio still caches the time.
    "rand4k-s1-batch": plug(2, poll=1, announce=0, disks="pa pa"),
    "rand4k-s32-batch": plug(32, poll=1, disks="pa pa"),
    "twodev-rand4k-s32-batch": plug(32, poll=1, disks="pa pb"),
    # Each second I/O is waited for: schedule() flushes the plug.
    "sleeping-s32": plug(32, sleep=2),
}, {
    f"uring-{name}": Program(cells.WORKLOADS[name].args)
    for name in ("rand4k-s32", "rand4k-s128", "seq4k-s32")
}]
LOADS = {name: load for table in TABLES for name, load in table.items()}
