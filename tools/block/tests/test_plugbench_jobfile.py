#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench --jobfile."""
import os
import re
import shlex
import shutil
import subprocess
import unittest
from unittest import mock

from benchtree import SHORT, Case
from plugtools.bench import jobfile
from plugtools.core.system import UsageProblem

REAL_FIO = shutil.which("fio")
PRECIOUS = "what nobody must write to"
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

    def commands(self, text, *words, path="x.fio"):
        """What --showcmd says of a file, as a list of words; it does nothing
        else."""
        self.machine.put(path, text)
        before = self.machine.snapshot()
        got, out, errors = self.machine.run(*WORDS, "--jobfile", path,
                                            "--showcmd", *words)
        self.assertEqual((got, errors), (0, ""), out + errors)
        self.assertEqual(self.machine.snapshot(), before)
        return shlex.split(out)

    def jobs_of(self, text, *words, path="x.fio"):
        """{job: {option: value}} of that, with what [global] gives it."""
        found, common, name = {}, {}, None
        for word in self.commands(text, *words, path=path)[1:]:
            option, _, value = word.lstrip("-").partition("=")
            if option == "name":
                name = value
                if name != "global":
                    found[name] = dict(common)
            elif name:
                (common if name == "global" else found[name])[option] = value
        return found

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

    def test_another_load_of_the_same_name(self):
        """Is not compared, and not measured in vain."""
        self.jobs("--json", "old.json", "--keep-scheduler")
        words = ("my jobs.fio", "--keep-scheduler", "--compare", "old.json")
        self.machine.put("my jobs.fio", JOBS.replace("64k", "16k"))
        self.check_untouched(
            *WORDS, "--jobfile", *words, code=2, says="the loads of my_jobs "
            "differ: --bs=64k, then --bs=16k; accepted: results of one load")
        self.check_untouched(
            *WORDS, "--jobfile", *words, "--iops", "40", code=2,
            says="then --rate_iops=10 --bs=16k --rate")
        got, out, _ = self.machine.run(*WORDS, "--jobfile", *words[:2],
                                       "--json", "new.json")
        self.assertEqual(got, 0, out)
        self.check_untouched("--compare", "old.json", "new.json", code=2,
                             says="the loads of my_jobs differ")
        self.jobs("--json", "new.json", "--compare", "old.json", "--runtime",
                  "2", "--cpu", SHORT[-1], "--keep-scheduler")

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
                ("\ufeff[a]", "x.fio starts with a byte order mark"),
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

    def test_second_global(self):
        """Each is for the jobs after it; to fio all such names are global."""
        found = self.jobs_of("[global]\nrw=randread\nbs=4k\n[a]\n"
                             "iodepth=2\n[globals]\nbs=64k\nnumjobs=2\n[b]\n"
                             "rw=read\n",
                             "--iops", "900")
        self.assertEqual(list(found), ["a", "b"])
        self.assertEqual([one["bs"] for one in found.values()], ["4k", "64k"])
        self.assertEqual([one.get("numjobs") for one in found.values()],
                         [None, "2"])
        self.assertEqual({one["rate_iops"] for one in found.values()}, {"300"})
        found = self.jobs_of("[global]\nnumjobs=2\n[a]\n[global]\nbs=8k\n[b]",
                             "--iops", "900")
        self.assertEqual({one["rate_iops"] for one in found.values()}, {"225"})

    def test_names(self):
        """With a blank in front, "global" is a job's to fio."""
        found = self.jobs_of("[ global ]\nbs=8k\n[gr\u00f6\u00dfe \u2192]\n"
                             "bs=4k\n[Global]\n")
        self.assertEqual([(name, one.get("bs")) for name, one in
                          found.items()], [
            (" global ", "8k"), ("gr\u00f6\u00dfe \u2192", "4k"),
            ("Global", None)])

    def test_names_that_are_refused(self):
        """They cannot be words of a command, or would steer a terminal."""
        for name, says in (("a\0b", r"[a\x00b]"),
                           ("a\udcf6b", r"[a\udcf6b]"),
                           ("a\x1b[7mb", r"[a\x1b[7mb]")):
            self.refused("[a]\n[%s]\nrw=randread" % name, "x.fio, line 2: "
                         "%s; accepted: a name that can be printed" % says)
        self.refused("[a]\nbs=\x1b[31m", r"bs=\x1b[31m; accepted: numbers")
        self.refused("[a]\n\x1b[31m", r"[a]: \x1b[31m; accepted: only what")
        self.machine.put("x.fio", "[gr\u00f6\u00dfe \u2192]")
        with mock.patch("os.fsencode", lambda text: text.encode("latin-1")), \
                self.assertRaisesRegex(UsageProblem, "locale's latin-1 has"):
            jobfile.job_sections(self.machine.path("x.fio"))
        self.refused("[a]\nbs=4\u212a", "accepted: numbers")  # kelvin

    def test_comments(self):
        """Also behind a value, a section or an option that stands alone."""
        found = self.jobs_of(
            "; head\n[a] # first\nrw=randread ; only reads\nbs=8k;x\n"
            "numjobs=4\t# four\nnorandommap # all\r\n  # whole\n"
            "direct=1 # past the cache\n")
        self.assertEqual((found["a"]["rw"], found["a"]["bs"],
                          found["a"]["numjobs"], found["a"]["norandommap"]),
                         ("randread", "8k", "4", ""))

    def test_pipe(self):
        """It is read once, so it may come from a pipe."""
        for words in ((), ("--keep-scheduler", "--dry-run"), ("--showcmd",)):
            end, start = os.pipe()
            self.addCleanup(os.close, end)
            os.write(start, JOBS.encode())
            os.close(start)
            got, out, errors = self.machine.run(
                *WORDS, "--jobfile", "/dev/fd/%d" % end, *words)
            self.assertEqual(got, 0, out + errors)

    def test_include(self):
        """Beside the file, of its own section; what is in it is checked."""
        self.machine.put("d/inner", "bs=2k ; small\niodepth=7")
        text = "[global]\ninclude inner\n[a]\nrw=randread"
        self.assertEqual(self.jobs_of(text, path="d/x.fio")["a"]["bs"], "2k")
        for words in ["--html", "d/inner"], ["--json", "d/x.fio"]:
            self.check_untouched(*WORDS, "--jobfile", "d/x.fio", *words,
                                 code=2, says="would overwrite " + words[1])
        self.machine.put("inner", "exec_prerun=reboot")
        self.refused(text, "exec_prerun=reboot; accepted")
        self.machine.put("inner", "[b]")
        self.refused(text, "no [section] in a file that is included")
        self.machine.put("inner", "include inner")
        self.refused(text, "no more than 8 that include each other")

    def test_variables(self):
        """What they stand for is checked as well."""
        for value, says in (("write_iolog", "write_iolog=x; accepted"),
                            ("bs", None)):
            text = "[a]\n${WHAT}=x"
            with mock.patch.dict(os.environ, WHAT=value):
                if says:
                    self.refused(text, says)
                else:
                    self.refused(text, "bs=x; accepted: numbers")
        self.refused("[a]\nbs=${NOT_SET_HERE}", "a variable that is set")
        self.assertEqual(self.jobs_of("[a]\nbs=2*$pagesize")["a"]["bs"],
                         str(2 * os.sysconf("SC_PAGE_SIZE")))

    @mock.patch("os.cpu_count", lambda: 2)
    def test_sums(self):
        """Of words about the machine, which fio has bc calculate."""
        page = os.sysconf("SC_PAGE_SIZE")
        for text, value in (
                ("iodepth=16/$ncpus", 8), ("bs=$pagesize/2", page // 2),
                ("rate_iops = $pagesize / 2", page // 2),
                ("bs=$pagesize-512", page - 512), ("numjobs=$ncpus/2", 1),
                ("iodepth=$ncpus+1", 3), ("iodepth=2*$ncpus*2", 8),
                ("thinktime=04*($ncpus+1)", 12), ("offset=-7/$ncpus", -3),
                ("iodepth=$ncpus-$ncpus/2", 1), ("bs=$ncpus,8k", "2,8k"),
                ("bsrange=1k-8k", "1k-8k"), ("size=$mb_memory", os.sysconf(
                    "SC_PHYS_PAGES") * page >> 20)):
            with self.subTest(text):
                self.assertEqual(self.jobs_of("[a]\n" + text)["a"][re.match(
                    r"\w+", text)[0]], str(value))
        for text in ("iodepth=$ncpus/0", "bs=4k-$pagesize", "iodepth=9**$ncpus",
                     "iodepth=9//$ncpus", "bs=$ncpus+", "bs=$ncpus*(2",
                     "bssplit=$pagesize/60:8k/40", "bs=$ncpus-id()",
                     "bs=()*$ncpus", "bs=$ncpus*" + "(" * 90 + "1" + ")" * 90):
            with self.subTest(text):
                self.refused("[a]\n" + text, text + "; accepted: whole "
                             "numbers with + - * / and ( ), as 2*$ncpus")

    def test_values_that_are_files_or_programs(self):
        """Whatever option of fio's takes one, and wherever it hides."""
        path = self.machine.path("precious")
        self.machine.put("precious", PRECIOUS)
        for text in ("iomem=mmap:", "iomem=mmapshared:", "mem=mmaphuge:",
                     "iomem=MMAP:", "iomem=malloc:", "ioengine=libaio:",
                     "ioengine=external:", "rw=randread:", "verify=pattern:",
                     "buffer_pattern='", "write_bw_log=", "write_lat_log=",
                     "write_hist_log=", "write_iops_log=", "read_iolog=",
                     "merge_blktrace_file=", "replay_redirect=", "opendir=",
                     "lockfile=", "exec_postrun=",
                     "random_distribution=zoned:", "cgroup=", "bs=",
                     "size=", "error_dump=", "aux-path=",
                     "cpus_allowed=", "numa_mem_policy=bind:", "profile=",
                     "unlink=1 ", "verify_state_save=1 ", "output="):
            with self.subTest(text):
                self.refused("[a]\n" + text + path, "accepted: ")
        self.assertEqual(self.machine.get("precious"), PRECIOUS)

    def test_no_value_is_a_path(self):
        """Of any option that is handed to fio, as its manual has it or not."""
        for option in sorted({*jobfile.ALLOWED} - jobfile.OURS):
            for value in ("/etc/x", "mmap:/etc/x", "x:/etc/x", "./x", "~/x",
                          "1,/etc/x", "1:/etc/x", "'x'", "$HOME", "`id`"):
                for name in (option, *(
                        other for other, name in jobfile.ALIASES.items()
                        if name == option)):
                    with self.subTest(name + "=" + value), \
                            self.assertRaises(UsageProblem):
                        jobfile.check_option(name, value, True, "x")

    def test_long_values(self):
        """Are refused at once: no pattern can match in many ways."""
        for option in sorted({*jobfile.ALLOWED} - jobfile.OURS):
            for start in "", "(", "a:", "zoned:1":
                for part in ("--1", "++1", "1%-", "0xab-", "0xabcdef:", "1k,",
                             "1.", ":1/", "( ", "1 ", "a_", "0", "-0x1af%+"):
                    with self.assertRaises(UsageProblem):
                        jobfile.check_option(
                            option, start + 200 * part + "!", True, "x")

    def test_options_that_change_nothing(self):
        """Are not handed to fio, and are named."""
        text = "[a]\nrw=read\ndescription=what /it/ is\nunlink=0\n" \
            "gtod_reduce=1\nclat_percentiles=1\nfallocate=none\nbuffered=0"
        found = self.jobs_of(text)["a"]
        for name in ("description", "unlink", "gtod_reduce", "fallocate",
                     "buffered"):
            self.assertNotIn(name, found)
        self.assertEqual(found["clat_percentiles"], "0")
        got, out, _ = self.machine.run(*WORDS, "--jobfile", "x.fio")
        self.assertEqual(got, 0)
        self.assertIn("not used: buffered, clat_percentiles, description, "
                      "fallocate, gtod_reduce, unlink", out)

    def test_what_is_harmless(self):
        """As fio has it, in whatever form."""
        found = self.jobs_of(
            "# gr\udcf6\udcdfe\n[a]\ndescription=gr\udcf6\udcdfe\n"
            "numjobs=0x4\nmem_align=8k\n"
            "random_distribution=zoned_abs:60/20G:30/100G:10/500g\n"
            "#\rbs=8k\n[b]\nnumjobs=04\r\nrandom_distribution=zipf:.5\n"
            "log_entries=9\nlog_prio=1\nverify=0\ntrim_percentage=0",
            "--iops", "800")
        self.assertEqual({key: found["a"][key] for key in (
            "numjobs", "iomem_align", "random_distribution", "rate_iops")}, {
            "numjobs": "0x4", "iomem_align": "8k", "rate_iops": "100",
            "random_distribution": "zoned_abs:60/20G:30/100G:10/500g"})
        self.assertNotIn("bs", found["a"])
        self.assertEqual(found["b"]["numjobs"], "04")
        self.assertFalse({"log_entries", "log_prio", "verify",
                          "trim_percentage"} & set(found["b"]))
        for text in ("numjobs=00", "numjobs=0x0", "numjobs=1k", "verify=null",
                     "verify=1", "numjobs=0x400", "trim_percentage=1",
                     "random_distribution=zoned_abs:60/x"):
            with self.subTest(text):
                self.refused("[a]\n" + text, text + "; accepted")

    def test_one_after_the_other(self):
        """Jobs run all at once; of one job nobody would notice."""
        self.refused("[a]\nrw=read\n[b]\nstonewall\nrw=randread",
                     "[b]: stonewall; accepted: jobs that run all at once")
        self.refused("[global]\nwait_for_previous\n[a]\n[b]\nrw=read",
                     "[b]: stonewall; accepted: jobs")
        self.jobs_of("[a]\nstonewall\nrw=read")
        self.jobs_of("[global]\nwait_for_previous\n[a]\n[b]\nstonewall=0")

    def test_limit_of_reads_and_writes(self):
        """fio's own limit would hold for either."""
        words = ("--write", "--yes", "--iops", "1000")
        found = self.jobs_of(
            "[global]\nrate=9m\nrate_iops=7\n[a]\nrw=randrw\nnumjobs=3\n"
            "[b]\nrw=rw\nrwmixwrite=10\nrwmixread=80\n"
            "[c]\nrw=write\nrate_min=1m", *words)
        self.assertEqual([one["rate_iops"] for one in found.values()],
                         ["100,100", "160,40", "200"])
        self.assertEqual({"rate", "rate_min"} & {
            option for one in found.values() for option in one}, set())
        self.assertEqual(self.jobs_of("[a]\nrw=rw\nrwmixread=100", "--write",
                                      "--iops", "9")["a"]["rate_iops"], "8,1")
        self.refused("[a]\nrw=rw", "--iops: 1 for 1 jobs; accepted: 2 or more",
                     "--write", "--yes", "--iops", "1")

    def test_thinktime(self):
        """As long as a run, it leaves nothing to measure."""
        for text in ("100s", "1S", "1000000", "1000ms", "1m", "+20s", "-20s",
                     "0x1312d00", "20s,", "20s,1", "9mss", "1.5s", "(9*9)",
                     "9" * 5000):
            self.refused("[a]\nthinktime=" + text, "thinktime=%s; accepted: "
                         "a time as 20ms, less than a run, 1 s (--runtime)"
                         % text)
        for text in "999999", "999ms", "900us", "0":
            self.jobs_of("[a]\nthinktime=" + text)
        self.jobs_of("[a]\nthinktime=1s", "--runtime", "2")

    def test_limit_of_ours(self):
        """The workload that writes has two sides, too."""
        got, out, _ = self.machine.run(
            "/dev/nvme0n1", "--workloads", "mix70-s32,rand4k-qd1", "--write",
            "--iops", "100", "--showcmd")
        self.assertEqual(got, 0)
        self.assertEqual(re.findall("--rate_iops=[0-9,]*", out),
                         ["--rate_iops=70,30", "--rate_iops=100"])

    @unittest.skipUnless(REAL_FIO, "fio is not installed")
    def test_options_are_fios(self):
        """It knows all that is accepted or dropped."""
        told = "".join(subprocess.run(
            [REAL_FIO, word], capture_output=True, text=True,
            check=False).stdout for word in (
                "--cmdhelp=all", "--enghelp=io_uring", "--enghelp=libaio",
                "--enghelp=pvsync2"))
        known = {line.split()[0].rstrip(":") for line in told.splitlines()
                 if line.strip()}
        ours = {option for option in {*jobfile.ALLOWED, *jobfile.OURS}
                if not subprocess.run(
                    [REAL_FIO, "--cmdhelp=" + option], check=False,
                    capture_output=True).stdout} - known
        self.assertEqual(ours, set())

    @unittest.skipUnless(REAL_FIO, "fio is not installed")
    def test_fio_takes_it(self):
        """An engine's own options find it, be it inherited or their own."""
        os.unlink(os.path.join(self.machine.bin, "fio"))
        os.symlink(REAL_FIO, os.path.join(self.machine.bin, "fio"))
        self.machine.put("dev/nvme0n1", "x" * (1 << 20))
        self.machine.put("x.fio", "[global]\nioengine=io_uring\n[a]\nhipri\n"
                         "rw=randread\nbssplit=4k/60:8k/40\nsize=50%\n[b]\n"
                         "hipri=1\nioengine=pvsync2\nthinktime=20\n"
                         "random_distribution=zipf:1.2\niomem=shm")
        # on a file, the polled read would fail: nothing may be read
        got = self.machine.run(*WORDS, "--jobfile", "x.fio", "--dry-run")
        self.assertEqual(got[0], 0, got)

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
