# SPDX-License-Identifier: GPL-2.0
"""Which disks there are, in which mode, and which one the facts speak for.

The facts are those of plug-policy.rst, "Choosing a mode", and tries on this
very disk.  They come from sysfs and, where it is to be had, debugfs.
"""
import json
import os
import re
import time

from .disks import Disk, disks
from .policy import AS_SET, effect
from .records import write_file
from .rollguard import change_text, Change
from .rollrules import alone, identity, kept_now, mode_for
from .system import (EnvironmentProblem, UsageProblem, active, read, rooted,
                     say)

TRIES = "/var/lib/plug-policy/tries.json"
LEAST_REQUESTS = 10000          # since the disk appeared, for a judgement
SINGLE = 1.5                    # in flight while busy: one at a time
WRAP = 1 << 32                  # ms, at which the kernel's sums begin anew
SLOW_MS = 10                    # mean response times are below
VIRTUAL = re.compile(r"QEMU|Amazon Elastic|nvme_card|MSFT|VMware|VBOX", re.I)
FORM = "%-11s %-10s %-10s %-16s %-11s %s"
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
    model = disk.get("device/model")
    if VIRTUAL.search(model):
        return "it is virtual (%s), its doorbells are expensive" % model
    if disk.name.startswith("vd"):
        return "it is a virtio disk, its doorbells are expensive"
    if "cheap submission: no" in read(disk.debug("hctx0/plug_policy"), ""):
        return "the kernel takes its doorbells for expensive"
    return None


def load(disk):
    """(requests, mean in flight while busy) since the disk appeared.

    The mean is None if the sums may have begun anew; nothing tells how often.
    """
    done = disk.stat()
    requests = done.reads + done.writes
    if requests * SLOW_MS >= WRAP:
        return requests, None
    return requests, done.waited_ms / done.busy_ms if done.busy_ms else 0.0


def by_load(disk):
    """(mode, evidence) by what the disk has done so far."""
    requests, depth = load(disk)
    if requests < LEAST_REQUESTS:
        return None, "not enough I/O to tell: %d requests so far" % requests
    if depth is None:
        return None, "not known: the kernel's sums may have wrapped in %d " \
            "requests; plugroll try tells" % requests
    if depth < SINGLE:
        return "always", "one I/O at a time: %.1f in flight while busy" % depth
    return "adaptive", "a fast disk with %.1f requests in flight while busy" \
        % depth


def tries():
    """{disk's identity: {mode: what came of the last try}}; what is damaged
    is no evidence."""
    try:
        found = json.loads(read(rooted(TRIES), "{}"))
        for one in found.values():
            for item in one.items():
                try_text(*item)
        return found
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def try_key(disk):
    """By which a try is found again; the name, if there is nothing better."""
    try:
        return identity(disk)[1]
    except UsageProblem:
        return disk.name


def note_try(result, targets):
    """Remember a try, as evidence of each disk."""
    with alone(TRIES):
        known = tries()
        for disk in targets:
            one = result["disks"].get(disk.name)
            if one:
                known.setdefault(try_key(disk), {})[result["mode"]] = {
                    "status": one["status"], "figures": one["figures"],
                    "date": time.strftime("%Y-%m-%d")}
        os.makedirs(os.path.dirname(rooted(TRIES)), exist_ok=True)
        write_file(rooted(TRIES),
                   (json.dumps(known, indent=1) + "\n").encode())


def try_text(mode, one):
    """What a try said."""
    parts = ["%s %s" % (metric, change_text(Change(
        found["change"], found["low"], found["high"])))
             for metric, found in one["figures"].items()]
    return "tried %s on %s: %s; %s" % (
        mode, one["date"], {"held": "the guard held", "tripped":
                            "the guard tripped"}.get(
                                one["status"], "not enough evidence"),
        ", ".join(parts) or "no figures")


def is_better(one):
    """Whether a try held, and something is sure to be better."""
    return one["status"] == "held" and any(
        found["low"] > 0 if metric == "iops" else found["high"] < 0
        for metric, found in one["figures"].items())


def recommend(disk, known):
    """(mode or None, [evidence]), the most telling first."""
    why = fallback(disk) or costly_doorbell(disk)
    tried = known.get(try_key(disk), {})
    said = [try_text(*item) for item in tried.items()]
    if why:
        return "always", [why] + said
    better = [mode for mode, one in tried.items() if is_better(one)]
    if better:
        return better[-1], said
    mode, evidence = by_load(disk)
    if tried.get(mode, {}).get("status") == "tripped":
        mode = "always"
    return mode, said + [evidence]


def describe(disk, kept, known):
    """All about one disk; below a head, of its paths."""
    found = {"disk": disk.name, "legs": [leg.name for leg in disk.legs()]}
    if not disk.has_knob():
        return dict(found, set=None, in_force=None, why="not its own",
                    kept=None, recommended=None, evidence=[
                        "its policy is that of " + ", ".join(found["legs"])])
    now = effect(disk)
    mode, evidence = recommend(disk, known)
    return dict(found, set=now.mode, in_force=now.force,
                why=None if now.why == AS_SET else now.why,
                kept=mode_for(disk, kept), recommended=mode,
                evidence=evidence)


def is_shown(disk):
    """Disks with a policy, and what is made of these; no empty loop device."""
    legs = disk.legs()
    return disk.get("size") != "0" and legs and all(
        leg.has_knob() for leg in legs)


def listing_of(chosen):
    """What is known of the chosen disks, or of all."""
    kept, known = kept_now(), tries()
    shown = chosen or [disk for disk in map(Disk, disks()) if is_shown(disk)]
    if not shown:
        raise EnvironmentProblem(
            "no disk here has queue/plug_policy: the kernel has no "
            "CONFIG_BLK_PLUG_POLICY, or no blk-mq disk")
    return [describe(disk, kept, known) for disk in shown]


def print_list(rows):
    """For people."""
    say((FORM % ("Disk", "set", "in force", "why not", "recommended",
                 "evidence")).rstrip())
    for row in rows:
        kept = " (kept)" if row["kept"] else ""
        say(FORM % (row["disk"], row["set"] or "-", row["in_force"] or "-",
                    row["why"] or "-", row["recommended"] or "-",
                    row["evidence"][0] + kept))
        for more in row["evidence"][1:]:
            say(FORM % ("", "", "", "", "", more))
