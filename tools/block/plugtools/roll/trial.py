# SPDX-License-Identifier: GPL-2.0
"""Try a mode under the live load, and put the old one back.

Blocks of the old mode and of the tried one take turns until the time is over
or the guard trips.  The old mode comes back in either case, on an error and on
a signal; if this process is killed, another one that watches it does that.
"""
import contextlib
import math
import os
import random
import signal
import socket
import sys
import time

from ..core.journal import (Guard, Journal, locked, read_journal, recover,
                            restore)
from ..core.system import (SIGNALS, EnvironmentProblem, UsageProblem, active,
                           duration, paint, read, rooted, say)
from .disklist import FALLBACK, NOMERGES, keeps_nomerges
from .guard import (LEAST_PAIRS, collapse, guard_text, lacking, outcome,
                    outcome_lines, tripped, undecided)
from .meter import (LEAST_IOS, LEAST_TIMES, Meter, NoTracing, busy,
                    remove_instance)

PROGRAM = "plugroll"
NOTICE = 5 | 3 << 3             # of the log's facility for daemons
BLOCKS = 60                     # of a try, if they are neither too short
SHORTEST, LONGEST = 2.0, 10.0   # seconds, nor too long
LEAST_BASELINE = 5.0            # seconds
AGAIN_SECONDS = 10              # in which a disk that refused is asked again
SETTLE = 0.25                   # of a block passes before it is measured
KNOB = "queue/plug_policy"

HELD, TRIPPED, UNKNOWN, IDLE = "held", "tripped", "unknown", "idle"
NO_GAIN = "no gain"
ALREADY = "already set"
KINDS = {HELD: "good", ALREADY: "good", TRIPPED: "bad"}     # of verdicts


class Tripped(Exception):
    """The guard has; {disk's name: why}."""


class Gone(Exception):
    """A disk has; (its setting, the text)."""


def check_mode(mode, legs):
    """Refuse what a disk does not offer, before anything is changed."""
    for leg in legs:
        if mode not in leg.policies() and leg.there():
            raise UsageProblem(f"{leg.name} has no mode '{mode}'; accepted: "
                               f"{', '.join(leg.policies())}")


def check_room(seconds, block):
    """No try is longer than was asked for."""
    least = 2 * LEAST_PAIRS * block
    if least > seconds:
        raise UsageProblem(
            f"--for {seconds}s has no room for {LEAST_PAIRS} pairs of blocks "
            f"of {block:g} s; accepted: --for {math.ceil(least)}s or more, or "
            f"--block {seconds // (2 * LEAST_PAIRS):g} or less")


def check_force(mode, legs):
    """What is not in force is not tried, and its guard has not held."""
    for leg in legs:
        found = leg.effect()
        if found.force not in (None, mode):
            raise EnvironmentProblem(
                f"{mode} cannot be tried on {leg.name}, where {found.force} "
                f"is in force: it has {FALLBACK.get(found.why, found.why)}")


def check_counting(disks):
    """Without iostats there is nothing to judge by."""
    for disk in disks:
        if disk.get("queue/iostats", "1") == "0":
            raise EnvironmentProblem(
                f"{disk.name} does not count its I/O: echo 1 "
                f">{disk.path('queue/iostats')}")


