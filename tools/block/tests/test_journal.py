# SPDX-License-Identifier: GPL-2.0
"""plugtools.core.journal: locks, journals, and what recover() does."""
import json
import os
import subprocess
import sys
import time
from unittest import mock

import pytest

from fakehost import KNOB, offer, wait_until
from plugtools.bench import children
from plugtools.core import journal, system

FILE = "run/plug-policy/nvme0n1.journal"


@pytest.fixture
def knob(host):
    host.disk("nvme0n1")
    return str(host.path(KNOB))


def recover(good=True):
    told = []
    assert journal.recover(told.append) == good
    return "\n".join(told)


@pytest.fixture
def entry(knob):
    return journal.Journal("nvme0n1", ["nvme0n1"], "plugroll")


# --- what is in the file, and when -------------------------------------------
def test_before_the_change(host, knob, entry, monkeypatch):
    """On disk, with how it was, when the setting is written."""
    synced, seen = [], []

    def write(path, value):
        seen.append((json.loads(host.path(FILE).read_text().splitlines()[-1]),
                     synced[-1]))
        host.kernel_write(path, value)

    monkeypatch.setattr(journal, "write", write)
    monkeypatch.setattr(os, "fsync", synced.append)
    entry.set(knob, "never")
    assert seen == [({"path": knob, "before": "always",
                      "to": "never"}, entry.file)]
    assert host.mode("nvme0n1") == "never"


