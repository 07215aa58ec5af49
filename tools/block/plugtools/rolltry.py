# SPDX-License-Identifier: GPL-2.0
"""Try a mode under the live load, and put the old one back.

Blocks of the old mode and of the tried one take turns until the time is over
or the guard trips.  The old mode comes back in either case, on an error and on
a signal; if this process is killed, another one that watches it does that.
"""
import contextlib
import os
import signal
import sys
import time

from .journal import Guard, Journal, entries_of, locked, recover, restore
from .rollguard import (LEAST_PAIRS, guard_text, outcome, outcome_lines,
                        tripped, undecided)
from .rolllog import log
from .rollmeter import (LEAST_IOS, LEAST_TIMES, Meter, NoTracing, busy,
                        remove_instance)
from .system import (SIGNALS, EnvironmentProblem, UsageProblem, active,
                     duration, read, say)

PROGRAM = "plugroll"
BLOCKS = 60                     # of a try, if they are neither too short
SHORTEST, LONGEST = 2.0, 10.0   # seconds, nor too long
LEAST_BASELINE = 5.0            # seconds
AGAIN_SECONDS = 10              # in which a disk that refused is asked again
SETTLE = 0.25                   # of a block passes before it is measured
KNOB = "queue/plug_policy"

HELD, TRIPPED, UNKNOWN, IDLE = "held", "tripped", "unknown", "idle"


class Tripped(Exception):
    """The guard has; the text says why."""


def block_seconds(seconds):
    """How long a block is."""
    return min(LONGEST, max(SHORTEST, seconds / BLOCKS))


def check_mode(mode, legs):
    """Refuse what a disk does not offer, before anything is changed."""
    for leg in legs:
        if mode not in leg.policies():
            raise UsageProblem("%s has no mode '%s'; accepted: %s" % (
                leg.name, mode, ", ".join(leg.policies())))


def check_counting(disks):
    """Without iostats there is nothing to judge by."""
    for disk in disks:
        if disk.get("queue/iostats", "1") == "0":
            raise EnvironmentProblem(
                "%s does not count its I/O: echo 1 >%s" % (
                    disk.name, disk.path("queue/iostats")))


