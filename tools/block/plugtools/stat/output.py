# SPDX-License-Identifier: GPL-2.0
"""What plugstat prints: a table for people, lines of JSON for programs."""
import datetime
import json
import sys

from ..core.disks import Disk
from ..core.system import paint
from .figures import QUESTIONS, answers, busy, show

HEADER = ("Disk", "req/s", "mrg%", "r/flush", "tag%", "t/batch", "cmd/db",
          "group")
WIDTHS = (10, 9, 5, 8, 5, 8, 8, 6)
QUEUE_HEADER = ("hctx", "group", "best", "state", "req/s", "r/flush",
                "in-flight")
QUEUE_WIDTHS = (5, 9, 5, 8, 9, 8, 9)
POLICY_HEADER = ("Disk", "set", "in-force", "why")
POLICY_WIDTHS = (10, 10, 10, 16)
KINDS = {"yes": "good", "no": "warning"}        # of answers
VERSION = 3                     # of the JSON; grows when a field goes


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
    return f"{least}" if least == most else f"{least}-{most}"


def cells_of(disk, fig, found):
    return [disk, f"{fig['requests_per_s']:.0f}",
            show(fig["merged"], "%.0f", 100), show(fig["requests_per_flush"]),
            show(fig["tags_in_batches"], "%.0f", 100),
            show(fig["tags_per_batch"]), show(fig["commands_per_doorbell"]),
            group_of(found)]


def state_of(queue):
    if "trial" not in queue:
        return "-"
    return f"try {queue['trial']}" if queue["trial"] else "parked"


def queue_row(number, queue):
    return line([str(number), "%s%s" % (
        "pinned " if queue.get("pinned") else "", queue.get("group", "-")),
                 str(queue.get("from", "-")), state_of(queue),
                 show(queue["requests_per_s"], "%.0f"),
                 show(queue["requests_per_flush"]),
                 str(queue.get("sample_in_flight", "-"))], QUEUE_WIDTHS)


def adaptive_lines(disk, found):
    if found["not_in_force"]:
        return [f"{disk}: adaptive is not in force ({found['not_in_force']}): "
                'does as "always"']
    queues = busy(found)
    lines = [f"{disk}: adaptive, last sample of each hardware queue:",
             line(QUEUE_HEADER, QUEUE_WIDTHS)] if queues else []
    lines += [queue_row(*item) for item in queues.items()]
    rest = len(found["hctx"]) - len(queues)
    if rest:
        lines.append(f"{disk}: adaptive has no sample of {rest} hardware "
                     "queues: too few requests, or none in a plug")
    return lines


def now():
    """The time, as programs read it, with that of the place it is."""
    return datetime.datetime.now().astimezone().isoformat(
        timespec="milliseconds")


class Table:
    def __init__(self, args):
        self.args = args        # of the command line
        self.lines = 0

    def interval(self, rows):
        if self.args.stamps:
            print(now())
        if self.lines % 20 == 0:
            print(line(HEADER))
        self.lines += 1
        for disk, _, fig, found in rows:
            if fig["requests"] or not self.args.skip_idle:
                print(line(cells_of(disk, fig, found)))
        sys.stdout.flush()

    @staticmethod
    def end(rows):
        for disk, _, fig, found in rows:
            print()
            for name, text in answers(fig).items():
                kind = KINDS.get(text.partition(":")[0])
                print(paint(f"{disk}: {QUESTIONS[name]} {text}", kind))
            wrong = found and found["not_in_force"]
            for text in adaptive_lines(disk, found) if found else []:
                print(paint(text, "bad" if wrong else None))


def print_json(**fields):
    print(json.dumps({"version": VERSION, "time": now(), **fields}),
          flush=True)


class Json:
    """An object per interval and line, and one at the end."""

    def __init__(self, args):
        self.args = args

    def interval(self, rows):
        print_json(disks={
            disk: {"counters": diff, "figures": fig, "adaptive": found,
                   "policy": Disk(disk).effect()._asdict()}
            for disk, diff, fig, found in rows
            if fig["requests"] or not self.args.skip_idle})

    @staticmethod
    def end(rows):
        print_json(answers={disk: answers(fig) for disk, _, fig, _ in rows})


def policies(names):
    """{disk: Effect}; what has gone meanwhile is left out."""
    found = {name: Disk(name).effect() for name in names}
    return {name: one for name, one in found.items()
            if one.mode and Disk(name).there()}


def print_policies(names, args):
    """Which mode is set, which is in force, and why: needs no debugfs."""
    found = policies(names)
    if args.json:
        print_json(disks={name: one._asdict() for name, one in found.items()})
        return
    print(line(POLICY_HEADER, POLICY_WIDTHS))
    for name, one in found.items():
        row = line([name, *one], POLICY_WIDTHS)
        print(paint(row, "bad" if one.wrong() else None))
    sys.stdout.flush()


def check_policies(names):
    """Say which modes are not in force; whether there are any."""
    bad = {name: one.wrong() for name, one in policies(names).items()
           if one.wrong()}
    for item in bad.items():
        print("plugstat: %s: %s" % item, file=sys.stderr)
    return bool(bad)
