# SPDX-License-Identifier: GPL-2.0
"""Compare the plug policies of one disk: I/Os per second, latency, CPU cost.

The disk is only read, unless --write says otherwise.  Every setting that is
changed is put back, also if plugbench is killed.
"""
import argparse
import shlex
import sys

from .. import VERSION
from ..core.disks import all_disks, find_disks, node_name, with_knob
from ..core.journal import Journal, locked, recover
from ..core.system import (EnvironmentProblem, UsageProblem, active,
                           interruptible, matching, outcome, printable, say,
                           seconds)
from ..report import results
from ..report.records import POLICIES
from . import host
from .checks import run_checks, show, texts
from .counters import can_count
from .fio import WORKLOADS, fio_command
from .measure import measure_all
from .plan import WARM_SECONDS, choose_workloads, make_plan, print_plan

EPILOG = """\
workloads ("by 32": 32 per submission, and waits for 32; io_uring, or libaio
where the name says so; "polled": if the disk has poll queues):
%s
policies: those that /sys/block/<disk>/queue/plug_policy offers, and nomerges2,
which is "always" with nomerges set to 2.

%s
"""


# --- the disk --------------------------------------------------------------

def require_queue(disk):
    """What to measure: of a kernel without plug_policy, for --compare, what it
    does with the disk; but a stack is all of one kind."""
    if not disk.node:
        above = next((node_name(one.name) for one in all_disks()
                      if one.name != disk.name and disk.name in [
                          leg.name for leg in one.legs()]), None)
        raise UsageProblem(f"{disk.name} has no device node; accepted: " + (
            f"the disk above it, {above}" if above
            else "a whole disk that has one"))
    legs = disk.legs()
    lacking = [leg.name for leg in legs if not leg.has_knob()]
    if not legs:
        raise EnvironmentProblem(f"{disk.name} is bio-based, and no disk below "
                                 f"it is to be seen ({with_knob()})")
    if lacking and len(lacking) < len(legs):
        raise EnvironmentProblem(
            f"{', '.join(lacking)} below {disk.name} has no plug_policy, and "
            "other disks have; accepted: all or none")


def identify(disk):
    """Model and firmware, as a terminal may show them."""
    firmware = disk.get("device/firmware_rev") or disk.get("device/rev")
    return printable({"model": disk.get("device/model") or None,
                      "firmware": firmware or None})


def warn_write(plan, identity):
    parts = ", ".join(plan.disk.partitions())
    say(f"--write OVERWRITES random blocks all over {plan.disk.node} "
        f"({identity['model'] or 'model unknown'}, {plan.disk.size()}, "
        f"{f'partitions {parts}' if parts else 'no partitions'}): no file "
        "system,\npartition table or other data on it will survive.")


def confirm_write(plan):
    if not sys.stdin.isatty():
        raise UsageProblem("--write needs --yes where nobody can be asked; "
                           "nothing was written")
    name = plan.disk.name
    say(f"Type the disk's name ({name}) to go on: ", end="")
    if sys.stdin.readline().strip() != name:
        raise UsageProblem("not confirmed; nothing was written")


# --- command line ----------------------------------------------------------

FROM_1 = matching("0*[1-9][0-9]{0,5}", "a whole number from 1 to 999999")
CPU = matching("[0-9]{1,6}", "the number of a CPU, as 2")
TIME = matching("0*[1-9][0-9]{0,5}[smh]?",
                "seconds, or a number with s, m or h, as 5m", seconds)
SHARE = matching(r"0\.(?!0+$)[0-9]{1,6}|1(\.0{1,6})?",
                 "a ratio above 0 and up to 1, as 0.97", float)
# a pipe cannot be set aside, nor read twice
FILE = matching("(?!-$).+", "the name of a file, as /dev/stdin", str)
JOBFILE = matching(".+", "the name of a file, or - for the standard input",
                   str)


