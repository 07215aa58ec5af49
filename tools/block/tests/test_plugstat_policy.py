# SPDX-License-Identifier: GPL-2.0
"""What plugstat tells of the mode that is set and in force, and of "adaptive";
of many disks, and of output that is lost."""
import json
import os

import pytest

from fakehost import DEBUGFS, MULTIPATH, calls
from plugtools.stat import output, plugstat

# as blk_plug_adaptive_show() writes it
LEARNT = """\
group 4
pinned 0
from 8
trial 4
samples_parked 0
plug_fill 8
epoch 2048
sample_ns 2000000
sample_requests 2000
sample_flushes 500
sample_in_flight 127
"""
NO_SAMPLE = LEARNT.replace("requests 2000", "requests 0")
PINNED = LEARNT.replace("pinned 0", "pinned 1")


# --- "adaptive" --------------------------------------------------------------
class Learnt:
    """A disk on "adaptive", whose second hardware queue has had no I/O."""

    def __init__(self, host, stat):
        self.host, self.stat = host, stat
        host.policy("nvme0n1", "adaptive")
        self.queues(LEARNT, NO_SAMPLE)

    def queues(self, *texts, first=0):
        for number, text in enumerate(texts, first):
            self.host.put(f"{DEBUGFS}block/nvme0n1/hctx{number}/plug_adaptive",
                          text)

    def json(self, disk="nvme0n1"):
        out = self.stat("--json", "-c", "1", disk).prints()
        return json.loads(out.splitlines()[0])["disks"][disk]["adaptive"]

    def table(self, disk="nvme0n1"):
        """The group column of the first interval, and the lines at the end."""
        lines = self.stat("-c", "1", disk).prints().splitlines()
        ours = [text for text in lines if "adaptive" in text]
        start = lines.index(ours[0]) if ours else len(lines)
        return lines[1].split()[-1], lines[start:]


@pytest.fixture
def learnt(host, stat):
    return Learnt(host, stat)


def test_adaptive_for_programs(learnt):
    """Also lines of a later kernel; hardware queues by their number."""
    learnt.queues(LEARNT + "taste sweet and sour\nalone")
    learnt.queues(LEARNT, LEARNT, first=9)
    found = learnt.json()
    assert found["not_in_force"] is None
    assert list(found["hctx"]) == ["0", "1", "9", "10"]
    queue = found["hctx"]["0"]
    assert {**queue, "group": 4, "pinned": 0, "from": 8, "trial": 4,
            "sample_flushes": 500, "requests_per_s": 1e6,
            "requests_per_flush": 4, "taste": "sweet and sour"} == queue


@pytest.mark.parametrize("texts, group, cells", [
    # the second queue has no sample
    ([LEARNT], "4", "0 4 8 try 4 1000000 4.0 127"),
    ([LEARNT, LEARNT.replace("group 4", "group 16")], "4-16",
     "0 4 8 try 4 1000000 4.0 127"),
    ([LEARNT.replace("trial 4", "trial 0")], "4",
     "0 4 8 parked 1000000 4.0 127"),
    ([PINNED], "4", "0 pinned 4 8 try 4 1000000 4.0 127"),
    # pinned without a sample
    (["group 8\npinned 1\nfrom 32\ntrial 0\nsample_ns 0\nsample_requests 0\n"
      "sample_flushes 0\nsample_in_flight 0"] * 2, "8",
     "0 pinned 8 32 parked - - 0"),
    # lines that a later kernel lacks
    (["sample_requests 2000"], "-", "0 - - - - - -")])
def test_hardware_queue(learnt, texts, group, cells):
    learnt.queues(*texts)
    found, lines = learnt.table()
    assert found == group
    assert lines[0] == "nvme0n1: adaptive, last sample of each hardware queue:"
    assert lines[1].split() == list(output.QUEUE_HEADER)
    assert " ".join(lines[2].split()) == cells
    assert len(lines) == 4
    assert len(lines[1]) == len(lines[2])
    assert len(texts) > 1 or "has no sample of 1 hardware queues" in lines[3]


@pytest.mark.parametrize("text", [NO_SAMPLE, ""])
def test_no_sample_at_all(learnt, text):
    """No I/O, and not even a plug."""
    learnt.queues(text)
    assert text or learnt.json()["hctx"]["0"] == {}
    group, lines = learnt.table()
    assert group == "-"
    assert len(lines) == 1
    assert "no sample of 2 hardware queues" in lines[0]


def test_other_modes(learnt, host):
    host.policy("nvme0n1", "seq-small")
    assert learnt.json() is learnt.json("nullb0") is None
    assert learnt.table() == learnt.table("nullb0") == ("-", [])


def test_kernel_without_the_file(learnt, host):
    for hctx in range(2):
        host.remove(f"{DEBUGFS}block/nvme0n1/hctx{hctx}/plug_adaptive")
    assert learnt.json()["hctx"] == {}
    assert learnt.table() == ("-", [])


def test_adaptive_is_not_in_force(learnt, host):
    host.policy("nvme0n1", "adaptive", "elevator")
    assert learnt.json()["not_in_force"] == "elevator"
    assert learnt.table() == ("!", [
        'nvme0n1: adaptive is not in force (elevator): does as "always"'])


