#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The series for Debian's source package of the kernel, as its packagers keep
patches: build/debian-patches/ has

  debian/patches/features/all/plug-policy/   the patches, for quilt; DEP-3 headers
  series     lines for the end of debian/patches/series
  config     lines for the end of debian/config/config

debian/bin/test-patches takes the patches as its arguments; "make series
ONTO=<dir>" tries them on an unpacked source package.
"""
import shutil
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


def main():
    common.no_arguments(__doc__)
    with common.program("debian_patches.py", kernel.BuildError, OSError):
        shutil.rmtree(OUT, ignore_errors=True)
        kernel.git("format-patch", "-q", "-N", "--zero-commit", "--no-signature",
                   "--add-header=Origin: other", "--add-header=Forwarded: no",
                   "-o", str(PATCHES), "refs/tags/base..refs/heads/series")
        names = sorted(path.name for path in PATCHES.glob("*.patch"))
        (OUT / "series").write_text("\n# Plug policy\n" + "".join(
            f"{PLACE}/{name}\n" for name in names), encoding="ascii")
        (OUT / "config").write_text(f"\n##\n## file: block/Kconfig.plug\n##\n{options()}"
                                    "# CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE is not set\n",
                                    encoding="ascii")
        print(f"{len(names)} patches in {PATCHES.relative_to(kernel.ROOT)}")


if __name__ == "__main__":
    main()
