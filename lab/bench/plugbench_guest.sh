#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: plugbench as an administrator runs it, on an emulated disk.
#
# plugbench_guest.sh [PLUGBENCH]
#
# PLUGBENCH lies beside plugtools [/plugbench]. Speaks TAP; exit 1 on a
# failure. The disk's scheduler, nomerges and iostats are set to what plugbench
# has to change, so that one sees them come back. At the end a file system is
# made on the disk, if it keeps data.
set -u

PLUGBENCH=${1:-/plugbench}
DISK=nvme0n1
DEV=/dev/$DISK
QUEUE=/sys/block/$DISK/queue
JSON=/tmp/plugbench.json
LOG=/tmp/plugbench.log
WORKLOADS=rand4k-s32,seq4k-s32,rand4k-qd1,libaio-rand4k-s32
POLICIES="$(sed 's/[][]//g' $QUEUE/plug_policy) nomerges2"
REPEAT=2
TESTS=12

# shellcheck source-path=SCRIPTDIR source=../qemu/tap.sh
. "${0%/*}/tap.sh"

plugbench()
{
	python3 "$PLUGBENCH" "$@" >"$LOG" 2>&1 </dev/null
}

settings()
{
	for name in plug_policy scheduler nomerges iostats nr_requests \
		    iosched/read_expire; do
		echo "$name $(cat "$QUEUE/$name")"
	done
}

preset()
{
	echo mq-deadline >$QUEUE/scheduler
	echo 777 >$QUEUE/iosched/read_expire
	echo 100 >$QUEUE/nr_requests
	echo 1 >$QUEUE/nomerges
	echo 0 >$QUEUE/iostats
	echo seq-small >$QUEUE/plug_policy
}

# Settings as preset, and no fio left.
as_before()
{
	settings >/tmp/settings.now
	diff /tmp/settings /tmp/settings.now >>"$LOG" && ! pidof fio >>"$LOG"
}

# Writes that the disk has completed, and their sectors.
written()
{
	awk '{ print $5, $7 }' /sys/block/$DISK/stat
}

measure()
{
	plugbench $DEV --runtime 1 --repeat $REPEAT --workloads "$WORKLOADS" \
		--json $JSON --cpu 1
	result $? "plugbench measures"
	sed 's/^/# /' "$LOG"
	as_before
	result $? "settings are restored after success"
}

# Each policy and workload has its runs, and the figures are sane.
check_json()
{
	python3 - "$WORKLOADS" "$POLICIES" $REPEAT >"$LOG" 2>&1 <<-END
	import json, sys
	workloads, policies = sys.argv[1].split(","), sys.argv[2].split()
	records = json.load(open("$JSON"))["records"]
	want = sorted((w, p, r) for w in workloads for p in policies
	              for r in range(int(sys.argv[3])))
	got = sorted((r["workload"], r["policy"], r["run"]) for r in records)
	assert got == want, (got, want)
	for one in records:
	    assert one["iops"] > 0 and one["lat_us"]["p99"] > 0, one
	    assert 0 < one["doorbells_per_io"] <= 1.1, one
	    assert one["requests_per_io"] > 0, one
	END
	result $? "the JSON has every policy, workload and run"
}

# The settings did reach the disk: doorbells and merges differ as they must.
check_effect()
{
	python3 - >"$LOG" 2>&1 <<-END
	import json
	mean = {}
	for one in json.load(open("$JSON"))["records"]:
	    key = one["workload"], one["policy"]
	    mean.setdefault(key, []).append(one)
	def of(workload, policy, name):
	    found = [one[name] for one in mean[workload, policy]]
	    return sum(found) / len(found)
	for policy in "always", "never", "seq-small", "nomerges2":
	    print(policy, of("rand4k-s32", policy, "doorbells_per_io"),
	          of("seq4k-s32", policy, "requests_per_io"))
	bells = "rand4k-s32", "doorbells_per_io"
	assert of(bells[0], "never", bells[1]) > 0.9
	assert of(bells[0], "always", bells[1]) < 0.1
	merged = "seq4k-s32", "requests_per_io"
	assert of(merged[0], "always", merged[1]) < 0.5
	assert of(merged[0], "nomerges2", merged[1]) > 0.9
	END
	status=$?
	sed 's/^/# /' "$LOG"
	result $status "doorbells and merges are those of the policies"
}

