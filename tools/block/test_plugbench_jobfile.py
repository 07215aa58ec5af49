#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench --jobfile."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from benchtree import SHORT, Case

REAL_FIO = shutil.which("fio")
WORDS = ["/dev/nvme0n1", "--runtime", "1", "--repeat", "1", "--policies",
         "nomerges2"]
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


class Jobfile(Case):
    """The user's own load."""

    def refused(self, text, says, *more):
        """A file that is not taken, and why; nothing is done."""
        self.machine.put("x.fio", text)
        self.check_untouched(*WORDS, "--jobfile", "x.fio", *more, code=2,
                             says=says)

    def jobs(self, *words, code=0):
        """Run them; stdout and stderr."""
        self.machine.put("my jobs.fio", JOBS)
        got, out, errors = self.machine.run(
            *WORDS, "--jobfile", "my jobs.fio", *words)
        self.assertEqual(got, code, out + errors)
        return out + errors

    def options(self):
        """Words of the last run of fio, after the policy's."""
        return self.machine.get("fio.log").splitlines()[-1].split(" ")

    def test_runs(self):
        """Its jobs, on our disk, for our time, under our seeds."""
        text = self.jobs()
        words = " ".join(self.options())
        for one in ("--name=global --filename=" +
                    self.machine.path("dev/nvme0n1"), "--runtime=1",
                    "--name=read er --rw=randread --numjobs=3",
                    "--name=log --rw=read --bs=64k", "--bs=8k", "--readonly",
                    "--ioengine=io_uring", "--direct=1 --thread"):
            self.assertIn(one, words)
        for one in ("passwd", "600", "--cpus_allowed", "iodepth"):
            self.assertNotIn(one, words)
        self.assertLess(words.index("--bs=8k"), words.index("--name=read"))
        self.assertIn("my jobs.fio: 4 jobs, randread, read; not used: "
                      "direct, filename, runtime", text)
        self.assertIn("on any CPU", text)

    def test_record(self):
        """The file's name, and the CPUs of all jobs."""
        self.jobs()
        one = self.machine.records()[0]
        self.assertEqual(one["workload"], "my_jobs")
        self.assertEqual(one["cpu_busy"], 2.0)

    def test_limits(self):
        """Of all jobs together; they win over the file's."""
        self.jobs("--iops", "400", "--cpu", SHORT[-1])
        words = self.options()
        self.assertIn("--rate_iops=100", words)
        self.assertIn("--cpus_allowed=" + SHORT[-1], words)
        self.machine.put("x.fio", "[a]\nrate_iops=9\ncpus_allowed=0-99")
        got = self.machine.run(*WORDS, "--jobfile", "x.fio", "--iops", "400",
                               "--cpu", SHORT[-1], "--keep-scheduler")
        self.assertEqual(got[0], 0, got)
        self.assertNotIn("--rate_iops=9", self.options())
        self.assertNotIn("--cpus_allowed=0-99", self.options())
        self.refused("[a]\nnumjobs=9\n", "--iops: 5 for 9 jobs", "--iops",
                     "5")

    def test_refused(self):
        """What writes, leaves the disk, runs programs, or is none."""
        for text, says in (
                ("[a]\nrw=randwrite", "[a]: rw=randwrite; accepted: read"),
                ("[a]\nreadwrite = rw:8", "readwrite=rw:8; accepted: read"),
                ("[global]\nrw=write\n[a]\nrw=read", "[global]: rw=write"),
                ("[a]\nrw=trim", "rw=trim; accepted: read"),
                ("[a]\nioengine=net", "accepted: io_uring, libaio"),
                ("[a]\nioengine=mmap", "accepted: io_uring, libaio"),
                ("[a]\ndirect=0", "direct=1"), ("[a]\nbs", "bs= and a value"),
                ("[a]\nbuffered=1", "only what shapes the load"),
                ("[a]\nexec_prerun=reboot", "may run programs"),
                ("[a]\nwrite_iolog=/etc/x", "use other files"),
                ("[a]\ndirectory=/home", "use other files"),
                ("[a]\nioscheduler=bfq", "only what shapes"),
                ("[a]\nnumjobs=0", "numjobs=1 to 999"),
                ("include x", "before any [section]"),
                ("[a]\ninclude x", "include x; accepted"),
                ("[global]\nbs=4k", "has no job"), ("", "has no job")):
            with self.subTest(text):
                self.refused(text, says)
        self.check_untouched(*WORDS, "--jobfile", "none.fio", code=2,
                             says="No such file")

    def test_write(self):
        """With --write it may; without a writing job --write is refused."""
        self.refused(JOBS, "nothing that is to run writes", "--write",
                     "--yes")
        self.machine.put("x.fio", "[a]\nrw=randrw")
        got = self.machine.run(*WORDS, "--jobfile", "x.fio", "--write",
                               "--yes")
        self.assertEqual(got[0], 0, got)
        self.assertNotIn("--readonly", self.options())

    @unittest.skipUnless(REAL_FIO, "fio is not installed")
    def test_fio_says_no(self):
        """fio's own word on the values, before anything is changed."""
        os.unlink(os.path.join(self.machine.bin, "fio"))
        os.symlink(REAL_FIO, os.path.join(self.machine.bin, "fio"))
        self.machine.put("dev/nvme0n1", "x" * (1 << 20))
        self.machine.put("x.fio", "[a]\nrandom_distribution=nonsense")
        self.check_untouched(*WORDS, "--jobfile", "x.fio", code=1,
                             says="fio does not take x.fio: fio: ")
        self.jobs("--dry-run")


if __name__ == "__main__":
    unittest.main()
