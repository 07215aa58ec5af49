# SPDX-License-Identifier: GPL-2.0
"""Torture the series: kernels that look for bugs, stacks of block devices,
loads that verify their data, and all that may disturb them, by chance.

Guests run side by side, one per kernel, round after round, until the time is
over. What was tried and found is printed as a table, and written to
result.json. A failure names the command that repeats its round."""
import argparse
import collections
import dataclasses
import os
import random
import re
import sys
import textwrap
import threading
import time
from pathlib import Path

from lab.qemu import boot, guest
from lab.torture import kit, races
from plugtools.core import system
from scripts import common, kernel
from scripts.checks import tap
from scripts.kbuild import arch

HERE = Path(__file__).parent

# What fits TAP_SECONDS, on a kernel that has neither faults nor stacked disks
TAP_KINDS = ("mixed:nvme_namespaces", "mixed:null_irq2", "mixed:null_poll",
             "mixed:null_zoned", "mixed:null_zoned_uring",
             "mixed:null_power", "mixed:ssd", "mixed:virtio", "mixed:loop",
             "mixed:nvme_remove")
KERNELS = ("debug", "kcsan")
# Ordinary ones, and "torture", which has all that is stacked but looks for no
# bugs. What "base..." finds, without the series, is not of its making.
ALL_KERNELS = (*KERNELS, "patched", "base", "torture", "base-torture")
# A thread for each CPU lets them run at once, which QEMU's x86 is not up to:
# see boot.accel_args().
THREADS = "multi" if arch.IS_ARM64 else "single"
MODES = ("always", "never", "seq-small", "adaptive")
SABOTAGES = ("corrupt", "hang", "warn")
TAP_SECONDS = 90        # or what one round of each takes
GUEST_SECONDS = 600     # then a fresh one: what leaks, or settles, ends there
LEAST_SECONDS = 45      # a guest with less is not worth its boot
BOOT_SECONDS = {"debug": 40, "kcsan": 40}
ROUND_OVERHEAD = 9      # making and taking down a stack, last passes
SLICE = (5, 30)         # seconds of a round: least, most
# Who has more to do in one round than a mixed one takes that many slices.
WEIGHTS = {"power": 4, "neighbours": 4, "waits": 3, "swap": 2}
# Kinds that do one of several things, which KIND:THING names: where they stand
PARTS = {"mixed": ("stacks.sh", r"^\t(\w+)\)"),
         "neighbours": ("neighbours.sh", r"^case_(\w+)\(\)")}
PATIENCE = 300          # how much longer than a slice a round may be mute
DISK_MB = 256


class Refused(Exception):
    """What the caller asked for cannot be; the message says what can."""


def parts(kind):
    """What a kind does one of; none if it always does the same."""
    if kind not in PARTS:
        return []
    name, label = PARTS[kind]
    return re.findall(label, (HERE / name).read_text(encoding="ascii"), re.M)


def known_kinds():
    """Each program for the guest is one, but for the scheduler."""
    return [path.stem for path in sorted(HERE.glob("*.sh"))
            if os.access(path, os.X_OK) and path.stem != "torture"]


def help_text():
    found = []
    for kind in known_kinds():
        purpose = common.description(HERE / f"{kind}.sh")
        found += textwrap.wrap(f"{kind}: {purpose}", 78,
                               subsequent_indent="    ")
        names = ", ".join(f"{kind}:{part}" for part in parts(kind))
        found += textwrap.wrap(f"or one of: {names}" if names else "", 78,
                               initial_indent="    ", subsequent_indent="    ",
                               break_on_hyphens=False)
    return "\n".join(found)


def items(kinds):
    """What rounds are made of: kinds, and each part of those with parts."""
    found = []
    for kind in kinds or known_kinds():
        name, _, part = kind.partition(":")
        known = parts(name)
        if name not in known_kinds():
            raise Refused(
                f"kind '{kind}' is none of {', '.join(known_kinds())}; "
                "'help' lists them and their parts")
        if part and part not in known:
            raise Refused(f"kind '{kind}': of {name} there is "
                          + (", ".join(known) or "nothing to pick"))
        found += [f"{name}:{one}" for one in known] if known and not part \
            else [kind]
    return found


