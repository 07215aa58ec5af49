#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: where an I/O scheduler limits the tags of writes, which therefore
# come singly, the reads between them get theirs in batches, as they do without
# the writes.
#
# Reproducer: the first write that was refused a batch ended the batches of the
# whole plug.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

DISK=bp0

# alternating FIRST SECOND: 16 I/Os of each kind in one plug, in turn, too far
# apart to merge
alternating()
{
	local list="" n=0

	while [ $n -lt $BATCH ]; do
		list="$list /dev/$DISK:$((n << 20)):4096$1"
		list="$list /dev/$DISK:$((n + 1 << 20)):4096$2"
		n=$((n + 2))
	done
	profile_start blk_mq_get_tags blk_mq_get_tag
	# shellcheck disable=SC2086 # a list
	submit_list $list || failed "submit_list: exit $?"
	profile_end
}

# kinds SCHEDULER FIRST SECOND
#
# Single tags are for the 16 writes, unless the scheduler does not limit these,
# and for the first read, before which the plug does not know whether its I/Os
# merge. That no write uses a read's is what scheduler_limit.sh tests.
kinds()
{
	set_attr /sys/block/$DISK/queue/scheduler "$1" || return
	alternating "$2" "$3"
	expect_count "single tags for 16 reads and 16 writes" \
		"$(profile_hits blk_mq_get_tag)" 0 18
}

need_submit_list()
{
	need_program submit_list
}

need_schedulers()
{
	modprobe -q mq-deadline 2>/dev/null
	null_create $DISK || { missing "cannot create a null_blk"; return; }
	set_attr /sys/block/$DISK/queue/scheduler mq-deadline ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
	use_kyber $DISK
}

require root profiler submit_list null_blk schedulers
plan 4
for scheduler in mq-deadline kyber; do
	check "$scheduler, a read first" kinds $scheduler "" :write
	check "$scheduler, a write first" kinds $scheduler :write ""
done
finish
