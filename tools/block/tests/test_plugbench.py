# SPDX-License-Identifier: GPL-2.0
"""plugbench: what it refuses, in which order it runs, and what it writes."""
import contextlib
import errno
import itertools
import json
import os

import pytest

from benchtree import FAKE_FIO, FILES, FIO_JSON, QUEUE, SHORT, active
from plugtools.report.records import load

FILE_OPTIONS = ("compare", "json", "html", "show")


# --- what is refused: nothing is changed -----------------------------------
@pytest.mark.parametrize("words, says", [
    (["--policies", "sometimes"], "never, seq-small, adaptive, nomerges2"),
    (["--policies", ""], "'' is none of"),
    (["--workloads", "always"], "none of: rand4k-s32"),
    (["--workloads", "rand4k-s32,"], "'' is none of"),
    (["--workloads", "rand4k"], "none of: rand4k-s32"),
    (["--workloads", "mix70-s32"], "needs --write"),
    (["--runtime", "0"], "with s, m or h, as 5m"),
    (["--jobfile", ""], "the name of a file, or - for the standard input"),
    (["--repeat", "-1"], "--repeat"),
    (["--cpu", "99999"], "CPUs that this process may use"),
    (["--cpu", "x"], "the number of a CPU"),
    (["--yes"], "--yes needs --write"),
    (["--restore"], "give /dev/DISK, or, by themselves, --restore"),
    (["--budget", "0"], "with s, m or h, as 5m"),
    (["--budget", "5 m"], "with s, m or h, as 5m"),
    (["--iops", "x"], "a whole number from 1"),
    (["--fail-below", "0.9"], "needs --compare"),
    *((["--compare", "x.json", "--fail-below", text],
       "a ratio above 0 and up to 1") for text in ("2", "0.00", "0.97x")),
    (["--compare", "none.json"], "none.json"),
    (["--jobfile", "x", "--workloads", "rand4k-s32"],
     "either --jobfile or --workloads"),
    (["--jobfile", "x", "--workloads", ""], "either --jobfile or --workloads"),
    *((["--" + name, text], f"--{name}: '{text}'; accepted: the name of a file")
      for name in FILE_OPTIONS for text in ("", "-")),
    (["--section", "a"], "--section needs --jobfile"),
    *((["/dev/other", *more], "are for one disk") for more in (
        ["--json", "x"], ["--html", "x"], ["--compare", "x"], ["--write"])),
    (["--jobfile", "none.fio"], "No such file"),
    (["--frobnicate"], "unrecognized")])
def test_options(machine, words, says):
    machine.check_untouched("/dev/nvme0n1", *words, says=says)


@pytest.mark.parametrize("words, option, known", [
    *((["--compare", "a.json", "b.json", *more], more[0],
       "--compare, --json, --fail-below\n") for more in (
           ["--html", "x"], ["--markdown"], ["--keep-scheduler"])),
    (["--show", "a.json", "--compare", "x"], "--compare",
     "--show, --verbose, --markdown, --html\n"),
    (["--show", "a.json", "--json", "x"], "--json",
     "--show, --verbose, --markdown, --html\n"),
    (["--restore", "--dry-run"], "--dry-run", "--restore\n")])
def test_what_would_be_ignored(machine, words, option, known):
    machine.check_untouched(*words, says=f"{option} does nothing here; "
                            f"accepted: only {known}")


@pytest.mark.parametrize("path", ["/nowhere/x", "/dev/null"])
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_result_cannot_be_written(machine, option, path):
    machine.check_untouched("/dev/nvme0n1", option, path, code=1,
                            says="cannot write " + path)


@pytest.mark.parametrize("user", [9, 0])
def test_no_permission(machine, monkeypatch, user):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied", "/run/x")
    monkeypatch.setattr("plugtools.core.journal.fcntl.flock", forbidden)
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("os.open", forbidden)
    assert machine.run("/dev/nvme0n1", *SHORT)[::2] == (
        1, "plugbench: /run/x: Permission denied"
        f"{': run as root' if user else ''}\n")


