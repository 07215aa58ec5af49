# SPDX-License-Identifier: GPL-2.0
"""What trips the guard of plugroll try, and what does not; and the figures that
it judges by."""
import itertools
import random

import pytest

from plugtools.core.disks import Disk
from plugtools.roll import guard, meter, trial

START = meter.Counters(0, 0, 0, 0)
OFTEN = (1000, 1000)
NO_IO = (1000, 0)


def changes(*values, metric="iops"):
    """Pairs of blocks with these changes, while the load drifts."""
    return [({metric: base}, {metric: base * (1 + value)})
            for base, value in enumerate(values, 10)]


def block(ios, requests=None, times=()):
    return meter.figures(START, meter.Counters(1, ios, requests or ios, ios),
                         times)


def pairs(*ios):
    """Pairs of blocks with so many I/Os."""
    return [(block(old), block(new)) for old, new in ios]


# --- tripped() ---------------------------------------------------------------
@pytest.mark.parametrize("values, metric, limit, why", [
    # beyond the limit, and the same each time
    ((-.07, -.08, -.075), "iops", -.05, "iops by -7.5% (-10.3 to -4.6), the "
     "limit is -5%"),
    # response times may rise, not fall
    ((.2, .21, .2), "p99", .05, "p99 by +20.3% (+17.1 to +23.7), the limit is "
     "+5%"),
    # however clear, two pairs may be the load
    ((-.5, -.5), "iops", -.05, None),
    # beyond the limit on average, but not for sure; for sure, but within it
    ((-.3, .2, -.2), "iops", -.05, None),
    ((-.04, -.041, -.04), "iops", -.05, None),
    # gains
    ((.2, .21, .2), "iops", -.05, None), ((-.2, -.21, -.2), "mean", .05, None),
    ((-.2, -.21, -.2), "p99", .05, None)])
def test_tripped(values, metric, limit, why):
    assert guard.tripped(changes(*values, metric=metric),
                         {metric: limit}) == why


@pytest.mark.parametrize("limits, why", [
    ({"iops": -.02}, "not ruled out"), ({"iops": -.5}, None),
    ({"p99": .1}, "too few")])
def test_undecided(limits, why):
    """An interval that reaches beyond the limit decides nothing."""
    found = guard.undecided(changes(-.05, .05, .04, -.04), limits)
    assert found is None if why is None else why in found


def test_metric_of_most_pairs():
    """One that few pairs have has not been guarded."""
    times = range(1000)
    known = [(block(4000, times=times), block(4000, times=times))] * 4
    limits = {"p99": .1, "iops": -.02}
    assert guard.undecided(known + [(block(4000), block(4000))], limits) is None
    assert guard.undecided(known + [(block(4000), block(4000))] * 26,
                           limits) == "p99 is known of 4 of 30 pairs only"


@pytest.mark.parametrize("limits", [{"iops": -.05},
                                    {"iops": -.05, "mean": .05}])
def test_idle_old_block_hides_nothing(limits):
    found = pairs((0, 1000), *[(1000, 500 + count) for count in range(9)])
    assert "iops by -49" in guard.tripped(found, limits)


def test_more_chance_of_more_disks_and_metrics():
    found = pairs(*[(1000, 900 + step) for step in (0, 12, 24)])
    assert guard.tripped(found, {"iops": -.05})
    assert not guard.tripped(found, {"iops": -.05, "mean": .05, "p99": .05})
    assert not guard.tripped(found, {"iops": -.05}, 8)


# --- collapse() --------------------------------------------------------------
@pytest.mark.parametrize("ios, disks, stops", [
    ([NO_IO], 1, None), ([(1000, 50)], 1, None), ([(1000, 99)], 1, None),
    ([NO_IO, OFTEN, NO_IO], 1, "2 of 3"),
    ([(1000, 50), OFTEN, (1000, 50)], 1, "2 of 3"),
    ([(1000, 99), OFTEN, (1000, 99)], 1, "2 of 3"),
    # of 24 disks, one is idle at the wrong times by chance
    ([NO_IO] * 6, 24, None), ([NO_IO] * 7, 24, "7 of 7"),
    # a load that is idle in the old mode, too, proves nothing; but one such
    # pair is no excuse for good
    ([NO_IO] * 6 + [(0, 1000)], 1, None),
    ([NO_IO] * 6 + [(0, 1000), NO_IO], 1, "7 of 8")])
def test_collapse(ios, disks, stops):
    assert guard.collapse(pairs(*ios), {"mean": .05}, disks) == (
        stops and f"collapse: in {stops} pairs next to no I/O with it")


@pytest.mark.parametrize("old, new, limits, collapses", [
    # a tenth of the I/Os, and too few for a percentile
    (block(4000, times=range(600)), block(450), {"p99": .1}, True),
    # only the percentile is missing
    (block(4000, times=range(600)), block(2900), {"p99": .1}, False),
    # a mode that merges needs fewer requests for the same I/Os
    (block(32000), block(32000, requests=1000), {"mean": .05}, False)])
def test_collapse_of_figures(old, new, limits, collapses):
    assert bool(guard.collapse([(old, new)] * 3, limits)) == collapses


# --- the rest ----------------------------------------------------------------
def test_order_of_modes():
    """Of four pairs each mode leads two, and not in a fixed order."""
    drawn = list(itertools.islice(trial.leaders(random.Random(2)), 400))
    fours = [tuple(drawn[start:start + 4]) for start in range(0, 400, 4)]
    assert {sum(four) for four in fours} == {2}
    assert len(set(fours)) == 6


def test_figures(host):
    """A merged I/O is an I/O. The 99th percentile of 1000, while too few have
    none; and the kernel shows 32 bits of the time."""
    assert block(32000, 1000)["iops"] == block(32000, 32000)["iops"]
    host.disk("nvme0n1", files={"stat": "10 5 1 7 20 6 1 8 0 0 0 9 9 9 9 9 9"})
    assert meter.counters(Disk("nvme0n1"))[1:] == (41, 30, 15)
    assert block(5000, times=range(1000))["p99"] == .99
    assert "p99" not in block(5000, times=range(400))
    old = meter.Counters(0, 0, 0, (1 << 32) - 100)
    assert meter.figures(old, meter.Counters(1, 500, 500, 400))["mean"] == 1
