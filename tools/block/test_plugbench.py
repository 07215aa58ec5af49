#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of plugbench with a fake disk, fake fio and fake perf.

They need no privilege and touch nothing of the machine: plugbench gets a tree
of its own in place of /sys, /proc and /dev, and a PATH with fakes only.
"""
import errno
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGBENCH = os.environ.get("PLUGBENCH", os.path.join(HERE, "plugbench"))
QUEUE = "sys/block/nvme0n1/queue/"
DEBUG = "sys/kernel/debug/nvme_plug/"
SHORT = ["--runtime", "1", "--repeat", "2", "--workloads", "rand4k-s32",
         "--cpu", str(min(os.sched_getaffinity(0)))]

FIO_JSON = {"jobs": [{
    "error": 0, "usr_cpu": 10.0, "sys_cpu": 40.0, "ctx": 500,
    "mixed": {"iops": 1000.5, "total_ios": 1000, "lat_ns": {
        "mean": 5000.0, "percentile": {
            "50.000000": 4000, "99.000000": 9000, "99.900000": 11000}}}}]}

# Logs the settings in force, then does what the test asked for.
FAKE_FIO = """#!/bin/sh
cd "$PLUGBENCH_ROOT" || exit 9
q=sys/block/nvme0n1/queue d=sys/kernel/debug/nvme_plug
echo "policy=$(cat $q/plug_policy) nomerges=$(cat $q/nomerges)" \\
     "scheduler=$(cat $q/scheduler) iostats=$(cat $q/iostats)" \\
     "counting=$(cat $d/counting 2>/dev/null) $*" >>fio.log
echo 1023 >$q/nr_requests
if [ -f fio.vanish ]; then rm -rf sys/block/nvme0n1; exit 1; fi
if [ -f fio.fail ]; then echo "fio: boom" >&2; exit 1; fi
if [ -f fio.sleep ]; then
	[ -f fio.deaf ] && trap '' TERM
	sleep 300 &
	echo "$$ $!" >fio.pids
	wait
	wait
	exit 1
fi
read -r r a b c w rest <sys/block/nvme0n1/stat
echo "$((r + 500)) $a $b $c $w $rest" >sys/block/nvme0n1/stat
if [ "$(cat $d/counting 2>/dev/null)" = 1 ]; then
	printf 'queue 0 doorbells 9 commands 9\\nqueue 1 doorbells 131 \
commands 1000\\n' >$d/nvme0/doorbells
fi
cat fio.json
"""

# Counts all but what the test says it cannot.
FAKE_PERF = """#!/bin/sh
shift
out= events=
while [ "$1" != -- ]; do
	case $1 in
	-o) out=$2; shift ;;
	-e) events="$events $2"; shift ;;
	esac
	shift
done
shift
"$@" || exit
for event in $events; do
	if grep -qx "$event" "$PLUGBENCH_ROOT/perf.cannot" 2>/dev/null; then
		echo "<not supported>,,$event,0,100.00,,"
	else
		echo "7000000,,$event,1,100.00,,"
	fi
done >"$out"
"""

# plugbench, where a directory of configfs is a disk, once its power is on, and
# goes with its files.
NULL_TOOL = """
import importlib.machinery, importlib.util, os, shutil, sys
loader = importlib.machinery.SourceFileLoader("plugbench", %r)
tool = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("plugbench", loader))
loader.exec_module(tool)
write, rmdir = tool.write, os.rmdir
config = tool.rooted("/sys/kernel/config/nullb/plugnull")
disk = tool.rooted("/sys/block/plugnull")


def set_attribute(path, value):
    write(path, value)
    with open(tool.rooted("/null.log"), "a") as log:
        if path.startswith(config):
            print(os.path.basename(path), value, file=log)
    if path == config + "/power":
        shutil.copytree(tool.rooted("/sys/block/nvme0n1"), disk)
        open(tool.rooted("/dev/plugnull"), "w").close()


