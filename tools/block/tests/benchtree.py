# SPDX-License-Identifier: GPL-2.0
"""A disk with fakes of fio and perf, for the tests of plugbench, which need no
privilege and touch nothing of this machine."""
import json
import os
import shutil

import fakehost
from plugtools.bench import plugbench
from plugtools.core.system import active

QUEUE = "sys/block/nvme0n1/queue/"
REAL_FIO = shutil.which("fio")
SHORT = ["--runtime", "1", "--repeat", "1", "--workloads", "rand4k-s32",
         "--cpu", str(min(os.sched_getaffinity(0)))]

FIO_JSON = {"jobs": [{
    "error": 0, "usr_cpu": 10.0, "sys_cpu": 40.0, "ctx": 500,
    "mixed": {"iops": 1000.5, "total_ios": 1000, "lat_ns": {
        "mean": 5000.0, "percentile": {
            "50.000000": 4000, "99.000000": 9000, "99.900000": 11000}}}}]}

# Logs the settings in force, then does what the test asked for; the real one
# reads job files, and tells of options.
FAKE_FIO = f"""#!/bin/sh
if [ "$1" = --version ]; then echo fio-${{FAKE_FIO-3.33}}; exit; fi
case $1 in --showcmd|--cmdhelp*|--enghelp*) exec {REAL_FIO} "$@" ;; esac
cd "$PLUGTOOLS_ROOT" || exit 9
q=sys/block/nvme0n1/queue d=sys/kernel/debug/block/nvme0n1
line=
for name in plug_policy nomerges scheduler iostats; do
	read -r value <$q/$name
	line="$line${{line:+ }}${{name#plug_}}=$value"
done
if [ -f $d/plug_stats_enabled ]; then
	read -r value <$d/plug_stats_enabled
	line="$line counting=$value"
fi
echo "$line $*" >>fio.log
for name in nr_requests async_depth wbt_lat_usec; do
	echo 1023 >$q/$name
done
if [ -f fio.vanish ]; then rm -rf sys/block/nvme0n1; exit 1; fi
if [ -f fio.fail ]; then echo "fio: boom" >&2; exit 1; fi
if [ -f fio.sleep ]; then
	trap ': >fio.told; exit 1' TERM
	[ -f fio.deaf ] && trap '' TERM
	sleep 300 &
	echo "$$ $!" >fio.pids
	wait
	wait
	exit 1
fi
read -r r a b c w rest <sys/block/nvme0n1/stat
echo "$((r + 500)) $a $b $c $w $rest" >sys/block/nvme0n1/stat
if [ "${{value-}}" = 1 ] && grep -q doorbells $d/hctx0/plug_stats; then
	while read -r _ n; do rung=$n; done <$d/hctx0/plug_stats
	printf 'flushes 7\\ndoorbells %s\\n' $((rung + 31)) >$d/hctx0/plug_stats
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
    # what a change of the scheduler resets
    QUEUE + "nr_requests": "100", QUEUE + "async_depth": "75",
    QUEUE + "wbt_lat_usec": "0", QUEUE + "iosched/read_expire": "777",
    "sys/block/nvme0n1/mq/0/cpu_list": "0",
    "sys/block/nvme0n1/stat": "100 0 0 0 50 0 0 0 0 0 0",
    "sys/block/nvme0n1/dev": "259:0", "sys/block/nvme0n1/size": "2097152",
    "sys/block/nvme0n1/ro": "0",
    "sys/block/nvme0n1/nvme0n1p1/partition": "1",
    "sys/block/nvme0n1/nvme0n1p1/dev": "259:1",
    "sys/class/nvme/nvme0/model": "Fake  SSD ",
    "sys/class/nvme/nvme0/firmware_rev": "1.0",
    "dev/nvme0n1": "", "dev/nvme0n1p1": "", "dev/other": "",
    "proc/self/mountinfo": "", "proc/swaps": ""}


class Machine(fakehost.Host):
    """The disk nvme0n1, and how to run plugbench on it."""

    def __init__(self, root):
        super().__init__(root)
        for path, text in FILES.items():
            self.put(path, text)
        self.link("sys/block/nvme0n1/device", "sys/class/nvme/nvme0")
        self.put("fio.json", json.dumps(FIO_JSON))
        self.program("fio", FAKE_FIO)
        self.borrow("sh", "cat", "sleep", "rm", "mkdir", "true", "grep")

    @staticmethod
    def run(*words):
        return fakehost.run(plugbench.main, words)

    def bench(self, *words, code=0):
        """Run with short defaults; stdout and stderr together."""
        return self.run("/dev/nvme0n1", *SHORT, *words).text(code)

    def begin(self, *words, until=None, **options):
        """plugbench, as far as until there is such a file."""
        process = self.start("plugbench", *words, **options)
        if until:
            fakehost.wait_until(lambda: self.get(until, ""), until)
        return process

    def log(self):
        """The runs of fio: {word: value} and its options."""
        return [dict(word.partition("=")[::2] for word in line.split())
                for line in self.get("fio.log", "").splitlines()]

    def timed(self):
        """The runs that were not to warm up, where perf cannot count."""
        return self.log()[1::2]

    def records(self):
        return json.loads(self.get("plugbench-nvme0n1.json"))["records"]

    def check_ended(self):
        """No fio is left, and the settings are as before."""
        self.check_gone(*self.get("fio.pids").split())
        self.check_restored()

    def check_restored(self, *disks):
        for disk in disks or ["nvme0n1"]:
            for name in ("plug_policy", "scheduler", "nomerges", "iostats",
                         "nr_requests", "async_depth", "wbt_lat_usec",
                         "iosched/read_expire"):
                now = self.get(f"sys/block/{disk}/queue/{name}")
                assert active(now) == active(FILES[QUEUE + name]), name

    def check_untouched(self, *words, code=2, says):
        """Refused with a message; nothing was changed or run."""
        before = self.snapshot()
        self.run(*words).fails(code, says)
        assert self.snapshot() == before
