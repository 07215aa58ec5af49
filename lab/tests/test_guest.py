# SPDX-License-Identifier: GPL-2.0
"""What guests, and what waits for them, have in common; what selftest.py reads
of run_kselftest.sh."""
import time

import pytest

from lab.qemu import guest
from scripts import common, kernel, selftest
from scripts.checks import tap


def test_clock(capsys, monkeypatch):
    """Speaks as long as it lasts, and no longer."""
    monkeypatch.setattr(common, "SECONDS", 0.02)
    said = ""
    with common.clock(lambda seconds: f"at {seconds:.0f}"):
        while "at 0\n" not in said:
            said += capsys.readouterr().out
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().out == ""


def test_locked(tmp_path):
    """The second one is refused, or has its turn when the first ends."""
    path = str(tmp_path / "new/lock")
    with common.locked(path), pytest.raises(KeyError, match="busy"):
        with common.locked(path, KeyError("busy")):
            pytest.fail("two hold the lock")
    with common.locked(path, KeyError("busy")):
        pass


def test_together():
    """Results by key; one that fails ends it, and what has not begun."""
    def fail():
        raise OSError("first")

    assert guest.together({"a": lambda: 1, "b": lambda: 2}) == {"a": 1, "b": 2}
    begun = []
    with pytest.raises(OSError, match="first"):
        guest.together({"a": fail, "b": lambda: time.sleep(0.2),
                        "c": lambda: begun.append("c")}, workers=1)
    assert begun == []


@pytest.fixture(name="builds")
def fixture_builds(tmp_path, monkeypatch):
    """The builds of an initramfs, of programs that lie in a directory."""
    def entries(*programs):
        made.append(programs)
        yield b"archive"

    made = []
    for name in ("busybox", "fio", "plug_load.c"):
        (tmp_path / name).write_text(name, encoding="ascii")
    monkeypatch.setattr(kernel, "BUILD", str(tmp_path))
    monkeypatch.setattr(guest, "plug_load", lambda: [tmp_path / "plug_load.c"])
    monkeypatch.setattr(guest.arch, "find", lambda name: str(tmp_path / name))
    monkeypatch.setattr(guest, "libraries", lambda *programs: ([], []))
    monkeypatch.setattr(guest, "entries", entries)
    return made


def test_initramfs_is_made_anew_if_its_inputs_change(builds, tmp_path):
    for name in ("busybox", "fio", "plug_load.c"):
        before = len(builds)
        (tmp_path / name).write_text("new", encoding="ascii")
        with open(guest.initramfs(), "rb") as archive:
            assert archive.read() == b"archive"
        assert guest.initramfs() and len(builds) == before + 1


def test_what_stands_in_the_way_is_named(builds, monkeypatch):
    """With the command that mends it."""
    monkeypatch.setattr(guest, "libraries", lambda *programs: (["libc.so"], []))
    with pytest.raises(kernel.BuildError, match="apt-get install busybox-static"):
        guest.initramfs()
    monkeypatch.setattr(guest.arch, "find", lambda name: None)
    with pytest.raises(kernel.BuildError, match="need busybox: apt-get install"):
        guest.initramfs()
    assert not builds


SAID = """TAP version 13
1..4
# selftests: block-plug: a.sh
# 1..2
# ok 1 one
# # a word
# ok 2 two # SKIP no disk
ok 1 selftests: block-plug: a.sh
# selftests: block-plug: b.sh
# ok 1 begun
not ok 2 selftests: block-plug: b.sh # TIMEOUT 180 seconds
# selftests: block-plug: c.sh
# 1..0 # SKIP no such thing
ok 3 selftests: block-plug: c.sh # SKIP
# selftests: block-plug: d.sh
# ok 1 begun
"""


@pytest.mark.parametrize("tests, results, words", (
    # each case counts, and how the test ended; words of the test are shown
    (("a.sh",), [("a.sh: one", "pass"), ("a.sh: two", "skip"),
                 ("a.sh: exit", "pass")], "# a word"),
    # a timeout and a guest that died fail; a skipped test is a skip
    (("b.sh", "c.sh", "d.sh", "e.sh"), [
        ("b.sh: begun", "pass"), ("b.sh: exit", "fail"), ("c.sh", "skip"),
        ("d.sh: begun", "pass"), ("d.sh: exit", "fail"),
        ("e.sh: exit", "fail")], "TIMEOUT 180")))
def test_kselftests(capsys, tests, results, words):
    selftest.report_all(tap.Report(), tests, SAID.splitlines())
    said = capsys.readouterr().out
    assert tap.results(said.splitlines()) == results
    assert words in said


def test_arguments(monkeypatch):
    """Tests by name; more time for the slow kernel alone."""
    assert selftest.arguments("patched", ["a.sh", "b.sh"]) == (
        f"-t block-plug:a.sh -t block-plug:b.sh -o {selftest.TEST_SECONDS}")
    monkeypatch.setattr(selftest, "TEST_SECONDS", 7)
    assert selftest.arguments("debug", ["a.sh"]) == "-t block-plug:a.sh -o 28"
