# SPDX-License-Identifier: GPL-2.0
"""The disk of --null: one hardware queue, deep enough for batches of 128, that
completes a request as soon as it has it, so nothing is polled for.
"""
import contextlib
import os
import signal
import subprocess

from ..core.disks import Disk, disks
from ..core.system import SIGNALS, EnvironmentProblem, rooted, write

NULL = "plugnull"
ATTRIBUTES = {"size": "4096", "irqmode": "0", "queue_mode": "2",
              "submit_queues": "1", "poll_queues": "0",
              "hw_queue_depth": "1023", "power": "1"}


class Planned(Disk):
    """What it will be, for who only asks for the plan: nothing is loaded."""

    def __init__(self):
        super().__init__(NULL, rooted("/dev/" + NULL))
        self.like = next((disk for disk in map(Disk, disks())
                          if disk.has_knob()), None)

    def has_requests(self):
        """It is blk-mq."""
        return True

    def has_knob(self):
        """As another disk has, if one can be asked."""
        return self.like is not None

    def size(self):
        """In words."""
        return "%.1f GB" % (int(ATTRIBUTES["size"]) * (1 << 20) / 1e9)

    def policies(self):
        """Those of another disk."""
        return self.like.policies() if self.like else super().policies()


def load_null_blk(journal):
    """The driver, with no disk of its own."""
    if os.path.isdir(rooted("/sys/module/null_blk")):
        return
    journal.note(module="null_blk")
    command = ["modprobe", "null_blk", "nr_devices=0"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EnvironmentProblem(
            "--null: null_blk is neither in this kernel nor can it be loaded "
            "(CONFIG_BLK_DEV_NULL_BLK): %s" % (getattr(error, "stderr", b"")
                                               or b"").decode()) from error


def make_null_disk(path, journal):
    """A directory of configfs is a disk, once its power is on."""
    if os.path.exists(path):
        raise EnvironmentProblem(
            "--null: %s is there, and no plugbench has it (if so: rmdir %s)"
            % (path, path))
    journal.note(rmdir=path)
    try:
        os.mkdir(path)
    except FileNotFoundError as error:
        raise EnvironmentProblem(
            "--null: there is no %s: mount -t configfs none "
            "/sys/kernel/config" % os.path.dirname(path)) from error
    for name, value in ATTRIBUTES.items():
        write(os.path.join(path, name), value)


@contextlib.contextmanager
def null_disk(journal):
    """Path of a null_blk disk that is there as long as it is needed."""
    if os.geteuid() and not rooted(""):
        raise EnvironmentProblem("--null: cannot make a disk: run as root")
    try:
        load_null_blk(journal)
        make_null_disk(rooted("/sys/kernel/config/nullb/" + NULL), journal)
        yield "/dev/" + NULL
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        journal.put_back()
