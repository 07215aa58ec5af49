# SPDX-License-Identifier: GPL-2.0
"""A fake machine for the tests of plugstat: no privilege, and no disk."""
import contextlib
import io
import os
import signal
from unittest import mock

import faketree
from plugtools.stat import plugstat

PLUGSTAT = os.path.join(faketree.TOOLS, "plugstat")
DEBUGFS = "sys/kernel/debug/"
STAT = "10 2 80 1 20 4 160 2 0 3 4\n"

# 100 submissions of 32, half of which get no batch; two hardware queues
BUSY = {"tags_batched": 1600, "tag_batches": 50, "tags_single": 1600,
        "no_batch_depth": 100, "no_batch_busy": 1500, "flush_full": 20,
        "flush_finish": 80, "flush_requests": 3200, "merge_tried": 3100,
        "merge_found": 31, "completion_batches": 200,
        "batch_completions": 3200}
BUSY_STAT = "3110 20 0 0 120 17 0 0 0 0 0\n"


class Tree(faketree.Tree):
    """A fake machine with two disks."""

    def setUp(self):
        super().setUp()
        self.add_disk("nvme0n1", "nvme0")
        self.add_disk("nullb0")

    def get(self, name):
        """What a file holds."""
        with open(self.path(name), encoding="ascii") as file:
            return file.read().strip()

    def add_disk(self, disk, controller=None):
        """One with two hardware queues, that is not counted."""
        self.put("sys/block/%s/stat" % disk, STAT)
        os.makedirs(self.path("sys/block/%s/mq" % disk))
        if controller:
            place = "sys/devices/%s" % controller
            os.makedirs(self.path(place), exist_ok=True)
            os.symlink(self.path(place),
                       self.path("sys/block/%s/device" % disk))
        self.put(DEBUGFS + "block/%s/plug_stats_enabled" % disk, "0\n")
        for hctx in range(2):
            self.counters(disk, {name: 0 for name in BUSY}, hctx)

    def counters(self, disk, values, hctx=0):
        """What the kernel has counted."""
        self.put(DEBUGFS + "block/%s/hctx%d/plug_stats" % (disk, hctx),
                 "".join("%s %d\n" % item for item in values.items()))

    def doorbells(self, bells, commands, controller="nvme0"):
        """What the controller's driver has counted."""
        self.put(DEBUGFS + "nvme_plug/%s/doorbells" % controller,
                 "queue 0 doorbells %d commands %d\n"
                 "queue 1 doorbells %d commands %d\n"
                 "queue 2 doorbells 0 commands 0\n"
                 % (bells * 9, commands * 7, bells, commands))

    def mode(self, disk, mode, fallback="none"):
        """What is set, and why that is not in force."""
        self.put("sys/block/%s/queue/plug_policy" % disk, " ".join(
            "[%s]" % name if name == mode else name
            for name in ("always", "never", "seq-small", "adaptive")) + "\n")
        self.put("sys/block/%s/queue/plug_policy_fallback" % disk,
                 fallback + "\n")

    def enabled(self, disk):
        """What is counted on a disk."""
        return self.get(DEBUGFS + "block/%s/plug_stats_enabled" % disk)

    def run_tool(self, *args, during=lambda: None):
        """(exit code, stdout, stderr); what happens while it sleeps."""
        out, err = io.StringIO(), io.StringIO()
        old = {number: signal.getsignal(number)
               for number in (signal.SIGINT,) + plugstat.SIGNALS}
        try:
            with mock.patch.object(plugstat.time, "sleep",
                                   lambda _: during()), \
                    contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(err):
                try:
                    code = plugstat.main(list(args))
                except SystemExit as error:
                    code = error.code
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
        return code, out.getvalue(), err.getvalue()
