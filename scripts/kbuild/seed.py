# SPDX-License-Identifier: GPL-2.0
"""Start the build of a kernel from one of a tree that differs in few files.

kbuild knows by itself what a change of files or of options touches, if only it
can see the change: by the date of a file. So the copied output gets one date,
and the files in which the trees differ a later one.
"""
import os
import shutil
import time
from pathlib import Path


def dated(path, date):
    """Give a file a date, in ns; a link its own, not that of what it names."""
    os.utime(path, ns=(date, date), follow_symlinks=False)


def own_paths(path, there, here):
    """In the notes of the build's tools, which name their sources by absolute
    path, the name of the new tree."""
    text = path.read_text(encoding="utf-8")
    if f"{there}/" in text:
        path.write_text(text.replace(f"{there}/", f"{here}/"), encoding="utf-8")


def plant(there, here, out, differing):
    """Copy what there/OUT is built of to here/OUT, and date it and the
    differing files of the tree here.

    there, here: the source trees; out: (directory there, directory here).
    """
    target = Path(here, out[1])
    partial = Path(f"{target}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(Path(there, out[0]), partial, symlinks=True,
                    ignore=shutil.ignore_patterns(".fragments"))
    date = time.time_ns()
    for path in partial.rglob("*"):
        if path.suffix in (".cmd", ".d"):
            own_paths(path, there, here)
        dated(path, date)
    for name in differing:
        if os.path.lexists(Path(here, name)):
            # no time may pass for a clock that is coarse
            dated(Path(here, name), max(time.time_ns(), date + 1000000))
    partial.rename(target)
