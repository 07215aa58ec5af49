# SPDX-License-Identifier: GPL-2.0
"""What was measured on models, kept: patches/<base>/models.json.

"make bench" leaves records of every run in build/; what documents show of them
is kept in the repository: for each suite {"commit", "claim", "note",
"details", "rows", "modes", "controller"}. rows is {profile: {workload: {"kernel policy":
change}}}, each against the unpatched plug; modes is the same of the modes of the
patched kernel, against its "always". A change is {"ratio", "ci_low", "ci_high",
"runs"} of IOPS; its interval is null where there is one run."""
import hashlib
import json
import os

from lab.bench import lab, suites
from plugtools.report import verdict
from plugtools.report.records import ReportError, cell_order, load
from plugtools.report.summary import groups, summarise
from scripts.series import env, measured as store
from scripts.series.files import write_file

FILE = env.PATCHES / "models.json"
CONTROLLER = "block/blk-plug-adaptive.c"


def controller():
    """What tells one controller of "adaptive" from another."""
    return hashlib.sha256((env.ROOT / CONTROLLER).read_bytes()).hexdigest()[:16]


def known():
    """{suite: what is kept of it}"""
    try:
        return json.loads(FILE.read_text())
    except FileNotFoundError:
        return {}


def change(ours, base):
    """What the records of a cell change, or None. Runs of one seed are of one
    device."""
    found = verdict.compare_runs(ours, base, "iops")
    return found and {"ratio": round(found["ratio"], 5),
                      "ci_low": found["low"] and round(found["low"], 5),
                      "ci_high": found["high"] and round(found["high"], 5),
                      "runs": found["n"]}


def changes(records, kernels, base):
    """{profile: {workload: {kernel and policy: change}}} of cells of some
    kernels, where the base was measured."""
    found = {}
    chosen = sorted((one for one in records if one["kernel"] in kernels),
                    key=cell_order)
    for (profile, workload), some in groups(chosen, "profile",
                                            "workload").items():
        runs = groups(some, "kernel", "policy")
        row = {" ".join(pair): change(ours, runs[base])
               for pair, ours in runs.items()
               if pair != base and base in runs}
        row = {name: one for name, one in row.items() if one}
        if row:
            found.setdefault(profile, {})[workload] = row
    return found


def keep_suite(suite, records, meta):
    return {"commit": ", ".join(sorted({one["commit"] for one in records})),
            "claim": meta.get("claim") or suite.claim,
            "note": meta.get("note") or suite.note,
            "controller": controller(),
            "details": suite.details(summarise(records), records)
            if suite.details else [],
            "rows": changes(records, ("unpatched", "rfcera", "patched"),
                            ("unpatched", "always")),
            "modes": changes(records, ("patched",), ("patched", "always"))}


def update():
    """Keep what "make bench" has left; names of the suites that were new. A
    suite that there is nothing new of stays as it is."""
    kept, new = known(), []
    for name, suite in suites.SUITES.items():
        path = os.path.join(lab.OUT, name + ".json")
        if not os.path.exists(path):
            continue
        try:
            found = keep_suite(suite, *load(path))
        except (KeyError, StopIteration) as error:
            raise ReportError("%s lacks %s; run the whole suite: make bench "
                              "SUITE=%s" % (path, error, name)) from error
        if found != kept.get(name):
            kept[name] = found
            new.append(name)
    if new:
        write_file(FILE, (store.compact(kept) + "\n").encode())
    return new
