#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: requests of a disk without a scheduler are issued in groups,
# although the plug held one of a disk with a scheduler before its last flush.
#
# Reproducer: what a plug had learnt of its requests outlived its flush: one bio
# for a disk with a scheduler, or for another disk, marked all that followed.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"

# The first group, of several queues, is of 64; what follows, of 32.
IOS=319

# one_and_many FIRST DISK: one I/O for FIRST, then IOS for DISK; random enough
# not to merge
one_and_many()
{
	local n=0

	LIST="/dev/$1:0:4096"
	while [ $n -lt $IOS ]; do
		LIST="$LIST /dev/$2:$((n * 65536)):4096"
		n=$((n + 1))
	done
}

# groups FIRST DISK LEAST [MOST]: calls of queue_rqs() for all requests
groups()
{
	local driver

	driver=$(driver_of "$2")
	one_and_many "$1" "$2"
	profile_start "${driver}_queue_rqs"
	# shellcheck disable=SC2086 # a list
	submit_list $LIST || failed "submit_list: exit $?"
	profile_end
	expect_count "calls of ${driver}_queue_rqs() for $IOS requests" \
		"$(profile_hits "${driver}_queue_rqs")" "$3" "${4:-$3}"
}

elevator()
{
	set_attr /sys/block/bp0/queue/scheduler mq-deadline &&
	groups bp0 "$1" "$2"
	set_attr /sys/block/bp0/queue/scheduler none
}

# shellcheck disable=SC2046 # a list
make_disks()
{
	null_create bp0 && null_create bp1 && null_create bp2 || return 1
	grep -qw mq-deadline /sys/block/bp0/queue/scheduler ||
		ktap_exit_fail_msg "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

require root profiler null_blk
command -v submit_list >/dev/null || missing "no program submit_list"
require
NVME=$(nvme_if_any)
# shellcheck disable=SC2086 # one word per disk
plan $((3 + $(count_words $NVME)))
make_disks || ktap_exit_fail_msg "cannot create the disks"
# 64 for the scheduler's sake not in a group, then 8 times 32
check "a disk with a scheduler, then one without" elevator bp1 8
check "without a scheduler: all in groups" groups bp1 bp1 10
# 1 and 63, in older kernels not in groups, then 8 times 32
check "two disks: limits of one disk after the flush" groups bp2 bp1 8 10
for disk in $NVME; do
	prepare "$disk"
	check "a disk with a scheduler, then $disk" elevator "$disk" 8
done
finish
