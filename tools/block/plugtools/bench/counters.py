# SPDX-License-Identifier: GPL-2.0
"""What plugbench counts beside fio: perf's events, doorbells, group sizes."""
import contextlib
import os
import re
import shutil

from ..core.system import read
from ..stat.source import adaptive, plug_stats, switch_of
from ..stat.switch import Switches

TIMED_EVENTS = ["instructions", "cycles", "cache-misses", "context-switches"]
UNPLUG_EVENT = "block:block_unplug"


def learnt(legs):
    """What "adaptive" knows, of each hardware queue."""
    found = {leg.name: adaptive(leg.name) for leg in legs}
    return {(name, number): queue for name, one in found.items() if one
            for number, queue in one["hctx"].items()}


def group(before, after):
    """Mean group size of the hardware queues that have learnt meanwhile."""
    sizes = [queue["group"] for key, queue in after.items()
             if queue != before.get(key) and "group" in queue]
    return round(sum(sizes) / len(sizes), 3) if sizes else None


def perf_values(text):
    """{event: count} of perf stat -x,: what was not counted is left out."""
    found = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) < 3 or not fields[0].isdigit():
            continue
        # a hybrid CPU says cpu_core/cycles/ and cpu_atom/cycles/
        event = re.sub(r"^cpu_\w+/(.*)/$", r"\1", fields[2])
        event = re.sub(r":[ukhGHpPS]+$", "", event)
        found[event] = found.get(event, 0) + int(fields[0])
    return found


class Perf:
    """Counts events of a command, as far as perf can here."""

    def __init__(self, directory):
        self.output = os.path.join(directory, "perf")
        self.events = []

    def wrap(self, command, events):
        options = [word for event in events if event in self.events
                   for word in ("-e", event)]
        return ["perf", "stat", "-x,", "-o", self.output, *options, "--",
                *command] if options else command

    def counts(self):
        found = perf_values(read(self.output, ""))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.output)
        return found

    def probe(self, run):
        """Try the events one by one; what to say about it."""
        if not shutil.which("perf"):
            return "perf is not installed: no instructions, cycles, unplugs"
        lacking = []
        for event in TIMED_EVENTS + [UNPLUG_EVENT]:
            self.events.append(event)
            run(self.wrap(["true"], [event]))
            if event not in self.counts():
                self.events.remove(event)
                lacking.append(event)
        return f"perf cannot count here: {', '.join(lacking)}" if lacking \
            else "perf counts all that is asked for"


class Doorbells:
    """The kernel's count of doorbell writes, where the driver tells."""

    def __init__(self, legs):
        self.names = [leg.name for leg in legs]

    def there(self):
        return all(os.path.exists(switch_of(name)) for name in self.names)

    @contextlib.contextmanager
    def counting(self):
        """A list, in which their number is in the end."""
        before, found = None, []
        with Switches() as switches:
            with contextlib.suppress(OSError):
                for name in self.names:
                    switches.enter(name)
                before = self.so_far()
            yield found
            if before is not None:
                found.append(self.so_far() - before)

    def so_far(self):
        return sum(plug_stats(name)["doorbells"] for name in self.names)


def can_count(disk):
    """A guess, before perf is tried, for the duration."""
    return bool(shutil.which("perf")) or Doorbells(disk.legs()).there()