def remove(path, **more):
    if path == config:
        for name in os.listdir(config):
            os.unlink(os.path.join(config, name))
        shutil.rmtree(disk, ignore_errors=True)
        if os.path.exists(tool.rooted("/dev/plugnull")):
            os.unlink(tool.rooted("/dev/plugnull"))
    rmdir(path, **more)


tool.write, os.rmdir = set_attribute, remove
sys.exit(tool.main(sys.argv[1:]))
"""

FILES = {
    QUEUE + "plug_policy": "always never [seq-small] adaptive",
    QUEUE + "scheduler": "none [mq-deadline] kyber",
    QUEUE + "nomerges": "1", QUEUE + "iostats": "0", QUEUE + "io_poll": "1",
    QUEUE + "nr_requests": "100", QUEUE + "iosched/read_expire": "777",
    "sys/block/nvme0n1/mq/0/cpu_list": "0",
    "sys/block/nvme0n1/stat": "100 0 0 0 50 0 0 0 0 0 0",
    "sys/block/nvme0n1/dev": "259:0", "sys/block/nvme0n1/size": "2097152",
    "sys/block/nvme0n1/ro": "0",
    "sys/block/nvme0n1/nvme0n1p1/partition": "1",
    "sys/block/nvme0n1/nvme0n1p1/dev": "259:1",
    "sys/class/nvme/nvme0/model": "Fake  SSD ",
    "sys/class/nvme/nvme0/firmware_rev": "1.0",
    "dev/nvme0n1": "", "dev/nvme0n1p1": "", "dev/other": "",
    "proc/self/mountinfo": "", "proc/swaps": "",
}


def active(text):
    """The value in force."""
    return text.split("[")[1].split("]")[0] if "[" in text else text


def finish(process):
    """stdout and stderr of a process that must end soon."""
    try:
        return process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


class Machine:
    """The tree, and how to run plugbench on it."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="test_plugbench-")
        self.tool = PLUGBENCH
        self.bin = os.path.join(self.root, "bin")
        for path, text in FILES.items():
            self.put(path, text)
        os.symlink("../../class/nvme/nvme0",
                   self.path("sys/block/nvme0n1/device"))
        self.put("fio.json", json.dumps(FIO_JSON))
        self.program("fio", FAKE_FIO)
        for name in ("sh", "cat", "sleep", "rm", "true", "grep"):
            os.symlink(shutil.which(name), os.path.join(self.bin, name))

    def path(self, name):
        """A path in the tree."""
        return os.path.join(self.root, name)

    def put(self, path, text):
        """Make a file."""
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text + "\n")

    def get(self, path):
        """What a file holds."""
        with open(self.path(path), encoding="utf-8") as file:
            return file.read().strip()

    def program(self, name, text):
        """A fake program."""
        self.put("bin/" + name, text)
        os.chmod(os.path.join(self.bin, name), 0o755)

    def start(self, *words):
        """plugbench on the disk, in the background."""
        environment = dict(os.environ, PLUGBENCH_ROOT=self.root,
                           PATH=self.bin)
        return subprocess.Popen(
            [sys.executable, self.tool, *words], cwd=self.root, text=True,
            env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words):
        """Exit code, stdout, stderr."""
        with self.start(*words) as process:
            out, errors = finish(process)
        return process.returncode, out, errors

    def log(self):
        """The runs of fio: {word: value} and its options."""
        if not os.path.exists(self.path("fio.log")):
            return []
        return [dict(word.partition("=")[::2] for word in line.split())
                for line in self.get("fio.log").splitlines()]

    def timed(self):
        """The runs that were neither for counting nor to warm up."""
        return [one for one in self.log() if one["counting"] != "1"][1::2]

    def snapshot(self):
        """Every file with what it holds."""
        return {os.path.join(top, name): self.get(os.path.join(top, name))
                for top, _, names in os.walk(self.root) for name in names
                if "/bin" not in top}

    def records(self, disk="nvme0n1"):
        """The records of the result."""
        return json.loads(self.get("plugbench-%s.json" % disk))["records"]


