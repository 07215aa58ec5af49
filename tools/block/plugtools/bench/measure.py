# SPDX-License-Identifier: GPL-2.0
"""plugbench's runs: settings, fio, counters, records."""
import contextlib
import os
import re
import shlex
import shutil
import sys
import time

from ..core.disks import open_exclusively
from ..core.system import (EnvironmentProblem, Interrupted, active, duration,
                           listing, paint, per, printable, read, say)
from . import fio
from .children import Runner, Stop
from .counters import (TIMED_EVENTS, UNPLUG_EVENT, Doorbells, Perf, group,
                       learnt)
from .sandbox import boxed
from .plan import BASELINE, COUNT_SECONDS, WARM_SECONDS, run_seconds, schedule

TELL_SECONDS = 30               # without a line, where there is no terminal
GRACE_SECONDS = 60              # after which an fio that should end is killed


# --- settings --------------------------------------------------------------

def set_scheduler(leg, journal):
    """No scheduler; what the switch resets is remembered."""
    path = leg.path("queue/scheduler")
    if active(read(path, "none")) in ("none", ""):
        return
    dependent = [leg.path("queue/iosched/" + name)
                 for name in listing(leg.path("queue/iosched"))]
    for one in dependent + [leg.path("queue/" + name) for name in (
            "nr_requests", "async_depth", "wbt_lat_usec")]:
        with contextlib.suppress(OSError):
            journal.remember(one)
    journal.set(path, "none")


def prepare(plan, args, journal):
    for leg in plan.legs:
        journal.set(leg.path("queue/nomerges"), "0")
        journal.set(leg.path("queue/iostats"), "1")
        if not args.keep_scheduler:
            set_scheduler(leg, journal)


def set_policy(leg, policy, journal, nomerges="0"):
    """A policy of the file's with this nomerges, or the baseline.

    By way of "always": "adaptive" forgets what it learnt of another workload.
    """
    baseline = policy == BASELINE
    journal.set(leg.path("queue/nomerges"), "2" if baseline else nomerges)
    if leg.has_knob():
        journal.set(leg.path("queue/plug_policy"), "always")
        if not baseline and policy != "always":
            journal.set(leg.path("queue/plug_policy"), policy)


# --- runs ------------------------------------------------------------------

