# SPDX-License-Identifier: GPL-2.0
"""plugroll keep, undo and apply; in a guest udev itself reads the rules."""
import json
import os
import re
import signal
from unittest import mock

import pytest

from fakehost import RULES, busy
from plugtools.core import disks, system
from plugtools.core.disks import Disk
from plugtools.core.journal import Held
from plugtools.core.system import Interrupted
from plugtools.roll import disklist, keep, rules

# of all NVMe disks and one that is named, whose rule comes later and so wins
TEXT = """
# keep never name=nvme*
ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", \\
  TEST=="queue/plug_policy", KERNEL=="nvme*", \\
  ATTR{queue/plug_policy}="never"

# keep adaptive wwid=eui.nvme0n1
ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", \\
  TEST=="queue/plug_policy", ATTR{wwid}=="eui.nvme0n1", \\
  ATTR{queue/plug_policy}="adaptive"

# Paths of NVMe multipath have no event.  They come with a head, or shortly
# after a controller has connected.
ACTION=="add", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="nvme*", \\
  TEST!="mq", RUN+="/usr/sbin/plugroll apply"
ACTION=="change", SUBSYSTEM=="nvme", ENV{NVME_EVENT}=="connected", \\
  RUN+="/usr/sbin/plugroll apply"
"""


class Kept:
    def __init__(self, host, roll):
        self.host, self.roll = host, roll

    def keep(self, *words):
        done = self.roll("keep", *words)
        assert done.err == ""
        return done.prints()

    def come(self, name="nvme0c2n1", number="9", wwid="eui.1"):
        """A path that comes later."""
        self.host.disk(name, files={"diskseq": number, "wwid": wwid})

    def apply(self):
        return self.roll("apply", "--settle", "0")

    def rules(self):
        return self.host.get(RULES, "")

    def modes(self):
        return {name: self.host.mode(name)
                for name in sorted(os.listdir(self.host.path("sys/block")))
                if Disk(name).has_knob()}


AS_BEFORE = {"nvme0n1": "never", "nvme1n1": "always", "nvme2n1": "always"}


@pytest.fixture
def kept(host, roll):
    for disk in AS_BEFORE.items():
        host.disk(*disk)
    return Kept(host, roll)


@pytest.fixture
def headed(host, roll):
    host.head()
    for name in "nvme1n1", "nvme2n1":
        host.disk(name)
    return Kept(host, roll)


# --- keep --------------------------------------------------------------------
def test_disk(host, kept, roll, logged):
    """One disk, known again by its wwid; the second time changes nothing, and
    says so."""
    assert kept.rules() in kept.keep("adaptive", "/dev/nvme0n1")
    assert kept.modes() == {**AS_BEFORE, "nvme0n1": "adaptive"}
    assert logged == ["keep adaptive on nvme0n1"]
    before = host.path(RULES).stat().st_ino
    assert "the rules say so already" in kept.keep("adaptive", "nvme0n1")
    assert host.path(RULES).stat().st_ino == before
    roll("keep", "adaptive", "nvme0n1", "--json").prints('"changed": false')
    kept.keep("never", "--all-nvme")
    assert kept.rules().endswith(TEXT.strip())


def test_all(host, kept, roll):
    """By a pattern: paths and disks that come later; a disk that is named as
    well has its own mode."""
    host.disk("sda")
    kept.keep("never", "nvme1n1")
    found = json.loads(kept.keep("adaptive", "--all-nvme", "--json"))
    assert found["disks"] == ["nvme0n1", "nvme2n1"]
    assert found["skipped"] == {"nvme1n1": "never"}
    assert list(found["written"]) == ["/" + RULES]
    assert kept.modes() == {"nvme0n1": "adaptive", "nvme1n1": "never",
                            "nvme2n1": "adaptive", "sda": "always"}
    rows = json.loads(roll("list", "--json").out)["disks"]
    assert [row["kept"] for row in rows] == ["adaptive", "never", "adaptive",
                                             None]