class Case(unittest.TestCase):
    """A machine for each test."""

    def setUp(self):
        self.machine = Machine()
        self.addCleanup(shutil.rmtree, self.machine.root)

    def bench(self, *words, code=0):
        """Run with short defaults; stdout and stderr together."""
        got, out, errors = self.machine.run("/dev/nvme0n1", *SHORT, *words)
        self.assertEqual(got, code, out + errors)
        return out + errors

    def check_restored(self):
        """All is as FILES says."""
        for name in ("plug_policy", "scheduler", "nomerges", "iostats",
                     "nr_requests", "iosched/read_expire"):
            self.assertEqual(active(self.machine.get(QUEUE + name)),
                             active(FILES[QUEUE + name]), name)

    def check_untouched(self, *words, code, says):
        """Refused with a message; nothing was changed or run."""
        before = self.machine.snapshot()
        got, out, errors = self.machine.run(*words)
        self.assertEqual(got, code, out + errors)
        self.assertIn(says, errors)
        self.assertEqual(self.machine.snapshot(), before)


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
                (["--frobnicate"], "unrecognized")):
            with self.subTest(words):
                self.check_untouched("/dev/nvme0n1", *words, code=2,
                                     says=says)

    def test_no_device(self):
        """Neither a name, nor a missing node, nor something else."""
        for device in ("nvme0n1", "/dev/nvme7n1", "/dev/other", "/dev"):
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

    def test_multipath_head(self):
        """A bio-based disk; its paths are named."""
        shutil.rmtree(self.machine.path("sys/block/nvme0n1/mq"))
        self.machine.put("sys/block/nvme0c1n1/queue/plug_policy", "[always]")
        self.check_untouched("/dev/nvme0n1", code=1,
                             says="bio-based (NVMe multipath head")
        self.check_untouched("/dev/nvme0n1", code=1, says="nvme0c1n1")
        self.check_untouched("/dev/nvme0c1n1", code=2, says="no device node")

    def test_dm(self):
        """LVM on a partition: the disk that the partition is on."""
        self.machine.put("sys/block/dm-1/slaves/dm-0/x", "")
        self.machine.put("sys/block/dm-0/slaves/nvme0n1p1/x", "")
        self.machine.put("dev/dm-1", "")
        self.check_untouched("/dev/dm-1", code=1,
                             says="the disks below it have: nvme0n1\n")

    def test_no_fio(self):
        """It says how to get it."""
        os.unlink(os.path.join(self.machine.bin, "fio"))
        self.check_untouched("/dev/nvme0n1", code=1, says="apt install fio")

    def test_result_cannot_be_written(self):
        """That is found out before, not after, measuring."""
        self.check_untouched("/dev/nvme0n1", "--json", "/nowhere/x", code=1,
                             says="cannot write /nowhere/x")

    def test_dry_run(self):
        """Plan and checks, and nothing else."""
        before = self.machine.snapshot()
        text = self.bench("--dry-run")
        self.assertIn("scheduler mq-deadline makes every policy", text)
        self.assertIn("1 s each after 1 s to warm up:\n  10 runs, some",
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
        self.machine.put("sys/kernel/debug/block/nvme0n1/hctx0/plug_policy",
                         "set: never\nhold: always (no queue_rqs)")
        text = self.bench("--policies", "never")
        self.assertEqual(text.count("does as \"always\" here: no queue_rqs"),
                         1)


class Restore(Case):
    """Whatever happens, settings are as before and nothing runs."""

    def test_success(self):
        """During the runs they are what the measurement needs."""
        self.bench()
        self.check_restored()
        log = self.machine.log()
        self.assertEqual({one["iostats"] for one in log}, {"1"})
        self.assertEqual([(one["policy"], one["nomerges"])
                          for one in log[:10:2]],
                         [("always", "0"), ("never", "0"), ("seq-small", "0"),
                          ("adaptive", "0"), ("always", "2")])
        self.assertEqual([one["policy"] for one in log[::2]],
                         [one["policy"] for one in log[1::2]])

    def test_fio_fails(self):
        """With what fio said."""
        self.machine.put("fio.fail", "")
        text = self.bench(code=1)
        self.assertIn("exit code 1", text)
        self.assertIn("fio: boom", text)
        self.check_restored()

    def test_fio_prints_nonsense(self):
        """An exit code of 0 is not enough."""
        self.machine.put("fio.json", "{ nonsense")
        self.assertIn("fio failed", self.bench(code=1))
        self.check_restored()

    def test_fio_reports_an_error(self):
        """An I/O error in the JSON."""
        told = json.loads(json.dumps(FIO_JSON))
        told["jobs"][0]["error"] = 5
        self.machine.put("fio.json", json.dumps(told))
        self.assertIn("fio failed", self.bench(code=1))
        self.check_restored()

    def interrupt(self, *numbers, deaf=False):
        """Send signals while fio runs."""
        self.machine.put("fio.sleep", "")
        if deaf:
            self.machine.put("fio.deaf", "")
        pids = self.machine.path("fio.pids")
        with self.machine.start("/dev/nvme0n1", *SHORT) as process:
            for _ in range(200):
                if os.path.exists(pids) and self.machine.get(pids):
                    break
                time.sleep(0.05)
            for number in numbers:
                process.send_signal(number)
                time.sleep(0.3)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 130, out + errors)
        self.assertIn("interrupted by " + numbers[0].name, errors)
        self.assertNotIn("Traceback", errors)
        self.check_restored()
        self.assertFalse(os.path.exists(
            self.machine.path("plugbench-nvme0n1.json")))
        self.check_gone(self.machine.get(pids).split())

    def check_gone(self, pids):
        """No such process, or a zombie that init has yet to reap."""
        for pid in pids:
            for _ in range(40):
                state = "gone"
                if os.path.exists("/proc/%s/stat" % pid):
                    with open("/proc/%s/stat" % pid, encoding="ascii",
                              errors="replace") as file:
                        state = file.read().rpartition(")")[2].split()[0]
                if state in ("gone", "Z"):
                    break
                time.sleep(0.05)
            self.assertIn(state, ("gone", "Z"))

    def test_sigint(self):
        """Ctrl-C."""
        self.interrupt(signal.SIGINT)

    def test_sigterm(self):
        """kill."""
        self.interrupt(signal.SIGTERM)

    def test_sighup(self):
        """The terminal went."""
        self.interrupt(signal.SIGHUP)

    def test_before_the_runs(self):
        """During the checks, here in nvme-cli: the same exit code."""
        self.machine.program("nvme", "#!/bin/sh\n"
                             "echo >$PLUGBENCH_ROOT/started\nsleep 2\n")
        before = self.machine.snapshot()
        with self.machine.start("/dev/nvme0n1", *SHORT) as process:
            while not os.path.exists(self.machine.path("started")):
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 130, out + errors)
        os.unlink(self.machine.path("started"))
        self.assertEqual(self.machine.snapshot(), before)

    def test_impatient(self):
        """More signals, and an fio that does not listen to SIGTERM."""
        self.interrupt(signal.SIGINT, signal.SIGINT, signal.SIGTERM,
                       deaf=True)


