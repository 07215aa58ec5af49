# SPDX-License-Identifier: GPL-2.0
"""A made-up machine for the tests of plugroll, with a load that depends on the
mode."""
import contextlib
import os
import socket
import sys
import threading
from unittest import mock

import faketree
from plugtools.core import disks, journal
from plugtools.roll import meter, plugroll

MODES = ("always", "never", "seq-small", "adaptive")
SPEED = 20000                   # I/Os per second on "always"


def offer(mode):
    """What the kernel shows."""
    return " ".join("[%s]" % name if name == mode else name for name in MODES)


class Tree(faketree.Tree):
    """Disks that behave as the kernel's."""

    def setUp(self):
        super().setUp()
        self.patch(mock.patch.object(sys, "argv", ["/usr/sbin/plugroll"]))
        for module in (journal, disks):
            self.patch(mock.patch.object(module, "write", self.kernel_write))
        for name in ("sys/block", "dev", "run", "etc", "var/lib"):
            os.makedirs(self.path(name))

    def patch(self, what):
        """For the time of the test."""
        what.start()
        self.addCleanup(what.stop)

    def path(self, name):
        """Of the made-up machine."""
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, text):
        """A file there, at once: others read meanwhile."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.replace(path + ".new", path)

    def read(self, name):
        """The same, "" if it is not there."""
        try:
            with open(self.path(name), encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def disk(self, name, mode="always", **files):
        """A disk; mode "": a head, which has none."""
        where = "sys/block/%s/" % name
        for attribute, text in {
                "dev": "259:%d" % len(os.listdir(self.path("sys/block"))),
                "diskseq": "7", "stat": "0 " * 17, "wwid": "eui." + name,
                "queue/scheduler": "[none] mq-deadline",
                "queue/rotational": "0",
                **{key.replace("__", "/"): text
                   for key, text in files.items()}}.items():
            self.write(where + attribute, text)
        if mode:
            self.write(where + "queue/plug_policy", offer(mode))
            os.makedirs(self.path(where + "mq"))
        if "c" not in name[4:]:
            self.write("dev/" + name, "")

    def head(self):
        """A head of NVMe multipath with two paths."""
        self.disk("nvme0n1", mode="", wwid="eui.1")
        for path in ("nvme0c0n1", "nvme0c1n1"):
            self.disk(path, wwid="eui.1")

    def mode(self, name):
        """The mode of a disk, without what the kernel adds."""
        text = self.read("sys/block/%s/queue/plug_policy" % name)
        found = [word for word in text.split() if word.startswith("[")]
        return found[0].strip("[]") if found else text

    def kernel_write(self, path, value):
        """What is written to the file becomes what the kernel shows."""
        if not os.path.exists(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        name = os.path.relpath(path, self.root)
        self.write(name, offer(value) if name.endswith("/plug_policy")
                   else value)

    def log(self):
        """Lines that go to the system's log from now on."""
        lines = []
        self.patch(mock.patch("plugtools.roll.trial.log", lines.append))
        self.patch(mock.patch("plugtools.roll.keep.log", lines.append))
        self.patch(mock.patch("plugtools.roll.plugroll.log", lines.append))
        return lines

    def run_roll(self, *words):
        """(exit code, standard output, standard error) of plugroll."""
        with mock.patch("plugtools.core.system.print", create=True) as out, \
             mock.patch("signal.signal"):
            try:
                code = plugroll.main(list(words))
            except SystemExit as error:
                code = error.code
        texts = {False: [], True: []}
        for call in out.call_args_list:
            texts[call.kwargs["file"].fileno() == 2].append(call.args[0])
        return code, "\n".join(texts[False]), "\n".join(texts[True])


@contextlib.contextmanager
def busy(*what, error=OSError(16, "Device or resource busy", "it")):
    """Disks that refuse all modes ("nvme0n1") or one ("nvme0n1 always")."""
    accept = disks.write

    def refuse(path, value):
        name = path.split("/")[-3]
        if {name, "%s %s" % (name, value)} & set(what):
            raise error
        accept(path, value)

    with mock.patch.object(disks, "write", refuse), \
         mock.patch.object(journal, "write", refuse):
        yield


@contextlib.contextmanager
def socket_at(path):
    """A socket that takes what is sent there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as taker:
        taker.settimeout(5)
        taker.bind(path)
        yield taker


class Load:
    """I/O on a disk, at a speed that its mode (or its legs') decides.

    It takes the place of time.monotonic() and time.sleep(): what waits for it
    has waited at once, and sees the same load each time.
    """

    def __init__(self, tree, name, speeds, legs=()):
        self.tree, self.name, self.speeds = tree, name, speeds
        self.legs = legs or (name,)
        self.now = self.done = self.ticks = 0.0
        self.last = float("inf")
        self.patch = mock.patch.object(meter, "time", self)

    def __enter__(self):
        self.patch.start()
        return self

    def __exit__(self, *_):
        self.patch.stop()

    def monotonic(self):
        """Seconds."""
        return self.now

    def sleep(self, seconds):
        """Count, as the kernel would."""
        speed = SPEED * sum(self.speeds.get(self.tree.mode(leg), 1)
                            for leg in self.legs) / len(self.legs)
        self.now += seconds
        if self.now > self.last:
            return
        self.done += speed * seconds
        self.ticks += 32 * 1000 * seconds
        self.tree.write("sys/block/%s/stat" % self.name, "%d 0 0 %d %s" % (
            self.done, self.ticks, "0 " * 13))


class RealLoad(threading.Thread):
    """The same for another process."""

    def __init__(self, tree, name):
        super().__init__(daemon=True)
        self.load = Load(tree, name, {})
        self.end = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.join()

    def run(self):
        """Until the end."""
        while not self.end.wait(0.01):
            self.load.sleep(0.01)
