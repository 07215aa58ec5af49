# SPDX-License-Identifier: GPL-2.0
"""keep, undo and apply: modes that last, and modes that no longer do."""
import contextlib
import errno
import os
import signal
import time

from ..core.disks import Disk, disks
from ..core.journal import (Held, NotPutBack, directory, journals, locked,
                            locks_of, recover)
from ..core.system import (SIGNALS, EnvironmentProblem, UsageProblem, can_hold,
                           read, rooted)
from .rules import (RULES, add, alone, check_alone, identity, install, merge,
                    mode_before, mode_for, on_file, only, recorded)
from .trial import PROGRAM, check_mode, log, tell_both

APPLIED = "/run/plug-policy/applied"
POLL_SECONDS = 0.5


@contextlib.contextmanager
def unstopped():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def left_on(names):
    """A journal that tells of disks, whose locks are ours, or None: so nobody
    is at work, and the mode may be that of a killed try."""
    return next((path for path in journals()
                 if set(names) & set(locks_of(path))), None)


# --- keep ------------------------------------------------------------------

def put_back(before):
    """Set modes, {disk: mode}; the disks that refuse."""
    refused = []
    for disk, mode in before.items():
        try:
            if disk.policy() != mode:
                disk.set_policy(mode)
        except OSError as error:
            if not disk.gone(error):
                refused.append(disk)
                tell_both(f"{disk.name} stays at {disk.policy()} "
                          f"({error.strerror}): see plugroll undo")
    return refused


def present(legs, all_nvme):
    """Those of the disks that can be kept; what has gone is told."""
    found = []
    for leg in legs:
        try:
            known = all_nvme or identity(leg)
        except UsageProblem:
            if leg.there():
                raise
            known = None
        if known and leg.policy():
            found.append(leg)
        else:
            tell_both(f"{leg.name} has gone")
    if legs and not found:
        raise EnvironmentProblem("no disk is left; nothing was changed")
    return found


def set_mode(leg, mode):
    try:
        leg.set_policy(mode)
    except OSError as error:
        if not leg.gone(error):
            raise
        tell_both(f"{leg.name} has gone")


def write_and_set(mode, legs, old, new):
    """The rules and the mode, or neither; what install() returns.

    The rules come first: they say what was set before."""
    before = {leg: leg.policy() for leg in legs}
    try:
        written = install(new)
        for leg in legs:
            set_mode(leg, mode)
        note_applied([leg for leg in legs if leg.hidden()])
        return written
    except BaseException:
        with unstopped():
            install(merge(old, only(new, put_back(before))))
        raise


def check_left(names):
    """Refuse disks, whose locks are ours, that a killed try has left."""
    left = left_on(names)
    if left:
        raise NotPutBack(left)


def can_keep(legs, all_nvme):
    """Refuse what keep() would refuse, before a try that may take hours."""
    if not all_nvme:            # of which only those with I/O are kept
        # anew: by then a disk may be another one of that name
        check_alone([Disk(leg.name) for leg in legs])
    on_file()
    if not can_hold(os.path.dirname(rooted(RULES))):
        raise EnvironmentProblem(f"{RULES} cannot be written, so no mode can "
                                 "be kept")
    recover(tell_both, PROGRAM)
    names = [leg.name for leg in legs]
    with locked(names, PROGRAM):
        check_left(names)


def keep(mode, legs, all_nvme=False):
    """Keep a mode for disks and, if asked for, all NVMe disks to come:
    ({file: what is written there}, {disk: another mode it has by name})."""
    legs = present(legs, all_nvme)
    check_mode(mode, legs)
    if not all_nvme:
        check_alone(legs)
    recover(tell_both, PROGRAM)
    names = [leg.name for leg in legs]
    with alone(RULES), locked(names, PROGRAM):
        check_left(names)
        old = on_file()
        new = add(old, mode, legs, all_nvme)
        named = {leg.name: mode_for(leg, new.kept) for leg in legs
                 if mode_for(leg, new.kept) not in (mode, None)}
        chosen = [leg for leg in legs if leg.name not in named]
        written = write_and_set(mode, chosen, old, new)
    log("keep %s on %s%s" % (
        mode, ", ".join(leg.name for leg in chosen) or "no disk",
        " and all NVMe disks to come" if all_nvme else ""))
    return {RULES: written} if written else {}, named


