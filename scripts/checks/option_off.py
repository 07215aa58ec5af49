# SPDX-License-Identifier: GPL-2.0
"""With CONFIG_BLK_PLUG_POLICY off, the section "policy" compiles to nothing.

Claim: every object of the directories with hooks, and of the users of struct
blk_plug outside, is that of the kernel with the sections before it alone, byte
for byte, but for the names of local symbols that nothing refers to (an
initcall's has a line number in it).  Those sections mend what they touch
whatever the options are, so the unpatched kernel's objects differ."""
import filecmp
import tempfile
from pathlib import Path

from scripts import common, kernel
from scripts.checks import tap


def objects(top, name):
    """Paths of one object, or of all of a directory."""
    # built-in.a lists the others; .o of tests exist in neither
    pattern = f"{name}**/*.o" if name.endswith("/") else name
    return {path.relative_to(top) for path in Path(top).glob(pattern)
            if not path.is_symlink()}


def same(ours, theirs):
    """Are two objects equal, without their unused local symbols?"""
    if filecmp.cmp(ours, theirs, shallow=False):
        return True
    with tempfile.TemporaryDirectory() as top:
        stripped = [f"{top}/{name}" for name in ("ours", "theirs")]
        for source, target in zip((ours, theirs), stripped):
            kernel.quiet(["objcopy", "--strip-unneeded", source, target], "objcopy")
        return filecmp.cmp(*stripped, shallow=False)


def compare(report, where, off, base):
    ours, theirs = (objects(top, where) for top in (off, base))
    differing = [*sorted(ours ^ theirs), *(name for name in sorted(ours & theirs)
                                           if not same(Path(off, name), Path(base, name)))]
    report.check(ours and not differing,
                 f"option off: {len(ours)} objects of {where} as with 'batching' alone",
                 "\n".join(map(str, differing)))


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    with report.must("kernels to compare", kernel.BuildError):
        off, base = kernel.build("off"), kernel.build("batching-off")
    for where in kernel.HOOKED:
        compare(report, where, off, base)
    report.exit()


if __name__ == "__main__":
    main()