def add_limits(add):
    add("--iops", metavar="N", type=FROM_1, help="at most N I/Os per second")
    add("--budget", metavar="TIME", type=TIME, help="at most that long, "
        "as 90s, 5m or 1h: fewer and shorter runs; of several disks each has "
        "its share")
    add("--force", action="store_true", help="measure although the disk is "
        "mounted or in use; it is still only read")
    add("--write", action="store_true", help="also run what DESTROYS the "
        "disk's data; refused if it is mounted or in use, even with --force")
    add("--yes", action="store_true", help="with --write: do not ask")
    add("--restore", action="store_true", help="only put back what a killed "
        "plugbench or plugroll left; each start does so by itself")


def add_output_options(add):
    add("--json", metavar="FILE", type=FILE,
        help="where the records go [./plugbench-<disk>.json]")
    add("--verbose", "-v", action="store_true", help="all checks, a line for "
        "each run, and tables of all figures; else plan and verdict")
    add("--markdown", action="store_true", help="the verdict as Markdown, for "
        "a mail; with --show, nothing else")
    add("--html", metavar="FILE", type=FILE, help="write a report, one page")
    add("--compare", metavar="OLD.json", type=FILE, help="compare with "
        "an earlier result, after measuring, or NEW.json with it")
    add("--fail-below", metavar="RATIO", type=SHARE, help="with --compare: "
        "end with status 3 if anything is surely below that, as 0.97")
    add("--show", metavar="FILE.json", type=FILE,
        help="print an earlier result again")
    add("--commit", metavar="ID", help="what the kernel was built from, for "
        "the records [uname -r and -v]")
    add("--dry-run", action="store_true",
        help="print checks, plan and duration; change and measure nothing")
    add("--showcmd", action="store_true",
        help="print the command line of fio for each workload, and end")
    add("--version", action="version", version="plugbench " + VERSION)