# begin: starts a run of plugbench as $pid, and waits until fio runs
begin()
{
	rm -f $JSON
	# A background job of sh ignores SIGINT, which it would inherit.
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execvp(sys.argv[1], sys.argv[1:])' \
		python3 "$PLUGBENCH" $DEV --runtime 30 --json $JSON --cpu 1 \
		>"$LOG" 2>&1 </dev/null &
	pid=$!
	tries=600
	until pidof fio >/dev/null || [ $tries = 0 ]; do
		tries=$((tries - 1))
		sleep 0.1
	done
	sleep 1
}

# interrupted SIGNAL: while fio runs
interrupted()
{
	begin
	cat $QUEUE/scheduler $QUEUE/nomerges >>"$LOG"
	grep -q '^\[none\]\|^none' $QUEUE/scheduler
	changed=$?
	kill -s "$1" $pid
	wait $pid
	status=$?
	echo "exit $status, scheduler was changed: $changed" >>"$LOG"
	[ $status = 130 ] && [ $changed = 0 ] && as_before && ! [ -e $JSON ]
	result $? "SIG$1: exit 130, settings restored, no fio left"
}

# Nobody can catch SIGKILL, but a child of plugbench sees it.
killed()
{
	begin
	kill -s KILL $pid
	tries=300
	until as_before || [ $tries = 0 ]; do
		tries=$((tries - 1))
		sleep 0.1
	done
	as_before
	result $? "SIGKILL: settings restored, no fio left"
}

refuse_write()
{
	before=$(written)
	plugbench $DEV --workloads mix70-s32 --json $JSON
	status=$?
	[ $status = 2 ] && grep -q 'needs --write' "$LOG" && as_before
	result $? "a workload that writes is refused without --write"

	plugbench $DEV --write --workloads mix70-s32 --json $JSON
	status=$?
	[ $status = 2 ] && grep -q 'needs --yes' "$LOG" && as_before
	result $? "--write is refused without --yes"

	# Held, not mounted: what a mount does to the disk, without writing.
	python3 -c "import os, time
os.open('$DEV', os.O_RDONLY | os.O_EXCL)
time.sleep(600)" &
	holder=$!
	sleep 5
	plugbench $DEV --workloads rand4k-s32 --json $JSON
	status=$?
	[ $status = 1 ] && grep -q -e --force "$LOG" && as_before
	result $? "a disk in use is not read without --force"
	plugbench $DEV --write --yes --workloads mix70-s32 --json $JSON
	status=$?
	kill $holder
	[ $status = 1 ] && grep -q 'refused' "$LOG" && as_before &&
		[ "$before" = "$(written)" ]
	result $? "--write is refused on a disk in use, nothing is written"
}

refuse_mounted()
{
	title="--write is refused on a mounted disk, nothing is written"
	mkdir -p /tmp/mnt
	if ! mke2fs $DEV >"$LOG" 2>&1 ||
	   ! mount -t ext4 -o ro $DEV /tmp/mnt >>"$LOG" 2>&1; then
		result 0 "$title # SKIP this disk keeps no file system"
		return
	fi
	before=$(written)
	plugbench $DEV --write --yes --workloads mix70-s32 --json $JSON
	status=$?
	[ $status = 1 ] && grep -q 'refused.*mounted on /tmp/mnt' "$LOG" &&
		as_before && [ "$before" = "$(written)" ]
	result $? "$title"
	umount /tmp/mnt
}

echo "TAP version 13"
echo "1..$TESTS"
preset
settings >/tmp/settings
sed 's/^/# preset: /' /tmp/settings
measure
check_json
check_effect
interrupted INT
interrupted TERM
killed
refuse_write
refuse_mounted
[ $N = $TESTS ] || echo "# $N of $TESTS tests ran"
[ $FAILED = 0 ] && [ $N = $TESTS ]
