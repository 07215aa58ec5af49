#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench: what it refuses, in which order it runs, and what it
writes.
"""
import contextlib
import errno
import json
import os
import unittest
from unittest import mock

import faketree
from benchtree import FAKE_FIO, FILES, FIO_JSON, QUEUE, SHORT, Case
from plugtools.report.records import load


class BadInput(Case):
    """Refused with what is accepted, exit code 2, nothing changed."""

    def test_options(self):
        """Values that cannot be."""
        for words, says in (
                (["--policies", "sometimes"],
                 "never, seq-small, adaptive, nomerges2"),
                (["--policies", ""], "'' is none of"),
                (["--workloads", "always"], "none of: rand4k-s32"),
                (["--workloads", "rand4k-s32,"], "'' is none of"),
                (["--workloads", "rand4k"], "none of: rand4k-s32"),
                (["--workloads", "mix70-s32"], "needs --write"),
                (["--runtime", "0"], "a whole number from 1"),
                (["--repeat", "-1"], "--repeat"),
                (["--cpu", "99999"], "CPUs that this process may use"),
                (["--cpu", "x"], "the number of a CPU"),
                (["--yes"], "--yes needs --write"),
                (["--null"], "either /dev/DISK or --null"),
                (["--restore"], "either /dev/DISK or --null"),
                (["--budget", "0"], "with s, m or h, as 5m"),
                (["--budget", "5 m"], "with s, m or h, as 5m"),
                (["--iops", "x"], "a whole number from 1"),
                (["--fail-below", "0.9"], "needs --compare"),
                (["--compare", "x.json", "--fail-below", "2"],
                 "a ratio above 0 and up to 1"),
                (["--compare", "none.json"], "none.json"),
                (["--jobfile", "x", "--workloads", "rand4k-s32"],
                 "either --jobfile or --workloads"),
                (["--jobfile", "x", "--workloads", ""],
                 "either --jobfile or --workloads"),
                *((["--" + name, ""], "--%s: ''; accepted: the name of a "
                   "file" % name) for name in ("jobfile", "compare", "json",
                                               "html", "plots", "show")),
                (["--frobnicate"], "unrecognized")):
            with self.subTest(words):
                self.check_untouched("/dev/nvme0n1", *words, code=2,
                                     says=says)

    def test_what_would_be_ignored(self):
        """Where nothing is measured."""
        for words, option, known in (
                *((["--compare", "a.json", "b.json", *more], more[0],
                   "--compare, --json, --fail-below\n") for more in (
                       ["--html", "x"], ["--plots", "x"], ["--markdown"],
                       ["--keep-scheduler"])),
                (["--show", "a.json", "--json", "x"], "--json",
                 "--show, --verbose, --markdown, --plots, --html\n"),
                (["--restore", "--dry-run"], "--dry-run", "--restore\n")):
            with self.subTest(words):
                self.check_untouched(*words, code=2, says="%s does nothing "
                                     "here; accepted: only %s" % (option,
                                                                  known))

    def test_no_device(self):
        """Neither a missing node, nor something else."""
        for device in ("nvme7n1", "/dev/nvme7n1", "/dev/other", "/dev"):
            with self.subTest(device):
                self.check_untouched(device, code=2,
                                     says="accepted: a whole disk")

    def test_partition(self):
        """The message names the disk."""
        self.check_untouched("/dev/nvme0n1p1", code=2,
                             says="accepted: /dev/nvme0n1\n")


class Environment(Case):
    """What the machine lacks: exit code 1, nothing changed."""

    def test_no_knob(self):
        """An unpatched kernel."""
        os.unlink(self.machine.path(QUEUE + "plug_policy"))
        self.check_untouched("/dev/nvme0n1", code=1,
                             says="needs the series and "
                             "CONFIG_BLK_PLUG_POLICY=y")

    def test_no_fio(self):
        """It says how to get it."""
        os.unlink(os.path.join(self.machine.bin, "fio"))
        self.check_untouched("/dev/nvme0n1", code=1, says="apt install fio")

    def test_result_cannot_be_written(self):
        """That is found out before, not after, measuring."""
        self.check_untouched("/dev/nvme0n1", "--json", "/nowhere/x", code=1,
                             says="cannot write /nowhere/x")
        self.check_untouched("/dev/nvme0n1", "--json", "/dev/null", code=1,
                             says="cannot write /dev/null")
        for path in "dev/other", "dev/other/charts":
            self.check_untouched("/dev/nvme0n1", "--plots", path, code=1,
                                 says="cannot write into " + path)
        self.bench("--plots", "dev/new/charts", "--dry-run")
        self.assertFalse(os.path.exists(self.machine.path("dev/new")))

    def test_dry_run(self):
        """Plan and checks, and nothing else."""
        before = self.machine.snapshot()
        text = self.bench("--dry-run")
        self.assertIn("scheduler mq-deadline makes every policy", text)
        self.assertIn("1 s each after 1 s to warm up:\n  5 runs, some",
                      text)
        self.assertEqual(self.machine.snapshot(), before)

    def test_vanished(self):
        """The disk goes while fio runs."""
        self.machine.put("fio.vanish", "")
        text = self.bench(code=1)
        self.assertIn("nvme0n1 has vanished", text)
        self.assertNotIn("Traceback", text)
        self.assertNotIn("is not restored", text)


class Scheduler(Case):
    """An elevator makes every policy do as "always"."""

    def test_none_during_the_run(self):
        """By default it is taken out, and put back."""
        self.bench()
        self.assertEqual({one["scheduler"] for one in self.machine.log()},
                         {"none"})
        self.check_restored()

    def test_kept(self):
        """On request, with a warning."""
        text = self.bench("--keep-scheduler")
        self.assertIn("warn:  scheduler mq-deadline is kept", text)
        self.assertIn("[mq-deadline]", self.machine.get("fio.log"))

    def test_none_not_offered(self):
        """Refused, unless it may stay."""
        self.machine.put(QUEUE + "scheduler", "[bfq]")
        self.check_untouched("/dev/nvme0n1", code=1, says="--keep-scheduler")
        self.bench("--keep-scheduler")

    def test_effect(self):
        """The kernel says that a policy is not in force: so do we, once."""
        self.machine.put(QUEUE + "plug_policy_fallback", "no-queue_rqs")
        text = self.bench("--policies", "never")
        self.assertEqual(text.count("does as \"always\" here: no-queue_rqs"),
                         1)


class Nomerges(Case):
    """A host that never merges is measured so, and with merges."""

    WORDS = ["--policies", "always,adaptive,nomerges2", "--repeat", "5"]

    def test_both(self):
        """The verdict names for which it holds."""
        self.machine.put(QUEUE + "nomerges", "2")
        better = json.dumps(FIO_JSON).replace("1000.5", "1100.5")
        self.machine.put("better.json", better)
        self.machine.program("fio", FAKE_FIO.replace(
            "cat fio.json", "case $line in *adaptive*nomerges=0*) "
            "exec cat better.json;; esac; cat fio.json"))
        text = self.bench(*self.WORDS)
        self.assertIn("nomerges is 2: measured so and with 0", text)
        self.assertEqual(
            [(one["policy"], one["nomerges"]) for one in
             self.machine.timed()[:5]],
            [("always", "2"), ("adaptive", "2"), ("always", "0"),
             ("adaptive", "0"), ("always", "2")])
        verdict = text[text.rindex("Verdict:"):]
        self.assertRegex(verdict, "nomerges=0: .*use adaptive")
        self.assertRegex(verdict, "nomerges=2: .*no difference")
        self.assertEqual(self.machine.get(QUEUE + "nomerges"), "2")

    def test_one(self):
        """Of which there is a verdict: it is named nevertheless."""
        self.machine.put(QUEUE + "nomerges", "2")
        for words in ((), ("--markdown",)):
            self.machine.put(QUEUE + "plug_policy", "[always] never")
            self.machine.put(QUEUE + "scheduler", "[none]")
            text = self.bench("--policies", "always,nomerges2", "-v", *words)
            verdict = text[text.rindex("**" if words else "Verdict:"):]
            self.assertRegex(verdict, "nomerges=0")
            self.assertNotRegex(verdict, "nomerges=2")
        self.assertRegex(text, r"always, nomerges=2 .*\n.*always, nomerges=0 "
                         r".*\n.*nomerges2  ")

    def test_conditions(self):
        """What else was set for the runs is said beside the verdict."""
        text = self.bench("--policies", "always,never", "--repeat", "2")
        self.assertIn("This holds with scheduler none, and this host has "
                      "mq-deadline", text)
        self.assertIn("This holds with nomerges=0, and this host has 1", text)
        for name, text in (("scheduler", "[none] kyber"), ("nomerges", "0"),
                           ("plug_policy", FILES[QUEUE + "plug_policy"])):
            self.machine.put(QUEUE + name, text)
        self.assertNotIn("This holds", self.bench("--policies", "always"))


class Order(Case):
    """The policies take turns."""

    def test_rotation(self):
        """Each round begins with another policy."""
        self.bench("--repeat", "3", "--policies", "always,never,seq-small")
        self.assertEqual([one["policy"] for one in self.machine.timed()],
                         ["always", "never", "seq-small",
                          "never", "seq-small", "always",
                          "seq-small", "always", "never"])

    def test_seeds(self):
        """The same in a round, another in the next."""
        self.bench("--policies", "always,never", "--repeat", "2")
        self.assertEqual([one["--randseed"] for one in self.machine.timed()],
                         ["1", "1", "2", "2"])


class Result(Case):
    """What is written and printed."""

    def test_json(self):
        """Every policy and workload, as a report reads them."""
        self.bench("--workloads", "rand4k-s32,rand4k-qd1", "--repeat", "2")
        records, meta = load(
            self.machine.path("plugbench-nvme0n1.json"))
        self.assertEqual(
            {(one["workload"], one["policy"], one["run"])
             for one in records},
            {(name, policy, run) for name in ("rand4k-s32", "rand4k-qd1")
             for policy in ("always", "never", "seq-small", "adaptive",
                            "nomerges2")
             for run in (0, 1)})
        self.assertEqual(len(records), 20)
        self.assertEqual(meta["disk"], "nvme0n1")

    def test_compare(self):
        """With an earlier result, after measuring or of two files."""
        words = ["--repeat", "5", "--policies", "nomerges2",
                 "--keep-scheduler"]
        self.bench(*words, "--json", "old.json")
        told = json.loads(self.machine.get("fio.json"))
        told["jobs"][0]["mixed"]["iops"] *= 0.9
        self.machine.put("fio.json", json.dumps(told))
        words += ["--compare", "old.json", "--fail-below", "0.97"]
        self.assertIn("regression", self.bench(*words, code=3))
        files = ["plugbench-nvme0n1.json", "--compare", "old.json"]
        for more, code in (([], 0), (["--fail-below", "0.8"], 0),
                           (["--fail-below", "0.97"], 3)):
            self.assertEqual(self.machine.run(*files, *more)[0], code, more)
        for more in (["--compare", "old.json"], ["--html", "./old.json"]):
            self.check_untouched("/dev/nvme0n1", "--keep-scheduler", *more,
                                 "--json", "old.json", code=2,
                                 says="would overwrite")

    def test_results_are_not_overwritten(self):
        """What is read is not written; of --json, an earlier file is kept."""
        self.bench("--policies", "nomerges2", "--json", "a.json")
        for name in "b.json", "c.json":
            self.machine.put(name, self.machine.get("a.json"))
        os.symlink("a.json", self.machine.path("link.json"))
        pair = ["--compare", "a.json", "b.json"]
        for words in (pair + ["--json", "./a.json"],
                      pair + ["--json", "b.json"],
                      ["--show", "a.json", "--html", "link.json"],
                      ["/dev/nvme0n1", "--json", "a.json", "--html",
                       "a.json.~1~"]):
            self.check_untouched(*words, code=2, says="would overwrite")
        text = self.machine.get("c.json")
        self.assertEqual(self.machine.run(*pair, "--json", "c.json")[0], 0)
        self.assertEqual(self.machine.get("c.json.~1~"), text)
        self.assertIn("comparisons", self.machine.get("c.json"))

    def test_charts_overwrite_nothing(self):
        """Their names are known only after the runs."""
        self.machine.put("d/a.svg", "{}")
        for words in (["/dev/nvme0n1", "--json", "d/a.svg"],
                      ["/dev/nvme0n1", "--html", "./d/a.svg"],
                      ["--show", "d/a.svg"]):
            self.check_untouched(*words, "--plots", "d/", code=2,
                                 says="--plots may overwrite ")
        self.bench("--json", "d/a.json", "--html", "b.svg", "--plots", "d",
                   "--dry-run")

    def test_earlier_results_stay(self):
        """A second run takes another name, or, of --json, moves the first."""
        for words, second, first in (
                ([], "plugbench-nvme0n1-2.json", "plugbench-nvme0n1.json"),
                (["--json", "x.json"], "x.json", "x.json.~1~")):
            for commit in "one", "two":
                self.bench("--policies", "nomerges2", "--keep-scheduler",
                           "--commit", commit, *words)
            self.assertIn('"commit": "one"', self.machine.get(first))
            self.assertIn('"commit": "two"', self.machine.get(second))

    def test_no_permission(self):
        """Says who may, and of which file."""
        for user, words in (9, ["/dev/nvme0n1", *SHORT]), (0, ["--null"]):
            with mock.patch("plugtools.core.journal.fcntl.flock"), \
                    mock.patch("os.geteuid", lambda user=user: user), \
                    mock.patch("os.open", side_effect=PermissionError(
                        13, "Permission denied", "/run/x")):
                got, _, errors = self.machine.run(*words)
            self.assertEqual(got, 1, errors)
            self.assertEqual(errors, "plugbench: /run/x: Permission denied%s"
                             "\n" % (": run as root" if user else ""))

    def test_what_cannot_be_opened(self):
        """A sysfs that is read-only does not ask for root."""
        real = os.open
        for user, name, error, says in (
                (0, "plug_policy", errno.EROFS, "Read-only file system; no"),
                (0, "plug_policy", errno.EACCES, "Permission denied; no"),
                (9, "dev/nvme0n1", errno.EACCES, "denied: run as root; no")):
            def opened(path, *more, name=name, error=error):
                if str(path).endswith(name):
                    raise OSError(error, os.strerror(error), path)
                return real(path, *more)
            with mock.patch("os.open", opened), \
                    mock.patch("os.geteuid", lambda user=user: user):
                self.check_untouched("/dev/nvme0n1", "--dry-run", code=1,
                                     says=says)

    def test_full_disk(self):
        """Output that is lost is told, and is no success; that nobody reads
        it is."""
        self.assertEqual(faketree.lost(
            self.machine.tool, "/dev/nvme0n1", "--dry-run",
            env=dict(os.environ, PLUGTOOLS_ROOT=self.machine.root,
                     PATH=self.machine.bin)), [
            (1, "plugbench: output is lost: No space left on device\n"),
            (0, "")])

    def test_record(self):
        """The figures of fio and of the disk."""
        self.bench("--commit", "abc")
        one = self.machine.records()[0]
        for name, value in {
                "iops": 1000.5, "kernel": "patched", "suite": "plugbench",
                "profile": "Fake SSD", "model": "Fake  SSD",
                "firmware": "1.0", "commit": "abc", "requests_per_io": 0.5,
                "cpu_busy": 0.5, "ctx_switches_per_io": 0.5,
                "insns_per_io": None, "doorbells_per_io": None,
                "lat_us": {"mean": 5.0, "p50": 4.0, "p99": 9.0,
                           "p999": 11.0}}.items():
            self.assertEqual(one[name], value, name)

    def test_options_of_fio(self):
        """Batches, CPU, polling where the disk and the workload have it."""
        self.bench("--workloads", "rand4k-s32,rand4k-qd4,libaio-rand4k-s32")
        by_name = {one["--name"]: one for one in self.machine.log()}
        one = by_name["rand4k-s32"]
        for name, value in {
                "--iodepth": "128", "--iodepth_batch_submit": "32",
                "--iodepth_batch_complete_min": "32", "--direct": "1",
                "--iodepth_batch_complete_max": "32", "--bs": "4k",
                "--cpus_allowed": SHORT[-1], "--hipri": "",
                "--registerfiles": "", "--fixedbufs": "",
                "--filename": self.machine.path("dev/nvme0n1")}.items():
            self.assertEqual(one.get(name), value, name)
        self.assertNotIn("--hipri", by_name["rand4k-qd4"])
        self.assertNotIn("--fixedbufs", by_name["libaio-rand4k-s32"])

    def test_no_poll_queues(self):
        """Then interrupts."""
        self.machine.put(QUEUE + "io_poll", "0")
        self.bench()
        self.assertNotIn("--hipri", self.machine.log()[0])

    def test_html(self):
        """A page, with charts inside, and what it is of, but not the host."""
        known = os.uname_result(("Linux", "HOST-NAME", "6.1", "#1 SMP", "x"))
        with mock.patch("os.uname", return_value=known):
            self.bench("--html", "page.html", "--policies", "always,never",
                       "--repeat", "2", "--plots", "charts")
        text = self.machine.get("page.html")
        for word in ("plugbench compares", "<svg", "Fake  SSD, firmware 1.0",
                     "1.1 GB", "6.1 #1 SMP", " UTC"):
            self.assertIn(word, text)
        self.assertNotIn("HOST-NAME", text)
        self.assertEqual(len(os.listdir(self.machine.path("charts"))), 3)

    def test_verbose(self):
        """The plan and the verdict are what all want; the rest on request."""
        words = ("--policies", "always,never", "--repeat", "2")
        text = self.bench(*words)
        for name in ("plug_policy", "scheduler"):
            self.machine.put(QUEUE + name, FILES[QUEUE + name])
        more = self.bench(*words, "--verbose")
        self.assertTrue(more.startswith("plugbench compares the plug"))
        for word in ("What a number means", "  ok: ", "order in round 1",
                     "p99.9 us", "[1/4] ", "no difference"):
            self.assertIn(word, more)
            if word != "no difference":
                self.assertNotIn(word, text)
        self.assertIn("[2/4] ", text)
        self.assertIn("Verdict:", text)
        self.assertLess(len(text.splitlines()), 25)

    def test_markdown(self):
        """For a mail: with --show it is all that is printed."""
        self.bench("--policies", "always,never", "--repeat", "5")
        got, out, errors = self.machine.run(
            "--show", "plugbench-nvme0n1.json", "--markdown")
        self.assertEqual((got, errors), (0, ""))
        self.assertTrue(out.startswith("**No difference: IOPS within 2%"), out)
        self.assertIn("\n| workload | mode | IOPS | p50 |", out)
        self.assertRegex(out, r"\n\| rand4k-s32 \| never \| \+0\.0% \(")
        self.assertIn("\n- Disk: Fake SSD, firmware 1.0, 1.1 GB\n", out)

    def test_terminal(self):
        """There is a line that is written anew, and colour unless NO_COLOR
        forbids it."""
        for forbid in "", "1":
            ours, theirs = os.openpty()
            with mock.patch.dict(os.environ, NO_COLOR=forbid, TERM="xterm"):
                with self.machine.start(
                        "/dev/nvme0n1", *SHORT, "--policies", "nomerges2",
                        "--keep-scheduler", terminal=theirs) as process:
                    os.close(theirs)
                    text = b""
                    with contextlib.suppress(OSError):
                        while True:
                            text += os.read(ours, 4096)
                os.close(ours)
            self.assertEqual(process.returncode, 0, text)
            self.assertEqual(text.count(b"\r\033[K[1/1]"), 1, text)
            self.assertEqual(b"\033[33mwarn" in text, not forbid, text)

    def test_nvme_cli(self):
        """Its word on model and firmware counts more than sysfs'."""
        self.machine.program("nvme", '#!/bin/sh\n'
                             'echo \'{"mn": "Other ", "fr": "2"}\'')
        self.bench()
        self.assertEqual(self.machine.records()[0]["profile"], "Other")
        self.assertEqual(self.machine.records()[0]["firmware"], "2")


if __name__ == "__main__":
    unittest.main()