def test_twins(host, kept, roll):
    """A serial number that another disk has as well names none; two that are
    both given are kept. Of a WWID, paths share it."""
    for name, number in ("vda", "1234"), ("vdb", "1234"), ("vdc", "1235"):
        host.disk(name, files={"wwid": "", "serial": number})
    roll("keep", "never", "vda").fails(
        2, "vda and vdb have the same serial number, 1234")
    assert (kept.rules(), host.mode("vda")) == ("", "always")
    kept.keep("never", "vdc")
    kept.keep("adaptive", "vda", "vdb")
    roll("undo")
    assert host.mode("vdb") == "always"
    for name in "sda", "sdb":
        host.disk(name, files={"wwid": "", "device/wwid": "naa.5"})
    kept.keep("never", "sda")


@pytest.mark.parametrize("words", [["--all-nvme"],
                                   ["nvme0n1", "nvme1n1", "nvme2n1"]])
def test_going(host, kept, roll, words):
    """A disk that goes meanwhile costs the others nothing, whenever it does;
    the rules are those of a disk that was there, or of none."""
    def before():
        for name in "nvme0n1", "nvme1n1", "nvme2n1":
            if not Disk(name).there():
                host.disk(name)
            host.policy(name, "always")

    for number, _ in enumerate(host.goings("nvme1n1", before)):
        code, _, said = roll("keep", "never", *words)
        if code == 2:           # the user names a disk that is not there
            assert "nvme1n1: no such disk" in said
            continue
        assert (code, host.mode("nvme0n1"), host.mode("nvme2n1")) == (
            0, "never", "never"), said
        assert said in ("", "nvme1n1 has gone")
        with host.going("nvme2n1", number):
            assert roll("undo").fails(0) == ""
        assert (host.mode("nvme0n1"), kept.rules()) == ("always", "")


@pytest.mark.parametrize("refuses, told", [
    ("nvme1n1", "Device or resource busy"), ("", "etc/udev")])
def test_nothing_by_halves(host, kept, roll, refuses, told):
    """A disk that refuses, or a directory that is none: no rule is left, and no
    disk is set."""
    if refuses:
        kept.keep("seq-small", "nvme2n1")
    else:
        host.put("etc/udev", "a file")
    before = kept.modes(), refuses and kept.rules()
    with busy(refuses):
        roll("keep", "adaptive", "nvme0n1", "nvme1n1").fails(1, told)
    assert (kept.modes(), refuses and kept.rules()) == before


def test_not_noted(host, headed, logged):
    """A path that cannot be noted as set is set, and kept."""
    host.path(keep.APPLIED.lstrip("/")).mkdir(parents=True)
    headed.keep("adaptive", "nvme0n1")
    assert host.mode("nvme0c1n1") == "adaptive"
    assert "applied: Is a directory" in logged[0]


def test_left_by_a_killed_try(host, kept, roll):
    """Its mode is not taken for the one from before."""
    kept.host.killed("nvme0n1", "seq-small")
    with busy("nvme0n1 never"):
        roll("keep", "adaptive", "nvme0n1").fails(
            1, "nvme0n1.journal tells of settings that could not")
    assert kept.rules() == ""
    roll("keep", "adaptive", "nvme0n1").prints()
    roll("undo")
    assert host.mode("nvme0n1") == "never"


@pytest.mark.parametrize("words", ["keep adaptive nvme0n1", "undo"])
def test_not_ours(host, kept, roll, words):
    """A file that somebody else has written is left alone."""
    host.put(RULES, "# mine")
    roll(*words.split()).fails(1, "is not plugroll's: move it away")
    assert kept.rules() == "# mine"


def test_odd_identity(host, kept, roll):
    """What udev would take for a pattern or an end matches itself; without
    one a disk could not be known again."""
    host.put("sys/block/nvme0n1/wwid", 't10.ATA  A*[b]"|c was=no')
    kept.keep("seq-small", "nvme0n1")
    assert '=="t10.ATA  A??b???c was?no"' in kept.rules()
    roll("undo")
    for wwid in "", "a\x01b":
        host.put("sys/block/nvme0n1/wwid", wwid)
        roll("keep", "adaptive", "nvme0n1").fails(2, "neither wwid nor serial")
    assert kept.modes() == AS_BEFORE


