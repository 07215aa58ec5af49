# SPDX-License-Identifier: GPL-2.0
"""The forms of what plugbench, plugroll and plugstat write as JSON, as JSON
Schemas; "python3 -m plugtools.schemas PROGRAM" prints one.
"""
import json
import sys

TEXT, NUMBER, WHOLE, FLAG, NULL = ({"type": kind} for kind in (
    "string", "number", "integer", "boolean", "null"))
MODES = ["always", "never", "seq-small", "adaptive"]


def or_null(kind, **more):
    return {"type": [kind, "null"], **more}


def ref(name):
    return {"$ref": "#/$defs/" + name}


def refs(*names):
    return {name: ref(name) for name in names}


def many(item):
    return {"type": "array", "items": item}


def names_of(item):
    """An object of any names, and what each has."""
    return {"type": "object", "additionalProperties": item}


def some(*required, **fields):
    """An object of these fields, all of them needed unless some are named."""
    return {"type": "object", "required": list(required or fields),
            "properties": fields}


def closed(*required, **fields):
    """The same, with no other fields."""
    return {**some(*required, **fields), "additionalProperties": False}


AMOUNT = "0 or a number from 1e-15 to 1e+15"
TEXTS_OR_NULL = or_null("array", title="a list of text, or null", items=TEXT)

PLUGBENCH = {
    "title": "What plugbench measured",
    "description": "Version 1 is the same without version and verdict.",
    **closed(
        "version", "records", "meta",
        version={"const": 2}, records=many(ref("record")), meta={
            "description": "How it was measured: command, disk, fio's "
            "commands ...", "type": "object", "properties": {
                **dict.fromkeys(("claim", "note", "command", "model",
                                 "firmware", "size"), or_null("string")),
                **dict.fromkeys(("warnings", "holds", "legs"), TEXTS_OR_NULL),
                "fio": or_null(
                    "object", title="an object of command lines, or null",
                    additionalProperties=or_null("string"))}},
        verdict={"description": "null: there was no baseline to compare with.",
                 "anyOf": [NULL, ref("verdict")]}),
    "$defs": {
        "line": {"title": "one line of text", "pattern": "\\S", **TEXT},
        "amount": {"title": AMOUNT, **NUMBER, "anyOf": [
            {"const": 0}, {"minimum": 1e-15, "maximum": 1e15}]},
        "amountOrNull": {"title": AMOUNT + ", or null",
                         "anyOf": [NULL, ref("amount")]},
        "kernel": {"enum": ["unpatched", "rfcera", "patched"]},
        "policy": {"enum": [
            *MODES, "nomerges0", "nomerges1", "nomerges2", "noplug",
            *(f"group{1 << power}" for power in range(6))]},
        "record": {
            "description": "One run of one cell; further fields are allowed.",
            **some(
                "suite", "profile", "workload", "kernel", "policy", "iops",
                "run", "commit",
                suite=ref("line"),
                profile={"description": "The disk's model, and nomerges if "
                         "there were two.", **ref("line")},
                workload=ref("line"), **refs("kernel", "policy"),
                run={"description": "The round; runs of one round are "
                     "compared in pairs.", **WHOLE},
                seed=or_null("integer"),
                commit={"description": "Which kernel it was.", **TEXT},
                iops=ref("amount"),
                lat_us=or_null(
                    "object", description="Latency in microseconds.",
                    title="null or an object of mean, p50, p99, p999, each a "
                    "number or null",
                    additionalProperties=ref("amountOrNull")),
                cpu_busy={"description": "CPU time per second; above 1 if "
                          "several CPUs were busy.", **ref("amountOrNull")},
                **dict.fromkeys(("insns_per_io", "doorbells_per_io",
                                 "requests_per_io"), ref("amountOrNull")))},
        "verdict": closed(
            baseline=ref("line"), confidence={"const": 0.95}, method=TEXT,
            margins={"description": "Relative change that does not matter, by "
                     "metric.", **names_of(ref("amount"))},
            comparisons=many(ref("comparison")),
            verdicts=many(ref("opinion"))),
        "comparison": {
            "description": "A mode to the baseline; null where one run is too "
            "few.",
            **closed(
                "suite", "profile", "workload", "kernel", "policy", "mode",
                "metric", "paired", "n", "ratio", "low", "high", "p", "error",
                **dict.fromkeys(("suite", "profile", "workload", "mode"),
                                ref("line")), **refs("kernel", "policy"),
                metric={"enum": ["iops", "lat_us.p50", "lat_us.p99",
                                 "lat_us.p999", "cpu_us_per_io"]},
                paired=FLAG, n={**WHOLE, "minimum": 1},
                ratio={**NUMBER, "minimum": 0},
                low=or_null("number"), high=or_null("number"),
                error=or_null("number", description="Standard error of the "
                              "ratio's logarithm."),
                p=or_null("number"),
                p_all=or_null("number", description="p, corrected for the "
                              "number of comparisons (Holm)."),
                judgement={"enum": ["better", "worse", "same", "open", None]},
                enough={"description": "How many runs would tell.", **WHOLE})},
        "opinion": {
            "description": "The verdict on a workload; null: on all together.",
            **closed(
                suite=ref("line"), profile=ref("line"),
                workload=or_null("string"),
                decision={"enum": ["use", "no difference", "not enough runs"]},
                mode=or_null("string", description="Which mode to use, or "
                             "null."),
                more_runs={**WHOLE, "minimum": 0}, text=ref("line"))}}}

