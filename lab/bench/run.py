# SPDX-License-Identifier: GPL-2.0
"""make run: what the series does, on one screen.

Three parts, each by the instrument that can tell: counts on an NVMe disk, which
QEMU emulates and whose speed says nothing; the time that the block layer takes,
unpatched and patched, by the clock of this machine's CPU; and what modes do to
SSDs, on models. A part that cannot run says why, and the others are shown."""
import argparse
import json
import os
import platform
import sys

from lab.bench import lab, profiles, run_modes, run_suites
from lab.native import native, native_build, native_rounds
from lab.native.native_rounds import Cell
from lab.sim import simrun
from plugtools.report import intervals
from plugtools.report.tables import aligned
from scripts import ROOT, common
from scripts.series import env
from scripts.series.files import write_file

PATH = os.path.join(run_modes.OUT, "result.json")
KEPT = env.PATCHES / "run.json"
ROUNDS = 8
PATIENCE = 20                   # seconds that it waits for a quiet machine
LOADS = {"rand4k-s32": "32, random", "alternate-s4": "4 random, 4 sequential",
         "seq4k-s32": "32, sequential",
         "twodev-rand4k-s32": "32, random, of two disks"}
CELLS = [native.REFERENCE, Cell(native.SERIES), Cell(native.SERIES, "adaptive"),
         Cell(native.BASE, "nomerges2")]
SEEDS = range(1, 9)
MODELS = {"gen4": "flash SSD, PCIe 4", "gen5": "flash SSD, PCIe 5",
          "lockstep": "SSD, completes in batches", "vm": "virtual disk"}
# What a mode makes of random reads, as plugsim calls it.
GROUPS = {"always": simrun.ALWAYS, "adaptive": simrun.ADAPTIVE, "seq-small": 8,
          "never": 1}

NOISY = "NOISY: others used the CPUs meanwhile; run it again"


class Unavailable(Exception):
    """A part that this machine has not got, which is nobody's fault."""


# --- the parts: records ------------------------------------------------------

def clocked():
    if {platform.machine(), os.environ.get("ARCH") or "x86_64"} != {"x86_64"}:
        raise Unavailable("User Mode Linux, which takes the time, runs on x86_64 "
                          "alone")
    commits = {native.BASE: "refs/tags/base", native.SERIES: native_build.SERIES}
    plan = native_rounds.Plan(native.images(commits), CELLS, list(LOADS), ROUNDS,
                              PATIENCE)
    return native.records(native_rounds.measure(plan), plan, run_suites.commit())


def compared(name, iops):
    """{mode: IOPS of each seed} on a model as records, against always."""
    for mode, found in iops.items():
        if mode != "always":
            one = intervals.ratio(found, iops["always"], True, "iops")
            yield {"suite": "plugsim", "policy": mode, "profile": name,
                   "workload": "rand4k-s32", "ratio": round(one["ratio"], 5),
                   "ci_low": round(one["low"], 5), "ci_high": round(one["high"], 5),
                   "runs": one["n"]}


def modelled():
    """What modes are to always on devices that take time."""
    simrun.build()
    with simrun.Engine() as engine, common.clock(
            lambda seconds: f"models: plugsim runs, {seconds:.0f} s"):
        return [one for name in MODELS for one in compared(name, {
            mode: [engine.run(f"seed={seed} group={group} warm_ios=1000000 "
                              f"ios=200000 {simrun.device(profiles.load()[name])}"
                              )["all"]["iops"] for seed in SEEDS]
            for mode, group in GROUPS.items()})]


def take(modes):
    """{part: records, or what kept it from having some}; whether one failed."""
    found, failed = {}, False
    for part, call in (("records", lambda: run_modes.records(modes)),
                       ("device", modelled), ("time", clocked)):
        try:
            found[part] = call()
        except Unavailable as why:
            found[part] = f"Not here: {why}."
        except (run_modes.RunError, simrun.SimError, *lab.ERRORS) as error:
            found[part], failed = f"FAILED: {error}".splitlines()[0], True
    return found, failed


# --- one screen --------------------------------------------------------------

def reads(one):
    """What counts say, in words."""
    if one["requests_per_io"] < 0.9:
        return f"{1 / one['requests_per_io']:.0f} a request"
    return f"{one['commands_per_doorbell_device']:.0f} a doorbell"


def names(modes, every):
    """Of some that do the same."""
    others = [mode for mode in every if mode not in modes]
    if len(modes) > 1 and len(others) < 2:
        return " ".join(["all", *(f"except {mode}" for mode in others)])
    return "+".join(modes)