def test_systemd(host, kept):
    """Where there is systemd it waits for paths, not udev."""
    host.path("run/systemd/system").mkdir(parents=True)
    host.program("systemd-run", "")
    kept.keep("adaptive", "nvme0n1")
    assert f'RUN+="{host.bin}/systemd-run --quiet --no-block --collect ' \
        '/usr/sbin/plugroll apply"' in kept.rules()


# --- what keep sets, and what it says ----------------------------------------
SKIPS = "{} is skipped: {} is kept for it by name"


@pytest.mark.parametrize("first, then, said, modes", [
    # a disk that has been named is left out, and that is said
    ("never nvme1n1", "adaptive --all-nvme", [
        SKIPS.format("nvme1n1", "never"),
        "nvme0c0n1, nvme0c1n1, nvme2n1: adaptive"],
     "adaptive adaptive never adaptive"),
    ("adaptive nvme0n1", "never --all-nvme", [
        SKIPS.format("nvme0c0n1", "adaptive"),
        SKIPS.format("nvme0c1n1", "adaptive"), "nvme1n1, nvme2n1: never"],
     "adaptive adaptive never never"),
    ("adaptive --all-nvme", "never nvme0n1", ["nvme0c0n1, nvme0c1n1: never"],
     "never never adaptive adaptive"),
    # the same mode skips nothing
    ("adaptive nvme0n1", "adaptive --all-nvme", [
        "nvme0c0n1, nvme0c1n1, nvme1n1, nvme2n1: adaptive"],
     "adaptive adaptive adaptive adaptive")])
def test_exceptions(headed, first, then, said, modes):
    headed.keep(*first.split())
    assert headed.rules().count("# keep ") == 1     # also of a head
    told = headed.keep(*then.split())
    assert re.findall("^nvme.*", told, re.M) == said
    assert list(headed.modes().values()) == modes.split()


def test_will_not_go_back(headed, roll):
    """A disk that refuses, and one that will not go back: the rules tell of
    that one only."""
    with busy("nvme2n1", "nvme1n1 always"):
        roll("keep", "adaptive", "--all-nvme").fails(
            1, "nvme1n1 stays at adaptive")
    now = headed.modes()
    assert now == {**dict.fromkeys(now, "always"), "nvme1n1": "adaptive"}
    assert [one.value for one in rules.on_file().kept] == ["eui.nvme1n1"]
    assert roll("undo").code == 0
    assert set(headed.modes().values()) == {"always"}


# --- undo: all is as it was, or else is not forgotten ------------------------
@pytest.mark.parametrize("keeps, entries", [
    (["adaptive --all-nvme"], 1),
    # a disk that is named first, and then all
    (["adaptive nvme1n1", "seq-small --all-nvme", "never nvme2n1"], 3),
    # one that is kept again has one rule
    (["adaptive nvme0n1", "seq-small nvme1n1", "always nvme0n1"], 2)])
def test_each_as_it_was(kept, roll, keeps, entries):
    for words in keeps:
        kept.keep(*words.split())
    assert len(rules.on_file().kept) == entries
    roll("undo").prints("nvme0n1 is never again")
    assert (kept.modes(), kept.rules()) == (AS_BEFORE, "")
    assert roll("undo") == (0, "nothing was kept", "")


def test_paths(host, headed, roll):
    """Paths of one disk in two modes; one that comes later."""
    host.policy("nvme0c1n1", "never")
    headed.keep("adaptive", "nvme0n1")
    host.disk("nvme0c2n1", "adaptive", files={"wwid": "eui.1"})
    headed.keep("seq-small", "nvme0n1")
    assert roll("undo").code == 0
    assert [host.mode(f"nvme0c{path}n1") for path in range(3)] == [
        "always", "never", "always"]


def test_came_later(host, kept, roll):
    """Nothing is known of it; its kept mode is none from before."""
    kept.keep("adaptive", "--all-nvme")
    for name in "nvme3n1", "nvme4n1":
        host.disk(name, "adaptive")
    kept.keep("never", "nvme4n1")
    out = roll("undo").out
    assert (host.mode("nvme3n1"), host.mode("nvme4n1")) == ("always", "always")
    assert "nvme3n1 is always now; it came after keep" in out


