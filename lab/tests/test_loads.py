# SPDX-License-Identifier: GPL-2.0
"""What "loads" measures, and what it makes of it."""
import pytest

from lab.bench import cell_records, cells, foreign, lab, loads, profiles
from plugtools.report.summary import summarise

SAID = {"bytes": "40960000", "ns": "100000000", "all_bytes": "81920000",
        "dev_commands": "20000", "dev_doorbells": "625", "in_force": "none",
        "nomerges": "0"}
DONE = {"bytes": "4096000", "ops": "500", "us": "1000000",
        "dev_commands": "1000", "in_force": "none", "nomerges": "0"}
KNOWN = {**profiles.load(), **lab.DRIVERS}


def cell(pair=loads.ALWAYS, profile="null", workload="fio-rand4k-s32"):
    return cells.Cell("loads", *pair, profile, workload)


def record(said=None, **where):
    """What a guest said of a cell, as a record."""
    one = cell(**where)
    return cell_records.make(one, KNOWN[one.profile], said or SAID, "c")


# --- what is run ---------------------------------------------------------------

@pytest.mark.parametrize("words", [
    "io_uring", "libaio", "--rw=read ", "randread", "zipf", "rwmixread=70",
    "bs=4k", "bs=16k", "bs=64k", "bs=128k", "submit=1 ", "submit=8 ",
    "submit=32 ", "submit=128 ", "complete_max=128", "numjobs=2", "numjobs=4",
    "read:-8k", "offset_increment=50%", "roundrobin", "thinktime=1ms",
    "startdelay", "-R0", "-p1", "fsync", "fillseq", "readrandom",
    "multireadrandom", "readwhilewriting"])
def test_all_that_was_asked_for_is_somewhere(words):
    assert any(words in load.command_line + " " for load in foreign.ALL)


@pytest.mark.parametrize("name, words", [
    ("fio-seq4k-s32", "--ioengine=io_uring --rw=read --bs=4k --iodepth=128 "
     "--iodepth_batch_submit=32 --fixedbufs --registerfiles "
     "--iodepth_batch_complete_min=32"),
    ("tio-seq4k-s32", "-d128 -c32 -s32 -R0 -B1 -F1")])
def test_the_review_s_loads_word_for_word(name, words):
    """These two showed adaptive at 0.93 and 0.88."""
    assert set(words.split()) <= set(cells.WORKLOADS[name]
                                     .command_line.split())


def test_each_load_has_four_policies():
    made = loads.make(1)
    assert {cell(pair, one.profile, one.workload) for one in made
            for pair in loads.PAIRS} == set(made)
    assert {one.profile for one in made} == {
        "null", "gen4", "gen5", "optane", "lockstep", cells.NVME,
        cells.NULL_BLK}


@pytest.mark.parametrize("load, profile, policy, learn, measured", [
    ("fio-rand4k-s32", "null", "adaptive", 370, foreign.MS),
    ("fio-rand4k-s32", "null", "always", foreign.SETTLE_MS, foreign.MS),
    # whose clock is the real machine's
    ("fio-rand4k-s32", cells.NVME, "adaptive", 50, foreign.MS),
    ("fio-seq128k-s32", "gen4", "always", 370, 3 * foreign.MS),
    # a turn of each, for all policies alike
    *(("fio-phases", "gen4", policy, 2 * foreign.PHASE_MS, 2 * foreign.PHASE_MS)
      for policy in ("always", "adaptive"))])
def test_how_long_a_load_is_watched(load, profile, policy, learn, measured):
    """adaptive learns for 50 ms of a real machine."""
    assert cells.WORKLOADS[load].times(KNOWN[profile], policy) == (learn,
                                                                   measured)


@pytest.mark.parametrize("profile, load, command", [
    (cells.NVME, "fio-rand4k-s32", "nvme_load 7 always on_disk raw 20 100 fio "),
    (cells.NULL_BLK, "fio-rand4k-s32", "null_blk_load 7 always on_disk raw "),
    ("null", "xfs-readahead", "on_disk files xfs 128 20 100 fio "),
    ("gen4", "db-readrandom", "on_disk db --benchmarks=readrandom ")])
def test_commands_of_guests(profile, load, command):
    assert command in lab.plan_line(7, cell(profile=profile, workload=load),
                                    KNOWN)


# --- what guests said ----------------------------------------------------------

@pytest.mark.parametrize("said, where, wanted", [
    # 10000 blocks of 4K in 100 ms; counters are of the whole run
    (SAID, {}, {"iops": 740000, "requests_per_io": 1,
                "doorbells_per_io": 625 / 20000}),
    # an I/O is as large as the load's
    (SAID, {"workload": "fio-seq128k-s32"}, {"requests_per_io": 32}),
    # null_blk has no doorbells
    ({key: SAID[key] for key in SAID if key != "dev_doorbells"},
     {"profile": cells.NULL_BLK}, {"doorbells_per_io": None}),
    # operations a second, and requests of 4K
    (DONE, {"profile": cells.NVME, "workload": "db-readrandom"},
     {"iops": 500, "requests_per_io": 1})])
def test_figures(said, where, wanted):
    found = record(said, **where)
    assert {key: found[key] for key in wanted} == wanted


def test_a_missing_program_is_named():
    with pytest.raises(lab.LabError, match="no-such-program"):
        lab.with_libraries("no-such-program")


# --- what is shown -------------------------------------------------------------

def test_table():
    """adaptive loses in one of two loads, which comes first; there nomerges=2
    wins."""
    found = [record({**SAID, "bytes": str(int(40960000 * factor))}, pair=pair,
                    workload=workload)
             for workload, factors in (("fio-rand4k-s32", (1, 1.02, 1.01, 1.03)),
                                       ("fio-seq4k-s32", (1, 1.25, 1, 0.9)))
             for pair, factor in zip(loads.PAIRS, factors)]
    lines = loads.text(summarise(found), None)
    assert [line.split() for line in lines[3:5]] == [
        "null: fio-seq4k-s32 740000 1.250 1.000 0.900 0.720 1.000 1.000".split(),
        "null: fio-rand4k-s32 740000 1.020 1.010 1.030 1.010 1.000 1.000".split()]
    assert "0.99 of the unpatched always in 1 of 2" in lines[-1]
    assert lines[-1].endswith("better one in 1")


@pytest.mark.parametrize("said, where, bad", [
    ({}, {}, []),
    ({"in_force": "adaptive"}, {"pair": loads.ADAPTIVE}, []),
    ({"dev_commands": "625"}, {"workload": "fio-seq4k-s32"}, []),
    ({"bytes": "0"}, {}, ["did I/O on the disk"]),
    ({"in_force": "always"}, {"pair": loads.ADAPTIVE}, ["ran under its policy"]),
    ({"nomerges": "2"}, {}, ["ran under its policy"]),
    ({}, {"workload": "fio-seq4k-s32"}, ["neighbours merged"]),
    ({"dev_commands": "10000"}, {}, ["one request for each I/O"])])
def test_verdicts_of_the_short_form(said, where, bad):
    one = record({**SAID, **said}, **where)
    assert [what for what, good in loads.verdicts(one) if not good] == bad
