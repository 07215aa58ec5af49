#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of what plugstat exports: its form, its rules, and its dashboard.

Those that run Debian's prometheus find it in PATH, or where
scripts/checks/fetch_prometheus.sh puts it.
"""
import json
import os
import re
import shutil
import stat
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from faketree import TOOLS
from stattree import BUSY, DEBUGFS, PLUGSTAT, Tree

PACKAGING = os.path.join(TOOLS, "packaging")
RULES = os.path.join(PACKAGING, "prometheus/plug-policy.rules.yml")
DASHBOARD = os.path.join(PACKAGING, "grafana/plug-policy.json")
PLACES = os.environ.get("PATH", "") + ":" + os.path.join(
    TOOLS, "../../build/cache/prometheus/usr/bin")


def program(name):
    """Its path, or the test is skipped."""
    path = shutil.which(name, path=PLACES)
    if not path:
        raise unittest.SkipTest("no %s: scripts/checks/fetch_prometheus.sh "
                                "unpacks Debian's" % name)
    return path


def promtool(*words, text=""):
    """What it says, and whether it is content."""
    done = subprocess.run([program("promtool"), *words], input=text,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


class Exported(Tree):
    """A machine with a disk that is counted, and one that is not."""

    def setUp(self):
        super().setUp()
        self.put(DEBUGFS + "block/nvme0n1/plug_stats_enabled", "1\n")
        self.mode("nvme0n1", "never", "elevator")
        self.mode("nullb0", "always")
        self.counters("nvme0n1", BUSY, 0)
        self.counters("nvme0n1", BUSY, 1)
        self.put("sys/block/nvme0n1/stat", "100 0 0 2500 50 0 0 500 0 0 0\n")

    def page(self, *args):
        """What is printed at once."""
        code, out, err = self.run_tool(
            "--prometheus", *args, during=lambda: self.fail("it waits"))
        self.assertEqual((code, err), (0, ""))
        return out

    def has(self, page, *lines):
        """Whole lines, without the prefix."""
        found = page.splitlines()
        for line in lines:
            self.assertIn("plugstat_" + line, found)


class Form(Exported):
    """The text format, and what it holds."""

    def test_counters_are_the_kernel_s(self):
        for _ in range(2):
            self.has(self.page(), 'flush_requests_total{disk="nvme0n1"} 6400',
                     'flushes_total{disk="nvme0n1",reason="finish"} 160',
                     'no_batch_total{disk="nvme0n1",reason="busy"} 3000')

    def test_at_the_end_of_an_interval_too(self):
        code, out, _ = self.run_tool("--prometheus", "nvme0n1", "1", "2")
        self.assertEqual(code, 0)
        self.has(out, 'flush_requests_total{disk="nvme0n1"} 6400')
        self.assertEqual(out.count("# TYPE plugstat_flushes_total"), 1)

    def test_seconds(self):
        self.has(self.page(),
                 'io_seconds_total{disk="nvme0n1",operation="read"} 2.5',
                 'io_seconds_total{disk="nvme0n1",operation="write"} 0.5',
                 'ios_total{disk="nvme0n1",operation="read"} 100')

    def test_policy(self):
        self.has(self.page(),
                 'policy_info{disk="nvme0n1",mode="never"} 1',
                 'policy_info{disk="nullb0",mode="always"} 1',
                 'mode_in_force{disk="nvme0n1",mode="never",'
                 'reason="elevator"} 0',
                 'mode_in_force{disk="nullb0",mode="always",'
                 'reason="as set"} 1')

    def test_disk_that_is_not_counted(self):
        page = self.page()
        self.has(page, 'counting{disk="nvme0n1"} 1',
                 'counting{disk="nullb0"} 0')
        self.assertNotIn('flush_requests_total{disk="nullb0"}', page)
        self.assertEqual(self.enabled("nullb0"), "0")

    def test_of_one_disk(self):
        self.assertNotIn("nvme0n1", self.page("nullb0"))

    def test_legs_that_are_shared(self):
        page = self.page("nvme0n1", "nullb0", "nvme0n1")
        lines = page.splitlines()
        self.assertEqual(len(lines), len(set(lines)))

    def test_doorbells_are_the_controller_s(self):
        self.assertNotIn("doorbells", self.page())
        self.doorbells(2, 64)
        self.has(self.page(), 'doorbells_total{controller="nvme0"} 2',
                 'commands_total{controller="nvme0"} 64')

    def test_group_of_adaptive(self):
        self.mode("nvme0n1", "adaptive")
        self.put(DEBUGFS + "block/nvme0n1/hctx1/plug_adaptive",
                 "group 4\ntrial 0\nsample_requests 9\n")
        self.has(self.page(), 'adaptive_group{disk="nvme0n1",hctx="1"} 4')

    def test_without_debugfs_there_is_the_policy(self):
        shutil.rmtree(self.path("sys/kernel"))
        for args in ([], ["--counting", "on"]):
            code, out, err = self.run_tool("--prometheus", *args)
            self.assertEqual(code, 0)
            self.assertIn("without counters: no ", err)
            self.has(out, 'policy_info{disk="nvme0n1",mode="never"} 1')

    def test_each_metric_is_one_block_and_explained(self):
        name = None
        explained = set()
        for line in self.page().splitlines():
            if line.startswith("# HELP "):
                name = line.split()[2]
                self.assertNotIn(name, explained)
                explained.add(name)
                self.assertGreater(len(line.split()), 4)
            elif line.startswith("# TYPE "):
                self.assertEqual(line.split()[2], name)
            else:
                self.assertRegex(line, "^%s{" % name)

    def test_promtool(self):
        self.doorbells(2, 64)
        self.mode("nvme0n1", "adaptive")
        self.put(DEBUGFS + "block/nvme0n1/hctx1/plug_adaptive",
                 "group 4\ntrial 0\nsample_requests 9\n")
        self.assertEqual(promtool("check", "metrics", text=self.page()),
                         (0, ""))


class Textfile(Exported):
    """A file that a reader sees whole or not at all."""

    def setUp(self):
        super().setUp()
        self.place = tempfile.mkdtemp(prefix="plugstat.")
        self.addCleanup(shutil.rmtree, self.place)
        self.file = os.path.join(self.place, "plugstat.prom")

    def test_once(self):
        with open(self.file, "w", encoding="ascii") as old:
            old.write("old\n")
            code, out, err = self.run_tool("--textfile", self.file)
        self.assertEqual((code, out, err), (0, "", ""))
        with open(self.file, encoding="utf-8") as new:
            self.assertEqual(new.read(), self.page())
        self.assertEqual(os.listdir(self.place), ["plugstat.prom"])
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o644)

    def test_again_and_again(self):
        seen = []
        code, _, _ = self.run_tool(
            "--textfile", self.file, "1", "2", "nullb0",
            during=lambda: seen.append((os.path.exists(self.file),
                                        self.enabled("nullb0"))))
        self.assertEqual((code, seen), (0, [(False, "0"), (True, "0")]))

    def test_counting_is_asked_for(self):
        """Nothing is counted by itself, once or again and again."""
        for words in ([], ["1", "1"]):
            for option in ["--textfile", self.file], ["--prometheus"]:
                self.run_tool(*option, *words, "nullb0")
                self.assertEqual(self.enabled("nullb0"), "0")
                self.run_tool(*option, *words, "--counting", "on", "nullb0")
                self.assertEqual(self.enabled("nullb0"), "1")
                self.run_tool("--counting", "off", "nullb0")

    def test_without_debugfs_nothing_fills_the_log(self):
        shutil.rmtree(self.path("sys/kernel"))
        code, _, err = self.run_tool("--counting", "on", "--textfile",
                                     self.file)
        self.assertEqual((code, err), (0, ""))
        with open(self.file, encoding="utf-8") as new:
            self.assertIn('plugstat_counting{disk="nvme0n1"} 0\n', new.read())

    def test_a_failure_leaves_nothing(self):
        os.mkdir(self.file)
        code, _, err = self.run_tool("--textfile", self.file)
        self.assertEqual(code, 1)
        self.assertIn(self.file, err)
        self.assertEqual(os.listdir(self.place), ["plugstat.prom"])
        code, _, err = self.run_tool("--textfile", self.file + "/x/y")
        self.assertEqual(code, 1)
        self.assertIn("No such file", err)

    def test_what_is_no_file_stays(self):
        os.mkfifo(self.file)
        code, _, err = self.run_tool("--textfile", self.file)
        self.assertEqual((code, stat.S_ISFIFO(os.stat(self.file).st_mode)),
                         (1, True))
        self.assertIn("not a regular file", err)

    def test_through_a_link(self):
        link = os.path.join(self.place, "link")
        os.symlink(self.file, link)
        self.assertEqual(self.run_tool("--textfile", link)[0], 0)
        self.assertTrue(os.path.islink(link) and os.path.isfile(self.file))

    def test_with_counting(self):
        code, _, _ = self.run_tool("--counting", "on", "--textfile", self.file)
        self.assertEqual((code, self.enabled("nullb0")), (0, "1"))
        with open(self.file, encoding="utf-8") as new:
            self.assertIn('flush_requests_total{disk="nullb0"} 0\n',
                          new.read())


# two hosts: one whose response time grows by half after the roll-out, and one
# where nothing changes but the mode, which is not in force
UNIT_TEST = """
rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
%s
    alert_rule_test:
      - eval_time: 110m
        alertname: PlugPolicyP99Worse
      - eval_time: 110m
        alertname: PlugPolicyNotInForce
      - eval_time: 200m
        alertname: PlugPolicyP99Worse
        exp_alerts: [%s]
      - eval_time: 200m
        alertname: PlugPolicyNotInForce
        exp_alerts: [%s]
      - eval_time: 200m
        alertname: PlugstatStale
        exp_alerts: [%s]