def test_set_by_hand(host, kept, roll):
    """undo leaves a mode that was set after keep."""
    kept.keep("adaptive", "nvme0n1")
    host.policy("nvme0n1", "seq-small")
    assert "nvme0n1 is left at seq-small" in roll("undo").out
    assert host.mode("nvme0n1") == "seq-small"


@pytest.mark.parametrize("wwid, key, value", [
    ("eui.nvme0n1", "wwid", "eui.nvme0n1"),
    # one without an identity is known by its name
    ("", "name", "nvme0n1")])
def test_busy(host, kept, roll, wwid, key, value):
    """A disk that refuses: the rules go on telling of it alone, and the next
    undo puts it back."""
    host.put("sys/block/nvme0n1/wwid", wwid)
    kept.keep("adaptive", "--all-nvme")
    with busy("nvme0n1"):
        roll("undo").prints("nvme0n1: Device or resource busy", code=1)
    assert kept.modes() == {**AS_BEFORE, "nvme0n1": "adaptive"}
    assert rules.on_file() == ([("adaptive", key, value)],
                               [("never", "nvme0n1", key, value)])
    assert wwid or 'KERNEL=="nvme0n1"' in kept.rules()
    assert roll("undo").code == 0
    assert (kept.modes(), kept.rules()) == (AS_BEFORE, "")


@pytest.mark.parametrize("first", [False, True])
def test_killed_try(kept, roll, first):
    """What a killed try left, and cannot be put back, is a problem, with rules
    and without."""
    if first:
        kept.keep("adaptive", "nvme1n1")
    before = kept.modes()["nvme1n1"]
    kept.host.killed("nvme1n1", "seq-small")
    with busy(f"nvme1n1 {before}"):
        roll("undo").prints("is not put back", code=1)
    assert bool(kept.rules()) == first
    roll("undo", "--json").prints('"problems": []')
    assert kept.modes() == AS_BEFORE
    assert roll("undo") == (0, "nothing was kept", "")


# --- a signal at the worst moment --------------------------------------------
def interrupted(roll, *words):
    """What is said if one comes while the mode of nvme1n1 is set."""
    with busy("nvme1n1", error=Interrupted("SIGTERM")):
        return roll(*words).fails(130)


@pytest.mark.parametrize("noted", [True, False])
def test_undo_interrupted(kept, roll, monkeypatch, noted):
    """The next undo puts back the rest, or, if there was no time to write that
    down, all."""
    kept.keep("adaptive", "--all-nvme")
    with monkeypatch.context() as patch:
        if not noted:
            patch.setattr(keep, "install", lambda _: None)
        assert interrupted(roll, "undo") == (
            "plugroll: interrupted by SIGTERM; the next undo does the rest")
    assert list(kept.modes().values()) == ["never", "adaptive", "adaptive"]
    assert ("eui.nvme0n1" in kept.rules()) == (not noted)
    assert ("nvme0n1 is never again" in roll("undo").out) == (not noted)
    assert (kept.modes(), kept.rules()) == (AS_BEFORE, "")


@pytest.mark.parametrize("error", [Interrupted("SIGTERM"), KeyboardInterrupt()])
def test_keep_interrupted(kept, roll, error):
    """All or nothing, of modes and rules."""
    kept.keep("never", "nvme2n1")
    before = kept.modes(), kept.rules()
    with busy("nvme1n1", error=error), pytest.raises(type(error)):
        keep.keep("adaptive", [Disk("nvme0n1"), Disk("nvme1n1")])
    assert (kept.modes(), kept.rules()) == before
    assert interrupted(roll, "keep", "adaptive", "--all-nvme") == \
        "plugroll: interrupted by SIGTERM"


