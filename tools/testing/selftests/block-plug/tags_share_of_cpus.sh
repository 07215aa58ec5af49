#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: CPUs that take batches of tags from a shared set at the same time
# stay within the fair share of their disk.
#
# Reproducer: each CPU compared the share with what the others had taken, not
# with what they were about to take.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

DEPTH=$(cat /sys/module/null_blk/parameters/hw_queue_depth 2>/dev/null)
LOOKS=300

need_cpus()
{
	[ "$(nproc)" -ge 4 ] || missing "$(nproc) CPUs; 4 are needed, 8 better"
}

# The most that a look at bp0's hardware queue saw
watch()
{
	local n=0 most=0 now

	while [ $n -lt $LOOKS ]; do
		now=$(cat "$DEBUGFS/block/bp0/hctx0/active")
		[ "$now" -le "$most" ] || most=$now
		n=$((n + 1))
	done
	echo "$most"
}

# A single tag may be one too many for each CPU: its check and its count are two
# steps, too.
within_share()
{
	local share=$((DEPTH / 2)) cpu most

	background plug_load -t 20 -s 1 -c 1 -d 1 /dev/bp1 >"$TMP/other"
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		background taskset -c "$cpu" plug_load -t 20 -s $BATCH -c 1 \
			-d 128 /dev/bp0 >"$TMP/load$cpu"
	done
	sleep 1
	most=$(watch)
	note "at most $most of a share of $share were in use"
	expect_count "tags in use, of a share of $share" "$most" \
		$((share / 2)) $((share + $(nproc)))
}

require root debugfs plug_load taskset null_blk cpus
plan 1
for disk in bp0 bp1; do
	null_create $disk shared_tags=1 submit_queues=1 irqmode=2 \
		completion_nsec=1000000 ||
		ktap_exit_fail_msg "cannot create $disk"
done
check "a load on each CPU" within_share
finish
