#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a write does not get past an I/O scheduler's limit for writes by
# using a tag that was taken ahead for reads.
#
# Reproducer: any I/O of a plug used the requests that its first I/O had
# allocated. The limit is applied when a tag is taken, one at a time.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

# Older kernels' kyber limits no synchronous writes.
need_scheduler()
{
	modprobe -q mq-deadline 2>/dev/null
	null_create bp0 || { missing "cannot create a null_blk"; return; }
	set_attr /sys/block/bp0/queue/scheduler mq-deadline ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

# The second read may take tags for all I/Os after it, which are writes.
writes_after_reads()
{
	local list="/dev/bp0:0:4096 /dev/bp0:65536:4096" n=2

	while [ $n -lt 32 ]; do
		list="$list /dev/bp0:$((n * 65536)):4096:write"
		n=$((n + 1))
	done
	profile_start blk_mq_get_tag
	# shellcheck disable=SC2086 # a list
	submit_list $list || failed "submit_list: exit $?"
	profile_end
	expect_count "single tags for 2 reads and 30 writes" \
		"$(profile_hits blk_mq_get_tag)" 30 35
}

require root profiler null_blk scheduler
command -v submit_list >/dev/null || missing "no program submit_list"
require
plan 1
check "reads, then writes, in one plug" writes_after_reads
finish
