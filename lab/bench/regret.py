# SPDX-License-Identifier: GPL-2.0
"""What "adaptive" loses to the best fixed choice of each device and load.

The largest of a dozen noisy figures is too large on average: so a short run of
each choice, of one seed, says which is the best, and what that is worth is
measured with another, as adaptive and always are. What then looks worse than
its bound is measured again, with some new seeds.
"""
from lab.bench import cells as c

FIXED = c.BASELINES + [("patched", policy) for policy in
                       ("always", "never", "seq-small", *c.GROUPS)]
ALWAYS, ADAPTIVE = c.ALWAYS, c.ADAPTIVE
PROFILES = ["gen4", "gen5", "optane", "vm", "lockstep", "saturated", "null"]
LOADS = c.REGRET
# A load that begins with another: what is best is that of the steady one.
CHANGES = {"change-16k-4k": "rand4k-s32", "change-4k-16k": None}
CHANGING = ["gen4", "gen5", "optane", "vm", "lockstep"]
RATES = ["rand4k-rate40k", "rand4k-rate200k"]
SLOW = ["gen4", "optane"]
RATE_RUNS = 3                   # at least: they take little, and differ little

CHOOSING = 1                    # the run that chooses; others measure
AGAIN_RUNS = 3
BOUND = {c.STEADY: 0.01, c.FIRST: 0.05}
NAMES = {c.STEADY: "settled", c.FIRST: "first 50 ms"}


def cell(pair, profile, workload, run):
    """A cell of a (kernel, policy)."""
    return c.Cell("regret", *pair, profile, workload, run)


def choose(_runs):
    """Who is the best, and what needs no choice."""
    return c.product("regret", FIXED, PROFILES,
                     [load + c.CHOICE for load in LOADS], CHOOSING)


def pair_of(record):
    """(kernel, policy) as cells name them."""
    if record["policy"] == "noplug":
        return "noplug", "noplug"
    return record["kernel"], record["policy"]


def best(records):
    """{(profile, load): pair}; the first of those that are equal."""
    found = {}
    for record in records:
        if record["workload"].endswith(c.CHOICE):
            key = record["profile"], record["workload"][:-len(c.CHOICE)]
            iops = record["iops"]
            if key not in found or iops > found[key][0]:
                found[key] = iops, pair_of(record)
    return {key: pair for key, (_, pair) in found.items()}


def measured(records):
    """{(profile, workload): pair}: what is measured, with its best choice."""
    chosen = best(records)
    found = {}
    for (profile, load), pair in chosen.items():
        found[profile, load + c.STEADY] = pair
        if load != "phase-change":
            found[profile, load + c.FIRST] = pair
    for load, steady in CHANGES.items():
        for profile in CHANGING:
            found[profile, load] = chosen.get((profile, steady), ALWAYS)
    return found


def pairs(pair):
    """Policies of a cell, each once."""
    return list(dict.fromkeys([ALWAYS, pair, ADAPTIVE]))


def measure(records, runs):
    """The best, always and adaptive, of new seeds."""
    seeds = range(CHOOSING + 1, CHOOSING + 1 + runs)
    more = range(CHOOSING + 1, CHOOSING + 1 + max(runs, RATE_RUNS))
    return [cell(one, profile, workload, seed)
            for (profile, workload), pair in measured(records).items()
            for seed in seeds for one in pairs(pair)] + [
        cell(one, profile, load, seed) for profile in SLOW for load in RATES
        for seed in more for one in (ALWAYS, ADAPTIVE)] + [
        cell(one, "hdd", "rand4k-s32", CHOOSING + 1)
        for one in (ALWAYS, ADAPTIVE)]


def bound(workload):
    """What is accepted."""
    return next((value for end, value in BOUND.items()
                 if workload.endswith(end)), BOUND[c.FIRST])


def again(records, runs):
    """What looks worse than its bound, of more seeds."""
    first = CHOOSING + 1 + runs
    return [cell(one, row["profile"], row["workload"], seed)
            for row in rows(records) if row["regret"] > bound(row["workload"])
            for seed in range(first, first + AGAIN_RUNS)
            for one in pairs(row["best"])]


