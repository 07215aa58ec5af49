#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: CPUs that take batches of tags from a shared set at the same time
# stay within the fair share of their disk.
#
# Reproducer: each CPU compared the share with what the others had taken, not
# with what they were about to take.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"

DEPTH=$(cat /sys/module/null_blk/parameters/hw_queue_depth 2>/dev/null)
LOOKS=200

need_cpus()
{
	[ "$(nproc)" -ge 4 ] || missing "$(nproc) CPUs; 4 are needed, 8 better"
}

both_active()
{
	grep -q "^active_queues=2$" "$DEBUGFS/block/bp0/hctx0/tags"
}

# The most that a look at bp0's hardware queue saw. While bp1 counts as idle,
# which it does if the timer finds it so, its share is bp0's.
watch()
{
	local n=0 most=0 now

	while [ $n -lt $LOOKS ]; do
		n=$((n + 1))
		both_active || continue
		sleep 0.01
		now=$(cat "$DEBUGFS/block/bp0/hctx0/active")
		both_active && [ "$now" -gt "$most" ] && most=$now
	done
	echo "$most"
}

bp1_has_read()
{
	[ "$(stat_field bp1 1)" -gt 0 ]
}

# A single tag may be one too many for each CPU: its check and its count are two
# steps, too.
within_share()
{
	local share=$((DEPTH / 2)) cpu most

	background plug_load -t 25 -s 1 -c 1 -d 8 /dev/bp1 >"$TMP/other"
	wait_for 20 bp1_has_read || return
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		background taskset -c "$cpu" plug_load -t 25 -s $BATCH -c 1 \
			-d 128 /dev/bp0 >"$TMP/load$cpu"
	done
	sleep 1
	most=$(watch)
	note "at most $most of a share of $share were in use"
	expect_count "tags in use, of a share of $share" "$most" \
		$((share / 2)) $((share + $(nproc)))
}

make_disk()
{
	null_create "$1" shared_tags=1 submit_queues=1 irqmode=2 \
		completion_nsec="$2" ||
		ktap_exit_fail_msg "cannot create $1"
}

require root debugfs plug_load taskset null_blk cpus
plan 1
make_disk bp0 1000000
# Always something in flight, so that it seldom counts as idle.
make_disk bp1 50000000
check "a load on each CPU" within_share
finish
