# SPDX-License-Identifier: GPL-2.0
"""boot.py and machines.py: which machine a kernel boots on, what QEMU is told for
it, and how long a guest is waited for."""
import os
import types

import pytest

from lab.qemu import boot, machines
from lab.qemu.machines import PC, VIRT

ENDBR, NOP5 = PC.before
BTI, NOP, MOV = VIRT.before
PACIASP = b"\x3f\x23\x03\xd5"
# Images begin like that, of a PC as a program of Windows does, and of arm64, too.
HEADS = {PC: b"MZ" + bytes(600), VIRT: b"MZ" + bytes(54) + b"ARM\x64" + bytes(8)}


@pytest.fixture(name="guest")
def fixture_guest(tmp_path):
    """Makes a Guest whose kernel begins with these bytes."""
    def make(head, **more):
        for name, data in (("kernel", head), ("initramfs", b""), ("job", b"")):
            (tmp_path / name).write_bytes(data)
        return boot.Guest(out=str(tmp_path), **{
            name: str(tmp_path / name) for name in ("kernel", "initramfs", "job")},
            **more)

    return make


@pytest.mark.parametrize("head, machine", (
    (HEADS[PC], PC), (HEADS[VIRT], VIRT), (b"", PC)))
def test_image_tells(guest, head, machine):
    """Also where there is hardly a file."""
    assert machines.machine_of(guest(head).kernel) is machine


@pytest.mark.parametrize("machine, words", (
    # the runner's port is the second one of its own
    (PC, ("qemu-system-x86_64 ", " -machine q35 ", "console=ttyS0 ",
          "fd=7 -serial chardev:port ")),
    # it has one port: the runner's is on PCI
    (VIRT, ("qemu-system-aarch64 ", " -machine virt,gic-version=3 ",
            "console=ttyAMA0 ", "fd=7 -device pci-serial,chardev=port "))))
def test_arguments(guest, monkeypatch, machine, words):
    monkeypatch.setattr(boot, "has_dbcs", lambda _: True)
    said = " ".join(boot.qemu_args(guest(HEADS[machine]), "tcg", "initrd",
                                   "console", 7, None, None)) + " "
    assert [word for word in words if word not in said] == []
    assert said.count(" -serial ") == (2 if machine is PC else 1)


@pytest.mark.parametrize("here, there", (("x86_64", VIRT), ("aarch64", PC)))
def test_no_kvm_for_another_processor(guest, monkeypatch, here, there):
    """Asked for it is refused; else nothing is tried."""
    monkeypatch.setattr("platform.machine", lambda: here)
    with pytest.raises(boot.UsageError, match="no .* processor"):
        boot.check(guest(HEADS[there], accel="kvm"))
    monkeypatch.setattr(os, "access", lambda *_: pytest.fail("KVM was tried"))
    assert not boot.kvm_boots(guest(HEADS[there]))


@pytest.mark.parametrize("machine, package", (
    (PC, "qemu-system-x86"), (VIRT, "qemu-system-arm")))
def test_what_is_missing_is_named(guest, monkeypatch, machine, package):
    """By Debian's package."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(boot.UsageError, match=package):
        boot.check(guest(HEADS[machine]))


@pytest.mark.parametrize("what", ("kernel", "initramfs", "job"))
def test_missing_file(guest, tmp_path, what):
    """Before anything is started."""
    given = guest(HEADS[PC], accel="tcg")
    (tmp_path / what).unlink()
    with pytest.raises(boot.UsageError, match=what):
        boot.check(given)


# Where a function's own instructions begin, with and without what marks a target
# of jumps, and ftrace; arm64's has two instructions, of which it sets up one.
@pytest.mark.parametrize("machine, head, skip", (
    (PC, ENDBR + NOP5, 9), (PC, ENDBR, 4), (PC, NOP5, 5), (PC, b"", 0),
    (VIRT, BTI + MOV + NOP, 12), (VIRT, NOP + NOP, 8), (VIRT, MOV, 4),
    (VIRT, b"", 0)))
def test_entry(machine, head, skip):
    rest = b"\x55" + ENDBR if machine is PC else PACIASP + NOP
    assert machine.past_entry(head + rest) == skip


@pytest.mark.parametrize("machine, head, written", (
    (PC, ENDBR + NOP5 + b"\x55" * 7, "M1009,1:c3"),
    (VIRT, NOP + NOP + PACIASP * 2, "M1008,4:c0035fd6")))
def test_return_behind_the_entry(monkeypatch, machine, head, written):
    """no_shadow_doorbells(): a whole instruction of the processor's."""
    asked = []

    def ask(_, text):
        asked.append(text)
        return head.hex() if text.startswith("m") else "OK"

    monkeypatch.setattr(boot, "ask", ask)
    monkeypatch.setattr(boot, "symbol", lambda *_: 0x1000)
    boot.no_shadow_doorbells(None, "", machine)
    assert [text for text in asked if text.startswith("M")] == [written]


# --- how long a guest is waited for ---------------------------------------------
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
