#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest of blktests.py: WANTED SECONDS TEST:NAME...  Speaks TAP: a test is good
# if WANTED, passed or failed, is what blktests' check says of it, and if it puts back
# all that it sets.

# shellcheck source-path=SCRIPTDIR source=../../lab/qemu/tap.sh
. "${0%/*}/tap.sh"

LOG=/tmp/said

settings()
{
	ls /sys/block /sys/kernel/tracing/instances /sys/kernel/config/nullb
	grep . /sys/block/nvme0n1/queue/scheduler \
		/sys/block/nvme0n1/queue/plug_policy \
		/sys/module/nvme/parameters/write_queues \
		/proc/sys/kernel/io_uring_disabled /proc/mounts
} 2>/tmp/errors

# is WANTED TEST
is()
{
	timeout "$seconds" bash ./check "$2" >"$LOG" 2>&1
	settings >/tmp/after
	diff -u /tmp/before /tmp/after | sed -n 's/^[-+][^-+]/left behind: &/p' >>"$LOG"
	mv /tmp/after /tmp/before
	grep -q "\[$1\]\$" "$LOG" && ! grep -q '^left behind' "$LOG"
}

wanted=$1 seconds=$2
shift 2
ln -s /proc/self/fd /dev/fd
cd /blktests || exit
echo 'TEST_DEVS=(/dev/nvme0n1)' >config
settings >/tmp/before
for test; do
	check "$test $wanted" is "$wanted" "${test%:*}"
done
echo "1..$N"
exit $FAILED
