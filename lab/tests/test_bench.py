# SPDX-License-Identifier: GPL-2.0
"""What the benchmarks do before and after a guest has run."""
import json
import os
import subprocess

import pytest

from lab.bench import (cell_records, cells, foreign, kernels, lab, loads, pace,
                       profiles, rfc, run, run_modes, run_suites, suites)
from plugtools.report.summary import summarise
from scripts import kernel

KNOWN = {**profiles.load(), **lab.DRIVERS}
WORDS = {"ios": "900", "ns": "3000000", "lat_mean": "6000", "lat_p50": "5000",
         "lat_p99": "9000", "lat_p999": "12000", "cpu_ns": "1500000",
         "dev_doorbells": "2000", "dev_commands": "64000",
         "dev_interrupts": "0"}
BUSY = {"cpu_ns": "2999000"}
SCALE = 7.4


def cell(**changes):
    """A cell of the cpu suite."""
    return cells.Cell(**{"suite": "cpu", "kernel": "unpatched",
                         "policy": "always", "profile": "null",
                         "workload": "rand4k-s32", **changes})


def record(said=(), **changes):
    """Of a cell, of which the guest said this, too."""
    one = cell(**changes)
    return cell_records.make(one, KNOWN[one.profile],
                             {**WORDS, **dict(said)}, "c")


def pairs(made, *names):
    """What the cells have of these fields."""
    return {tuple(getattr(one, name) for name in names) for one in made}


# --- profiles.ini --------------------------------------------------------------
def test_profiles():
    """The CPU is the same CPU for every device."""
    known = profiles.load()
    assert not [text for one in known.values() for text in one.values() if len(text.split()) != 1]
    assert {"gen4", "gen5", "optane", "vm", "lockstep", "saturated",
            "null"} <= set(known)
    assert {one["time_scale"] for one in known.values()} == {"740"}


def test_a_section_overrides_what_is_common(tmp_path):
    path = tmp_path / "x.ini"
    path.write_text("[common]\na = 1\nb = 2\n[x]\nb = 3\n")
    assert profiles.load(path) == {"x": {"a": "1", "b": "3"}}


# --- what guests are told ------------------------------------------------------
@pytest.mark.parametrize("suite", suites.SUITES.values(),
                         ids=lambda suite: suite.name)
def test_cells_of_suites(suite):
    """All make a plan, none twice; there is something to compare with, for
    each workload."""
    wanted = suite.make(suite.runs)
    assert len(wanted) == len(set(wanted))
    for number, one in enumerate(wanted):
        assert f" {number} {one.policy} " in lab.plan_line(number, one, KNOWN)
    assert pairs((one for one in wanted if (one.kernel, one.policy)
                  == cells.ALWAYS), "profile", "workload") == pairs(
                      wanted, "profile", "workload")


@pytest.mark.parametrize("changes, has, has_not", [
    ({}, "cell 0 always 1 'poll_queues=1 ", "namespaces"),
    ({}, " -P", "poll_queues=0"),
    ({"workload": "twons-rand4k-s32"}, "namespaces=2", "namespaces=1"),
    ({"workload": "twodev-rand4k-s32"}, "cell 0 always 2 '", "nvme"),
    ({"workload": "rand4k-qd4"}, "poll_queues=0", " -P"),
    ({"run": 3}, "seed=3", "seed=1"),
    ({"profile": cells.NVME}, "nvme_cell 0 always plug_load ", "time_scale")])
def test_plan_line(changes, has, has_not):
    known = {**KNOWN, "null": {"poll_queues": "1", **KNOWN["null"]}}
    line = lab.plan_line(0, cell(**changes), known)
    assert has in line
    assert has_not not in line


def test_plan():
    """Which parts, which kernel, then the cells."""
    lines = lab.plan("patched", [(7, cell())], KNOWN).splitlines()
    assert lines[:4] == ["set -eu", ". /cells_guest.sh", ". /loads_guest.sh",
                         "begin patched"]
    assert lines[4].startswith("cell 7 always 1 ")


