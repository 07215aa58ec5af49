# SPDX-License-Identifier: GPL-2.0
"""Loads that others wrote: what each is, and how a guest is told to run it.

A load is watched from outside by disk_rate, see there, or tells itself how long
it took, if it does a given amount of work."""
import dataclasses

from lab.bench import profiles

K16, K64, K128 = (size * 1024 for size in (16, 64, 128))

# ms of a guest, at its slower time, that are measured, and before, where only
# the CPU takes time.
MS = 100
SETTLE_MS = 20
# What adaptive has on a real machine, to learn. Where the device takes time all
# policies have it, since batches of any take long to fall into step.
LEARN_MS = 50

# Threads, since jobs that are processes leave disk_rate's process group.
FIO = ("fio --filename=@ --direct=1 --thread --time_based --runtime=1000 "
       "--norandommap --ioengine=")
BACKED = (("backing", "1"), ("size_mb", "600"))


@dataclasses.dataclass(frozen=True)
class Watched:
    """A program that goes on until disk_rate has measured it. "@" in its words
    is the disk, or the directory where a file system is mounted."""

    name: str
    command_line: str
    block: int = 4096           # bytes that count as one I/O
    where: str = "raw"          # what on_disk of loads_guest.sh is given
    settings: tuple = ()
    devices: int = 1
    polled: bool = False
    needs: tuple = ()           # programs that the initramfs lacks
    learn_ms: float = LEARN_MS  # of a real machine
    ms: int = MS
    settle_ms: int = 0          # if not 0, what all policies have before it

    @property
    def programs(self):
        return ("disk_rate", *self.needs)

    def times(self, profile, policy):
        """ms of the guest before, and while, it is measured."""
        timed = "read_latency" in profile
        settle = SETTLE_MS
        if timed or policy == "adaptive":
            settle = int(self.learn_ms * profiles.scale(profile))
        # Few are done in a ms; that costs nothing where the CPU waits.
        slow = 3 if timed and self.block > K16 else 1
        return self.settle_ms or settle, slow * self.ms

    def command(self, profile, cell):
        learn, measured = self.times(profile, cell.policy)
        return ["on_disk", self.where, str(learn), str(measured),
                *self.command_line.split()]


@dataclasses.dataclass(frozen=True)
class Work(Watched):
    """A program that does so much and says how long it took: its figure is its
    operations in a second, and what it asks of the disk is counted in blocks
    of 4K."""

    @property
    def programs(self):
        return self.needs

    def command(self, _profile, _cell):
        return ["on_disk", self.where, *self.command_line.split()]


def jobs(name, *each, engine="io_uring", **more):
    """Several jobs of fio's on the raw disk, each with options of its own."""
    return Watched(f"fio-{name}", " ".join(
        [FIO + engine, *("--name=job " + options for options in each)]),
        **more)


def fio(name, args, engine="io_uring", **more):
    return jobs(name, args, engine=engine, **more)


def batch(size, depth=128):
    """fio's options for submissions of that size."""
    return (f"--iodepth={depth} --iodepth_batch_submit={size} "
            f"--iodepth_batch_complete_min={size}")


def tio(name, args, **more):
    return Watched(f"tio-{name}", f"io_uring -d128 -B1 -F1 {args} @",
                   needs=("io_uring",), **more)


RAND, SEQ, REG = "--rw=randread ", "--rw=read ", " --fixedbufs --registerfiles"

# A real machine's 100 ms, of which a guest's clock makes this.
PHASE_MS = 740
TURNS = f"--bs=4k --thinktime={PHASE_MS}ms --thinktime_iotime={PHASE_MS}ms "

# Two jobs take turns; what is measured is a turn of each, after one of each.
PHASES = jobs("phases", SEQ + TURNS + batch(32), RAND + TURNS
              + f"--startdelay={PHASE_MS}ms " + batch(32),
              settle_ms=2 * PHASE_MS, ms=2 * PHASE_MS)

# This and t/io_uring's showed adaptive at 0.93 and 0.88 of always, on null_blk;
# this one after more than its 50 ms.
REVIEWED = SEQ + "--bs=4k " + batch(32) + REG
LATER = fio("seq4k-s32-150ms", REVIEWED, learn_ms=150)

