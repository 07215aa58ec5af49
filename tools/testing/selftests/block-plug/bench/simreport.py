# SPDX-License-Identifier: GPL-2.0
"""What a sweep came to: tables and plots."""
import os
import sys

import simconfigs
import simrun

sys.path.insert(0, os.path.join(simrun.ROOT, "tools/block"))
import plugreport  # noqa: E402 pylint: disable=wrong-import-position

GOALS = {"mean": 0.005, "p99": 0.03, "worst": 0.10}
SIZE = (760, 420)
MARGINS = ["set lmargin at screen 0.09", "set rmargin at screen 0.97",
           "set tmargin at screen 0.86", "set bmargin at screen 0.14"]
COLOURS = {"always": "#888888", "adaptive": "#1f6fb4"}

# Devices that a plug policy can tell apart, one after the other: gen4, an
# optane, gen4 in lockstep, and one whose doorbells cost. 150 ms each.
PHASES = ("gen4", "optane", "lockstep", "vm")
PHASE_MS = 150
STEPS = ("lat=uniform:62522-145886 depth=128 batch=32 complete=32 warm=0 "
         "time=%d000000 ios=1000000000 then lat=uniform:7600-8400 then "
         "lat=uniform:95000-105000 then lat=uniform:36000-84000 doorbell=2000"
         % PHASE_MS)


def quantile(values, part):
    """The value below which so many lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summary(values, first=None):
    """Mean, some quantiles, worst. first: what the mean is taken of."""
    if not values:
        return None
    first = first or values
    return {"n": len(values), "mean": sum(first) / len(first),
            "p50": quantile(values, 0.5), "p90": quantile(values, 0.9),
            "p99": quantile(values, 0.99), "worst": max(values)}


def field(records, name):
    """The values of those that have it."""
    return [record[name] for record in records if name in record]


def summaries(records):
    """Of everything that is a regret.

    Looking again lowers what chance had made large, and leaves what it had
    made small: quantiles are of the second look, the mean of the first.
    """
    closed = [record for record in records if record["kind"] != "open"]
    rows = {"adaptive": "regret", "always": "always",
            "adaptive, second half": "late", "adaptive, first 50 ms": "early",
            "adaptive, 50 ms from change": "changed"}
    return {name: summary(field(closed, key), field(closed, "first_" + key))
            for name, key in rows.items()}


def latency_class(record):
    """Of the device, in the last phase."""
    words = words_of(record)
    latency = simconfigs.latency_of(words)
    for limit, name in ((1e4, "below 10 us"), (1e5, "10 to 100 us"),
                        (1e6, "100 us to 1 ms")):
        if latency < limit:
            return name
    return "1 ms and more"


def words_of(record):
    """Words of the last phase of a record's line."""
    words = {}
    for pair in record["line"].replace(" then ", " ").split():
        key, value = pair.split("=")
        words[key] = int(value) if value.isdigit() else value
    return words


def range_class(what, value, limits):
    """Such as "batch 2 to 4"."""
    low = 1
    for limit in limits:
        if value <= limit:
            break
        low = limit + 1
    else:
        return "%s %d and more" % (what, low)
    return "%s %d" % (what, low) if low == limit else "%s %d to %d" % (
        what, low, limit)


def classes(record):
    """The classes that a record belongs to."""
    words = words_of(record)
    return ["latency " + latency_class(record),
            range_class("batch", words["batch"], (1, 4, 16, 32)),
            range_class("queues", record["hctxs"], (1, 8)),
            ("polled, ", "interrupts, ", "interrupts of another core, ")[
                words["irq_core"]] + record["kind"],
            "units limit" if words["units"] else "no limit of units",
            "%d phase%s" % (record["line"].count(" then ") + 1,
                            "s" if " then " in record["line"] else "")]


def by_class(records):
    """{class: (n, mean of adaptive, mean of always)}"""
    found = {}
    for record in records:
        for name in classes(record) if record["kind"] != "open" else ():
            found.setdefault(name, []).append(record)
    return {name: (len(some),
                   sum(one["first_regret"] for one in some) / len(some),
                   sum(one["first_always"] for one in some) / len(some))
            for name, some in sorted(found.items())}


def lines(rows):
    """Rows as text, in columns."""
    return "\n".join(plugreport.aligned(rows))


def percent(value):
    """A part, as text."""
    return "%.2f%%" % (100 * value)


def regret_table(found):
    """The summaries as text."""
    rows = [["regret", "n", "mean", "p50", "p90", "p99", "worst"]]
    for name, one in found.items():
        if one:
            rows.append([name, str(one["n"]), *(
                percent(one[key]) for key in rows[0][2:])])
    return lines(rows)