def killed(path, pid):
    """What the guard does for a killed try, whose journal is given."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)       # whoever reads what we said need not wait
    remove_instance(pid)
    for text in ask_again(path, lambda text: log("plugroll was killed: "
                                                 + text)):
        log("plugroll was killed: " + text)


def ask_again(path, tell):
    """Put back what a journal tells of, whose disks are locked: one that is
    being reset refuses a mode for a while.  What could not be in the end."""
    for again in range(AGAIN_SECONDS, -1, -1):
        done, problems = restore(read_journal(path)[0])
        for text in done:
            tell(text)
        if not problems:
            os.unlink(path)
            break
        time.sleep(min(1, again))
    return problems


class Modes:
    def __init__(self, mode, legs, journal):
        self.legs = {leg.path(KNOB): leg for leg in legs}
        self.numbers = {path: leg.number() for path, leg in self.legs.items()}
        self.tried = dict.fromkeys(self.legs, mode)
        self.old = {path: active(read(path)) for path in self.tried}
        self.now = dict(self.old)
        self.journal = journal

    def check(self, paths):
        """A disk that has come back is another one, with a mode of its own."""
        for path in paths:
            leg = self.legs[path]
            if leg.number() != self.numbers[path]:
                raise Gone(path, "%s has gone%s" % (
                    leg.name, ", and another disk has its name"
                    if leg.there() else ""))

    def forget(self, path):
        """One that has gone; what comes in its place has a mode of its own."""
        for known in (self.legs, self.numbers, self.tried, self.old, self.now):
            del known[path]

    def left(self):
        """{disk's name: mode} of those without the old one."""
        found = {self.legs[path].name: (active(read(path, "gone")), mode)
                 for path, mode in self.old.items()}
        return {name: now for name, (now, old) in found.items() if now != old}

    def set(self, wanted):
        """Change all disks; one that others have changed ends the try."""
        for path, mode in wanted.items():
            self.check([path])
            found = active(read(path))
            if found != self.now[path]:
                raise EnvironmentProblem(f"somebody else has set {path} to "
                                         f"{found}")
            self.journal.set(path, mode)
            self.now[path] = mode


class Try:
    """One try on some disks of this host, {Disk: disks with its knobs}."""

    def __init__(self, args, targets):
        self.args = args
        self.legs = targets
        self.already = [disk for disk, legs in targets.items()
                        if all(leg.policy() == args.mode for leg in legs)]
        for disk in self.already:
            check_force(args.mode, targets[disk])
        # of blocks, by disk: of those that are still being tried
        self.pairs = {disk: [] for disk in targets if disk not in self.already}
        self.meter = Meter(self.pairs)
        self.nomerges = [leg.name for legs in targets.values()
                         for leg in legs if keeps_nomerges(leg)]
        self.gone = []              # meanwhile
        self.status = {}            # of each disk, in the end
        self.modes = None

    def names(self):
        return ", ".join(disk.name for disk in self.pairs)

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
        seconds = max(LEAST_BASELINE, self.args.block)
        self.tell(f"{self.names()}: measuring the load for "
                  f"{duration(seconds)}")
        found = self.measure(seconds)
        for disk in list(self.pairs):
            if not busy(found[disk]):
                del self.pairs[disk]
                self.tell(f"{disk.name}: not enough I/O to tell: fewer than "
                          f"{LEAST_IOS} requests in {duration(seconds)}")
        if self.pairs and "p99" in {**self.args.guard, **self.args.require}:
            self.settle_percentile(found)

    def settle_percentile(self, found):
        """Guard the mean instead where there is no p99, if nobody asked."""
        why = self.no_percentile(found)
        if why and (not self.args.default_guard or "p99" in self.args.require):
            raise EnvironmentProblem("p99 cannot be measured: " + why)
        if why:
            self.args.guard = {
                "mean" if metric == "p99" else metric: limit
                for metric, limit in self.args.guard.items()}
            self.tell(f"guarding {guard_text(self.args.guard)}: {why}")

    def no_percentile(self, found):
        """Start tracing; why there is no p99, or None."""
        try:
            self.meter.trace(found)
        except NoTracing as error:
            return str(error)
        for disk, block in self.measure(self.args.block).items():
            if "p99" not in block:
                self.meter.close()
                return (f"{disk.name}: fewer than {LEAST_TIMES} response times "
                        f"of {block['requests']} requests in a block of "
                        f"{self.args.block:g} s; try a longer --block, or "
                        "guard the mean")
        return None

    def alternate(self, draw):
        """Pairs of both modes until the time is over."""
        modes = self.modes.old, self.modes.tried
        number = max(LEAST_PAIRS,
                     round(self.args.seconds / self.args.block / 2))
        for count, first in zip(range(number), leaders(draw)):
            try:
                found = self.pair(modes, first)
            except Gone as error:
                self.drop(*error.args)
                continue
            self.note(f"pair {count + 1} of {number}", found)

    def pair(self, modes, first):
        """Figures of a block of each mode; Gone if a disk has."""
        found = {}
        try:
            for which in (first, 1 - first):
                self.modes.set(modes[which])
                found[which] = self.measure(self.args.block)
                self.modes.check(self.modes.legs)
        except OSError:
            self.modes.check(self.modes.legs)
            raise
        return found

    def drop(self, path, why):
        """Go on without a disk that has gone, or one of whose legs has."""
        self.modes.forget(path)
        for disk in list(self.pairs):
            if path in [leg.path(KNOB) for leg in self.legs[disk]]:
                self.gone.append(disk.name)
                del self.pairs[disk]
        if not self.pairs:
            raise EnvironmentProblem(why)
        tell_both(f"{why}: the try goes on without it")

    def note(self, what, found):
        """A pair; Tripped if that is one too many."""
        for disk, pairs in self.pairs.items():
            pair = found[0][disk], found[1][disk]
            if any(map(busy, pair)):
                pairs.append(pair)
            self.tell(f"{disk.name}: {what}: {pair_text(*pair)}")
        number = len(self.pairs)
        found = {disk.name: collapse(pairs, self.args.guard, number)
                 or tripped(pairs, self.args.guard, number)
                 for disk, pairs in self.pairs.items()}
        if any(found.values()):
            raise Tripped({name: why for name, why in found.items() if why})

    def judge(self, name, pairs):
        """(status, why) of a disk whose try nothing ended early."""
        if len(pairs) < LEAST_PAIRS:
            return IDLE, f"{name}: not enough I/O to tell"
        why = undecided(pairs, self.args.guard)
        if why:
            return UNKNOWN, f"{name}: not enough evidence: {why}"
        why = lacking(pairs, self.args.require)
        if why:
            return NO_GAIN, f"the guard held, but {name}: not the gain that " \
                f"is required: {why}"
        return HELD, "the guard held"

    def verdict(self, draw):
        """(status, why) of the whole."""
        try:
            self.alternate(draw)
        except Tripped as error:
            tripping = error.args[0]
            self.status = {disk: TRIPPED if disk.name in tripping else UNKNOWN
                           for disk in self.pairs}
            return TRIPPED, "the guard tripped: " + "; ".join(
                "%s: %s" % item for item in tripping.items())
        found = {disk: self.judge(disk.name, pairs)
                 for disk, pairs in self.pairs.items()}
        self.status = {disk: one[0] for disk, one in found.items()}
        # what is not known says more than what is known not to gain
        return next((one for status in (IDLE, UNKNOWN, NO_GAIN)
                     for one in found.values() if one[0] == status),
                    (HELD, "the guard held"))

    def run(self, journal):
        """(status, why); the caller puts the modes back."""
        if self.nomerges:
            self.tell(f"{', '.join(self.nomerges)}: {NOMERGES}")
        if self.pairs:
            self.baseline()
        if not self.pairs:
            return self.nothing()
        self.modes = Modes(self.args.mode, [
            leg for disk in self.pairs for leg in self.legs[disk]], journal)
        log(f"try {self.args.mode} on {self.names()} for "
            f"{duration(self.args.seconds)}, guard "
            f"{guard_text(self.args.guard)}")
        self.modes.check(self.modes.legs)
        self.modes.set(self.modes.tried)
        check_force(self.args.mode, self.modes.legs.values())
        return self.verdict(generator())

    def nothing(self):
        """(status, why) if there is no disk to try the mode on."""
        if not self.already:
            return IDLE, "not enough I/O to tell"
        return ALREADY, f"{self.args.mode} is already set on " \
            f"{', '.join(disk.name for disk in self.already)}"

    def result(self, status, why):
        already = [disk.name for disk in self.already]
        return {"mode": self.args.mode, "status": status, "why": why,
                "guard": self.args.guard, "require": self.args.require,
                "block_s": self.args.block,
                "idle": [disk.name for disk in self.legs
                         if disk not in [*self.pairs, *self.already]
                         and disk.name not in self.gone],
                "gone": self.gone,
                "already": already, "nomerges": self.nomerges,
                "left": self.modes.left() if self.modes else {},
                "disks": {disk.name: {
                    "legs": [leg.name for leg in self.legs[disk]],
                    "pairs": len(pairs), "status": self.status[disk],
                    "figures": outcome(pairs, self.args.guard)}
                          for disk, pairs in self.pairs.items()}}


def generator():
    return random.Random(f"{os.getpid()} {time.time_ns()}")


def leaders(draw):
    """Which mode comes first in a pair: the old one, 0, or the tried one."""
    while True:
        four = [0, 0, 1, 1]
        draw.shuffle(four)
        yield from four


def pair_text(old, new):
    if not busy(old) or not busy(new):
        return f"too little I/O to compare: {old['ios']} and, with it, " \
            f"{new['ios']}"
    return "  ".join(f"{metric} {100 * (new[metric] / old[metric] - 1):+.1f}%"
                     for metric in ("iops", "mean", "p99")
                     if metric in old and metric in new)


def print_result(found):
    for name, one in found["disks"].items():
        say(f"{name}: {found['mode']} against the mode before, {one['pairs']} "
            f"pairs of blocks of {found['block_s']:g} s")
        for line in outcome_lines(one["figures"]):
            say(line)
    back = "the mode before is back" if found["disks"] else \
        "nothing was changed"
    say(paint("%s; %s" % (found["why"], ", ".join(
        "%s is %s" % item for item in found["left"].items()) or back),
              KINDS.get(found["status"], "warning")))


def log(text):
    """In the system's log, as journalctl -t plugroll shows it; a host without
    one is none of our business."""
    line = f"<{NOTICE}>{PROGRAM}[{os.getpid()}]: {text}"
    with contextlib.suppress(OSError), \
         socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.sendto(line.encode(), rooted("/dev/log"))


def tell_both(text):
    """To the user and to the log."""
    say(text, sys.stderr)
    log(text)


def put_back(journal, attempt, guard):
    """Whatever comes now, the modes come back."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    problems = journal.put_back()
    attempt.meter.close()
    for text in journal.done:
        say(text, sys.stderr if attempt.args.json else None)
        log(text)
    if problems:
        problems = ask_again(journal.path, tell_both)
    guard.close()
    if problems:
        raise EnvironmentProblem("; ".join(problems))


def try_mode(args, targets):
    """The whole of it; what came of it."""
    legs = [leg for legs in targets.values() for leg in legs]
    args.block = args.block or min(LONGEST, max(SHORTEST,
                                                args.seconds / BLOCKS))
    check_room(args.seconds, args.block)
    check_mode(args.mode, legs)
    check_counting(targets)
    recover(tell_both, PROGRAM)
    names = list(dict.fromkeys(disk.name for disk in [*targets, *legs]))
    pid = os.getpid()
    with locked(names, PROGRAM):
        attempt = Try(args, targets)
        journal = Journal(names[0], names, PROGRAM)
        guard = Guard(lambda: killed(journal.path, pid))
        try:
            status, why = attempt.run(journal)
        finally:
            put_back(journal, attempt, guard)
    log(f"{args.mode} on {', '.join(names)}: {why}")
    return attempt.result(status, why)
