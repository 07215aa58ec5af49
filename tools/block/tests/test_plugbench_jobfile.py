# SPDX-License-Identifier: GPL-2.0
"""plugbench --jobfile: fio reads it, and a sandbox holds what it does."""
import contextlib
import os
import pathlib
import re
import subprocess
from unittest import mock

import pytest

from benchtree import REAL_FIO, SHORT
from plugtools.bench import fio, jobfile, plan, sandbox
from plugtools.bench.fio import Part
from plugtools.core.system import UsageProblem

pytestmark = pytest.mark.skipif(not REAL_FIO, reason="fio is not installed")
WORDS = ["/dev/nvme0n1", "--runtime", "1", "--repeat", "1", "--policies",
         "nomerges2", "--jobfile"]
JOBS = """
; a database
[global]
ioengine = io_uring
bs=8k
filename=/etc/passwd
runtime=600
direct=1
norandommap

[read er]
rw=randread
numjobs=3
# the log
[log]
rw=read
bs=64k
"""
# says what it is called with, and is no sandbox
FAKE_BWRAP = """#!/bin/sh
echo "$*" >>$PLUGTOOLS_ROOT/bwrap.log
while [ "$1" != fio ] && [ "$1" != true ]; do shift; done
exec "$@"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """What becomes of a text, without a sandbox."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sandbox, "works", lambda: False)

    def workload(text, writes=False):
        pathlib.Path("x.fio").write_text(text, errors="surrogateescape")
        found, = jobfile.read_jobfile("x.fio", writes).values()
        return found
    return workload


def options(workload):
    """{job: {option: value}}: of two, the later one holds."""
    return {part.words[0].partition("=")[2]:
            dict(word[2:].partition("=")[::2] for word in part.words[1:])
            for part in workload.parts}


def refused(read, text, says, writes=False):
    with unless(False, says):
        read(text, writes)


def unless(good, says):
    return contextlib.nullcontext() if good else pytest.raises(
        UsageProblem, match=re.escape(says))


@pytest.fixture
def run(machine):
    """plugbench with a job file in the fakes' tree: what it prints."""
    def call(text, *words, path="x.fio", code=0):
        machine.put(path, text)
        return machine.run(*WORDS, path, *words).text(code)
    return call


def last(machine):
    return machine.get("fio.log").splitlines()[-1]


def test_runs(machine, run):
    """Its jobs, on our disk, for our time, under our seeds."""
    text, words = run(JOBS, path="my jobs.fio"), last(machine)
    for one in (f"--name=global --filename={machine.path('dev/nvme0n1')}",
                "--runtime=1", "--direct=1 --thread", "--readonly",
                "--name=read er --ioengine=io_uring --bs=8k --norandommap "
                "--rw=randread --numjobs=3 --name=log",
                "--bs=8k --norandommap --rw=read --bs=64k"):
        assert one in words
    for one in "passwd", "600", "--cpus_allowed", "iodepth":
        assert one not in words
    assert "my jobs.fio: 4 jobs, randread, read; not used: direct, filename, " \
        "runtime" in text
    assert "on any CPU" in text
    one = machine.records()[0]
    assert (one["workload"], one["cpu_busy"]) == ("my_jobs", 2.0)


def test_another_load_of_the_same_name(machine, run):
    run(JOBS, "--json", "old.json", "--keep-scheduler")
    machine.put("x.fio", JOBS.replace("64k", "16k"))
    machine.check_untouched(
        *WORDS, "x.fio", "--keep-scheduler", "--compare", "old.json",
        says="the loads of x differ: --bs=64k, then --bs=16k; accepted: "
        "results of one load")


def test_limits(machine, run):
    text = run(JOBS + "rate_iops=9\ncpus_allowed=0-99", "--iops", "400",
               "--cpu", SHORT[-1])
    assert text.index("at most 400 I/Os per second") < text.index("[1/1]")
    words = last(machine)
    assert words.count("--rate_iops=100") == 2
    assert "--cpus_allowed=" + SHORT[-1] in words
    assert "--rate_iops=9" not in words and "0-99" not in words


def test_writes(machine, run):
    """With --write it may; without a writing job --write is refused."""
    machine.check_untouched("/dev/nvme0n1", "--write", "--workloads",
                            "rand4k-s32", says="nothing that is to run writes")
    run("[a]\nrw=randrw", "--write", "--yes")
    assert "--readonly" not in last(machine)


