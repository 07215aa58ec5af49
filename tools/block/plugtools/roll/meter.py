# SPDX-License-Identifier: GPL-2.0
"""What plugroll measures of a live load: I/Os per second, and response times.

diskstats has counts and sums, so a mean is all it gives.  The 99th percentile
comes from a sample of requests that trace events follow from their allocation,
which is when the hold in a plug begins, to their completion.  They are those
of the disks with requests: what a head of multipath, dm or md sends there.
"""
import collections
import contextlib
import os
import re
import time

from ..core.system import listing, read, rooted, start_time, write

LEAST_IOS = 100                 # in a block; fewer say nothing
LEAST_TIMES = 500               # of the sample, for a 99th percentile
SAMPLES_PER_S = 2000            # that cost about 1% of a CPU to follow
EVENTS = ("block_getrq", "block_rq_complete")
EVENT = re.compile(r"(\d+)\.(\d{6}): block_(getrq|rq_complete): (\d+,\d+) \S+ "
                   r"(?:\(.*?\) )?(\d+) \+ \d")
BUFFER_KB = "256"               # per CPU: thousands of events
WRAP = 1 << 32                  # ms, at which the kernel's sums begin anew

Counters = collections.namedtuple("Counters", "time ios requests ticks")


class NoTracing(Exception):
    """The kernel gives no response times of single requests."""


def counters(disk):
    """diskstats' counters of reads and writes.

    A merged I/O is an I/O: with fewer merges, more requests complete for the
    same work."""
    done = disk.stat()
    requests = done.reads + done.writes
    return Counters(time.monotonic(),
                    requests + done.read_merges + done.write_merges, requests,
                    done.read_ms + done.write_ms)


