# SPDX-License-Identifier: GPL-2.0
"""Kernels as processes of this machine: User Mode Linux, on one CPU or two."""
import contextlib
import os
import random
import select
import shutil
import signal
import subprocess
import time

from lab.bench import lab
from lab.qemu import guest
from scripts import common

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(lab.OUT, "native")
ROOT = os.path.join(OUT, "root")
RUN = os.path.join(OUT, "run")
INIT = os.path.join(HERE, "uml", "init.sh")

ANSWER_SECONDS = 180            # from one to the next; a busy machine takes long
# Of one CPU, by all other processes, while nothing is measured or beside it.
QUIET = 0.15


def host_cpus():
    """Ours, the last one first: fewer interrupts go there."""
    return sorted(os.sched_getaffinity(0), reverse=True)


# --- the machine's load ------------------------------------------------------

def busy_seconds():
    """Of all CPUs, stolen ones included, since the host booted."""
    with open("/proc/stat", encoding="ascii") as lines:
        ticks = [int(tick) for tick in lines.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Of this process, and of its children that have ended."""
    return sum(os.times()[:4])


class Others:
    """What other processes take of the CPUs, from now on; all that were begun
    since then must have ended when it is asked for."""

    def __init__(self):
        self.busy, self.own = busy_seconds(), own_seconds()
        self.start = time.monotonic()

    def share(self):
        """Of one CPU."""
        theirs = busy_seconds() - self.busy - (own_seconds() - self.own)
        return theirs / (time.monotonic() - self.start)


def wait_for_quiet(patience):
    """Wait at most so many seconds; those spent."""
    start = time.monotonic()
    while True:
        others = Others()
        time.sleep(0.5)
        share, now = others.share(), time.monotonic()
        if share < QUIET or now - start > patience:
            return now - start


# --- the process -------------------------------------------------------------

@contextlib.contextmanager
def alone():
    """Two at once would disturb each other, and write the same files."""
    with common.locked(os.path.join(OUT, ".lock"), lab.LabError(
            "another SUITE=native is running")):
        make_root()
        shutil.rmtree(RUN, ignore_errors=True)
        os.makedirs(RUN)
        yield


def make_root():
    """What the guests boot from: a directory, which they only read."""
    for name in ("bin", "dev", "proc", "sys"):
        os.makedirs(os.path.join(ROOT, name), exist_ok=True)
    shutil.copy(guest.busybox(), os.path.join(ROOT, "bin/busybox"))
    for name in ("cat", "mkdir", "mount", "poweroff", "stty"):
        with contextlib.suppress(FileExistsError):
            os.symlink("busybox", os.path.join(ROOT, "bin", name))
    shutil.copy(INIT, os.path.join(ROOT, "init"))
    guest.compile_static(os.path.join(ROOT, "bin/plug_load"), guest.plug_load()[0])


def realtime():
    """Words that keep others off the CPU, if that is allowed."""
    return ["chrt", "-f", "1"] if os.geteuid() == 0 else []


class Machine:
    """A kernel that is running, and measures when asked to."""

    def __init__(self, name, images, cpus):
        self.name = name
        self.cpus = len(cpus)
        self.log = os.path.join(RUN, name + ".log")
        self.image = os.path.join(RUN, name)
        self.buffer = b""
        # Code lies elsewhere in each: in the images, and, as a file is new, in
        # physical memory.
        shutil.copy(random.choice(images), self.image)
        command = [self.image, "mem=80M", "rootfstype=hostfs",
                   "root=/dev/root", "hostfs=" + ROOT, "ro", "init=/init",
                   "seccomp=on", "null_blk.nr_devices=0", "panic=-1",
                   "rcupdate.rcu_expedited=1",
                   "null_blk.hw_queue_depth=1023",  # of those that share tags
                   "blkdevparts=part:4G@1G(x)", f"ncpus={len(cpus)}",
                   "con=null", "con0=fd:0,fd:1", "quiet"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", ",".join(map(str, cpus)), *realtime(),
                 *command],
                env={"HOME": RUN, "PATH": os.environ["PATH"]},
                start_new_session=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        os.unlink(self.image)

    def fail(self, why):
        raise lab.LabError(f"{self.name} kernel: {why}; see {self.log}")

    def ended(self):
        """Why, as far as anybody knows: it may have said nothing."""
        status = self.process.wait()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            last = log.read().splitlines()[-1:]
        self.fail(f"it has ended, exit {status}, and said "
                  f"{last[0] if last else 'nothing'}")

    def line(self, deadline):
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [],
                                              left)[0]:
                self.fail(f"no answer within {ANSWER_SECONDS} s")
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                self.ended()
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode("ascii", "replace").strip()

    def answer(self, kind):
        """The words after the one that was expected."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            word, _, rest = self.line(deadline).partition(" ")
            if word == kind:
                return dict(pair.split("=", 1) for pair in rest.split()
                            if "=" in pair)
            if word == "error":
                self.fail(rest)

    def ask(self, *words):
        line = " ".join(map(str, words)) + "\n"
        self.process.stdin.write(line.encode("ascii"))
        self.process.stdin.flush()
        return self.answer("result")

    def has_policies(self):
        """Wait until it is up; whether it has the policy."""
        said = self.answer("ready")
        if said["cpus"] != ("0-1" if self.cpus == 2 else "0"):
            self.fail(f"its CPUs are {said['cpus']}, not {self.cpus}")
        return said["plug_policy"] == "yes"

    def start(self, nomerges, policy, counters):
        """Choose what holds until its end."""
        self.ask("set", nomerges, policy, "on" if counters else "off")

    def run(self, words):
        """What a load comes to: {"ns": in all, "ios": so many}, and more; "parts",
        ns per I/O, of which a load of two CPUs has some."""
        found = self.ask(*words)
        numbers = {name: int(value) for name, value in found.items()
                   if value.isdigit()}
        if not numbers.get("ns") or not numbers.get("ios"):
            self.fail(f"'{found}' is no result")
        parts = found.get("parts", "{ns}/{ios}".format(**found)).split(",")
        return numbers | {"parts": [int(ns) / int(ios) for ns, ios in (
            part.split("/") for part in parts)]}
