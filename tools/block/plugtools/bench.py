# SPDX-License-Identifier: GPL-2.0
"""plugbench's runs: settings, fio, counters, records."""
import contextlib
import os
import re
import shlex
import sys
import time

from . import fio
from .benchplan import (BASELINE, COUNT_SECONDS, WARM_SECONDS, run_seconds,
                        schedule)
from .children import Runner, Stop
from .counters import (TIMED_EVENTS, UNPLUG_EVENT, Doorbells, Perf, group,
                       fallback, learnt)
from .disks import open_exclusively
from .system import (EnvironmentProblem, active, duration, listing, per, read,
                     say)

GRACE_SECONDS = 60              # after which an fio that should end is killed


# --- settings --------------------------------------------------------------

def set_scheduler(leg, journal):
    """No scheduler; what the switch resets is remembered."""
    path = leg.path("queue/scheduler")
    if active(read(path, "none")) in ("none", ""):
        return
    dependent = [leg.path("queue/iosched/" + name)
                 for name in listing(leg.path("queue/iosched"))]
    for name in ("nr_requests", "async_depth", "wbt_lat_usec"):
        dependent.append(leg.path("queue/" + name))
    for one in dependent:
        with contextlib.suppress(OSError):
            journal.remember(one)
    journal.set(path, "none")


def prepare(plan, args, journal):
    """The settings that hold for all runs."""
    for leg in plan.legs:
        journal.set(leg.path("queue/nomerges"), "0")
        journal.set(leg.path("queue/iostats"), "1")
        if not args.keep_scheduler:
            set_scheduler(leg, journal)


def set_policy(leg, policy, journal):
    """A policy of the file's, or the baseline.

    By way of "always": "adaptive" forgets what it learnt of another workload.
    """
    baseline = policy == BASELINE
    journal.set(leg.path("queue/nomerges"), "2" if baseline else "0")
    if leg.has_knob():
        journal.set(leg.path("queue/plug_policy"), "always")
        if not baseline and policy != "always":
            journal.set(leg.path("queue/plug_policy"), policy)


# --- runs ------------------------------------------------------------------