METRICS = ["iops", "mean", "p99"]
MODE, MODE_OR_NULL = {"enum": MODES}, {"enum": [*MODES, None]}


def forms(title, version, shared, **found):
    """One of these, each of which has a version."""
    return {"title": title, "anyOf": list(refs(*found).values()), "$defs": {
        **shared, **{name: closed(version={"const": version}, **fields)
                     for name, fields in found.items()}}}


PLUGROLL = forms(
    "what plugroll prints with --json, of each verb", 2,
    {"row": closed(
        disk=TEXT, legs=many(TEXT), set=MODE_OR_NULL, in_force=MODE_OR_NULL,
        why=or_null("string"), kept=MODE_OR_NULL, worth_a_try=MODE_OR_NULL,
        best=MODE_OR_NULL, nomerges=or_null("string"), evidence=many(TEXT)),
     "limits": {"description": "metric: change, as -0.02 for -2%", **closed(
         **dict.fromkeys(METRICS, NUMBER)), "required": []},
     "figures": {
         "description": "old mode and tried one, in 1/s or ms; 0.02 is +2%",
         **closed(old=NUMBER, new=NUMBER, change=NUMBER, low=NUMBER,
                  high=NUMBER, limit=or_null("number"))},
     "status": {"enum": ["held", "tripped", "no gain", "unknown", "idle",
                         "already set"]},
     "tried": closed(
         legs=many(TEXT), pairs=WHOLE, status=ref("status"), figures={
             **closed(**dict.fromkeys(METRICS, ref("figures"))),
             "required": []})},
    **{"list": {"disks": many(ref("row"))},
       "try": {
           "mode": MODE, **refs("status"), "why": TEXT, "guard": ref("limits"),
           "require": ref("limits"), "block_s": NUMBER,
           **dict.fromkeys(("idle", "already", "gone", "nomerges"),
                           many(TEXT)),
           "left": names_of(TEXT), "disks": names_of(ref("tried")),
           "kept": FLAG, "changed": FLAG},
       "keep": {
           "mode": MODE, "disks": many(TEXT), "skipped": names_of(MODE),
           "nomerges": many(TEXT), "pattern": or_null("string"),
           "written": names_of(TEXT), "changed": FLAG},
       "undo": {"done": many(TEXT), "problems": many(TEXT),
                "changed": FLAG}})

PLUGSTAT = forms(
    "A line of plugstat --json: interval, end, --policy", 3,
    {"policy": closed(mode=MODE_OR_NULL, force=MODE_OR_NULL,
                      why=or_null("string")),
     "figures": closed(
         requests=NUMBER, requests_per_s=NUMBER, no_batch=names_of(WHOLE),
         **dict.fromkeys(("merged", "requests_per_flush", "tags_in_batches",
                          "tags_per_batch", "commands_per_doorbell"),
                         or_null("number"))),
     "adaptive": {
         "description": "what the kernel says of each hardware queue",
         **closed(not_in_force=or_null("string"), hctx=names_of(names_of(
             {"type": ["number", "string", "null"]}))),
         "type": ["object", "null"]},
     "disk": closed(
         counters={"description": "what the kernel counted in the interval; "
                   "time in seconds", **names_of(NUMBER)},
         **refs("figures", "adaptive", "policy"))},
    interval={"time": TEXT, "disks": names_of(ref("disk"))},
    end={"time": TEXT, "answers": names_of(closed(tags=TEXT, doorbell=TEXT))},
    modes={"time": TEXT, "disks": names_of(ref("policy"))})

if __name__ == "__main__":
    print(json.dumps({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "SPDX-License-Identifier: GPL-2.0",
        **globals()[sys.argv[1].upper()]}, indent=1))
