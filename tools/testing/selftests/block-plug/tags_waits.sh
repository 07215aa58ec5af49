#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: tasks whose I/Os merge leave the tags to others: none of them is
# sent to a worker for want of a tag. Of other loads, some are; how many is
# shown.
#
# Guards against batches that take all that is free: two tasks that needed one
# tag each held all 64 until they had submitted; what came meanwhile got EAGAIN,
# and io_uring, which always tries without waiting first, gave it to a worker.

. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

EVENT=io_uring:io_uring_queue_async_work
# Of each task. Where time repeats, so does the count; with another number in
# BLOCK_PLUG_COUNTS it does not.
IOS=$((1600 - BATCH * (${BLOCK_PLUG_COUNTS:-1} - 1)))

need_worker_events()
{
	[ -e "$TRACEFS/events/io_uring/${EVENT#*:}" ] ||
		missing "no trace event $EVENT"
}

# waits DEPTH TASKS ACCESS MAX_KB SHARED
waits()
{
	local cpu task most=$(($2 * IOS))

	null_create bp0 hw_queue_depth="$1" submit_queues=1 irqmode=2 \
		completion_nsec=50000 shared_tags="$5" &&
	null_create bp1 shared_tags="$5" &&
	set_attr /sys/block/bp0/queue/max_sectors_kb "$4" || return
	# The first plug of each CPU takes a batch, whatever it merges.
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		taskset -c "$cpu" plug_load -a "$3" -d $BATCH -n $BATCH \
			/dev/bp0 >"$TMP/load$cpu" || return
	done
	trace_start $EVENT
	for task in $(seq "$2"); do
		background plug_load -a "$3" -d $BATCH -n $IOS -S "$task" \
			/dev/bp0 >"$TMP/load$task"
	done
	stop_jobs
	trace_end
	null_remove bp0
	null_remove bp1
	[ "$3$4" != seq128 ] || [ "$1" -lt $(($2 * 2)) ] || most=0
	expect_count "I/Os of $(($2 * IOS)) given to workers" \
		"$(grep -c "${EVENT#*:}: " "$TMP/trace")" 0 $most
}

require root trace plug_load taskset null_blk worker_events
plan 14
for depth in 2 64; do
	for tasks in 4 8; do
		check "depth $depth, $tasks tasks, one request of 32" \
			waits $depth $tasks seq 128 0
		check "depth $depth, $tasks tasks, two I/Os to a request" \
			waits $depth $tasks seq 8 0
		check "depth $depth, $tasks tasks, random" \
			waits $depth $tasks rand 128 0
	done
done
check "half of a shared set, 8 tasks, one request of 32" waits 64 8 seq 128 1
check "half of a shared set, 8 tasks, random" waits 64 8 rand 128 1
finish