# --- undo ------------------------------------------------------------------

def take_back(disk, rules):
    """Set what was set before; what was done."""
    kept, now = mode_for(disk, rules.kept), disk.policy()
    if not now:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), disk.name)
    before = mode_before(disk, rules)
    if now not in (kept, before):
        left = left_on([disk.name])
        if left:
            raise EnvironmentProblem(f"{disk.name} is at {now}, of which "
                                     f"{left} tells: see plugbench --restore")
        return f"{disk.name} is left at {now}, which was set after {kept} " \
            "was kept"
    if now != before:
        disk.set_policy(before)
    return "%s is %s %s" % (
        disk.name, before, "again" if recorded(disk, rules) else
        "now; it came after keep, so what it was before is not known")


def take_all_back(affected, rules, done, problems):
    """The same for some disks; the rules of those that refuse, or that an
    interrupt leaves, stay."""
    rest = list(affected)
    try:
        for disk in affected:
            try:
                done.append(take_back(disk, rules))
                rest.remove(disk)
            except OSError as error:
                if disk.gone(error):
                    done.append(f"{disk.name} has gone")
                    rest.remove(disk)
                else:
                    problems.append(f"{disk.name}: {error.strerror}")
            except EnvironmentProblem as error:
                problems.append(str(error))
    finally:
        with unstopped():
            if install(only(rules, rest)) is not None:
                done.append("%s %s" % (RULES, "tells of the rest" if rest else
                                       "is removed"))
            if not rest:
                with contextlib.suppress(OSError):
                    os.unlink(rooted(APPLIED))


def undo():
    """Put back modes, remove the rules: (what was done, what could not be)."""
    done, problems, told = [], [], []
    good = recover(lambda text: (told.append(text), log(text)), PROGRAM)
    (done if good else problems).extend(told)
    with alone(RULES):
        rules = on_file()
        affected = [disk for disk in map(Disk, disks())
                    if disk.has_knob() and mode_for(disk, rules.kept)]
        with locked([disk.name for disk in affected], PROGRAM):
            take_all_back(affected, rules, done, problems)
    log("undo: " + "; ".join(done + problems or ["nothing was kept"]))
    return done, problems


# --- paths that come later -------------------------------------------------

def applied():
    return set(read(rooted(APPLIED), "").splitlines())


def key(disk):
    """Which path, so that one which comes again is a new one."""
    return f"{disk.name} {disk.number()}"


def note_applied(paths, known=None):
    """They are not set again: somebody may have set another mode by hand.

    They are set all the same if that cannot be noted."""
    known = applied() if known is None else known
    new = [key(path) for path in paths if key(path) not in known]
    try:
        if new:
            directory()
            with open(rooted(APPLIED), "a", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in new))
    except OSError as error:
        log(f"{APPLIED}: {error.strerror}")


def apply_once():
    """Set the paths that are new; those that somebody is working on stay."""
    known, kept = applied(), on_file().kept
    for disk in map(Disk, disks()):
        if disk.hidden() and disk.has_knob() and mode_for(disk, kept) \
                and key(disk) not in known:
            with contextlib.suppress(Held), locked([disk.name], PROGRAM):
                apply_to(disk, known)


def apply_to(disk, known):
    """One path; one that goes meanwhile needs nothing."""
    mode = mode_for(disk, on_file().kept)
    if mode is None:
        return                  # undo came first
    try:
        if disk.policy() != mode:
            disk.set_policy(mode)
            log(f"{disk.name} is a new path: {mode}, as kept")
        note_applied([disk], known)
    except OSError as error:
        log(f"{disk.name}: {mode} is not set: {error.strerror}")


def apply(seconds):
    """The same, while the kernel may still be looking for namespaces."""
    if not on_file().kept:
        raise EnvironmentProblem("nothing is kept: see plugroll keep")
    end = time.monotonic() + seconds
    apply_once()
    while time.monotonic() < end:
        time.sleep(POLL_SECONDS)
        apply_once()
