# SPDX-License-Identifier: GPL-2.0
"""Measure cells in guests whose time follows the instruction count."""
import functools
import glob
import os
import queue
import shutil
import subprocess
import threading

from lab.bench import cell_records
from lab.bench import cells as c
from lab.bench import foreign
from lab.bench import profiles

HERE = os.path.dirname(os.path.abspath(__file__))
from scripts import ROOT

from scripts import common
from lab.qemu import guest
from scripts import kernel

OUT = os.path.join(kernel.BUILD, "bench")
PARTS = ("cells_guest.sh", "fio_guest.sh", "nvme_guest.sh", "loads_guest.sh")
CELLS_PER_BOOT = 24
SECONDS_PER_BOOT = 1500


# What programs of others need and the host need not have: fetch_loads.sh.
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
    merged = dict(profile)
    merged.update(workload.settings)
    merged["seed"] = str(cell.seed)
    if not workload.polled:
        merged["poll_queues"] = "0"
    return " ".join("%s=%s" % item for item in merged.items())


def plan_line(number, cell, known):
    """The call of cells_guest.sh's cell(), or of nvme_cell()."""
    profile, workload = known[cell.profile], c.WORKLOADS[cell.workload]
    command = " ".join(workload.command(profile, cell))
    foreign_load = isinstance(workload, foreign.Watched)
    if cell.profile == c.NULL_BLK or cell.profile == c.NVME and foreign_load:
        return "%s_load %d %s %s" % (cell.profile.partition("-")[0], number,
                                     cell.policy, command)
    if cell.profile == c.NVME:
        return "nvme_cell %d %s %s" % (number, cell.policy, command)
    return "cell %d %s %d '%s' %s" % (
        number, cell.policy, workload.devices,
        settings(cell, profile, workload), command)


def plan(name, numbered, known):
    """The guest's job."""
    lines = ["set -eu", *(". /%s" % part for part in PARTS), "begin " + name]
    lines += [plan_line(number, cell, known) for number, cell in numbered]
    return "\n".join(lines) + "\n"


def with_libraries(program):
    """SRC:DST of a host's program and what it links, for a guest."""
    path = shutil.which(program, path=PROGRAM_PATH)
    if not path:
        raise LabError("%s is missing: make setup, or remove %s" % (
            program, os.path.relpath(LOADS, ROOT)))
    return ["%s:/bin/%s" % (path, program)] + libraries(path)


def libraries(path):
    """SRC:DST of what a program links."""
    where = ":".join(glob.glob(LOADS + "/root/usr/lib/*-linux-gnu"))
    found, missing = guest.libraries(path, LD_LIBRARY_PATH=where)
    if missing:
        raise LabError("%s lacks %s: remove %s, to have it fetched again" % (
            path, ", ".join(missing), os.path.relpath(LOADS, ROOT)))
    return ["%s:%s" % (name, name.replace(LOADS + "/root", ""))
            for name in found]


def postgres_files():
    """SRC:DST of PostgreSQL, which finds its files from where it is, and asks
    for a directory of libraries."""
    root = LOADS + "/root"
    programs = [path for name in ("postgres", "pg_ctl", "pgbench")
                for path in glob.glob(root + "/usr/lib/postgresql/*/bin/"
                                      + name)]
    others = [path for name in ("lib/postgresql/*/lib/plpgsql.so",
                                "share/postgresql/*/timezonesets")
              for path in glob.glob(root + "/usr/" + name)]
    return [LOADS + "/pgdata.tar:/pgdata.tar"] + [
        "%s:%s" % (path, path.replace(root, "")) for path in programs + others
    ] + [pair for path in programs for pair in libraries(path)]


def programs_of(workload):
    """What a workload runs that the initramfs has not."""
    if isinstance(workload, c.Fio):
        return ["mkfs.xfs", "iostat"]
    return list(getattr(workload, "programs", ()))


def needs_xfs(wanted):
    """Whether any of the cells does."""
    return any("mkfs.xfs" in programs_of(c.WORKLOADS[cell.workload])
               for cell in wanted)


