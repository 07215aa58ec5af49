# SPDX-License-Identifier: GPL-2.0
"""A second opinion on the model SSD: one polling core, simulated.

Nothing here is shared with the kernel module or with the guest: the CPU is two
costs per I/O and one per doorbell, the device draws latencies, or has units
that serve in order of arrival. What both agree on is the arithmetic; what the
guest has on top is Linux.
"""
import dataclasses
import heapq
import random


@dataclasses.dataclass(frozen=True)
class Core:
    """What the CPU takes, in ns."""

    submit: float
    reap: float
    doorbell: float = 0


@dataclasses.dataclass(frozen=True)
class Device:
    """Uniform latency in ns, after a unit, if they are limited."""

    low: float = 0
    high: float = 0
    units: int = 0
    service: float = 0


@dataclasses.dataclass(frozen=True)
class Shape:
    """The load: I/Os in flight, per submission, to wait for; and how many
    commands share a doorbell."""

    depth: int = 128
    submit: int = 32
    complete: int = 32
    group: int = 32


class Run:
    """One simulation."""

    def __init__(self, core, device, shape, seed):
        self.core, self.device, self.shape = core, device, shape
        self.random = random.Random(seed)
        self.now = 0.0
        self.due = []
        self.units = [0.0] * device.units
        self.latencies = []

    def admit(self, queued):
        """A doorbell: the device sees the commands."""
        self.now += self.core.doorbell
        for start in queued:
            ready = self.now
            if self.device.units:
                ready = max(ready, self.units[0]) + self.device.service
                heapq.heapreplace(self.units, ready)
            ready += self.random.uniform(self.device.low, self.device.high)
            heapq.heappush(self.due, (ready, start))

    def submit(self, count):
        """One submission, in groups."""
        start, queued = self.now, []
        for _ in range(count):
            self.now += self.core.submit
            queued.append(start)
            if len(queued) == self.shape.group:
                self.admit(queued)
                queued = []
        if queued:
            self.admit(queued)

    def reap(self, want):
        """Poll until so many have completed; whatever else has, comes too."""
        count = 0
        while self.due and (count < want or self.due[0][0] <= self.now):
            ready, start = heapq.heappop(self.due)
            self.now = max(self.now, ready) + self.core.reap
            self.latencies.append(self.now - start)
            count += 1

    def go(self, ios):
        """IOPS."""
        issued, shape = 0, self.shape
        while len(self.latencies) < ios:
            room = min(shape.submit, shape.depth - len(self.due), ios - issued)
            self.submit(room)
            issued += room
            more = issued < ios
            if more and len(self.due) + shape.submit <= shape.depth:
                want = 0
            else:
                want = min(shape.complete, len(self.due))
            self.reap(want)
        return ios * 1e9 / self.now


def iops(core, device, shape, ios=64000, seeds=3):
    """The mean over some seeds."""
    return sum(Run(core, device, shape, seed).go(ios)
               for seed in range(seeds)) / seeds
