# SPDX-License-Identifier: GPL-2.0
"""A fake disk, fake fio and fake perf for the tests of plugbench.

They need no privilege and touch nothing of the machine: plugbench gets a tree
of its own in place of /sys, /proc and /dev, and a PATH with fakes only.
"""
import contextlib
import fcntl
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from unittest import mock

from faketree import TOOLS
from plugtools.bench import plugbench
from plugtools.core.system import SIGNALS

PLUGBENCH = os.path.join(TOOLS, "plugbench")
QUEUE = "sys/block/nvme0n1/queue/"
DEBUG = "sys/kernel/debug/nvme_plug/"
SHORT = ["--runtime", "1", "--repeat", "1", "--workloads", "rand4k-s32",
         "--cpu", str(min(os.sched_getaffinity(0)))]

FIO_JSON = {"jobs": [{
    "error": 0, "usr_cpu": 10.0, "sys_cpu": 40.0, "ctx": 500,
    "mixed": {"iops": 1000.5, "total_ios": 1000, "lat_ns": {
        "mean": 5000.0, "percentile": {
            "50.000000": 4000, "99.000000": 9000, "99.900000": 11000}}}}]}

# Logs the settings in force, then does what the test asked for.
FAKE_FIO = """#!/bin/sh
cd "$PLUGTOOLS_ROOT" || exit 9
q=sys/block/nvme0n1/queue d=sys/kernel/debug/nvme_plug
line=
for name in plug_policy nomerges scheduler iostats; do
	read -r value <$q/$name
	line="$line${line:+ }${name#plug_}=$value"
done
echo "$line $*" >>fio.log
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
if [ -e $d/nvme0/doorbells ]; then
	while read -r _ _ _ n _; do rung=$n; done <$d/nvme0/doorbells
	printf 'queue 0 doorbells 9 commands 9\\nqueue 1 doorbells %s \
commands 1000\\n' $((rung + 31)) >$d/nvme0/doorbells
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
	if grep -qx "$event" "$PLUGTOOLS_ROOT/perf.cannot" 2>/dev/null; then
		echo "<not supported>,,$event,0,100.00,,"
	else
		echo "7000000,,$event,1,100.00,,"
	fi
done >"$out"
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


def state_of(pid):
    """The letter that ps shows; "" if there is no such process."""
    try:
        with open("/proc/%s/stat" % pid, encoding="ascii",
                  errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


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
        for name in ("sh", "cat", "sleep", "rm", "mkdir", "true", "grep"):
            os.symlink(shutil.which(name), os.path.join(self.bin, name))

    def path(self, name):
        """A path in the tree."""
        return os.path.join(self.root, name)

    def put(self, path, text):
        """Make a file."""
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(text + "\n")

    def get(self, path):
        """What a file holds."""
        with open(self.path(path), encoding="utf-8",
                  errors="surrogateescape") as file:
            return file.read().strip()

    def program(self, name, text):
        """A fake program."""
        self.put("bin/" + name, text)
        os.chmod(os.path.join(self.bin, name), 0o755)

    def start(self, *words, terminal=None):
        """plugbench in the background, on a terminal if there is one."""
        pipes = [subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE]
        stdin, out, errors = pipes if terminal is None else [terminal] * 3
        environment = dict(os.environ, PLUGTOOLS_ROOT=self.root,
                           PATH=self.bin)
        return subprocess.Popen(  # pylint: disable=W1509
            [sys.executable, self.tool, *words], cwd=self.root, text=True,
            env=environment, stdin=stdin, stdout=out, stderr=errors,
            start_new_session=terminal is not None, preexec_fn=None if
            terminal is None else lambda: fcntl.ioctl(0, termios.TIOCSCTTY))

    def run(self, *words):
        """Exit code, stdout, stderr; in this process, which is faster."""
        if self.tool != PLUGBENCH:
            with self.start(*words) as process:
                out, errors = finish(process)
            return process.returncode, out, errors
        with contextlib.ExitStack() as stack:
            for number in SIGNALS:
                stack.callback(signal.signal, number,
                               signal.getsignal(number))
            stack.callback(os.chdir, os.getcwd())
            os.chdir(self.root)
            stack.enter_context(mock.patch.dict(
                os.environ, PLUGTOOLS_ROOT=self.root, PATH=self.bin))
            out = stack.enter_context(
                contextlib.redirect_stdout(io.StringIO()))
            errors = stack.enter_context(
                contextlib.redirect_stderr(io.StringIO()))
            try:
                code = plugbench.main(list(words))
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), errors.getvalue()

    def log(self):
        """The runs of fio: {word: value} and its options."""
        if not os.path.exists(self.path("fio.log")):
            return []
        return [dict(word.partition("=")[::2] for word in line.split())
                for line in self.get("fio.log").splitlines()]

    def timed(self):
        """The runs that were not to warm up, where perf cannot count."""
        return self.log()[1::2]

    def snapshot(self):
        """Every file with what it holds, but for locks."""
        return {os.path.join(top, name): self.get(os.path.join(top, name))
                for top, _, names in os.walk(self.root) for name in names
                if "/bin" not in top and not name.endswith(".lock")}

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

    def wait_for(self, *names):
        """Until files of the tree hold something."""
        for _ in range(400):
            if all(os.path.exists(self.machine.path(name))
                   and self.machine.get(name) for name in names):
                return
            time.sleep(0.05)
        self.fail("no %s" % ", ".join(names))

    def check_gone(self, *pids):
        """No such process, or a zombie that init has yet to reap."""
        for pid in pids:
            state = "?"
            for _ in range(100):
                state = state_of(pid)
                if state in "Z":
                    break
                time.sleep(0.05)
            self.assertIn(state, "Z")