def guest_files(modules, numbered):
    """What a guest needs besides the initramfs."""
    files = [*guest.into("", *(os.path.join(HERE, part) for part in PARTS)),
             *guest.into("/modules", *modules)]
    for program in dict.fromkeys(
            name for _, cell in numbered
            for name in programs_of(c.WORKLOADS[cell.workload])):
        files += (postgres_files() if program == "postgres" else
                  with_libraries(program))
    return tuple(dict.fromkeys(files))


def prepare_loads():
    """The programs of others, and what they are watched with."""
    if subprocess.run(["sh", os.path.join(HERE, "fetch_loads.sh")],
                      check=False).returncode:
        raise LabError("the programs of others cannot be had, see above")
    kernel.quiet(["gcc", "-O2", "-static", "-o", LOADS + "/bin/disk_rate",
                  os.path.join(HERE, "disk_rate.c")], "disk_rate")


# --- boots -------------------------------------------------------------------

def weight(numbered):
    """In ordinary cells."""
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


def boot_chunk(index, name, numbered, lab):
    """Boot one guest for its part of the plan."""
    on_nvme = any(cell.profile == c.NVME for _, cell in numbered)
    result = guest.work(
        c.BUILDS[name], os.path.join(OUT, "guests", "%s-%02d-%s" % (
            numbered[0][1].suite, index, name)),
        plan(name, numbered, lab.known), name="bench, %s kernel" % name,
        files=guest_files(lab.modules[name], numbered), icount=True, smp=1,
        mem=2048, disks=("null:1g",) if on_nvme else (),
        trace_doorbells=on_nvme, timeout=SECONDS_PER_BOOT, on_line=lab.take)
    if on_nvme:
        lab.take_marks(result)


class Lab:
    """Kernels, modules and the initramfs, and what guests have said."""

    def __init__(self, wanted, known):
        self.known = {**known, **DRIVERS}
        self.total = len(wanted)
        self.found = {}
        self.fio = {}
        self.machines = []
        self.lock = threading.Lock()
        names = list(dict.fromkeys(cell.kernel for cell in wanted))
        self.modules = {name: kernel.model(c.BUILDS[name]) for name in names}
        if needs_xfs(wanted):
            for name in names:
                self.modules[name].append(kernel.xfs(c.BUILDS[name]))
        if any(isinstance(c.WORKLOADS[cell.workload], foreign.Watched)
               for cell in wanted):
            prepare_loads()

    def take(self, line):
        """A line from a guest, while it runs."""
        kind, *rest = line.split()
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        with self.lock:
            if kind == "cell":
                self.found.setdefault(int(words["id"]), {}).update(words)
            elif kind == "fio":
                self.fio[int(rest[0])] = line.split(" ", 2)[2]
            elif kind == "machine":
                self.machines.append(words)

    def take_marks(self, result):
        """The doorbells that the emulated controller counted."""
        for mark in result.marks:
            number, _, end = mark.name.partition(".")
            if end == "begin":
                rang = result.between(mark.name, number + ".end")
                self.found[int(number)]["dev_doorbells"] = sum(rang.values())


def run_parts(parts, lab, what):
    """All boots, one guest per CPU, each CPU with one guest."""
    cpus = queue.Queue()
    for cpu in sorted(os.sched_getaffinity(0)):
        cpus.put(cpu)

    def pin():
        os.sched_setaffinity(0, {cpus.get()})

    guest.together(
        {index: functools.partial(boot_chunk, index, *part, lab)
         for index, part in enumerate(parts)},
        lambda _, seconds: common.how_far(what, len(lab.found), lab.total,
                                          "cells", seconds), initializer=pin)


# --- results -----------------------------------------------------------------

def measure(wanted, what, commit, known=None):
    """The records of the cells, in order, and the machines they ran on.

    known: the profiles, if they are not those of profiles.ini.
    """
    lab = Lab(wanted, known or profiles.load())
    run_parts(chunks(wanted), lab, what)
    missing = set(range(len(wanted))) - set(lab.found)
    if missing:
        raise LabError("%d cells were not reported, such as %s"
                       % (len(missing), wanted[min(missing)]))
    return [cell_records.make(cell, lab.known[cell.profile],
                              lab.found[number], lab.fio.get(number), commit)
            for number, cell in enumerate(wanted)], lab.machines
