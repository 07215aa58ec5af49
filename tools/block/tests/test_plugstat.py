# SPDX-License-Identifier: GPL-2.0
"""What plugstat computes and prints, and what it says when it cannot."""
import datetime
import errno
import itertools
import json
import pathlib
import time

import pytest

from fakehost import BUSY, BUSY_STAT, DEBUGFS, STAT
from plugtools import VERSION
from plugtools.stat import figures, output, plugstat, source, switch


@pytest.fixture
def said(stat):
    """(disks, answers) of one interval in JSON."""
    def call(*words, during=lambda: None):
        out = stat("--json", "-c", "1", *words, during=during).prints()
        first, last = map(json.loads, out.splitlines())
        return first["disks"], last["answers"]
    return call


# --- numbers -----------------------------------------------------------------
def test_sums_and_figures(host, said):
    """Of two hardware queues."""
    def busy():
        half = {name: value // 2 for name, value in BUSY.items()}
        host.counters("nullb0", half, 0)
        host.counters("nullb0", {name: BUSY[name] - half[name]
                                 for name in BUSY}, 1)
        host.put("sys/block/nullb0/stat", BUSY_STAT)

    host.policy("nullb0", "never", "elevator")
    disks, answers = said("nullb0", during=busy)
    assert list(disks) == ["nullb0"]
    assert disks["nullb0"]["policy"] == {
        "mode": "never", "force": "always", "why": "elevator"}
    counters, fig = (disks["nullb0"][what] for what in ("counters", "figures"))
    assert {**counters, **BUSY, "stat_ios": 3200, "stat_merges": 31} == counters
    assert {**fig, "requests": 3200, "merged": pytest.approx(31 / 3231),
            "requests_per_flush": 32,
            "tags_in_batches": 0.5, "tags_per_batch": 32,
            "no_batch": {"busy": 1500, "depth": 100},
            "commands_per_doorbell": None} == fig
    assert answers["nullb0"] == {
        "tags": "partly: 32.0 tags per batch, 50% of all tags come in batches; "
                "batches refused: busy (1500), depth (100)",
        "doorbell": "unknown: the driver does not count doorbells; 32.0 "
                    "requests per flush of a plug"}


def test_counters_that_go_back(host, stat):
    """A disk that came back counts from where it began anew, and only what was
    counted between is a figure, also for what has not gone back."""
    seen = iter([(100, 100), (130, 110), (5, 170), (7, 172)])

    def count():
        single, merges = next(seen)
        host.counters("nullb0", {"tags_single": single, "merges": merges})

    count()
    lines = list(map(json.loads, stat("--json", "-c", "3", "nullb0",
                                      during=count).prints().splitlines()))
    assert [one["disks"] and one["disks"]["nullb0"]["counters"]["tags_single"]
            for one in lines[:3]] == [30, {}, 2]
    assert list(lines[3]["answers"]) == ["nullb0"]


def test_doorbells(host, said):
    """Of a path of NVMe multipath, which has counters of its own."""
    host.counted("nvme0c1n1")

    def busy():
        host.counters("nvme0c1n1", {**BUSY, "doorbells": 100})
        host.put("sys/block/nvme0c1n1/stat", BUSY_STAT)

    disks, answers = said("nvme0c1n1", during=busy)
    found = disks["nvme0c1n1"]
    assert (found["counters"]["doorbells"],
            found["figures"]["commands_per_doorbell"]) == (100, 32)
    assert answers["nvme0c1n1"]["doorbell"] == "yes: 32.0 commands per doorbell"


def test_legs(host, said):
    """Of a head of NVMe multipath, and of dm."""
    host.put("sys/block/nvme1n1/stat", STAT)
    host.counted("nvme1c2n1")
    host.counted("nvme1c3n1")
    host.put("sys/block/dm-0/slaves/nullb0/x")
    disks, answers = said("nvme1n1")
    assert list(disks) == ["nvme1c2n1", "nvme1c3n1"]
    assert set(answers["nvme1c3n1"].values()) == {"no I/O was seen"}
    assert list(said("dm-0")[0]) == ["nullb0"]


@pytest.mark.parametrize("counters, question, text", [
    ({"doorbells": 9}, "tags", "no: - tags"),
    ({"doorbells": 9}, "doorbell", "no: 1.0"),
    ({}, "doorbell", "unknown: the driver does not count doorbells; - requests "
     "per flush")])
def test_answers_where_nothing_is_batched(counters, question, text):
    fig = figures.figures({"stat_ios": 9, "tags_single": 9,
                           "no_batch_busy": 9, **counters})
    assert figures.answers(fig)[question].startswith(text)


@pytest.mark.parametrize("value, share, text", [
    (32, 1, "yes"), (31, .9, "yes"), (30.9, 1, "partly"), (32, .89, "partly"),
    (32, .1, "partly"), (32, .09, "no"), (None, 1, "no"), (32, None, "no")])
def test_verdict(value, share, text):
    assert figures.verdict(value, share) == text


# --- what is printed ---------------------------------------------------------
def test_table(host, stat):
    lines = stat("-c", "2", "nullb0", during=lambda: host.busy(
        "nullb0")).prints().splitlines()
    assert lines[0].split() == list(output.HEADER)
    cells = lines[1].split()
    assert [cells[0]] + cells[2:] == [
        "nullb0", "1", "32.0", "50", "32.0", "-", "-"]
    # nothing happened in the second interval
    assert lines[2].split()[1:] == ["0"] + ["-"] * 6
    assert len({len(text) for text in lines[:3]}) == 1
    assert lines[3] == ""
    assert [text.split(": ")[1].split("?")[0] for text in lines[4:]] == [
        "32 tags at once", "32 per doorbell"]


def test_many_intervals(host, stat):
    """The header returns every 20 lines; of the time since boot nothing is
    told."""
    host.busy("nullb0")
    out = stat("-c", "21", "nullb0").prints()
    assert out.count("req/s") == 2
    assert out.splitlines()[1].split()[1] == "0"


@pytest.mark.parametrize("words, interval, count", [
    ("nullb0 2.5 7", 2.5, 7), ("nullb0 3", 3, None), ("nullb0", 1, None),
    ("1 2 nullb0", 1, 2), ("nullb0 -t 0.5 2", 0.5, 2),
    ("/dev/nullb0 1 2", 1, 2), ("nullb0 -i 1 -c 2", 1, 2)])
def test_interval_of_words(stat, monkeypatch, words, interval, count):
    """As iostat takes them."""
    seen = []
    monkeypatch.setattr(plugstat, "watch", lambda names, args, output:
                        seen.append((names, args.interval, args.count)))
    assert stat(*words.split()).err == ""
    assert seen == [(["nullb0"], interval, count)]


def test_time_of_each_interval(stat):
    """For people and for programs."""
    stamps = [text for text in stat("-t", "nullb0", "1", "2").out.splitlines()
              if text[:1] == "2"]
    for text in stat("--json", "nullb0", "1", "2").out.splitlines():
        assert json.loads(text)["version"] == output.VERSION
        stamps.append(json.loads(text)["time"])
    assert len(stamps) == 2 + 3
    for text in stamps:
        when = datetime.datetime.fromisoformat(text)
        assert when.tzinfo and abs(when.timestamp() - time.time()) < 60


def test_idle_disks_are_left_out(host, stat):
    done = stat("-z", "1", "2", during=lambda: host.busy("nullb0"))
    lines = [text.split()[0] for text in done.out.splitlines() if text]
    assert lines.count("nullb0") == 1
    assert "nvme0n1" not in lines
    first = stat("-z", "--json", "1", "1").out.splitlines()[0]
    assert json.loads(first)["disks"] == {}


def test_help_has_a_word_for_each_column(stat):
    assert stat("-V") == (0, f"plugstat {VERSION}\n", "")
    out = stat("--help").prints()
    for name in output.HEADER[1:] + ("tags", "doorbell", "best", "state"):
        assert f"\n  {name} " in out
    for why in figures.NO_BATCH:
        assert why in out


def test_long_numbers(host, stat, monkeypatch):
    monkeypatch.setattr(source.time, "monotonic",
                        itertools.count(0, 2).__next__)
    done = stat("1", "1", "nullb0", during=lambda: host.put(
        "sys/block/nullb0/stat", BUSY_STAT.replace("3110", "522110")))
    assert done.out.splitlines()[1].split()[1] == "261100"


# --- errors ------------------------------------------------------------------
@pytest.fixture
def refusal(stat):
    """What is said of one interval that cannot be."""
    def call(*words, code=1):
        done = stat("-c", "1", *words)
        assert done.out == ""
        return done.fails(code)
    return call


def test_no_such_disk(host, refusal):
    assert "sdx: no such disk; accepted" in refusal("sdx", code=2)
    assert host.switch("nullb0") == "0"
    host.put("sys/block/dm-0/stat", STAT)
    assert "dm-0: its plugs cannot be counted" in refusal("dm-0")


@pytest.mark.parametrize("gone, told", [
    (["/nullb0/plug_stats_enabled", "/nvme0n1/plug_stats_enabled"],
     "CONFIG_BLK_PLUG_STAT"), ([""], "mount -t debugfs")])
def test_no_counters(host, refusal, gone, told):
    for name in gone:
        host.remove(f"{DEBUGFS}block{name}")
    assert told in refusal()


@pytest.fixture
def denied(refusal, monkeypatch):
    """What is said to a user if a switch cannot be written, or the directory
    not read."""
    def call(user, number=errno.EPERM, module=switch, function="write"):
        def deny(*_words):
            raise OSError(number, "no", "/sys/y")
        with monkeypatch.context() as patch:
            patch.setattr(source.os, "geteuid", lambda: user)
            patch.setattr(module, function, deny)
            return refusal("nullb0")
    return call


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("place", [(switch, "write"), (source.os, "listdir")])
def test_no_permission(denied, number, place):
    assert "no permission for /sys/y: run as root" in denied(9, number, *place)
    assert "plugstat: /sys/y: no\n" in denied(9, errno.ENOMEM, *place)


@pytest.mark.parametrize("states, told", [
    ("[none] integrity confidentiality", "a security module"),
    ("none [integrity] confidentiality", "locked down (integrity)"),
    ("none integrity [confidentiality]", "locked down (confidentiality)")])
def test_root_is_not_told_to_be_root(host, denied, states, told):
    host.put("sys/kernel/security/lockdown", states)
    said = denied(0)
    assert told in said
    assert ("plugstat --policy" in said) == ("locked" in told)
    assert "run as root" not in said


@pytest.mark.parametrize("words", [
    "-i 0", "-i x", "-i nan", "-c 0", "-c 1.5", "--json --prometheus",
    "--bogus", "1 2 3", "nullb0 0", "-1", "nullb0 1 2.5", "-i 1 1",
    "--policy --counting on", "--counting maybe", "--counting off 1 1",
    "-h", "--textfile=", "--textfile x -c 1", "--prometheus 1", "--check 1 1"])
def test_usage(stat, words):
    said = stat(*words.split()).fails(2, "usage:")
    assert words[:2] not in ("-i", "-c") or "accepted: " in said \
        or "twice" in said


@pytest.mark.parametrize("others, code, told", [
    (["nvme0n1"], 0, ""), ([], 1, "plugstat: no disk is left\n")])
def test_disk_that_goes_meanwhile(host, stat, others, code, told):
    gone = []

    def remove():
        if not gone:
            gone.append(host.remove(DEBUGFS + "block/nullb0"))

    done = stat("-c", "2", "nullb0", *others, during=remove)
    assert (done.code, done.err) == (
        code, "plugstat: nullb0: the disk is gone\n" + told)
    assert done.out.count("\nnvme0n1 ") == 2 * len(others)
    assert "\nnullb0: 32 tags at once? no I/O was seen\n" in done.out
    assert host.switch("nvme0n1") == "0"


def test_switch_that_cannot_be_put_back_is_told(stat, monkeypatch):
    def fail(path, text):
        if text == "0":
            raise OSError(errno.EACCES, "Permission denied", path)
        pathlib.Path(path).write_text(text)

    monkeypatch.setattr(switch, "write", fail)
    assert "is not put back: Permission denied" in stat("-c", "1", "nullb0").err