def killed(path):
    """What the guard does for a killed try, whose journal is given."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)       # whoever reads what we said need not wait
    remove_instance()
    done, problems = restore(entries_of(path))
    for text in done + problems:
        log("plugroll was killed: " + text)
    if not problems:
        os.unlink(path)


class Modes:
    """The tried mode, or the old one of each disk."""

    def __init__(self, mode, legs, journal):
        self.tried = {leg.path(KNOB): mode for leg in legs}
        self.old = {path: active(read(path)) for path in self.tried}
        self.now = dict(self.old)
        self.journal = journal

    def set(self, wanted):
        """Change all disks; one that others have changed ends the try."""
        for path, mode in wanted.items():
            found = active(read(path))
            if found != self.now[path]:
                raise EnvironmentProblem("somebody else has set %s to %s"
                                         % (path, found))
            self.journal.set(path, mode)
            self.now[path] = mode


class Try:
    """One try on some disks of this host, {Disk: disks that have its knobs}.
    """

    def __init__(self, args, targets):
        self.args = args
        self.guard = args.guard
        self.block = args.block or block_seconds(args.seconds)
        self.legs = targets
        self.idle = []
        self.pairs = {disk.name: [] for disk in targets}
        self.meter = Meter(list(targets))

    def tell(self, text):
        """To whom it may concern: with --json, not among the JSON."""
        if not self.args.json:
            say(text)

    def measure(self, seconds):
        """A block's figures, after the mode has settled."""
        self.meter.wait(seconds * SETTLE)
        self.meter.begin()
        self.meter.wait(seconds * (1 - SETTLE))
        return self.meter.end()

    def baseline(self):
        """The load before anything is changed; idle disks are left out."""
        seconds = max(LEAST_BASELINE, self.block)
        self.tell("%s: measuring the load for %s" % (
            ", ".join(self.pairs), duration(seconds)))
        found = self.measure(seconds)
        for disk in self.meter.disks:
            if not busy(found[disk.name]):
                del self.pairs[disk.name]
                self.idle.append(disk.name)
                self.tell("%s: not enough I/O to tell: fewer than %d requests"
                          " in %s" % (disk.name, LEAST_IOS, duration(seconds)))
        self.meter.disks = [disk for disk in self.meter.disks
                            if disk.name in self.pairs]
        if self.pairs and "p99" in self.guard:
            self.settle_percentile(found)

    def settle_percentile(self, found):
        """Guard the mean instead where there is no p99, if nobody asked."""
        why = self.no_percentile(found)
        if why and not self.args.default_guard:
            raise EnvironmentProblem("p99 cannot be guarded: " + why)
        if why:
            self.guard = {"mean" if metric == "p99" else metric: limit
                          for metric, limit in self.guard.items()}
            self.tell("guarding %s: %s" % (guard_text(self.guard), why))

    def no_percentile(self, found):
        """Start tracing; why there is no p99, or None."""
        try:
            self.meter.trace(found)
        except NoTracing as error:
            return str(error)
        for name, block in self.measure(self.block).items():
            if "p99" not in block:
                self.meter.close()
                return ("%s: fewer than %d response times in a block of %g s; "
                        "try a longer --block, or guard the mean"
                        % (name, LEAST_TIMES, self.block))
        return None

    def alternate(self, modes):
        """Old, new, new, old, ... until the time is over."""
        number = max(LEAST_PAIRS, round(self.args.seconds / self.block / 2))
        for count in range(number):
            found = {}
            for which in (0, 1) if count % 2 == 0 else (1, 0):
                modes.set((modes.old, modes.tried)[which])
                found[which] = self.measure(self.block)
            self.note("pair %d of %d" % (count + 1, number), found)

    def note(self, what, found):
        """A pair; Tripped if that is one too many."""
        for name, pairs in self.pairs.items():
            pair = found[0][name], found[1][name]
            if any(map(busy, pair)):
                pairs.append(pair)
            self.tell("%s: %s: %s" % (name, what, pair_text(*pair)))
        for name, pairs in self.pairs.items():
            why = tripped(pairs, self.guard)
            if why:
                raise Tripped("%s: %s" % (name, why))

    def judge(self):
        """(status, why) of a try that nothing ended early."""
        for name, pairs in self.pairs.items():
            if len(pairs) < LEAST_PAIRS:
                return IDLE, "%s: not enough I/O to tell" % name
            why = undecided(pairs, self.guard)
            if why:
                return UNKNOWN, "%s: not enough evidence: %s" % (name, why)
        return HELD, "the guard held"

    def run(self, journal):
        """(status, why); the caller puts the modes back."""
        self.baseline()
        if not self.pairs:
            return IDLE, "not enough I/O to tell"
        modes = Modes(self.args.mode, [
            leg for disk in self.meter.disks for leg in self.legs[disk]],
                      journal)
        log("try %s on %s for %s, guard %s" % (
            self.args.mode, ", ".join(self.pairs),
            duration(self.args.seconds), guard_text(self.guard)))
        try:
            self.alternate(modes)
        except Tripped as error:
            return TRIPPED, "the guard tripped: %s" % error
        return self.judge()

    def result(self, status, why):
        """What is shown, or printed as JSON."""
        legs = {disk.name: [leg.name for leg in legs]
                for disk, legs in self.legs.items()}
        return {"mode": self.args.mode, "status": status, "why": why,
                "guard": self.guard, "block_s": self.block,
                "idle": self.idle,
                "disks": {name: {"legs": legs[name], "pairs": len(pairs),
                                 "figures": outcome(pairs, self.guard)}
                          for name, pairs in self.pairs.items()}}


def pair_text(old, new):
    """What a pair says, for people."""
    if not busy(old) and not busy(new):
        return "too little I/O"
    return "  ".join("%s %+.1f%%" % (metric, 100 * (new[metric] / old[metric]
                                                    - 1))
                     for metric in ("iops", "mean", "p99")
                     if metric in old and metric in new)


def print_result(found):
    """The table, and the verdict."""
    for name, one in found["disks"].items():
        say("%s: %s against the mode before, %d pairs of blocks of %g s" % (
            name, found["mode"], one["pairs"], found["block_s"]))
        for line in outcome_lines(one["figures"]):
            say(line)
    say("%s; %s" % (found["why"], "the mode before is back" if found["disks"]
                    else "nothing was changed"))


def tell_both(text):
    """To the user and to the log."""
    say(text, sys.stderr)
    log(text)


def put_back(journal, attempt, guard):
    """Whatever comes now, the modes come back; what could not be."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    problems = journal.put_back()
    attempt.meter.close()
    guard.close()
    return problems


def try_again(problems):
    """A disk that is being reset refuses a mode for a while."""
    for _ in range(AGAIN_SECONDS):
        time.sleep(1)
        if recover(tell_both, PROGRAM):
            return
    raise EnvironmentProblem("; ".join(problems))


def try_mode(args, targets):
    """The whole of it; what came of it."""
    legs = [leg for legs in targets.values() for leg in legs]
    check_mode(args.mode, legs)
    check_counting(targets)
    recover(tell_both, PROGRAM)
    names = list(dict.fromkeys(disk.name for disk in [*targets, *legs]))
    problems = []
    attempt = Try(args, targets)
    try:
        with locked(names, PROGRAM):
            journal = Journal(names[0], names, PROGRAM)
            guard = Guard(lambda: killed(journal.path))
            try:
                status, why = attempt.run(journal)
            finally:
                problems = put_back(journal, attempt, guard)
    finally:
        if problems:
            try_again(problems)
    log("%s on %s: %s" % (args.mode, ", ".join(names), why))
    return attempt.result(status, why)