def test_second_signal(host, kept, monkeypatch):
    """One that comes while modes are put back waits until they are."""
    def write(path, value):
        if "nvme1n1" in path:
            raise OSError(16, "Device or resource busy", path)
        if value == "never":
            os.kill(os.getpid(), signal.SIGTERM)
        host.kernel_write(path, value)

    old = signal.getsignal(signal.SIGTERM)
    system.interruptible()
    monkeypatch.setattr(disks, "write", write)
    with pytest.raises(Interrupted):
        keep.keep("adaptive", [Disk("nvme0n1"), Disk("nvme1n1")])
    signal.signal(signal.SIGTERM, old)
    assert (kept.modes(), kept.rules()) == (AS_BEFORE, "")


def test_keep_interrupted_while_it_writes(kept, roll, monkeypatch):
    monkeypatch.setattr(rules, "reload_udev", mock.Mock(
        side_effect=[Interrupted("SIGHUP"), None]))
    roll("keep", "adaptive", "nvme0n1").fails(130)
    assert (kept.modes(), kept.rules()) == (AS_BEFORE, "")


# --- two of us at once -------------------------------------------------------
@pytest.mark.parametrize("module, file, action", [
    (rules, rules.RULES, keep.undo),
    (rules, rules.RULES, lambda: keep.keep("adaptive", [Disk("nvme0n1")])),
    (disklist, disklist.TRIES, lambda: disklist.note_try(
        {"mode": "never", "disks": {}}, []))], ids=range(3))
def test_at_once(kept, monkeypatch, module, file, action):
    """Who reads, changes and writes the rules, or what came of tries, lets
    nobody else do so."""
    kept.keep("seq-small", "nvme1n1")
    read, seen = module.read, []

    def alone(path, *default):
        if path.endswith(file):
            seen.append(path)
            with pytest.raises(Held), keep.locked([os.path.basename(file)],
                                                  "x"):
                pass
        return read(path, *default)

    monkeypatch.setattr(module, "read", alone)
    action()
    assert seen


# --- apply: paths of NVMe multipath that come later --------------------------
@pytest.fixture
def paths(headed):
    """Some of a disk that is kept."""
    headed.keep("adaptive", "nvme0n1")
    return headed


def test_new_path(host, paths, logged):
    """It is set, once nobody measures it; paths of other disks are not."""
    paths.come()
    paths.come("nvme1c3n1", wwid="eui.2")
    with keep.locked(["nvme0c2n1"], "plugbench"):
        paths.apply()
    assert host.mode("nvme0c2n1") == "always"
    assert paths.apply() == (0, "", "")
    assert (host.mode("nvme0c2n1"), host.mode("nvme1c3n1")) == (
        "adaptive", "always")
    assert logged == ["nvme0c2n1 is a new path: adaptive, as kept"]


def test_path_set_by_hand(host, paths):
    """A controller's event does not undo what was set by hand; but a path that
    was away is a new one."""
    paths.come()
    for name in "nvme0c0n1", "nvme0c2n1":
        host.policy(name, "never")
        paths.apply()
    host.remove("sys/block/nvme0c1n1")
    paths.come("nvme0c1n1", number="10")
    paths.apply()
    assert [host.mode(f"nvme0c{path}n1") for path in range(3)] == [
        "never", "adaptive", "never"]


def test_waits_for_paths(host, paths, roll, monkeypatch):
    """The kernel may still be looking for namespaces."""
    then = iter([paths.come, lambda: None])
    with monkeypatch.context() as patch:
        patch.setattr(keep.time, "sleep", lambda _: next(then)())
        patch.setattr(keep.time, "monotonic", iter([0, 1, 2, 11]).__next__)
        assert roll("apply").code == 0
    assert host.mode("nvme0c2n1") == "adaptive"


def test_undo_that_comes_first_wins(host, paths, roll, monkeypatch):
    paths.come()
    real = keep.locked

    def undo_first(names, program):
        monkeypatch.setattr(keep, "locked", real)
        assert roll("undo").code == 0
        return real(names, program)

    monkeypatch.setattr(keep, "locked", undo_first)
    paths.apply()
    assert host.mode("nvme0c2n1") == "always"
    paths.apply().fails(1, "nothing is kept")
