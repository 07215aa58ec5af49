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
    """What it will be, for who only asks for the plan: nothing is loaded.  It
    has the policies of another disk, if one can be asked."""

    def __init__(self):
        super().__init__(NULL, rooted("/dev/" + NULL))
        self.like = next((disk for disk in map(Disk, disks())
                          if disk.has_knob()), None)

    def has_requests(self):
        return True

    def has_knob(self):
        return self.like is not None

    def size(self):
        return f"{int(ATTRIBUTES['size']) * (1 << 20) / 1e9:.1f} GB"

    def policies(self):
        return self.like.policies() if self.like else super().policies()


def load_null_blk(journal):
    if os.path.isdir(rooted("/sys/module/null_blk")):
        return
    journal.note(module="null_blk")
    try:
        subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", b"") or b"").decode()
        raise EnvironmentProblem(
            "--null: null_blk is neither in this kernel nor can it be loaded "
            f"(CONFIG_BLK_DEV_NULL_BLK): {said}") from error


def make_null_disk(path, journal):
    """A directory of configfs is a disk, once its power is on."""
    if os.path.exists(path):
        raise EnvironmentProblem(f"--null: {path} is there, and no plugbench "
                                 f"has it (if so: rmdir {path})")
    journal.note(rmdir=path)
    try:
        os.mkdir(path)
    except FileNotFoundError as error:
        raise EnvironmentProblem(
            f"--null: there is no {os.path.dirname(path)}: mount -t configfs "
            "none /sys/kernel/config") from error
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