def replay(variant, item, seed, slice_seconds):
    processor = "ARCH=arm64 " if arch.IS_ARM64 else ""
    return (f"make torture {processor}KERNELS={variant} KINDS={item} "
            f"ROUND={seed} T={slice_seconds}s")


@dataclasses.dataclass
class Found:
    """Something wrong, and how to see it again."""

    text: str
    item: str
    replay: str
    log: str

    def __str__(self):
        return f"{self.item}: {self.text}\n  log: {self.log}\n  replay: {self.replay}"


class Tally:
    """What was tried and found with one kernel."""

    def __init__(self, variant, wanted):
        self.variant = variant
        self.seconds = 0            # of the round under way
        self.rounds = collections.defaultdict(collections.Counter)
        self.counters = collections.Counter()
        self.skipped = {}
        self.found = []
        self.elsewhere = collections.Counter()
        self.elsewhere_first = {}
        self.races = []
        self.logs = []
        self.untried = list(wanted)
        self.now = ("boot", 0, 0)   # item, number, seed
        self.under_way = False

    def add_found(self, text):
        """Blames the round under way, and says so at once."""
        item, _, seed = self.now
        self.found.append(Found(
            text, item, replay(self.variant, item, seed, self.seconds),
            self.logs[-1] if self.logs else ""))
        print(f"torture: FOUND ({self.variant}, round's seed {seed}) "
              f"{self.found[-1]}", flush=True)

    def take(self, line):
        word, *rest = line.split() or [""]
        handler = getattr(self, f"take_{word}", None)
        try:
            if handler:
                handler(*rest)
        except (ValueError, TypeError):
            self.add_found(f"the guest said '{line}', which is garbled")

    def take_round(self, count, item, seed, seconds):
        self.now = (item, int(count), int(seed))
        self.seconds = int(seconds)
        self.under_way = True

    def take_end(self, _count, status, _seconds):
        """What ended with the guest was tried, too."""
        item = self.now[0]
        self.under_way = False
        self.rounds[item][status] += 1
        if item in self.untried:
            self.untried.remove(item)

    def take_did(self, key, count):
        """Summed, but of times (..._us_...) the longest is kept."""
        if "_us_" in key:
            self.counters[key] = max(self.counters[key], int(count))
        else:
            self.counters[key] += int(count)

    def take_found(self, *text):
        self.add_found(" ".join(text))

    def take_skipped(self, item, *why):
        self.skipped[item] = " ".join(why)

    def tried(self):
        """Rounds that did something."""
        return sum(by.total() - by["skip"] for by in self.rounds.values())

    def add_races(self, found, ours):
        """Sorts KCSAN's reports."""
        self.races.clear()
        for race in found:
            if race.is_ours(ours):
                self.races.append(race)
            else:
                self.elsewhere[race.title] += 1
                self.elsewhere_first.setdefault(race.title, race.lines[:12])

    def record(self):
        return {
            "rounds": {item: dict(by) for item, by in
                       sorted(self.rounds.items())},
            "counters": dict(sorted(self.counters.items())),
            "found": [dataclasses.asdict(one) for one in self.found],
            "skipped": self.skipped,
            "untried": self.untried,
            "races_elsewhere": [
                {"title": title, "count": count,
                 "first": self.elsewhere_first[title]}
                for title, count in self.elsewhere.most_common()],
            "logs": self.logs,
        }


# --- guests ----------------------------------------------------------------

def disk_arguments(out):
    """A controller with two namespaces, and a virtio disk, on files."""
    args = ["-device", "nvme,id=two,serial=plugtwo,max_ioqpairs=4"]
    for number in (1, 2):
        args += ["-drive", boot.drive(f"file:{out}/ns{number}.img:{DISK_MB}m")
                 + f",format=raw,if=none,id=ns{number}",
                 "-device", f"nvme-ns,drive=ns{number},bus=two,nsid={number}"]
    return tuple(args + [
        "-drive", boot.drive(f"file:{out}/virtio.img:{DISK_MB}m")
        + ",format=raw,if=none,id=vd",
        "-device", "virtio-blk-pci,drive=vd,num-queues=2"])