@pytest.mark.parametrize("name", ["device", "rfc", "cpu"])
def test_chunks(name):
    """Each cell is in one boot, of its own kernel. A guest that warms adaptive
    up has fewer; it starts first."""
    wanted = suites.SUITES[name].make(6)
    made = lab.chunks(wanted)
    numbered = sorted((number, one.kernel == kernel_, one)
                      for kernel_, chunk in made for number, one in chunk)
    assert numbered == [(number, True, one) for number, one in enumerate(wanted)]
    weights = [lab.weight(chunk) for _, chunk in made]
    assert max(weights) <= lab.CELLS_PER_BOOT
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("name, policies", [
    ("rfc", {"adaptive"}), ("device", {"adaptive", "always"}), ("cpu", set())])
def test_who_takes_long(name, policies):
    assert {one.policy for one in suites.SUITES[name].make(1)
            if cells.is_long(one)} == policies
    assert lab.weight([(0, cell(profile="gen4", policy="adaptive"))]) == 8


# --- what guests said ----------------------------------------------------------
@pytest.mark.parametrize("said, changes, wanted", [
    # 900 I/Os in 3 ms of a guest, at the one scale
    ({}, {}, {"iops": 300000 * SCALE, "cpu_busy": 0.5,
              "lat_us": {"mean": 0.811, "p50": 0.676, "p99": 1.216,
                         "p999": 1.622}}),
    # the device's counters are of all I/Os, so they are divided by all
    ({}, {}, {"requests_per_io": 1, "doorbells_per_io": 0.03125,
              "interrupts_per_io": 0}),
    # who waits for a device, or sleeps, counts no instructions
    (BUSY, {}, {"insns_per_io": 3333.33333}),
    (BUSY, {"profile": "gen4"}, {"insns_per_io": None}),
    ({}, {}, {"insns_per_io": None}),
    # the RFC's hack is recorded as the unpatched kernel's
    ({}, {"kernel": "noplug", "policy": "noplug"},
     {"kernel": "unpatched", "policy": "noplug"}),
    ({"dev_polls": "128000", "dev_poll_hits": "2000"}, {},
     {"polls_per_io": 2, "poll_hits_per_io": 0.03125}),
    ({"queue_rqs": "2000", "tags_single": "64"}, {"profile": cells.NVME},
     {"queue_rqs_per_io": 0.03125, "tags_single_per_io": 0.001})])
def test_records(said, changes, wanted):
    found = record(said, **changes)
    assert {key: found[key] for key in wanted} == wanted


def test_marks_are_the_controller_s_doorbells():
    """Those between two marks of a cell; others have none."""
    class Result:
        marks = [type("Mark", (), {"name": name})
                 for name in ("0.begin", "0.end", "other")]

        @staticmethod
        def between(first, last):
            return {(first, last): 5, "sq2": 2}
    one = lab.Lab([], {})
    one.take("cell id=0 ios=9 -x dev_commands=3")
    one.take("cell id=1 ios=8")
    one.take("machine kernel=base clock=tsc")
    one.take_marks(Result)
    assert one.found == {0: {"id": "0", "ios": "9", "dev_commands": "3",
                             "dev_doorbells": 7}, 1: {"id": "1", "ios": "8"}}
    assert one.machines == [{"kernel": "base", "clock": "tsc"}]


def test_a_cell_that_was_not_reported_is_an_error(monkeypatch):
    monkeypatch.setattr(lab.Lab, "run", lambda self, parts, what: None)
    monkeypatch.setattr(kernel, "model", lambda variant: [])
    with pytest.raises(lab.LabError, match="1 cells were not reported"):
        lab.measure([cell()], "x", "c")


# --- which kernels may be compared ---------------------------------------------
def test_the_same_image_is_refused():
    known = [{"name": "unpatched", "sha256": "a"}]
    kernels.refuse_same(known + [{"name": "patched", "sha256": "b"}])
    with pytest.raises(lab.LabError, match="same image"):
        kernels.refuse_same(known + [{"name": "patched", "sha256": "a"}])


