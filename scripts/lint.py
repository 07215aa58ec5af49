#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Style: checkpatch --strict, shellcheck, kernel-doc, sparse, W=1.

What sparse and W=1 say is compared with what they say of the unpatched file:
the series may add nothing.  New files may draw no warning at all.
"""
import argparse
import glob
import os
import re

from scripts.checks import c_style
from scripts import kernel
from scripts.checks import tap
from scripts.series import env

SERIES = str(env.OUTPUT)
OUT = "o-lint"


def run(*command, cwd=kernel.ROOT):
    """All that a command prints, and whether it succeeded."""
    text, code = c_style.run(command, "lint: " + os.path.basename(command[0]),
                            cwd=cwd)
    return text, code == 0


def git_files(*patterns):
    """Files of this repository, tracked or about to be."""
    text, _ = run("git", "ls-files", "--cached", "--others",
                  "--exclude-standard", "--", *patterns)
    return [name for name in text.split("\n")
            if name and os.path.exists(os.path.join(kernel.ROOT, name))]


def checkpatch(report):
    """Each mail as the maintainer's checkpatch sees it."""
    mails = sorted(glob.glob(SERIES + "/*/*.patch"))
    mails = [mail for mail in mails if not mail.endswith("cover-letter.patch")]
    report.check(mails, "the series has mails", "none in " + SERIES)
    for mail in mails:
        name = "checkpatch " + os.path.basename(mail)
        text, good = c_style.checkpatch(kernel.TREE, name, mail)
        report.check(good, name, text)


def shell(report):
    """All shell scripts, also those without a suffix."""
    scripts = [name for name in git_files()
               if name.endswith(".sh") or is_shell(name)]
    text, good = run("shellcheck", "-x", "--source-path=SCRIPTDIR", *scripts)
    report.check(good and scripts, "shellcheck, %d scripts" % len(scripts),
                 text)


def is_shell(name):
    """Does a file without a suffix start as a shell script?"""
    with open(os.path.join(kernel.ROOT, name), "rb") as start:
        return re.match(rb"#!/bin/sh\b", start.readline()) is not None


def headers(report):
    """A licence in each file, 80 columns in C, but for messages."""
    missing, wide = [], []
    for name in git_files():
        if name == "MAINTAINERS" or "/ABI/" in name or \
                name.endswith((".patch", ".cover")):
            continue
        with open(os.path.join(kernel.ROOT, name), encoding="utf-8") as text:
            lines = text.read().split("\n")
        if not any("SPDX-License-Identifier" in line for line in lines[:3]):
            missing.append(name)
        if name.endswith((".c", ".h")):
            wide += ["%s:%d" % (name, i + 1) for i, line in enumerate(lines)
                     if len(line.expandtabs(8)) > 80 and '"' not in line]
    skipped = (".kunitconfig", "settings", "/config", ".gitignore", ".json",
               "stick/README.txt", "debian/changelog", "source/format")
    missing = [name for name in missing if not name.endswith(skipped)]
    report.check(not missing, "SPDX line in each file", "\n".join(missing))
    report.check(not wide, "80 columns", "\n".join(wide))


def kernel_doc(report):
    """The contracts parse, and describe all that they must."""
    names = git_files("block/*.[ch]", "drivers/*.[ch]",
                      os.path.relpath(kernel.MODEL, kernel.ROOT) + "/*.[ch]")
    text = c_style.kernel_doc(kernel.TREE, names, kernel.ROOT)
    report.check(names and not text, "kernel-doc", text)


def maintainers(report):
    """The entry here is the entry that the series adds."""
    with open(os.path.join(kernel.ROOT, "MAINTAINERS"),
              encoding="ascii") as entry, open(
                  os.path.join(kernel.TREE, "MAINTAINERS"),
                  encoding="utf-8") as whole:
        report.check(entry.read() in whole.read(),
                     "MAINTAINERS is what the series adds")


def touched_objects():
    """(objects of changed files, objects of new files) of the series."""
    text, _ = run("git", "diff", "--name-status", "base", "series",
                  "--", "*.c", ":!tools", cwd=kernel.TREE)
    rows = [line.split("\t") for line in text.splitlines()]
    names = {status: [name[:-1] + "o" for kind, name in rows
                      if kind == status] for status in "MA"}
    return names["M"], [n for n in names["A"] if "/tests/" not in n]


def warnings(variant, objects):
    """What the compiler and sparse say of some objects, per file, counted."""
    tree = kernel.VARIANTS[variant][0]
    kernel.VARIANTS["lint"] = (tree, OUT, [kernel.CONFIG], [])
    kernel.SEEDS["lint"] = variant
    kernel.plant_seed("lint")
    kernel.configure("lint")
    for name in objects:
        path = os.path.join(tree, OUT, name)
        if os.path.exists(path):
            os.unlink(path)
    return c_style.findings(kernel.quiet(
        kernel.make_command(tree, OUT, *c_style.SPARSE, *objects),
        "make " + " ".join(c_style.SPARSE)))


def compiler(report):
    """sparse and W=1, against the unpatched kernel."""
    changed, new = touched_objects()
    kernel.ensure_checkout(kernel.BASE, "base")
    before = warnings("base", changed)
    added = c_style.added(warnings("patched", changed + new), before)
    report.check(changed and not added,
                 "sparse and W=1 add nothing over the base",
                 "\n".join(added))


def module(report):
    """The model SSD is new: no warning at all."""
    tree = kernel.TREE
    sources = glob.glob(kernel.MODEL + "/*.c")
    out = os.path.join(tree, OUT, "ssd_model")
    for name in glob.glob(out + "/*.o"):
        os.unlink(name)
    # tinyconfig, which is of 32 bits, leaves their limit behind
    text = kernel.quiet(kernel.make_command(
        tree, OUT, *c_style.SPARSE, "KCFLAGS=-Wframe-larger-than=2048",
        kernel.module_source(kernel.MODEL, out),
        *(os.path.basename(name)[:-1] + "o" for name in sources)),
                        "make of ssd_model")
    found = c_style.added(c_style.findings(text), {})
    report.check(not found, "sparse and W=1: ssd_model", "\n".join(found))


def laboratory(report):
    """C of our own that no mail carries."""
    for where in (kernel.MODEL, os.path.join(kernel.ROOT, "lab/native/uml")):
        name = "checkpatch " + os.path.basename(where)
        files = git_files(os.path.relpath(where, kernel.ROOT) + "/*.[ch]")
        text, good = c_style.checkpatch(
            kernel.TREE, name, "--no-tree", "-f",
            *(os.path.join(kernel.ROOT, one) for one in files))
        report.check(good and files, name, text)


def main():
    """All of it."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    report = tap.Report()
    checkpatch(report)
    shell(report)
    headers(report)
    kernel_doc(report)
    maintainers(report)
    with report.must("sparse and W=1 add nothing over the base",
                     kernel.BuildError):
        compiler(report)
        module(report)
    laboratory(report)
    report.exit()


if __name__ == "__main__":
    main()
