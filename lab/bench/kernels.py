# SPDX-License-Identifier: GPL-2.0
"""The kernels that are compared: built, told apart, described."""
import hashlib
import os
import re

from lab.bench import cells
from lab.bench.lab import LabError
from scripts import kernel


def read(path):
    """A small file's text."""
    with open(path, encoding="utf-8") as text:
        return text.read().strip()


def options(variant):
    """{name: value} of a build's configuration."""
    text = read(os.path.join(kernel.output(variant), ".config"))
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.M))


def difference(ours, theirs):
    """What our options have that theirs do not, and the other way round."""
    names = sorted(set(ours) | set(theirs))
    return ["%s=%s, not %s" % (name, ours.get(name, "n"), theirs.get(name, "n"))
            for name in names if ours.get(name) != theirs.get(name)]


def describe(name):
    """What a kernel is, for the report."""
    variant = cells.BUILDS[name]
    tree = kernel.VARIANTS[variant][0]
    with open(kernel.image(variant), "rb") as image:
        digest = hashlib.sha256(image.read()).hexdigest()
    changed = kernel.quiet(["git", "-C", tree, "diff", "--stat=200", "base"],
                           "git diff").strip().splitlines()
    return {
        "name": name, "sha256": digest,
        "release": read(os.path.join(kernel.output(variant),
                                     "include/config/kernel.release")),
        "changes": changed[-1].strip() if changed else "none",
        "config": difference(options(variant), options("base")),
    }


def refuse_same(known):
    """A kernel compared with itself would show nothing."""
    seen = {}
    for one in known:
        other = seen.setdefault(one["sha256"], one["name"])
        if other != one["name"]:
            raise LabError("the %s and the %s kernel are the same image: "
                           "there is nothing to compare"
                           % (other, one["name"]))


def prepare(wanted):
    """Build the kernels that the cells need; their descriptions."""
    names = dict.fromkeys(cell.kernel for cell in wanted)
    if set(names) - {"unpatched"}:
        names = dict.fromkeys(["unpatched", *names])
    # The patched one has to be there, since it lends the others its source.
    for variant in dict.fromkeys(["patched"] + [cells.BUILDS[name]
                                                for name in names]):
        kernel.build(variant)
    known = [describe(name) for name in names]
    refuse_same(known)
    return known


def text(known):
    """Lines for the terminal."""
    lines = []
    for one in known:
        lines.append("kernel %-9s %s, changed from the source: %s" % (
            one["name"], one["release"], one["changes"]))
        lines += ["    config: " + option for option in one["config"]]
    return "\n".join(lines)
