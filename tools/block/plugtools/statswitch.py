# SPDX-License-Identifier: GPL-2.0
"""Switches of the kernel's counting, for several plugstats at a time.

Whoever needs a switch holds a shared lock on a file of its own below
/run/plug-policy, which the kernel drops when its holder dies.  The last one to
leave puts the switch back to what the file says it was before the first one
came.  What is done to a switch is done under another lock, since flock()
cannot make a shared lock of an exclusive one without a gap.
"""
import contextlib
import fcntl
import os
import sys

from .statsource import (GONE, complain, counted_disks, debugfs, explain,
                         switch_of)
from .system import EnvironmentProblem, read, rooted, write

PLACE = "/run/plug-policy"
DOORBELLS = "nvme_plug"


@contextlib.contextmanager
def alone():
    """Nobody else enters or leaves meanwhile."""
    place = rooted(PLACE)
    os.makedirs(place, mode=0o755, exist_ok=True)
    with open(place + "/counting", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Switch:
    """One switch, by the name of what it counts."""

    def __init__(self, name):
        self.name = name
        self.path = debugfs("/nvme_plug/counting") if name == DOORBELLS \
            else switch_of(name)
        self.file = None

    def value(self):
        """What it is set to."""
        return int(read(self.path))

    def open(self):
        """The file that is locked, and tells what to put back."""
        name = "%s/counting-%s" % (rooted(PLACE), self.name)
        self.file = os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT, 0o644),
                              "r+", encoding="ascii")

    def last(self):
        """Whether nobody else holds it; if so, nobody can come."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def before(self):
        """What to put back, or None where nobody has said so."""
        self.file.seek(0)
        text = self.file.read().strip()
        return int(text) if text.isdigit() else None

    def remember(self, value):
        """Say what to put back; nothing for None."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write("" if value is None else "%d\n" % value)
        self.file.flush()

    def enter(self, level):
        """Switch on, but never to less than somebody else wants."""
        with alone():
            value = self.value()
            self.open()
            # what a killed holder has left still says what was before
            if self.last() and self.before() is None:
                self.remember(value)
            fcntl.flock(self.file, fcntl.LOCK_SH)
            if value < level:
                write(self.path, str(level))

    def leave(self):
        """Put back what was before, if nobody else needs it."""
        with alone(), self.file:
            if not self.last():
                return
            try:
                before = self.before()
                if before is not None and before != self.value():
                    write(self.path, str(before))
            finally:
                self.remember(None)

    def keep(self, level):
        """On or off for good: at once, or when the last holder leaves."""
        with alone():
            value = self.value()
            self.open()
            with self.file:
                held = not self.last()
                self.remember(level if held else None)
                # off means off; on never means less than there is
                if level > value or not level and not held:
                    write(self.path, str(level))


class Switches:
    """Those that this run holds."""

    def __init__(self):
        self.held = []

    def enter(self, name, level):
        """Hold one."""
        switch = Switch(name)
        self.held.append(switch)
        switch.enter(level)

    def leave(self):
        """Leave all; a disk may have gone meanwhile."""
        for switch in self.held:
            if not switch.file:
                continue
            try:
                switch.leave()
            except OSError as error:
                if error.errno not in GONE:
                    print("plugstat: %s is not put back: %s" % (
                        switch.path, error.strerror), file=sys.stderr)
        self.held = []


def each(names, action):
    """The disks on which an action worked; the others have gone."""
    working = []
    for name in names:
        try:
            action(name)
            working.append(name)
        except OSError as error:
            if error.errno not in GONE:
                raise EnvironmentProblem(explain(error, name)) from error
            complain(name)
    return working


def with_doorbells(names):
    """Whether the doorbells of a controller of theirs can be counted."""
    return any(name.startswith("nvme") for name in names) and \
        os.path.exists(debugfs("/nvme_plug/counting"))


def enable(names, level, switches):
    """Switch counting on; the disks on which that worked."""
    working = each(names, lambda name: switches.enter(name, level))
    if with_doorbells(names):
        # another process may be unloading nvme, and figures go without
        with contextlib.suppress(OSError):
            switches.enter(DOORBELLS, 1)
    return working


def keep(names, level):
    """Counting on or off beyond our end; the disks on which that worked."""
    working = each(names, lambda name: Switch(name).keep(level))
    others = set(counted_disks()) - set(names)
    # all controllers have one switch: off only if no disk goes on counting
    if with_doorbells(names) and (level or not with_doorbells(others)):
        with contextlib.suppress(OSError):
            Switch(DOORBELLS).keep(min(level, 1))
    return working


def level_of(name):
    """What is counted on a disk: 0 nothing, 1 events, 2 holds as well."""
    try:
        return Switch(name).value()
    except OSError as error:
        if error.errno in GONE:
            return 0
        raise EnvironmentProblem(explain(error, name)) from error
