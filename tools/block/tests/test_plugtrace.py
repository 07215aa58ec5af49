# SPDX-License-Identifier: GPL-2.0
"""plugtrace-perf on recorded events, with a perf that replays them.

Whether the kernel's events are these is tried in a guest.
"""
import json
import subprocess
from functools import partial

import pytest

from fakehost import TOOLS, Result

# it records nothing; meanwhile the kernel counts
PERF = """#!/bin/sh
case $*:$1 in
"record -h:record") echo "    --switch-max-files <n>" ;;
*:record)
    echo "$*" >"$PLUGTOOLS_ROOT/recorded"
    while [ "$1" != -o ]; do shift; done
    echo data >"$2.2026113007481291"
    echo data >"$2.2026113007481305"
    cat "$PLUGTOOLS_ROOT/log" >&2
    cp "$PLUGTOOLS_ROOT"/after/* "$PLUGTOOLS_ROOT/proc/" ;;
*:script)
    shift
    case $2 in *291) cat "$PLUGTOOLS_ROOT/events" ;; esac ;;
esac
"""
# of a signal while it records
STOPPED = PERF.replace('proc/" ;;', 'proc/"; kill -s INT $PPID ;;')
CPUS = "cpu  0 0 0 0 0 0 0 0 0 0\n{}intr 7 8 9"
CPU = "cpu{} {} 0 0 {} 0 0 0 0 0 0\n"
DISK = " 259 0 nvme0n1 0 0 0 0 0 0 0 0 0 {} {} 0 0 0 0 0 0"
DUMP = "[ perf record: Dump data.2026113007481291 ]\n"
GETRQ = " 77 [001] block:block_getrq: 259,0 R {} + 8 [fio]\n"
MERGE = " 77 [001] block:block_bio_backmerge: 259,0 R {} + 8 [fio]\n"
UNPLUG = " 77 [001] block:block_unplug: [fio] {}\n"


def random(plugs, size):
    return "".join("".join(GETRQ.format(1000 * (plug * size + number + 1))
                           for number in range(size)) + UNPLUG.format(size)
                   for plug in range(plugs))


def sequential(plugs, size, merged=True):
    """Events of plugs whose bios follow each other, and merge or do not."""
    text = ""
    for number in range(plugs * size):
        first = number % size == 0
        text += (GETRQ if first or not merged else MERGE).format(8 * number)
        if number % size == size - 1:
            text += UNPLUG.format(1 if merged else size)
    return text


def alone():
    """I/O without a plug, which joins none, and one plug of one."""
    return random(1100, 1).replace(UNPLUG.format(1), "") + UNPLUG.format(1)


class Traced:
    def __init__(self, host):
        self.host = host
        host.borrow("cat", "cp", "df", "find", "grep", "mktemp", "rm", "sh",
                    "sleep")
        host.program("perf", PERF)
        host.program("id", "#!/bin/sh\necho 0")
        host.put("sys/kernel/tracing/events/block/block_unplug/format")
        host.put("sys/kernel/tracing/kprobe_events")
        host.put("proc/kallsyms", "".join(f"ffff t {name}\t[x]\n" for name in (
            "blk_mq_get_tags", "blk_mq_get_tag", "nvme_queue_rqs",
            "nvme_queue_rq", "nvme_commit_rqs")))
        host.put("log", DUMP)
        host.disk("nvme0n1")
        self.counts(cpu=30, flight=8)

    def counts(self, cpu, flight, ios=1000):
        """What the kernel counts meanwhile: per cent of CPU 1, and a mean in
        flight while the disk is busy."""
        self.host.put("after/stat", CPUS.format(
            CPU.format(0, 105, 5) + CPU.format(1, 500 + cpu, 600 - cpu)))
        self.host.put("after/diskstats", DISK.format(
            4000 + ios, 90000 + ios * flight))

    def run(self, *words, events=random(100, 16), out=subprocess.PIPE):
        self.host.put("events", events)
        self.host.put("proc/stat", CPUS.format(
            CPU.format(0, 5, 5) + CPU.format(1, 500, 500)))
        self.host.put("proc/diskstats", DISK.format(4000, 90000))
        done = subprocess.run(["sh", TOOLS / "plugtrace-perf", *words],
                              text=True, check=False, stdout=out,
                              stderr=subprocess.PIPE)
        return Result(done.returncode, done.stdout, done.stderr)

    def gain(self, events):
        done = self.run("--json", "1", events=events)
        assert done.fails(0) == ""
        found = json.loads(done.out)
        return found["gain"], found["why"]