@pytest.mark.parametrize("options, iops, jobs, limit", [
    ([("rw", "read")], 500, 5, "100"), ([("rw", "rw")], 500, 5, "50,50"),
    ([("rw", "rw"), ("rwmixwrite", "10"), ("rwmixread", "80")], 200, 1,
     "160,40"), ([("rw", "write"), ("rate_min", "1m")], 200, 1, "200"),
    ([("rw", "rw"), ("rwmixread", "100"), ("rate", "9m")], 9, 1, "8,1")])
def test_limit_of_reads_and_writes(options, iops, jobs, limit):
    """fio's own limit would hold for either."""
    part = jobfile.part_of("a", options)
    words = list(fio.job_words(mock.Mock(parts=[part], jobs=jobs),
                               mock.Mock(iops=iops, bound=False)))
    assert [word for word in words if "rate" in word] == [
        f"--rate_iops={limit}"]


@pytest.mark.parametrize("iops, reads, good", [
    (3, None, True), (2, None, False), (6, 50, True), (5, 50, False)])
def test_limit_that_is_too_small(iops, reads, good):
    """Each process has one, and one of either kind if it does both."""
    one = mock.Mock(jobs=3, parts=[Part(["--name=a"], 3, reads)])
    with unless(good, f"--iops: {iops} for 3 jobs; accepted: "
                f"{2 if reads else 1} or more for each"):
        plan.check_iops(mock.Mock(iops=iops), [one])


def test_limit_of_our_own_workloads(machine):
    out = machine.run("/dev/nvme0n1", "--workloads", "mix70-s32,rand4k-qd1",
                      "--write", "--iops", "100", "--showcmd").out
    assert re.findall("--rate_iops=[0-9,]*", out) == [
        "--rate_iops=70,30", "--rate_iops=100"]


def test_pipe(machine):
    """It is read once, so it may come from a pipe."""
    end, start = os.pipe()
    os.write(start, JOBS.encode())
    os.close(start)
    machine.apart("plugbench", *WORDS, "-", stdin=end).prints()
    os.close(end)


# --- how it is read --------------------------------------------------------
def test_several_globals(read):
    """Each is for the jobs after it; to fio all such names are global."""
    found = read("[global]\nbs=4k\n[a]\niodepth=2\n[globals]\nbs=64k\n[global]"
                 "\nnumjobs=2\n[b]\nrw=read\n[ global ]\n[Global]")
    assert [(name, one["bs"], one.get("numjobs"), one.get("iodepth"))
            for name, one in options(found).items()] == [
        ("a", "4k", None, "2"), ("b", "64k", "2", None),
        (" global ", "64k", "2", None), ("Global", "64k", "2", None)]
    assert found.jobs == 7


def test_engines_options(read):
    found = options(read("[global]\nioengine=io_uring\n[a]\nhipri\n[b]\n"
                         "hipri=1\nioengine=pvsync2\nrw=read"))
    assert found["a"] == {"ioengine": "io_uring", "hipri": ""}
    assert found["b"]["ioengine"] == "pvsync2"
    read("[a]\nioengine=libaio\ncmdprio_percentage=3\nuserspace_reap\n[b]\n"
         "ioengine=io_uring\nfixedbufs\nregisterfiles\nsqthread_poll\n"
         "sqthread_poll_cpu=0\nnonvectored=1\nforce_async=4")


def test_comments(read):
    found = options(read(
        "; head\n[a] # first\nrw=randread ; only reads\nbs=8k;x\n"
        "numjobs=04\t# four\nnorandommap # all\r\n  # whole\n#\rbs=1k\n"
        "# gr\udcf6\udcdfe\ndirect=1 # past the cache\n[gr\u00f6\u00dfe]\n"))
    assert found == {"a": {"rw": "randread", "bs": "8k", "numjobs": "04",
                           "norandommap": ""}, "gr\u00f6\u00dfe": {}}


