#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Packages of the patched kernel and of its tools, as .deb or .rpm.

The kernel's own targets build its packages (bindeb-pkg, binrpm-pkg). They go
to build/deb or build/rpm; objects lie below, a directory per flavour.
"""
import argparse
import glob
import os
import re
import shutil

from scripts.kbuild import arch
from scripts import common
from scripts.packaging import debian
from scripts import kernel
from scripts.packaging import tools_package
from scripts.series.env import BASE, shown

PACKAGING = tools_package.PACKAGING
POLICY = os.path.join(PACKAGING, "policy.config")
LEAN = [os.path.join(PACKAGING, "lean.config"),
        os.path.join(PACKAGING, "lean-%s.config" % arch.DEBIAN)]
BUILDING = os.path.join(PACKAGING, "build.config")
CLOUD = "usr/src/linux-config-{0}/config.{1}_none_cloud-{1}.xz".format(
    BASE, arch.DEBIAN)
FLAVOURS = ["lean", "cloud"]

# Headers come with programs that build modules, and those for another processor
# want its OpenSSL to link.
CROSS = ["DPKG_FLAGS=-Ppkg.linux-upstream.nokernelheaders"] \
    if arch.IS_ARM64 else []

# What kbuild makes besides, and nobody should install: the headers of the C
# library are those of Debian's kernel.
WANTED = {"deb": ["linux-image-*.deb", "linux-headers-*.deb"],
          "rpm": ["rpmbuild/RPMS/*/kernel-[0-9]*.rpm"]}


def revision():
    """Of packages: how many commits we have, so that apt sees an upgrade."""
    try:
        return kernel.quiet(["git", "-C", kernel.ROOT, "rev-list", "--count",
                             "HEAD"], "git rev-list").strip()
    except kernel.BuildError:       # no checkout
        return "1"


class Flavour:
    """A configuration of the kernel, and what is built of it."""

    def __init__(self, name, form):
        self.config = None if name in FLAVOURS else os.path.abspath(name)
        self.name = os.path.basename(name)
        if self.config and not os.path.isfile(self.config):
            raise kernel.BuildError(
                "no flavour '%s': accepted are %s, or a configuration file"
                % (name, " and ".join(FLAVOURS)))
        # what a kernel's release and a package's name may have
        self.name = re.sub(r"[^a-z0-9.+]+", "-", self.name.lower()).strip("-.")
        self.form = form
        self.top = os.path.join(kernel.BUILD, form, BASE + "-" + self.name)
        self.out = os.path.join(self.top, "o")
        self.local = "-plug-policy-" + self.name

    def make(self, *args):
        """The command line of make. Host programs go into a package, where
        nobody strips them later."""
        return kernel.make_command(
            kernel.TREE, self.out, "HOSTLDFLAGS=-s",
            "LOCALVERSION=" + self.local, *arch.MAKE, *args,
            compiler=arch.CROSS + "gcc")

    def fragments(self):
        """Makes .config what the flavour starts from; what it adds."""
        path = os.path.join(self.out, ".config")
        if self.config:
            shutil.copyfile(self.config, path)
        elif self.name == "cloud":
            debian.cloud_config(CLOUD, path)
        else:
            kernel.quiet(self.make("tinyconfig"), "tinyconfig")
            return [kernel.CONFIG, *LEAN, POLICY]
        return [POLICY]

    def configure(self):
        """The flavour's configuration with the options on."""
        print("%s: configuring" % self.name, flush=True)
        os.makedirs(self.out, exist_ok=True)
        fragments = self.fragments()
        path = os.path.join(self.out, ".config")
        kernel.quiet(["sh", kernel.TREE + "/scripts/kconfig/merge_config.sh",
                      "-m", "-O", self.out, path, *fragments, BUILDING],
                     "merge_config.sh")
        kernel.quiet(self.make("olddefconfig"), "olddefconfig")
        kernel.check_config(path, kernel.wanted_options(fragments), [])

    def release(self):
        """Of the kernel, as in uname -r."""
        return kernel.quiet(self.make("-s", "kernelrelease"),
                            "kernelrelease").split()[-1]

    def targets(self):
        """make's, with who makes the package and which version it has."""
        version = kernel.quiet(self.make("-s", "kernelversion"),
                               "kernelversion").split()[-1]
        if self.form == "rpm":
            return ["binrpm-pkg", "RPMOPTS=" + " ".join(tools_package.RPM_OPTIONS)]
        name, mail = tools_package.AUTHOR
        return ["bindeb-pkg", *CROSS,
                "KDEB_PKGVERSION=%s+plugpolicy-%s" % (version, revision()),
                "KDEB_CHANGELOG_DIST=unstable", "DEBFULLNAME=" + name,
                "DEBEMAIL=" + mail, "DEB_BUILD_OPTIONS=terse"]

    def build(self):
        """Build the packages; their paths where they are collected."""
        log = self.top + ".log"
        for old in self.built():
            os.unlink(old)
        what = "kernel %s (%s)" % (self.name, self.form)
        progress = kernel.Progress(what, self.out)
        if kernel.run_make(self.make(*self.targets()), log, progress):
            with open(log, encoding="utf-8") as text:
                raise kernel.BuildError("%s\n%s failed to build, see %s" % (
                    text.read()[-3000:], what, log))
        progress.done()
        return [self.keep(path) for path in self.built()]

    def keep(self, path):
        """Move a package to where they are collected, in place of an older
        one; where it is then."""
        name, mark, _ = os.path.basename(path).partition("_")
        where = os.path.join(kernel.BUILD, self.form)
        for old in glob.glob(os.path.join(where, name + mark + "*.deb")):
            os.unlink(old)
        return shutil.move(path, os.path.join(where, os.path.basename(path)))

    def built(self):
        """What kbuild has left."""
        # rpmbuild builds below the objects, dpkg-buildpackage beside them
        top = self.out if self.form == "rpm" else self.top
        return [path for pattern in WANTED[self.form]
                for path in sorted(glob.glob(os.path.join(top, pattern)))]

    def packages(self):
        """Configures and builds; the packages' paths."""
        with common.locked(self.top + ".lock"):
            self.configure()
            return self.build()


