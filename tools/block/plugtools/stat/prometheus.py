# SPDX-License-Identifier: GPL-2.0
"""The kernel's counters in the text format of Prometheus.

They are absolute, as rate() wants them.  The mode is no label of theirs: one
that comes back would seem to have done what others did meanwhile.
"""
import os

from ..core.disks import Disk
from .figures import NO_BATCH, busy
from .source import adaptive, sample_all, switch_of

# counter of the kernel's, what it means
COUNTERS = (
    ("tags_batched", "Tags taken in batches."),
    ("tag_batches", "Batches of tags."),
    ("tags_single", "Tags taken one by one."),
    ("flushes", "Times that a plug sent out what it held."),
    ("flush_requests", "Requests that plugs sent out."),
    ("doorbells", "Doorbells that the driver wrote, of NVMe on PCI; else 0."))

ESCAPES = str.maketrans({"\\": r"\\", '"': r'\"', "\n": r"\n"})


class Page:
    """Metrics by name, so that each is one block, however it was filled."""

    def __init__(self):
        self.families = {}

    def add(self, name, kind, meaning, value, **labels):
        name = "plugstat_" + name + ("_total" if kind == "counter" else "")
        rows = self.families.setdefault((name, kind, meaning), [])
        pairs = ",".join(
            f'{label}="{str(text).translate(ESCAPES)}"'
            for label, text in labels.items())
        rows.append(f"{name}{{{pairs}}} {value}")

    def text(self):
        lines = []
        for (name, kind, meaning), rows in self.families.items():
            lines += [f"# HELP {name} {meaning}",
                      f"# TYPE {name} {kind}"] + rows
        return "".join(text + "\n" for text in lines)


def add_policy(page, name):
    mode, force, why = Disk(name).effect()
    if not mode:
        return
    page.add("policy_info", "gauge", "Always 1; says which mode is set.", 1,
             disk=name, mode=mode)
    page.add("mode_in_force", "gauge",
             "Whether the mode that is set is in force, and why not.",
             int(force == mode), disk=name, mode=mode, reason=why)


def add_times(page, name):
    """I/Os, merges and response times, which every kernel counts."""
    try:
        done = Disk(name).stat()
    except OSError:
        return
    for what, ios, merges, milliseconds in (
            ("read", done.reads, done.read_merges, done.read_ms),
            ("write", done.writes, done.write_merges, done.write_ms)):
        page.add("ios", "counter", "I/Os completed.", ios, disk=name,
                 operation=what)
        page.add("merges", "counter", "Bios that joined a request.", merges,
                 disk=name, operation=what)
        page.add("io_seconds", "counter",
                 "Response times of these I/Os, summed.",
                 milliseconds / 1e3, disk=name, operation=what)


def add_counters(page, name, counters):
    for counter, meaning in COUNTERS:
        page.add(counter, "counter", meaning, counters.get(counter, 0),
                 disk=name)
    for why in NO_BATCH:
        page.add("no_batch", "counter",
                 "Times that a plug was refused a batch of tags.",
                 counters.get("no_batch_" + why, 0), disk=name, reason=why)


def add_adaptive(page, name):
    found = adaptive(name)
    for number, queue in busy(found).items() if found else []:
        if "group" in queue:
            page.add("adaptive_group", "gauge",
                     "Requests that plugs are to send out at a time.",
                     queue["group"], disk=name, hctx=number)


def exposition(names, counted):
    """The page; counters are told of the disks that are counted."""
    page = Page()
    counters = sample_all([name for name in names if name in counted])
    for name in names:
        if not Disk(name).there():
            continue
        add_policy(page, name)
        add_times(page, name)
        page.add("counting", "gauge", "Whether plugs are counted.",
                 int(name in counted), disk=name)
        if name in counters:
            add_counters(page, name, counters[name])
            add_adaptive(page, name)
    return page.text()


def is_known(name):
    return Disk(name).has_knob() or os.path.exists(switch_of(name))
