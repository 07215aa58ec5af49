# SPDX-License-Identifier: GPL-2.0
"""Show what plugs do with a disk's I/O, while it runs.

Counting is switched on for the disks in question, and put back as it was when
the last plugstat ends, also on Ctrl-C and SIGTERM.  The disk is not touched.
"""
import argparse
import re
import signal
import sys
import time

from .. import VERSION
from ..core.disks import NO_KNOB, Disk, disks, find_disks, without_knob
from ..core.system import (SIGNALS, EnvironmentProblem, Interrupted,
                           UsageProblem, interruptible, matching)
from ..report.records import write_file
from . import prometheus, switch
from .figures import delta, figures
from .output import Json, Table, check_policies, print_policies
from .source import (adaptive, choose, counted_disks, each, legs_of,
                     sample_all)

LEGEND = """\
columns, per interval:
  req/s    requests completed per second, by the disk's I/O statistics
  mrg%     bios that were merged, of all, by the same
  r/flush  requests that a plug sent out at once, mean
  tag%     tags that were taken in batches, of all tags
  t/batch  tags per batch, mean
  cmd/db   requests completed per doorbell that nvme wrote
  group    with plug_policy on "adaptive": requests that plugs are to send out
           at a time, from the least to the most of the hardware queues that
           have had I/O; "!": not in force, the reason is told at the end

with --policy:
  set       the mode that is set
  in-force  the one in force
  why       "as set", or why another one is: elevator (the disk has an I/O
            scheduler), blocking-driver, no-queue_rqs (the driver takes no
            groups)

at the end, over the whole time, for each disk:
  tags      are 32 tags taken at once?  The size of a batch, the share of tags
            that come in batches, and how many batches were refused: shared
            (the disk uses its share of a tag set), depth (the tag map is too
            small), busy (no tag is free, or a task waits for one), scheduler
  doorbell  do 32 commands go out per doorbell?

and for each disk on "adaptive", a line per hardware queue that has had I/O:
  group    as above; "pinned" if it was set by hand
  best     the size that has proved best so far
  state    what it does: try 8 (a size, against the best), parked (no other is
           to be tried for now)
  req/s, r/flush, in-flight  of the last sample, which is as old as the last
           few hundred or thousand requests: requests per second, how many a
           plug sent out at once, and what was in flight at its end

Numbers are those of this machine and of what ran meanwhile.  Counting costs
about 1% of the CPU time per I/O.

Exit codes: 0 ok, 1 the environment does not allow it or the disks are gone,
2 usage, 3 a mode is not in force (--check), 130 interrupted; what goes on
until then ends with 0.
"""


def rows_of(old, new):
    """(disk, difference, figures, what "adaptive" does) of each that has gone
    on counting."""
    diffs = {name: delta(old[name], new[name]) for name in new if name in old}
    return [(name, diff, figures(diff), adaptive(name))
            for name, diff in diffs.items() if diff]


def watch(names, args, output):
    """Until the count is reached, a signal comes, or no disk is left."""
    first = last = sample_all(names)
    done = 0
    try:
        while names and (not args.count or done < args.count):
            time.sleep(args.interval)
            new = sample_all(names)
            rows = rows_of(last, new)
            output.interval(rows)
            began_anew = new.keys() - {row[0] for row in rows}
            first.update({name: new[name] for name in began_anew})
            last = {**last, **new}
            done += 1
    except Interrupted:
        last = {**last, **sample_all(names)}
    output.end(rows_of(first, last))
    if not names:
        raise EnvironmentProblem("no disk is left")


def export(wanted, path):
    """The counters of some disks or of all, for Prometheus: to a file, or to
    stdout."""
    names, counted = legs_of(wanted) or [
        name for name in disks() if prometheus.is_known(name)], set()
    if not any(map(prometheus.is_known, names)):
        raise without_knob(names) if names else EnvironmentProblem(NO_KNOB)
    try:
        known = set(counted_disks())
        counted = {name for name in names
                   if name in known and switch.counted(name)}
    except EnvironmentProblem as problem:
        # the policies can be told all the same; in a file, a metric says that
        # nothing is counted, and a timer should not fill the log
        if not path:
            print(f"plugstat: without counters: {problem}", file=sys.stderr)
    text = prometheus.exposition(names, counted)
    if path:
        write_file(path, text.encode(), mode=0o644, sync=False)
    else:
        sys.stdout.write(text)


SECONDS = matching(r"[0-9]{1,6}(\.[0-9]*)?|\.[0-9]+", "seconds, more than 0",
                   float, 1e-6)
COUNT = matching("0*[1-9][0-9]*", "a whole number from 1")
FILE = matching(".+", "the name of a file", str)


