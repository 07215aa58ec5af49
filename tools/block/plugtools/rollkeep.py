# SPDX-License-Identifier: GPL-2.0
"""keep, undo and apply: modes that last, and modes that no longer do."""
import contextlib
import os
import time

from .disks import Disk, disks
from .journal import Held, directory, locked, recover
from .rolllog import log
from .rollrules import (RULES, TMPFILES, install, kept_now, matches, merge,
                        mode_for, new_entries, texts)
from .rolltry import PROGRAM, check_mode, tell_both
from .system import EnvironmentProblem, read, rooted

APPLIED = "/run/plug-policy/applied"
POLL_SECONDS = 0.5


def set_all(legs, mode):
    """Set the mode on all disks or, if one refuses, on none."""
    before = []
    try:
        for leg in legs:
            before.append((leg, leg.policy()))
            leg.set_policy(mode)
    except OSError:
        for leg, old in before:
            with contextlib.suppress(OSError):
                leg.set_policy(old)
        raise


def keep(mode, legs, all_nvme):
    """Write the files and set the mode; {file: text} of what changed.

    The files come first: they say what was set before.
    """
    check_mode(mode, legs)
    recover(tell_both, PROGRAM)
    with locked([leg.name for leg in legs], PROGRAM):
        old = kept_now()
        wanted = texts(merge(old, new_entries(mode, legs, all_nvme)))
        changed = install(wanted)
        try:
            set_all(legs, mode)
        except OSError:
            install(texts(old))
            raise
    note_applied([leg for leg in legs if leg.hidden()])
    log("keep %s on %s%s" % (mode, ", ".join(leg.name for leg in legs),
                             " and all NVMe disks to come" if all_nvme else
                             ""))
    return {path: wanted[path] for path in changed}


def take_back(disk, kept):
    """Set what was set before; what was done."""
    one = [one for one in kept if matches(one, disk)][-1]
    mode = disk.policy()
    if mode != one.mode:
        return "%s is left at %s, which was set after %s was kept" % (
            disk.name, mode, one.mode)
    disk.set_policy(one.was)
    return "%s is %s again" % (disk.name, one.was)


def undo():
    """Put back modes, remove files: (what was done, what could not be)."""
    done, problems = [], []
    recover(lambda text: (done.append(text), log(text)), PROGRAM)
    kept = kept_now()
    affected = [disk for disk in map(Disk, disks())
                if disk.has_knob() and mode_for(disk, kept)]
    with locked([disk.name for disk in affected], PROGRAM):
        changed = install({RULES: "", TMPFILES: ""})
        done += ["%s is removed" % path for path in changed]
        for disk in affected:
            try:
                done.append(take_back(disk, kept))
            except OSError as error:
                problems.append("%s: %s" % (disk.name, error.strerror))
    with contextlib.suppress(OSError):
        os.unlink(rooted(APPLIED))
    log("undo: " + "; ".join(done + problems or ["nothing was kept"]))
    return done, problems


# --- paths that come later -------------------------------------------------

def applied():
    """Names and numbers of paths that have been set since boot."""
    return set(read(rooted(APPLIED), "").splitlines())


def key(disk):
    """Which path, so that one which comes again is a new one."""
    return "%s %s" % (disk.name, disk.number())


def note_applied(paths):
    """They are not set again: somebody may have set another mode by hand."""
    known = applied()
    new = [key(path) for path in paths if key(path) not in known]
    if new:
        directory()
        with open(rooted(APPLIED), "a", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in new))


def apply_once(kept):
    """Set the paths that are new; those that somebody is working on stay."""
    known = applied()
    for disk in map(Disk, disks()):
        mode = mode_for(disk, kept) if disk.hidden() and disk.has_knob() \
            else None
        if mode and key(disk) not in known:
            with contextlib.suppress(Held), locked([disk.name], PROGRAM):
                apply_to(disk, mode)


def apply_to(disk, mode):
    """One path; one that goes meanwhile needs nothing."""
    try:
        if disk.policy() != mode:
            disk.set_policy(mode)
            log("%s is a new path: %s, as kept" % (disk.name, mode))
        note_applied([disk])
    except OSError as error:
        log("%s: %s is not set: %s" % (disk.name, mode, error.strerror))


def apply(seconds):
    """The same, while the kernel may still be looking for namespaces."""
    kept = kept_now()
    if not kept:
        raise EnvironmentProblem("nothing is kept: see plugroll keep")
    end = time.monotonic() + seconds
    apply_once(kept)
    while time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        apply_once(kept)