def iops(records, pair, key, runs=None):
    """Sum over the runs that measure."""
    return sum(record["iops"] for record in records
               if (record["profile"], record["workload"]) == key
               and pair_of(record) == pair
               and (record["run"] in runs if runs else
                    record["run"] > CHOOSING))


def loss(records, pair, row, runs=None):
    """Of a pair to the best."""
    key = row["profile"], row["workload"]
    return 1 - iops(records, pair, key, runs) / iops(records, row["best"], key,
                                                     runs)


def rows(records):
    """A row per cell: who is the best, what adaptive and always lose (always
    less than nothing, where it was the better choice after all); `look` is
    what the first run said, which all cells have."""
    found = []
    for (profile, workload), pair in measured(records).items():
        row = {"profile": profile, "workload": workload, "best": pair}
        if not iops(records, ADAPTIVE, (profile, workload)):
            continue
        row.update(regret=loss(records, ADAPTIVE, row),
                   always=loss(records, ALWAYS, row),
                   look=loss(records, ADAPTIVE, row, {CHOOSING + 1}),
                   look_always=loss(records, ALWAYS, row, {CHOOSING + 1}),
                   runs=len({record["run"] for record in records
                             if record["run"] > CHOOSING and
                             (record["profile"], record["workload"]) ==
                             (profile, workload)}))
        found.append(row)
    return found


def line(row):
    """A row, as text."""
    return "%-9s %-24s %-20s %9.2f%% %9.2f%%  %d%s" % (
        row["profile"], row["workload"], " ".join(dict.fromkeys(row["best"])),
        100 * row["regret"], 100 * row["always"], row["runs"],
        "  ABOVE" if row["regret"] > bound(row["workload"]) else "")


def total(name, some):
    """What the cells of a kind come to."""
    worst = max(some, key=lambda row: row["regret"])
    above = sum(row["regret"] > bound(row["workload"]) for row in some)
    return ("%s: mean %.2f%% (always %.2f%%), worst %.2f%% (%s %s), "
            "%d of %d cells above %g%%" % (
                name, 100 * sum(row["look"] for row in some) / len(some),
                100 * sum(row["look_always"] for row in some) / len(some),
                100 * worst["regret"], worst["profile"], worst["workload"],
                above, len(some), 100 * bound(some[0]["workload"])))


def mean_latency(records, pair, profile, load, name):
    """Over the runs."""
    found = [record["lat_us"][name] for record in records
             if (record["profile"], record["workload"]) == (profile, load)
             and pair_of(record) == pair]
    return sum(found) / len(found) if found else None


def slow(records):
    """Latency at low rate, as lines."""
    lines = []
    for profile in SLOW:
        for load in RATES:
            parts = []
            for name in ("mean", "p99"):
                own, always = (mean_latency(records, pair, profile, load, name)
                               for pair in (ADAPTIVE, ALWAYS))
                if own and always:
                    parts.append("%s %.2f us, always %.2f (%+.2f%%)" % (
                        name, own, always, 100 * (own / always - 1)))
            if parts:
                lines.append("%s %s: %s" % (profile, load, "; ".join(parts)))
    return lines


def elevator(records):
    """A disk with mq-deadline, as a line."""
    own, always = (sum(record["iops"] for record in records
                       if record["profile"] == "hdd"
                       and pair_of(record) == pair)
                   for pair in (ADAPTIVE, ALWAYS))
    return ["hdd rand4k-s32: %.1f IOPS, always %.1f" % (own, always)
            ] if own and always else []


def text(_summary, records):
    """The regret of all cells, as lines."""
    found = rows(records)
    lines = ["%-9s %-24s %-20s %10s %10s  runs" % (
        "profile", "workload", "best fixed choice", "adaptive", "always")]
    lines += map(line, found)
    kinds = {name: [row for row in found if row["workload"].endswith(end)]
             for end, name in NAMES.items()}
    kinds["from a change"] = [row for row in found
                              if row["workload"] in CHANGES]
    return lines + [total(name, some) for name, some in kinds.items()
                    if some] + slow(records) + elevator(records)
