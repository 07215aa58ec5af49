# SPDX-License-Identifier: GPL-2.0
"""Rounds of SUITE=native: in each, every cell is a machine that was just
booted, and all loads run on all of them, in an order of that round."""
import contextlib
import dataclasses
import json
import os
import random
import statistics
import time

from lab.bench import lab
from lab.native import native_loads, native_uml
from scripts import common

SLICES = 16                     # of a cell's time with a load
OURS = 1.1                      # a slice that took more than the fastest, by this
                                # factor, met others on its CPU, or on the sibling
FIRST = 10                      # slices of the one that is not counted
TRIAL_IOS = 20000               # of the run that says how many I/Os a slice has


@dataclasses.dataclass(frozen=True)
class Cell:
    """A kernel, and what a user can choose on it, which holds for one boot:
    what a choice switches on is on for all disks."""

    kernel: str
    policy: str = "always"
    counters: bool = False
    plant: str = ""             # a cost that is known, in words of load.c

    @property
    def name(self):
        """One word."""
        return (f"{self.kernel}.{self.policy}"
                f"{'.counters' if self.counters else ''}"
                f"{'.' * bool(self.plant)}{self.plant}")

    def settings(self, has_policies):
        """As init.sh takes them."""
        if self.policy == "nomerges2":
            return 2, "-", self.counters
        return 0, self.policy if has_policies else "-", self.counters


@dataclasses.dataclass
class Plan:
    """What to measure: images by kernel, cells of which the first is what the
    others are compared with, loads by name, rounds."""

    images: dict
    cells: list
    loads: list
    rounds: int
    patience: float = 0         # seconds to wait for quiet, all in all
    path: str = os.devnull      # of the lines that are written
    key: dict = dataclasses.field(default_factory=dict)
    narrow: dict = dataclasses.field(default_factory=dict)  # cell: its few loads

    def __post_init__(self):
        self.cpus = native_uml.host_cpus()
        needed = max((native_loads.LOADS[name].cpus for name in self.loads),
                     default=1)
        if needed > len(self.cpus):
            raise lab.LabError(f"some of the loads need {needed} CPUs")
        self.ios = {}
        self.doing = ""

    def cells_of(self, name):
        """Those that are measured with a load."""
        return [cell for cell in self.cells if name in self.narrow.get(cell, [name])]

    def begin(self):
        with open(self.path, "w", encoding="ascii"):
            pass
        self.save({"kernels": self.key})

    def save(self, one):
        """A line for each round as it ends: an interruption loses no more than
        one."""
        with open(self.path, "a", encoding="ascii") as lines:
            lines.write(json.dumps(one) + "\n")


def shuffled(items):
    """In an order of this moment."""
    items = list(items)
    return random.sample(items, len(items))


def slice_of(machine, load, ios, plant=""):
    """ns per I/O, of its parts."""
    return machine.run(load.command(ios, plant))["parts"]


def length(plan, machine, name):
    """How many I/Os take the time of a slice on this machine."""
    if name not in plan.ios:
        load = native_loads.LOADS[name]
        plan.ios[name] = int(load.seconds * 1e9 /
                             min(slice_of(machine, load, TRIAL_IOS)))
    return plan.ios[name]


def ns_per_io(machines, load, ios):
    """{cell: ns}, after a first slice, in which caches fill and "adaptive" learns."""
    for cell in shuffled(machines):
        slice_of(machines[cell], load, FIRST * ios, cell.plant)
    found = {cell: [] for cell in machines}
    for _ in range(SLICES):
        for cell in shuffled(machines):
            found[cell] += slice_of(machines[cell], load, ios, cell.plant)
    # What others add to a slice is no part of what a kernel takes.
    return {cell: statistics.fmean(ns for ns in slices if ns <= OURS * min(slices))
            for cell, slices in found.items()}


def boot(plan, stack, names, cpus):
    """{cell: machine} for these loads, all of them set up. One by one: a CPU that waits for its
    machine's other CPU would keep the other machines' off."""
    machines = {}
    used = {cell for name in names for cell in plan.cells_of(name)}
    for cell in shuffled(used):
        machine = machines[cell] = stack.enter_context(native_uml.Machine(
            cell.name, plan.images[cell.kernel], plan.cpus[:cpus]))
        machine.start(*cell.settings(machine.has_policies()))
    return machines


def measure_on(plan, names, cpus):
    """{load: {name of a cell: ns per I/O}}, on machines of so many CPUs."""
    found = {}
    with contextlib.ExitStack() as stack:
        machines = boot(plan, stack, names, cpus)
        for name in shuffled(names):
            ios = length(plan, machines[plan.cells[0]], name)
            times = ns_per_io({cell: machines[cell] for cell in plan.cells_of(name)},
                            native_loads.LOADS[name], ios)
            found[name] = {cell.name: round(ns, 3)
                           for cell, ns in times.items()}
    return found


def measure_round(plan):
    """The same, of all loads."""
    found = {}
    for cpus in 1, 2:
        names = [name for name in plan.loads
                 if native_loads.LOADS[name].cpus == cpus]
        if names:
            found |= measure_on(plan, names, cpus)
    return found


def keep_round(plan, rounds):
    """Measure one, and say whether the machine was quiet. One in which others
    took CPU time is measured again as long as there is patience."""
    while True:
        if plan.patience > 0:
            plan.doing = "waiting for a quiet machine"
            plan.patience -= native_uml.wait_for_quiet(plan.patience)
        plan.doing = "measuring"
        others, start = native_uml.Others(), time.monotonic()
        one = {"ns": measure_round(plan),
               "quiet": others.share() < native_uml.QUIET}
        spent = time.monotonic() - start
        if one["quiet"] or spent > plan.patience:
            break
        plan.patience -= spent
    plan.save(one)
    rounds.append(one)


def measure(plan, rounds=()):
    """The rounds, after those that there are. Interrupted, fewer; none is no
    measurement."""
    rounds = list(rounds)
    plan.begin()
    for one in rounds:
        plan.save(one)
    with native_uml.alone(), common.clock(lambda seconds: common.how_far(
            "native", len(rounds), plan.rounds, "rounds", seconds)
                                                + f", {plan.doing}"):
        try:
            while len(rounds) < plan.rounds:
                keep_round(plan, rounds)
        except KeyboardInterrupt:
            if not rounds:
                raise
            print(f"native: interrupted; {len(rounds)} rounds count")
    return rounds
