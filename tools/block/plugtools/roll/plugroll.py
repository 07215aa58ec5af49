# SPDX-License-Identifier: GPL-2.0
"""Roll a plug policy out on this host: look, try, keep, undo.

"try" compares a mode with the one that is set, under the live load, and then
puts the old one back.  Every decision goes to the system's log.
"""
import argparse
import json
import re
import sys

from .. import VERSION
from ..core.disks import all_disks, find_disks, with_knob, without_knob
from ..core.system import (EnvironmentProblem, interruptible, matching,
                           outcome, say, seconds)
from ..schemas import MODES
from .disklist import (NOMERGES, check_list, keeps_nomerges, listing_of,
                       note_try, print_list)
from .guard import parse_guard
from .keep import apply, can_keep, keep, undo
from .rules import ALL_NVME
from .trial import (ALREADY, HELD, NO_GAIN, PROGRAM, TRIPPED, log,
                    print_result, try_mode)

FORMAT = 2                      # of what --json prints
DEFAULT_GUARD = "p99=10%,iops=-2%"
TIME = matching("[0-9]+[smh]?", "12s to 24h, as 90s, 10m, 2h", seconds, 12,
                24 * 3600)
BLOCK = matching(r"[0-9]+(\.[0-9]+)?", "0.5 to 600 (seconds)", float, 0.5, 600)
INTERRUPTED = {"try": "; modes are as before",
               "undo": "; the next undo does the rest"}
EPILOG = """\
Exit codes: 0 done, and a try's guard held, or its mode is set already; 1 the
environment does not allow it; 2 usage; 3 the guard tripped, or with --check a
mode is not in force; 4 not enough I/O or evidence to tell; 5 the guard held,
but the gain that is required is not there; 130 interrupted. Whatever it is, a
try without --keep puts back the mode that was set before.
"""

TRY = """\
Compare a mode with the one that is set, under the live load.

Blocks of both modes take turns, and neighbours are compared in pairs. The guard
trips if the change is beyond a limit and, with 99% confidence, no chance, or if
next to nothing is done with MODE. It has held if, at the end, the 95% interval
of each change is within its limit.

Without --keep, the mode that was set before comes back at the end, if the guard
trips, on an error, on a signal, and if plugroll is killed. A disk that refuses
it is asked for 10 s; then the next plugroll does it, or "plugroll undo".

  iops  reads and writes per second, counted before they merge
  mean  response time of requests, the hold in the plug included, of diskstats
  p99   the same of one request in a hundred; from a sample that trace events
        follow, since diskstats has sums only
"""


def add_disks(verb):
    verb.add_argument("disks", nargs="*", metavar="DISK", help="such as "
                      "nvme0n1; for a multipath head, dm or md, the disks "
                      "below it are set")


def add_mode(verb):
    """And the disks that it is for."""
    verb.add_argument("mode", choices=MODES)
    add_disks(verb)
    verb.add_argument("--all-nvme", action="store_true",
                      help="all NVMe disks, hidden paths included")


def make_parser():
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version",
                        version=f"{PROGRAM} {VERSION}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    verb = verbs.add_parser("list", help="modes set, in force, and what is "
                            "worth a try")
    add_disks(verb)
    verb.add_argument("--check", action="store_true", help="exit with 3 if a "
                      "mode that is set or kept is not in force, and say which")
    add_try(verbs)
    add_mode(verbs.add_parser("keep", help="set a mode, for good"))
    verbs.add_parser("undo", help="put back what keep has changed, and what a "
                     "killed try has left")
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="print JSON")
    verb = verbs.add_parser("apply", help="for udev: set new paths as kept")
    verb.add_argument("--settle", type=float, default=10, metavar="SEC",
                      help="go on looking for new paths for so long [10]")
    return parser


def arguments(words):
    parser = make_parser()
    args = parser.parse_args(words)
    if args.verb in ("try", "keep") and bool(args.disks) == args.all_nvme:
        parser.error(f"name disks, or give --all-nvme ({with_knob()})")
    return args


