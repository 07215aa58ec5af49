# SPDX-License-Identifier: GPL-2.0
"""make sim ABLATE=1: what each rule of the controller is worth.

A rule is knocked out by an exact substitution in the controller's source, which
is then compiled into an engine of its own. Each text must be there exactly
once: a controller that has changed is noticed. Every engine runs the same
configurations with the same seeds, so that most of what chance does is in both
sides of a difference."""
import json
import math
import os
import pathlib
import statistics
from statistics import fmean

from lab.sim import simconfigs, simreport, simrun
from plugtools.report.records import write_file
from scripts import ROOT

CONTROLLER = pathlib.Path(ROOT, "block/blk-plug-adaptive.c")
CONFIGS = 1200
ALL, RANDOM, STREAMS = "all closed", "random", "streams"
COLUMNS = (ALL, RANDOM, STREAMS, *simconfigs.CLASSES)
SURE = 2                        # standard errors

# {rule: ((text, replacement), ...)}
RULES = {
    "pairs": (("	if (a->group == a->from) {\n		a->last = time;\n",
               "	if (a->group == a->from || !a->last) {\n"
               "		a->last = a->last ?: time;\n"),
              ("		plug_use(a, a->from);\n		return;\n	}\n	a->tried",
               "		a->settle = false;\n		return;\n	}\n	a->tried")),
    "more than 3 pairs": (("	MAX_PAIRS	= 16,", "	MAX_PAIRS	= 3,"),),
    "a pair ends harm": ((" && a->sum >= -LOSS * a->pairs", ""),),
    "chance": (("sure >= 0 && sure < SURE", "false"),),
    "deviation of before": ((" + 2 * dev * dev;", ";"),),
    "quarter": (("quarter ?: (most", "(most"),),
    "half": (("(most / 2 & left) ?: twice", "twice"),),
    "double": ((" ?: twice);", ");"),),
    "what plugs fill": (("roundup_pow_of_two(a->fill)", "LARGEST"),),
    "nothing while it varies": (("= a->dev > a->time / NOISY;", "= false;"),),
    "anew after a win": (("		a->time = time;\n	}\n	plug_next(a);",
                          "	}\n	plug_next(a);"),),
    "another load": (("		if (++a->outliers >= MAX_OUTLIERS)\n", "		if (false)\n"),),
    "outliers": (("(off > a->time / 4 + 4 * a->dev", "(false"),),
    "outlier on trial once more": (("(best || !a->outliers)", "best"),),
    "a trial's deviation": (("	else if (!a->trial)\n", "	else\n"),),
    "first samples": (("delay + FIRST", "delay + 1"),),
    "settle": (("	a->settle = group != a->group;\n",
                "	a->settle = false;\n"),),
    "short transition": (("		a->epoch /= 4;\n", "		;\n"),),
    "drawn length": (("(a->random >> 24) * a->length / 512", "0"),),
    "no shorter at once": (("a->length - a->length / 8", "0"),),
    "patience": (("min(2 * a->patience, MAX_PATIENCE)", "a->patience"),),
    "16 round trips": (("	ROUND_TRIPS	= 16,", "	ROUND_TRIPS	= 4,"),),
}


def substituted(source, name):
    for text, replacement in RULES[name]:
        if source.count(text) != 1:
            raise simrun.SimError(
                f"ablate: {name}: {source.count(text)} places in {CONTROLLER.name}"
                f" for {text!r}, accepted: 1; has the controller changed?")
        source = source.replace(text, replacement)
    return source


def engine_of(name, source):
    program = simrun.OUT / "ablate" / "".join(
        c if c.isalnum() else "-" for c in name)
    program.parent.mkdir(parents=True, exist_ok=True)
    path = program.with_suffix(".c")
    write_file(path, source.encode("ascii"))
    simrun.build(f"CONTROLLER={path}", f"LINKED={program}", "EXTRA=-w")
    return program


def programs():
    """{rule: program}, with None: nothing is knocked out."""
    source = CONTROLLER.read_text("ascii")
    return {None: engine_of("none", source), **{
        name: engine_of(name, substituted(source, name)) for name in RULES}}


