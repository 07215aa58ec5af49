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


def row(title, base, *values):
    """The base in IOPS, the others as gains over it."""
    gains = ["-" if value is None else f"{percent(value, base):+.2f}%"
             for value in values]
    return f"{title:<22}{int(base):10}" + "".join(f"{gain:>11}" for gain in gains)


def relative_error(cell):
    """The standard error of a cell's mean IOPS, in percent."""
    one = cell["iops"]
    return 100 * (one["sd"] or 0) / one["mean"] / math.sqrt(one["n"])


def gain(cell, base):
    """What a cell gains over a base, and the standard error of that, as text;
    and in percent."""
    value = percent(cell["iops"]["mean"], base["iops"]["mean"])
    error = math.hypot(relative_error(cell), relative_error(base))
    return f"{value:+.2f}% +-{error:.2f}", value


def verdict(key, known):
    """Whether the prediction of the no-plug column came true. The RFC's kernel
    took tags as ERA does, so that is what to compare with."""
    plug, _, without = TABLES[key]
    theirs, within = percent(without, plug), WITHIN[key[1]]
    noplug = known[(*key, "unpatched", "noplug")]
    then, value = gain(noplug, known[(*key, ERA, "always")])
    now, _ = gain(noplug, known[(*key, "unpatched", "always")])
    miss = "NOT within" if abs(value - theirs) > within else "within"
    return (f"{' '.join(key)}: without a plug {theirs:+.2f}% in the RFC, {then}"
            f" predicted for its kernel ({ERA}): {miss} {within:.1f} points. "
            f"For this one: {now}.")


def text(summary, _records):
    """The comparison, as lines, of what was measured."""
    known = {(cell["profile"], cell["workload"], cell["kernel"],
              cell["policy"]): cell for cell in summary}
    columns = [column for column in COLUMNS
               if any(key[2:] == column[1:] for key in known)]
    lines = [f"{'':22}{columns[0][0]:>10}" + "".join(
        f"{name:>11}" for name, *_ in columns[1:])]
    for key, theirs in TABLES.items():
        if (*key, "unpatched", "always") not in known:
            continue
        found = [known.get((*key, *pair)) for _, *pair in columns]
        lines += [row(" ".join((*key, "RFC")), *theirs),
                  row(" ".join(key), *(cell and cell["iops"]["mean"]
                                       for cell in found))]
    return lines + [verdict(key, known) for key in TABLES
                    if {(*key, ERA, "always"),
                        (*key, "unpatched", "noplug")} <= set(known)]
