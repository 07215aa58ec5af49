# SPDX-License-Identifier: GPL-2.0
"""Packages of the patched kernel and of its tools, as .deb or .rpm.

The kernel's own targets build its packages (bindeb-pkg, binrpm-pkg), and
tools/block/Makefile that of the tools. They go to build/deb or build/rpm;
objects lie below, a directory per flavour."""
import argparse
import os
import re
import shutil
from pathlib import Path

from scripts import common, kernel
from scripts.kbuild import arch
from scripts.series.env import BASE, shown

TOOLS = f"{kernel.ROOT}/tools/block"
NAME = "plug-policy-tools"
PACKAGING = f"{TOOLS}/packaging"
POLICY = f"{PACKAGING}/policy.config"
LEAN = [f"{PACKAGING}/lean.config", f"{PACKAGING}/lean-{arch.DEBIAN}.config"]
BUILDING = f"{PACKAGING}/build.config"

DEB_OPTIONS = ["KDEB_CHANGELOG_DIST=unstable", "DEBFULLNAME=plug_policy series",
               "DEBEMAIL=plug-policy@example.invalid", "DEB_BUILD_OPTIONS=terse"]
# Headers come with programs that build modules, and those for another processor
# want its OpenSSL to link.
if arch.IS_ARM64:
    DEB_OPTIONS.append("DPKG_FLAGS=-Ppkg.linux-upstream.nokernelheaders")
# Neither the builder's name nor the hour of the build, and nothing compressed
# or compiled once more.
RPM_OPTIONS = " ".join(f"--define='{name}'" for name in (
    "_buildhost build", "__os_install_post %{nil}",
    "use_source_date_epoch_as_buildtime 1", "clamp_mtime_to_source_date_epoch 1"))

# What kbuild makes besides, and nobody should install: the headers of the C
# library are those of Debian's kernel. rpmbuild builds below the objects,
# dpkg-buildpackage beside them.
WANTED = {"deb": ["linux-image-*.deb", "linux-headers-*.deb"],
          "rpm": ["o/rpmbuild/RPMS/*/kernel-[0-9]*.rpm"]}


def tools(form):
    """The package of the tools, in build/deb or build/rpm; its path."""
    where = Path(kernel.BUILD, form)
    where.mkdir(parents=True, exist_ok=True)
    with common.locked(f"{where}/tools.lock"):
        kernel.quiet(["make", "-C", TOOLS, form, f"OUT={where}"],
                     f"make -C tools/block {form}")
        return str(next(where.glob(f"{NAME}[-_]*.{form}")))


def revision():
    """Of packages: how many commits we have, so that apt sees an upgrade."""
    try:
        return kernel.git("rev-list", "--count", "HEAD", tree=kernel.ROOT)
    except kernel.BuildError:       # no checkout
        return "1"


class Flavour:
    def __init__(self, name, form):
        self.config = None if name == "lean" else os.path.abspath(name)
        if self.config and not os.path.isfile(self.config):
            raise kernel.BuildError(f"no flavour '{name}': accepted are lean, or a configuration "
                                    "file")
        # what a kernel's release and a package's name may have
        self.name = re.sub(r"[^a-z0-9.+]+", "-", os.path.basename(name).lower()).strip("-.")
        self.form = form
        self.top = Path(kernel.BUILD, form, f"{BASE}-{self.name}")
        self.out = self.top / "o"
        self.local = f"-plug-policy-{self.name}"

    def make(self, *args):
        """The command line of make. Host programs go into a package, where
        nobody strips them later."""
        return kernel.make_command(kernel.TREE, str(self.out), "HOSTLDFLAGS=-s",
                                   f"LOCALVERSION={self.local}", *arch.MAKE, *args,
                                   compiler=f"{arch.CROSS}gcc")

    def say(self, target):
        """The last word of what a target of make prints."""
        return kernel.quiet(self.make("-s", target), target).split()[-1]

    def configure(self):
        print(f"{self.name}: configuring{self.of_another_release()}", flush=True)
        self.out.mkdir(parents=True, exist_ok=True)
        start, fragments = None, [POLICY]
        if self.config:
            shutil.copyfile(self.config, self.out / ".config")
        else:
            start, fragments = "tinyconfig", [kernel.CONFIG, *LEAN, POLICY]
        path = kernel.merge_config(self.make, kernel.TREE, self.out, [*fragments, BUILDING], start)
        kernel.quiet(self.make("olddefconfig"), "olddefconfig")
        kernel.check_config(path, kernel.wanted_options(fragments), [])

    def of_another_release(self):
        """In words, if a configuration says so: its new options get their defaults."""
        made = self.config and re.search(r"^# Linux/\S+ (\d+\.\d+)",
                                         Path(self.config).read_text(errors="replace"), re.M)
        if not made or made[1] == kernel.KVER:
            return ""
        return (f"; it is of Linux {made[1]}, and what {kernel.KVER} has besides is set to its "
                "default")

    def release(self):
        return self.say("kernelrelease")

    def targets(self):
        if self.form == "rpm":
            return ["binrpm-pkg", f"RPMOPTS={RPM_OPTIONS}"]
        version = f"{self.say('kernelversion')}+plugpolicy-{revision()}"
        return ["bindeb-pkg", f"KDEB_PKGVERSION={version}", *DEB_OPTIONS]

    def build(self):
        for old in self.built():
            old.unlink()
        kernel.make_logged(f"kernel {self.name} ({self.form})",
                           self.make(*self.targets()), f"{self.top}.log")
        return [self.keep(path) for path in self.built()]

    def keep(self, path):
        """Move a package to where they are collected, in place of an older
        one; where it is then."""
        name, mark, _ = path.name.partition("_")
        where = self.top.parent
        for old in where.glob(f"{name}{mark}*.deb"):
            old.unlink()
        return str(path.replace(where / path.name))

    def built(self):
        return [path for pattern in WANTED[self.form] for path in sorted(self.top.glob(pattern))]

    def packages(self):
        with common.locked(f"{self.top}.lock"):
            self.configure()
            return self.build()


FLAVOUR_HELP = {"default": "lean", "metavar": "lean|FILE", "help": "small, for virtual machines; "
                "a configuration of yours [lean]"}


def main():
    parser = argparse.ArgumentParser("packages.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("form", choices=["deb", "rpm"])
    parser.add_argument("--flavour", **FLAVOUR_HELP)
    args = parser.parse_args()
    with common.program("packages.py", kernel.BuildError, OSError,
                        advice="; run it again to go on"):
        made = [tools(args.form), *Flavour(args.flavour, args.form).packages()]
        for path in made:       # apt takes what has no ./ for a package's name
            print(os.path.join(".", shown(path)))


if __name__ == "__main__":
    main()