def test_variables(read, monkeypatch):
    """What fio makes of them; what is not used needs none."""
    monkeypatch.setenv("SIZE", "16k")
    found = options(read("[a]\nfilename=${NOT_SET}\nbs=${SIZE}\n"
                         "io_size=2*$pagesize\nruntime=${NOT_SET}"))
    assert found["a"] == {"bs": "16k", "io_size": str(
        2 * os.sysconf("SC_PAGE_SIZE"))}
    refused(read, "[a]\nbs=${NOT_SET}", "variables that are set")
    monkeypatch.setenv("WHAT", "exec_prerun")
    refused(read, "[a]\n${WHAT}=x", "exec_prerun=x; accepted: only")
    refused(read, "[a]\nflow=8 --exec_prerun=x", "exec_prerun=x; accepted")
    refused(read, "[a]\nmem=shm --name=b --rw=write", "accepted: ")


def test_what_changes_nothing(read):
    found = read("[a]\nrw=read\ndescription=what /it/ is\nunlink=0\n"
                 "gtod_reduce=1\nclat_percentiles=1\nfallocate=none\n"
                 "write_bw_log=/etc/x\nlog_prio=1\ntrim_percentage=0")
    assert options(found) == {"a": {"rw": "read"}}
    assert found.text.endswith(
        "; not used: clat_percentiles, description, fallocate, gtod_reduce, "
        "log_prio, trim_percentage, unlink, write_bw_log")


def test_what_needs_no_sandbox(read):
    read("""[a]\nbssplit=4k/:8k/40\nio_size=8*($pagesize)/2\nmem_align=8k\nmem=shm\nsize=50%
random_distribution=zoned_abs:60/20G:30/100G:10/500g\nfilesize=8m
[b]\nrandom_distribution=zipf:.5\nlockmem=1m\nzonemode=strided\nflow=8
thinktime_blocks_type=issue\nbuffer_compress_percentage=50
softrandommap=1\nbs_is_seq_rand=1\nverify_async_cpus=0\nflow_watermark=100""")


# --- what is refused -------------------------------------------------------
@pytest.mark.parametrize("word, says", [
    ("rw=randwrite", "read, randread, or --write, which DESTROYS"),
    ("rw=rw:8", "read, randread, or --write"),
    ("rw=trim", "read, randread, or --write"),
    ("ioengine=net", "io_uring, libaio"), ("ioengine=mmap", "io_uring, libai"),
    ("ioengine=external:/x", "io_uring, libaio"), ("mem=mmap:x", "malloc, shm"),
    ("mem=MMAPSHARED:/x", "malloc, shm"), ("mem=malloc:x", "malloc, shm"),
    ("direct=0", "direct=1, and only what shapes the load"),
    ("buffered=1", "buffered=0, and only what shapes the load"),
    ("verify=null", "verify=0, and "), ("unlink=1", "unlink=0, and "),
    ("trim_percentage=1", "trim_percentage=0, and "),
    ("exec_prerun=reboot", "only what shapes the load; this may run prog"),
    ("ioscheduler=bfq", "only what shapes"), ("wait_for=a", "only what shapes"),
    ("numjobs=00", "numjobs=1 to 999"), ("numjobs=0x400", "numjobs=1 to 999"),
    ("numjobs=1k", "numjobs=1 to 999"), ("numjobs", "numjobs=1 to 999"),
    ("rwmixread=1%", "0 to 100"), ("rwmixread=\u0661", "0 to 100"),
    ("numjobs=0x4", None), ("numjobs=04", None), ("verify=0", None),
    ("rw=RandRead:8", None), ("mem=SHM", None), ("ioengine=LIBAIO", None)])
def test_accepted(word, says):
    option, equals, value = word.partition("=")
    said = jobfile.accepted(option, value if equals else None, False)
    assert said is None if says is None else said.startswith(says)
    if option == "rw":          # with --write
        assert (jobfile.accepted(option, value, True) or "none").endswith(
            "rw, readwrite, randrw" if value == "trim" else "none")


@pytest.mark.parametrize("text, says", [
    ("[global]\nreadwrite=write\n[a]\nrw=read",
     "[a]: rw=write; accepted: read, randread, or --write"),
    ("[a]\nnot_an_option=1", "fio does not take x.fio: Bad option"),
    ("[a]\nbs=nonsense", "fio does not take x.fio: "),
    ("[a]\nbs", "fio does not take x.fio: "),
    ("[a]\nrandom_distribution=nonsense", "fio does not take x.fio: "),
    ("include x", "before any [section]"), ("\ufeff[a]", "before any [sect"),
    ("[a]\ninclude x", "include x; accepted"),
    ("[global]\nbs=4k", "has no job"),
    ("[a]\n[a\0b]", r"x.fio, line 2: [a\x00b]; accepted: a name that can be"),
    ("[a]\n[a\udcf6b]", r"[a\udcf6b]"), ("[a]\n[a\x1b[7mb]", r"[a\x1b[7mb]"),
    ("[a]\nbs=\x1b[31m", r"bs=\x1b[31m"), ("[a]\n\x1b[31m", r"\x1b[31m")])
