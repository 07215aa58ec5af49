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
import glob
import os
import re
import shutil
import subprocess
import tempfile

from scripts import common
from scripts import kernel
from scripts.packaging import tools_package

OUT = os.path.join(kernel.BUILD, "debian-patches")
PLACE = "features/all/plug-policy"
PATCHES = os.path.join(OUT, "debian/patches", PLACE)
POLICY = os.path.join(tools_package.PACKAGING, "policy.config")


def patches():
    """The series as patches, in one row; their paths."""
    shutil.rmtree(OUT, ignore_errors=True)
    kernel.quiet(["git", "-C", kernel.TREE, "format-patch", "-q", "-N",
                  "--zero-commit", "--no-signature", "-o", PATCHES,
                  "refs/tags/base..refs/heads/series"], "git format-patch")
    return sorted(glob.glob(PATCHES + "/*.patch"))


def config():
    """The options, in the form of debian/config/config."""
    lines = ["##", "## file: block/Kconfig.plug", "##"]
    lines += [name + "=" + value
              for name, value in kernel.wanted_options([POLICY]).items()
              if "PLUG" in name]        # Debian sets the others itself
    lines.append("# CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE is not set")
    return "\n".join(lines) + "\n"


def write():
    """All of it; the patches' paths."""
    found = patches()
    with open(os.path.join(OUT, "series"), "w", encoding="ascii") as out:
        out.write("\n# Plug policy\n" + "".join(
            "%s/%s\n" % (PLACE, os.path.basename(path)) for path in found))
    with open(os.path.join(OUT, "config"), "w", encoding="ascii") as out:
        out.write("\n" + config())
    return found


def touched(found):
    """The files that patches change or make."""
    names = set()
    for path in found:
        with open(path, encoding="utf-8") as text:
            names |= set(re.findall(r"^diff --git a/(\S+) b/", text.read(),
                                    re.M))
    return names


def refused(found, onto):
    """What quilt says if the patches do not apply to a tree, as test-patches
    has it apply them: without fuzz. The tree is only read."""
    with tempfile.TemporaryDirectory() as work:
        for name in touched(found):
            if os.path.exists(os.path.join(onto, name)):
                os.makedirs(os.path.join(work, os.path.dirname(name)),
                            exist_ok=True)
                shutil.copy(os.path.join(onto, name),
                            os.path.join(work, name))
        shutil.copytree(OUT + "/debian/patches", work + "/patches")
        shutil.copy(OUT + "/series", work + "/patches/series")
        done = subprocess.run(
            ["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"], cwd=work,
            text=True, check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout[-2000:] if done.returncode else ""


def main():
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onto", metavar="DIR", help="also try the patches "
                        "on this unpacked source package, which is only read")
    onto = parser.parse_args().onto
    with common.program("debian_patches.py", kernel.BuildError, OSError):
        if onto and not os.path.isdir(os.path.join(onto, "block")):
            raise kernel.BuildError("--onto '%s' is no kernel source" % onto)
        found = write()
        print("%d patches in %s" % (len(found),
                                    os.path.relpath(PATCHES, kernel.ROOT)))
        text = refused(found, onto) if onto else ""
        if text:
            raise kernel.BuildError("%s does not take them:\n%s"
                                    % (onto, text))
        if onto:
            print("quilt push -a: all apply to %s, without fuzz" % onto)


if __name__ == "__main__":
    main()