def class_table(found):
    """Means of the classes as text."""
    rows = [["class", "n", "adaptive", "always"]]
    rows += [[name, str(n), percent(adaptive), percent(always)]
             for name, (n, adaptive, always) in found.items()]
    return lines(rows)


def open_table(records):
    """Latency that adaptive adds where the load is given."""
    some = [record for record in records if record["kind"] == "open"]
    rows = [["open loop: adaptive / always", "n", "mean", "p50", "p90", "p99",
             "worst"]]
    for name, key in (("mean latency", "latency"), ("p99 latency", "p99")):
        one = summary(field(some, key))
        if one:
            rows.append([name, str(one["n"]), *(
                "%.4f" % one[column] for column in rows[0][2:])])
    return lines(rows) if len(rows) > 1 else "no open loop"


def replay(record, seed):
    """The command that shows a configuration again."""
    return "python3 %s --seed %d --only %d" % (
        os.path.relpath(os.path.join(simrun.HERE, "sim.py"), simrun.ROOT),
        seed, record["index"])


def worst(records, seed, most=10):
    """The worst ones as text."""
    closed = [record for record in records if record["kind"] != "open"]
    closed.sort(key=lambda record: -record["regret"])
    found = ["worst ten:"]
    for record in closed[:most]:
        found.append("%7s  best %2d, adaptive ends at %g (always: %s)  %s" % (
            percent(record["regret"]), record["best"], record["final"],
            percent(record["always"]), replay(record, seed)))
    return "\n".join(found)


def goals(found):
    """Are they reached?"""
    one = found["adaptive"]
    if not one:
        return "goals: nothing to judge"
    parts = ["%s %s of at most %s: %s" % (
        key, percent(one[key]), percent(goal),
        "reached" if one[key] <= goal else "MISSED")
             for key, goal in GOALS.items()]
    return "goals: " + "; ".join(parts)


# --- plots -----------------------------------------------------------------

def datablock(name, rows):
    """Rows as gnuplot's data."""
    return ["$%s << EOD" % name, *(" ".join("%g" % value for value in row)
                                   for row in rows), "EOD"]


def cumulative(values):
    """Points of a distribution; what is below 0.01% is drawn there."""
    ordered = sorted(max(0.01, 100 * value) for value in values)
    count = len(ordered)
    step = max(1, count // 2000)
    return [(ordered[i], 100 * (i + 1) / count)
            for i in range(0, count, step)] + [(ordered[-1], 100)]


def regret_plot(records):
    """Regret distribution: always and adaptive."""
    closed = [record for record in records if record["kind"] != "open"]
    script = []
    for name, key in (("always", "always"), ("adaptive", "regret")):
        script += datablock(name.replace("-", ""),
                            cumulative(field(closed, key)))
    script += MARGINS + [
        plugreport.label("Regret to the best fixed group, %d configurations"
                         % len(closed), "screen 0.09, screen 0.94", 14),
        "set logscale x", "set xrange [0.01:100]", "set yrange [0:100]",
        plugreport.GRID, "set key bottom right", "set xlabel "
        '"regret, % (0.01: that, or less)"',
        'set ylabel "configurations, %"',
        "plot " + ", ".join(
            '$%s with lines lw 2 lc rgb "%s" title "%s"' % (
                name, colour, name) for name, colour in COLOURS.items())]
    return script, SIZE


def step_plot(samples):
    """Group size over time as the device changes."""
    script = datablock("group", [(sample[0] / 1e6, sample[2])
                                 for sample in samples])
    script += MARGINS + [plugreport.label(
        "Group size as the device changes", "screen 0.09, screen 0.94", 14)]
    for number, name in enumerate(PHASES):
        start = number * PHASE_MS
        script += [plugreport.label(name, "first %d, graph 1.04" % start)]
        if number:
            script += ["set arrow from first %d, graph 0 to first %d, graph "
                       '1.08 nohead lc rgb "#888888" dt 2' % (start, start)]
    return script + [
        "set logscale y 2", "set yrange [0.8:40]",
        "set ytics (1, 2, 4, 8, 16, 32)", plugreport.GRID,
        "set xrange [0:%d]" % (PHASE_MS * len(PHASES)), 'set xlabel "ms"',
        'set ylabel "group"', 'plot $group with steps lw 2 lc rgb "%s" notitle'
        % COLOURS["adaptive"]], SIZE


def plots(records):
    """Write both; their paths."""
    made = [("phases", step_plot(simrun.trace(STEPS)))]
    if any(record["kind"] != "open" for record in records):
        made.append(("regret", regret_plot(records)))
    paths = []
    for name, plot in made:
        for suffix in ("svg", "png"):
            paths.append(os.path.join(simrun.OUT, "%s.%s" % (name, suffix)))
            plugreport.write_file(paths[-1], plugreport.render(plot, suffix))
    return paths