def figures(old, new, times=()):
    """A block's figures; no more than counts if it had too little I/O."""
    ios, requests = new.ios - old.ios, new.requests - old.requests
    found = {"ios": ios, "requests": requests}
    if not busy(found):
        return found
    more = {"iops": ios / (new.time - old.time),
            "mean": (new.ticks - old.ticks) % WRAP / requests}
    if len(times) >= LEAST_TIMES:
        more["p99"] = sorted(times)[len(times) * 99 // 100] / 1000
    return {**found, **{name: value for name, value in more.items()
                        if value > 0}}


def busy(found):
    return found["requests"] >= LEAST_IOS


def tracefs():
    for path in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.isdir(rooted(path + "/instances")):
            return rooted(path)
    raise NoTracing("no tracefs: mount -t tracefs none /sys/kernel/tracing; "
                    "without it, guard the mean (mean=5%)")


def instance(pid):
    """The trace buffer of a process; other tracers have theirs."""
    return f"{tracefs()}/instances/plugroll-{pid}"


def remove_instance(pid):
    with contextlib.suppress(NoTracing, OSError):
        for event in EVENTS:
            with contextlib.suppress(OSError):
                write(f"{instance(pid)}/events/block/{event}/enable", "0")
        os.rmdir(instance(pid))


def remove_dead():
    """What killed ones have left, also one that had our number.

    The kernel refuses to remove what is in use, as in another container."""
    for name in listing(tracefs() + "/instances"):
        match = re.fullmatch(r"plugroll-(\d+)", name)
        pid = int(match[1]) if match else 0
        if pid and (pid == os.getpid() or start_time(pid) is None):
            with contextlib.suppress(OSError):
                os.rmdir(instance(pid))


def device_numbers(disk):
    """Of the disk and its partitions, as "major,minor": a bio may name
    either, a request names the disk."""
    names = ["dev"] + [name + "/dev" for name in disk.partitions()]
    found = [number.replace(":", ",") for number in map(disk.get, names)
             if number]
    # sysfs does not have that of a hidden path of NVMe multipath
    hidden = re.search(rf"^ *([1-9]\d*) +(\d+) +{re.escape(disk.name)} ",
                       read(rooted("/proc/diskstats"), ""), re.M)
    if not found and not hidden:
        raise NoTracing(f"the device number of {disk.name} is not known; "
                        "guard the mean instead (mean=5%)")
    return found or [",".join(hidden.groups())]


def filter_text(numbers, iops):
    """Which requests are followed: those whose place on the disk has zeroes in
    some bits, as many bits as leave few enough requests."""
    wanted = [f"dev == {int(major) << 20 | int(minor)}" for major, minor in
              (number.split(",") for number in numbers)]
    part = 1
    while iops / part > SAMPLES_PER_S:
        part *= 2
    text = "(" + " || ".join(wanted) + ")"
    return text if part == 1 else f"{text} && !(sector & {(part - 1) << 3})"


class Tracer:
    """Follows requests of some disks, {disk: I/Os per second}."""

    def __init__(self, rates):
        self.leg_of, self.disks_of = {}, {}
        for disk in rates:
            for leg in disk.legs():
                self.disks_of.setdefault(leg.name, []).append(disk.name)
                self.leg_of.update(dict.fromkeys(device_numbers(leg),
                                                 leg.name))
        self.begun = {}
        self.times = {disk.name: [] for disk in rates}
        self.rest = ""
        self.pipe = None
        remove_dead()
        self.place = instance(os.getpid())
        try:
            self.switch_on(sum(rates.values()))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise NoTracing("no trace events of the block layer "
                                f"({error.filename}: {error.strerror}); guard "
                                "the mean instead (mean=5%)") from error
            raise

    def switch_on(self, iops):
        os.mkdir(self.place)
        self.pipe = os.open(self.place + "/trace_pipe",
                            os.O_RDONLY | os.O_NONBLOCK)
        write(self.place + "/buffer_size_kb", BUFFER_KB)
        text = filter_text(sorted(self.leg_of), iops)
        for event in EVENTS:
            where = f"{self.place}/events/block/{event}/"
            write(where + "filter", text)
            write(where + "enable", "1")

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while text := os.read(self.pipe, 1 << 16):
                lines = (self.rest + text.decode(errors="replace")).split("\n")
                self.rest = lines.pop()
                self.take(lines)

    def take(self, lines):
        for line in lines:
            match = EVENT.search(line)
            if match:
                self.event(int(match[1] + match[2]), *match.groups()[2:])
            elif " EVENTS]" in line:
                self.begun.clear()      # some were lost: no pair is certain

    def event(self, when, what, number, sector):
        """One line's meaning; times are in us."""
        key = self.leg_of.get(number), sector
        if what == "getrq":
            self.begun[key] = when
        elif key in self.begun:
            took = when - self.begun.pop(key)
            for name in self.disks_of.get(key[0], ()):
                self.times[name].append(took)

    def collect(self):
        """{disk's name: response times in us} since the last call."""
        self.drain()
        found = self.times
        self.times = {name: [] for name in found}
        return found

    def close(self):
        if self.pipe is not None:
            os.close(self.pipe)
        remove_instance(os.getpid())


class Meter:
    """The figures of disks between two moments: of all that are in what is
    given, which may lose some."""

    def __init__(self, disks):
        self.disks = disks
        self.tracer = None
        self.before = {}

    def trace(self, found):
        self.tracer = Tracer({disk: found[disk]["iops"]
                              for disk in self.disks})

    def begin(self):
        if self.tracer:
            self.tracer.collect()
        self.before = {disk: counters(disk) for disk in self.disks}

    def wait(self, seconds):
        """Sleep, and keep the trace buffer from filling."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.25))
            if self.tracer:
                self.tracer.drain()

    def end(self):
        """{disk: figures} of the block."""
        times = self.tracer.collect() if self.tracer else {}
        return {disk: figures(self.before[disk], counters(disk),
                              times.get(disk.name, ())) for disk in self.disks}

    def close(self):
        if self.tracer:
            self.tracer.close()
            self.tracer = None
