# SPDX-License-Identifier: GPL-2.0
"""The verdict: which mode to use, that there is no difference, or that the
runs are too few to tell.

A mode is recommended if it is better than the baseline in IOPS, p99 or CPU per
I/O, worse in none, and sure to be at most a margin worse in each.  "No
difference" needs intervals within the margins.  Baseline: as summarise() says.
"""
import math

from .intervals import ALPHA, METRICS, correct, enough, judge, ratio, safe
from .records import CELL, cell_key, cell_order
from .summary import figure, groups, is_baseline, summarise
from .tables import aligned

# What decides, and the change that an administrator would not care for.
MARGINS = {"iops": 0.02, "lat_us.p99": 0.10, "cpu_us_per_io": 0.05}
FIRST = 5                       # runs to begin with
HOPELESS = 100                  # runs that nobody will add
METHOD = ("95% intervals of the ratio of geometric means: Student's t of the "
          "logarithms, paired by round where runs are paired, else Welch's. "
          "better and worse hold against all comparisons together (Holm).")


def mode_of(cell):
    """The name of a mode; the kernel is part of it unless it is ours."""
    return " ".join(part for part in (cell["kernel"], cell["policy"])
                    if part != "patched")


def by_round(records, metric):
    """{round: figure} of the runs of a cell that have it."""
    found = {(one["run"], one.get("seed")): figure(one, metric)
             for one in records}
    return {key: value for key, value in found.items() if value is not None}


def compare_runs(ours, base, metric):
    """What ratio() says of two cells' records, and whether they are "paired":
    runs of one round are compared with each other, where two or more are; None
    if there is nothing to compare."""
    new, old = by_round(ours, metric), by_round(base, metric)
    both = [key for key in new if key in old]
    paired = len(both) > 1
    if paired:
        new, old = ({key: side[key] for key in both} for side in (new, old))
    found = ratio(list(new.values()), list(old.values()), paired, metric)
    return found and {"paired": paired, **found}


def compare_cell(cell, ours, base):
    for metric in METRICS:
        found = compare_runs(ours, base, metric)
        if found:
            yield dict(zip(CELL, cell_key(cell)), mode=mode_of(cell), **found)


def comparisons(records):
    """(all comparisons, names of the baselines), judged."""
    cells = summarise(records)
    runs = groups(records, *CELL)
    found = []
    for group in groups(cells, "suite", "profile", "workload").values():
        base = next(filter(is_baseline, group), None)
        for cell in group if base else []:
            if cell is not base:
                found += compare_cell(cell, runs[cell_key(cell)],
                                      runs[cell_key(base)])
    deciding = [one for one in found if one["metric"] in MARGINS]
    tests = correct(deciding)
    for one in deciding:
        one["judgement"] = judge(one, MARGINS[one["metric"]])
        if one["judgement"] == "open":
            one["enough"] = enough(one, MARGINS[one["metric"]], tests)
    return found, {mode_of(cell) for cell in cells if is_baseline(cell)}


def recommended(some):
    """Is a mode better somewhere, and sure to be bad nowhere?"""
    found = {one["judgement"] for one in some}
    return "better" in found and "worse" not in found and all(
        one["judgement"] == "better" or safe(one, MARGINS[one["metric"]])
        for one in some if one["judgement"])


def gain(some):
    """By which to choose among modes that are all recommended."""
    return sum(math.log(one["ratio"]) for one in some
               if one["metric"] == "iops")


def runs_lacking(modes):
    """How many more runs would do, if above 0, of modes that may be better.

    Of a mode that is worse somewhere nobody needs to know more."""
    good = [some for some in modes.values()
            if "worse" not in {one["judgement"] for one in some}]
    return max((one.get("enough", FIRST if one["judgement"] is None else 0)
                - one["n"] for some in good for one in some), default=0)


def decide(found, base):
    modes = {key[0]: some for key, some in groups(
        [one for one in found if one["metric"] in MARGINS], "mode").items()}
    good = [name for name, some in modes.items() if recommended(some)]
    more = runs_lacking(modes)
    if good:
        name = max(good, key=lambda name: gain(modes[name]))
        return "use", name, 0, reasons(modes[name])
    if more > 0:
        return "not enough runs", None, more, (
            f"about {more} more would do" if more <= HOPELESS else
            f"more than {HOPELESS} more are needed; does other work disturb "
            "them?")
    if any(one["judgement"] in ("better", "worse")
           for some in modes.values() for one in some):
        return "use", base, 0, "no mode is better and nowhere worse"
    return "no difference", None, 0, ", ".join(
        f"{METRICS[metric][0]} within {100 * margin:g}%"
        for metric, margin in MARGINS.items())


