# SPDX-License-Identifier: GPL-2.0
"""The kernels that are compared: built, told apart, described."""
import hashlib
import pathlib

from lab.bench import cells
from lab.bench.lab import LabError
from scripts import kernel


def describe(name):
    variant = cells.BUILDS[name]
    changed = kernel.git("diff", "--stat=200", "base", tree=kernel.VARIANTS[variant][0])
    return {
        "name": name,
        "sha256": hashlib.sha256(
            pathlib.Path(kernel.image(variant)).read_bytes()).hexdigest(),
        "release": (pathlib.Path(kernel.output(variant)) /
                    "include/config/kernel.release").read_text().strip(),
        "changes": (changed.splitlines() or ["none"])[-1].strip(),
        "config": kernel.quiet([f"{kernel.TREE}/scripts/diffconfig", *(
            f"{kernel.output(name)}/.config" for name in ("base", variant))],
                               "diffconfig").splitlines(),
    }


def refuse_same(known):
    """A kernel compared with itself would show nothing."""
    seen = {}
    for one in known:
        other = seen.setdefault(one["sha256"], one["name"])
        if other != one["name"]:
            raise LabError(f"the {other} and the {one['name']} kernel are the "
                           "same image: there is nothing to compare")


def prepare(wanted):
    """Build the kernels that the cells need; their descriptions."""
    names = dict.fromkeys(cell.kernel for cell in wanted)
    if set(names) - {"unpatched"}:
        names = dict.fromkeys(["unpatched", *names])
    # The patched one has to be there, since it lends the others its source.
    for variant in dict.fromkeys(["patched", *map(cells.BUILDS.get, names)]):
        kernel.build(variant)
    known = [describe(name) for name in names]
    refuse_same(known)
    return known


def text(known):
    return "\n".join("\n".join([
        f"kernel {one['name']:9} {one['release']}, changed from the source: "
        f"{one['changes']}", *("    config: " + option
                              for option in one["config"])]) for one in known)
