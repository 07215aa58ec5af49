# SPDX-License-Identifier: GPL-2.0
"""The processor that guests have, by ARCH: x86_64, which is the host's, or
arm64, emulated: its compiler, its programs, and what they link."""
import functools
import glob
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
ROOT = str(env.TOP / "cache/arm64/root")
LIBRARIES = f"{ROOT}/usr/lib/aarch64-linux-gnu"
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
    return path.removeprefix(ROOT) if IS_ARM64 else path


def said_by(*command, **env_too):
    """What a program prints of files that it may not know."""
    return subprocess.run(command, env={**os.environ, **env_too}, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def needed(path):
    """What a program or library for arm64 names: its loader, libraries."""
    return re.findall(r"(?:interpreter: |\(NEEDED\).*\[)([^]]+)\]",
                      said_by("readelf", "-Wdl", path))


def cross_libraries(programs):
    """As libraries(), for arm64, whose loader does not run here."""
    found, lacking, left = set(), set(), list(programs)
    while left:
        for name in needed(left.pop()):
            # Some lie deeper, where a RUNPATH leads to.
            paths = glob.glob(ROOT + name if "/" in name else f"{LIBRARIES}/**/{name}",
                              recursive=True)
            if not paths:
                lacking.add(name)
            elif paths[0] not in found:
                found.add(paths[0])
                left.append(paths[0])
    return sorted(found), sorted(lacking)


def libraries(*programs, **variables):
    """(files that a guest must have for programs, names of what is lacking)

    variables: of the environment, for the host's loader.
    """
    if IS_ARM64:
        return cross_libraries(programs)
    said = said_by("ldd", *programs, **variables)
    return (sorted(set(re.findall(r"(/\S+) \(0x", said))),
            re.findall(r"(\S+) => not found", said))
