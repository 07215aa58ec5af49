# SPDX-License-Identifier: GPL-2.0
"""What can be measured: workloads, policies, and cells made of both."""
import dataclasses

# Which build of kernel.py stands for a kernel, and what a user can choose on
# it. The RFC's hack is a kernel of its own, but as a record it is "unpatched"
# with the policy "noplug".
BUILDS = {"unpatched": "base", "noplug": "noplug", "rfcera": "rfcera",
          "patched": "patched"}
MODES = ["always", "never", "seq-small", "adaptive"]
# Group sizes that "adaptive" can be pinned to, for what it should have found.
GROUPS = ["group%d" % (1 << power) for power in range(6)]
BASELINES = [("unpatched", "always"), ("unpatched", "nomerges2"),
             ("noplug", "noplug")]
OURS = [("patched", mode) for mode in MODES]
EVERY = BASELINES + OURS

# The profile of the emulated controller, which no model stands for.
NVME = "nvme-qemu"

# I/Os of a cell take some 0.3 s of the guest's time on a modelled SSD; a disk
# with an arm gets a share of them.
HDD_SHARE = 1 / 80


@dataclasses.dataclass(frozen=True)
class Load:
    """plug_load loads the devices."""

    name: str
    args: str
    ios: int = 64000
    devices: int = 1
    polled: bool = True
    settings: tuple = ()        # (key, value), over those of the profile
    timed_ios: int = 0          # on a device that takes time, if not ios

    def command(self, profile, seed):
        """The command of a cell. A device that cannot be polled is not."""
        words = ["plug_load", "-l", "-S", str(seed), *self.args.split(),
                 "-n", str(self.count(profile)),
                 "-W", str(self.warmup(profile))]
        if self.polled and profile["poll_queues"] != "0":
            words.append("-P")
        return words

    def count(self, profile):
        """All I/Os of a cell."""
        share = HDD_SHARE if profile.get("rotational") == "1" else 1
        timed = "read_latency" in profile or "service" in profile
        return int((timed and self.timed_ios or self.ios) * share)

    def warmup(self, profile):
        """Those of them that are not measured."""
        return self.count(profile) // 10


@dataclasses.dataclass(frozen=True)
class Fio:
    """fio loads a device, raw or with an XFS on it."""

    name: str
    args: str
    where: str = "raw"          # raw or xfs: fio_raw, fio_xfs of guest_fio.sh
    settings: tuple = ()
    devices: int = 1
    polled: bool = False

    def command(self, _profile, seed):
        """The command of a cell."""
        return ["fio_" + self.where, *self.args.split(),
                "--randseed=%d" % seed]


# What 003_00046b95f466089c.txt measured, for a second instead of a minute.
# Buffered, written out by an fsync at the end: fio 3.33 has no uncached=1.
# The memory behind the disk is what XFS needs at least.
BUFFERED = "--end_fsync=1 --fallocate=none"
XFS_DISK = (("backing", "1"), ("size_mb", "400"))
RAW_DISK = (("size_mb", "400"),)

COMPLETION = (
    Fio("A-seq128k-qd1", "--rw=write --bs=128k --ioengine=pvsync2 --size=96m "
        + BUFFERED, "xfs", XFS_DISK),
    Fio("B-seq128k-qd128", "--rw=write --bs=128k --ioengine=io_uring "
        "--iodepth=128 --size=96m " + BUFFERED, "xfs", XFS_DISK),
    Fio("C-rand4k-qd32", "--rw=randwrite --bs=4k --ioengine=io_uring "
        "--iodepth=32 --size=24m " + BUFFERED, "xfs", XFS_DISK),
    Fio("D-mix64k-qd32", "--rw=rw --bs=64k --ioengine=io_uring --iodepth=32 "
        "--size=96m " + BUFFERED, "xfs", XFS_DISK),
    Fio("E-raw128k-qd128", "--rw=write --bs=128k --ioengine=io_uring "
        "--iodepth=128 --size=96m " + BUFFERED, "raw", RAW_DISK),
    Fio("F-pressure", "--dirty=16777216:33554432 --rw=write --bs=128k "
        "--ioengine=io_uring --iodepth=128 --numjobs=4 --size=32m "
        + BUFFERED, "xfs", XFS_DISK),
)

# 001_4484fad67f3c78e8.txt, with iostat beside fio. Its disk had an elevator,
# where requests meet; here they meet in the plug, so fio submits by the batch.
TUNING = (
    Fio("fio-seq4k-write", "--iostat 1 --ioengine=libaio --bs=4k --rw=write "
        "--iodepth=128 --iodepth_batch=32 --iodepth_batch_complete_min=32 "
        "--direct=1 --size=1g --time_based --runtime=1500ms",
        "raw", (("size_mb", "1024"),)),
)

WORKLOADS = {workload.name: workload for workload in (
    Load("rand4k-s32", "-a rand -b 4k -d 128 -s 32 -c 32"),
    Load("rand4k-s128", "-a rand -b 4k -d 128 -s 128 -c 128"),
    Load("libaio-rand4k-s32", "-e libaio -a rand -b 4k -d 128 -s 32 -c 32",
             polled=False),
    Load("seq4k-s32", "-a seq -b 4k -d 128 -s 32 -c 32"),
    Load("seq128k-s32", "-a seq -b 128k -d 128 -s 32 -c 32", ios=9600),
    Load("twodev-rand4k-s32", "-a rand -b 4k -d 128 -s 32 -c 32",
             devices=2),
    Load("twons-rand4k-s32", "-a rand -b 4k -d 128 -s 32 -c 32",
             settings=(("namespaces", "2"),)),
    Load("rand4k-qd1", "-a rand -b 4k -d 1 -s 1 -c 1", ios=9600,
         timed_ios=1200),
    Load("onecore-peak", "-a rand -b 512 -d 128 -s 32 -c 32",
             settings=(("queue.nomerges", "2"), ("queue.iostats", "0"))),
    Load("mix70-s32", "-a rand -b 4k -m 30 -d 128 -s 32 -c 32"),
    Load("phase-change",
             "-a rand -b 4k --bs2 128k --period 3200 -d 128 -s 32 -c 32",
             ios=25600),
    Load("rand4k-qd32-wait", "-a rand -b 4k -s 32 -w", ios=32000),
    Load("rand4k-qd4", "-a rand -b 4k -s 4 -w", ios=9600, polled=False),
    Load("rand4k-qd1-irq", "-a rand -b 4k -d 1 -s 1 -c 1", ios=9600,
         polled=False),
    *COMPLETION, *TUNING,
)}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One measurement: a kernel under a policy, a device, a load."""

    suite: str
    kernel: str                 # of BUILDS
    policy: str
    profile: str
    workload: str
    run: int = 1

    @property
    def seed(self):
        """Of the load's and of the device's random numbers."""
        return self.run

    @property
    def recorded_kernel(self):
        """As the records name it."""
        return "unpatched" if self.kernel == "noplug" else self.kernel


def product(suite, pairs, profiles, workloads, runs=1):
    """The cells of all combinations, the policies of a workload together."""
    return [Cell(suite, kernel, policy, profile, workload, run)
            for run in range(1, runs + 1) for profile in profiles
            for workload in workloads for kernel, policy in pairs]
