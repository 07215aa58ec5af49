#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The job of blktests.py's guest: SECONDS TEST...
#
# Says what check says of each test, and indented, as check has it, what a test
# that failed has printed and which settings a test has not put back.

settings()
{
	ls /sys/block /sys/kernel/tracing/instances /sys/kernel/config/nullb
	grep . /sys/block/nvme0n1/queue/scheduler \
		/sys/block/nvme0n1/queue/plug_policy \
		/sys/module/nvme/parameters/write_queues \
		/proc/sys/kernel/io_uring_disabled /proc/mounts
} 2>/tmp/errors

# After the test $1
say_more()
{
	for bad in results/*/"$1".out.bad; do
		[ ! -e "$bad" ] || sed 's/^/    saw: /' "$bad"
	done
	settings >/tmp/after
	# busybox: diff -u
	diff /tmp/before /tmp/after | sed -n "s,^[-+][^-+],    left by $1: &,p"
	mv /tmp/after /tmp/before
}

seconds=$1
shift
ln -s /proc/self/fd /dev/fd
cd /blktests || exit
echo 'TEST_DEVS=(/dev/nvme0n1)' >config
settings >/tmp/before
for test; do
	{
		timeout "$seconds" bash ./check "$test" 2>&1
		say_more "$test"
	} | tee "$VERDICT"
done