@pytest.fixture(params=["awk", "busybox"])
def traced(request, host, monkeypatch):
    """A machine with either awk: busybox's has no extensions, and does not say
    that its output is lost."""
    monkeypatch.setenv("TMPDIR", str(host.root))
    if request.param == "busybox":
        host.borrow("busybox")
        host.program("awk", '#!/bin/sh\nexec busybox awk "$@"')
    else:
        host.borrow("awk")
    return Traced(host)


@pytest.mark.parametrize("cpu, flight, events, word, why", [
    # the disk waits for plugs
    (30, 8, partial(random, 100, 16), "likely",
     "100% of its I/Os are random and leave in plugs of 4 or more (16.0 on "
     "average); nvme0n1 has 8.0 in flight while busy, and CPU 1, which submits "
     "most, is 30% busy: the disk waits for plugs, so latency is the limit, "
     "where adaptive gains"),
    # the CPU that submits is busy, however much is in flight; CPU 0, which
    # does not submit, always is
    (95, 300, partial(random, 100, 16), "likely",
     "95% busy: the CPU is the limit, where every mode gains"),
    # much in flight, and an idle CPU
    (30, 33, partial(random, 100, 16), "unlikely",
     "33.0 in flight while busy, and CPU 1, which submits most, is 30% busy: "
     "the disk is the limit"),
    # bios that merge, and large ones that only follow each other
    *((30, 8, partial(sequential, 100, 16, merged), "unlikely",
       "only 0% of its I/Os are random and leave in plugs of 4 or more, and "
       "CPU 1, which submits most, is 30% busy") for merged in (True, False)),
    # the kernel takes no tags for what merges: plugs of 4 or more gain,
    # whatever is in them; those of 3 do not, nor does I/O without any
    *((95, 300, partial(sequential, plugs, size, merged), word, "")
      for merged in (True, False)
      for plugs, size, word in ((100, 16, "likely"), (400, 3, "unlikely"))),
    (95, 300, alone, "unlikely", ""),
    (30, 5, partial(random, 400, 3), "unlikely", ""),
    (30, 5, partial(random, 400, 4), "likely", ""),
    (30, 5, alone, "unlikely", ""),
    # a fifth is enough, less is not
    (30, 8, lambda: random(20, 10) + sequential(80, 10), "likely", ""),
    (30, 8, lambda: random(19, 10) + sequential(81, 10), "unlikely", ""),
    (95, 99, lambda: random(60, 4) + sequential(300, 3), "likely", ""),
    (95, 99, lambda: random(55, 4) + sequential(300, 3), "unlikely", ""),
    (30, 8, partial(random, 10, 16), "unknown",
     "160 I/Os were seen, 1000 are needed"),
    (30, 8, str, "unknown", "0 I/Os were seen, 1000 are needed")])
def test_gain(traced, cpu, flight, events, word, why):
    traced.counts(cpu, flight)
    found = traced.gain(events())
    assert found[0] == word
    assert found[1].endswith(why)


@pytest.mark.parametrize("attribute, value, why", [
    ("scheduler", "none [mq-deadline]", "nvme0n1 has an I/O scheduler, "
     "mq-deadline, and with one every mode does as always"),
    ("rotational", "1", "nvme0n1 is rotational")])
def test_disk_without_modes(traced, attribute, value, why):
    traced.host.put("sys/block/nvme0n1/queue/" + attribute, value)
    assert traced.gain(random(100, 16)) == ("unlikely", why)


def test_disk_that_is_not_counted(traced):
    traced.counts(cpu=30, flight=8, ios=0)
    assert traced.gain(random(100, 16)) == (
        "unknown", "the kernel does not count how busy nvme0n1 is")


@pytest.mark.parametrize("events, says", [
    (random(100, 16), "This load would probably gain from plug_policy"),
    (sequential(100, 16), "This load would hardly gain from plug_policy"),
    (random(10, 16), "Whether this load would gain from plug_policy cannot be "
     "told")])
def test_people_are_told_the_same(traced, events, says):
    assert traced.run("1", events=events).out.splitlines()[-1] == \
        f"{says}: {traced.gain(events)[1]}"


def test_tags_and_doorbells(traced):
    """A list rings once more where the queue changes; an admin command is none
    of a plug's."""
    setup = "nvme:nvme_setup_cmd: nvme0: disk=nvme0n1, qid={},"
    found = {"tag_batches": 1, "batched_tags": 3, "refused": 1,
             "single_tags": 1, "doorbells": 2, "commands": 3,
             "single_doorbells": 2, "single_commands": 1}
    done = traced.run("--json", "1", events="".join(
        f" 77 [001] {text}\n" for text in (
            "plugtrace9:tags: (0 <- 0) mask=0x15", "plugtrace9:tag: (0)",
            "plugtrace9:tags: (0 <- 0) mask=0x0",
            "plugtrace9:list: (0)", *map(setup.format, (1, 1, 2)),
            "plugtrace9:list_end: (0 <- 0)",
            *(text for qid in (0, 1) for text in (
                "plugtrace9:single: (0) last=1", setup.format(qid),
                "plugtrace9:single_end: (0 <- 0)")),
            "plugtrace9:commit: (0)")))
    assert json.loads(done.out).items() >= found.items()


