# SPDX-License-Identifier: GPL-2.0
"""The machines that boot.py has QEMU emulate. A kernel's image tells which."""
import dataclasses
import os
import platform


@dataclasses.dataclass(frozen=True)
class Machine:
    """What differs from one processor to the other."""

    processor: str      # as uname -m has it, on a host that could use KVM
    qemu: str
    package: str        # of Debian's, which has it
    name: str           # for QEMU
    console: str        # a tty of the guest's
    port: tuple         # QEMU's arguments for the runner's, a chardev "port"
    before: tuple       # instructions that ftrace and the CPU keep at the
                        # entry of a function
    ret: bytes          # the instruction that ends one

    def program(self):
        """QEMU, or what stands for it in the environment."""
        return os.environ.get("QEMU") or self.qemu

    def may_have_kvm(self):
        return platform.machine() == self.processor

    def past_entry(self, code):
        """Bytes at the entry of a function that are not its own."""
        skip, left = 0, True
        while left:
            left = [one for one in self.before if code.startswith(one, skip)]
            skip += len(left[0]) if left else 0
        return skip


PC = Machine(
    "x86_64", "qemu-system-x86_64", "qemu-system-x86", "q35", "ttyS0",
    ("-serial", "chardev:port"),
    # endbr64; the nop of five bytes in place of a call
    (b"\xf3\x0f\x1e\xfa", b"\x0f\x1f\x44\x00\x00"), b"\xc3")
VIRT = Machine(
    "aarch64", "qemu-system-aarch64", "qemu-system-arm", "virt,gic-version=3",
    "ttyAMA0", ("-device", "pci-serial,chardev=port"),
    # bti c; nop; mov x9, x30
    (b"\x5f\x24\x03\xd5", b"\x1f\x20\x03\xd5", b"\xe9\x03\x1e\xaa"),
    b"\xc0\x03\x5f\xd6")
# Where an arm64 Image has it (Documentation/arch/arm64/booting.rst)
ARM64_MAGIC = slice(56, 60), b"ARM\x64"


def machine_of(kernel):
    with open(kernel, "rb") as image:
        where, magic = ARM64_MAGIC
        return VIRT if image.read(64)[where] == magic else PC