RAW = (
    fio("seq4k-s32", REVIEWED),
    tio("seq4k-s32", "-p0 -s32 -c32 -R0"),
    *(tio(f"rand4k-s{n}", f"-p0 -s{n} -c{n}") for n in (32, 128, 1)),
    tio("rand4k-s32-polled", "-p1 -s32 -c32", polled=True),
    *(fio(f"rand4k-s{n}", RAND + "--bs=4k " + batch(n)) for n in (1, 8, 32, 128)),
    # fio has no random size: it submits what has come back, all at once.
    fio("rand4k-sfree", RAND + "--bs=4k --iodepth=128 --iodepth_batch=128 "
        "--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=128"),
    jobs("rand4k-smixed", *(RAND + "--bs=4k " + batch(size, 64)
                            for size in (1, 3, 8, 32))),
    fio("aio-rand4k-s32", RAND + "--bs=4k " + batch(32), "libaio"),
    fio("aio-seq4k-s32", SEQ + "--bs=4k " + batch(32), "libaio"),
    fio("seq128k-s32", SEQ + "--bs=128k " + batch(32), block=K128),
    fio("zipf4k-s32", RAND + "--bs=4k --random_distribution=zipf:1.2 "
        + batch(32)),
    fio("mix70-4k-s32", "--rw=randrw --rwmixread=70 --bs=4k " + batch(32)),
    fio("seqwrite4k-s32", "--rw=write --bs=4k " + batch(32)),
    fio("rand4k-s32-2jobs", RAND + "--bs=4k --numjobs=2 " + batch(32)),
    fio("rand4k-s8-4jobs", RAND + "--bs=4k --numjobs=4 " + batch(8)),
    fio("seq4k-s32-2streams", SEQ + "--bs=4k --numjobs=2 --size=50% "
        "--offset_increment=50% " + batch(32)),
    fio("seq4k-s32-down", "--rw=read:-8k --bs=4k " + batch(32)),
    fio("rand4k-bursts", RAND + "--bs=4k --thinktime=1ms "
        "--thinktime_blocks=256 " + batch(32)),
)

# Where these wait for a device they wait for its bandwidth, policies alike.
LARGE = (
    fio("aio-rand16k-s8", RAND + "--bs=16k " + batch(8), "libaio", block=K16),
    fio("rand16k-s32", RAND + "--bs=16k " + batch(32), block=K16),
    fio("seq16k-s32", SEQ + "--bs=16k " + batch(32), block=K16),
    fio("rand64k-s8", RAND + "--bs=64k " + batch(8), block=K64),
    fio("seq64k-s32", SEQ + "--bs=64k " + batch(32), block=K64),
    fio("rand128k-s32", RAND + "--bs=128k " + batch(32), block=K128),
)

# Two streams in one plug, as no job of fio's has them on one disk.
STREAMS = ("fio --filename=@/a:@/b --file_service_type=roundrobin "
           "--direct=1 --thread --time_based --runtime=1000 "
           "--ioengine=io_uring --name=job --rw=read --bs=4k " + batch(32))
ON_FILES = ("fio --filename=@/a --thread --time_based --runtime=1000 "
            "--norandommap --name=job ")


def files(name, args, megabytes=64, **more):
    return tuple(Watched(
        f"{kind}-{name}", ON_FILES + args, where=f"files {kind} {megabytes}",
        settings=BACKED, needs=(f"mkfs.{kind}",), **more)
                 for kind in ("ext4", "xfs"))


FILES = (
    *files("rand4k-s32", "--direct=1 --ioengine=io_uring " + RAND + "--bs=4k "
           + batch(32)),
    Watched("xfs-2streams", STREAMS, where="files xfs 32", settings=BACKED,
            needs=("mkfs.xfs",)),
    # What was read once is in memory: the file must last.
    *files("readahead", "--ioengine=psync " + SEQ + "--bs=64k", 128,
           learn_ms=10),
    *files("write-fsync", "--ioengine=psync --rw=write --bs=64k --fsync=16"),
)


def db(name, args):
    return Work(f"db-{name}", f"--benchmarks={name} {args}", where="db",
                settings=BACKED, needs=("mkfs.ext4", "db_bench"))


WORK = (
    db("fillseq", ""),
    db("readrandom", "--reads=3000"),
    db("multireadrandom", "--reads=3000 --batch_size=32"),
    db("readwhilewriting", "--reads=2000"),
)

ALL = (*RAW, *LARGE, PHASES, LATER, *FILES, *WORK)
