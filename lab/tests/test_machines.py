# SPDX-License-Identifier: GPL-2.0
"""machines.py, and what boot.py makes of it: which machine a kernel boots on,
and what QEMU is told for it."""
import os
import tempfile
import unittest
from unittest import mock

from lab.qemu import boot
from lab.qemu import machines
from lab.qemu.machines import PC, VIRT

ENDBR, NOP5 = PC.before
BTI, NOP, MOV = VIRT.before
PACIASP = b"\x3f\x23\x03\xd5"


class Kernels(unittest.TestCase):
    """Images that begin as real ones do."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.top = top.name

    def guest(self, head, **more):
        """A Guest whose kernel begins with these bytes."""
        paths = {}
        for name, data in (("kernel", head), ("initramfs", b""), ("job", b"")):
            paths[name] = os.path.join(self.top, name)
            with open(paths[name], "wb") as out:
                out.write(data)
        return boot.Guest(out=self.top, **{**paths, **more})

    def pc(self, **more):
        """With a bzImage, which begins as a program of Windows does."""
        return self.guest(b"MZ" + bytes(600), **more)

    def virt(self, **more):
        """With an Image of arm64, which may begin like that, too."""
        return self.guest(b"MZ" + bytes(54) + b"ARM\x64" + bytes(8), **more)

    def test_image_tells(self):
        """Also where there is hardly a file."""
        for given, machine in ((self.pc, PC), (self.virt, VIRT)):
            self.assertIs(machines.machine_of(given().kernel), machine)
        self.assertIs(machines.machine_of(self.guest(b"").kernel), PC)

    def args(self, guest):
        """QEMU's command line, as words between spaces."""
        with mock.patch.object(boot, "has_dbcs", lambda _: True):
            return " " + " ".join(boot.qemu_args(
                guest, "tcg", "initrd", "console", 7, None, None)) + " "

    def test_pc(self):
        """The runner's port is the second one of its own."""
        said = self.args(self.pc())
        for words in ("qemu-system-x86_64 ", " -machine q35 ",
                      "console=ttyS0 ", "fd=7 -serial chardev:port "):
            self.assertIn(words, said)

    def test_virt(self):
        """It has one port: the runner's is on PCI."""
        said = self.args(self.virt())
        for words in ("qemu-system-aarch64 ", " -machine virt,gic-version=3 ",
                      "console=ttyAMA0 ",
                      "fd=7 -device pci-serial,chardev=port "):
            self.assertIn(words, said)
        self.assertEqual(said.count(" -serial "), 1)

    def test_no_kvm_for_another_processor(self):
        """Asked for it is refused; else nothing is tried."""
        for here, there in (("x86_64", self.virt), ("aarch64", self.pc)):
            with mock.patch("platform.machine", lambda here=here: here):
                with self.assertRaisesRegex(boot.UsageError, "no .* processor"):
                    boot.check(there(accel="kvm"))
                with mock.patch.object(os, "access") as access:
                    self.assertFalse(boot.kvm_boots(there()))
                access.assert_not_called()

    def test_what_is_missing_is_named(self):
        """By Debian's package."""
        for given, package in ((self.pc, "qemu-system-x86"),
                               (self.virt, "qemu-system-arm")):
            guest = given()
            with mock.patch("shutil.which", lambda _: None), \
                    self.assertRaisesRegex(boot.UsageError, package):
                boot.check(guest)


class Entries(unittest.TestCase):
    """Where a function's own instructions begin."""

    def test_pc(self):
        """With and without what marks a target of jumps, and ftrace."""
        for head, skip in ((ENDBR + NOP5, 9), (ENDBR, 4), (NOP5, 5), (b"", 0)):
            self.assertEqual(PC.past_entry(head + b"\x55" + ENDBR), skip)

    def test_virt(self):
        """ftrace has two instructions, of which it sets up one."""
        for head, skip in ((BTI + MOV + NOP, 12), (NOP + NOP, 8), (MOV, 4),
                           (b"", 0)):
            self.assertEqual(VIRT.past_entry(head + PACIASP + NOP), skip)


class Patch(unittest.TestCase):
    """no_shadow_doorbells(), and a debugger that answers"""

    def patched(self, machine, head):
        """The command that writes to the guest's memory."""
        asked = []

        def ask(_, text):
            asked.append(text)
            return head.hex() if text.startswith("m") else "OK"

        with mock.patch.object(boot.Debugger, "ask", ask), \
                mock.patch.object(boot, "symbol", lambda *_: 0x1000):
            boot.no_shadow_doorbells(None, "", machine)
        return [text for text in asked if text.startswith("M")]

    def test_return_behind_the_entry(self):
        """A whole instruction of the processor's."""
        self.assertEqual(self.patched(PC, ENDBR + NOP5 + b"\x55" * 7),
                         ["M1009,1:c3"])
        self.assertEqual(self.patched(VIRT, NOP + NOP + PACIASP * 2),
                         ["M1008,4:c0035fd6"])
