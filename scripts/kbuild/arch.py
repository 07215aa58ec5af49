# SPDX-License-Identifier: GPL-2.0
"""The processor that guests have, by ARCH: x86_64, which is the host's, or
arm64, emulated: its compiler, its programs, and what they link."""
import functools
import os
import re
import shutil
import subprocess

from scripts.series import env

NAME = os.environ.get("ARCH") or "x86_64"
IS_ARM64 = NAME == "arm64"
DEBIAN = "arm64" if IS_ARM64 else "amd64"     # as Debian calls it
CROSS = "aarch64-linux-gnu-" if IS_ARM64 else ""
# What kbuild is told besides
MAKE = ["ARCH=arm64", f"CROSS_COMPILE={CROSS}"] if IS_ARM64 else []
IMAGE = "arch/arm64/boot/Image" if IS_ARM64 else "arch/x86/boot/bzImage"

# Logs and results of arm64 lie apart; source trees are shared.
BUILD = str(env.BUILD / "arm64" if IS_ARM64 else env.BUILD)
# Where its programs lie as in a guest
ROOT = str(env.TOP / "cache/arm64/root") if IS_ARM64 else ""
PATHS = ["usr/bin", "bin", "usr/sbin", "sbin"]


class ArchError(Exception):
    """There are no programs for this processor; the message says why."""


def output(name):
    """A kernel's output directory, where x86_64 has it under this name."""
    return f"{name}-arm64" if IS_ARM64 else name


@functools.cache
def root():
    """Debian's programs for arm64, unpacked; fetched if need be."""
    if subprocess.run(["sh", env.ROOT / "scripts/fetch_debian.sh", NAME], check=False).returncode:
        raise ArchError("the programs for arm64 cannot be had, see above")
    return ROOT


def gcc():
    return [f"{CROSS}gcc", f"--sysroot={root()}"] if IS_ARM64 else ["gcc"]


def find(name, path=None):
    if IS_ARM64:
        path = ":".join(f"{root()}/{part}" for part in PATHS)
    return shutil.which(name, path=path)


def in_guest(path):
    return path.removeprefix(ROOT)


def said_by(*command, **env_too):
    """What a program prints of files that it may not know."""
    return subprocess.run(command, env={**os.environ, **env_too}, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def libraries(*programs, **variables):
    """(files that a guest must have for programs, names of what is lacking)

    variables: of the environment, for the loader, which is asked."""
    asked = ["qemu-aarch64", "-L", ROOT, "-E", "LD_TRACE_LOADED_OBJECTS=1"] if IS_ARM64 else ["ldd"]
    said = "".join(said_by(*asked, name, **variables) for name in programs)
    return (sorted({ROOT + path for path in re.findall(r"(/\S+) \(0x", said)}),
            re.findall(r"(\S+) => not found", said))
