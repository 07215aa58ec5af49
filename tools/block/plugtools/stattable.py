# SPDX-License-Identifier: GPL-2.0
"""What plugstat prints: a table for people, lines of JSON for programs."""
import datetime
import json
import sys

from .disks import Disk
from .policy import effect
from .statfigures import QUESTIONS, answers, busy, show

HEADER = ("Disk", "req/s", "mrg%", "r/flush", "why", "tag%", "t/batch",
          "cmd/db", "c/batch", "group", "infl")
WIDTHS = (10, 9, 5, 8, 12, 5, 8, 8, 8, 6, 7, 8)
QUEUE_HEADER = ("hctx", "group", "state", "lookup", "IOPS", "resp_us",
                "io/flush")
QUEUE_WIDTHS = (5, 9, 8, 7, 9, 9, 8)
POLICY_HEADER = ("Disk", "set", "in-force", "why")
POLICY_WIDTHS = (10, 10, 10, 16)
VERSION = 1                     # of the JSON; grows when a field goes


def line(cells, widths=WIDTHS):
    """Cells in columns: the first to the left, the others to the right."""
    return " ".join([cells[0].ljust(widths[0])] + [
        cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])])


def group_of(found):
    """A cell: the group size under "adaptive", or a range of them."""
    if not found:
        return "-"
    if found["not_in_force"]:
        return "!"
    sizes = [queue["group"] for queue in busy(found).values()
             if "group" in queue]
    if not sizes:
        return "-"
    least, most = min(sizes), max(sizes)
    return "%d" % least if least == most else "%d-%d" % (least, most)


def cells_of(disk, fig, found, hold=False):
    """The cells of a line of the table."""
    bell = show(fig["commands_per_doorbell"])
    if fig["commands_per_doorbell"] is None and fig["requests_per_call"]:
        bell = "~" + show(fig["requests_per_call"])
    cells = [disk, "%.0f" % fig["requests_per_s"],
             show(fig["merged"], "%.0f", 100), show(fig["requests_per_flush"]),
             fig["flush_reason"] or "-",
             show(fig["tags_in_batches"], "%.0f", 100),
             show(fig["tags_per_batch"]), bell,
             show(fig["completions_per_batch"]), group_of(found),
             "%d" % fig["in_flight"]]
    return cells + [show(fig["hold_us"])] if hold else cells


def show_flag(value):
    """yes or no, or a dash for neither."""
    return "-" if value is None else "yes" if value else "no"


def queue_row(number, queue):
    """A line of what "adaptive" does with a hardware queue."""
    return line([str(number), "%s%s" % (
        "pinned " if queue.get("pinned") else "", queue.get("group", "-")),
                 queue.get("state", "-"),
                 show_flag(queue.get("lookup")), show(queue["iops"], "%.0f"),
                 show(queue["response_us"]),
                 show(queue["ios_per_flush"])], QUEUE_WIDTHS)


def adaptive_lines(disk, found):
    """What "adaptive" does with a disk, for people."""
    if found["not_in_force"]:
        return ["%s: adaptive is not in force (%s): does as \"always\""
                % (disk, found["not_in_force"])]
    queues = busy(found)
    lines = ["%s: adaptive, last sample of each hardware queue:" % disk,
             line(QUEUE_HEADER, QUEUE_WIDTHS)] if queues else []
    lines += [queue_row(*item) for item in queues.items()]
    empty = [str(n) for n, queue in found["hctx"].items() if not queue]
    if empty:
        lines.append("%s: adaptive does as \"always\" on hctx %s, for which "
                     "there was no memory" % (disk, ", ".join(empty)))
    rest = len(found["hctx"]) - len(queues) - len(empty)
    if rest:
        lines.append("%s: adaptive has no sample of %d hardware queues: too "
                     "few requests, or none in a plug" % (disk, rest))
    return lines


def now():
    """The time, as programs read it, with that of the place it is."""
    return datetime.datetime.now().astimezone().isoformat(
        timespec="milliseconds")


class Table:
    """For people."""

    def __init__(self, hold=False, stamps=False, skip_idle=False):
        self.hold = hold
        self.stamps = stamps
        self.skip_idle = skip_idle
        self.lines = 0

    def interval(self, rows):
        """A line per disk."""
        if self.stamps:
            print(now())
        if self.lines % 20 == 0:
            print(line(HEADER + (("hold_us",) if self.hold else ())))
        self.lines += 1
        for disk, _, fig, found in rows:
            if fig["requests"] or not self.skip_idle:
                print(line(cells_of(disk, fig, found, self.hold)))
        sys.stdout.flush()

    @staticmethod
    def end(rows):
        """Three lines per disk, and what "adaptive" does with it."""
        for disk, _, fig, found in rows:
            print()
            for name, text in answers(fig).items():
                print("%s: %s %s" % (disk, QUESTIONS[name], text))
            for text in adaptive_lines(disk, found) if found else []:
                print(text)


def print_json(**fields):
    """One line."""
    print(json.dumps({"version": VERSION, "time": now(), **fields}),
          flush=True)


def policy_of(name):
    """The mode that is set and in force, and why, for JSON."""
    return effect(Disk(name))._asdict()


class Json:
    """An object per interval and line, and one at the end."""

    def __init__(self, skip_idle=False):
        self.skip_idle = skip_idle

    def interval(self, rows):
        """The counters, what they say, and what "adaptive" does or null."""
        print_json(disks={
            disk: {"counters": diff, "figures": fig, "adaptive": found,
                   "policy": policy_of(disk)}
            for disk, diff, fig, found in rows
            if fig["requests"] or not self.skip_idle})

    @staticmethod
    def end(rows):
        """The answers."""
        print_json(answers={disk: answers(fig) for disk, _, fig, _ in rows})


def print_policies(names, as_json):
    """Which mode is set, which is in force, and why: needs no debugfs."""
    if as_json:
        print_json(disks={name: policy_of(name) for name in names})
        return
    print(line(POLICY_HEADER, POLICY_WIDTHS))
    for name in names:
        print(line([name] + [text or "?" for text in effect(Disk(name))],
                   POLICY_WIDTHS))
