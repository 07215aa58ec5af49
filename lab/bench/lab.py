# SPDX-License-Identifier: GPL-2.0
"""Measure cells in guests whose time follows the instruction count."""
import functools
import glob
import os
import queue
import shutil
import subprocess
import threading

from lab.bench import cell_records, cells as c, foreign, profiles
from lab.qemu import guest
from scripts import ROOT, common, kernel

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(kernel.BUILD, "bench")
PARTS = guest.into("", *(os.path.join(HERE, part) for part in (
    "cells_guest.sh", "loads_guest.sh")))
CELLS_PER_BOOT = 24
SECONDS_PER_BOOT = 1500

# Programs of others, which the host need not have: fetch_debian.sh.
LOADS = os.path.join(kernel.CACHE, "loads")
PROGRAM_PATH = ":".join([os.environ["PATH"], "/usr/sbin", "/sbin",
                         LOADS + "/bin", LOADS + "/root/usr/bin"])

# The emulated controller polls, and takes the time it takes; null_blk takes
# none but the CPU's, which is as fast as on null.
DRIVERS = {c.NVME: {"poll_queues": "1", "time_scale": "100"},
           c.NULL_BLK: {"poll_queues": "0", "time_scale": "740"}}


class LabError(Exception):
    """The laboratory does not work; it says nothing about speed."""


ERRORS = (LabError, *guest.ERRORS)


# --- what a guest is told ----------------------------------------------------

def settings(cell, profile, workload):
    """The device of a cell, as cells_guest.sh takes it."""
    merged = {**profile, **dict(workload.settings), "seed": cell.run}
    if not workload.polled:
        merged["poll_queues"] = "0"
    return " ".join(f"{key}={value}" for key, value in merged.items())


def plan_line(number, cell, known):
    """The call of one of cells_guest.sh's functions."""
    profile, workload = known[cell.profile], c.WORKLOADS[cell.workload]
    command = " ".join(workload.command(profile, cell))
    if cell.profile in DRIVERS:
        call = "null_blk_load" if cell.profile == c.NULL_BLK else \
            "nvme_load" if is_foreign(cell) else "nvme_cell"
        return f"{call} {number} {cell.policy} {command}"
    return (f"cell {number} {cell.policy} {workload.devices} "
            f"'{settings(cell, profile, workload)}' {command}")


def plan(name, numbered, known):
    return "\n".join([
        "set -eu", *(f". {part.partition(':')[2]}" for part in PARTS),
        f"begin {name}",
        *(plan_line(number, cell, known) for number, cell in numbered), ""])


# --- the programs of others --------------------------------------------------

def is_foreign(cell):
    return isinstance(c.WORKLOADS[cell.workload], foreign.Watched)


def with_libraries(program):
    """SRC:DST of a host's program and what it links, for a guest."""
    path = shutil.which(program, path=PROGRAM_PATH)
    if not path:
        raise LabError(f"{program} is missing: make setup, or remove "
                       f"{os.path.relpath(LOADS, ROOT)}")
    return [f"{path}:/bin/{program}", *libraries(path)]


def libraries(path):
    where = ":".join(glob.glob(LOADS + "/root/usr/lib/*-linux-gnu"))
    found, missing = guest.libraries(path, LD_LIBRARY_PATH=where)
    if missing:
        raise LabError(f"{path} lacks {', '.join(missing)}: remove "
                       f"{os.path.relpath(LOADS, ROOT)}, to have it fetched "
                       "again")
    return [f"{name}:{name.replace(LOADS + '/root', '')}" for name in found]


def programs_of(cells):
    """What workloads run that the initramfs has not."""
    return dict.fromkeys(name for cell in cells if is_foreign(cell)
                         for name in c.WORKLOADS[cell.workload].programs)


def guest_files(modules, numbered):
    files = [*PARTS, *guest.into("/modules", *modules)]
    for program in programs_of(cell for _, cell in numbered):
        files += with_libraries(program)
    return tuple(dict.fromkeys(files))


