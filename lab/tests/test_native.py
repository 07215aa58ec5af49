# SPDX-License-Identifier: GPL-2.0
"""SUITE=native without kernels: statistics, records, what it says."""
import contextlib
import os
import pathlib
import random
import re
from unittest import mock

import pytest

from lab.bench import lab
from lab.native import (nano, native, native_build, native_loads,
                        native_rounds, native_uml)
from scripts import kernel

Cell, Plan = native_rounds.Cell, native_rounds.Plan
OTHER = Cell("patched")
LOAD = "rand4k-s32"


def one_round(before, after, quiet=True):
    """Times of two cells, with one load."""
    return {"quiet": quiet, "ns": {LOAD: {native.REFERENCE.name: before,
                                          OTHER.name: after}}}


def rounds(seed, slower, noise=0.01):
    """Rounds of two cells, one of them slower by so many ns of 60."""
    rng = random.Random(seed)
    return [one_round(60 * rng.gauss(1, noise),
                      (60 + slower) * rng.gauss(1, noise))
            for _ in range(native.RUNS)]


def compare(found):
    """The second cell against the first."""
    return native.compare(found, LOAD, native.REFERENCE, OTHER)


def holds(one, value):
    return one["ci_low"] <= value <= one["ci_high"]


# --- ratios of rounds ----------------------------------------------------------
def test_same():
    """1 is outside of the interval in one case of twenty, about."""
    misses = sum(not holds(compare(rounds(seed, 0)), 1) for seed in range(100))
    assert 1 <= misses <= 10


def test_a_delay_is_found():
    one = compare(rounds(1, 6))
    assert holds(one, 60 / 66)
    assert one["ci_high"] < 1
    assert one["ns_saved"] == pytest.approx(-6, abs=1)


def test_a_round_in_which_all_was_slow_says_the_same():
    one = compare([one_round(100 * pace, 110 * pace) for pace in (1, 1.1, 1.2)])
    assert one["ratio"] == 0.90909
    assert one["ci_high"] - one["ci_low"] < 0.005
    assert (one["ns_per_io"], one["ns_saved"], one["rounds"]) == (121, -11, 3)


def test_a_cell_that_met_others_all_the_time_is_left_out_of_that_round():
    one = compare([one_round(*ns) for ns in ((100, 110), (180, 110), (100, 110), (100, 190))])
    assert (one["ratio"], one["rounds"]) == (0.90909, 2)


def test_one_round_has_no_interval():
    one = compare([one_round(100, 110)])
    assert (one["ratio"], one["ci_low"], one["ci_high"]) == (0.90909,) * 3


def test_one_noisy_round_is_enough_to_say_so():
    assert not compare([one_round(1, 1), one_round(1, 1, False)])["quiet"]


# --- what is written, and shown ------------------------------------------------
def made():
    plan = Plan({}, [native.REFERENCE, OTHER], [LOAD], 1)
    return native.records(rounds(1, 6), plan, "x")


def test_table():
    """ns of the reference, ratios of others; noise is not passed over."""
    found = made()
    cpu, *lines = native.text(found).splitlines()
    assert cpu == native.cpu_name() + ":"
    assert lines[0].split() == ["s32"]
    assert lines[1].startswith("unpatched, ns ") and "60." in lines[1]
    name, ratio, half = lines[2].split()
    assert (name, ratio[:3]) == ("always", "0.9")
    assert half[:2] == ".0" and len(half) == 4
    assert "NOISY" not in native.text(found)
    found[0]["quiet"] = False
    assert "NOISY" in native.text(found)


def test_the_share_of_a_system_call():
    """3200 ns, of which 32 I/Os have one, or 1024."""
    ns = {"uring-rand4k-s32": 150 + 100, "uring-rand4k-s1024": 150 + 3.125}
    found = [{"kernel": native.BASE, "policy": "always", "workload": name,
              "ns_per_io": each} for name, each in ns.items()]
    assert native.system_call(found) == [
        "A system call takes 3.2 us: 40% of uring-rand4k-s32, 2% of "
        "uring-rand4k-s1024."]
    assert native.system_call(found[:1]) == []