def add_forms(parser):
    add = parser.add_mutually_exclusive_group().add_argument
    add("--json", action="store_true", help="a line of JSON per interval")
    add("--prometheus", action="store_true", help="the kernel's counters in "
        "the text format of Prometheus")
    add("--textfile", metavar="PATH", type=FILE, help="the same into a "
        "file, in place of what it held, for node_exporter")
    add = parser.add_argument
    add("--policy", action="store_true", help="only say which mode is set, "
        "which is in force, and why another one is; needs no debugfs")
    add("--check", action="store_true", help="with --policy: exit with 3 if a "
        "mode is not in force, and say which")
    add("--counting", choices=("on", "off"), help="leave counting on after the "
        "end, or stop that; --prometheus and --textfile do not count by "
        "themselves")


def make_parser():
    parser = argparse.ArgumentParser(
        prog="plugstat", description=__doc__, epilog=LEGEND,
        usage="plugstat [option ...] [DISK ...] [SEC [COUNT]]",
        add_help=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--help", action="help", help="print options and columns")
    add("-V", "--version", action="version", version="plugstat " + VERSION)
    add("-i", dest="interval", type=SECONDS, metavar="SEC",
        help="interval [1]")
    add("-c", dest="count", type=COUNT, metavar="COUNT",
        help="intervals [until Ctrl-C]")
    add("-t", dest="stamps", action="store_true",
        help="print the time with each interval")
    add("-z", dest="skip_idle", action="store_true",
        help="leave out disks without a request")
    add_forms(parser)
    add("disks", nargs="*", metavar="DISK", help="as in /sys/block [all that "
        "can be counted]; then SEC and COUNT, as for -i and -c")
    return parser


def take_numbers(parser, args):
    """SEC and COUNT from among the words, as iostat has it."""
    numbers = [word for word in args.disks
               if re.fullmatch(r"-?\d+\.?\d*", word)]
    args.disks = [word for word in args.disks if word not in numbers]
    if len(numbers) > 2:
        parser.error("an interval and a count are accepted, not: "
                     + " ".join(numbers))
    for name, kind, text in zip(("interval", "count"), (SECONDS, COUNT),
                                numbers):
        if getattr(args, name) is not None:
            parser.error(f"the {name} is given twice")
        try:
            setattr(args, name, kind(text))
        except argparse.ArgumentTypeError as error:
            parser.error(f"{name}: {error}")


def check(parser, args):
    """Refuse what does not go together."""
    args.exported = exported = args.prometheus or bool(args.textfile)
    timed = bool(args.interval or args.count)
    if args.policy and (exported or args.counting):
        parser.error("--policy goes with --json and --check only")
    if args.check and not args.policy:
        parser.error("--check goes with --policy")
    if exported and timed:
        parser.error("--textfile and --prometheus take no interval; "
                     "plugstat-textfile.timer repeats the former")
    if args.counting and (args.json or timed):
        parser.error("--counting goes alone, or with --textfile or "
                     "--prometheus")


def parse(argv):
    parser = make_parser()
    args = parser.parse_intermixed_args(argv)
    take_numbers(parser, args)
    try:
        args.disks = [disk.name for disk in find_disks(args.disks)]
    except UsageProblem as problem:
        parser.error(str(problem))
    check(parser, args)
    args.interval = args.interval or 1.0
    return args


def with_policy(wanted):
    """The disks that have a policy: those given or their legs, or all."""
    names = legs_of(wanted) or disks()
    found = [name for name in names if Disk(name).has_knob()]
    bare = [name for name in names if wanted and not Disk(name).has_knob()]
    if bare or not found:
        raise without_knob(bare) if bare else EnvironmentProblem(NO_KNOB)
    return found


def at_once(args):
    """What needs no interval; whether that was all."""
    if args.policy:
        print_policies(with_policy(args.disks), args)
    if args.counting:
        try:
            switch.keep(choose(args.disks), args.counting == "on")
        except EnvironmentProblem:
            # without debugfs there still are policies to tell
            if not args.exported:
                raise
    if args.exported:
        export(args.disks, args.textfile)
    return args.policy or args.counting or args.exported


def attempt(args, switches):
    try:
        if not at_once(args):
            watch(list(each(choose(args.disks), switches.enter)), args,
                  Json(args) if args.json else Table(args))
        if args.check and check_policies(with_policy(args.disks)):
            return 3
    except Interrupted:
        # so a watch ends; what is done at once has not been done
        return 130 if args.policy or args.counting or args.exported else 0
    except (EnvironmentProblem, UsageProblem) as problem:
        print(f"plugstat: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, UsageProblem) else 1
    return 0


def main(argv=None):
    args = parse(argv)
    interruptible()
    with switch.Switches() as switches:
        try:
            return attempt(args, switches)
        finally:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
