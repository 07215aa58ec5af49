#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: tasks whose I/Os merge leave the tags to others: none of them is
# sent to a worker for want of a tag.
#
# Guards against batches that take all that is free: two tasks that needed one
# tag each held all 64 until they had submitted; what came meanwhile got EAGAIN,
# and io_uring gave it to a worker.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

TASKS=8

need_worker_events()
{
	[ -e "$TRACEFS/events/io_uring/io_uring_queue_async_work" ] ||
		missing "no trace event io_uring:io_uring_queue_async_work"
}

sequential_tasks()
{
	local i

	trace_start io_uring:io_uring_queue_async_work
	for i in $(seq $TASKS); do
		background plug_load -a seq -s $BATCH -c $BATCH -d $BATCH \
			-t 3 /dev/bp0 >"$TMP/load$i"
	done
	for i in $JOBS; do
		wait "$i" || failed "a load failed"
	done
	JOBS=
	trace_end
	expect_count "I/Os of $TASKS tasks given to workers" \
		"$(grep -c io_uring_queue_async_work: "$TMP/trace")" 0 0
}

require root trace plug_load null_blk worker_events
plan 1
null_create bp0 hw_queue_depth=64 submit_queues=1 irqmode=2 \
	completion_nsec=100000 || ktap_exit_fail_msg "cannot create the disk"
check "64 tags, $TASKS tasks that use one each" sequential_tasks
finish