"""
STALE = ("same", "/x/plugstat.prom"), ("worse", "plugstat.prom")
ALERT = '{exp_labels: {%s}, exp_annotations: {summary: "%s"}}'


class Rules(unittest.TestCase):
    """What Prometheus makes of them."""

    def series(self, name, values, **labels):
        """One of the test's inputs."""
        return "      - series: '%s{%s}'\n        values: '%s'\n" % (
            name, ",".join('%s="%s"' % item for item in labels.items()),
            values)

    def machine(self, instance, later):
        """Two hours under "always", then "never" with other times."""
        where = {"instance": instance, "disk": "nvme0n1"}
        text = self.series("plugstat_ios_total", "0+60000x240", **where)
        # 2 ms each, then more or less
        text += self.series("plugstat_io_seconds_total", "0+120x120 %d+%dx119"
                            % (14400 + later, later), **where)
        text += self.series("plugstat_policy_info", "1x118 stale",
                            mode="always", **where)
        return text + self.series("plugstat_policy_info", "_x119 1x120",
                                  mode="never", **where)

    def test_syntax(self):
        code, text = promtool("check", "rules", RULES)
        self.assertEqual(code, 0, text)
        self.assertIn("4 rules found", text)

    def test_alerts(self):
        inputs = self.machine("worse", 180) + self.machine("same", 120)
        inputs += self.series("plugstat_mode_in_force", "_x119 0x120",
                              instance="same", disk="nvme0n1", mode="never",
                              reason="elevator")
        # as node_exporter names it since 1.3, and before; and another file
        for instance, file in STALE + (("other", "/x/other_plugstat.prom"),):
            inputs += self.series("node_textfile_mtime_seconds", "0x240",
                                  instance=instance, file=file)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(UNIT_TEST % (
                RULES, inputs, ALERT % (
                    "severity: warning, instance: worse, disk: nvme0n1, "
                    "mode: never", "nvme0n1 of worse: under never, the p99 of "
                    "the response time (of five-minute means) is 3ms, more "
                    "than a tenth above that under \\\"always\\\""),
                ALERT % (
                    "severity: warning, instance: same, disk: nvme0n1, "
                    "mode: never, reason: elevator", "nvme0n1 of same is set "
                    "to never, which is not in force: elevator"),
                ", ".join(ALERT % (
                    "severity: info, instance: %s, file: %s" % stale,
                    "plugstat.prom of %s is not written any more: see "
                    "plugstat-textfile.timer there" % stale[0])
                    for stale in STALE)))
            file.flush()
            code, text = promtool("test", "rules", file.name)
        self.assertEqual(code, 0, text)