@pytest.mark.parametrize("cpus, smp, found", [
    ([1, 0], True, {1, 2}), ([1], True, {1}), ([1, 0], False, {1})])
def test_loads_that_there_is_no_machine_for_are_left_out(monkeypatch, cpus, smp,
                                                         found):
    monkeypatch.setattr(native_uml, "host_cpus", lambda: cpus)
    monkeypatch.setattr(native_build, "has_two_cpus", lambda: smp)
    assert {native_loads.LOADS[name].cpus for name in native.loads()} == found
    if len(cpus) == 1:
        with pytest.raises(lab.LabError, match="need 2 CPUs"):
            Plan({}, [], ["remote-s32"], 1)


@pytest.mark.parametrize("key", [
    lambda cell: cell.name, lambda cell: native.label(vars(cell))])
def test_no_two_cells_have_the_same_machine_or_row(key):
    wanted = native.cells(["unpatched", "tags", "patched"])
    assert len({key(cell) for cell in wanted}) == len(wanted) == 8


@pytest.mark.parametrize("group", native_loads.TABLES)
def test_each_table_fits_a_terminal(group):
    assert max(map(len, native.heads(list(group)))) <= 80


# --- rounds, on machines that are none -----------------------------------------
@pytest.mark.parametrize("shares, patience, quiet, times", [
    ([0] * 3, 100, [True] * 3, 3),
    ([0, 1, 0, 0], 100, [True] * 3, 4),         # disturbed: measured again
    ([1] * 9, 12, [False] * 3, 5),              # patience ends: it is noisy
    ([0, KeyboardInterrupt], 0, [True], 2),     # what was measured counts
    ([KeyboardInterrupt], 0, KeyboardInterrupt, 1)])
def test_rounds(monkeypatch, capsys, shares, patience, quiet, times):
    """With so much load of others."""
    others = mock.Mock(share=mock.Mock(side_effect=shares))
    clock = iter(range(0, 1000, 5))
    measured = mock.Mock(return_value={})
    for module, name, fake in (
            (native_uml, "Others", lambda: others),
            (native_uml, "wait_for_quiet", lambda patience: 0),
            (native_uml, "alone", contextlib.nullcontext),
            (native_rounds.time, "monotonic", lambda: next(clock)),
            (native_rounds.common, "clock",
             lambda text: contextlib.nullcontext()),
            (native_rounds, "measure_round", measured)):
        monkeypatch.setattr(module, name, fake)
    plan = Plan({}, [native.REFERENCE], [], 3, patience)
    if quiet is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            native_rounds.measure(plan)
    else:
        assert [one["quiet"] for one in native_rounds.measure(plan)] == quiet
    assert measured.call_count == times
    assert ("rounds count" in capsys.readouterr().out) == (times == 2)


def test_slices_that_met_others_do_not_count(monkeypatch):
    """Nor does the first one, which is longer; the delay is the cell's."""
    monkeypatch.setattr(native_rounds, "SLICES", 4)
    machine = mock.Mock()
    machine.run.side_effect = [{"parts": parts}
                               for parts in ([1], [56], [50, 80], [54], [90])]
    cell = Cell("patched", plant="delay=2")
    assert native_rounds.ns_per_io({cell: machine}, native_loads.plug(4), 40) == {
        cell: 52}
    words = [call.args[0] for call in machine.run.call_args_list]
    assert [one[-2:] for one in words] == [["delay=2", "ios=400"]] + [
        ["delay=2", "ios=40"]] * 4


def test_the_length_of_a_slice_is_tried_once():
    plan, machine = Plan({}, [], [], 1), mock.Mock()
    machine.run.return_value = {"parts": [30, 20]}
    for _ in range(2):
        assert native_rounds.length(plan, machine, LOAD) == 50000
    machine.run.assert_called_once()


