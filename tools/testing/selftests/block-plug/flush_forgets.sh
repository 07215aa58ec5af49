#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: requests of a disk without a scheduler are issued in groups,
# although the plug held one of a disk with a scheduler before its last flush.
#
# Reproducer: what a plug had learnt of its requests outlived its flush: one bio
# for a disk with a scheduler, or for another disk, marked all that followed.

. "${0%/*}/measure_lib.sh"

# groups FIRST SCHEDULER DISK LEAST [MOST]: calls of queue_rqs() for one I/O of
# the first disk, then 319 of the other; no two merge
groups()
{
	set_attr "/sys/block/$1/queue/scheduler" "$2" || return
	measure "$3" submit "$1:0:4k" "$3:64k:4k*319+64k"
	set_attr "/sys/block/$1/queue/scheduler" none
	expect_count "calls of queue_rqs() for 319 requests" \
		"$HELD_GROUPS" "$4" "${5-}"
}

require root profiler submit_list null_blk deadline nvme_if_any
must null_create bp0
must null_create bp1
must null_create bp2
plan $((3 + $(count_words "$NVME")))
# 64, not in a group for the scheduler's sake, then 8 times 32
check "a disk with a scheduler, then one without" \
	groups bp0 mq-deadline bp1 8
check "without a scheduler: all in groups" groups bp1 none bp1 10
# 1 and 63, in older kernels not in groups, then 8 times 32
check "two disks: limits of one disk after the flush" groups bp2 none bp1 8 10
for disk in $NVME; do
	check "a disk with a scheduler, then $disk" \
		groups bp0 mq-deadline "$disk" 8
done
finish