@pytest.mark.parametrize("user, name, error, says", [
    (0, "plug_policy", errno.EROFS, "Read-only file system; no"),
    (0, "plug_policy", errno.EACCES, "Permission denied; no"),
    (9, "dev/nvme0n1", errno.EACCES, "denied: run as root; no")])
def test_what_cannot_be_opened(machine, monkeypatch, user, name, error, says):
    """A sysfs that is read-only does not ask for root."""
    real = os.open

    def opened(path, *more):
        if str(path).endswith(name):
            raise OSError(error, os.strerror(error), path)
        return real(path, *more)
    monkeypatch.setattr("os.open", opened)
    monkeypatch.setattr("os.geteuid", lambda: user)
    machine.check_untouched("/dev/nvme0n1", "--dry-run", code=1, says=says)


# --- the scheduler, which makes every policy do as "always", and nomerges ---
@pytest.mark.parametrize("offered", ["none [mq-deadline] kyber", "[bfq]"])
def test_scheduler_is_kept(machine, offered):
    """If asked for, and if none is not offered it must be."""
    machine.put(QUEUE + "scheduler", offered)
    if "none" not in offered:
        machine.check_untouched("/dev/nvme0n1", code=1,
                                says="--keep-scheduler")
    text = machine.bench("--keep-scheduler")
    assert f"warn:  scheduler {active(offered)} is kept" in text
    assert f"scheduler={offered} " in machine.get("fio.log")


def test_both_nomerges(machine):
    """A host that never merges is measured so, too; the verdict names for
    which it holds."""
    machine.put(QUEUE + "nomerges", "2")
    machine.put("better.json", json.dumps(FIO_JSON).replace("1000.5", "1100.5"))
    machine.program("fio", FAKE_FIO.replace(
        "cat fio.json", "case $line in *adaptive*nomerges=0*) "
        "exec cat better.json;; esac; cat fio.json"))
    text = machine.bench("--policies", "always,adaptive,nomerges2", "--repeat",
                         "5")
    assert "nomerges is 2: measured so and with 0" in text
    assert [(one["policy"], one["nomerges"]) for one in
            machine.timed()[:5]] == [
        ("always", "2"), ("adaptive", "2"), ("always", "0"),
        ("adaptive", "0"), ("always", "2")]
    zero, two = sorted(line for line in text[text.rindex("Verdict:"):].split(
        "\n") if ", nomerges=" in line)
    assert "nomerges=0: " in zero and "use adaptive" in zero
    assert "nomerges=2: " in two and "no difference" in two
    assert machine.get(QUEUE + "nomerges") == "2"


@pytest.mark.parametrize("more, begins", [
    ([], "Verdict:"), (["--markdown"], "**")])
def test_one_nomerges(machine, more, begins):
    """Of which there is a verdict: it is named nevertheless."""
    machine.put(QUEUE + "nomerges", "2")
    text = machine.bench("--policies", "always,nomerges2", "-v", *more)
    verdict = text[text.rindex(begins):]
    assert "nomerges=0" in verdict and "nomerges=2" not in verdict
    places = [text.index(word) for word in (
        " always, nomerges=2 ", " always, nomerges=0 ", "] round 1 rand4k-s32 "
        "       nomerges2 ")]
    assert places == sorted(places)


def test_conditions(machine):
    text = machine.bench("--policies", "always,never", "--repeat", "2")
    assert "This holds with scheduler none, and this host has mq-deadline" \
        in text
    assert "This holds with nomerges=0, and this host has 1" in text
    for name, text in (("scheduler", "[none] kyber"), ("nomerges", "0"),
                       ("plug_policy", FILES[QUEUE + "plug_policy"])):
        machine.put(QUEUE + name, text)
    assert "This holds" not in machine.bench("--policies", "always")


