# SPDX-License-Identifier: GPL-2.0
"""What changed between two files, and whether that is a regression.

The files are of different hours: their runs are not paired.
"""
from .intervals import ALPHA, METRICS, correct, ratio
from .records import CELL, ReportError, cell_key, cell_order, describe
from .summary import HEADINGS, figure, groups, stat
from .tables import aligned, figures
from .verdict import interval, percent

NOISE = 0.002                   # relative change that means nothing
GATED = ["iops", "lat_us.p99"]  # what --fail-below is about
COMPARED = [name for name in HEADINGS if name not in ("ratio", "cpu_busy")]


def word_of(one, noise):
    worth = one["ratio"] ** METRICS.get(one["metric"], ("", -1))[1]
    if abs(one["ratio"] - 1) <= noise:
        return "same"
    if one["p"] is None:
        return "differs, one run"
    if one["p_all"] <= ALPHA:
        return "better" if worth > 1 else "worse"
    return "may be chance"


def compare_metric(before, after, metric):
    """A metric of the runs of a cell, before and after, or None."""
    old, new = ([value for value in (figure(one, metric) for one in side)
                 if value is not None] for side in (before, after))
    if not old and not new:
        return None
    found = ratio(new, old, False, metric) if old and new else None
    if not found and stat(old) == stat(new):
        if metric not in GATED:
            return None
        found = {"metric": metric, "word": "same"}  # but nothing is proved
    return dict(zip(CELL, cell_key(after[0])), old=stat(old),
                new=stat(new), **found or {"metric": metric})


def across(old, new):
    """Both records; of two kernels, the old one's "always" as what each policy
    of the new one is to be compared with, and what nomerges=2 gains on the old
    one."""
    kernels = {one["kernel"] for one in new}
    if kernels & {one["kernel"] for one in old} or len(kernels) != 1:
        return old, new
    loads = groups(new, "profile", "workload")
    new = new + [one for one in old if one["policy"] == "nomerges2"
                 and (one["profile"], one["workload"]) in loads]
    kinds = {key: sorted({(one["kernel"], one["policy"]) for one in some})
             for key, some in groups(new, "profile", "workload").items()}
    return [dict(one, kernel=kernel, policy=policy)
            for one in old if one["policy"] == "always"
            for kernel, policy in kinds.get(
                (one["profile"], one["workload"]),
                [(one["kernel"], one["policy"])])], new


def compare(old, new, noise=NOISE):
    """Comparisons of all cells that are in both, one for each metric.

    Without "ratio" are those of which one side was not measured, or is 0."""
    before, after = groups(old, *CELL), groups(new, *CELL)
    common = sorted(before.keys() & after.keys(),
                    key=lambda key: cell_order(dict(zip(CELL, key))))
    if not common:
        raise ReportError("the files have no cell in common; accepted: "
                          "records of the same suite, disk model, workload, "
                          "kernel and policy")
    found = [compare_metric(before[key], after[key], metric)
             for key in common for metric in COMPARED]
    found = [one for one in found if one]
    known = [one for one in found if "ratio" in one]
    for some in groups(known, "kernel").values():
        correct(some)           # what each kernel is asked is for itself
    for one in known:
        one["word"] = word_of(one, noise)
    return found


def missing(some, others):
    known = groups(others, *CELL)
    return [describe(one[0]) for key, one in groups(some, *CELL).items()
            if key not in known]


def interesting(one):
    """Is it what everybody asks for, or a change?"""
    return one["metric"] in GATED or \
        one.get("word") not in ("same", "may be chance")


def row(one):
    return [f"{one['kernel']} {one['policy']}", HEADINGS[one["metric"]],
            *(figures(one[side])[0] for side in ("old", "new")),
            (percent(one["ratio"]), interval(one) if one["low"] else "")
            if "ratio" in one else "-",
            ("", one.get("word", "from or to nothing"))]


def text(found):
    """Before, after, change with its 95% interval, and what that means."""
    shown = [one for one in found if interesting(one)]
    lines = aligned([["", "", "old", "new", "change", ""]] +
                    [row(one) for one in shown])
    said = ["  " + next(lines)]
    for key, group in groups(shown, "suite", "profile", "workload").items():
        said += ["", "{}: {}, {}".format(*key)]
        said += ["  " + next(lines) for _ in group]
    said_of = [one.get("word") for one in found]
    surely = said_of.count("better") + said_of.count("worse")
    return "\n".join(said + [
        "", f"{len(found) - said_of.count('same')} of {len(found)} figures "
        f"differ, {surely} of them beyond the chance of these runs."])


def gate(found, least):
    """What --fail-below finds: (regressions, what cannot be told).

    A regression is worse than it allows, and beyond chance.  p99 counts by
    its inverse, so that less than 1 is worse."""
    failed, unclear = [], []
    for one in found:
        if one["metric"] not in GATED:
            continue
        if "ratio" not in one:  # if there is no I/O any more, there's no doubt
            stopped = one["metric"] == "iops" and \
                one["old"]["mean"] > one["new"]["mean"] == 0
            (failed if stopped else unclear).append(one)
        elif one["p"] is None:
            unclear.append(one)
        elif one["ratio"] ** METRICS[one["metric"]][1] < least:
            (failed if one["word"] == "worse" else unclear).append(one)
    return failed, unclear
