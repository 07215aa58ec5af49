# SPDX-License-Identifier: GPL-2.0
"""make figures: what each section of the series buys, by the clock.

A cover letter names loads of SUITE=native in a line "@figures NAME...". One run
of that suite has them all: the kernel at the end of the section is compared with
the one before it, in the same rounds. A run of this very code is used again. The
result is patches/*/figures.json, from which "make series" fills the covers in,
as long as it is of the same code. "whole" stands for the whole series, "mails"
for single ones whose message has such a line: each against the one before, in
rounds of its own. README.md and Documentation/block/plug-measurements.rst are
filled in from that, and from what there is of "make bench" and "make run", see
lab/bench/documents.py."""
import argparse
import dataclasses

from lab.bench import cells, documents, lab
from lab.native import native, native_build, native_loads, native_rounds
from scripts import common
from scripts.series import measured as store

# What the whole series is compared in: the first with the others.
CHOICES = [cells.ALWAYS, ("unpatched", "nomerges2"), *cells.OURS]
KEPT = ("ratio", "ci_low", "ci_high", "ns_per_io", "quiet")


def compared(rounds, load, first, cell):
    return {key: value for key, value in native.compare(rounds, load, first, cell).items()
            if key in KEPT}


def measure(pairs, loads, rounds):
    """{load: {kernel and policy: what the rounds say of it}} of all pairs of
    these but the first, compared with the first"""
    first, *others = [dataclasses.replace(native.cell_of(name), policy=policy)
                      for name, policy in pairs]
    return {load: {" ".join(pair): compared(rounds, load, first, cell)
                   for pair, cell in zip(pairs[1:], others)} for load in loads}


def measure_chosen(chosen, wanted, rounds):
    """Figures of sections, each against the one before that is measured, and what
    README.md shows of the whole series: kept."""
    for before, (section, loads) in zip(["unpatched", *wanted], wanted.items()):
        if section in chosen:
            rows = measure([(before, "always"), (section, "always")], loads,
                           rounds)
            store.save(section, {"before": before, "rows": {
                load: list(row.values()) for load, row in rows.items()}})
            print(f"{section}:\n{store.table(section)}", flush=True)
    if store.WHOLE in chosen:
        loads = native.loads()
        store.save(store.WHOLE, {"cpu": native.cpu_name(),
                                 "rows": measure(CHOICES, loads, rounds)})


def asked_mails(git):
    """[(subject, commit, loads)] of those mails that want figures."""
    found = []
    for commit in git.commits("refs/tags/base", "refs/heads/series"):
        subject, body = git.message(commit)
        for names in store.PLACE.findall(body):
            found.append((subject, commit, names.split()))
    return found


def measure_mails(mails, git, rounds):
    for subject, commit, loads in mails:
        cells = [native_rounds.Cell(name) for name in ("before", "after")]
        plan = native_rounds.Plan(
            native.images({"before": git.ref(f"{commit}^"), "after": commit}),
            cells, loads, rounds, native.PATIENCE)
        seen = native_rounds.measure(plan)
        store.save_mail(subject, store.code_at(git, commit),
                        {load: [compared(seen, load, *cells)] for load in loads},
                        {name for name, _, _ in mails})
        print(subject, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=native.RUNS,
                        help="of the measurement of time [%(default)s]")
    parser.add_argument("--fill", action="store_true", help="measure nothing, "
                        "fill the documents in from what there is")
    parser.add_argument("section", nargs="*", help="only these")
    args = parser.parse_args()
    wanted, git = native.asked(), native_build.git()
    mails = asked_mails(git)
    there = [*wanted, store.WHOLE, store.MAILS]
    unknown = [name for name in args.section if name not in there]
    if unknown:
        parser.error(f"no cover of a section '{unknown[0]}' wants figures; "
                     f"there are: {' '.join(there)}")
    strange = sorted({name for names in (*wanted.values(), *(
        loads for _, _, loads in mails)) for name in names} - set(native_loads.LOADS))
    if strange:
        parser.error(f"covers or mails want figures of '{strange[0]}'; there are: "
                     f"{' '.join(native_loads.LOADS)}")
    if args.fill and args.section:
        parser.error("--fill measures no section; give one or the other")
    chosen = [] if args.fill else args.section or there
    with common.program("figures", documents.DocumentError, *lab.ERRORS,
                        advice="; what was measured is kept"):
        if set(chosen) - {store.MAILS}:
            measure_chosen(chosen, wanted, native.rounds_of_now(args.rounds))
        if store.MAILS in chosen:
            measure_mails(mails, git, args.rounds)
        print("\n".join(documents.update()))


if __name__ == "__main__":
    main()
