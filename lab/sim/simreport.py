# SPDX-License-Identifier: GPL-2.0
"""What a sweep came to, as tables."""
from statistics import fmean

from lab.sim import opens, simconfigs, simrun
from plugtools.report.tables import aligned

GOALS = {"mean": 0.005, "p99": 0.03, "worst": 0.10}
NOTHING = 0.003                 # what always loses where nothing is to gain
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def quantile(values, part):
    """The value below which so many lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def summary(values, first=None):
    """Mean, some quantiles, worst. first: what the mean is taken of."""
    return values and {"n": len(values), "mean": fmean(first or values), **{
        name: quantile(values, part) for name, part in QUANTILES.items()},
        "worst": max(values)}


def field(records, name):
    return [record[name] for record in records if name in record]


def closed(records):
    """Those whose throughput is a matter of the group size."""
    return [record for record in records if record["kind"] != "open"]


def summaries(records):
    """{name: summary} of everything that is a regret.

    Looking again lowers what chance had made large, and leaves what it had
    made small: quantiles are of the second look, the mean of the first."""
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
        rows.update({name: (part, "regret"), name + ", always": (part, "always")})
    return {name: summary(field(ones, key), field(ones, "first_" + key))
            for name, (ones, key) in rows.items()}


def trait_table(records):
    by_trait = {}
    for record in closed(records):
        for name in record["traits"]:
            by_trait.setdefault(name, []).append(record)
    return [["regret, mean", "n", "adaptive", "always"]] + [
        [name, len(some), *(fmean(field(some, "first_" + key))
                            for key in ("regret", "always"))]
        for name, some in sorted(by_trait.items())]


def ratio_table(head, rows, *parts):
    """Ratios to always: their mean, quantiles, and the worst, which is the
    largest unless the first part is below a half."""
    worst = min if parts[0] < 0.5 else max
    return [[head, "n", "mean", *(f"p{100 * part:g}" for part in parts),
             "worst"]] + [
        [name, len(values), fmean(values), *(quantile(values, part)
                                             for part in parts), worst(values)]
        for name, values in rows.items() if values]


def beside_table(records):
    """What adaptive does besides, by class."""
    by_class = {name: [one for one in records if one["class"] == name]
                for name in simconfigs.CLASSES}
    return [["mean", "n", "doorbells/IO", "always", "best", "requests/IO",
             "always", "best"]] + [
        [name, len(some), *(fmean(field(some, key + group))
                            for key in ("doorbells", "requests")
                            for group in ("", "_always", "_best"))]
        for name, some in by_class.items() if some]


def ratio_tables(records):
    some = closed(records)
    opened = [record for record in records if record["kind"] == "open"]
    bells = [one["doorbells"] / one["doorbells_always"] for one in some
             if one["always"] < NOTHING and one["doorbells_always"]]
    return [
        ratio_table("adaptive / always, IOPS", {
            name: field(some, key + "_to_always")
            for key, name in simrun.BEGINNINGS.items()}, 0.01, 0.1, 0.5),
        ratio_table("doorbells: adaptive / always", {
            "nothing to gain": bells}, 0.5, 0.99),
        ratio_table("share of a submitter / under always", {
            "least": field(some, "least")}, 0.01),
        ratio_table("share of a submitter / under always", {
            "largest": field(some, "largest")}, 0.99),
        ratio_table("open loop: adaptive / always", {
            "mean latency": field(opened, "latency"),
            "p99 latency": field(opened, "p99"),
            **{f"p99 latency, {name}": field(opened, key + "_p99")
               for key, name in simrun.BEGINNINGS.items()}}, 0.5, 0.9, 0.99)]


def ratios(records, key, worst=max):
    """Mean and worst of a ratio."""
    values = field(records, key)
    return [fmean(values), worst(values)]


def against_always(records):
    """What opens.py measures, by shape, as tables; printed, and returned for
    the file."""
    found = {}
    for part, shapes in (("open", opens.SHAPES), ("changing", opens.CHANGING)):
        rows = {name: [one for one in records if one["shape"] == name]
                for name in shapes}
        rows["all"] = sum(rows.values(), [])
        found[part] = {name: {
            "n": len(some), **{key: ratios(some, key) for key in (
                "latency", "p99", "doorbells")},
            "iops": ratios(some, "iops", min), "slower_by_1%": sum(
                one["iops"] < 0.99 for one in some) / len(some)}
            for name, some in rows.items() if some}
        print("\n" + lines([[f"{part}: adaptive / always", "n", *(
            word for name in ("mean latency", "p99 latency", "doorbells/IO",
                              "IOPS") for word in (name, "worst")),
            "IOPS < 0.99"]] + [[name, one["n"], *one["latency"], *one["p99"],
                                *one["doorbells"], *one["iops"],
                                one["slower_by_1%"]]
                               for name, one in found[part].items()],
            "{:.3f}".format))
    return found


def lines(rows, number="{:.4f}".format):
    rows = [[cell if isinstance(cell, str) else str(cell) if isinstance(
        cell, int) else number(cell) for cell in row] for row in rows]
    return "\n".join(aligned(rows))


def percent(value):
    return f"{100 * value:.2f}%"


def worst(records, seed, most=10):
    some = sorted(closed(records), key=lambda one: -one["regret"])
    return "\n".join(["worst ten:"] + [
        f"{percent(one['regret']):>7}  best {one['best']:2}, adaptive ends at "
        f"{one['final']:g} (always: {percent(one['always'])})  "
        f"python3 -m lab.sim.sim --seed {seed} --only {one['index']}"
        for one in some[:most]])


def goals(found):
    one = found["adaptive"]
    return "goals: " + "; ".join(
        f"{key} {percent(one[key])} of at most {percent(goal)}: "
        f"{'reached' if one[key] <= goal else 'MISSED'}"
        for key, goal in GOALS.items()) if one else "goals: nothing to judge"


def report(records, seed):
    """What all of it says; printed, and returned for the file."""
    found, traits = summaries(records), trait_table(records)
    regrets = [["regret", "n", "mean", *QUANTILES, "worst"]] + [
        [name, *one.values()] for name, one in found.items() if one]
    print("\n\n".join(["", lines(regrets, percent),
                       lines(traits, percent),
                       lines(beside_table(records), "{:.3f}".format),
                       *(lines(rows) for rows in ratio_tables(records)
                         if len(rows) > 1),
                       worst(records, seed), goals(found)]))
    return {"regret": found, "traits": traits[1:], "goals": goals(found)}
