# SPDX-License-Identifier: GPL-2.0
"""Which disks there are, in which mode, and which one the facts speak for.

The facts are those of plug-policy.rst, "Choosing a mode", and tries on this
very disk.  They come from sysfs.
"""
import json
import os
import re
import sys
import time

from ..core.disks import AS_SET, NO_KNOB, Effect, all_disks, without_knob
from ..core.system import (EnvironmentProblem, active, columns, paint,
                           printable, read, rooted, say)
from ..report.records import write_file
from .guard import Change, change_text
from .meter import WRAP
from .rules import alone, known_by, mode_for, on_file

TRIES = "/var/lib/plug-policy/tries.json"
LEAST_REQUESTS = 10000          # since the disk appeared, for a judgement
SINGLE = 1.5                    # in flight while busy: one at a time
SLOW_MS = 10                    # mean response times are below
VIRTUAL = re.compile(r"QEMU|Amazon Elastic|nvme_card|MSFT|VMware|VBOX", re.I)
NOMERGES = ("the host keeps nomerges=2: nothing merges in any mode, and what "
            "is measured holds for that only; who sets it (perftune.py does) "
            "may set it again")
HEADER = ["Disk", "set", "in-force", "why-not", "advice", "evidence"]
NO_ADVICE = {"worth_a_try": None, "best": None}     # one or none is a mode
FALLBACK = {"elevator": "an I/O scheduler", "blocking-driver":
            "a driver that may sleep", "no-queue_rqs":
            "a driver that takes no groups of requests"}


def fallback(disk):
    """Why no mode but "always" does anything on a disk, or None."""
    scheduler = active(disk.get("queue/scheduler", "none"))
    if scheduler not in ("none", ""):
        return "it has an I/O scheduler, " + scheduler
    if disk.get("queue/rotational") == "1":
        return "it is rotational"
    why = FALLBACK.get(disk.get("queue/plug_policy_fallback"))
    return "it has " + why if why else None


def costly_doorbell(disk):
    """Why to believe that a doorbell is expensive, or None."""
    model = printable(disk.get("device/model"))
    if VIRTUAL.search(model):
        return f"it is virtual ({model}), its doorbells are expensive"
    if disk.name.startswith("vd"):
        return "it is a virtio disk, its doorbells are expensive"
    return None


def by_load(disk):
    """(mode or None, why), by what it has done since it appeared."""
    done = disk.stat()
    requests = done.reads + done.writes
    if requests < LEAST_REQUESTS:
        return None, f"not enough I/O to tell: {requests} requests so far"
    if requests * SLOW_MS >= WRAP:      # they may: nobody knows how often
        return None, "not known: the kernel's sums may have wrapped in " \
            f"{requests} requests; plugroll try tells"
    depth = done.waited_ms / done.busy_ms if done.busy_ms else 0.0
    if depth < SINGLE:
        return "always", f"one I/O at a time: {depth:.1f} in flight while busy"
    return "adaptive", f"a fast disk with {depth:.1f} requests in flight " \
        "while busy"


def tries():
    """{disk's identity: {mode: what came of the last try}}; what is damaged
    is no evidence."""
    try:
        found = json.loads(read(rooted(TRIES), "{}"))
        for one in found.values():
            for item in one.items():
                try_text(*item)
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def note_try(result, targets):
    with alone(TRIES):
        known = tries()
        for disk in targets:
            one = result["disks"].get(disk.name)
            if one:
                known.setdefault(known_by(disk)[1], {})[result["mode"]] = {
                    "status": one["status"], "figures": one["figures"],
                    "date": time.strftime("%Y-%m-%d")}
        os.makedirs(os.path.dirname(rooted(TRIES)), exist_ok=True)
        write_file(rooted(TRIES),
                   (json.dumps(known, indent=1) + "\n").encode())


def try_text(mode, one):
    parts = ["%s %s" % (metric, change_text(Change(
        found["change"], found["low"], found["high"])))
             for metric, found in one["figures"].items()]
    return "tried %s on %s: %s; %s" % (
        mode, one["date"], {"held": "the guard held", "no gain":
                            "the guard held", "tripped": "the guard tripped"
                            }.get(one["status"], "not enough evidence"),
        ", ".join(parts) or "no figures")