def count_lines(found):
    every = list(dict.fromkeys(one["policy"] for one in found))
    rows = {}
    for one in sorted(found, key=lambda one: one["workload"]):
        cells = (*(f"{one[key]:.{digits}f}" for key, digits in (
            ("requests_per_io", 2), ("commands_per_doorbell_driver", 1),
            ("commands_per_doorbell_device", 1), ("tags_batched", 0),
            ("tags_single", 0))), reads(one).ljust(13))
        rows.setdefault((one["workload"], cells), []).append(one["policy"])
    return aligned([
        ["reads", "mode", "req/IO", "driver", "device", "batched", "single",
         "sent as".ljust(13)],
        *([{"rand4k": "random", "seq4k": "seq."}[load], names(modes, every), *cells]
          for (load, cells), modes in rows.items())])


def percent(one):
    """A change, and half of its interval."""
    return (f"{100 * (one['ratio'] - 1):+.1f}% ± "
            f"{50 * (one['ci_high'] - one['ci_low']):3.1f}")


def word(one):
    low, high = one["ci_low"], one["ci_high"]
    if low > 1 or high < 1:
        return "faster" if low > 1 else "slower"
    return "as fast" if 0.99 < low and high < 1.01 else "unclear"


def change_lines(found, key, titles, head, choices):
    """A row of what differs in key: what the first choice is to what all are
    compared with, in a word, and the figures of each."""
    rows = [[next(one for one in found if one[key] == name and choice ==
                  (one.get("kernel"), one["policy"])) for choice in choices]
            for name in titles]
    return aligned([head, *([title, word(row[0]), *map(percent, row)]
                            for title, row in zip(titles.values(), rows))])


def time_lines(found):
    return change_lines(
        found, "workload", LOADS, ["in a plug", "always is", "always",
                                   "adaptive", "nomerges=2"],
        [(cell.kernel, cell.policy) for cell in CELLS[1:]])


def device_lines(found):
    modes = [mode for mode in GROUPS if mode != "always"]
    return change_lines(found, "profile", MODELS,
                        ["random 4K reads on a", "adaptive is", *modes],
                        [(None, mode) for mode in modes])


PARTS = {
    "records": ("COUNTS on an emulated NVMe disk, 32 reads of 4K in a plug: commands a\n"
                "   doorbell by driver and device, tags taken. All data read "
                "back right.\n   Each run counts the same; ARCH=arm64 counts "
                "on that processor.", count_lines),
    "time": ("TIME, measured here and now: change of IOPS against the unpatched "
             "kernel,\n   the CPU being the limit, without system calls. "
             "nomerges=2 is unpatched, too.", time_lines),
    "device": ("DISKS, modelled, simulated here and now: change of IOPS against "
               "always, the\n   disk being the limit. adaptive finds by trial how "
               "much it holds.", device_lines)}


def is_quiet(result):
    return all(one["quiet"] for one in result["time"])


def screen(result):
    """Lines of all parts; a part that has no records is one line."""
    for number, (part, (title, lines)) in enumerate(PARTS.items(), 1):
        found = result[part]
        if isinstance(found, str):
            yield f"{number}. {title.split()[0].strip(',')}: {found}"
            continue
        yield from f"{number}. {title}".split("\n")
        yield from lines(found)
        if part == "time" and not is_quiet(result):
            yield NOISY


# --- README's example --------------------------------------------------------

def keep():
    """A whole run on a quiet machine becomes the example; whether it is new."""
    if not os.path.exists(PATH):
        return False
    with open(PATH, encoding="utf-8") as text:
        result = json.load(text)
    if any(not isinstance(result.get(part), list) for part in PARTS) or \
            not is_quiet(result):
        return False
    lines = [f'"{part}": [\n ' + ",\n ".join(map(json.dumps, result[part])) + "]"
             for part in ("records", "time")]
    return write_file(KEPT, ("{" + ",\n".join(lines) + "}\n").encode())


def example():
    """Counts and times, as a block of Markdown."""
    result = json.loads(KEPT.read_text())
    return ["```", *count_lines(result["records"]), *time_lines(result["time"]),
            *([] if is_quiet(result) else [NOISY]), "```"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--modes", default="", metavar="'a b'",
                        help="policies to count (default: all)")
    parser.add_argument("--refuse", action="store_true",
                        help="what cannot be; do no more")
    args = parser.parse_args()
    with common.program("run", run_modes.RunError):
        modes = run_modes.parse_modes(args.modes)
        if args.refuse:
            return
        os.makedirs(run_modes.OUT, exist_ok=True)
        found, failed = take(modes)
    common.write_json(PATH, {"cpu": native.cpu_name(), **found})
    print("\n".join(screen(found)))
    print(f"± is half of a 95% interval. For programs: {os.path.relpath(PATH, ROOT)}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