class Dashboard(Exported):
    """What Grafana's schema demands (kinds/dashboard/dashboard_kind.cue)."""

    def setUp(self):
        super().setUp()
        with open(DASHBOARD, encoding="utf-8") as file:
            self.board = json.load(file)

    def queries(self):
        """(where, query) of all panels and annotations."""
        for panel in self.board["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"]
        for note in self.board["annotations"]["list"]:
            yield note["name"], note["expr"]

    def test_board(self):
        self.assertTrue(8 <= len(self.board["uid"]) <= 40)
        self.assertTrue(0 < self.board["schemaVersion"] < 1 << 16)
        self.assertEqual(self.board["time"].keys(), {"from", "to"})
        for note in self.board["annotations"]["list"]:
            self.assertLessEqual({"name", "datasource", "enable", "iconColor"},
                                 note.keys())
        for variable in self.board["templating"]["list"]:
            self.assertIn(variable["type"], ("query", "datasource"))
            self.assertIn(variable["hide"], (0, 1, 2))

    def test_panels(self):
        used, numbers = set(), set()
        for panel in self.board["panels"]:
            self.assertLessEqual({"id", "type", "title", "datasource",
                                  "gridPos", "fieldConfig", "options",
                                  "targets"}, panel.keys(), panel["title"])
            self.assertEqual(panel["fieldConfig"].keys(),
                             {"defaults", "overrides"})
            numbers.add(panel["id"])
            place = panel["gridPos"]
            self.assertTrue(0 < place["w"] and
                            place["x"] + place["w"] <= 24, panel["title"])
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertTrue(cells and not cells & used, panel["title"])
            used |= cells
            for target in panel["targets"]:
                self.assertLessEqual({"refId", "datasource", "expr"},
                                     target.keys())
        self.assertEqual(len(numbers), len(self.board["panels"]))

    def test_variables_are_defined(self):
        names = {one["name"] for one in self.board["templating"]["list"]}
        text = json.dumps(self.board)
        used = set(re.findall(r"\$\{?(\w+)", text)) - {
            "__rate_interval", "__all"}
        self.assertEqual(used, names)

    def test_metrics_are_exported(self):
        self.doorbells(2, 64)
        self.mode("nvme0n1", "adaptive")
        self.put(DEBUGFS + "block/nvme0n1/hctx1/plug_adaptive",
                 "group 4\ntrial 0\nsample_requests 9\n")
        known = set(re.findall(r"^(plugstat_\w+)", self.page(), re.M))
        with open(RULES, encoding="utf-8") as file:
            rules = file.read()
        recorded = set(re.findall(r"record: (\S+)", rules))
        for where, query in [("rules", rules)] + list(self.queries()):
            used = set(re.findall(r"plugstat[_:][\w:]+", query))
            self.assertTrue(used, where)
            self.assertLessEqual(used, known | recorded, where)

    def test_queries_parse(self):
        rules = [{"record": "a:b", "labels": {"n": str(number)}, "expr":
                  query.replace("$__rate_interval", "1m")}
                 for number, (_, query) in enumerate(self.queries())]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            # JSON is YAML
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]},
                      file)
            file.flush()
            code, text = promtool("check", "rules", file.name)
        self.assertEqual(code, 0, text)