def test_full(host, knob, entry, monkeypatch):
    """A /run that takes a part of a line gets none, and nothing changes."""
    entry.set(knob, "never")
    before, whole = host.path(FILE).read_text(), os.pwrite
    with monkeypatch.context() as patch, pytest.raises(OSError) as caught:
        patch.setattr(os, "pwrite", lambda file, data, where: whole(
            file, data[:len(data) // 2], where))
        entry.set(knob, "seq-small")
    assert "/run/plug-policy" in str(caught.value)
    assert host.path(FILE).read_text() == before
    assert host.mode("nvme0n1") == "never"
    assert entry.put_back() == []
    assert host.mode("nvme0n1") == "always"


def test_full_when_a_program_starts(entry, monkeypatch):
    """It does not, as nobody would end it after us."""
    with children.Stop() as stop, children.Runner(stop, entry) as runner, \
            pytest.raises(system.EnvironmentProblem, match="sleep .*full"):
        monkeypatch.setattr(journal, "append",
                            mock.Mock(side_effect=OSError(28)))
        runner.run(["/bin/sleep", "9"], 5)


def test_whole_from_the_first(host, entry, monkeypatch):
    """Another program never finds a journal without the disks' locks."""
    seen, place = [], host.path("run/plug-policy")
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(
        path.read_text() for path in place.glob("*.journal")))
    entry.begin()
    assert {json.loads(text.splitlines()[0])["program"]
            for text in seen} == {"plugroll"}
    assert os.listdir(place) == ["nvme0n1.journal"]


def test_put_back(host, knob, entry):
    """As before the first change; then the file goes, which without a change
    did not come."""
    entry.set(knob, "always")
    assert not host.path(FILE).exists()
    for value in "never", "always", "seq-small":
        entry.set(knob, value)
    assert entry.put_back() == []
    assert host.mode("nvme0n1") == "always"
    assert not host.path(FILE).exists()


def test_last_changed_first(host, knob, entry):
    """And what another setting changes, whatever it is."""
    scheduler = knob.replace("plug_policy", "scheduler")
    entry.remember(knob)
    host.policy("nvme0n1", "adaptive")
    entry.set(scheduler, "mq-deadline")
    assert entry.put_back() == []
    assert entry.done == [f"{scheduler} is none again",
                          f"{knob} is always again"]


def test_refused(host, knob, entry, monkeypatch):
    monkeypatch.setattr(journal, "write", lambda path, value: None)
    with pytest.raises(system.EnvironmentProblem,
                       match="wrote never, but it is always"):
        entry.set(knob, "never")


def test_not_put_back(host, knob, entry):
    """The journal stays, nobody else starts one, and words say so."""
    entry.set(knob, "never")
    host.remove(KNOB)
    host.path(KNOB).mkdir()
    problem, = entry.put_back()
    assert "not put back" in problem
    assert problem.endswith("; it was: always")
    with pytest.raises(system.EnvironmentProblem, match="--restore"):
        journal.Journal("nvme0n1", ["nvme0n1"], "plugroll").note(disk="x")
    assert "it was: always" in recover(good=False)
    assert host.path(FILE).exists()


# --- what killed programs left -----------------------------------------------
@pytest.mark.parametrize("files, told, mode", [
    ({}, "plug_policy is always again", "always"),
    # it was killed before the change
    ({KNOB: offer("always")}, "putting back what it left:", "always"),
    # what somebody has set meanwhile is theirs
    ({KNOB: offer("adaptive")}, "left at adaptive", "adaptive"),
    # a disk that came meanwhile has only the name
    ({"sys/block/nvme0n1/diskseq": "8"}, "has gone", "never")])
def test_setting(host, knob, files, told, mode):
    host.killed("nvme0n1", "never")
    for item in files.items():
        host.put(*item)
    text = recover()
    assert f"plugroll (process {os.getpid()}) was killed" in text
    assert told in text
    assert ("again" in text) == ("again" in told)
    assert (host.mode("nvme0n1"), host.path(FILE).exists()) == (mode, False)
    assert recover() == ""


def test_cut_short(host, knob):
    """The entry that was being written tells of no change."""
    host.killed("nvme0n1", "never")
    with open(host.path(FILE), "a", encoding="ascii") as file:
        file.write(f'{{"path": "{knob}", "bef')
    recover()
    assert host.mode("nvme0n1") == "always"


@pytest.mark.parametrize("lines, known", [
    ([], False), (["\0\0"], False), (["[]"], False), (["7", "CHANGE"], True),
    (["HEAD", "[" * 100000, "CHANGE"], True),
    (["HEAD", "CHANGE", '{"path": 7}'], True),
    (['{"program": "x", "pid": 1, "locks": null}', "CHANGE"], True),
    (['{"program": "x", "pid": 1, "locks": [[]]}', "CHANGE"], True)],
    ids=range(8))
def test_unreadable(host, knob, entry, lines, known):
    """What may tell of more stays, and is no reason to end."""
    known_lines = {"HEAD": json.dumps(entry.head), "CHANGE": json.dumps(
        {"path": knob, "before": "always", "to": "never"})}
    host.policy("nvme0n1", "never")
    host.put(FILE, "".join(known_lines.get(line, line) + "\n"
                           for line in lines).encode())
    assert "cannot be read" in recover(good=False)
    assert host.path(FILE).exists()
    assert host.mode("nvme0n1") == ("always" if known else "never")


def test_later_version(host, knob, entry):
    """One whose entries hold more; and its lock is heeded, as is that of one
    whose head cannot be read."""
    entry.head["new"] = 1
    entry.set(knob, "never")
    os.close(entry.file)
    for readable in True, False:
        with journal.locked(["nvme0n1"], "plugbench"):
            assert recover() == ""
        assert host.mode("nvme0n1") == "never"
        if readable:
            assert "always again" in recover()
            host.policy("nvme0n1", "never")
            host.put(FILE, "{")


def test_not_ours_to_read(host, knob, monkeypatch):
    """It is not said to hold what cannot be read."""
    host.killed("nvme0n1", "never")
    told = []
    with monkeypatch.context() as patch, pytest.raises(PermissionError):
        patch.setattr("builtins.open", mock.Mock(side_effect=PermissionError(
            13, "Permission denied", str(host.path(FILE)))))
        journal.recover(told.append)
    assert told == []


def test_another_process(host, knob, entry):
    """One that has the number by now is left alone."""
    with subprocess.Popen(["/bin/sleep", "60"],
                          start_new_session=True) as process:
        start = system.start_time(process.pid)
        entry.note(process=process.pid, start=start + 1)
        os.close(entry.file)
        assert "was ended" not in recover()
        assert system.start_time(process.pid) == start
        process.kill()


def test_deaf_process(tmp_path, monkeypatch):
    """SIGTERM comes first; SIGKILL for who does not listen."""
    ready, told = tmp_path / "ready", tmp_path / "told"
    code = ("import signal, time, pathlib; signal.signal(15, lambda *_: "
            f"pathlib.Path('{told}').touch()); pathlib.Path('{ready}').touch()"
            "; time.sleep(600)")
    monkeypatch.setattr(journal, "END_SECONDS", 1)
    with subprocess.Popen([sys.executable, "-c", code],
                          start_new_session=True) as process:
        wait_until(ready.exists)
        assert journal.end_process(process.pid,
                                   system.start_time(process.pid))[0]
        assert told.exists()
        assert process.wait() == -9


def test_own_session(monkeypatch):
    """Once a guard is there, what kills the program's group misses it."""
    begin = os.setsid

    def slowly():
        time.sleep(.3)
        begin()

    monkeypatch.setattr(os, "setsid", slowly)
    guard = journal.Guard(lambda: None)
    session = os.getsid(guard.pid)
    guard.close()
    assert session == guard.pid


# --- one program at a time ---------------------------------------------------
def held(*names):
    """Locks that somebody has; how long it took to be told."""
    begun = time.monotonic()
    with pytest.raises(journal.Held) as caught, journal.locked(names, "y"):
        pass
    return str(caught.value), time.monotonic() - begun


def test_held(host):
    """By whom is said, and of several disks none is kept."""
    with journal.locked(["md0", "nvme0n1"], "plugbench"):
        assert f"plugbench (process {os.getpid()})" in held("a", "nvme0n1")[0]
        # in one order, or two might each have what the other wants
        assert held("nvme0n1", "md0")[0].startswith("md0 ")
        with journal.locked(["a"], "y"):
            pass
    with journal.locked(["nvme0n1"], "z"):
        pass


def test_successor(host, monkeypatch):
    """Who puts back for a killed holder, and has its lock, is waited for."""
    lock = "run/plug-policy/nvme0n1.lock"
    with journal.locked(["nvme0n1"], "x"):
        host.put(lock, f"x (process {os.getpid()})")
        assert held("nvme0n1")[1] < journal.END_SECONDS
        host.put(lock, "x (process 4194305)")
        monkeypatch.setattr(journal, "END_SECONDS", 0.3)
        assert held("nvme0n1")[1] > 0.3