class Lane:
    """The guests of one kernel, one after the other."""

    def __init__(self, variant, args, wanted, ours):
        self.variant = variant
        self.args = args
        self.items = wanted
        self.ours = ours
        self.tally = Tally(variant, wanted)
        self.slice = self.slice_seconds(args.seconds)
        self.files = kit.files(variant)
        self.number = 0

    def slice_seconds(self, seconds):
        """So that the first pass fits, if it can."""
        if self.args.round is not None:
            return seconds
        least, most = SLICE
        room = (seconds - BOOT_SECONDS.get(self.variant, 10)) * 0.9
        slices = sum(WEIGHTS.get(item.partition(":")[0], 1)
                     for item in self.items)
        return int(min(most, max(least, room / slices - ROUND_OVERHEAD)))

    def out(self):
        return Path(self.args.out) / f"{self.variant}-{self.number}"

    def remove_disks(self):
        """What a guest has written is of no use without it."""
        for path in self.out().glob("*.img"):
            path.unlink()

    def guest_seed(self):
        """Of the guest that comes next: lanes and guests differ."""
        return (self.args.seed + 7919 * ALL_KERNELS.index(self.variant)
                + self.number)

    def is_fixed(self):
        """Whether it is clear what to do, however long that takes."""
        return self.args.tap or self.args.round is not None

    def rounds(self):
        """(item, seed, seconds) of more than a guest has time for: first what
        was not tried yet, in an order of the seed's."""
        if self.args.round is not None:
            return [(self.items[0], self.args.round, self.slice)]
        chance = random.Random(self.guest_seed())
        chosen = chance.sample(self.tally.untried, len(self.tally.untried))
        if not self.args.tap:
            chosen += chance.choices(self.items, k=GUEST_SECONDS // SLICE[0])
        return [(item, chance.randrange(10 ** 9),
                 self.slice * WEIGHTS.get(item.partition(":")[0], 1))
                for item in chosen]

    def job(self, seconds):
        limits = "999999 0" if self.is_fixed() else f"{seconds} {self.slice}"
        rounds = "".join(f"{item} {seed} {time}\n"
                         for item, seed, time in self.rounds())
        return (f"exec 2>&1\nexport TORTURE_SABOTAGE={self.args.sabotage}\n"
                f"export TORTURE_MODES='{' '.join(self.args.modes)}'\n"
                f"exec /torture/torture.sh {limits} <<END\n{rounds}END\n")

    def settings(self):
        """Of the guest that comes next. It ends by itself when its last round
        is over."""
        chance = random.Random(self.guest_seed())
        return dict(
            name=f"torture {self.variant}", files=self.files,
            timeout=self.slice * max(WEIGHTS.values()) + PATIENCE,
            smp=chance.choice((2, 2, 3, 4)), mem=2560,
            accel=os.environ.get("ACCEL") or "tcg",
            tcg_thread=THREADS,
            disks=tuple(f"file:{self.out()}/nvme{n}.img:{DISK_MB}m"
                        for n in range(3)),
            devices=disk_arguments(self.out()),
            # An interrupt while the boot CPU looks for its features makes
            # KASAN take five levels of page tables for four.
            append="no5lvl null_blk.poll_queues=2 null_blk.submit_queues=2 "
                   "null_blk.hw_queue_depth=256 "
                   "blk_crypto_fallback.num_keyslots=1"
                   # a race is no warning before judge() has read it
                   + ("" if self.variant == "kcsan" else " panic_on_warn=1"),
            warns=self.judge,
            on_line=self.tally.take)

    def judge(self, console):
        """The first warning that counts: KCSAN and lockdep report also what
        others do."""
        found, rest = races.split_console(console)
        self.tally.add_races(found, self.ours)
        if self.tally.races:
            return self.tally.races[0].title
        return boot.first_warning(races.without_known(rest))

    def run_guest(self, seconds):
        """One guest; what it came to is in the tally."""
        out = self.out()
        out.mkdir(parents=True, exist_ok=True)
        self.remove_disks()
        self.tally.now = ("boot", 0, self.guest_seed())
        self.tally.logs.append(str(out / "console.log"))
        before = len(self.tally.found)
        result = guest.run(self.variant, str(out), self.job(seconds),
                           **self.settings())
        self.remove_disks()
        if result.status == "fail" and (
                len(self.tally.found) == before
                or not result.reason.startswith("the job failed")):
            self.tally.add_found(result.reason)
        if self.tally.under_way:
            self.tally.take_end(0, "died", 0)
        self.number += 1

    def run(self, end):
        """Guest after guest until the time is over."""
        while self.is_fixed():
            self.run_guest(self.args.seconds)
            if not self.tally.untried or self.number >= len(self.items):
                return
        while True:
            left = end - time.monotonic()
            if left < min(LEAST_SECONDS, self.args.seconds / 2):
                return
            self.run_guest(int(min(left, GUEST_SECONDS)))


# --- all together ----------------------------------------------------------

def write_result(args, lanes, state):
    path = os.path.join(args.out, "result.json")
    common.write_json(path, {
        "seed": args.seed, "seconds": args.seconds, "state": state,
        "round": args.round,
        "kernels": {lane.variant: {"slice": lane.slice, **lane.tally.record()}
                    for lane in lanes}})
    return path


def table(lanes):
    """What was tried and found, a column per kernel."""
    tallies = [lane.tally for lane in lanes]
    rows = [("", [lane.variant for lane in lanes]),
            ("rounds", [tally.tried() for tally in tallies]),
            ("guests", [lane.number for lane in lanes]),
            *((name, [tally.counters[name] for tally in tallies]) for name in
              sorted({name for tally in tallies for name in tally.counters})),
            ("kinds and stacks tried",
             [sum(set(by) != {"skip"} for by in tally.rounds.values())
              for tally in tallies]),
            ("skipped", [len(tally.skipped) for tally in tallies]),
            ("not reached", [len(tally.untried) for tally in tallies]),
            ("races elsewhere", [tally.elsewhere.total() for tally in tallies]),
            ("FOUND", [len(tally.found) for tally in tallies])]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}" + "".join(f" {cell:>14}"
                                                 for cell in cells)
                     for name, cells in rows)