def prepare_loads():
    """The programs of others, and what they are watched with."""
    if subprocess.run(["sh", f"{kernel.ROOT}/scripts/fetch_debian.sh", "loads"],
                      check=False).returncode:
        raise LabError("the programs of others cannot be had, see above")
    guest.compile_static(LOADS + "/bin/disk_rate", os.path.join(HERE, "disk_rate.c"))


# --- boots -------------------------------------------------------------------

def weight(numbered):
    return sum(c.WARM_CELLS if c.is_long(cell) else 1 for _, cell in numbered)


def chunks(wanted):
    """[(kernel, [(number, cell)])]: what one guest each measures, those that
    take the longest first."""
    last, found = {}, []
    for number, cell in enumerate(wanted):
        one = (number, cell)
        chunk = last.get(cell.kernel)
        if not chunk or weight(chunk) + weight([one]) > CELLS_PER_BOOT:
            chunk = last[cell.kernel] = []
            found.append((cell.kernel, chunk))
        chunk.append(one)
    return sorted(found, key=lambda chunk: -weight(chunk[1]))


class Lab:
    """Kernels, modules and the initramfs, and what guests have said."""

    def __init__(self, wanted, known):
        self.known = {**known, **DRIVERS}
        self.total = len(wanted)
        self.found = {}
        self.machines = []
        self.lock = threading.Lock()
        programs = programs_of(wanted)
        if programs:
            prepare_loads()
        self.modules = {}
        for name in dict.fromkeys(cell.kernel for cell in wanted):
            build = c.BUILDS[name]
            self.modules[name] = kernel.model(build) + (
                [kernel.xfs(build)] if "mkfs.xfs" in programs else [])

    def boot(self, index, name, numbered):
        on_nvme = any(cell.profile == c.NVME for _, cell in numbered)
        result = guest.work(
            c.BUILDS[name], os.path.join(
                OUT, "guests", f"{numbered[0][1].suite}-{index:02}-{name}"),
            plan(name, numbered, self.known), name=f"bench, {name} kernel",
            files=guest_files(self.modules[name], numbered), icount=True, smp=1,
            mem=2048, disks=("null:1g",) if on_nvme else (),
            trace_doorbells=on_nvme, timeout=SECONDS_PER_BOOT,
            on_line=self.take)
        if on_nvme:
            self.take_marks(result)

    def take(self, line):
        kind, *rest = line.split()
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        with self.lock:
            if kind == "cell":
                self.found.setdefault(int(words["id"]), {}).update(words)
            elif kind == "machine":
                self.machines.append(words)

    def take_marks(self, result):
        """The doorbells that the emulated controller counted."""
        for mark in result.marks:
            number, _, end = mark.name.partition(".")
            if end == "begin":
                rang = result.between(mark.name, number + ".end")
                self.found[int(number)]["dev_doorbells"] = sum(rang.values())

    def run(self, parts, what):
        """All boots, one guest per CPU, each CPU with one guest."""
        cpus = queue.Queue()
        for cpu in sorted(os.sched_getaffinity(0)):
            cpus.put(cpu)
        guest.together(
            {index: functools.partial(self.boot, index, *part)
             for index, part in enumerate(parts)},
            lambda _, seconds: common.how_far(what, len(self.found), self.total,
                                              "cells", seconds),
            initializer=lambda: os.sched_setaffinity(0, {cpus.get()}))


def measure(wanted, what, commit, known=None):
    """The records of the cells, in order, and the machines they ran on.

    known: the profiles, if they are not those of profiles.ini."""
    lab = Lab(wanted, known or profiles.load())
    lab.run(chunks(wanted), what)
    missing = set(range(len(wanted))) - set(lab.found)
    if missing:
        raise LabError(f"{len(missing)} cells were not reported, such as "
                       f"{wanted[min(missing)]}")
    return [cell_records.make(cell, lab.known[cell.profile], lab.found[number],
                              commit)
            for number, cell in enumerate(wanted)], lab.machines
