# SPDX-License-Identifier: GPL-2.0
"""How sure a ratio is: 95% intervals by Student's t on the logarithms.

t and not the bootstrap, as runs are few: a bootstrap of five values draws from
these five alone, and its intervals are too narrow.  Logarithms, as a ratio and
its inverse must be judged alike; the ratio is that of the geometric means.
"""
import functools
import math
import statistics

ALPHA = 0.05
MOST = 200                      # further runs; nobody adds more
WIDEST = 100                    # of an interval's logarithm: as good as none
BUCKET = 1 / 64                 # fio rounds percentiles to so much

# metric: (heading, 1 if more is better, what is too small to be measured)
METRICS = {"iops": ("IOPS", 1, 0.002),
           "lat_us.p50": ("p50", -1, BUCKET),
           "lat_us.p99": ("p99", -1, BUCKET),
           "lat_us.p999": ("p99.9", -1, BUCKET),
           "cpu_us_per_io": ("CPU per I/O", -1, 0.002)}


def tail(value, freedom):
    """Chance that |t| is larger; exact for whole degrees of freedom."""
    angle = math.atan(abs(value) / math.sqrt(freedom))
    cosine = math.cos(angle)
    power = freedom % 2
    term, total = cosine ** power, 0.0
    while power <= freedom - 2:
        total += term
        term *= cosine ** 2 * (power + 1) / (power + 2)
        power += 2
    inside = math.sin(angle) * total
    if freedom % 2:
        inside = (angle + inside) * 2 / math.pi
    return max(0.0, 1 - inside)


@functools.lru_cache(maxsize=None)
def quantile(alpha, freedom):
    """The t beyond which, on both sides, lies alpha."""
    low, high = 0.0, 1.0
    while tail(high, freedom) > alpha and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if tail(middle, freedom) > alpha:
            low = middle
        else:
            high = middle
    return high


def spread(new, old, paired):
    """Of a difference of means: (standard error, degrees of freedom).

    Not paired: Welch's, as a mode may scatter more than another."""
    if paired:
        steps = [a - b for a, b in zip(new, old)]
        return statistics.stdev(steps) / math.sqrt(len(steps)), len(steps) - 1
    parts = [statistics.variance(side) / len(side) for side in (new, old)]
    if not sum(parts):
        return 0.0, len(new) + len(old) - 2
    freedom = sum(parts) ** 2 / sum(
        part ** 2 / (len(side) - 1) for part, side in zip(parts, (new, old)))
    return math.sqrt(sum(parts)), max(1, min(MOST, int(freedom)))


def ratio(new, old, paired, metric):
    """new to old, two lists of figures, with its interval; None if 0.

    With one run of a side there is no interval: low, high and p are null."""
    if not new or not old or min(new + old) <= 0:
        return None
    new = [math.log(value) for value in new]
    old = [math.log(value) for value in old]
    change = statistics.fmean(new) - statistics.fmean(old)
    found = {"metric": metric, "ratio": math.exp(change), "low": None,
             "high": None, "p": None, "error": None,
             "n": min(len(new), len(old))}
    if found["n"] > 1:
        error, freedom = spread(new, old, paired)
        finest = math.log1p(METRICS[metric][2] if metric in METRICS else 0.002)
        # Rounded figures that agree by chance do not prove anything.
        error = max(error, finest / math.sqrt(6 * found["n"]))
        half = min(max(quantile(ALPHA, freedom) * error, finest), WIDEST)
        found.update(
            low=math.exp(change - half), high=math.exp(change + half),
            error=error, p=1.0 if abs(change) <= finest else
            tail(change / error, freedom))
    return found


def correct(comparisons):
    """Holm's guard: of many comparisons, 5% would differ by chance alone.

    p_all is p made larger so that the chance of any false difference, of all
    that are compared here, is at most ALPHA."""
    known = [one for one in comparisons if one["p"] is not None]
    least = 0.0
    for rank, one in enumerate(sorted(known, key=lambda one: one["p"])):
        least = max(least, min(1.0, one["p"] * (len(known) - rank)))
        one["p_all"] = least
    return len(known)


def judge(one, margin):
    """better, worse, same (within the margin), or open; None: one run."""
    if one["p"] is None:
        return None
    worth = one["ratio"] ** METRICS[one["metric"]][1]
    if one["p_all"] <= ALPHA:
        return "better" if worth > 1 else "worse"
    inside = 1 / (1 + margin) <= one["low"] and one["high"] <= 1 + margin
    return "same" if inside else "open"


def safe(one, margin):
    """Is it sure enough that the ratio is not worse than the margin?"""
    if METRICS[one["metric"]][1] > 0:
        return one["low"] >= 1 / (1 + margin)
    return one["high"] <= 1 + margin


def enough(one, margin, tests):
    """How many runs would do, if they scatter as these: the interval is then
    within the margin, or, corrected for the tests, beyond 1."""
    change = abs(math.log(one["ratio"]))
    scatter = one["error"] * math.sqrt(one["n"])
    room = math.log1p(margin) - change
    for runs in range(one["n"] + 1, one["n"] + MOST):
        error = scatter / math.sqrt(runs)
        if quantile(ALPHA, runs - 1) * error <= room or \
           quantile(ALPHA / tests, runs - 1) * error <= change:
            return runs
    return one["n"] + MOST