def details(lanes):
    """What the table has only the number of."""
    lines = []
    for lane in lanes:
        tally, of = lane.tally, f"({lane.variant})"
        lines += [f"skipped {of} {item}: {why}"
                  for item, why in sorted(tally.skipped.items())]
        if tally.untried:
            lines.append(f"not reached {of}: {' '.join(tally.untried)}")
        lines += [f"FOUND {of} {one}" for one in tally.found]
    return lines


def run_lanes(lanes, end):
    """All lanes side by side; says every ten seconds where they are."""
    def state(_):
        rounds = ", ".join("{} round {} {}".format(
            lane.variant, lane.tally.now[1], lane.tally.now[0])
                           for lane in lanes)
        return f"torture: {rounds}; {max(0, end - time.monotonic()):.0f} s left"

    threads = [threading.Thread(target=lane.run, args=(end,), daemon=True)
               for lane in lanes]
    for thread in threads:
        thread.start()
    with common.clock(state):
        for thread in threads:
            thread.join()


def torture(args, wanted):
    """Builds, runs, and tells; the lanes."""
    for variant in args.kernels:
        kernel.build(variant)
    kit.build()
    ours = races.series_functions(kernel.TREE)
    lanes = [Lane(variant, args, wanted, ours) for variant in args.kernels]
    print(f"torture: seed {args.seed}, {args.seconds} s, "
          f"{len(wanted)} kinds and stacks, rounds of "
          f"{lanes[0].slice} s, kernels {' '.join(args.kernels)}",
          flush=True)
    try:
        run_lanes(lanes, time.monotonic() + args.seconds)
    except KeyboardInterrupt:
        path = write_result(args, lanes, "interrupted")
        print(f"\n{table(lanes)}\ntorture: interrupted; the guests end; "
              f"so far: {path}", flush=True)
        for lane in lanes:
            lane.remove_disks()
        os._exit(130)   # with which the guests die
    return lanes


def tell(args, lanes):
    """Ends a run; its exit status."""
    path = write_result(args, lanes, "done")
    print("\n".join([table(lanes), *details(lanes)]))
    nothing = [lane.variant for lane in lanes if not lane.tally.tried()]
    bad = sum(len(lane.tally.found) for lane in lanes)
    if nothing:
        print(f"torture: nothing was tried with {' '.join(nothing)}")
    print(f"torture: {bad} found, seed {args.seed}; {path}")
    return 1 if bad or nothing else 0