def tells_unplugs(release):
    """Whether the kernel traces plugs that go to the driver at once: from 5.16
    on it did not, and 6.12 does again."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return not found or not (5, 16) <= tuple(map(int, found.groups())) < (6, 12)


class Bench:
    """Runs the plan; owns nothing that outlives it but settings."""

    open_line = False           # on a terminal, that is written anew
    told = 0                    # seconds from the start to the last line

    def __init__(self, plan, journal, runner, verbose=False):
        self.plan = plan
        self.journal = journal
        self.runner = runner
        self.perf = Perf(runner.directory)
        self.doorbells = Doorbells(plan.legs)
        self.whole = []         # records of rounds that are
        self.warnings = []
        self.interrupted = None
        self.verbose = verbose

    def warn(self, text):
        """Say it, once, and have it in the result."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.end_line()
            say(paint("  warn:  ", "warning") + text)

    def begin(self):
        """Find out what can be counted."""
        told = self.perf.probe(
            lambda command: self.runner.run(command, GRACE_SECONDS))
        say("  " + told)
        if self.verbose:
            say("  the kernel counts doorbells, where the driver tells"
                if self.doorbells.there() else
                "  doorbells are not counted by this kernel")

    def countable(self):
        return UNPLUG_EVENT in self.perf.events or self.doorbells.there()

    def fio(self, name, seed, seconds, events):
        """One run of fio: (job, perf's counts)."""
        command = fio.fio_command(self.plan, name, seed, seconds)
        code, out, errors = self.runner.run(self.perf.wrap(boxed(
            command, self.plan.workloads[name].boxed, self.plan.disk.node),
            events), seconds + GRACE_SECONDS)
        job = fio.fio_job(out)
        if code or not job:
            said = printable((errors or out).strip()[-600:], "\n") or \
                "it said nothing"
            raise EnvironmentProblem(
                f"fio failed with exit code {code} on {name}: {said}\n  the "
                f"command was: {shlex.join(command)}")
        return job, self.perf.counts()

    def count(self, name, seed):
        """A short run of its own, since counting costs time."""
        if not self.countable():
            return dict.fromkeys(("unplugs_per_io", "ios_per_unplug",
                                  "doorbells_per_io"))
        with self.doorbells.counting() as rung:
            job, counts = self.fio(name, seed, COUNT_SECONDS, [UNPLUG_EVENT])
        ios, unplugs = job["mixed"]["total_ios"], counts.get(UNPLUG_EVENT)
        if not tells_unplugs(os.uname().release):
            unplugs = None
        return {"unplugs_per_io": per(unplugs, ios),
                "ios_per_unplug": per(ios, unplugs),
                "doorbells_per_io": per(sum(rung) or None, ios)}

    def check_effect(self, policy):
        for leg in self.plan.legs:
            told = leg.effect()
            if told.force != told.mode:
                self.warn(f'{policy} does as "always" here: {told.why}')

    def completed(self):
        return sum(leg.completed() for leg in self.plan.legs)

    def measure(self, policy, name, number, merges):
        """One record, without what is the same in all."""
        legs, seed = self.plan.legs, number + 1
        for leg in legs:
            set_policy(leg, policy, self.journal, merges.values[leg.name])
        self.check_effect(policy)
        self.fio(name, seed, WARM_SECONDS, [])
        found = self.count(name, seed)
        before, knew = self.completed(), learnt(legs)
        job, counts = self.fio(name, seed, self.plan.runtime, TIMED_EVENTS)
        ios = job["mixed"]["total_ios"]
        switches = counts.get("context-switches", job.get("ctx"))
        found.update(
            policy=policy, workload=name, run=number, seed=seed,
            iops=round(job["mixed"]["iops"], 3), lat_us=fio.latencies(job),
            cpu_busy=fio.busy(job, self.plan.workloads[name].jobs),
            requests_per_io=per(self.completed() - before, ios),
            group=group(knew, learnt(legs)) if policy == "adaptive" else None,
            insns_per_io=per(counts.get("instructions"), ios),
            cycles_per_io=per(counts.get("cycles"), ios),
            cache_misses_per_io=per(counts.get("cache-misses"), ios),
            ctx_switches_per_io=per(switches, ios))
        return found

    def one_takes(self, spent, done):
        """Seconds of a run, by those that are done."""
        return spent / done if done else run_seconds(self.plan.runtime,
                                                     self.countable())

    def over(self, spent, done):
        """Whether the next run would exceed the budget."""
        return self.plan.budget and \
            spent + self.one_takes(spent, done) > self.plan.budget

    def line_of(self, done, runs, figure, left):
        number, name, policy, merges = runs[done]
        if len(self.plan.merges) > 1 and policy != BASELINE:
            policy += f", nomerges={merges.name}"
        return f"[{done + 1:{len(str(len(runs)))}}/{len(runs)}] round " \
            f"{number + 1} {name:<17} {policy:<10} {figure}{duration(left)} left"

    def begun(self, done, runs, spent):
        """On a terminal, the line of the run that begins takes the place of
        the last one's."""
        if self.verbose or not sys.stdout.isatty():
            return
        text = self.line_of(done, runs, "", self.one_takes(spent, done) * (
            len(runs) - done))
        say("\r\033[K" + text[:shutil.get_terminal_size().columns - 1], end="")
        self.open_line = True

    def ended(self, done, runs, record, spent):
        """Elsewhere a line for each round, and twice a minute; or for each
        run, if that is asked for."""
        last = done + 1 == len(runs) or runs[done + 1][0] != runs[done][0]
        if self.open_line or not (self.verbose or last
                                  or spent > self.told + TELL_SECONDS):
            return
        self.told = spent
        say(self.line_of(done, runs, f"{record['iops']:9.0f} IOPS, ", spent
                         / (done + 1) * (len(runs) - done - 1)))

    def end_line(self):
        if self.open_line:
            say()
        self.open_line = False

    def rounds(self, save):
        """Measure, as long as the budget lasts."""
        runs, some, begin = schedule(self.plan), [], time.monotonic()
        for done, (number, name, policy, merges) in enumerate(runs):
            self.runner.stop.check()
            if self.over(time.monotonic() - begin, done):
                self.stopped(f"the budget of {duration(self.plan.budget)} is "
                             "over", number)
                return
            self.begun(done, runs, time.monotonic() - begin)
            some.append(self.measure(policy, name, number, merges))
            if len(self.plan.merges) > 1:
                some[-1]["nomerges"] = merges.name
            self.ended(done, runs, some[-1], time.monotonic() - begin)
            if done + 1 == len(runs) or runs[done + 1][0] > number:
                self.whole += some
                some = []
                if done + 1 < len(runs):
                    self.end_line()
                    save(list(self.whole), self.warnings, number + 1)

    def stopped(self, why, rounds):
        """Say what ended it before all rounds were done."""
        if not rounds:
            raise EnvironmentProblem(f"{why} before the first round is")
        self.warn(f"{why}: {rounds} of {self.plan.repeat} rounds")

    def run(self, save):
        """The records of whole rounds; save(records, warnings, rounds) keeps
        them as soon as a round is done."""
        try:
            self.rounds(save)
        except Interrupted as problem:
            if not self.whole:
                raise Interrupted(f"{problem}; no result was written") \
                    from problem
            self.interrupted = str(problem)
            self.stopped(f"interrupted by {problem}",
                         self.whole[-1]["run"] + 1)
        finally:
            self.end_line()
        return self.whole