# --- the runs --------------------------------------------------------------
def test_rotation(machine):
    """Each round begins with another policy, and has a seed of its own; that
    one is not in force is said once."""
    machine.put(QUEUE + "plug_policy_fallback", "no-queue_rqs")
    text = machine.bench("--repeat", "3", "--policies",
                         "always,never,seq-small")
    assert text.count('never does as "always" here: no-queue_rqs') == 1
    assert [(one["policy"], one["--randseed"]) for one in machine.timed()] == [
        ("always", "1"), ("never", "1"), ("seq-small", "1"),
        ("never", "2"), ("seq-small", "2"), ("always", "2"),
        ("seq-small", "3"), ("always", "3"), ("never", "3")]


def test_options_of_fio(machine):
    """Batches, CPU, polling where the disk and the workload have it."""
    machine.bench("--workloads", "rand4k-s32,rand4k-qd4,libaio-rand4k-s32",
                  "--policies", "always")
    one, two, three = (machine.log()[place] for place in (0, 2, 4))
    assert {"--iodepth": "128", "--iodepth_batch_submit": "32",
            "--iodepth_batch_complete_min": "32", "--direct": "1",
            "--iodepth_batch_complete_max": "32", "--bs": "4k",
            "--cpus_allowed": SHORT[-1], "--hipri": "", "--readonly": "",
            "--registerfiles": "", "--fixedbufs": "",
            "--filename": str(machine.path("dev/nvme0n1"))
            }.items() <= one.items()
    assert "--hipri" not in two and "--fixedbufs" not in three
    machine.put(QUEUE + "io_poll", "0")
    machine.bench("--policies", "nomerges2", "--keep-scheduler")
    assert "--hipri" not in machine.log()[-1]


# --- what is written -------------------------------------------------------
def test_records(machine):
    """Every policy and workload, as a report reads them, with the figures of
    fio and of the disk; what cannot be counted is null, and that is said."""
    text = machine.bench(
        "--workloads", "rand4k-s32,rand4k-qd1", "--repeat", "2",
        "--policies", "adaptive,never,nomerges2", "--commit", "abc")
    assert text.count("perf is not installed") == 1
    records, meta = load(machine.path("plugbench-nvme0n1.json"))
    assert {(one["workload"], one["policy"], one["run"])
            for one in records} == set(itertools.product(
                ("rand4k-s32", "rand4k-qd1"),
                ("adaptive", "never", "nomerges2"), (0, 1)))
    assert len(records) == 12
    assert meta["disk"] == "nvme0n1"
    assert {"iops": 1000.5, "kernel": "patched", "suite": "plugbench",
            "profile": "Fake SSD", "model": "Fake  SSD", "firmware": "1.0",
            "commit": "abc", "requests_per_io": 0.5, "cpu_busy": 0.5,
            "ctx_switches_per_io": 0.5, "insns_per_io": None,
            "doorbells_per_io": None, "group": None,
            "cycles_per_io": None}.items() <= records[0].items()
    assert records[0]["lat_us"] == {"mean": 5.0, "p50": 4.0, "p99": 9.0,
                                    "p999": 11.0}


def test_compare(machine):
    words = ["--repeat", "5", "--policies", "nomerges2", "--keep-scheduler"]
    machine.bench(*words, "--json", "old.json")
    told = json.loads(machine.get("fio.json"))
    told["jobs"][0]["mixed"]["iops"] *= 0.9
    machine.put("fio.json", json.dumps(told))
    words += ["--compare", "old.json", "--fail-below", "0.97"]
    assert "regression" in machine.bench(*words, code=3)
    files = ["plugbench-nvme0n1.json", "--compare", "old.json"]
    for more, code in (([], 0), (["--fail-below", "0.8"], 0),
                       (["--fail-below", "0.97"], 3)):
        assert machine.run(*files, *more).code == code, more
    for more in ["--compare", "old.json"], ["--html", "./old.json"]:
        machine.check_untouched("/dev/nvme0n1", "--keep-scheduler", *more,
                                "--json", "old.json", says="would overwrite")


