# SPDX-License-Identifier: GPL-2.0
"""How long boot.py waits for a guest."""
import types

import pytest

from lab.qemu import boot


@pytest.fixture(name="patience")
def fixture_patience(tmp_path, monkeypatch):
    """A Patience of 60 s that takes the time from .at and the seconds that the
    guest waited for a CPU from .waits."""
    given = types.SimpleNamespace(at=0, waits=0, log=tmp_path / "console.log")
    monkeypatch.setattr(boot.time, "monotonic", lambda: given.at)
    monkeypatch.setattr(boot, "waited_for_cpu", lambda pid: given.waits)
    guest = boot.Guest(kernel="", initramfs="", timeout=60)
    one = boot.Patience(guest, types.SimpleNamespace(pid=1), str(given.log))

    def over(at, spoke=False):
        given.at = at
        return one.is_over(spoke)

    given.over = over
    return given


def test_who_is_mute(patience):
    assert [patience.over(at) for at in (59, 61)] == [False, True]


def test_who_goes_on(patience):
    """Each line is a sign of life, and so is what the console says."""
    assert not any(patience.over(at, spoke=True) for at in range(0, 590, 50))
    patience.log.write_text("a", encoding="ascii")
    assert [patience.over(at) for at in (595, 599)] == [False, False]


def test_the_console_is_read(patience):
    patience.log.write_text("a", encoding="ascii")
    assert not patience.over(55)
    assert not patience.over(110)
    assert patience.over(116)


def test_who_talks_for_ever(patience):
    over = [patience.over(at, spoke=True) for at in range(0, 700, 50)]
    assert over.index(True) == 13       # x 50 s: after ten times the timeout


def test_a_busy_host(patience):
    """The time for which a guest waits for a CPU is not its own."""
    patience.waits = 500
    assert not patience.over(555)
    assert patience.over(561)
    patience.waits = 0                  # that thread has ended
    assert patience.over(562)


def test_waiting_is_seen():
    assert boot.waited_for_cpu("self") >= 0