@pytest.mark.skipif(not os.path.isdir(kernel.TREE), reason="no kernel tree: make tree")
def test_kernels_within_the_series_have_what_covers_want(monkeypatch):
    """Of them no other machine is booted; their rows have dashes elsewhere."""
    section = Cell("tags")
    few = native.narrow([native.REFERENCE, section, OTHER], {"tags": [LOAD], "lookup": []})
    plan = Plan({}, [native.REFERENCE, section, OTHER], [LOAD, "rand4k-s4"], 1, narrow=few)
    assert plan.cells_of(LOAD) == plan.cells
    assert plan.cells_of("rand4k-s4") == [native.REFERENCE, OTHER]
    one = {"ns": {LOAD: dict.fromkeys((cell.name for cell in plan.cells), 1),
                  "rand4k-s4": {native.REFERENCE.name: 1, OTHER.name: 1}}, "quiet": True}
    rows = {line.split()[0]: line.split()[1:] for line in native.table(
        native.records([one], plan, "x"))[-4:-1]}
    assert rows["tags"] == ["1.000", ".000", "-"] and "-" not in rows["always"]
    assert {name for names in native.asked().values() for name in names} <= set(native.loads())


def test_a_round_boots_machines_of_as_many_cpus_as_loads_need(monkeypatch):
    """Each load runs where it belongs."""
    booted = []
    monkeypatch.setattr(native_uml, "host_cpus", lambda: [1, 0])
    monkeypatch.setattr(native_rounds, "boot", lambda plan, stack, names, cpus:
                        booted.append(cpus) or {OTHER: cpus})
    monkeypatch.setattr(native_rounds, "length", lambda *args: 1)
    monkeypatch.setattr(native_rounds, "ns_per_io",
                        lambda machines, load, ios: machines)
    plan = Plan({}, [OTHER], [LOAD, "onequeue-s4"], 1)
    assert native_rounds.measure_round(plan) == {
        LOAD: {OTHER.name: 1}, "onequeue-s4": {OTHER.name: 2}}
    assert booted == [1, 2]


def test_what_others_take(monkeypatch):
    """Of 3 busy seconds in 2, our own is one."""
    for module, name, numbers in ((native_uml, "busy_seconds", [10, 13]),
                                  (native_uml, "own_seconds", [5, 6]),
                                  (native_uml.time, "monotonic", [0, 2])):
        monkeypatch.setattr(module, name, mock.Mock(side_effect=numbers))
    assert native_uml.Others().share() == 1


@pytest.mark.parametrize("cell, has, settings", [
    (OTHER, True, (0, "always", False)),
    (OTHER, False, (0, "-", False)),
    (Cell("patched", "never", True), True, (0, "never", True)),
    (Cell("unpatched", "nomerges2"), False, (2, "-", False))])
def test_what_a_cell_chooses(cell, has, settings):
    assert cell.settings(has) == settings


@pytest.mark.parametrize("keys, runs, found", [
    ({"a": "k"}, 2, ["kept", "kept"]), ({"a": "k"}, 3, ["kept", "kept", "new"]),
    ({"a": "l"}, 2, ["new"])])
def test_quiet_rounds_of_the_same_code_are_used_again(tmp_path, monkeypatch, keys,
                                                      runs, found):
    """Those that are missing are measured."""
    for module, name, fake in (
            (native, "ROUNDS", str(tmp_path / "rounds")),
            (native, "kernels", dict), (native, "keys", lambda commits: keys),
            (native, "whole_plan", mock.Mock()),
            (native_rounds, "measure", lambda plan, kept: [*kept, {"ns": "new"}])):
        monkeypatch.setattr(module, name, fake)
    assert native.rounds_of_now(runs) == [{"ns": "new"}]
    plan = Plan({}, [], [], 2, path=native.ROUNDS, key={"a": "k"})
    plan.begin()
    for quiet in True, False, True:
        plan.save({"ns": "kept", "quiet": quiet})
    assert [one["ns"] for one in native.rounds_of_now(runs)] == found


