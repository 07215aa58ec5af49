# SPDX-License-Identifier: GPL-2.0
"""The benchmarks: what each claims, and the cells that show it."""
import dataclasses

from lab.bench import cells, loads, profiles, rfc

CPU = ["rand4k-s32", "rand4k-s128", "libaio-rand4k-s32", "seq4k-s32",
       "seq128k-s32", "twodev-rand4k-s32", "twons-rand4k-s32", "rand4k-qd1",
       "onecore-peak"]
DEVICE = ["rand4k-s32", "seq4k-s32", "seq128k-s32", "mix70-s32",
          "phase-change", "rand4k-qd32-wait", "rand4k-qd4"]
SEQUENTIAL = ["seq128k-s32", "seq4k-s32"]
RFC_RUNS, WARMED_RUNS = 6, 5    # of random reads; of adaptive's, if not more
RFC_ERA = [] if rfc.ERA == "unpatched" else [
    (rfc.ERA, "always"), (rfc.ERA, "nomerges2")]


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    claim: str
    note: str
    make: object                # runs -> cells
    runs: int = 1
    details: object = None      # summary, records -> more lines
    columns: tuple = None       # of the table on the terminal; None: all


def cpu(runs):
    return cells.product("cpu", cells.EVERY, ["null"], CPU, runs)


def device(runs):
    names = [name for name in profiles.load() if name != "null"]
    return (cells.product("device", cells.EVERY, names, DEVICE, runs) +
            cells.start("device", names, "rand4k-s32", runs,
                        [*cells.BEGINNINGS, cells.LATER]))


def rfc_tables(runs):
    """The RFC's two tables. Batches of random reads come and go in patterns
    that hold for long: only many seeds tell a percent from chance. Those of
    adaptive are fewer, since its warm-up takes as long as eight others."""
    names, random = ["gen4", "gen5"], ["rand4k-s32"]
    pairs = [pair for pair in cells.EVERY + RFC_ERA if pair != cells.ADAPTIVE]
    few = runs if runs > RFC_RUNS else min(runs, WARMED_RUNS)
    return (cells.product("rfc", pairs, names, random, runs) +
            cells.product("rfc", [cells.ADAPTIVE], names, random, few) +
            cells.product("rfc", pairs, names, SEQUENTIAL, min(runs, 2)) +
            cells.product("rfc", [cells.ADAPTIVE], names, SEQUENTIAL) +
            cells.start("rfc", names, *random, few))


def poll(runs):
    return cells.product("poll", cells.EVERY, ["optane", "gen4"],
                         ["rand4k-qd1", "rand4k-qd1-irq"], runs)


def nvme(runs):
    return cells.product("nvme", cells.EVERY, [cells.NVME],
                         ["rand4k-s32", "seq4k-s32", "seq128k-s32",
                          "libaio-rand4k-s32"], runs)


MODEL_NOTE = ("IOPS and latencies are those of modelled devices, scaled back "
              "to a real core's speed: only ratios within one run mean "
              "anything.")
LEARN_NOTE = (f" adaptive learns for {cells.LEARN_MS} ms of a real machine "
              "before it is measured, alone where only the CPU takes time, else "
              f"all policies alike; on {', '.join(cells.WARM)} it learns for "
              f"{cells.WARM_MS / 1000:g} s, alone. Doorbells and requests per "
              "I/O count these, too.")
START_NOTE = (" -first50 and -first200 are the first 50 and 200 ms of a real "
              "machine, from an idle device and with nothing learnt. The "
              "unpatched plug gets slower with time, too, gen4 by 2.5% in a "
              "second: -after1s, in the suite device, has both after 1 s.")

SUITES = {suite.name: suite for suite in (
    Suite("cpu",
          "Where the CPU is the limit, the fewer instructions an I/O takes "
          "the better: merge lookups and tags taken one by one cost, doorbells "
          "shared by many commands save.",
          "Instructions are exact, and repeat; caches, MMIO and locks cost "
          "nothing here, so doorbells are counted beside them." + LEARN_NOTE,
          cpu),
    Suite("device",
          "Which policy is right depends on the device: the hold costs where "
          "latency is the limit, and pays where the CPU, the doorbell or the "
          "merge is.", MODEL_NOTE + LEARN_NOTE + START_NOTE, device, runs=2),
    Suite("rfc",
          "The RFC's two tables: without a plug random 4K gains 1.83% on "
          "Gen4 and 3.92% on Gen5, sequential 128K about nothing.",
          MODEL_NOTE + " Latency and bandwidth are fitted to the RFC's plug "
          "column; all else is prediction." + LEARN_NOTE + START_NOTE,
          rfc_tables, runs=RFC_RUNS, details=rfc.text),
    Suite("nvme",
          "The real driver: under always one doorbell carries 32 commands, "
          "under seq-small a group's, without a hold one; tags stay batched "
          "with every policy, and without a plug none is.",
          "Doorbells are counted by QEMU's controller. IOPS are instructions "
          "of the CPU and that controller's own timing, no SSD's." + LEARN_NOTE,
          nvme),
    Suite("loads",
          "Software that others wrote loses nothing to adaptive that it has "
          "with always or nomerges=2.",
          MODEL_NOTE + " A load is watched from outside, in the I/Os that its "
          "disk completes in a stretch of time; a file system's own count, "
          "too. db- are operations per second, as db_bench says, and requests "
          "per 4K. adaptive learns for "
          f"{cells.LEARN_MS} ms of a real machine; doorbells and requests per "
          "I/O count these, too.", loads.make, details=loads.text,
          columns=("iops", "ratio", "requests_per_io", "doorbells_per_io")),
    Suite("poll",
          "One 4K read at a time is faster polled, under every policy alike.",
          MODEL_NOTE, poll),
)}
DEFAULT = ["cpu", "rfc", "nvme"]
