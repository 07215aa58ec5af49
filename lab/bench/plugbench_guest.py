# SPDX-License-Identifier: GPL-2.0
"""In the guest: plugbench as an administrator runs it, on an emulated disk.

plugbench and plugtools lie beside this. Speaks TAP; exit 1 on a failure. The
disk's settings are made what plugbench has to change, so that one sees them come
back. At the end a file system is made on the disk, if it keeps data."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

DISK = pathlib.Path("/sys/block/nvme0n1")
DEV = "/dev/nvme0n1"
JSON, LOG = "/tmp/plugbench.json", "/tmp/plugbench.log"
WORKLOADS = "rand4k-s32,seq4k-s32,rand4k-qd1,libaio-rand4k-s32"
REPEAT = 2
PRESET = {"scheduler": "mq-deadline", "iosched/read_expire": "777",
          "nr_requests": "100", "nomerges": "1", "iostats": "0",
          "plug_policy": "seq-small"}
FOUND = []


def result(good, name, why=""):
    FOUND.append(good)
    if not good:
        print("".join(f"# {line}\n" for line in why.splitlines()), end="")
    print(f"{'ok' if good else 'not ok'} {len(FOUND)} {name}", flush=True)


def setting(name):
    """Those of an elevator are there as long as it is in use."""
    try:
        return (DISK / "queue" / name).read_text()
    except OSError:
        return "none"


def settings():
    return {name: setting(name) for name in PRESET}


def runs(program):
    return not subprocess.run(["pidof", program], check=False,
                              stdout=subprocess.DEVNULL).returncode


def as_before():
    """Settings as preset, and no fio left."""
    return settings() == BEFORE and not runs("fio")


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def start(*args):
    """What it says is in LOG."""
    with open(LOG, "w", encoding="utf-8") as log:
        return subprocess.Popen([sys.executable, "/plugbench", DEV, *args,
                                 "--json", JSON], stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT)


def said():
    return pathlib.Path(LOG).read_text()


def measure():
    """The settings did reach the disk: doorbells and merges differ as they
    must."""
    policies = setting("plug_policy").replace("[", "").replace("]", "").split()
    status = start("--runtime", "1", "--repeat", str(REPEAT), "--workloads",
                   WORKLOADS, "--cpu", "1").wait()
    result(status == 0, "plugbench measures", said())
    result(as_before(), "settings are restored after success", f"{settings()}")
    records = json.loads(pathlib.Path(JSON).read_text())["records"]
    got = sorted((one["workload"], one["policy"], one["run"]) for one in records)
    result(got == sorted((workload, policy, run)
                         for workload in WORKLOADS.split(",")
                         for policy in [*policies, "nomerges2"]
                         for run in range(REPEAT))
           and all(one["iops"] > 0 and one["lat_us"]["p99"] > 0
                   and 0 < one["doorbells_per_io"] <= 1.1
                   and one["requests_per_io"] > 0 for one in records),
           "the JSON has every policy, workload and run", f"{records}")

    def of(workload, policy, name):
        return statistics.fmean(one[name] for one in records if (
            one["workload"], one["policy"]) == (workload, policy))
    bells = {policy: of("rand4k-s32", policy, "doorbells_per_io")
             for policy in ("always", "never")}
    merged = {policy: of("seq4k-s32", policy, "requests_per_io")
              for policy in ("always", "nomerges2")}
    result(bells["never"] > 0.9 and bells["always"] < 0.1
           and merged["always"] < 0.5 and merged["nomerges2"] > 0.9,
           "doorbells and merges are those of the policies", f"{bells} {merged}")


def begin():
    """A run that lasts, in which fio runs."""
    pathlib.Path(JSON).unlink(missing_ok=True)
    process = start("--runtime", "30", "--cpu", "1")
    # it asks fio for its version before it sets anything
    within(60, lambda: "[none]" in setting("scheduler") and runs("fio"))
    return process


def interrupted(number):
    process = begin()
    scheduler = setting("scheduler").strip()
    process.send_signal(number)
    status = process.wait()
    result(status == 130 and "[none]" in scheduler
           and as_before() and not os.path.exists(JSON),
           f"{number.name}: exit 130, settings restored, no fio left",
           f"exit {status}, {scheduler}, {settings()}\n{said()}")


def killed():
    """Nobody can catch it, but a child of plugbench sees it."""
    process = begin()
    process.kill()
    process.wait()
    result(within(30, as_before), "SIGKILL: settings restored, no fio left",
           f"{settings()}\n{said()}")


def written():
    """Writes that the disk has completed, and their sectors."""
    words = (DISK / "stat").read_text().split()
    return words[4], words[6]


def refused(name, status, words, *args):
    """Nothing is written."""
    before = written()
    got = start(*args).wait()
    result(got == status and words in said() and as_before()
           and written() == before, name, f"exit {got}\n{said()}")


def refuse():
    mix = "--workloads", "mix70-s32"
    refused("a workload that writes is refused without --write", 2,
            "needs --write", *mix)
    refused("--write is refused without --yes", 2, "needs --yes", "--write", *mix)
    # Held, not mounted: what a mount does to the disk, without writing.
    holder = os.open(DEV, os.O_RDONLY | os.O_EXCL)
    refused("a disk in use is not read without --force", 1, "--force",
            "--workloads", "rand4k-s32")
    refused("--write is refused on a disk in use, nothing is written", 1,
            "refused", "--write", "--yes", *mix)
    os.close(holder)
    name = "--write is refused on a mounted disk, nothing is written"
    os.makedirs("/tmp/mnt", exist_ok=True)
    if any(subprocess.run(words.split(), check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
           for words in (f"mke2fs {DEV}", f"mount -t ext4 -o ro {DEV} /tmp/mnt")):
        result(True, name + " # SKIP this disk keeps no file system")
        return
    refused(name, 1, "mounted on /tmp/mnt", "--write", "--yes", *mix)
    subprocess.run(["umount", "/tmp/mnt"], check=False)


for file, value in PRESET.items():
    (DISK / "queue" / file).write_text(value)
BEFORE = settings()
measure()
interrupted(signal.SIGINT)
interrupted(signal.SIGTERM)
killed()
refuse()
print(f"1..{len(FOUND)}")
sys.exit(not all(FOUND))