@pytest.mark.parametrize("told", [0, 1])
def test_kernel_that_does_not_tell_of_flushes(traced, told):
    """Linux 6.1: block_unplug only of what is not given to the driver at once;
    what is issued without a plug is no flush.  Others tell."""
    begin, end, issue = (f" 77 [001] {text}\n" for text in (
        "plugtrace9:flush: (0)", "plugtrace9:flush_end: (0 <- 0)",
        "block:block_rq_issue: 259,0 R 8 + 8 [fio]"))
    # a driver that sleeps flushes in between
    plug = random(1, 16).replace(UNPLUG.format(16), "") + begin + \
        told * UNPLUG.format(16) + 5 * issue + begin + end + 11 * issue + end
    found = json.loads(traced.run("--json", "1",
                                  events=issue + 100 * plug).out)
    assert (found["flushes"], found["requests"], found["gain"]) == (
        100, 1600, "likely")


def test_kernel_without_batches_of_tags(traced):
    """Debian 11's, 5.10: no tags in batches, no lists. The rest is shown."""
    traced.host.put("proc/kallsyms", "f T blk_mq_get_tag\nf t nvme_queue_rq\n")
    done = traced.run("1")
    assert done.fails(0) == ""
    assert "\nflush of a plug           100      1600    16.00  " in done.out
    assert "\nbatch of tags               -         -        -  " in done.out
    assert "\ndoorbell of a list          -         -        -  " in done.out
    found = json.loads(traced.run("--json", "1").out)
    assert {name for name in found if found[name] is None} == {
        "tag_batches", "batched_tags", "refused", "doorbells", "commands"}
    assert (found["single_tags"], found["single_commands"]) == (0, 0)
    assert "get_tags" not in traced.host.get("sys/kernel/tracing/kprobe_events")


def test_space_is_bounded(traced):
    """Two files of a quarter of what is free, less what CPUs have in hand, and
    the one that perf writes; the output says if there was more."""
    for free, size in ((10 ** 7, 262144), (200000, 41808), (90000, 0), ("", 0)):
        traced.host.program("df", "#!/bin/sh\necho Head\n"
                            f"echo //a share 1 2 {free} 3% /t")
        done = traced.run("1")
        if not size:
            assert "too little space in" in done.fails(1)
            continue
        assert "The last events only" not in done.out
        assert f"--switch-output={size}K --switch-max-files=2 " in \
            traced.host.get("recorded")
    traced.host.remove("bin/df")
    traced.host.borrow("df")
    traced.host.put("log", 3 * DUMP)
    assert "The last events only" in traced.run("1").out
    found = json.loads(traced.run("--json", "1").out)
    assert (found["complete"], found["gain"]) == (False, "unknown")
    assert not list(traced.host.root.glob("tmp*"))


@pytest.mark.parametrize("perf, says", [
    ("#!/bin/sh\necho --output --switch-output", "this perf is too old: 5.1 or "
     "later is needed"),
    ("#!/bin/sh\necho no perf for this kernel; exit 2",
     "perf does not work: no perf for this kernel"),
    # it has failed after the first file
    (PERF.replace("cp ", "echo full >&2; echo >\"$2\"; cp "),
     f"perf record failed: {DUMP}\nfull"),
    (PERF.replace("cat \"$PLUGTOOLS_ROOT/events\"", "echo incompatible >&2; "
                  "exit 1"), "perf script failed: incompatible")],
    ids=["old", "none", "record", "script"])
def test_perf_that_cannot(traced, perf, says):
    traced.host.program("perf", perf)
    assert traced.run("1").fails(1) == f"plugtrace-perf: {says}\n"


@pytest.mark.parametrize("words", ["1", "--json 1", "--help", "--version"])
def test_lost_output(traced, words):
    with open("/dev/full", "wb") as full:
        assert traced.run(*words.split(), out=full).code == 1


def test_stopped(traced):
    """By a signal is well, but not if the output is lost."""
    traced.host.program("perf", STOPPED)
    assert traced.run("1").code == 0
    assert traced.run("--", "false").code == 0
    with open("/dev/full", "wb") as full:
        assert traced.run("1", out=full).code == 1


@pytest.mark.parametrize("words", [
    "0", "-x", "true", "5 -- true", "--", "1 2"])
def test_refused(words):
    done = subprocess.run([TOOLS / "plugtrace-perf", *words.split()],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("plugtrace-perf: ")
