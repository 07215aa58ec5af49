#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The series for Debian's source package of the kernel, as its packagers keep
patches: build/debian-patches/ has

  debian/patches/features/all/plug-policy/   the patches, for quilt
  series     lines for the end of debian/patches/series
  config     lines for the end of debian/config/config

debian/bin/test-patches takes the patches as its arguments.
"""
import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from scripts import common, kernel, packages

OUT = Path(kernel.BUILD, "debian-patches")
PLACE = "features/all/plug-policy"
PATCHES = OUT / "debian/patches" / PLACE


def options():
    """Those of the series, in the form of debian/config/config; Debian sets others
    itself."""
    return "".join(f"{name}={value}\n"
                   for name, value in kernel.wanted_options([packages.POLICY]).items()
                   if "PLUG" in name)


def write():
    """All of it; the patches' paths."""
    shutil.rmtree(OUT, ignore_errors=True)
    kernel.quiet(["git", "-C", kernel.TREE, "format-patch", "-q", "-N", "--zero-commit",
                  "--no-signature", "-o", str(PATCHES), "refs/tags/base..refs/heads/series"],
                 "git format-patch")
    found = sorted(PATCHES.glob("*.patch"))
    (OUT / "series").write_text("\n# Plug policy\n" + "".join(
        f"{PLACE}/{path.name}\n" for path in found), encoding="ascii")
    (OUT / "config").write_text(f"\n##\n## file: block/Kconfig.plug\n##\n{options()}"
                                "# CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE is not set\n",
                                encoding="ascii")
    return found


def refused(found, onto):
    """What quilt says if the patches do not apply to a tree, as test-patches
    has it apply them: without fuzz. The tree is only read."""
    touched = {name for path in found for name in re.findall(
        r"^diff --git a/(\S+) b/", path.read_text(encoding="utf-8"), re.M)}
    with tempfile.TemporaryDirectory() as top:
        work = Path(top)
        for name in touched:
            if (onto / name).exists():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(onto / name, work / name)
        shutil.copytree(OUT / "debian/patches", work / "patches")
        shutil.copy(OUT / "series", work / "patches/series")
        done = subprocess.run(["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"], cwd=work,
                              text=True, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout[-2000:] if done.returncode else ""


def main():
    parser = argparse.ArgumentParser("debian_patches.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onto", metavar="DIR", type=Path, help="also try the patches "
                        "on this unpacked source package, which is only read")
    onto = parser.parse_args().onto
    with common.program("debian_patches.py", kernel.BuildError, OSError):
        if onto and not (onto / "block").is_dir():
            raise kernel.BuildError(f"--onto '{onto}' is no kernel source")
        found = write()
        print(f"{len(found)} patches in {PATCHES.relative_to(kernel.ROOT)}")
        if onto:
            text = refused(found, onto)
            if text:
                raise kernel.BuildError(f"{onto} does not take them:\n{text}")
            print(f"quilt push -a: all apply to {onto}, without fuzz")


if __name__ == "__main__":
    main()
