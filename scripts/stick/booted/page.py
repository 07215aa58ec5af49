# SPDX-License-Identifier: GPL-2.0
"""The page of a run: what its boots have measured, compared."""
import statistics

from plugtools.report import page, verdict
from plugtools.report.records import CELL, load
from plugtools.report.results import section_of
from plugtools.report.summary import groups, summarise

CLAIM = ("Linux without and with plug_policy, its modes, and nomerges=2, compared on this "
         "machine by the plug_policy stick. Disks were only read.")
# A boot has its own layout of memory, which all of its runs share.
KERNELS = "Mode \"always\" of the patched kernel against the unpatched; one value for each boot."
TODAY = "What nomerges=2 gains without the series; one value for each round of each boot."
MODES = "The modes of the patched kernel, and nomerges=2; one value for each round of each boot."


def mean(values):
    """Of records, or of what they say: of numbers; of anything else, the first one"""
    if isinstance(values[0], dict):
        return {name: mean([one.get(name) for one in values]) for name in values[0]}
    known = [one for one in values if isinstance(one, (int, float))]
    return statistics.fmean(known) if known else values[0]


def load_all(paths):
    """Records of a disk, with the number of the boot; the meta of the last file; and
    what the boots say of the host: where they differ, of which it is true"""
    found, host = [], {}
    for path in paths:
        records, meta = load(str(path))
        boot, _, kind = path.parent.name.partition("-")
        how = ", iommu.passthrough=1" * kind.endswith("-passthrough")
        found += [dict(one, profile=one["profile"] + how, boot=int(boot)) for one in records]
        for fact in (meta.get("host") or {}).items():
            host.setdefault(fact, []).append(path.parent.name)
    return found, meta, [f"{what}: {text}" + f" ({', '.join(boots)})" * (len(boots) < len(paths))
                         for (what, text), boots in sorted(host.items())]


def sections(run):
    """Three for each disk: of the kernels, of the modes, and of nomerges=2 as it is today"""
    for name in sorted({path.name for path in run.glob("*/*.json")}):
        records, meta, host = load_all(sorted(run.glob(f"*/{name}")))
        kernels = [dict(mean(some), run=some[0]["boot"], seed=None) for some in groups(
            [one for one in records if one["policy"] == "always"], *CELL, "boot").values()]
        modes, today = ([dict(one, run=100 * one["boot"] + one["run"]) for one in records
                         if one["kernel"] == kernel] for kernel in ("patched", "unpatched"))
        for what, claim, some in (("kernels", KERNELS, kernels), ("modes", MODES, modes),
                                  ("nomerges=2 today", TODAY, today)):
            if some:
                yield dict(section_of(summarise(some), verdict.of(some), meta),
                           suite=f"{name.removesuffix('.json')}: {what}", claim=claim,
                           details=[*(meta.get("warnings") or []), *host])


def write(run):
    """report.html of a run, a directory"""
    page.html([{"suite": "This machine", "claim": CLAIM,
                "details": (run / "outcome.txt").read_text(encoding="utf-8")},
               *sections(run)], str(run / "report.html"), "Plug policies on this machine")