class Once(argparse.Action):
    """An option of which a second one would silently replace the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        if getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(
                self, f"given twice; accepted: once, as {option_string}=A,B")
        setattr(namespace, self.dest, values)


def add_try(verbs):
    verb = verbs.add_parser(
        "try", help="compare a mode with the one that is set, under the live "
        "load", description=TRY,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add_mode(verb)
    verb.add_argument("--for", dest="seconds", type=TIME, default=600,
                      metavar="TIME", help="how long, such as 90s or 2h [10m]")
    verb.add_argument("--guard", type=parse_guard, action=Once,
                      metavar="LIMITS",
                      help="such as p99=5%%,iops=-2%%: iops may fall, p99 and "
                      "mean may rise by so much; end as soon as one is "
                      "exceeded for sure [p99=10%%,iops=-2%%; the mean instead "
                      "of p99 where the kernel has no trace events]")
    verb.add_argument("--require", type=lambda text: parse_guard(text, False),
                      action=Once, default={}, metavar="GAINS",
                      help="hold only if it is sure to gain this much, such as "
                      "iops=+0.5%%")
    verb.add_argument("--block", type=BLOCK, metavar="SEC",
                      help="how long the modes take turns [2 to 10, by --for]")
    verb.add_argument("--keep", action="store_true",
                      help="if the guard held, or MODE is set already, do as "
                      "keep does for these disks, not for idle ones")


def targets(args):
    """{disk: the disks that have its knobs}, as the user named them."""
    if args.all_nvme:
        heads = [disk for disk in all_disks()
                 if re.fullmatch(r"nvme\d+n\d+", disk.name)]
        found = {disk: disk.legs() for disk in heads}
        found = {disk: legs for disk, legs in found.items()
                 if legs and all(leg.has_knob() for leg in legs)}
        if not found:
            raise EnvironmentProblem("no NVMe disk with plug_policy here")
        return found
    found = {disk: disk.legs() for disk in find_disks(args.disks)}
    for disk, legs in found.items():
        bare = [leg.name for leg in legs or [disk]
                if not leg.has_knob() and leg.there()]
        if bare:
            raise without_knob(bare)
    return found


def print_json(found):
    say(json.dumps({"version": FORMAT, **found}, indent=1))


def do_list(args):
    rows = listing_of(find_disks(args.disks))
    if args.json:
        print_json({"disks": rows})
    else:
        print_list(rows)
    return 3 if args.check and check_list(rows) else 0


def do_try(args):
    args.default_guard = args.guard is None
    args.guard = args.guard or parse_guard(DEFAULT_GUARD)
    chosen = targets(args)
    if args.keep:
        can_keep([leg for legs in chosen.values() for leg in legs],
                 args.all_nvme)
    result = try_mode(args, chosen)
    try:
        note_try(result, chosen)
    except (OSError, EnvironmentProblem) as error:
        say(f"{PROGRAM}: the result is not noted for list: {error}",
            sys.stderr)
    if not args.json:
        print_result(result)
    done = {"kept": False, "changed": False}
    try:
        if args.keep and result["status"] in (HELD, ALREADY):
            done = keep_tried(args, chosen, result)
    finally:
        if args.json:           # also if it cannot be kept
            print_json({**result, **done})
    return {HELD: 0, ALREADY: 0, TRIPPED: 3, NO_GAIN: 5}.get(
        result["status"], 4)


def keep_tried(args, chosen, result):
    """Keep what has held, but not for disks that were idle."""
    known = [*result["disks"], *result["already"]]
    found = keep_and_tell(args, {disk: legs for disk, legs in chosen.items()
                                 if disk.name in known})
    return {"kept": True, "changed": found["changed"] or bool(result["disks"])}


def keep_and_tell(args, chosen, all_nvme=False):
    """Keep a mode for the chosen disks or for all NVMe disks, and show what
    was written; what print_json() is to print."""
    legs = {leg.name: leg for legs in chosen.values() for leg in legs}
    written, named = keep(args.mode, list(legs.values()), all_nvme)
    names = sorted(set(legs) - set(named))
    nomerges = [name for name in names if keeps_nomerges(legs[name])]
    if nomerges and not args.json:
        say(f"{', '.join(nomerges)}: {NOMERGES}")
    if not args.json:
        for path, text in written.items():
            say(f"wrote {path}:\n{text}")
        for name, mode in named.items():
            say(f"{name} is skipped: {mode} is kept for it by name")
        say("%s: %s%s" % (", ".join(names) or "NVMe disks to come", args.mode,
                          "" if written else " (the rules say so already)"))
    return {"mode": args.mode, "disks": names, "skipped": named,
            "nomerges": nomerges, "written": written,
            "pattern": ALL_NVME if all_nvme else None,
            "changed": bool(written)}


def do_keep(args):
    found = keep_and_tell(args, targets(args), args.all_nvme)
    if args.json:
        print_json(found)
    return 0


def do_undo(args):
    done, problems = undo()
    if args.json:
        print_json({"done": done, "problems": problems, "changed": bool(done)})
    else:
        for line in done + problems or ["nothing was kept"]:
            say(line)
    return 1 if problems else 0


def main(words=None):
    args = arguments(words)
    interruptible()
    code, why = outcome({
        "list": do_list, "try": do_try, "keep": do_keep, "undo": do_undo,
        "apply": lambda args: apply(args.settle) or 0}[args.verb], args)
    if code == 130:
        why += INTERRUPTED.get(args.verb, "")
    if why:
        say(f"{PROGRAM}: {why}", sys.stderr)
        if args.verb != "list":
            log(f"{args.verb}: {why}")
    return code
