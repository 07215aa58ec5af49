# SPDX-License-Identifier: GPL-2.0
"""Signals, and programs that end when we do, however we end."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ..core.journal import Guard
from ..core.system import SIGNALS, EnvironmentProblem, Interrupted, say

TERM_SECONDS = 5                # from SIGTERM to SIGKILL


class Stop:
    """Notes a signal; the work asks for it where it can stop."""

    def __init__(self):
        self.number = 0
        self.old = {}

    def __enter__(self):
        for number in SIGNALS:
            old = signal.getsignal(number)
            if old != signal.SIG_IGN:       # nohup
                self.old[number] = old
                signal.signal(number, self.note)
        return self

    def __exit__(self, *_):
        for number, old in self.old.items():
            signal.signal(number, old)

    def note(self, number, _frame):
        self.number = self.number or number

    def check(self):
        if self.number:
            raise Interrupted(self.name())

    def name(self):
        return signal.Signals(self.number).name


def kill_group(process):
    """End a child and all that it started; it leads a group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_SECONDS)
    process.wait()


class Runner:
    """Runs programs, one at a time, in a directory that goes with it."""

    def __init__(self, stop, journal):
        self.stop = stop
        self.journal = journal
        journal.begin()         # children write to it
        self.directory = tempfile.mkdtemp(prefix="plugbench-")
        self.guard = Guard(self.killed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.guard.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def killed(self):
        """What the guard does for us: it ends the program that we left, too.
        """
        try:
            self.journal.inherit(lambda text: say(text, sys.stderr))
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def wait(self, process, seconds):
        deadline = time.monotonic() + seconds
        while process.poll() is None:
            self.stop.check()
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"{process.args[0]} did not end "
                                         f"within {seconds} s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)

    def run(self, command, seconds):
        """Run a command to its end: exit code, stdout, stderr."""
        with tempfile.TemporaryFile("w+", dir=self.directory) as out, \
             tempfile.TemporaryFile("w+", dir=self.directory) as errors:
            # The child is in the journal before it is a program; there are no
            # threads that this could trouble.
            try:
                process = subprocess.Popen(  # pylint: disable=W1509,R1732
                    command, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=errors, cwd=self.directory, start_new_session=True,
                    preexec_fn=self.journal.process)
            except subprocess.SubprocessError as error:
                raise EnvironmentProblem(
                    f"{command[0]} cannot be noted in the journal, so it was "
                    "not started: is /run full?") from error
            try:
                self.wait(process, seconds)
            finally:
                kill_group(process)
            out.seek(0)
            errors.seek(0)
            return process.returncode, out.read(), errors.read()
