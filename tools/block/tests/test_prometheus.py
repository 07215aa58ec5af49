# SPDX-License-Identifier: GPL-2.0
"""What plugstat exports: its form, its rules, and its dashboard.

Those that run Debian's prometheus find it in PATH, or where
scripts/checks/fetch_prometheus.sh puts it.
"""
import itertools
import json
import os
import re
import runpy
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from fakehost import BUSY, DEBUGFS, TOOLS, wait_until

RULES = TOOLS / "packaging/prometheus/plug-policy.rules.yml"
BOARD = runpy.run_path(str(TOOLS / "packaging/dashboard.py"))["BOARD"]
PLACES = os.environ.get("PATH", "") + ":" + str(
    TOOLS / "../../build/cache/prometheus/usr/bin")


def program(name):
    """Its path, or the test is skipped."""
    path = shutil.which(name, path=PLACES)
    if not path:
        pytest.skip(f"no {name}: scripts/checks/fetch_prometheus.sh unpacks "
                    "Debian's")
    return path


def promtool(*words, text=""):
    """What it prints; there is nothing that it does not like."""
    done = subprocess.run([program("promtool"), *words], input=text,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
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
    host.put("sys/block/nvme0n1/stat", "100 0 0 2500 50 0 0 500 0 0 0")

    def call(*words):
        done = stat("--prometheus", *words,
                    during=lambda: pytest.fail("it waits"))
        assert (done.code, done.err) == (0, "")
        return done.out
    return call


@pytest.fixture
def full(host, exported):
    """The same of all that there is to tell: a group on adaptive, and
    doorbells."""
    host.doorbells(2, 64)
    host.policy("nvme0n1", "adaptive")
    host.put(DEBUGFS + "block/nvme0n1/hctx1/plug_adaptive",
             "group 4\ntrial 0\nsample_requests 9")
    return exported()


def has(page, *lines):
    assert {f"plugstat_{line}" for line in lines} <= set(page.splitlines())


# --- the text format, and what it holds --------------------------------------

def test_counters_are_the_kernel_s(exported):
    for _ in range(2):
        has(exported(), 'flush_requests_total{disk="nvme0n1"} 6400',
            'flushes_total{disk="nvme0n1",reason="finish"} 160',
            'no_batch_total{disk="nvme0n1",reason="busy"} 3000',
            # seconds, though the kernel counts milliseconds
            'io_seconds_total{disk="nvme0n1",operation="read"} 2.5',
            'io_seconds_total{disk="nvme0n1",operation="write"} 0.5',
            'ios_total{disk="nvme0n1",operation="read"} 100',
            'policy_info{disk="nvme0n1",mode="never"} 1',
            'policy_info{disk="nullb0",mode="always"} 1',
            'mode_in_force{disk="nvme0n1",mode="never",reason="elevator"} 0',
            'mode_in_force{disk="nullb0",mode="always",reason="as set"} 1',
            'counting{disk="nvme0n1"} 1', 'counting{disk="nullb0"} 0')


def test_at_the_end_of_an_interval_too(exported, stat):
    out = stat("--prometheus", "nvme0n1", "1", "2").prints()
    has(out, 'flush_requests_total{disk="nvme0n1"} 6400')
    assert out.count("# TYPE plugstat_flushes_total") == 1


def test_disk_that_is_not_counted(host, exported):
    page = exported()
    assert 'flush_requests_total{disk="nullb0"}' not in page
    assert "doorbells" not in page
    assert host.switch("nullb0") == "0"


def test_disks_that_are_named(exported):
    assert "nvme0n1" not in exported("nullb0")
    lines = exported("nvme0n1", "nullb0", "nvme0n1").splitlines()
    assert len(lines) == len(set(lines))


def test_doorbells_and_groups(exported, full):
    has(full, 'doorbells_total{controller="nvme0"} 2',
        'commands_total{controller="nvme0"} 64',
        'adaptive_group{disk="nvme0n1",hctx="1"} 4')
    assert "doorbells" in exported()


@pytest.mark.parametrize("words", [[], ["--counting", "on"]])
def test_without_debugfs_there_is_the_policy(host, exported, stat, words):
    host.remove("sys/kernel")
    done = stat("--prometheus", *words)
    done.fails(0, "without counters: no ")
    has(done.out, 'policy_info{disk="nvme0n1",mode="never"} 1')


def test_each_metric_is_one_block_and_explained(full):
    name = None
    explained = set()
    for line in full.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in explained
            explained.add(name)
            assert len(line.split()) > 4
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name
        else:
            assert line.startswith(name + "{")


def test_promtool(full):
    assert promtool("check", "metrics", text=full) == ""


# --- a file that a reader sees whole or not at all ---------------------------

@pytest.fixture
def textfile(exported, tmp_path_factory):
    return tmp_path_factory.mktemp("textfile") / "plugstat.prom"


def test_once(exported, stat, textfile):
    """Also through a link, which stays."""
    textfile.write_text("old\n")
    link = textfile.parent / "link"
    link.symlink_to(textfile)
    assert stat("--textfile", link) == (0, "", "")
    assert textfile.read_text() == exported()
    assert sorted(textfile.parent.iterdir()) == [link, textfile]
    assert textfile.stat().st_mode & 0o777 == 0o644
    assert link.is_symlink()


def test_again_and_again(host, stat, textfile):
    seen = []
    done = stat("--textfile", textfile, "1", "2", "nullb0",
                during=lambda: seen.append((textfile.exists(),
                                            host.switch("nullb0"))))
    assert (done.code, seen) == (0, [(False, "0"), (True, "0")])


@pytest.mark.parametrize("words", [[], ["1", "1"]])
@pytest.mark.parametrize("option", ["--textfile", "--prometheus"])
def test_counting_is_asked_for(host, stat, textfile, words, option):
    """Nothing is counted by itself, once or again and again."""
    form = [option] + [textfile] * (option == "--textfile")
    stat(*form, *words, "nullb0")
    assert host.switch("nullb0") == "0"
    done = stat(*form, *words, "--counting", "on", "nullb0")
    assert host.switch("nullb0") == "1"
    has(done.out or textfile.read_text(),
        'flush_requests_total{disk="nullb0"} 0')


def test_without_debugfs_nothing_fills_the_log(host, stat, textfile):
    host.remove("sys/kernel")
    done = stat("--counting", "on", "--textfile", textfile)
    assert (done.code, done.err) == (0, "")
    has(textfile.read_text(), 'counting{disk="nvme0n1"} 0')


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
ALERTS = (
    ("110m", "PlugPolicyP99Worse", []), ("110m", "PlugPolicyNotInForce", []),
    ("200m", "PlugPolicyP99Worse", [({
        "severity": "warning", "instance": "worse", "disk": "nvme0n1",
        "mode": "never"}, "nvme0n1 of worse: under never, the p99 of the "
        "response time (of five-minute means) is 3ms, more than a tenth above "
        'that under "always"')]),
    ("200m", "PlugPolicyNotInForce", [({
        "severity": "warning", "instance": "same", "disk": "nvme0n1",
        "mode": "never", "reason": "elevator"}, "nvme0n1 of same is set to "
        "never, which is not in force: elevator")]),
    # as node_exporter names it since 1.3, and before
    ("200m", "PlugstatStale", [(
        {"severity": "info", "instance": instance, "file": file},
        f"plugstat.prom of {instance} is not written any more: see "
        "plugstat-textfile.timer there") for instance, file in (
            ("same", "/x/plugstat.prom"), ("worse", "plugstat.prom"))]),
)


def series(name, values, **labels):
    pairs = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return {"series": f"{name}{{{pairs}}}", "values": values}


def machine(instance, later):
    """Two hours under "always" at 2 ms each, then "never" with other times."""
    where = {"instance": instance, "disk": "nvme0n1"}
    return [series("plugstat_ios_total", "0+60000x240", **where),
            series("plugstat_io_seconds_total",
                   f"0+120x120 {14400 + later}+{later}x119", **where),
            series("plugstat_policy_info", "1x118 stale", mode="always",
                   **where),
            series("plugstat_policy_info", "_x119 1x120", mode="never",
                   **where)]


def test_syntax_of_rules():
    assert "4 rules found" in promtool("check", "rules", RULES)


def test_alerts(tmp_path):
    inputs = machine("worse", 180) + machine("same", 120) + [
        series("plugstat_mode_in_force", "_x119 0x120", instance="same",
               disk="nvme0n1", mode="never", reason="elevator"),
        *(series("node_textfile_mtime_seconds", "0x240", instance=instance,
                 file=file) for instance, file in (
                     ("same", "/x/plugstat.prom"), ("worse", "plugstat.prom"),
                     ("other", "/x/other_plugstat.prom")))]
    path = tmp_path / "test.yml"        # JSON is YAML
    path.write_text(json.dumps({
        "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [{
            "interval": "1m", "input_series": inputs, "alert_rule_test": [{
                "eval_time": when, "alertname": name, "exp_alerts": [
                    {"exp_labels": labels, "exp_annotations": {"summary": text}}
                    for labels, text in expected]}
                for when, name, expected in ALERTS]}]}))
    promtool("test", "rules", path)


