# SPDX-License-Identifier: GPL-2.0
"""Style, in three parts.

style: shellcheck, kernel-doc, SPDX lines, 80 columns, checkpatch of C that no
mail carries; mails: checkpatch --strict of each; sparse: what sparse and W=1 say
beyond what they say of the unpatched file. New files may draw no warning at all."""
import argparse
import os
import re
from pathlib import Path

from scripts import kernel
from scripts.checks import c_style, tap, touches
from scripts.series import env

ROOT = Path(kernel.ROOT)
OUT = "o-lint"
# All shells of ours know "local"; functions are called by names given to others.
SHELL = ("-e", "SC3043,SC2317", "-P", f"SCRIPTDIR:{kernel.SELFTESTS}")
# C of our own, as checkpatch may see it.
LABORATORY = ("lab/ssd_model", "lab/native/uml")
NO_SPDX = (".kunitconfig", "settings", "/config", ".gitignore", ".json",
           "stick/README.txt", "stick/plug-policy.conf",
           "debian/changelog", "source/format", ".patch", ".cover",
           "MAINTAINERS")


class Lint:
    """What is said of files: of all, or of those that changed since a commit."""

    def __init__(self, report, since):
        self.report = report
        self.changed = touches.changed(since) if since else None
        self.files = [name for name in touches.files()
                      if not since or name in self.changed]

    def of(self, pattern):
        return [name for name in self.files if re.search(pattern, name)]

    def check(self, files, name, text, good=None):
        """A result, unless there is nothing that it would be of."""
        if files or self.changed is None:
            self.report.check(files and (not text if good is None else good),
                              f"{name}, {len(files)} files", text)

    def shell(self):
        scripts = [name for name in self.files
                   if name.endswith(".sh") or "." not in os.path.basename(name)
                   and (ROOT / name).read_bytes().startswith(b"#!/bin/sh")]
        text, code = kernel.run(
            ["shellcheck", "-x", *SHELL, *scripts],
            "lint: shellcheck", cwd=ROOT) if scripts else ("", 0)
        self.check(scripts, "shellcheck", text, code == 0)

    def headers(self):
        """A licence in each file, 80 columns in C, but for messages."""
        missing, wide = [], []
        for name in self.files:
            lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
            if not name.endswith(NO_SPDX) and "/ABI/" not in name and not any(
                    "SPDX-License-Identifier" in line for line in lines[:3]):
                missing.append(name)
            if name.endswith((".c", ".h")):
                wide += [f"{name}:{number}" for number, line in enumerate(lines, 1)
                         if len(line.expandtabs(8)) > 80 and '"' not in line]
        self.check(self.files, "SPDX line in each file", "\n".join(missing))
        self.check(self.files, "80 columns", "\n".join(wide))

    def kernel_doc(self):
        """The contracts parse, and describe all that they must."""
        names = self.of(r"^(block|drivers|lab/ssd_model)/[^/]*\.[ch]$")
        self.check(names, "kernel-doc", c_style.kernel_doc(
            kernel.TREE, names, kernel.ROOT))

    def laboratory(self):
        for where in LABORATORY:
            files = self.of(rf"^{where}/[^/]*\.[ch]$")
            text, good = c_style.checkpatch(
                kernel.TREE, "checkpatch", "--no-tree", "-f",
                *(str(ROOT / name) for name in files)) if files else ("", True)
            self.check(files, f"checkpatch {where}", text, good)

    def style(self):
        self.shell()
        self.headers()
        self.kernel_doc()
        self.laboratory()

    def carries(self, mail):
        """Does a mail bring what changed, or did it change?"""
        if self.changed is None:
            return True
        # git cuts a subject elsewhere than we do
        subject = re.sub(r"^\d+-", "", mail.name)[:40]
        names = {re.sub(r"^.*/\d+-", "", name)[:40] for name in self.changed}
        brought = re.findall(r"^\+\+\+ b/(.*)", mail.read_text(encoding="utf-8"),
                             re.M)
        return subject in names or not set(self.changed).isdisjoint(brought)

    def mails(self):
        """Each as the maintainer's checkpatch sees it, and the entry here is
        the one that the series adds."""
        found = [mail for mail in sorted(env.OUTPUT.glob("*/*.patch"))
                 if not mail.name.endswith("cover-letter.patch")]
        self.report.check(found, f"{len(found)} mails in {env.shown(env.OUTPUT)}")
        for mail in filter(self.carries, found):
            name = "checkpatch " + mail.name
            text, good = c_style.checkpatch(kernel.TREE, name, str(mail))
            self.report.check(good, name, text)
        entry, whole = ((top / "MAINTAINERS").read_text(encoding="utf-8")
                        for top in (ROOT, Path(kernel.TREE)))
        self.report.check(entry in whole, "MAINTAINERS is what the series adds")

    def sparse(self):
        with self.report.must("sparse and W=1 add nothing over the base",
                              kernel.BuildError):
            compiler(self.report)
            module(self.report)


def touched_objects():
    """(objects of changed files, objects of new files) of the series."""
    text = kernel.git("diff", "--name-status", "base", "series", "--", "*.c", ":!tools")
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
    sources = Path(kernel.MODEL).glob("*.c")
    out = os.path.join(tree, OUT, "ssd_model")
    for path in Path(out).glob("*.o"):
        path.unlink()
    # tinyconfig, which is of 32 bits, leaves their limit behind
    text = kernel.quiet(kernel.make_command(
        tree, OUT, *c_style.SPARSE, "KCFLAGS=-Wframe-larger-than=2048",
        kernel.module_source(kernel.MODEL, out),
        *(path.stem + ".o" for path in sources)),
                        "make of ssd_model")
    found = c_style.added(c_style.findings(text), {})
    report.check(not found, "sparse and W=1: ssd_model", "\n".join(found))


PARTS = {"style": Lint.style, "mails": Lint.mails, "sparse": Lint.sparse}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT", help="style and mails: only "
                        "what changed since")
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="default: " + ", ".join(PARTS))
    args = parser.parse_args()
    for name in args.parts:
        if name not in PARTS:
            parser.error(f"no part '{name}'; accepted: {', '.join(PARTS)}")
    report = tap.Report()
    lint = Lint(report, args.since)
    for name in args.parts or PARTS:
        PARTS[name](lint)
    report.exit()


if __name__ == "__main__":
    main()