def make_parser():
    known = "\n".join(
        f"  {name:<18} {one.text}{', 30% writes: --write' * one.write}"
        for name, one in WORKLOADS.items())
    parser = argparse.ArgumentParser(
        prog="plugbench", description=results.CLAIM + "\n\n" + results.NOTE,
        epilog=EPILOG % (known, results.STATUSES),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("devices", metavar="/dev/DISK", nargs="*", default=[], help="a whole "
        "disk, as /dev/nvme0n1; NVMe multipath, dm and md are set on the disks below; "
        "several are measured one after the other, each to its own file; with "
        "--compare also NEW.json")
    add("--policies", metavar="A,B", help="compare these "
        "[all on offer, and nomerges2]")
    add("--workloads", metavar="A,B", help="run these [all that "
        "only read]")
    add("--jobfile", metavar="FILE.fio", type=JOBFILE, help="instead of "
        "these: the jobs of a file for fio, or of -, the standard input, at "
        "once; its filename, times and seeds are not used")
    add("--section", metavar="A,B", help="of --jobfile: these jobs only, each "
        "as a workload of its own")
    add("--runtime", metavar="TIME", type=TIME, default=5,
        help="of a run, as 5, 30s or 1m [5]")
    add("--repeat", metavar="N", type=FROM_1, default=5,
        help="rounds; the order rotates from one to the next [5]")
    add("--cpu", metavar="N", type=CPU, help="CPU that fio is bound "
        "to [near the disk, not CPU 0's core; of --jobfile: as it says]")
    add("--keep-scheduler", action="store_true", help="leave the I/O "
        "scheduler, with which every policy does as \"always\"")
    add_limits(add)
    add_output_options(add)
    return parser


# All that is heeded where nothing is measured.
HEEDED = {"restore": ["restore"],
          "show": ["show", "verbose", "markdown", "html"],
          "files": ["devices", "compare", "json", "fail_below"]}


def mode_of(args, parser):
    """"restore", "show", "files" or "measure"; what does not fit together, or
    would be ignored, is refused."""
    for wrong, text in (
            (args.yes and not args.write, "--yes needs --write"),
            (args.fail_below and not args.compare,
             "--fail-below needs --compare"),
            (args.jobfile and args.workloads is not None,
             "give either --jobfile or --workloads"),
            (args.section is not None and not args.jobfile,
             "--section needs --jobfile"),
            (len(args.devices) > 1 and (args.json or args.html or args.compare
                                        or args.write),
             "--json, --html, --compare and --write are for one disk; of "
             "several, each has its own plugbench-DISK.json")):
        if wrong:
            parser.error(text)
    alone = [name for name in ("restore", "show") if getattr(args, name)]
    if len(alone) + bool(args.devices) != 1:
        parser.error("give /dev/DISK, or, by themselves, --restore, or --show")
    if args.compare and args.devices and args.devices[0].endswith(".json"):
        alone = ["files"]
    known = HEEDED[alone[0]] if alone else vars(args)
    for name, value in vars(args).items():
        if name not in known and value != parser.get_default(name):
            heeded = ", ".join(f"--{one}" for one in known if one != "devices")
            parser.error(f"--{name} does nothing here; accepted: only {heeded}"
                         .replace("_", "-"))
    return alone[0] if alone else "measure"


def arguments(words):
    parser = make_parser()
    args = parser.parse_intermixed_args(words)
    args.mode = mode_of(args, parser)
    args.words = list(words)
    return args


# --- the work --------------------------------------------------------------

def restore():
    told = []
    good = recover(lambda text: (say(text), told.append(text)))
    if not told:
        say("nothing to put back")
    return 0 if good else 1


def work(args):
    if args.mode == "restore":
        return restore()
    if args.mode == "show":
        return results.show(args.show, args) or 0
    if args.mode == "files":
        return results.compare(args.compare, args.devices[0], args.fail_below,
                               args.json)
    args.loads = choose_workloads(args)     # once: it may come from a pipe
    disks = find_disks(args.devices)
    if args.budget:
        args.budget = args.budget // len(disks) or 1
    plans = []
    for disk in disks:          # refused before anything is changed
        require_queue(disk)
        plans.append(make_plan(args, disk, can_count(disk)))
        if len(disks) > 1 and not args.showcmd:
            refuse(run_checks(plans[-1], args), f"{disk.name}: ")
    return work_on(plans[0], args) if len(plans) == 1 else in_turn(plans, args)


def in_turn(plans, args):
    """The first exit status that is not 0.  A disk that fails does not stop
    the next one, but a signal does."""
    status = 0
    for plan in plans:
        code, why = outcome(work_on, plan, args)
        if why:
            say(f"plugbench: {plan.disk.name}: {why}", sys.stderr)
        status = status or code
        if code == 130:
            break
    return status


def work_on(plan, args):
    """All that is to be done with a disk: the exit status.  What is measured is
    planned anew, once what a killed one left is put back."""
    disk = plan.disk
    if args.compare:
        results.check_loads(results.old_records(args.compare)[1],
                            facts_of(plan, args))
    if args.showcmd:
        for name in plan.workloads:
            say(shlex.join(fio_command(plan, name, 1, plan.runtime)))
        return 0
    if args.dry_run:
        return measured(args, disk, None)
    recover(say)
    names = [disk.name] + [leg.name for leg in disk.legs()]
    with locked(names, "plugbench"):
        return measured(args, disk, Journal(disk.name, names, "plugbench"))


def conditions(plan, args):
    """What was set for the runs, and is not so on this host: a verdict holds
    with that only."""
    found = []
    for leg in plan.legs:
        scheduler = active(leg.get("queue/scheduler", "none"))
        merges = leg.get("queue/nomerges", "0")
        if scheduler not in ("none", "") and not args.keep_scheduler:
            found.append(f"scheduler none, and this host has {scheduler}, "
                         'with which every policy does as "always"')
        if merges != "0" and len(plan.merges) == 1:
            found.append(f"nomerges=0, and this host has {merges}")
    return list(dict.fromkeys(found))


def refuse(checks, which=""):
    """If one of them forbids to go on; which: the disk, if there are more."""
    errors = "; ".join(texts(checks, "error"))
    if errors:
        raise EnvironmentProblem(f"{which}{errors}; nothing was changed")


def checked(plan, args):
    """Checks and plan, printed; warnings, if nothing forbids to go on."""
    results.check_paths((plan.json, args.html), (args.compare, *(
        path for one in args.loads.values() for path in one.files)))
    checks = run_checks(plan, args)
    unknown = ", ".join(sorted(set(plan.policies) - set(POLICIES)))
    if unknown:
        checks.append(("error", f"no policy {unknown} is known here; leave it "
                       "out with --policies"))
    show(checks, args.verbose)
    print_plan(plan, args)
    refuse(checks)
    return texts(checks, "warn")


def facts_of(plan, args):
    """About the runs."""
    return {"cpu": plan.cpu if plan.bound else None, "polled": plan.polled,
            "runtime": plan.runtime, "repeat": plan.repeat,
            "warm_up": WARM_SECONDS, "iops_limit": plan.iops,
            "legs": [leg.name for leg in plan.legs],
            "holds": conditions(plan, args),
            "scheduler": ", ".join(sorted({
                active(leg.get("queue/scheduler", "none"))
                if args.keep_scheduler else "none" for leg in plan.legs})),
            "fio": {name: shlex.join(fio_command(plan, name, 1, plan.runtime))
                    for name in plan.workloads}}


class Result:
    """The file of the result, which grows by a round at a time."""

    def __init__(self, path, finish, meta):
        self.path = path
        self.finish = finish    # makes records of what was measured
        self.meta = meta
        self.rounds = 0

    def keep_earlier(self):
        """What --json names may be there already."""
        if not self.rounds:
            results.keep_earlier(self.path)

    def save(self, records, warnings, rounds):
        """The rounds that are whole, while more are to come."""
        self.keep_earlier()
        wanted = self.meta["repeat"]
        results.save(self.path, self.finish(records), dict(
            self.meta, warnings=[
                *warnings, f"not finished: {rounds} of {wanted} rounds"]))
        self.rounds = rounds

    def kept(self):
        return f"{self.rounds} whole round" \
            f"{'s are' if self.rounds > 1 else ' is'} in {self.path}"


def measured(args, disk, journal):
    plan = make_plan(args, disk, can_count(disk))
    if args.verbose:
        say(results.CLAIM)
    identity = identify(disk)
    say(f"disk: {disk.what()}, {identity['model'] or 'model unknown'}, firmware"
        f" {identity['firmware'] or 'unknown'}, {disk.size()}")
    warnings = checked(plan, args)
    if args.write:
        warn_write(plan, identity)
    if args.dry_run:
        say("dry run: nothing was changed or measured")
        return 0
    if args.write and not args.yes:
        confirm_write(plan)
    meta = results.about(disk, identity, args.words,
                         host=host.facts(plan.legs, plan.cpu),
                         **facts_of(plan, args))
    patched = plan.legs[0].has_knob()
    result = Result(plan.json, lambda records: results.complete(
        records, identity, identity["model"] or disk.name, patched,
        args.commit), meta)
    return finished(args, result, measure(plan, args, journal, result),
                    warnings)


def measure(plan, args, journal, result):
    try:
        return measure_all(plan, args, journal, result.save)
    except EnvironmentProblem as problem:
        if not result.rounds:
            raise
        raise EnvironmentProblem(f"{problem}; {result.kept()}") from problem


def finished(args, result, found, warnings):
    records, more, interrupted = found
    result.keep_earlier()
    result.rounds = records[-1]["run"] + 1
    result.meta["warnings"] = warnings + more
    results.publish(result.finish(records), result.meta, result.path, args)
    if interrupted:
        say(f"plugbench: interrupted by {interrupted}; {result.kept()}",
            sys.stderr)
        return 130
    if args.compare:
        return results.compare(args.compare, result.path, args.fail_below)
    return 0


def main(words=None):
    args = arguments(sys.argv[1:] if words is None else words)
    interruptible()             # before and after the runs
    code, why = outcome(work, args)
    if why:
        say(f"plugbench: {why}", sys.stderr)
    return code