# --- what Grafana's schema demands (kinds/dashboard/dashboard_kind.cue) ------

QUERIES = [(panel["title"], target["expr"]) for panel in BOARD["panels"]
           for target in panel["targets"]] + [
               (note["name"], note["expr"])
               for note in BOARD["annotations"]["list"]]


def test_board():
    assert 8 <= len(BOARD["uid"]) <= 40
    assert 0 < BOARD["schemaVersion"] < 1 << 16
    assert BOARD["time"].keys() == {"from", "to"}
    for note in BOARD["annotations"]["list"]:
        assert {"name", "datasource", "enable", "iconColor"} <= note.keys()
    for variable in BOARD["templating"]["list"]:
        assert variable["type"] in ("query", "datasource")
        assert variable["hide"] in (0, 1, 2)


def test_panels():
    used, panels = set(), BOARD["panels"]
    for panel in panels:
        assert {"id", "type", "title", "datasource", "gridPos", "fieldConfig",
                "options", "targets"} <= panel.keys()
        assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
        place = panel["gridPos"]
        assert 0 < place["w"] <= 24 - place["x"]
        cells = set(itertools.product(
            range(place["x"], place["x"] + place["w"]),
            range(place["y"], place["y"] + place["h"])))
        assert cells and not cells & used
        used |= cells
        for target in panel["targets"]:
            assert {"refId", "datasource", "expr"} <= target.keys()
    assert len({panel["id"] for panel in panels}) == len(panels) == 10


