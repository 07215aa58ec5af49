# SPDX-License-Identifier: GPL-2.0
"""A directory that the tools take for the machine, for their tests."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

# whoever imports this finds plugtools
TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TOOLS)
sys.dont_write_bytecode = True


def calls(action):
    """How many functions an action calls, which a busy machine does not
    change."""
    count = 0

    def note(_frame, event, _what):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def run_program(tool, *words, **options):
    """(exit code, what is said) of a program, in a process of its own."""
    done = subprocess.run([sys.executable, "-B", os.path.join(TOOLS, tool),
                           *words], stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60, **options)
    return done.returncode, done.stderr


def lost(tool, *words, **options):
    """The same, twice: on a full disk, and of a reader who has seen enough."""
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full, os.fdopen(writer, "wb") as pipe:
        return [run_program(tool, *words, stdout=out, **options)
                for out in (full, pipe)]


class Tree(unittest.TestCase):
    """An empty one for each test."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="plugtools-")
        self.addCleanup(shutil.rmtree, self.root)
        root = mock.patch.dict(os.environ, PLUGTOOLS_ROOT=self.root)
        root.start()
        self.addCleanup(root.stop)

    def path(self, name):
        """A path in the tree."""
        return os.path.join(self.root, name)

    def many(self, number, head="dm-%d", paths=("sd%dx0", "sd%dx1"), **files):
        """Heads of multipath with their paths, in place of all disks."""
        shutil.rmtree(self.path("sys/block"), ignore_errors=True)
        for disk in range(number):
            for path in paths:
                where = "sys/block/%s/" % (path % disk)
                self.put(where + "size", "2097152")
                self.put(where + "stat", "0 " * 17)
                self.put(where + "mq/0/x")
                self.put(where + "wwid", "naa.%d" % disk)
                for name, text in {
                        "plug_policy": "[always] never seq-small adaptive",
                        "plug_policy_fallback": "none", **files}.items():
                    self.put(where + "queue/" + name, text)
                if head.startswith("dm"):
                    self.put("sys/block/%s/slaves/%s/x" % (
                        head % disk, path % disk))
            self.put("sys/block/%s/size" % (head % disk), "2097152")

    @contextlib.contextmanager
    def going(self, disk, access):
        """A disk that goes at its N-th access from now on; yields a list that
        says that it has gone."""
        where = self.path("sys/block/%s/" % disk)
        left, gone, real = [access], [], os.stat

        def leave(path):
            if str(path).startswith(where):
                left[0] -= 1
                if left[0] < 0 and not gone:
                    gone.append(disk)
                    shutil.rmtree(where)

        def opening(path, *args, **options):
            leave(path)
            return open_it(path, *args, **options)

        def asking(path, *args, **options):
            leave(path)
            return real(path, *args, **options)

        open_it = open
        with mock.patch("builtins.open", opening), \
             mock.patch("os.stat", asking):
            yield gone

    def put(self, name, text=""):
        """Make a file."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