@pytest.mark.parametrize("name", sorted(os.listdir(kernel.BASELINES)))
def test_baselines_apply(name):
    """They still fit the source, if they are used."""
    if name == "rfcera.patch" and rfc.ERA == "unpatched":
        pytest.skip("this kernel needs no such baseline")
    if not os.path.isdir(kernel.BASE):
        pytest.skip(f"no {kernel.BASE}: make kernel")
    done = subprocess.run(
        ["git", "-C", kernel.BASE, "apply", "--check",
         os.path.join(kernel.BASELINES, name)], check=False,
        stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


# --- the command line ----------------------------------------------------------
@pytest.mark.parametrize("text, names", [
    ("", suites.DEFAULT), ("all", [*suites.SUITES, "native"]),
    ("poll,cpu", ["poll", "cpu"]), ("native", ["native"])])
def test_suites_by_name(text, names):
    assert run_suites.pick(text) == names


@pytest.mark.parametrize("args, says", [
    (["--compare", "/nonexistent.json"], "/nonexistent.json"),
    (["--suite", "speed"], "'speed' is none of"),
    (["--runs", "-1"], "no number of runs"),
    (["--suite", "native", "--compare", "x"], "other suites than")])
def test_what_is_refused_measures_nothing(args, says, capsys):
    with pytest.raises(SystemExit, match=says):
        run_suites.main(args)
    assert "==" not in capsys.readouterr().out


# --- make run ------------------------------------------------------------------
def counts_of(device, policy="never", **words):
    """A record of what the guest said, and of the device's count of doorbells."""
    said = {"ios": 64, "requests": 64, "doorbells": 32, "queue_rqs": 4,
            "queue_rq": 56, "tags_single": 8, **words}
    found = run_modes.parse([
        "noise", "kind=guest kernel=7.3", f"kind=count policy={policy} workload=rand4k "
        + " ".join(f"{key}={value}" for key, value in said.items())])

    class Result:
        @staticmethod
        def between(first, last):
            assert (first, last) == (f"{policy}.rand4k.begin", f"{policy}.rand4k.end")
            return {1: device}
    return run_modes.make_record(found, Result, policy, "rand4k")


def test_counts():
    assert counts_of(32) == {
        "kernel": "7.3", "policy": "never", "device": "nvme (QEMU)",
        "workload": "rand4k", "requests_per_io": 1, "requests_per_queue_rqs": 2,
        "commands_per_doorbell_driver": 2, "commands_per_doorbell_device": 2,
        "tags_batched": 56, "tags_single": 8}
    with pytest.raises(run_modes.RunError, match="driver counted 32 doorbells, "
                       "the device 31"):
        counts_of(31)


@pytest.mark.parametrize("modes, row", [
    (["never"], "random never 1.00 2.0 2.0 56 8 2 a doorbell"),
    (["never", "always"], "random all 1.00 2.0 2.0 56 8 2 a doorbell"),
    (["never", "always", "merges"], "random all except merges 1.00 2.0 2.0 56 8 2 a doorbell"),
    (["merges"], "random merges 0.25 8.0 8.0 8 8 4 a request")])
def test_modes_that_do_the_same_are_one_row(modes, row):
    merged = {"requests": 16, "doorbells": 2, "queue_rq": 0}
    rows = [*run.count_lines([counts_of(2, mode, **merged) if mode == "merges" else
                              counts_of(32, mode) for mode in modes])]
    assert rows[1].split() == row.split()


def test_unpatched_and_patched_are_timed(monkeypatch):
    """The series takes 50 ns, and what is compared with it 60."""
    monkeypatch.delenv("ARCH", raising=False)
    monkeypatch.setattr(run.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(run.native, "images", dict)
    monkeypatch.setattr(run.native_rounds, "measure", lambda plan: [{
        "quiet": True, "ns": {load: {cell.name: 50 if plan.images[
            cell.kernel].endswith("series") else 60 for cell in plan.cells}
                              for load in plan.loads}}] * 2)
    lines = [" ".join(line.split()) for line in run.time_lines(run.clocked())]
    assert len(lines) == 1 + len(run.LOADS)
    assert lines[2].startswith("4 random, 4 sequential faster +20.0% ± ")
    assert lines[2].count("+20.0%") == 2 and " +0.0% ± " in lines[2]


@pytest.mark.skipif(not os.path.isdir(kernel.TREE), reason="no kernel tree: make tree")
def test_modes_on_models(monkeypatch):
    """Doorbells are dear on a virtual disk."""
    monkeypatch.setattr(run, "SEEDS", [1, 2])
    monkeypatch.setattr(run, "MODELS", {"vm": "virtual disk"})
    adaptive, small, never = run.modelled()
    assert 0.97 < adaptive["ratio"] < 1.03
    assert 0.9 < small["ratio"] < 0.99
    assert 0.2 < never["ratio"] < 0.4


def timed(workload, cell, ratio, half=0.01, quiet=True):
    return {"workload": workload, "kernel": cell.kernel, "policy": cell.policy,
            "ratio": ratio, "ci_low": ratio - half, "ci_high": ratio + half,
            "quiet": quiet}


def whole_run(quiet=True):
    """A result of all parts: always is 20% faster by the clock."""
    return {"records": [counts_of(32)],
            "time": [timed(load, cell, 1.2 if cell == run.CELLS[1] else 1, quiet=quiet)
                     for load in run.LOADS for cell in run.CELLS],
            "device": [one for name in run.MODELS for one in run.compared(
                name, {"always": [100, 101], "adaptive": [110, 111.1],
                       "seq-small": [100, 101], "never": [50, 51]})]}


def test_one_screen():
    lines = [*run.screen(whole_run())]
    assert len(lines) < 24 and max(map(len, lines)) <= 80
    said = [" ".join(line.split()) for line in lines]
    assert "32, random faster +20.0% ± 1.0 +0.0% ± 1.0 +0.0% ± 1.0" in said
    assert any(line.startswith("virtual disk faster +10.0% ± ")
               for line in said)
    assert not any("NOISY" in line for line in lines)
    assert any("NOISY" in line for line in run.screen(whole_run(quiet=False)))


@pytest.mark.parametrize("low, high, said", [
    (1.001, 1.2, "faster"), (0.8, 0.999, "slower"), (0.995, 1.005, "as fast"),
    (0.98, 1.005, "unclear"), (0.995, 1.02, "unclear")])
def test_a_change_in_a_word(low, high, said):
    assert run.word({"ci_low": low, "ci_high": high}) == said


def test_what_cannot_run_is_a_line(monkeypatch):
    """And the others are shown. To fail is something else than to be absent."""
    def fail(_):
        raise run_modes.RunError("no data\nat all")
    monkeypatch.setenv("ARCH", "arm64")
    monkeypatch.setattr(run.run_modes, "records", fail)
    monkeypatch.setattr(run, "modelled", lambda: whole_run()["device"])
    found, failed = run.take(["always"])
    lines = [*run.screen(found)]
    assert failed
    assert lines[:2] == ["1. COUNTS: FAILED: no data", "2. TIME: Not here: User Mode "
                         "Linux, which takes the time, runs on x86_64 alone."]
    assert len(lines) == 9
    monkeypatch.setattr(run.run_modes, "records", lambda _: whole_run()["records"])
    assert not run.take(["always"])[1]


@pytest.mark.parametrize("change, kept", [
    ({}, True), ({"time": "Not here: no."}, False),
    ({"time": whole_run(quiet=False)["time"]}, False)])
def test_readmes_example_is_a_whole_run(change, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "PATH", str(tmp_path / "result.json"))
    monkeypatch.setattr(run, "KEPT", tmp_path / "run.json")
    assert not run.keep()
    (tmp_path / "result.json").write_text(json.dumps({**whole_run(), **change}))
    assert run.keep() is kept
    assert not run.keep()
    if kept:
        assert [*run.example()[1:3]] == [*run.count_lines(whole_run()["records"])]


@pytest.mark.parametrize("text, modes", [
    ("", cells.MODES), ("never always never", ["never", "always"])])
def test_modes(text, modes):
    assert run_modes.parse_modes(text) == modes
    with pytest.raises(run_modes.RunError, match="'x' is none of"):
        run_modes.parse_modes(f"{text} x")


# --- how long a cell lasts, and how much of it is measured ----------------------
def options(**changes):
    """{option: value} of a cell's command."""
    one = cell(**changes)
    words = cells.WORKLOADS[one.workload].command(KNOWN[one.profile], one)
    return {key: value for key, value in zip(words, words[1:])
            if key.startswith("-") and not value.startswith("-")}


def measured(**changes):
    """I/Os that are."""
    words = options(**changes)
    return int(words["-n"]) - int(words["-W"])


@pytest.mark.parametrize("profile, least, other", [
    ("gen4", 821000, 41000), ("gen5", 1020000, 51000), ("vm", 1500000, 75000),
    ("lockstep", 1100000, 55000), ("optane", 85000, 85000),
    ("null", 150000, 6400)])
def test_adaptive_learns(profile, least, other):
    """1 s, or 50 ms, and as much is measured of it as of others, which have
    50 ms where a device takes time."""
    adaptive = {"profile": profile, "policy": "adaptive"}
    assert int(options(**adaptive)["-W"]) >= least
    assert measured(**adaptive) == measured(profile=profile)
    for policy in "always", "never":
        had = int(options(profile=profile, policy=policy)["-W"])
        assert other <= had < 2 * other


@pytest.mark.parametrize("end, ms", [("first50", "370"), ("first200", "1480")])
def test_from_an_idle_device(end, ms):
    """With nothing learnt, for so many ms of a real machine, policies
    alike."""
    where = {"profile": "vm", "workload": f"rand4k-s32-{end}"}
    words = options(policy="adaptive", **where)
    assert words == options(**where)
    assert words["-T"] == ms
    assert not {"-W", "-n", "-t"} & set(words)


@pytest.mark.parametrize("name, end, devices", [
    ("device", "-first50", set(cells.WARM)),
    ("device", "-first200", set(cells.WARM)),
    ("device", "-after1s", set(cells.WARM)),
    ("rfc", "-first200", {"gen4", "gen5"})])
def test_where_the_warm_up_hides_it(name, end, devices):
    """How adaptive begins is shown beside the unpatched plug, each run."""
    made = [one for one in suites.SUITES[name].make(2)
            if one.workload == "rand4k-s32" + end]
    assert len(made) == 2 * 2 * len(devices)
    assert {one.profile for one in made} == devices
    assert pairs(made, "kernel", "policy") == {cells.ALWAYS, cells.ADAPTIVE}


def test_later_is_as_in_adaptive_s_own_row():
    where = {"profile": "gen4", "workload": "rand4k-s32-after1s"}
    words = options(**where)
    assert words == options(policy="adaptive", **where)
    assert words["-W"] == options(profile="gen4", policy="adaptive")["-W"]


@pytest.mark.parametrize("asked, runs", [
    (1, 1), (suites.RFC_RUNS, suites.WARMED_RUNS), (12, 12)])
def test_runs_of_adaptive(asked, runs):
    """Fewer by default, since each takes long; as many if more are asked
    for."""
    made = [one.policy for one in suites.SUITES["rfc"].make(asked)
            if (one.profile, one.workload) == ("gen4", "rand4k-s32")]
    assert made.count("adaptive") == runs
    assert made.count("never") == asked


def test_the_beginning_is_a_row_of_its_own():
    """With its own ratio to the unpatched plug, in records and table."""
    records = [record({"ios": rate}, suite="device", profile="gen4",
                      kernel=kernel_, policy=policy, workload="rand4k-s32" + end)
               for kernel_, policy, rates in (
                   ("unpatched", "always", ("100", "200")),
                   ("patched", "adaptive", ("90", "198")))
               for end, rate in zip(cells.BEGINNINGS, rates)]
    made = run_suites.section("device", records, {
        "claim": "", "command": "", "kernels": [], "note": ""})
    assert [one["doorbells_per_io"] for one in records] == [
        20, 10, 22.22222, 10.10101]
    assert {one["workload"]: round(one["ratio"], 5) for one in made["cells"]
            if one["policy"] == "adaptive"} == {
                "rand4k-s32-first50": 0.9, "rand4k-s32-first200": 0.99}
    assert made["verdict"] is None
    assert "gen4, rand4k-s32-first50" in run_suites.tables.table(made["cells"])


@pytest.mark.parametrize("profile, args, low, high", [
    ("null", "-d 128", 3e6, 3e6),
    ("gen4", "-d 128", 830e3, 1.2e6),
    ("saturated", "-d 128", 1.06e6, 1.07e6),
    ("gen4", "-d 128 -b 128k", 50e3, 50.2e3),
    ("gen4", "-s 32 -w", 209e3, 230e3),
    ("gen4", "-d 128 -b 4k --bs2 128k --period 9", 9e4, 1e5)])
def test_what_limits_a_load(profile, args, low, high):
    """The core, latency, units, or the link."""
    assert low <= pace.iops(args, KNOWN[profile]) <= high


# --- loads of others -----------------------------------------------------------
SAID = {"bytes": "40960000", "ns": "100000000", "all_bytes": "81920000",
        "dev_commands": "20000", "dev_doorbells": "625", "in_force": "none",
        "nomerges": "0"}
DONE = {"bytes": "4096000", "ops": "500", "us": "1000000",
        "dev_commands": "1000", "in_force": "none", "nomerges": "0"}


def load(pair=loads.ALWAYS, profile="null", workload="fio-rand4k-s32"):
    """A cell of the loads of others."""
    return cells.Cell("loads", *pair, profile, workload)


def record_of(said, **where):
    one = load(**where)
    return cell_records.make(one, KNOWN[one.profile], said, "c")


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
    assert {load(pair, one.profile, one.workload) for one in made
            for pair in loads.PAIRS} == set(made)
    assert {one.profile for one in made} == {
        "null", "gen4", "gen5", "optane", "lockstep", cells.NVME,
        cells.NULL_BLK}


@pytest.mark.parametrize("name, profile, policy, learn, measured", [
    ("fio-rand4k-s32", "null", "adaptive", 370, foreign.MS),
    ("fio-rand4k-s32", "null", "always", foreign.SETTLE_MS, foreign.MS),
    # whose clock is the real machine's
    ("fio-rand4k-s32", cells.NVME, "adaptive", 50, foreign.MS),
    ("fio-seq128k-s32", "gen4", "always", 370, 3 * foreign.MS),
    # a turn of each, for all policies alike
    *(("fio-phases", "gen4", policy, 2 * foreign.PHASE_MS, 2 * foreign.PHASE_MS)
      for policy in ("always", "adaptive"))])
def test_how_long_a_load_is_watched(name, profile, policy, learn, measured):
    """adaptive learns for 50 ms of a real machine."""
    assert cells.WORKLOADS[name].times(KNOWN[profile], policy) == (learn,
                                                                   measured)


@pytest.mark.parametrize("profile, name, command", [
    (cells.NVME, "fio-rand4k-s32", "nvme_load 7 always on_disk raw 20 100 fio "),
    (cells.NULL_BLK, "fio-rand4k-s32", "null_blk_load 7 always on_disk raw "),
    ("null", "xfs-readahead", "on_disk files xfs 128 20 100 fio "),
    ("gen4", "db-readrandom", "on_disk db --benchmarks=readrandom ")])
def test_commands_of_guests(profile, name, command):
    assert command in lab.plan_line(7, load(profile=profile, workload=name), KNOWN)


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
def test_figures_of_others(said, where, wanted):
    found = record_of(said, **where)
    assert {key: found[key] for key in wanted} == wanted


def test_a_missing_program_is_named():
    with pytest.raises(lab.LabError, match="no-such-program"):
        lab.with_libraries("no-such-program")


def test_others_in_a_table():
    """adaptive loses in one of two loads, which comes first; there nomerges=2
    wins."""
    found = [record_of({**SAID, "bytes": str(int(40960000 * factor))}, pair=pair,
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
    one = record_of({**SAID, **said}, **where)
    assert [what for what, good in loads.verdicts(one) if not good] == bad