def is_better(one):
    """Whether a try held, and something is sure to be better."""
    return one["status"] == "held" and any(
        found["low"] > 0 if metric == "iops" else found["high"] < 0
        for metric, found in one["figures"].items())


def advise(disk, known):
    """({worth_a_try: mode, best: mode}, [evidence]), the most telling first.

    Worth a try is what only the load speaks for.  Best is what a try on this
    disk has shown to be better, or "always" where no other mode can be."""
    tried = known.get(known_by(disk)[1], {}) if known else {}
    said = [try_text(*item) for item in tried.items()]
    why = fallback(disk)
    better = [mode for mode, one in tried.items() if is_better(one)]
    if better and not why:
        return {**NO_ADVICE, "best": better[-1]}, said
    why = why or costly_doorbell(disk)
    if why:
        return {**NO_ADVICE, "best": "always"}, [why] + said
    mode, evidence = by_load(disk)
    if tried.get(mode, {}).get("status") == "tripped":
        mode = "always"
    name = "best" if mode == "always" else "worth_a_try"
    return {**NO_ADVICE, name: mode}, said + [evidence]


def keeps_nomerges(disk):
    """Whether a host has switched merging off, as perftune.py does."""
    return disk.get("queue/nomerges") == "2"


def describe(disk, legs, kept, known):
    """All about one disk; below a head, of its legs."""
    found = {"disk": disk.name, "legs": [leg.name for leg in legs]}
    if not disk.has_knob():
        return dict(found, set=None, in_force=None, why="not its own",
                    kept=None, **NO_ADVICE, nomerges=None, evidence=[
                        "its policy is that of " + ", ".join(found["legs"])])
    now = disk.effect()
    said, evidence = advise(disk, known)
    return dict(found, set=now.mode, in_force=now.force,
                why=None if now.why == AS_SET else now.why,
                kept=mode_for(disk, kept), **said,
                nomerges=disk.get("queue/nomerges") or None,
                evidence=evidence + [NOMERGES] * keeps_nomerges(disk))


def is_shown(disk, legs):
    """Disks with a policy, and what is made of these; no empty loop device."""
    return disk.get("size") != "0" and any(leg.has_knob() for leg in legs) \
        and all(leg.has_knob() or not leg.there() for leg in legs)


def rows_of(shown):
    kept, known = on_file().kept, tries()
    for disk, legs in shown:
        try:
            row = describe(disk, legs, kept, known)
        except OSError as error:
            if not disk.gone(error):
                raise
            row = None
        if row and disk.there():
            yield row
        else:
            say(f"{disk.name} has gone", sys.stderr)


def listing_of(chosen):
    """What is known of the chosen disks, or of all."""
    found = [(disk, disk.legs()) for disk in chosen or all_disks()]
    shown = [one for one in found if is_shown(*one)]
    if not chosen and not shown:
        raise EnvironmentProblem(NO_KNOB)
    for disk, legs in found if chosen else ():
        if not any(leg.has_knob() for leg in legs) and disk.there():
            raise without_knob([leg.name for leg in legs] or [disk.name])
    return list(rows_of(found if chosen else shown))


def wrong(row):
    """Why a disk does not do as it should, or None."""
    if row["kept"] not in (None, row["set"]):
        return f"{row['kept']} is kept, but {row['set']} is set"
    return Effect(row["set"], row["in_force"], row["why"]).wrong()


def cells_of(row):
    advised = row["best"] or "-"
    if row["worth_a_try"]:
        advised = row["worth_a_try"] + ": worth a try"
    return [row["disk"], row["set"] or "-", row["in_force"] or "-",
            row["why"] or "-", advised,
            row["evidence"][0] + (" (kept)" if row["kept"] else "")]


def print_list(rows):
    title, *lines = columns([HEADER, *map(cells_of, rows)])
    say(title)
    for text, row in zip(lines, rows):
        say(paint(text, "bad" if wrong(row) else None))
        for more in row["evidence"][1:]:
            say(f"    also: {more}")


def check_list(rows):
    """Say which disks do not do as they should; whether there are any."""
    found = [(row["disk"], wrong(row)) for row in rows if wrong(row)]
    for one in found:
        say(paint("%s: %s" % one, "bad", sys.stderr), sys.stderr)
    return bool(found)