class Write(Case):
    """Writing needs --write, --yes, and a disk that nobody uses."""

    WORDS = ["/dev/nvme0n1", "--write", "--yes", "--workloads", "mix70-s32"]

    def test_mounted(self):
        """The disk, or a partition of it."""
        for number in ("259:0", "259:1"):
            self.machine.put("proc/self/mountinfo",
                             "36 35 %s / /mnt rw - ext4 /dev/x rw" % number)
            with self.subTest(number):
                self.check_untouched(*self.WORDS, code=1,
                                     says="mounted on /mnt")

    def test_swap_and_holders(self):
        """Other ways to use it."""
        self.machine.put("proc/swaps", "/dev/nvme0n1p1 partition 1 0 -2")
        self.check_untouched(*self.WORDS, code=1, says="swap on")
        self.machine.put("proc/swaps", "")
        self.machine.put("sys/block/nvme0n1/nvme0n1p1/holders/dm-0", "")
        self.check_untouched(*self.WORDS, code=1,
                             says="nvme0n1p1 is held by dm-0")

    def test_read_only(self):
        """A disk that cannot be written."""
        self.machine.put("sys/block/nvme0n1/ro", "1")
        self.check_untouched(*self.WORDS, code=1, says="read-only")

    def test_not_confirmed(self):
        """Nobody can be asked."""
        words = [word for word in self.WORDS if word != "--yes"]
        self.check_untouched(*words, code=2, says="needs --yes")

    def test_reading_a_mounted_disk(self):
        """Allowed, with a warning."""
        self.machine.put("proc/self/mountinfo",
                         "36 35 259:1 / /mnt rw - ext4 /dev/x rw")
        text = self.bench()
        self.assertIn("warn:  mounted on /mnt: reading is safe", text)

    def test_writes(self):
        """When all is given; what only reads cannot write even then."""
        text = self.bench("--write", "--yes", "--workloads",
                          "rand4k-s32,mix70-s32")
        self.assertIn("OVERWRITES", text)
        for one in self.machine.log():
            reads = one["--rw"] == "randread"
            self.assertEqual("--readonly" in one, reads)
            self.assertEqual(one.get("--rwmixread"), None if reads else "70")

    def test_held_exclusively(self):
        """O_EXCL is taken, as by a mount of btrfs or zfs."""
        plugbench = load()
        disk = mock.Mock(node="/dev/x", path=self.machine.path,
                         get=lambda name, default="": default,
                         partitions=lambda: [])
        disk.name = "x"
        taken = OSError(errno.EBUSY, "busy")
        with mock.patch.object(plugbench.os, "open", side_effect=taken):
            self.assertEqual(plugbench.uses(disk),
                             ["somebody holds /dev/x exclusively"])


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
        self.bench("--policies", "always,never")
        self.assertEqual([one["--randseed"] for one in self.machine.timed()],
                         ["1", "1", "2", "2"])


