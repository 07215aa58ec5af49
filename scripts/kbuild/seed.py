# SPDX-License-Identifier: GPL-2.0
"""Start the build of a kernel from one of a tree that differs in few files.

kbuild knows by itself what a change of files or of options touches, if only it
can see the change: by the date of a file. So the copied output gets one date,
and the files in which the trees differ a later one.
"""
import os
import shutil
import time


def dated(path, date):
    """Give a file a date, in ns; a link its own, not that of what it names."""
    os.utime(path, ns=(date, date), follow_symlinks=False)


def own_paths(path, there, here):
    """In the notes of the build's tools, which name their sources by absolute
    path, the name of the new tree."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if there + "/" in text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(there + "/", here + "/"))


def plant(there, here, out, differing):
    """Copy what there/OUT is built of to here/OUT, and date it and the
    differing files of the tree here.

    there, here: the source trees; out: (directory there, directory here).
    """
    source, target = (os.path.join(*pair) for pair in zip((there, here), out))
    partial = target + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial, symlinks=True,
                    ignore=shutil.ignore_patterns(".fragments"))
    date = time.time_ns()
    for top, dirs, names in os.walk(partial):
        for name in names + dirs:
            path = os.path.join(top, name)
            if name.endswith((".cmd", ".d")):
                own_paths(path, there, here)
            dated(path, date)
    for name in differing:
        path = os.path.join(here, name)
        if os.path.lexists(path):
            # no time may pass for a clock that is coarse
            dated(path, max(time.time_ns(), date + 1000000))
    os.rename(partial, target)