def test_variables_are_defined():
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD))) - {
        "__rate_interval", "__all"} == {
            one["name"] for one in BOARD["templating"]["list"]}


def test_metrics_are_exported(full):
    rules = RULES.read_text("utf-8")
    known = set(re.findall(r"^(plugstat_\w+)", full, re.M)) | set(
        re.findall(r"record: (\S+)", rules))
    for where, query in [("rules", rules), *QUERIES]:
        used = set(re.findall(r"plugstat[_:][\w:]+", query))
        assert used, where
        assert used <= known, where


def test_queries_parse(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
        {"record": "a:b", "labels": {"n": str(number)},
         "expr": query.replace("$__rate_interval", "1m")}
        for number, (_, query) in enumerate(QUERIES)]}]}))
    promtool("check", "rules", path)


# --- from plugstat through node_exporter to Prometheus -----------------------

@pytest.fixture
def server(tmp_path_factory):
    """Starts one that ends with the test; port for "{}" in its words."""
    started = []

    def start(*command):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = tmp_path_factory.mktemp("log") / "log"
        with open(log, "wb") as out:
            started.append(subprocess.Popen(
                [word.format(port) for word in command], stdout=out,
                stderr=out))
        return port
    yield start
    for child in started:
        child.kill()
        child.wait()


def ask(port, query):
    """The value of the disk, or None as long as there is no answer."""
    url = "http://127.0.0.1:{}/api/v1/query?query={}".format(
        port, urllib.parse.quote(query))
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except (urllib.error.URLError, ConnectionError):
        return None
    return {one["metric"]["disk"]: float(one["value"][1])
            for one in found}.get("nvme0n1")


def test_all_the_way(host, stat, textfile, server):
    place, requests = textfile.parent, "plugstat_flush_requests_total"
    collector = server(
        program("prometheus-node-exporter"), "--collector.disable-defaults",
        "--collector.textfile", f"--collector.textfile.directory={place}",
        "--web.listen-address=127.0.0.1:{}")
    (place / "config.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)], "scrape_configs": [{
            "job_name": "node", "static_configs": [
                {"targets": [f"127.0.0.1:{collector}"]}]}]}))
    port = server(program("prometheus"), f"--config.file={place}/config.yml",
                  f"--storage.tsdb.path={place}/data",
                  "--web.listen-address=127.0.0.1:{}")
    stat("--textfile", textfile)
    wait_until(lambda: ask(port, requests) == 6400, "6400 requests")
    host.counters("nvme0n1", {**BUSY, "flush_requests": 13200})
    stat("--textfile", textfile)
    wait_until(lambda: ask(port, requests) == 16400, "16400 requests")
    # a counter of which only intervals were told would not have grown
    assert ask(port, f"rate({requests}[1m])") > 0
    wait_until(lambda: ask(port, 'plugstat_mode_in_force{reason="elevator"}')
               == 0, "the mode that is not in force")
