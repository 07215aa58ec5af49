# SPDX-License-Identifier: GPL-2.0
"""machines.py, and what boot.py makes of it: which machine a kernel boots on,
and what QEMU is told for it."""
import os

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