def opinion(profile, workload, found, base):
    decision, mode, more, why = decide(found, base)
    return {"suite": found[0]["suite"], "profile": profile,
            "workload": workload, "decision": decision, "mode": mode,
            "more_runs": more,
            "text": f"{f'use {mode}' if mode else decision}: {why}"}


def percent(value):
    return f"{100 * (value - 1):+.1f}%"


def interval(one):
    return f"({percent(one['low'])[:-1]} to {percent(one['high'])[:-1]})"


def reasons(some):
    """Where a mode is better: by how much, or, of many workloads, in which."""
    names = list(groups(some, "workload"))
    better = [one for one in some if one["judgement"] == "better"]
    if len(names) > 1:
        where, once = (", ".join(name for (name,) in groups(part, "workload"))
                       for part in (better, [one for one in some
                                             if not one["judgement"]]))
        return f"IOPS {percent(math.exp(gain(some) / len(names)))} in the " \
            f"mean of {len(names)} workloads; better in {where}; worse in " \
            "none" + f", but {once} had one run" * bool(once)
    return "; ".join(f"{METRICS[one['metric']][0]} {percent(one['ratio'])} "
                     f"{interval(one)}" for one in better)


def of(records):
    """The verdict on records, as plugbench's JSON has it; None without a
    baseline to compare with."""
    found, bases = comparisons(records)
    if not found:
        return None
    lines = []
    base = " or ".join(sorted(bases))
    for (_, profile), group in groups(found, "suite", "profile").items():
        parts = [(key[0], some) for key, some in groups(
            group, "workload").items()]
        if len(parts) > 1:
            parts.append((None, group))
        lines += [opinion(profile, workload, some, base)
                  for workload, some in parts]
    return {"baseline": base, "confidence": 1 - ALPHA, "method": METHOD,
            "margins": MARGINS, "comparisons": found, "verdicts": lines}


def told_apart(verdict):
    """Whether profiles are named: if there are several, or if it is for one
    nomerges, which need not be the host's."""
    profiles = {one["profile"] for one in verdict["verdicts"]}
    return len(profiles) > 1 or any(", nomerges=" in one for one in profiles)


def lines_of(verdict):
    """One line for each workload, and one for all."""
    if not verdict:
        return []
    named = told_apart(verdict)
    rows = [[(one["profile"] + ": " if named else "") +
             (one["workload"] or "all workloads"), one["text"]]
            for one in verdict["verdicts"]]
    return [row.rstrip() for row in aligned(rows)]


def sentences(verdict):
    """What to do, once for each profile."""
    found = groups(verdict["verdicts"], "suite", "profile")
    for (_, profile), some in found.items():
        words = some[-1]["text"]
        yield f"{profile}: " * told_apart(verdict) + \
            f"{words[0].upper()}{words[1:]}" + "." * (words[-1] != "?")


def cell_text(one):
    """A comparison in a table: the change, and how sure it is."""
    if one is None:
        return "-", ""
    if one["low"] is None:
        return percent(one["ratio"]), ""
    sign = {"better": " +", "worse": " !", "open": " ?"}
    return percent(one["ratio"]), interval(one) + sign.get(
        one.get("judgement"), "")


def rows_of(verdict):
    """[(profile, workload, mode, comparisons)] with one, or None, for each
    metric."""
    for key, some in groups(sorted(verdict["comparisons"], key=cell_order),
                            "profile", "workload", "mode").items():
        metrics = {one["metric"]: one for one in some}
        yield key + ([metrics.get(name) for name in METRICS],)


def heading(verdict):
    return f"Change from {verdict['baseline']}, with 95% intervals. +: " \
        "better, !: worse, ?: more runs are needed."


def table(verdict, verbose=True):
    """The verdict as text, and what it is drawn from."""
    if not verdict:
        return "no verdict: nothing to compare with"
    said = ["Verdict:"] + ["  " + line for line in lines_of(verdict)]
    if not verbose:
        return "\n".join(said)
    rows = [["", "mode"] + [one[0] for one in METRICS.values()]]
    rows += [[workload, mode, *map(cell_text, found)]
             for _, workload, mode, found in rows_of(verdict)]
    return "\n".join([heading(verdict), "", *aligned(rows), "", *said])
