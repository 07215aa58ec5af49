# SPDX-License-Identifier: GPL-2.0
"""What plugbench can measure by itself."""
import collections

# parts: the jobs of a job file; files: it, and what it includes; boxed: whether
# fio runs in a sandbox.
Workload = collections.namedtuple(
    "Workload", "rw bs depth batch engine polled write text parts jobs files "
    "boxed", defaults=(None, 1, (), False))

# A job as words of fio's command line.  jobs: how many processes it starts;
# reads: how many of 100 I/Os, None if all are alike.
Part = collections.namedtuple("Part", "words jobs reads")

MIX = 70                        # reads of 100 I/Os, of our own that write


def workload(access, bs, depth, batch, engine="io_uring", polled=True,
             write=False):
    """A workload with the line that --help shows."""
    text = f"{access} {bs}, depth {depth}, by {batch}{', polled' * polled}"
    return Workload(access, bs, depth, batch, engine, polled, write, text)


WORKLOADS = {
    "rand4k-s32": workload("randread", "4k", 128, 32),
    "rand4k-s128": workload("randread", "4k", 128, 128),
    "seq4k-s32": workload("read", "4k", 128, 32),
    "seq128k-s32": workload("read", "128k", 128, 32),
    "rand4k-qd1": workload("randread", "4k", 1, 1),
    "rand4k-qd32-wait": workload("randread", "4k", 32, 32),
    "rand4k-qd4": workload("randread", "4k", 4, 4, polled=False),
    "libaio-rand4k-s32": workload("randread", "4k", 128, 32, "libaio", False),
    "mix70-s32": workload("randrw", "4k", 128, 32, write=True),
}
