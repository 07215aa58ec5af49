# SPDX-License-Identifier: GPL-2.0
"""Show what plugs do with a disk's I/O, while it runs.

Counting is switched on for the disks in question, and put back as it was when
the last plugstat ends, also on Ctrl-C and SIGTERM.  The disk is not touched.
"""
import argparse
import os
import re
import signal
import sys
import time

from . import VERSION, prometheus, statswitch
from .disks import Disk
from .statfigures import delta, figures
from .statsource import (adaptive, choose, counted_disks, legs_of,
                         sample_all)
from .stattable import Json, Table, print_policies
from .system import EnvironmentProblem, Interrupted

LEGEND = """\
columns, per interval:
  req/s    requests begun per second, through a plug or not
  mrg%     bios that were merged, of those that were compared with a request
           that the plug held
  r/flush  requests that a plug sent out at once, mean
  why      what most flushes were for: count (the plug was full), size (a large
           request), policy, finish (the submission was over), schedule (the
           task went to sleep), other_queue (full because of another disk)
  tag%     tags that were taken in batches, of all tags
  t/batch  tags per batch, mean
  cmd/db   commands per doorbell as nvme counts them; with "~" requests per
           call of the driver, where there is no such count
  c/batch  requests completed at once, mean; "-": all came one by one
  group    with plug_policy on "adaptive": requests that plugs are to send out
           at a time, from the least to the most of the hardware queues that
           have had I/O; "!": not in force, the reason is told at the end
  infl     requests in flight at the end of the interval, those that a plug
           holds included
  hold_us  how long the oldest request of a plug was held, mean (with --hold)

with --policy and --top:
  set       the mode that is set
  in-force  the one in force, or with --top "yes", or why it is not: elevator
            (the disk has an I/O scheduler), blocking-driver, no-queue_rqs
            (the driver takes no groups)
  why       "as set", or as above

at the end, over the whole time, for each disk:
  tags      are 32 tags taken at once?  The size of a batch, the share of tags
            that come in batches, and why the others do not: budget (the plug
            has had its batch, or never asked for one), depth (the tag map's
            words are too small), shared (so is the tag set), fragmented,
            scheduler, reserved
  doorbell  do 32 commands go out per doorbell?
  clock     are timestamps saved?  The share of flushes whose requests shared
            one reading of the clock, and how many requests one reading served

and for each disk on "adaptive", a line per hardware queue that has had I/O:
  group    as above; "pinned" if it was set by hand
  state    what it does: measure, try (another group size), parked
           (nothing better was found)
  lookup   do all bios look for a merge, since some find one?
  IOPS, resp_us, io/flush  of the last sample, which is as old as the last few
           hundred or thousand I/Os: I/Os per second, mean response time with
           the hold, and I/Os that a plug sent out at once

Numbers are those of this machine and of what ran meanwhile.  Counting costs
about 1% of the CPU time per I/O.

Exit codes: 0 ok, 1 the environment does not allow it or the disks are gone,
2 usage.
"""
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def rows_of(old, new):
    """(disk, difference, figures, what "adaptive" does) of each."""
    diffs = {name: delta(old[name], new[name]) for name in new if name in old}
    return [(name, diff, figures(diff), adaptive(name))
            for name, diff in diffs.items()]


def watch(names, args, output):
    """Until the count is reached, a signal comes, or no disk is left."""
    first = last = sample_all(names)
    done = 0
    try:
        while names and (not args.count or done < args.count):
            time.sleep(args.interval)
            new = sample_all(names)
            output.interval(rows_of(last, new))
            last = {**last, **new}
            done += 1
    except (Interrupted, KeyboardInterrupt):
        last = {**last, **sample_all(names)}
    output.end(rows_of(first, last))
    if not names:
        raise EnvironmentProblem("no disk is left")


