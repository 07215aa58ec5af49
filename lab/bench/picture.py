# SPDX-License-Identifier: GPL-2.0
"""Draws picture.svg, which README.md shows: what "adaptive" and "seq-small"
change against "always", in the same kernel, with 95% intervals."""
from plugtools.report import chart
from scripts.series import env, measured as store

PATH = env.ROOT / "lab/bench/picture.svg"
LOAD = "rand4k-s32"
# text, suites of which the first that has the device counts, device
DEVICES = (("null_blk, by the clock", (store.WHOLE,), ""),
           ("flash SSD, PCIe 4 (model)", ("rfc", "device"), "gen4"),
           ("flash SSD, PCIe 5 (model)", ("rfc", "device"), "gen5"),
           ("virtual disk (model)", ("device",), "vm"),
           ("SSD that completes together (model)", ("device",), "lockstep"))
MODES = "adaptive", "seq-small"
# Ink that can be told from white and from black: a page may be dark where the
# browser is not.
STYLE = chart.STYLE + ".chart { color: #757a80; }\n"


def judgement(low, high):
    if low is None or low <= 1 <= high:
        return "open"
    return "better" if low > 1 else "worse"


def bars(clock, models):
    """What chart() draws, of the devices that were measured."""
    for words, sources, profile in DEVICES:
        known = [clock if name == store.WHOLE else
                 models.get(name, {}).get("modes", {}).get(profile, {})
                 for name in sources]
        found = next((one[LOAD] for one in known if LOAD in one), {})
        for mode in MODES:
            one = found.get(f"patched {mode}")
            if one:
                low, high = one["ci_low"], one["ci_high"]
                yield {"workload": words, "mode": mode, "ratio": one["ratio"],
                       "low": low, "high": high,
                       "judgement": judgement(low, high)}


def svg(clock, models):
    """The picture. clock: {load: {"patched MODE": change}}; models: what
    model_figures.py keeps."""
    drawn = chart.alone(chart.chart(list(bars(clock, models)), "iops"), STYLE)
    return f"<!-- SPDX-License-Identifier: GPL-2.0 -->\n{drawn}\n"
