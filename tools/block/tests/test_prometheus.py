# SPDX-License-Identifier: GPL-2.0
"""What plugstat exports: its form, and its rules.

Those that run Debian's promtool find it in PATH, or where "fetch_debian.sh
prometheus" puts it.
"""
import json
import os
import re
import shutil
import subprocess

import pytest

from fakehost import BUSY, DEBUGFS, TOOLS

RULES = TOOLS / "packaging/prometheus/plug-policy.rules.yml"
PLACES = os.environ.get("PATH", "") + ":" + str(
    TOOLS / "../../build/cache/prometheus/root/usr/bin")


def promtool(*words, text=""):
    """What it prints; there is nothing that it does not like."""
    path = shutil.which("promtool", path=PLACES)
    if not path:
        pytest.skip("no promtool: sh scripts/fetch_debian.sh prometheus "
                    "unpacks Debian's")
    done = subprocess.run([path, *words], input=text, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def exported(host, stat):
    """What is printed at once, of a disk that is counted, and one that is
    not."""
    host.put(DEBUGFS + "block/nvme0n1/plug_stats_enabled", "1")
    host.policy("nvme0n1", "never", "elevator")
    host.policy("nullb0", "always")
    for hctx in range(2):
        host.counters("nvme0n1", BUSY, hctx)
    host.put("sys/block/nvme0n1/stat", "100 0 0 2500 50 3 0 500 0 0 0")

    def call(*words):
        done = stat("--prometheus", *words,
                    during=lambda: pytest.fail("it waits"))
        assert (done.code, done.err) == (0, "")
        return done.out
    return call


@pytest.fixture
def full(host, exported):
    """The same of all that there is to tell: a group on adaptive, too."""
    host.policy("nvme0n1", "adaptive")
    host.put(DEBUGFS + "block/nvme0n1/hctx1/plug_adaptive",
             "group 4\ntrial 0\nsample_requests 9")
    return exported()


def has(page, *lines):
    assert {f"plugstat_{line}" for line in lines} <= set(page.splitlines())


# --- the text format, and what it holds --------------------------------------
def test_counters_are_the_kernel_s(host, exported):
    """Each time; none of a disk that is not counted, which stays so."""
    for _ in range(2):
        page = exported()
        assert 'flush_requests_total{disk="nullb0"}' not in page
        assert host.switch("nullb0") == "0"
        has(page, 'flush_requests_total{disk="nvme0n1"} 6400',
            'flushes_total{disk="nvme0n1"} 200',
            'no_batch_total{disk="nvme0n1",reason="busy"} 3000',
            # seconds, though the kernel counts milliseconds
            'io_seconds_total{disk="nvme0n1",operation="read"} 2.5',
            'io_seconds_total{disk="nvme0n1",operation="write"} 0.5',
            'ios_total{disk="nvme0n1",operation="read"} 100',
            'merges_total{disk="nvme0n1",operation="write"} 3',
            'policy_info{disk="nvme0n1",mode="never"} 1',
            'policy_info{disk="nullb0",mode="always"} 1',
            'mode_in_force{disk="nvme0n1",mode="never",reason="elevator"} 0',
            'mode_in_force{disk="nullb0",mode="always",reason="as set"} 1',
            'counting{disk="nvme0n1"} 1', 'counting{disk="nullb0"} 0')


def test_disks_that_are_named(exported):
    assert "nvme0n1" not in exported("nullb0")
    lines = exported("nvme0n1", "nullb0", "nvme0n1").splitlines()
    assert len(lines) == len(set(lines))


def test_doorbells_and_groups(host, exported, full):
    has(full, 'doorbells_total{disk="nvme0n1"} 0',
        'adaptive_group{disk="nvme0n1",hctx="1"} 4')
    host.counters("nvme0n1", {**BUSY, "doorbells": 2}, 1)
    has(exported(), 'doorbells_total{disk="nvme0n1"} 2')


def test_each_metric_is_one_block_and_explained(full):
    block = r"# HELP (\S+) \S+ .+\n# TYPE \1 \w+\n(?:\1{.*\n)+"
    names = re.findall(block, full)
    assert len(names) > 10 and len(set(names)) == len(names)
    assert re.sub(block, "", full) == ""


def test_promtool(full):
    assert promtool("check", "metrics", text=full) == ""


# --- a file that a reader sees whole or not at all ---------------------------
@pytest.fixture
def textfile(exported, tmp_path_factory):
    return tmp_path_factory.mktemp("textfile") / "plugstat.prom"


def test_once(exported, stat, textfile):
    """Also through a link of ours, which stays."""
    textfile.write_text("old\n")
    link = textfile.parent / "link"
    link.symlink_to(textfile)
    assert stat("--textfile", link) == (0, "", "")
    assert textfile.read_text() == exported()
    assert sorted(textfile.parent.iterdir()) == [link, textfile]
    assert textfile.stat().st_mode & 0o777 == 0o644
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_not_through_a_link_of_another_user(stat, textfile):
    textfile.write_text("old\n")
    link = textfile.parent / "link"
    link.symlink_to(textfile)
    os.lchown(link, 65534, 65534)
    code, _, said = stat("--textfile", link)
    assert code == 1 and "a link of another user" in said
    assert textfile.read_text() == "old\n"


@pytest.mark.parametrize("option", ["--textfile", "--prometheus"])
def test_counting_is_asked_for(host, stat, textfile, option):
    """Nothing is counted by itself."""
    form = [option] + [textfile] * (option == "--textfile")
    stat(*form, "nullb0")
    assert host.switch("nullb0") == "0"
    done = stat(*form, "--counting", "on", "nullb0")
    assert host.switch("nullb0") == "1"
    page = done.out or textfile.read_text()
    has(page, 'flush_requests_total{disk="nullb0"} 0')
    assert page.count("# TYPE plugstat_flushes_total") == 1


@pytest.mark.parametrize("words", [[], ["--counting", "on"]])
def test_without_debugfs(host, stat, textfile, words):
    """There are the policies; in a file, nothing fills the log."""
    host.remove("sys/kernel")
    done = stat("--prometheus", *words)
    done.fails(0, "without counters: no ")
    assert stat("--textfile", textfile, *words) == (0, "", "")
    for page in done.out, textfile.read_text():
        has(page, 'policy_info{disk="nvme0n1",mode="never"} 1',
            'counting{disk="nvme0n1"} 0')


@pytest.mark.parametrize("make, below, told", [
    (os.mkdir, "", "plugstat.prom"), (os.mkdir, "/x/y", "No such file"),
    (os.mkfifo, "", "not a regular file")])
def test_a_failure_leaves_what_was_there(stat, textfile, make, below, told):
    make(textfile)
    before = textfile.stat()
    stat("--textfile", f"{textfile}{below}").fails(1, told)
    assert list(textfile.parent.iterdir()) == [textfile]
    assert textfile.stat().st_ino == before.st_ino


# --- what Prometheus makes of the rules --------------------------------------

# two hosts: one whose response time grows by half after the roll-out, and one
# where nothing changes but the mode, which is not in force
WORSE = {"instance": "worse", "disk": "nvme0n1", "mode": "never"}
SAME = {**WORSE, "instance": "same", "reason": "elevator"}
# as node_exporter names it since 1.3, and before
STALE = {"same": "/x/plugstat.prom", "worse": "plugstat.prom"}
ALERTS = (
    ("110m", "PlugPolicyP99Worse", []), ("110m", "PlugPolicyNotInForce", []),
    ("200m", "PlugPolicyP99Worse", [({
        "severity": "warning", **WORSE}, "nvme0n1 of worse: under never, the "
        "p99 of the response time (of five-minute means) is 3ms, more than a "
        'tenth above that under "always"')]),
    ("200m", "PlugPolicyNotInForce", [({
        "severity": "warning", **SAME}, "nvme0n1 of same is set to never, "
        "which is not in force: elevator")]),
    ("200m", "PlugstatStale", [(
        {"severity": "info", "instance": instance, "file": file},
        f"plugstat.prom of {instance} is not written any more: see "
        "plugstat-textfile.timer there") for instance, file in STALE.items()]))


def series(name, values, **labels):
    pairs = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return {"series": f"{name}{{{pairs}}}", "values": values}


def machine(instance, later):
    """Two hours under "always" at 2 ms each, then "never" with other times."""
    where = {"instance": instance, "disk": "nvme0n1"}
    return [series(f"plugstat_{name}", values, **where, **mode)
            for name, values, mode in (("ios_total", "0+60000x240", {}),
                ("io_seconds_total",
                 f"0+120x120 {14400 + later}+{later}x119", {}),
                ("policy_info", "1x118 stale", {"mode": "always"}),
                ("policy_info", "_x119 1x120", {"mode": "never"}))]


def test_alerts(tmp_path):
    inputs = machine("worse", 180) + machine("same", 120) + [
        series("plugstat_mode_in_force", "_x119 0x120", **SAME),
        *(series("node_textfile_mtime_seconds", "0x240", instance=instance,
                 file=file) for instance, file in {
                     **STALE, "other": "/x/other_plugstat.prom"}.items())]
    path = tmp_path / "test.yml"        # JSON is YAML
    path.write_text(json.dumps({
        "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [{
            "interval": "1m", "input_series": inputs, "alert_rule_test": [{
                "eval_time": when, "alertname": name, "exp_alerts": [
                    {"exp_labels": labels, "exp_annotations": {"summary": text}}
                    for labels, text in expected]}
                for when, name, expected in ALERTS]}]}))
    promtool("test", "rules", path)


def test_metrics_are_exported(full):
    rules = RULES.read_text("utf-8")
    known = set(re.findall(r"^(plugstat_\w+)", full, re.M)) | set(
        re.findall(r"record: (\S+)", rules))
    used = set(re.findall(r"plugstat[_:][\w:]+", rules))
    assert used and used <= known
