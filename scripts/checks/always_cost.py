# SPDX-License-Identifier: GPL-2.0
"""What the series costs and saves with every queue on "always".

Claims: the patched kernel, options on, needs hardly more instructions per I/O
than the kernel with the sections before "policy" alone (it is four no-ops, one of
them for a request that completes singly, as all do here, and what they cost
the compiler in registers), which in turn needs fewer than the unpatched one.
All have the same configuration and run on a virtual clock that follows the
number of instructions, on a null_blk that completes at once, so that time is
instructions."""
import collections
import functools
import math
import os

from lab.qemu import guest
from scripts import common, kernel
from scripts.checks import tap

OUT = os.path.join(kernel.BUILD, "cost")
LIMIT = 1.003
# How far a ratio may be off: a run repeats to 0.0001, and to 0.0013 where the
# timer's ticks fall elsewhere.
TOLERANCE = 0.0015
# load: (disks, plug_load's options, what of the unpatched kernel's instructions must
# not be exceeded, the gates of counters and policy included, and that with 6.12).
# Those that have to fear batches are last. With gcc 12 it is 0.004 less; another
# compiler may do otherwise.
LOADS = {name: (disks, options, goals[kernel.KVER == "6.12"])
         for name, disks, options, *goals in (
    ("rand4k-s32", "cost", "-a rand -s 32 -c 32 -n 64000", 0.935, 0.994),
    ("rand4k-s128", "cost", "-a rand -s 128 -c 128 -n 64000", 0.877, 0.934),
    ("libaio-rand4k-s32", "cost", "-e libaio -a rand -s 32 -c 32 -n 64000", 0.904, 0.952),
    ("seq4k-s32", "cost", "-a seq -s 32 -c 32 -n 64000", 0.909, 0.899),
    ("libaio-seq4k-s32", "cost", "-e libaio -a seq -s 32 -c 32 -n 32000", 0.996, 0.997),
    ("shared-rand4k-s32", "shared", "-s 32 -c 32 -n 32000", 0.848, 0.903),
    ("depth64-rand4k-s32", "depth64", "-s 32 -c 32 -n 32000", 0.861, 0.923),
    ("two-rand4k-s32", "cost second", "-s 32 -c 32 -n 32000", 0.875, 0.925),
    ("rand4k-s2", "cost", "-s 2 -c 2 -d 2 -n 16000", 0.970, 1),
    ("rand4k-s4", "cost", "-s 4 -c 4 -d 4 -n 16000", 0.956, 1),
    ("rand4k-s8", "cost", "-s 8 -c 8 -d 8 -n 16000", 0.952, 1))}
KERNELS = ["base", "batching", "patched"]
JOB = """set -e
# disk NAME [ATTRIBUTE=VALUE...]
disk()
{
	dir=/sys/kernel/config/nullb/$1
	mkdir $dir
	shift
	for pair in size=1024 blocksize=512 queue_mode=2 irqmode=0 \\
		    hw_queue_depth=256 submit_queues=1 max_sectors=1024 "$@" \\
		    power=1; do
		echo ${pair#*=} >$dir/${pair%=*}
	done
	echo none >/sys/block/${dir##*/}/queue/scheduler
}
disk cost
disk second
disk depth64 hw_queue_depth=64
disk shared shared_tags=1
disk shares shared_tags=1
plug_load -n 6400 /dev/cost >/dev/null
""" + "".join(      # each load, twice, its time on the verdict port
    f'echo "{name} $(plug_load -d 128 {options} /dev/{disks.replace(" ", " /dev/")})" >&3\n'
    for name, (disks, options, _) in LOADS.items() for _ in "12")


def measure(variant):
    """{load: instructions per I/O} of one kernel, without what the guest does but once:
    350,000 instructions that fell into 16,000 I/Os made 1.0085 of 1.0010."""
    result = guest.work(variant, os.path.join(OUT, variant), JOB,
                        name=variant, icount=True, disks=(), timeout=600,
                        append="null_blk.hw_queue_depth=256")
    found = collections.defaultdict(lambda: math.inf)
    for line in result.lines:
        name, *words = line.split()
        number = dict(word.split("=") for word in words)
        found[name] = min(found[name], int(number["ns"]) / int(number["ios"]))
    return found


def measure_all():
    """{kernel: {load: instructions per I/O}}, side by side."""
    for name in KERNELS:
        kernel.build(name)
    return guest.together({name: functools.partial(measure, name)
                           for name in KERNELS}, workers=len(KERNELS))


def within(got, goal, of):
    """Whether got is at most goal times of, but for what chance does."""
    return got <= (goal + TOLERANCE) * of


def compare(report, name, found):
    goal = LOADS[name][-1]
    base, batching, patched = (found[one][name] for one in KERNELS)
    report.check(within(patched, LIMIT, batching),
                 f"always costs {patched / batching:.4f} of 'batching', {name}",
                 f"{patched:.1f} instructions per I/O, of {batching:.1f}: more than {LIMIT:.3f}")
    report.check(within(patched, goal, base),
                 f"the series takes {patched / base:.4f} of unpatched, {name}",
                 f"{patched:.1f} instructions per I/O, of {base:.1f}: more than {goal:.3f}")


def main():
    common.no_arguments(__doc__)
    report = tap.Report()
    with report.must("guests to compare", *guest.ERRORS):
        found = measure_all()
    for name in LOADS:
        compare(report, name, found)
    report.exit()


if __name__ == "__main__":
    main()