# --- what is added to a kernel, and what it is told -----------------------------
@pytest.mark.skipif(not os.path.isdir(kernel.TREE),
                    reason=f"no {kernel.TREE}: make tree")
def test_the_patch_applies_to_both_ends_and_files_come_along():
    """Images are of their code: no two of these are the same."""
    keys = set()
    for commit in "refs/tags/base", native_build.SERIES:
        planted = native_build.planted(commit)
        names = native_build.git()("diff", "--name-only", commit, planted)
        assert set(native_build.FILES.values()) < set(names.split())
        keys |= {native_build.key_of(commit), native_build.key_of(planted)}
    assert len(keys) == 4


@pytest.mark.parametrize("ios, wanted", [(100, "ios=96"), (1, "ios=64")])
def test_plugs_are_whole(ios, wanted):
    """Two are the least."""
    assert native_loads.plug(32, poll=1).command(ios)[-1] == wanted


def test_load_c_knows_each_word():
    """As many as a plug has bios are announced, unless another number is."""
    source = pathlib.Path(native_build.HERE, "load.c").read_text()
    known = set(re.findall(r"WORD\((\w+)\)", source)) - {"name"}
    assert known == set(re.findall(r"^\tunsigned int (\w+);", source.split(
        "struct shape {")[1].split("}")[0], re.M))
    for name, load in native_loads.LOADS.items():
        if isinstance(load, native_loads.InKernel):
            assert set(load.words) <= known, name
    assert native_loads.plug(4, kb=16).command(8, "delay=1") == \
        "load a n=4 announce=4 kb=16 delay=1 ios=8".split()


@pytest.mark.parametrize("before, after, dirty, found", [
    ("", "", True, ["HEAD", "now"]), ("", "", False, ["HEAD~1", "HEAD"]),
    ("a", "b", True, ["a", "b"]), ("a", "", True, ["a", "now"]),
    ("", "b", False, ["HEAD", "b"]), ("", "worktree", False, ["HEAD", "now"])])
def test_which_two_states_nano_compares(monkeypatch, before, after, dirty, found):
    git = mock.Mock(return_value="M" if dirty else "")
    git.get = lambda _, what: what.removesuffix("^{commit}")
    monkeypatch.setattr(native_build, "git", lambda: git)
    monkeypatch.setattr(native_build, "snapshot", lambda: "now")
    assert list(nano.commits(before, after).values()) == found


# --- a process that talks as a kernel does, or does not -------------------------
READY = "echo ready plug_policy=no cpus=0; read -r line; "


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """What a load comes to on a script."""
    def call(script):
        monkeypatch.setattr(native_uml, "realtime", lambda: ["sh", "-c", script])
        with native_uml.Machine("x", [os.devnull], [0]) as machine:
            machine.has_policies()
            return machine.run(["load"])
    monkeypatch.setattr(native_uml, "RUN", str(tmp_path))
    return call


def test_a_result_among_what_else_the_console_says(ask):
    said = READY + "echo noise; echo result ios=4 ns=100 x"
    assert ask(said) == {"ios": 4, "ns": 100, "parts": [25]}
    assert ask(said + " parts=40/2,90/3")["parts"] == [20, 30]


@pytest.mark.parametrize("script, says", [
    ("exit 3", "it has ended, exit 3, and said nothing"),
    ("echo a >&2; echo no init >&2", "it has ended, exit 0, and said no init"),
    (READY + "echo error no policy", "no policy"),
    ("echo ready plug_policy=no cpus=0-1", "its CPUs are 0-1, not 1"),
    (READY + "echo result ns=1", "is no result"),
    (READY + "echo result ios=0 ns=1", "is no result")])
def test_how_a_kernel_can_fail(ask, script, says):
    with pytest.raises(lab.LabError, match=says):
        ask(script)


def test_a_kernel_that_says_nothing(ask, monkeypatch):
    monkeypatch.setattr(native_uml, "ANSWER_SECONDS", 0.2)
    with pytest.raises(lab.LabError, match="no answer within 0.2 s"):
        ask("sleep 9")