def test_results_are_not_overwritten(machine):
    """What is read is not written; of --json, an earlier file is kept."""
    machine.bench("--policies", "nomerges2", "--json", "a.json")
    for name in "b.json", "c.json":
        machine.put(name, machine.get("a.json"))
    machine.link("link.json", "a.json")
    pair = ["--compare", "a.json", "b.json"]
    for words in (pair + ["--json", "./a.json"], pair + ["--json", "b.json"],
                  ["--show", "a.json", "--html", "link.json"],
                  ["/dev/nvme0n1", "--json", "a.json", "--html", "a.json.~1~"]):
        machine.check_untouched(*words, says="would overwrite")
    text = machine.get("c.json")
    machine.run(*pair, "--json", "c.json").prints()
    assert machine.get("c.json.~1~") == text
    assert "comparisons" in machine.get("c.json")


def test_verbose(machine):
    """The second result does not take the place of the first."""
    words = ("--policies", "always,never", "--repeat", "2")
    text = machine.bench(*words)
    for name in "plug_policy", "scheduler":
        machine.put(QUEUE + name, FILES[QUEUE + name])
    more = machine.bench(*words, "--verbose")
    assert more.startswith("plugbench compares the plug")
    for word in ("What a number means", "  ok: ", "order in round 1",
                 "p99.9 us", "[1/4] "):
        assert word in more and word not in text
    assert "no difference" in more
    assert "[2/4] " in text and "Verdict:" in text
    assert len(text.splitlines()) < 25
    assert ["--verbose" in machine.get(f"plugbench-nvme0n1{name}.json")
            for name in ("", "-2")] == [False, True]


def test_html_and_markdown(machine, monkeypatch):
    """A page, with bars inside, and what it is of, but not the host; text
    for a mail, which with --show is all that is printed.  A terminal obeys
    nothing of the disk's."""
    known = os.uname_result(("Linux", "HOST-NAME", "6.1", "#1 SMP", "x"))
    monkeypatch.setattr("os.uname", lambda: known)
    machine.put("sys/class/nvme/nvme0/model", "Fake | SSD\x1b\x7f")
    assert "disk: nvme0n1, Fake | SSD\\x1b\\x7f, firmware" in machine.bench(
        "--html", "page.html", "--policies", "always,never", "--repeat", "5")
    text = machine.get("page.html")
    for word in ("plugbench compares", "<i class=", "6.1 #1 SMP", " UTC",
                 "Fake | SSD\\x1b\\x7f, firmware 1.0", "1.1 GB"):
        assert word in text
    done = machine.run("--show", "plugbench-nvme0n1.json", "--markdown")
    assert done.fails(0) == ""
    assert done.prints(
        "\n| workload | mode | IOPS | p50 |",
        "\n| rand4k-s32 | never | +0.0% (",
        "\n- Disk: Fake \\| SSD\\x1b\\x7f, firmware 1.0, 1.1 GB\n").startswith(
            "**No difference: IOPS within 2%")
    assert "HOST-NAME" not in text + done.out


@pytest.mark.parametrize("term, forbid, coloured", [
    ("xterm", "", True), ("xterm", "1", False), ("dumb", "", False)])
def test_terminal(machine, term, forbid, coloured):
    """There is a line that is written anew, and colour unless NO_COLOR
    forbids it."""
    ours, theirs = os.openpty()
    machine.environment.update(NO_COLOR=forbid, TERM=term)
    with machine.begin("/dev/nvme0n1", *SHORT, "--policies", "nomerges2",
                       "--keep-scheduler", terminal=theirs) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):
            while True:
                text += os.read(ours, 4096)
    os.close(ours)
    assert process.returncode == 0, text
    assert text.count(b"\r\033[K[1/1]") == 1, text
    assert (b"\033[33mwarn" in text) == coloured, text
