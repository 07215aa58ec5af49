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

from ..core.journal import directory, try_lock
from ..core.system import EnvironmentProblem, read, write
from .source import GONE, each, explain, switch_of


@contextlib.contextmanager
def alone():
    """Nobody else enters or leaves meanwhile."""
    with open(directory() + "/counting", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Switch:
    def __init__(self, name):
        self.name = name
        self.path = switch_of(name)
        self.file = None

    def value(self):
        return int(read(self.path))

    def open(self):
        """The file that is locked, and tells what to put back."""
        name = f"{directory()}/counting-{self.name}"
        self.file = os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT, 0o644),
                              "r+", encoding="ascii")

    def last(self):
        """Whether nobody else holds it; if so, nobody can come."""
        return try_lock(self.file)

    def before(self):
        """What to put back, or None where nobody has said so."""
        self.file.seek(0)
        text = self.file.read().strip()
        return int(text) if text.isdigit() else None

    def remember(self, value):
        """Say what to put back; nothing for None."""
        self.file.seek(0)
        self.file.truncate()
        self.file.write("" if value is None else f"{value}\n")
        self.file.flush()

    def enter(self):
        with alone():
            value = self.value()
            self.open()
            # what a killed holder has left still says what was before
            if self.last() and self.before() is None:
                self.remember(value)
            fcntl.flock(self.file, fcntl.LOCK_SH)
            if not value:
                write(self.path, "1")

    def leave(self):
        """Put back what was before, if nobody else needs it; the disk may have
        gone meanwhile."""
        try:
            with alone(), self.file:
                if self.last():
                    self.put_back()
        except OSError as error:
            if error.errno not in GONE:
                print(f"plugstat: {self.path} is not put back: "
                      f"{error.strerror}", file=sys.stderr)

    def put_back(self):
        try:
            before = self.before()
            if before is not None and before != self.value():
                write(self.path, str(before))
        finally:
            self.remember(None)

    def keep(self, on):
        """On or off for good: at once, or when the last holder leaves."""
        with alone():
            value = self.value()
            self.open()
            with self.file:
                held = not self.last()
                self.remember(int(on) if held else None)
                if on and not value or not on and not held:
                    write(self.path, str(int(on)))


class Switches(contextlib.ExitStack):
    """Those that are on for us, until all are left."""

    def enter(self, name):
        switch = Switch(name)
        try:
            switch.enter()
        finally:
            if switch.file:
                self.callback(switch.leave)


def keep(names, on):
    """Counting on or off beyond our end."""
    each(names, lambda name: Switch(name).keep(on))


def counted(name):
    try:
        return bool(Switch(name).value())
    except OSError as error:
        if error.errno in GONE:
            return False
        raise EnvironmentProblem(explain(error)) from error