def judge(engines, config):
    """{variant: regret, or p99 as a ratio to always if that is the load's
    figure}, and the class."""
    (best, runs), = simrun.Judge(engines[None], config).look()
    opened = config.kind == "open"
    key, base = ("p99", simrun.ALWAYS) if opened else ("iops", best)
    scale = runs[base]["all"][key] or 1
    line, values = config.line(simrun.ADAPTIVE, 2), {}
    # where a plug holds one I/O at most, nothing can be decided
    same = len(simrun.groups_of(config)) == 1
    for name, engine in engines.items():
        result = runs[simrun.ADAPTIVE] if name is None or same else \
            engine.run(line)
        part = result["all"][key] / scale
        values[name] = part if opened else 1 - part
    return {"index": config.index, "class": config.of_class(),
            "streams": "sequential" in config.traits(), "values": values}


def compare(found, seed, count, jobs):
    """Records of all of them, in order; a job has an engine of each variant."""
    def make_judge(enter):
        engines = {name: enter(simrun.Engine(program))
                   for name, program in found.items()}
        return lambda index: judge(engines, simconfigs.generate(seed, index))
    return simrun.all_of(make_judge, range(count), jobs, "ablate")


def of_column(records, column):
    if column in (ALL, RANDOM, STREAMS):
        return [one for one in records
                if one["class"] != simconfigs.CLASSES[-1] and
                column in (ALL, STREAMS if one["streams"] else RANDOM)]
    return [one for one in records if one["class"] == column]


def worth(records, name):
    """(what the mean loses without a rule, its standard error, how many
    differ), in points."""
    differ = [100 * (one["values"][name] - one["values"][None])
              for one in records]
    if len(differ) < 2:
        return None
    return (fmean(differ), statistics.stdev(differ) / math.sqrt(len(differ)),
            sum(map(bool, differ)))


def figures(records, names):
    """{rule: {column: worth}}"""
    return {name: {column: worth(of_column(records, column), name)
                   for column in COLUMNS} for name in names}


def harmless(found):
    """The rules that no class would surely miss."""
    return [name for name, one in found.items() if all(
        one[column] is None or one[column][0] <= SURE * one[column][1]
        for column in COLUMNS)]


def pair(value):
    """A figure and its error; * if it is surely none by chance."""
    if value is None:
        return "-"
    mean, error, _ = value
    if not mean and not error:
        return "0"
    sure = "*" if abs(mean) > SURE * error else ""
    return f"{mean:+.3f} +- {error:.3f}{sure}"


def table(found):
    rows = [["without", *COLUMNS, "differ"]]
    for name, one in found.items():
        rows.append([name, *(pair(one[column]) for column in COLUMNS),
                     str(one[ALL][2]) if one[ALL] else "-"])
    return simreport.lines(rows)


def base_table(records):
    """What the regrets are of."""
    values = {column: [one["values"][None] for one in of_column(records, column)]
              for column in COLUMNS}
    return simreport.lines([["with all rules", "n", "mean"]] + [
        [column, len(some), 100 * fmean(some)]
        for column, some in values.items() if some], "{:.3f}".format)


HEADING = """
Points of mean regret that are lost without a rule, +- a standard error: of all
closed loops, of those that are random or have streams, by class.  Open loop:
percent of always' p99 latency.  *: more than two errors from nothing."""


def run(seed, count, jobs):
    print(f"ablate: seed {seed}, {count} configurations, {jobs} jobs, "
          f"{len(RULES)} rules", flush=True)
    records = compare(programs(), seed, count, jobs)
    rules = figures(records, RULES)
    print("\n".join([HEADING, "", base_table(records), "", table(rules)]),
          flush=True)
    if len(records) < count:
        raise KeyboardInterrupt
    print(f"\nNot surely worth anything: {', '.join(harmless(rules))}")
    path = simrun.OUT / "ablate.json"
    write_file(path, json.dumps({
        "seed": seed, "rules": rules, "harmless": harmless(rules),
        "records": records}, default=str).encode("ascii"))
    print(f"Records: {os.path.relpath(path, ROOT)}")
