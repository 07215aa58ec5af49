# SPDX-License-Identifier: GPL-2.0
"""make sim ABLATE=1: what each rule of the controller is worth.

A rule is knocked out by an exact substitution in the controller's source, which
is then compiled into an engine of its own. Each text must be there exactly
once: a controller that has changed is noticed. Every engine runs the same
configurations with the same seeds, so that most of what chance does is in both
sides of a difference. Rules that turn out to be worth nothing are then knocked
out together, on configurations that did not choose them.
"""
import json
import math
import os
import random

from lab.sim import simconfigs
from lab.sim import simreport
from lab.sim import simrun
from plugtools.report.records import write_file

CONTROLLER = os.path.join(simrun.ROOT, "block/blk-plug-adaptive.c")
CONFIGS = 1200
TOGETHER = "all that do no harm"
ALL, RANDOM, STREAMS = "all closed", "random", "streams"
COLUMNS = (ALL, RANDOM, STREAMS, *simconfigs.CLASSES)
SURE = 2                        # standard errors
SAMPLES = 200                   # of the bootstrap

# {rule: ((text, replacement), ...)}
RULES = {
    "pairs": (("	if (a->group == a->from) {\n		a->last = time;\n",
               "	if (a->group == a->from || !a->last) {\n"
               "		a->last = a->last ?: time;\n"),
              ("		plug_use(a, a->from);\n}\n\nstatic void "
               "plug_in_trial", "		a->settle = false;\n}\n\n"
               "static void plug_in_trial")),
    "more than 3 pairs": (("	MAX_PAIRS	= 8,", "	MAX_PAIRS	= 3,"),),
    "2 pairs end harm": (("a->pairs > 1 && gain < -LOSS", "false && gain"),),
    "chance": (("a->pairs >= MAX_PAIRS || plug_sure(a, need)",
                "true"),),
    "deviation of before": ((" + 2 * dev * dev;", ";"),),
    "quarter": (("		a->from == LARGEST ? most / 4 : 0,\n", ""),),
    "half": (("		most / 2,\n	};", "		0,\n	};"),),
    "half of what won": (("a->tried > a->from ? most / 2 : 0", "0"),),
    "double": (("a->from < LARGEST && a->from <= filled", "false"),),
    "what plugs fill": (("roundup_pow_of_two(a->fill)", "LARGEST"),),
    "a quarter percent less": (("a->from ? GAIN : -GAIN / 2", "a->from ? "
                                "GAIN : GAIN"),),
    "anew after a win": (("		a->from = a->trial;\n		a->time = 0;\n",
                          "		a->from = a->trial;\n"),),
    "promise": (("		plug_use(a, LARGEST);\n	} else", "		;\n	} else"),),
    "another load": (("	if (++a->odd >= MAX_ODD)\n", "	if (false)\n"),),
    "odd samples": (("		if (plug_far(a, time)) {", "		if (false) {"),),
    "settle": (("	a->settle = group != a->group;\n",
                "	a->settle = false;\n"),),
    "short transition": (("		a->epoch /= 4;\n", "		;\n"),),
    "patience": (("min(2 * a->patience, MAX_PATIENCE)", "a->patience"),),
    "16 round trips": (("	ROUND_TRIPS	= 16,", "	ROUND_TRIPS	= 4,"),),
}


def substituted(source, name, pairs):
    """The source without a rule."""
    for text, replacement in pairs:
        if source.count(text) != 1:
            raise simrun.SimError(
                "ablate: %s: %d places in blk-plug-adaptive.c for %r, accepted:"
                " 1; has the controller changed?" % (
                    name, source.count(text), text))
        source = source.replace(text, replacement)
    return source


def without(source, names):
    """The source without some rules, and those left out because another one
    of them has changed the same place."""
    left = []
    for name in names:
        try:
            source = substituted(source, name, RULES[name])
        except simrun.SimError:
            left.append(name)
    return source, left


def engine_of(name, source):
    """Compile a controller; the program."""
    stem = "".join(c if c.isalnum() else "-" for c in name)
    where = os.path.join(simrun.OUT, "ablate")
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, stem + ".c")
    write_file(path, source.encode("ascii"))
    program = os.path.join(where, stem)
    simrun.build("CONTROLLER=" + path, "LINKED=" + program, "EXTRA=-w")
    return program


def programs():
    """{rule: program}, with None: nothing is knocked out."""
    with open(CONTROLLER, encoding="ascii") as file:
        source = file.read()
    found = {None: engine_of("none", source)}
    for name, pairs in RULES.items():
        found[name] = engine_of(name, substituted(source, name, pairs))
    return found


def together(names):
    """(program without all of these, those that it still has)"""
    with open(CONTROLLER, encoding="ascii") as file:
        source, left = without(file.read(), names)
    return engine_of(TOGETHER, source), left