def gone(plan):
    """The disk whose end made something fail, or None.

    I/O fails a little before the disk's directory goes."""
    for _ in range(10):
        for disk in [plan.disk] + plan.legs:
            if not disk.there():
                return disk
        time.sleep(0.1)
    return None


def guarded(plan, args, journal, runner, save):
    """Settings, runs, and clear words if the disk is gone: (records, notes,
    the signal that ended it or None)."""
    try:
        bench = Bench(plan, journal, runner, args.verbose)
        prepare(plan, args, journal)
        bench.begin()
        return bench.run(save), bench.warnings, bench.interrupted
    except (EnvironmentProblem, OSError) as error:
        lost = gone(plan)
        if lost:
            raise EnvironmentProblem(
                f"the disk {lost.name} has vanished during the run, its "
                "settings with it") from error
        if isinstance(error, OSError):
            raise EnvironmentProblem(f"{error.filename or 'error'}: "
                                     f"{error.strerror}") from error
        raise


def put_back(journal):
    problems = journal.put_back()
    for text in problems + [text for text in journal.done if re.search(
            "is left at|has gone", text)]:
        say(f"plugbench: {text}", sys.stderr)
    if not problems:
        say("settings are as before")
    return not problems


def measure_all(plan, args, journal, save):
    """(records, warnings, the signal that ended it or None); whatever happens,
    settings are put back.  A signal that comes after a whole round loses
    nothing; save() is as Bench.run() has it."""
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(Stop())
        if args.write:
            held = open_exclusively(plan.disk.node)
            stack.callback(os.close, held)
        runner = stack.enter_context(Runner(stop, journal))
        try:
            found = guarded(plan, args, journal, runner, save)
        finally:
            restored = put_back(journal)
        if stop.number:
            found = (*found[:2], stop.name())
    if not restored:
        raise EnvironmentProblem("not all settings could be put back; "
                                 "plugbench --restore tries again")
    return found