class Result(Case):
    """What is written and printed."""

    def test_json(self):
        """Every policy and workload, as plugreport reads them."""
        self.bench("--workloads", "rand4k-s32,rand4k-qd1")
        sys.path.insert(0, HERE)
        import plugreport  # pylint: disable=import-outside-toplevel
        records, meta = plugreport.load(
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
        """A page, without plots where gnuplot is missing."""
        text = self.bench("--html", "page.html")
        self.assertIn("gnuplot is not installed", text)
        self.assertIn("plugbench compares", self.machine.get("page.html"))

    def test_claim_first(self):
        """It opens with what it compares, and says what a number means."""
        text = self.bench()
        self.assertTrue(text.startswith("plugbench compares the plug"))
        self.assertIn("What a number means", text)

    def test_nvme_cli(self):
        """Its word on model and firmware counts more than sysfs'."""
        self.machine.program("nvme", '#!/bin/sh\n'
                             'echo \'{"mn": "Other ", "fr": "2"}\'')
        self.bench()
        self.assertEqual(self.machine.records()[0]["profile"], "Other")
        self.assertEqual(self.machine.records()[0]["firmware"], "2")


class Adaptive(Case):
    """It starts anew, has a second to learn, and says where it arrived."""

    FILE = "sys/kernel/debug/block/nvme0n1/hctx%d/plug_adaptive"

    def test_warm_up(self):
        """Under each policy, with the same load; it is in no record."""
        self.bench("--repeat", "1", "--runtime", "3")
        self.assertEqual([(one["policy"], one["--runtime"])
                          for one in self.machine.log()[4:8]],
                         [("seq-small", "1"), ("seq-small", "3"),
                          ("adaptive", "1"), ("adaptive", "3")])
        self.assertEqual(len(self.machine.records()), 5)

    def test_starts_anew(self):
        """The mode is left and set again before each measurement."""
        tool, calls = load(), []
        disk = tool.Disk("x", "/dev/x")
        disk.has_knob = lambda: True
        settings = mock.Mock(set=lambda path, value: calls.append(
            (os.path.basename(path), value)))
        tool.set_policy(disk, "adaptive", settings)
        self.assertEqual(calls, [("nomerges", "0"), ("plug_policy", "always"),
                                 ("plug_policy", "adaptive")])
        calls.clear()
        tool.set_policy(disk, tool.BASELINE, settings)
        self.assertEqual(calls, [("nomerges", "2"), ("plug_policy", "always")])

    def test_group(self):
        """Of the hardware queues that have learnt; None if none has."""
        tool = load()
        self.assertIsNone(tool.group({}, {}))
        self.assertEqual(tool.group({"a": "group 32", "b": "group 2"},
                                    {"a": "group 4\nx 1", "b": "group 2"}), 4)
        self.assertEqual(tool.group({}, {"a": "group 4", "b": "group 2",
                                         "c": ""}), 3)
        self.assertIsNone(tool.group({"a": ""}, {"a": ""}))

    def test_group_is_shown(self):
        """In the record and in a column."""
        self.machine.put(self.FILE % 0, "group 32")
        self.machine.program("fio", FAKE_FIO.replace(
            "read -r r a", "printf 'group 4\\nsample_ns %%s\\n' $$ >%s\n"
            "read -r r a" % (self.FILE % 0)))
        text = self.bench("--repeat", "1", "--policies", "always,adaptive")
        groups = {one["policy"]: one["group"]
                  for one in self.machine.records()}
        self.assertEqual(groups, {"always": None, "adaptive": 4})
        self.assertRegex(text, r"workload +policy .* group\n")

    def test_no_group(self):
        """A kernel whose file is not there."""
        self.bench("--repeat", "1", "--policies", "adaptive")
        self.assertIsNone(self.machine.records()[0]["group"])

    def test_report_says_it(self):
        """What the figures leave out."""
        text = self.bench("--repeat", "1", "--policies", "adaptive")
        self.assertIn("runs for a second that no figure counts", text)


class Counting(Case):
    """perf and the driver's doorbells, where they are."""

    def test_no_perf(self):
        """Said once; null in the records."""
        text = self.bench()
        self.assertEqual(text.count("perf is not installed"), 1)
        self.assertIsNone(self.machine.records()[0]["cycles_per_io"])

    def test_perf(self):
        """Counts per I/O; the tracepoint only in runs of its own."""
        self.machine.program("perf", FAKE_PERF)
        self.bench("--repeat", "1", "--runtime", "3")
        for one in self.machine.records():
            for name in ("insns_per_io", "cycles_per_io", "unplugs_per_io",
                         "ctx_switches_per_io"):
                self.assertEqual(one[name], 7000, name)
        self.assertEqual([one["--runtime"] for one in self.machine.log()],
                         ["1", "1", "3"] * 5)

    def test_perf_can_some(self):
        """The rest is left out and said once."""
        self.machine.program("perf", FAKE_PERF)
        self.machine.put("perf.cannot", "instructions\ncycles")
        text = self.bench()
        self.assertEqual(text.count("cannot count here: instructions, cycles"
                                    "\n"), 1)
        one = self.machine.records()[0]
        self.assertIsNone(one["insns_per_io"])
        self.assertEqual(one["unplugs_per_io"], 7000)

    def test_hybrid_cpu(self):
        """Two kinds of cores are added up; what was not counted is no 0."""
        values = load().perf_values(
            "# started\n\n5,,cpu_core/cycles/,1,50.00,,\n"
            "7,,cpu_atom/cycles/,1,50.00,,\n"
            "<not counted>,,instructions,0,100.00,,\n"
            "3,,context-switches:u,1,100.00,,\n")
        self.assertEqual(values, {"cycles": 12, "context-switches": 3})

    def test_doorbells(self):
        """Differences, of I/O queues only; counting is off in timed runs."""
        self.machine.put(DEBUG + "counting", "0")
        self.machine.put(DEBUG + "nvme0/doorbells",
                         "queue 0 doorbells 5 commands 5\n"
                         "queue 1 doorbells 100 commands 900")
        self.bench("--repeat", "1", "--policies", "always")
        self.assertEqual(self.machine.records()[0]["doorbells_per_io"], 0.031)
        self.assertEqual([one["counting"] for one in self.machine.log()],
                         ["0", "1", "0"])
        self.assertEqual(self.machine.get(DEBUG + "counting"), "0")

    def test_counting_is_restored(self):
        """On a failure, too."""
        self.machine.put(DEBUG + "counting", "0")
        self.machine.put(DEBUG + "nvme0/doorbells",
                         "queue 1 doorbells 100 commands 900")
        self.machine.put("fio.fail", "")
        self.bench(code=1)
        self.assertEqual(self.machine.get(DEBUG + "counting"), "0")


class Null(Case):
    """A disk of null_blk, made for the run."""

    CONFIG = "sys/kernel/config/nullb/"

    def setUp(self):
        super().setUp()
        machine = self.machine
        machine.put("null.py", NULL_TOOL % PLUGBENCH)
        machine.tool = machine.path("null.py")
        machine.put("sys/module/null_blk/x", "")
        machine.put(self.CONFIG + "features", "")
        machine.program("fio", FAKE_FIO.replace("nvme0n1", "plugnull"))
        # a virtual disk has no device, and null_blk no elevator by default
        os.unlink(machine.path("sys/block/nvme0n1/device"))
        machine.put(QUEUE + "scheduler", "[none] mq-deadline")

    def null(self, *words, code=0):
        """Run; stdout and stderr together. Whatever happens, it is gone."""
        got, out, errors = self.machine.run("--null", *SHORT, *words)
        self.assertEqual(got, code, out + errors)
        self.assertNotIn("Traceback", errors)
        self.check_removed()
        return out + errors

    def check_removed(self):
        """Neither the disk nor its directory."""
        self.assertEqual(os.listdir(self.machine.path(self.CONFIG)),
                         ["features"])
        self.assertFalse(os.path.exists(self.machine.path("dev/plugnull")))

    def test_policies(self):
        """All on offer, and nomerges2, on that disk."""
        self.null("--repeat", "1")
        self.assertEqual(
            [(one["policy"], one["nomerges"]) for one in self.machine.timed()],
            [("always", "0"), ("never", "0"), ("seq-small", "0"),
             ("adaptive", "0"), ("always", "2")])
        for one in self.machine.log():
            self.assertEqual(one["--filename"],
                             self.machine.path("dev/plugnull"))
        self.assertEqual({(one["profile"], one["kernel"]) for one in
                          self.machine.records("plugnull")},
                         {("null", "patched")})

    def test_attributes(self):
        """Set before the power."""
        self.null("--repeat", "1")
        log = self.machine.get("null.log").splitlines()
        self.assertIn("irqmode 0", log)
        self.assertIn("poll_queues 0", log)
        self.assertIn("hw_queue_depth 1023", log)
        self.assertEqual(log[-1], "power 1")

    def test_cache_misses(self):
        """Counted, shown, or said not to be there."""
        self.machine.program("perf", FAKE_PERF)
        text = self.null("--repeat", "1")
        self.assertIn("cache_misses_per_io", text)
        for one in self.machine.records("plugnull"):
            self.assertEqual(one["cache_misses_per_io"], 7000)
        self.machine.put("perf.cannot", "cycles\ncache-misses")
        self.assertIn("cannot count here: cycles, cache-misses",
                      self.null("--repeat", "1"))

    def test_unpatched(self):
        """A kernel without the series can be compared with itself."""
        os.unlink(self.machine.path(QUEUE + "plug_policy"))
        text = self.null("--repeat", "1")
        self.assertIn("no plug_policy", text)
        self.assertEqual(
            [(one["kernel"], one["policy"])
             for one in self.machine.records("plugnull")],
            [("unpatched", "always"), ("unpatched", "nomerges2")])

    def test_failure(self):
        """Of fio, and of an attribute."""
        self.machine.put("fio.fail", "")
        self.null(code=1)
        self.machine.put("null.py", NULL_TOOL.replace(
            "    write(path, value)", "    write(path + '/x', value)")
            % PLUGBENCH)
        self.assertIn("size/x", self.null(code=1))

    def test_signals(self):
        """One, and one who cannot wait."""
        for numbers in ([signal.SIGTERM], [signal.SIGHUP],
                        [signal.SIGINT, signal.SIGINT]):
            self.machine.put("fio.sleep", "")
            self.machine.put("fio.pids", "")
            with self.machine.start("--null", *SHORT) as process:
                while not self.machine.get("fio.pids"):
                    time.sleep(0.05)
                for number in numbers:
                    process.send_signal(number)
                    time.sleep(0.05)
                out, errors = finish(process)
            self.assertEqual(process.returncode, 130, out + errors)
            self.check_removed()

    def test_refused(self):
        """Each with what would help."""
        os.rename(self.machine.path("sys/module"),
                  self.machine.path("sys/modules"))
        self.assertIn("CONFIG_BLK_DEV_NULL_BLK", self.null(code=1))
        self.machine.program("modprobe", "#!/bin/sh\necho boom >&2; exit 1")
        self.assertIn("boom", self.null(code=1))
        os.rename(self.machine.path("sys/modules"),
                  self.machine.path("sys/module"))
        os.mkdir(self.machine.path(self.CONFIG + "plugnull"))
        got, out, errors = self.machine.run("--null", *SHORT)
        self.assertEqual(got, 1, out + errors)
        self.assertIn("another plugbench is running", errors)
        shutil.rmtree(self.machine.path(self.CONFIG))
        self.assertIn("mount -t configfs",
                      self.machine.run("--null", *SHORT)[2])

    def test_module(self):
        """Loaded without disks of its own, and unloaded."""
        shutil.rmtree(self.machine.path("sys/module"))
        self.machine.program("modprobe", "#!/bin/sh\n"
                             "echo $* >>$PLUGBENCH_ROOT/modprobe.log\n")
        self.null("--repeat", "1")
        self.assertEqual(self.machine.get("modprobe.log"),
                         "null_blk nr_devices=0\n-r null_blk")

    def test_signal_meanwhile(self):
        """One that comes while it is being removed changes nothing."""
        shutil.rmtree(self.machine.path("sys/module"))
        log = self.machine.path("modprobe.log")
        self.machine.program("modprobe", "#!/bin/sh\necho $* >>%s\nsleep 1\n"
                             "echo done >>%s\n" % (log, log))
        with self.machine.start("--null", "--dry-run", *SHORT) as process:
            for _ in range(200):
                if os.path.exists(log) and "-r" in self.machine.get(log):
                    break
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, errors = finish(process)
        self.assertEqual(process.returncode, 0, out + errors)
        self.assertEqual(self.machine.get(log).count("done"), 2)
        self.check_removed()

    def test_options(self):
        """Not with a disk, and it only reads."""
        for words, says in ((["/dev/nvme0n1", "--null"], "either"),
                            (["--null", "--write"], "no --write")):
            got, _, errors = self.machine.run(*words)
            self.assertEqual(got, 2)
            self.assertIn(says, errors)


def load():
    """plugbench as a module."""
    loader = importlib.machinery.SourceFileLoader("plugbench", PLUGBENCH)
    spec = importlib.util.spec_from_loader("plugbench", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