class Comparison:
    """One job's engines, of all variants."""

    def __init__(self, found, seed):
        self.seed = seed
        self.engines = {name: simrun.Engine(program)
                        for name, program in found.items()}

    def judge(self, index):
        """{variant: regret, or p99 as a ratio to always if that is the load's
        figure}, and the class."""
        config = simconfigs.generate(self.seed, index)
        rounds = simrun.Judge(self.engines[None], config).look()
        (best, runs), = rounds
        opened = config.kind == "open"
        key, base = ("p99", simrun.ALWAYS) if opened else ("iops", best)
        scale = runs[base]["all"][key] or 1
        line, values = config.line(simrun.ADAPTIVE, 2), {}
        # where a plug holds one I/O at most, nothing can be decided
        same = len(simrun.groups_of(config)) == 1
        for name, engine in self.engines.items():
            result = runs[simrun.ADAPTIVE] if name is None or same else \
                engine.run(line)
            part = result["all"][key] / scale
            values[name] = part if opened else 1 - part
        return {"index": index, "seed": self.seed, "class": config.of_class(),
                "streams": "sequential" in config.traits(),
                "values": values}

    def stop(self):
        """No process stays."""
        for engine in self.engines.values():
            engine.process.kill()


def compare(found, seed, indexes, jobs, what):
    """Records of all of them, in order."""
    return simrun.all_of([Comparison(found, seed) for _ in range(jobs)],
                         indexes, what)


def of_column(records, column):
    """The records that a column is about."""
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
    mean = simreport.mean(differ)
    variance = sum((one - mean) ** 2 for one in differ) / (len(differ) - 1)
    return (mean, math.sqrt(variance / len(differ)),
            sum(1 for one in differ if one))


def tail(records, name):
    """(what the p99 of all regrets loses, its error, what the worst does)."""
    def loss(some):
        return 100 * (simreport.quantile(
            [one["values"][name] for one in some], 0.99) - simreport.quantile(
                [one["values"][None] for one in some], 0.99))
    rng = random.Random(1)
    tries = [loss(rng.choices(records, k=len(records)))
             for _ in range(SAMPLES)]
    mean = simreport.mean(tries)
    error = math.sqrt(sum((one - mean) ** 2 for one in tries) / (SAMPLES - 1))
    return loss(records), error, 100 * (
        max(one["values"][name] for one in records) -
        max(one["values"][None] for one in records))


def figures(records, names):
    """{rule: {column: worth, "p99": ..., "worst": ...}}"""
    found = {}
    for name in names:
        found[name] = {column: worth(of_column(records, column), name)
                       for column in COLUMNS}
        some = of_column(records, ALL)
        if len(some) > 1:
            p99, error, worst = tail(some, name)
            found[name].update(p99=(p99, error), worst=worst)
    return found


def harmless(found):
    """The rules that no class would surely miss."""
    return [name for name, one in found.items() if all(
        one[column] is None or one[column][0] <= SURE * one[column][1]
        for column in COLUMNS)]


def pair(value):
    """A figure and its error; * if it is surely none by chance."""
    if value is None:
        return "-"
    mean, error = value[:2]
    if not mean and not error:
        return "0"
    return "%+.3f +- %.3f%s" % (mean, error, "*" if abs(mean) > SURE * error
                               else "")


def table(found):
    """As text."""
    rows = [["without", *COLUMNS, "p99 of all", "worst", "differ"]]
    for name, one in found.items():
        rows.append([name, *(pair(one[column]) for column in COLUMNS),
                     pair(one.get("p99")), "%+.2f" % one.get("worst", 0),
                     str(one[ALL][2]) if one[ALL] else "-"])
    return simreport.lines(rows)


def base_table(records):
    """What the regrets are of."""
    rows = [["with all rules", "n", "mean"]]
    for column in COLUMNS:
        some = [one["values"][None] for one in of_column(records, column)]
        if some:
            rows.append([column, str(len(some)), "%.3f" % (
                100 * simreport.mean(some))])
    return simreport.lines(rows)


HEADING = """
Points of mean regret that are lost without a rule, +- a standard error: of all
closed loops, of those that are random or have streams, by class.  Open loop:
percent of always' p99 latency.  *: more than two errors from nothing."""


def run(seed, count, jobs):
    """Everything."""
    print("ablate: seed %d, %d configurations, %d jobs, %d rules" % (
        seed, count, jobs, len(RULES)), flush=True)
    found = programs()
    records = compare(found, seed, range(count), jobs, "ablate")
    rules = figures(records, RULES)
    print("\n".join([HEADING, "", base_table(records), "", table(rules)]),
          flush=True)
    if len(records) < count:
        raise KeyboardInterrupt
    names = harmless(rules)
    print("\nNot surely worth anything: " + ", ".join(names), flush=True)
    program, left = together(names)
    if left:
        print("Left in, since they overlap with others: " + ", ".join(left))
    fresh = compare({None: found[None], TOGETHER: program}, seed,
                    range(count, 2 * count), jobs, "together")
    both = figures(fresh, [TOGETHER])
    print("\n" + table(both))
    path = os.path.join(simrun.OUT, "ablate.json")
    write_file(path, json.dumps({
        "seed": seed, "rules": rules, "harmless": names, "left": left,
        "together": both, "records": records + fresh},
        default=str).encode("ascii"))
    print("Records: " + os.path.relpath(path, simrun.ROOT))