def tell_tap(args, lanes):
    """The same as test results: one for each kind or stack."""
    write_result(args, lanes, "done")
    report = tap.Report()
    for tally in (lane.tally for lane in lanes):
        for item, by in sorted(tally.rounds.items()):
            if set(by) == {"skip"}:
                report.skip(item, tally.skipped.get(item, "it does not say why"))
            else:
                report.check(set(by) <= {"pass", "skip"}, item, "\n".join(
                    str(one) for one in tally.found if one.item == item))
        report.check(not tally.found, "nothing was found",
                     "\n".join(map(str, tally.found)))
        report.check(tally.tried() and not tally.untried, "each was tried",
                     "\n".join(tally.untried))
    print("\n".join(f"# {line}" for line in table(lanes).splitlines()))
    report.exit()


def words(text):
    """Of a list with commas or spaces."""
    return text.replace(",", " ").split()


def parser():
    number = system.matching(r"\d{0,9}", "0 to 999999999", str)
    made = argparse.ArgumentParser(
        prog="torture", description=__doc__.partition("\n\n")[0],
        epilog="Exit: 0 nothing found, 1 something found, 2 usage.")
    add = made.add_argument
    add("--time", default="10m", dest="seconds", type=system.matching(
        r"\d+[smh]?", "a number above 0 with s, m or h (90s, 10m)", system.seconds, 1),
        help="of all, after the builds; rounds under way are finished [10m]")
    add("--seed", default="", type=number, help="of all chance [the clock's]")
    add("--kernels", default="",
        help=f"of {', '.join(ALL_KERNELS)} [{','.join(KERNELS)}]")
    add("--kinds", default="",
        help=f"of {', '.join(known_kinds())}, mixed:STACK, neighbours:CASE "
             "[all]")
    add("--modes", default="",
        help=f"of {', '.join(MODES)}: the only ones that mixed and neighbours "
             "set [all]")
    add("--round", default="", type=number,
        help="repeat one round: its own seed; with one kind and kernel, and "
             "--time as the round's seconds")
    add("--sabotage", choices=SABOTAGES, default="",
        help="do what must be found, to see that it is")
    add("--out", default=kit.OUT, type=os.path.abspath,
        help="for logs and result.json")
    add("--tap", action="store_true",
        help=f"test results; one round of each in about {TAP_SECONDS} s, the "
             "ordinary kernel")
    add("--refuse", action="store_true", help="what cannot be; do no more")
    return made


def check_words(what, given, known):
    for word in given:
        if word not in known:
            raise Refused(f"{what} '{word}' is none of {', '.join(known)}")


def parse_args(argv):
    """Refuses what cannot be before anything is built."""
    args = parser().parse_args(argv)
    args.kernels = words(args.kernels) or list(KERNELS)
    if args.tap:
        args.seconds, args.kernels = TAP_SECONDS, ["patched"]
        args.seed = args.seed or "1"
    args.seed = int(args.seed or time.time() % 1000000)
    args.round = int(args.round) if args.round else None
    args.modes = words(args.modes)
    check_words("mode", args.modes, MODES)
    check_words("kernel", args.kernels, ALL_KERNELS)
    if words(args.kinds) == ["help"]:
        print(help_text())
        sys.exit()
    wanted = items(words(args.kinds) or (TAP_KINDS if args.tap else ()))
    if args.round is not None and (len(wanted) != 1
                                   or len(args.kernels) != 1):
        raise Refused("--round takes one kind (mixed with its STACK) and one "
                      "kernel")
    return args, wanted


def main(argv=None):
    try:
        args, wanted = parse_args(argv)
        if args.refuse:
            return 0
        lanes = torture(args, wanted)
    except Refused as error:
        parser().error(error)
    except guest.ERRORS as error:
        print(f"torture: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("torture: interrupted before a guest was started",
              file=sys.stderr)
        return 130
    return tell_tap(args, lanes) if args.tap else tell(args, lanes)


if __name__ == "__main__":
    sys.exit(main())