def free_port():
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


SCRAPE = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: node
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""


class Live(Exported):
    """From plugstat through node_exporter to Prometheus."""

    def start(self, *command):
        """A server that ends with the test."""
        log = tempfile.TemporaryFile("w+")
        self.addCleanup(log.close)
        child = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def ask(self, port, query):
        """{disk: value}, or {} if there is no answer yet."""
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (
            port, urllib.parse.quote(query))
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
        except (urllib.error.URLError, ConnectionError):
            return {}
        return {one["metric"]["disk"]: float(one["value"][1])
                for one in found}

    def wait_for(self, port, query, value):
        """Until a query has an answer for the disk."""
        end = time.monotonic() + 40
        found = {}
        while time.monotonic() < end:
            found = self.ask(port, query)
            if found.get("nvme0n1") == value:
                return
            time.sleep(0.2)
        self.fail("%s is %s, not %s" % (query, found, value))

    def test_all_the_way(self):
        exporter = program("prometheus-node-exporter")
        prometheus = program("prometheus")
        place = self.path("run/prometheus")
        os.makedirs(place + "/data")
        collector, server = free_port(), free_port()
        self.start(exporter, "--collector.disable-defaults",
                   "--collector.textfile",
                   "--collector.textfile.directory=" + place,
                   "--web.listen-address=127.0.0.1:%d" % collector)
        self.put("run/prometheus/config.yml", SCRAPE % (RULES, collector))
        self.start(prometheus, "--config.file=%s/config.yml" % place,
                   "--storage.tsdb.path=%s/data" % place,
                   "--web.listen-address=127.0.0.1:%d" % server)
        subprocess.run([sys.executable, "-B", PLUGSTAT, "--textfile",
                        place + "/plugstat.prom"], check=True)
        self.wait_for(server, "plugstat_flush_requests_total", 6400)
        self.counters("nvme0n1", {**BUSY, "flush_requests": 13200})
        subprocess.run([sys.executable, "-B", PLUGSTAT, "--textfile",
                        place + "/plugstat.prom"], check=True)
        self.wait_for(server, "plugstat_flush_requests_total", 16400)
        # a counter of which only intervals were told would not have grown
        self.assertGreater(self.ask(
            server, "rate(plugstat_flush_requests_total[1m])")["nvme0n1"], 0)
        self.wait_for(server, 'plugstat_mode_in_force{reason="elevator"}', 0)


if __name__ == "__main__":
    unittest.main()