class Prometheus:
    """The counters of some disks, for Prometheus."""

    def __init__(self, names, path):
        self.names = names
        self.path = path

    def write(self):
        """To the file, or to stdout."""
        levels = {}
        try:
            counted = counted_disks()
            levels = {name: statswitch.level_of(name)
                      for name in self.names if name in counted}
        except EnvironmentProblem as problem:
            # the policies can be told all the same; in a file, a metric says
            # that nothing is counted, and a timer should not fill the log
            if not self.path:
                print("plugstat: without counters: %s" % problem,
                      file=sys.stderr)
        text = prometheus.exposition(self.names, levels)
        if self.path:
            prometheus.write_textfile(self.path, text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

    def interval(self, _rows):
        """A file is written anew; on stdout, a metric twice is not valid."""
        if self.path:
            self.write()

    def end(self, _rows):
        """What was not written yet."""
        if not self.path:
            self.write()


def positive(text):
    """An interval."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("not a time: " + text)
    return value


def count(text):
    """How many intervals."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("not a count: " + text)
    return value


def add_forms(parser):
    """What is printed, and where."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true",
                      help="a line of JSON per interval")
    form.add_argument("--top", action="store_true",
                      help="a screen that is drawn anew, the busiest disk "
                      "first; q ends it")
    form.add_argument("--prometheus", action="store_true",
                      help="the kernel's counters in its text format: at "
                      "once, or with an interval at the end")
    form.add_argument("--textfile", metavar="PATH",
                      help="the same into a file for node_exporter: once, or "
                      "with an interval again and again")
    parser.add_argument("--policy", action="store_true",
                        help="only say which mode is set and in force; needs "
                        "no debugfs")
    parser.add_argument("--counting", choices=("on", "off"),
                        help="leave counting on after our end, or stop that")


def parser_of():
    """Options, and words that are disks or numbers."""
    parser = argparse.ArgumentParser(
        prog="plugstat", description=__doc__, epilog=LEGEND,
        usage="plugstat [option ...] [DISK ...] [SEC [COUNT]]",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-V", "--version", action="version",
                        version="plugstat " + VERSION)
    parser.add_argument("-i", dest="interval", type=positive, metavar="SEC",
                        help="interval [1]")
    parser.add_argument("-c", dest="count", type=count, metavar="COUNT",
                        help="intervals [until Ctrl-C; 1 with --prometheus]")
    parser.add_argument("-t", dest="stamps", action="store_true",
                        help="print the time with each interval")
    parser.add_argument("-z", dest="skip_idle", action="store_true",
                        help="leave out disks without a request")
    parser.add_argument("-y", action="store_true",
                        help="no report of the time since boot, as iostat "
                        "has it; there never is one here")
    parser.add_argument("--hold", action="store_true",
                        help="also time the holds: one clock reading per "
                        "flush")
    add_forms(parser)
    parser.add_argument("disks", nargs="*", metavar="DISK",
                        help="as in /sys/block [all that can be counted]; "
                        "then SEC and COUNT, as for -i and -c")
    return parser


def take_numbers(parser, args):
    """SEC and COUNT from among the words, as iostat has it."""
    numbers = [word for word in args.disks
               if re.fullmatch(r"-?\d+\.?\d*", word)]
    args.disks = [word for word in args.disks if word not in numbers]
    if len(numbers) > 2:
        parser.error("an interval and a count are accepted, not: "
                     + " ".join(numbers))
    for name, kind, text in zip(("interval", "count"), (positive, count),
                                numbers):
        if getattr(args, name) is not None:
            parser.error("the %s is given twice" % name)
        try:
            setattr(args, name, kind(text))
        except (ValueError, argparse.ArgumentTypeError):
            parser.error("not an %s: %s" % (name, text) if name == "interval"
                         else "not a %s: %s" % (name, text))


def check(parser, args):
    """Refuse what does not go together; args.once is what needs no time."""
    exported = args.prometheus or bool(args.textfile)
    timed = bool(args.interval or args.count)
    args.once = exported and not timed
    if args.policy and (args.top or exported or args.counting):
        parser.error("--policy goes with --json only")
    if args.counting and not args.once and (args.json or args.top or timed):
        parser.error("--counting goes alone, or with --textfile or "
                     "--prometheus and no interval")
    if args.top and not sys.stdout.isatty():
        parser.error("--top needs a terminal; accepted elsewhere: --json")


def parse(argv):
    """Command line."""
    parser = parser_of()
    args = parser.parse_intermixed_args(argv)
    take_numbers(parser, args)
    args.disks = [name.replace("/dev/", "", 1) for name in args.disks]
    check(parser, args)
    args.interval = args.interval or 1.0
    if args.prometheus and not args.count:
        args.count = 1
    return args


def with_policy(wanted):
    """The disks that have a policy: those given or their legs, or all."""
    found = [leg for name in wanted for leg in legs_of(name)] or [
        name for name in prometheus.known_disks() if Disk(name).has_knob()]
    if not found:
        raise EnvironmentProblem("no disk has a plug_policy: the kernel has "
                                 "no CONFIG_BLK_PLUG_POLICY")
    return list(dict.fromkeys(found))


def at_once(args):
    """What needs no interval; whether that was all."""
    if args.policy:
        print_policies(with_policy(args.disks), args.json)
    if args.counting:
        try:
            statswitch.keep(choose(args.disks), int(args.counting == "on"))
        except EnvironmentProblem:
            # without debugfs there still are policies to tell
            if not args.once:
                raise
    if args.once:
        names = list(dict.fromkeys(
            leg for name in args.disks for leg in legs_of(name)))
        Prometheus(names or prometheus.known_disks(), args.textfile).write()
    return args.policy or args.counting or args.once


def screen_of():
    """The module of --top; its library is not everywhere."""
    try:
        from . import stattop  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise EnvironmentProblem("--top needs Python's curses: %s"
                                 % error) from error
    return stattop


def show(args, switches):
    """What goes on for a time."""
    names = statswitch.enable(choose(args.disks), 2 if args.hold else 1,
                              switches)
    if args.top:
        screen_of().run(names, args.interval, args.count)
    elif args.prometheus or args.textfile:
        watch(names, args, Prometheus(names, args.textfile))
    elif args.json:
        watch(names, args, Json(args.skip_idle))
    else:
        watch(names, args, Table(args.hold, args.stamps, args.skip_idle))


def stop(_signal, _frame):
    """SIGTERM and its like end the watch as Ctrl-C does."""
    raise Interrupted


def attempt(args, switches):
    """Returns the exit code."""
    try:
        if not at_once(args):
            show(args, switches)
    except (Interrupted, KeyboardInterrupt):
        pass
    except BrokenPipeError:
        # whoever reads has seen enough; Python would complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except EnvironmentProblem as problem:
        print("plugstat: %s" % problem, file=sys.stderr)
        return 1
    return 0


def main(argv=None):
    """Returns the exit code."""
    args = parse(argv)
    switches = statswitch.Switches()
    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        return attempt(args, switches)
    finally:
        for number in (signal.SIGINT,) + SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        switches.leave()
