# SPDX-License-Identifier: GPL-2.0
"""The kernel's counters in the text format of Prometheus.

They are absolute, as rate() wants them, and start from 0 when counting is
switched on.  The mode is no label of theirs, since the kernel counts per disk:
a mode that comes back would seem to have done what others did meanwhile.  Join
with plugstat_policy_info, as the rules beside the dashboard do.
"""
import os

from .disks import Disk, disks
from .policy import effect
from .statfigures import NO_BATCH, REASONS, busy
from .statsource import (adaptive, debugfs, doorbells, sample_all,
                         switch_of)
from .system import EnvironmentProblem, listing, read, replace_file

# metric, counter of the kernel's, what it means
COUNTERS = (
    ("requests", "requests", "Requests begun, through a plug or not."),
    ("completions", "completions", "Requests ended, those merged included."),
    ("merge_attempts", "merge_attempts",
     "Bios compared with a request that a plug held."),
    ("merges", "merge_hits", "Bios that joined such a request."),
    ("plugs", "plugs", "Times that an empty plug got its first request."),
    ("tags_batched", "tags_batched", "Tags taken in batches."),
    ("tag_batches", "tag_batches", "Batches of tags."),
    ("tags_single", "tags_single", "Tags taken one by one."),
    ("driver_calls_single", "queue_rq_calls",
     "Requests that the driver was given one by one."),
    ("driver_calls_batch", "queue_rqs_calls",
     "Lists of requests that the driver was given."),
    ("driver_requests_batch", "queue_rqs_requests",
     "Requests in these lists."),
    ("flushes_clock_shared", "flush_clock_shared",
     "Flushes whose requests shared one reading of the clock."),
)
# metric, prefix of the kernel's counters, reasons, what it means
BY_REASON = (
    ("flushes", "flush_", REASONS, "Times that a plug sent out what it held."),
    ("no_batch", "no_batch_", NO_BATCH,
     "Times that tags were not taken in a batch."),
)
# metric, prefix of the kernel's buckets, how many, its sum, what it means
HISTOGRAMS = (
    ("flush_requests", "flush_hist_", 7, "flush_requests",
     "Requests that a plug sent out at once."),
    ("completion_batch_requests", "batch_hist_", 6, "batch_completions",
     "Requests that were completed at once."),
)


def escape(text):
    """A label's value."""
    return str(text).replace("\\", r"\\").replace('"', r'\"').replace(
        "\n", r"\n")


class Page:
    """Metrics by name, so that each is one block, however it was filled."""

    def __init__(self):
        self.families = {}

    def add(self, name, kind, meaning, value, **labels):
        """A value of a metric; "name:suffix" for a part of it."""
        name, _, suffix = name.partition(":")
        name = "plugstat_" + name + ("_total" if kind == "counter" else "")
        rows = self.families.setdefault((name, kind, meaning), [])
        pairs = ",".join('%s="%s"' % (label, escape(text))
                         for label, text in labels.items())
        rows.append("%s%s{%s} %s" % (name, suffix, pairs, value))

    def text(self):
        """All of it."""
        lines = []
        for (name, kind, meaning), rows in self.families.items():
            lines += ["# HELP %s %s" % (name, meaning),
                      "# TYPE %s %s" % (name, kind)] + rows
        return "".join(text + "\n" for text in lines)


def add_policy(page, name):
    """Which mode is set, and whether it is in force."""
    mode, force, why = effect(Disk(name))
    if not mode:
        return
    page.add("policy_info", "gauge", "Always 1; says which mode is set.", 1,
             disk=name, mode=mode)
    if force:
        page.add("mode_in_force", "gauge",
                 "Whether the mode that is set is in force, and why not.",
                 int(force == mode), disk=name, mode=mode, reason=why)


def add_times(page, name):
    """I/Os and their response times, which every kernel counts."""
    try:
        done = Disk(name).stat()
    except OSError:
        return
    for what, ios, milliseconds in (("read", done.reads, done.read_ms),
                                    ("write", done.writes, done.write_ms)):
        page.add("ios", "counter", "I/Os completed.", ios, disk=name,
                 operation=what)
        page.add("io_seconds", "counter",
                 "Response times of these I/Os, summed.",
                 milliseconds / 1e3, disk=name, operation=what)


def add_histogram(page, name, counters, metric):
    """Buckets of powers of two: 1, 2 to 3, 4 to 7 ..., the rest."""
    metric, prefix, buckets, total, meaning = metric
    count = 0
    for exponent in range(buckets):
        count += counters.get("%s%d" % (prefix, 1 << exponent), 0)
        last = exponent == buckets - 1
        page.add(metric + ":_bucket", "histogram", meaning, count, disk=name,
                 le="+Inf" if last else (2 << exponent) - 1)
    page.add(metric + ":_sum", "histogram", meaning, counters.get(total, 0),
             disk=name)
    page.add(metric + ":_count", "histogram", meaning, count, disk=name)


def add_counters(page, name, counters):
    """What plugs have done with a disk since counting was switched on."""
    for metric, counter, meaning in COUNTERS:
        page.add(metric, "counter", meaning, counters.get(counter, 0),
                 disk=name)
    for metric, prefix, reasons, meaning in BY_REASON:
        for why in reasons:
            page.add(metric, "counter", meaning,
                     counters.get(prefix + why, 0), disk=name, reason=why)
    for metric in HISTOGRAMS:
        add_histogram(page, name, counters, metric)
    page.add("in_flight", "gauge",
             "Requests in flight, those that a plug holds included.",
             counters.get("in_flight", 0), disk=name)
    for suffix, value in (("_sum", counters.get("hold_us", 0) / 1e6),
                          ("_count", counters.get("holds", 0))):
        page.add("hold_seconds:" + suffix, "summary",
                 "How long the oldest request of a plug was held (where "
                 "that is timed: see --hold).", value, disk=name)


def add_adaptive(page, name):
    """The group sizes that were found."""
    found = adaptive(name)
    for number, queue in busy(found).items() if found else []:
        if "group" in queue:
            page.add("adaptive_group", "gauge",
                     "Requests that plugs are to send out at a time.",
                     queue["group"], disk=name, hctx=number)


def add_doorbells(page):
    """Per controller: its namespaces share them."""
    if read(debugfs("/nvme_plug/counting"), "0") == "0":
        return
    for name in listing(debugfs("/nvme_plug")):
        found = doorbells(name)
        if found:
            page.add("doorbells", "counter",
                     "Doorbells of I/O queues that were rung.", found[0],
                     controller=name)
            page.add("commands", "counter",
                     "Commands that these doorbells announced.", found[1],
                     controller=name)


def exposition(names, levels):
    """The page; levels says what is counted on each disk, 0 for nothing."""
    page = Page()
    counters = sample_all([name for name in names if levels.get(name)])
    for name in names:
        add_policy(page, name)
        add_times(page, name)
        page.add("counting", "gauge", "Whether plugs are counted: 0 no, "
                 "1 yes, 2 with the time they hold.", levels.get(name, 0),
                 disk=name)
        if name in counters:
            add_counters(page, name, counters[name])
            add_adaptive(page, name)
    add_doorbells(page)
    return page.text()


def known_disks():
    """Disks that have a policy or can be counted."""
    return [name for name in disks()
            if Disk(name).has_knob()
            or os.path.exists(switch_of(name))]


def write_textfile(path, text):
    """Put it in place of what is there, to be read by node_exporter."""
    try:
        replace_file(path, text.encode(), 0o644, sync=False)
    except OSError as error:
        raise EnvironmentProblem("%s: %s" % (path, error.strerror)) from error