def test_refused(read, text, says):
    refused(read, text, says)


@pytest.mark.parametrize("first, second, good", [
    ([("stonewall", None)], [], True), ([], [("stonewall", None)], False),
    ([("stonewall", None)], [("stonewall", "0")], True)])
def test_order(first, second, good):
    with unless(good, "x.fio, [b]: stonewall; accepted: jobs that run all at "
                "once"):
        jobfile.check_order([("a", first), ("b", second)], "x.fio")
    assert jobfile.part_of("a", first).words == ["--name=a"]


@pytest.mark.usefixtures("read")
def test_sections():
    """Each by itself, with what is [global] before it; nothing of others is
    read."""
    pathlib.Path("x.fio").write_text(
        "[global]\nbs=8k\n[a]\nrw=read\n[b]\nstonewall\nrw=randread\n"
        "[global]\nbs=16k\n[c]\nstonewall\nrw=${NOT_SET}\nexec_prerun=/bin/x\n"
        "loops=2\n[a]\n[ d ]\nrw=read\n")
    found = jobfile.read_jobfile("x.fio", False, "b, d")
    assert "loops" not in found["x:b"].text
    assert {name: options(one) for name, one in found.items()} == {
        "x:b": {"b": {"bs": "8k", "rw": "randread"}},
        "x:d": {" d ": {"bs": "16k", "rw": "read"}}}
    for wanted, says in (("e", "0 jobs of x.fio are [e]; accepted: a, b, c"),
                         ("global", "0 jobs"), ("a", "2 jobs"), ("", "0 jobs")):
        with unless(False, says):
            jobfile.read_jobfile("x.fio", False, wanted)


def test_name_that_the_locale_lacks(read, monkeypatch):
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "latin-1")
    refused(read, "[gr\u00f6\u00dfe \u2192]", "a name that can be printed")


@pytest.mark.parametrize("text", [
    "iomem=MMAP:", "buffer_pattern='", "read_iolog=", "aux-path=",
    "a_later_option=", "a_later_option=x/../", "include "])
@pytest.mark.parametrize("name", ["/precious", "${PRECIOUS}"])
def test_files_and_programs(read, monkeypatch, text, name):
    """Whatever option has one, fio is not even shown it."""
    monkeypatch.setenv("PRECIOUS", "/precious")
    monkeypatch.setattr(jobfile, "showcmd", None)
    refused(read, f"[a]\n{text}{name}", "accepted: ")


# fio's own, one's second name, and what is short for one
MORE_OPTIONS = ["trigger-timeout=1 --trigger=touch file", "iomem=mmap:x",
                "readwrite=write", "exec_pre=x", "output=x", "hipri"]


@pytest.mark.parametrize("more", MORE_OPTIONS)
@pytest.mark.parametrize("line", [
    "replay_redirect=x --{}", 'buffer_pattern="a\t--{}"', "flow=1 ${{MORE}}"])
def test_options_in_a_value(read, monkeypatch, line, more):
    monkeypatch.setenv("MORE", f"--{more}")
    monkeypatch.setattr(jobfile, "showcmd", None)
    refused(read, f"[a]\n{line.format(more)}", "accepted: one option on a line")


@pytest.mark.parametrize("more", MORE_OPTIONS)
@pytest.mark.parametrize("line", ["flow=1 ${MORE}", "include inner"])
def test_options_that_only_fio_sees(read, monkeypatch, line, more):
    monkeypatch.setenv("MORE", f"--{more}")
    monkeypatch.setattr(sandbox, "works", lambda: True)
    monkeypatch.setattr(sandbox, "boxed", lambda command, *_: command)
    pathlib.Path("inner").write_text(f"flow=1 --{more}\n", encoding="ascii")
    refused(read, f"[a]\n{line}",
            f"[a]: {more.partition(' ')[0]}; accepted: an option as fio --cmd")


