# SPDX-License-Identifier: GPL-2.0
"""Guards: how much worse a mode may be, and whether it is; why blocks of both
modes take turns, plugroll(8) says."""
import argparse
import collections
import math
import re
import statistics

from ..report.intervals import quantile, spread
FALLS = ("iops",)
RISES = ("mean", "p99")
UNITS = {"iops": "/s", "mean": " ms", "p99": " ms"}
LEAST_PAIRS = 3
SURE = 0.99         # to stop: it is asked after each pair, so more than 0.95
SHOWN = 0.95        # what is shown at the end
MOST = 0.8          # of the pairs have a metric that is said to be guarded
FEW = 0.1           # of the I/Os, or FEWER and no figures: a collapse
FEWER = 0.5
COLLAPSES = 2       # pairs, if there is one disk; chance has more with many
RETURNS = 5         # so many more for each pair that says the opposite
ACCEPTED = {
    True: "accepted: limits such as p99=5%,iops=-2%; iops may fall, mean and "
          "p99 may rise, by 0.1% to 99%; --require takes a gain",
    False: "accepted: gains such as iops=+0.5%,p99=-1%; iops must rise, mean "
           "and p99 must fall, by 0.1% to 99%"}

Change = collections.namedtuple("Change", "change low high")


def parse_limit(text, harm_limit=True):
    """("iops", -0.02) of "iops=-2%"; of a gain, ("iops", 0.005)."""
    match = re.fullmatch(r"(\w+)=([+-]?)(\d+(?:\.\d+)?)%?", text)
    if not match or match[1] not in FALLS + RISES:
        raise argparse.ArgumentTypeError("'%s' is no %s; %s" % (
            text, "guard" if harm_limit else "gain", ACCEPTED[harm_limit]))
    falls = (match[1] in FALLS) == harm_limit
    size = float(match[3]) / 100
    if falls != (match[2] == "-") or not 0.001 <= size <= 0.99:
        raise argparse.ArgumentTypeError(f"'{text}' cannot be meant; "
                                         f"{ACCEPTED[harm_limit]}")
    return match[1], -size if falls else size


def parse_guard(text, harm_limit=True):
    """{metric: limit} of "p99=5%,iops=-2%"; or of gains."""
    guard = {}
    for part in text.split(","):
        metric, limit = parse_limit(part.strip(), harm_limit)
        if metric in guard:
            raise argparse.ArgumentTypeError(f"{metric} is given twice; "
                                             f"{ACCEPTED[harm_limit]}")
        guard[metric] = limit
    return guard


def lacking(pairs, gains):
    """Why a mode does not gain what is required, or None: all of the 95%
    interval must lie there."""
    for metric, gain in gains.items():
        change = change_of(pairs, metric)
        if change is None:
            return f"too few pairs with {metric}"
        if harm(change, -gain)[2] > -abs(gain):
            return f"{metric} by {change_text(change)}, {gain * 100:+g}% is " \
                "required"
    return None


def guard_text(guard):
    return ",".join(f"{metric}={limit * 100:+g}%"
                    for metric, limit in guard.items()) or "none"


def both(pairs, metric):
    """(old, new) of the pairs of which both blocks have a metric."""
    return [(old[metric], new[metric]) for old, new in pairs
            if metric in old and metric in new]


def change_of(pairs, metric, confidence=SHOWN):
    """The change from the old mode to the tried one, with its interval.

    None where there are too few pairs.  Ratios are averaged as logarithms:
    half and double then cancel."""
    logs = [[*map(math.log, pair)] for pair in both(pairs, metric)]
    if len(logs) < LEAST_PAIRS:
        return None
    old, new = zip(*logs)
    error, freedom = spread(new, old, True)
    mean = statistics.fmean(new) - statistics.fmean(old)
    half = error * quantile(1 - confidence, freedom)
    return Change(*(math.expm1(value)
                    for value in (mean, mean - half, mean + half)))


def harm(change, limit):
    """(the change, its better end, its worse end), as harm is positive."""
    if limit < 0:
        return -change.change, -change.high, -change.low
    return change.change, change.low, change.high


def collapsed(before, after, guard):
    """Whether a disk all but stopped from one block to the other, or does too
    little to have the figures that it had."""
    if "iops" not in before:
        return False
    part = after["ios"] / before["ios"]
    return part < FEW or part < FEWER and any(
        metric in before and metric not in after for metric in guard)


def collapse(pairs, guard, disks=1):
    """Why the tried mode is taken to stop the disk, or None.

    Watched whatever the guard: where the tried mode has no figures, there is
    nothing to compare.  A load that comes and goes does so in the old mode,
    too; and of many disks with such a load one is idle at the wrong times."""
    stops = sum(collapsed(old, new, guard) for old, new in pairs)
    returns = sum(collapsed(new, old, guard) for old, new in pairs)
    if stops < COLLAPSES + math.ceil(math.log2(disks)) + RETURNS * returns:
        return None
    return f"collapse: in {stops} of {len(pairs)} pairs next to no I/O with it"


def tripped(pairs, guard, disks=1):
    """Why the guard trips, or None.

    It does when the change is beyond the limit, and is too clear to be
    chance, of which there is more with more disks and metrics."""
    sure = 1 - (1 - SURE) / (disks * max(1, len(guard)))
    for metric, limit in guard.items():
        change = change_of(pairs, metric, sure)
        if change:
            estimate, better, _ = harm(change, limit)
            if estimate > abs(limit) and better > 0:
                return f"{metric} by {change_text(change)}, the limit is " \
                    f"{limit * 100:+g}%"
    return None


def undecided(pairs, guard):
    """Why the guard may not be said to hold, or None."""
    for metric, limit in guard.items():
        change = change_of(pairs, metric)
        if change is None:
            return f"too few pairs with {metric}"
        known = len(both(pairs, metric))
        if known < MOST * len(pairs):
            return f"{metric} is known of {known} of {len(pairs)} pairs only"
        if harm(change, limit)[2] > abs(limit):
            return f"{metric} by {change_text(change)}, so " \
                f"{limit * 100:+g}% is not ruled out"
    return None


def change_text(change):
    """Such as "-7.3% (-9.1 to -5.4)"."""
    return "%+.1f%% (%+.1f to %+.1f)" % tuple(100 * part for part in change)


def outcome(pairs, guard):
    found = {}
    for metric in FALLS + RISES:
        change = change_of(pairs, metric)
        if change:
            old, new = map(statistics.fmean, zip(*both(pairs, metric)))
            found[metric] = {"old": old, "new": new, **change._asdict(),
                             "limit": guard.get(metric)}
    return found


def outcome_lines(found):
    if not found:
        return []
    form = "  %-6s %12s %12s  %-26s %s"
    lines = [form % ("", "old", "tried", "change (95% interval)", "limit")]
    for metric, one in found.items():
        limit = one["limit"]
        lines.append(form % (
            metric, number(one["old"]) + UNITS[metric],
            number(one["new"]) + UNITS[metric],
            change_text(Change(one["change"], one["low"], one["high"])),
            "-" if limit is None else f"{limit * 100:+g}%"))
    return [line.rstrip() for line in lines]


def number(value):
    """Three digits, or what is before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