def lint_errors(text):
    """Of what lintian says, the errors that count; of our own package the
    warnings, too."""
    which = r"(?:E: [^:]+|W: %s): (\S+)" % tools_package.NAME
    return [line for line in text.splitlines()
            if (match := re.match(which, line))
            and match[1] not in tools_package.NOT_OURS]


def lint(packages):
    """lintian's errors end us; it knows no .rpm. Was it there?"""
    if not shutil.which("lintian"):
        print("lintian: not installed, so nothing has checked these packages")
        return False
    # not by --suppress-tags: each version refuses tags that it does not know
    errors = lint_errors(kernel.quiet(
        ["lintian", "--fail-on", "none", "--allow-root", *packages],
        "lintian"))
    if errors:
        raise kernel.BuildError("lintian:\n" + "\n".join(errors))
    print("lintian: no errors")
    return True


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("form", choices=["deb", "rpm"])
    parser.add_argument(
        "--flavour", default="lean", metavar="lean|cloud|FILE",
        help="small, for virtual machines; Debian's configuration for clouds; "
        "a configuration of yours [lean]")
    parser.add_argument("--tools", action="store_true",
                        help="only the package of the tools")
    args = parser.parse_args()
    with common.program("packages.py", kernel.BuildError, OSError,
                        advice="; run it again to go on"):
        made = [tools_package.build(args.form)]
        if not args.tools:
            made += Flavour(args.flavour, args.form).packages()
        if args.form == "deb":
            lint(made)
        for path in made:       # apt takes what has no ./ for a package's name
            print(os.path.join(".", shown(path)))


if __name__ == "__main__":
    main()
