# SPDX-License-Identifier: GPL-2.0
"""What a sweep came to: tables and plots."""
import os

from lab.sim import simconfigs
from lab.sim import simrun
from lab.bench.gnuplot import GRID, quoted, render
from plugtools.report.records import write_file
from plugtools.report.tables import aligned

GOALS = {"mean": 0.005, "p99": 0.03, "worst": 0.10}
SIZE = (760, 420)
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


def mean(values):
    """Of at least one."""
    return sum(values) / len(values)


def summary(values, first=None):
    """Mean, some quantiles, worst. first: what the mean is taken of."""
    if not values:
        return None
    first = first or values
    return {"n": len(values), "mean": mean(first),
            "p50": quantile(values, 0.5), "p90": quantile(values, 0.9),
            "p99": quantile(values, 0.99), "worst": max(values)}


def field(records, name):
    """The values of those that have it."""
    return [record[name] for record in records if name in record]


def closed(records):
    """Those whose throughput is a matter of the group size."""
    return [record for record in records if record["kind"] != "open"]


def summaries(records):
    """Of everything that is a regret.

    Looking again lowers what chance had made large, and leaves what it had
    made small: quantiles are of the second look, the mean of the first.
    """
    some = closed(records)
    rows = {"adaptive": (some, "regret"), "always": (some, "always"),
            "adaptive, second half": (some, "late"),
            **{"adaptive, " + name: (some, key)
               for key, name in simrun.BEGINNINGS.items()}}
    parts = {name: [one for one in some if one["class"] == name]
             for name in simconfigs.CLASSES[:-1]}
    for name, streams in (("random", False), ("some sequential", True)):
        parts[name] = [one for one in some
                       if ("sequential" in one["traits"]) == streams]
    for name, part in parts.items():
        rows[name] = (part, "regret")
        rows[name + ", always"] = (part, "always")
    return {name: summary(field(ones, key), field(ones, "first_" + key))
            for name, (ones, key) in rows.items()}


def by_trait(records):
    """{trait: (n, mean of adaptive, mean of always)}"""
    found = {}
    for record in closed(records):
        for name in record["traits"]:
            found.setdefault(name, []).append(record)
    return {name: (len(some), mean(field(some, "first_regret")),
                   mean(field(some, "first_always")))
            for name, some in sorted(found.items())}


def lines(rows):
    """Rows as text, in columns."""
    return "\n".join(aligned(rows))


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


def trait_table(found):
    """Means of the traits as text."""
    rows = [["regret, mean", "n", "adaptive", "always"]]
    rows += [[name, str(n), percent(adaptive), percent(always)]
             for name, (n, adaptive, always) in found.items()]
    return lines(rows)


def beside_table(records):
    """What adaptive does besides, by class."""
    rows = [["mean", "n", "doorbells/IO", "always", "best", "requests/IO",
             "always", "best"]]
    for name in simconfigs.CLASSES:
        some = [one for one in records if one["class"] == name]
        if some:
            rows.append([name, str(len(some)), *(
                "%.3f" % mean(field(some, key + group))
                for key in ("doorbells", "requests")
                for group in ("", "_always", "_best"))])
    return lines(rows)


def share_table(records):
    """Shares of submitters, where there are some."""
    some = [one for one in closed(records) if "least" in one]
    if not some:
        return "no second submitter"
    rows = [["share of a submitter / under always", "n", "mean", "p1 or p99",
             "worst"]]
    for name, extreme in (("least", min), ("largest", max)):
        values = field(some, name)
        rows.append([name, str(len(values)), *("%.3f" % value for value in (
            mean(values), quantile(values, 0.01 if extreme is min else 0.99),
            extreme(values)))])
    return lines(rows)


def open_table(records):
    """Latency that adaptive adds where the load is given."""
    some = [record for record in records if record["kind"] == "open"]
    rows = [["open loop: adaptive / always", "n", "mean", "p50", "p90", "p99",
             "worst"]]
    for name, key in (("mean latency", "latency"), ("p99 latency", "p99"),
                      *(("p99 latency, " + name, key + "_p99")
                        for key, name in simrun.BEGINNINGS.items())):
        one = summary(field(some, key))
        if one:
            rows.append([name, str(one["n"]), *(
                "%.4f" % one[column] for column in rows[0][2:])])
    return lines(rows) if len(rows) > 1 else "no open loop"


def beginning_table(records):
    """IOPS of adaptive's beginning, which no other figure is made of."""
    rows = [["adaptive / always, IOPS", "n", "mean", "p1", "p10", "p50",
             "worst"]]
    for key, name in simrun.BEGINNINGS.items():
        values = field(closed(records), key + "_to_always")
        if values:
            rows.append([name, str(len(values)), *("%.4f" % value for value in (
                mean(values), quantile(values, 0.01), quantile(values, 0.1),
                quantile(values, 0.5), min(values)))])
    return lines(rows) if len(rows) > 1 else "no beginning"


def replay(record, seed):
    """The command that shows a configuration again."""
    return f"python3 -m lab.sim.sim --seed {seed} --only {record['index']}"


def worst(records, seed, most=10):
    """The worst ones as text."""
    some = sorted(closed(records), key=lambda record: -record["regret"])
    found = ["worst ten:"]
    for record in some[:most]:
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
    some = closed(records)
    script = []
    for name, key in (("always", "always"), ("adaptive", "regret")):
        script += datablock(name.replace("-", ""),
                            cumulative(field(some, key)))
    script += [
        "set title %s" % quoted("Regret to the best fixed group, "
                                "%d configurations" % len(some)),
        "set logscale x", "set xrange [0.01:100]", "set yrange [0:100]",
        GRID, "set key bottom right", "set xlabel "
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
    script += ['set title "Group size as the device changes" offset 0,1']
    for number, name in enumerate(PHASES):
        start = number * PHASE_MS
        script += ["set label %s at first %d, graph 1.04" % (quoted(name),
                                                             start)]
        if number:
            script += ["set arrow from first %d, graph 0 to first %d, graph "
                       '1.08 nohead lc rgb "#888888" dt 2' % (start, start)]
    return script + [
        "set logscale y 2", "set yrange [0.8:40]",
        "set ytics (1, 2, 4, 8, 16, 32)", GRID,
        "set xrange [0:%d]" % (PHASE_MS * len(PHASES)), 'set xlabel "ms"',
        'set ylabel "group"', 'plot $group with steps lw 2 lc rgb "%s" notitle'
        % COLOURS["adaptive"]], SIZE


def plots(records):
    """Write both; their paths."""
    made = [("phases", step_plot(simrun.trace(STEPS)))]
    if closed(records):
        made.append(("regret", regret_plot(records)))
    paths = []
    for name, plot in made:
        for suffix in ("svg", "png"):
            paths.append(os.path.join(simrun.OUT, "%s.%s" % (name, suffix)))
            write_file(paths[-1], render(plot, suffix))
    return paths
