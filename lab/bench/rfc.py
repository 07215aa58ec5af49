# SPDX-License-Identifier: GPL-2.0
"""The RFC's two tables beside ours, and what our model predicts of them."""
import math

from scripts import kernel

# Which kernel takes tags as the RFC's did: Linux 6.12 itself, and of a later one
# that with baselines/rfcera.patch.
ERA = "unpatched" if kernel.KVER == "6.12" else "rfcera"

# 000_d48dc4a92b9d714b.txt: reads a second with plug, without merge, without
# plug. The plug column of both kinds is what the profiles are fitted to.
TABLES = {("gen4", "seq128k-s32"): (50100, 50133, 50125),
          ("gen4", "rand4k-s32"): (821000, 824000, 836000),
          ("gen5", "seq128k-s32"): (88938, 89832, 89869),
          ("gen5", "rand4k-s32"): (1020000, 1022000, 1060000)}
COLUMNS = [("plug", "unpatched", "always"),
           ("no merge", "unpatched", "nomerges2"),
           ("no plug", "unpatched", "noplug"),
           *([("rfcera", ERA, "always")] if ERA == "rfcera" else [])]
# By how many points a prediction may differ before we call it a miss, of
# random and of sequential reads; set before anything was measured.
WITHIN = {"rand4k-s32": 0.5, "seq128k-s32": 1.1}


def percent(value, base):
    """The gain over a base, in percent."""
    return 100 * (value / base - 1)


def row(title, values, base):
    """One line: the base in IOPS, the others as gains over it."""
    cells = ["%10d" % base]
    cells += ["%11s" % ("-" if value is None else
                        "%+.2f%%" % percent(value, base))
              for value in values]
    return "%-22s%s" % (title, "".join(cells))


def lookup(summary):
    """{(profile, workload, kernel, policy): cell}."""
    return {(cell["profile"], cell["workload"], cell["kernel"],
             cell["policy"]): cell for cell in summary}


def relative_error(cell):
    """The standard error of a cell's mean IOPS, in percent."""
    one = cell["iops"]
    return 100 * (one["sd"] or 0) / one["mean"] / math.sqrt(one["n"])


def gain(cell, base):
    """(percent, its standard error) that a cell gains over a base."""
    return (percent(cell["iops"]["mean"], base["iops"]["mean"]),
            math.hypot(relative_error(cell), relative_error(base)))


def verdict(key, known):
    """Whether the prediction of the no-plug column came true. The RFC's kernel
    took tags as ERA does, so that is what to compare with."""
    plug, _, without = TABLES[key]
    theirs = percent(without, plug)
    noplug = known[(*key, "unpatched", "noplug")]
    then, error = gain(noplug, known[(*key, ERA, "always")])
    now, error_now = gain(noplug, known[(*key, "unpatched", "always")])
    miss = abs(then - theirs) > WITHIN[key[1]]
    return ("%s %s: without a plug %+.2f%% in the RFC, %+.2f%% +-%.2f predicted"
            " for its kernel (%s): %s %.1f points. For this one: %+.2f%% "
            "+-%.2f." % (*key, theirs, then, error, ERA,
                         "NOT within" if miss else "within",
                         WITHIN[key[1]], now, error_now))


def text(summary, _records):
    """The comparison, as lines, of what was measured."""
    known = lookup(summary)
    names = [name for name, kernel, policy in COLUMNS
             if any(key[2:] == (kernel, policy) for key in known)]
    lines = ["%-22s%10s%s" % ("", names[0],
                              "".join("%11s" % name for name in names[1:]))]
    for key, (plug, unmerged, without) in TABLES.items():
        if (*key, "unpatched", "always") not in known:
            continue
        lines.append(row("%s %s RFC" % key, [unmerged, without], plug))
        found = [known.get((*key, kernel, policy))
                 for name, kernel, policy in COLUMNS if name in names]
        values = [cell and cell["iops"]["mean"] for cell in found]
        lines.append(row("%s %s" % key, values[1:], values[0]))
    return lines + [verdict(key, known) for key in TABLES
                    if (*key, ERA, "always") in known
                    and (*key, "unpatched", "noplug") in known]