# --- the sandbox -----------------------------------------------------------
def test_job_files_are_boxed(machine, run):
    """And nothing else is; the disk is the one device that they have."""
    machine.program("bwrap", FAKE_BWRAP)
    machine.bench("--policies", "nomerges2", "--keep-scheduler")
    assert not machine.get("bwrap.log", "")
    machine.put("d/inner", "bs=2k ; small\niodepth=7")
    text = "[global]\ninclude inner\n[a]\nrw=randread"
    run(text, "--keep-scheduler", path="d/x.fio")
    _, reads, lists, engine, parses, *runs = machine.get(
        "bwrap.log").splitlines()
    assert "fio --showcmd -" in reads
    assert "fio --cmdhelp=all" in lists and "--enghelp=psync" in engine
    assert "fio --parse-only" in parses
    node = machine.path("dev/nvme0n1")
    assert len(runs) == 2
    for one in runs:
        assert one.startswith("--ro-bind / / --dev /dev ")
        assert f" --dev-bind {node} {node} fio --output" in one
        assert "--name=a --bs=2k --iodepth=7 --rw=randread" in one
    machine.program("bwrap", FAKE_BWRAP.replace("echo", ": "))
    for words in ["--html", "d/inner"], ["--json", "d/x.fio"]:
        machine.check_untouched(*WORDS, "d/x.fio", *words,
                                says="would overwrite " + words[1])


@pytest.mark.skipif(not sandbox.works(), reason="bubblewrap does not work")
def test_sandbox(tmp_path):
    disk, other = tmp_path / "disk", tmp_path / "other"
    for path in disk, other:
        path.write_bytes(bytes(8192))
        subprocess.run(sandbox.boxed(
            ["fio", "--name=a", f"--filename={path}", "--rw=write", "--bs=4k",
             "--buffer_pattern=0xab", "--size=8k"], True, str(disk)),
            check=False, capture_output=True, cwd=tmp_path)
    assert disk.read_bytes() == b"\xab" * 8192
    assert other.read_bytes() == bytes(8192)
    assert sorted(tmp_path.iterdir()) == [disk, other]


@pytest.mark.skipif(not sandbox.works(), reason="bubblewrap does not work")
@pytest.mark.parametrize("deed", [
    "echo x >/proc/{pid}/root{path}", "kill {pid}",
    ": >>/proc/sys/kernel/core_pattern", "mknod /dev/disk b 7 0",
    "mount -o remount,bind,rw / && echo x >{path}"])
def test_root_in_a_sandbox(tmp_path, deed):
    """It has no way around it through the processes that are outside, and
    can neither make devices nor mount."""
    path = tmp_path / "file"
    with subprocess.Popen(["sleep", "60"]) as other:
        done = subprocess.run(sandbox.boxed(
            ["sh", "-c", deed.format(pid=other.pid, path=path)], True),
            check=False, capture_output=True)
        assert other.poll() is None
        other.kill()
    assert done.returncode and done.stderr
    assert not path.exists()


@pytest.mark.skipif(not sandbox.works(), reason="bubblewrap does not work")
def test_file_in_a_sandbox(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("pattern").write_bytes(b"x" * 512)
    pathlib.Path("x.fio").write_text(
        f"[a]\nbuffer_pattern='{tmp_path}/pattern'", encoding="ascii")
    assert "buffer_pattern" in str(jobfile.read_jobfile("x.fio", False))


def test_fio_has_the_last_word(machine, run):
    """On what only all options together tell, before anything is changed."""
    machine.remove("bin/fio")
    machine.borrow("fio")
    machine.put("dev/nvme0n1", "x" * (1 << 20))
    run("[a]\nbs=64k\nbsrange=1k-2k\nrw=read\nzonemode=strided", code=1)


def test_options_are_fios():
    """And none of them means something else on its command line."""
    known = jobfile.listed(set(), jobfile.ENGINES, False)
    assert {*jobfile.VALUES, *jobfile.REFUSED, "hipri"} <= known
    own = subprocess.run([REAL_FIO, "--help"], capture_output=True, text=True,
                         check=True).stdout
    own = set(re.findall(r"^ *--([\w-]+)", own, re.MULTILINE))
    assert {"trigger", "output"} <= own
    assert not own & known