# --- modes -------------------------------------------------------------------
@pytest.fixture
def policies(stat):
    def call(*words):
        done = stat("--policy", "--json", *words)
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)["disks"]
    return call


def test_policy_without_debugfs(host, stat, policies):
    """For programs, and for people the same."""
    host.remove("sys/kernel")
    host.policy("nvme0n1", "adaptive")
    host.policy("nullb0", "always", "elevator")
    host.disk("sda")
    host.policy("sda", "never", "no-queue_rqs")
    assert {name: tuple(found.values())
            for name, found in policies().items()} == {
                "nvme0n1": ("adaptive", "adaptive", "as set"),
                "nullb0": ("always", "always", "as set"),
                "sda": ("never", "always", "no-queue_rqs")}
    assert [text.split(None, 3)
            for text in stat("--policy", "sda").prints().splitlines()] == [
        ["Disk", "set", "in-force", "why"],
        ["sda", "never", "always", "no-queue_rqs"]]


@pytest.mark.parametrize("disks", [[], ["nullb0"]])
def test_no_policy(host, stat, disks):
    def refuses(option, code=1):
        done = stat(option, *disks)
        assert done[:2] == (code, "")
        return done.err

    assert "CONFIG_BLK_PLUG_POLICY" in refuses("--policy")
    host.remove("sys/kernel")
    assert "CONFIG_BLK_PLUG_POLICY" in refuses("--prometheus")
    host.policy("nvme0n1", "adaptive")
    if disks:
        assert "nullb0 has no plug_policy (disks with" in refuses("--policy", 2)


def test_check(host, stat):
    """3 if a mode is not in force; else as without --check."""
    host.policy("nvme0n1", "adaptive")
    host.policy("nullb0", "always", "elevator")
    done = stat("--policy", "--check")
    assert (done.code, done.err) == (0, "")
    host.policy("nvme0n1", "adaptive", "elevator")
    for words in [], ["--json"], ["nvme0n1"]:
        done = stat("--policy", "--check", *words)
        done.prints("elevator", code=3)
        assert done.err == ("plugstat: nvme0n1: adaptive is set, but always is "
                            "in force: elevator\n")
    assert stat("--policy", "--check", "nullb0").code == 0
    assert stat("--policy").code == 0


@pytest.mark.parametrize("name, words", [
    ("check_policies", "--policy --check"), ("print_policies", "--policy"),
    ("export", "--prometheus"), ("choose", "--counting on")])
def test_interrupted(host, stat, monkeypatch, name, words):
    """It is not as if all were in force, or done."""
    def interrupt(*_words):
        raise plugstat.Interrupted
    host.policy("nvme0n1", "adaptive", "elevator")
    monkeypatch.setattr(plugstat, name, interrupt)
    assert stat(*words.split()).code == 130


# --- many disks, and such that go --------------------------------------------
@pytest.mark.parametrize("words", [
    "--policy --check --json", "--prometheus", "--prometheus nullb0 nvme0n1"])
def test_disk_that_goes(host, stat, words):
    """It costs its own lines, whenever it does."""
    host.policy("nvme0n1", "adaptive")
    for gone in host.goings("nullb0", lambda: host.counted(
            "nullb0", mode="never"), 2):
        assert ('"never"' in stat(*words.split()).prints('"adaptive"')) or gone


@pytest.mark.parametrize("head, paths", MULTIPATH)
def test_many(host, stat, roll, head, paths):
    """Paths of dm and of NVMe, many that are named, and many that plugroll
    keeps: four times as many take four times as long."""
    def make(number):
        for name in host.many(number, head, paths):
            host.counters(name, {"tags_single": 1})
            host.put(f"{DEBUGFS}block/{name}/plug_stats_enabled", "1")
        return [head.format(disk) for disk in range(number)]

    def took(names):
        return [calls(lambda run=run, words=words: run(*words))
                for run, words in (
                    (stat, ["--policy"]), (stat, ["--policy", *names]),
                    (stat, ["--prometheus"]), (stat, ["--prometheus", *names]),
                    (stat, ["1", "1", *names]), (roll, ["list"]),
                    (roll, ["list", *names]), (roll, ["keep", "never", *names]),
                    (roll, ["list"]), (roll, ["undo"]))]

    for few, many in zip(took(make(15)), took(make(60))):
        assert many < 5 * few


@pytest.mark.parametrize("words", [
    "plugstat 0.1", "plugstat --json 0.1", "plugstat --policy",
    "plugstat --policy --json", "plugstat --prometheus", "plugstat --help",
    "plugroll list", "plugroll list --json", "plugroll list --help",
    "plugroll --version", "plugbench --restore"])
def test_lost_output(host, stat, words):
    """As on a full disk: an error, told in a line, and the end of the watch and
    the counting; a reader who has seen enough is told nothing."""
    tool, *words = words.split()
    host.policy("nvme0n1", "adaptive")
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full, os.fdopen(writer, "wb") as pipe:
        assert [host.apart(tool, *words, stdout=out)[::2]
                for out in (full, pipe)] == [
            (1, f"{tool}: output is lost: No space left on device\n"),
            (0, "")]
    assert host.switch("nvme0n1") == "0"