class Bench:
    """Runs the plan; owns nothing that outlives it but settings."""

    def __init__(self, plan, journal, runner):
        self.plan = plan
        self.journal = journal
        self.runner = runner
        self.perf = Perf(runner.directory)
        self.doorbells = Doorbells(plan.legs)
        self.counting = self.doorbells.there()
        self.warnings = []

    def warn(self, text):
        """Say it, once, and have it in the result."""
        if text not in self.warnings:
            self.warnings.append(text)
            say("  warn:  " + text)

    def begin(self):
        """Find out what can be counted."""
        say("  " + self.perf.probe(
            lambda command: self.runner.run(command, GRACE_SECONDS)))
        if not self.counting:
            say("  doorbells are not counted by this kernel or disk")
            return
        say("  the NVMe driver counts doorbells")
        self.journal.note(switch=self.doorbells.switch.name)
        if self.doorbells.switch.value():
            self.warn("doorbells are being counted for somebody else, which "
                      "costs time in all runs")

    def countable(self):
        """Whether a run for counting is worth its time."""
        return self.counting or UNPLUG_EVENT in self.perf.events

    def fio(self, name, seed, seconds, events):
        """One run of fio: (job, perf's counts)."""
        command = fio.fio_command(self.plan, name, seed, seconds)
        code, out, errors = self.runner.run(self.perf.wrap(command, events),
                                            seconds + GRACE_SECONDS)
        job = fio.fio_job(out)
        if code or not job:
            raise EnvironmentProblem(
                "fio failed with exit code %d on %s: %s\n  the command was: "
                "%s" % (code, name, (errors or out).strip()[-600:]
                        or "it said nothing", shlex.join(command)))
        return job, self.perf.counts()

    def count(self, name, seed):
        """A short run of its own, since counting costs time."""
        found = {"doorbells_per_io": None, "unplugs_per_io": None,
                 "ios_per_unplug": None}
        if not self.countable():
            return found
        with self.doorbells.counted(self.counting) as rung:
            job, counts = self.fio(name, seed, COUNT_SECONDS, [UNPLUG_EVENT])
        ios = job["mixed"]["total_ios"]
        found["doorbells_per_io"] = per(rung(), ios)
        unplugs = counts.get(UNPLUG_EVENT)
        found["unplugs_per_io"] = per(unplugs, ios)
        found["ios_per_unplug"] = per(ios, unplugs)
        return found

    def check_effect(self, policy):
        """Say that a policy is not in force."""
        for leg in self.plan.legs:
            why = fallback(leg)
            if why:
                self.warn("%s does as \"always\" here: %s" % (policy, why))

    def completed(self):
        """Requests that the disk has completed so far."""
        return sum(leg.completed() for leg in self.plan.legs)

    def measure(self, policy, name, number):
        """One record, without what is the same in all."""
        legs, seed = self.plan.legs, number + 1
        for leg in legs:
            set_policy(leg, policy, self.journal)
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

    def over(self, spent, done):
        """Whether the next run would exceed the budget."""
        one = spent / done if done else run_seconds(self.plan.runtime,
                                                    self.countable())
        return self.plan.budget and spent + one > self.plan.budget

    def cut(self, records, number):
        """The records of the rounds that are whole."""
        if not number:
            raise EnvironmentProblem(
                "the budget of %s is over before the first round is"
                % duration(self.plan.budget))
        self.warn("the budget of %s is over: %d of %d rounds" % (
            duration(self.plan.budget), number, self.plan.repeat))
        return [one for one in records if one["run"] < number]

    def run(self):
        """All records."""
        runs, records = schedule(self.plan), []
        begin = time.monotonic()
        for done, (number, name, policy) in enumerate(runs):
            self.runner.stop.check()
            if self.over(time.monotonic() - begin, done):
                return self.cut(records, number)
            record = self.measure(policy, name, number)
            records.append(record)
            spent = time.monotonic() - begin
            left = spent / (done + 1) * (len(runs) - done - 1)
            say("[%*d/%d] round %d %-17s %-10s %9.0f IOPS, %s left" % (
                len(str(len(runs))), done + 1, len(runs), number + 1, name,
                policy, record["iops"], duration(left)))
        return records


def gone(plan):
    """The disk whose end made something fail, or None.

    I/O fails a little before the disk's directory goes.
    """
    for _ in range(10):
        for disk in [plan.disk] + plan.legs:
            if not disk.there():
                return disk
        time.sleep(0.1)
    return None


def guarded(plan, args, journal, runner):
    """Settings, runs, and clear words if the disk is gone: (records, notes).
    """
    try:
        bench = Bench(plan, journal, runner)
        prepare(plan, args, journal)
        bench.begin()
        return bench.run(), bench.warnings
    except (EnvironmentProblem, OSError) as error:
        lost = gone(plan)
        if lost:
            raise EnvironmentProblem(
                "the disk %s has vanished during the run, its settings with "
                "it" % lost.name) from error
        if isinstance(error, OSError):
            raise EnvironmentProblem(
                "%s: %s" % (error.filename or "error",
                            error.strerror)) from error
        raise


def put_back(journal):
    """Restore, and say so; True if all is as it was."""
    changed = journal.changed()
    problems = journal.put_back()
    for text in problems:
        say("plugbench: " + text, sys.stderr)
    for text in journal.done:
        if re.search("is left at|has gone", text):
            say("plugbench: " + text, sys.stderr)
    if changed and not problems:
        say("settings are as before")
    return not problems


def measure_all(plan, args, journal):
    """Records and warnings; whatever happens, settings are put back."""
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(Stop())
        if args.write:
            held = open_exclusively(plan.disk.node)
            stack.callback(os.close, held)
        runner = stack.enter_context(Runner(stop, journal))
        try:
            found = guarded(plan, args, journal, runner)
        finally:
            restored = put_back(journal)
        stop.check()
    if not restored:
        raise EnvironmentProblem("not all settings could be put back; "
                                 "plugbench --restore tries again")
    return found
