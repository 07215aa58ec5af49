#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a driver whose queue_rq() may sleep, or that has no queue_rqs(),
# holds and merges as for "always" in every mode, and says so.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=100

# says DISK MODE WHY
says()
{
	local why="$3"

	set_mode "$1" "$2" || return 1
	[ "$2" != always ] || why="as set"
	expect_effect "$1" "$2" "always ($why)" "all ($why)" \
		"$(echo "$3" | tr ' ' -)"
}

# A driver that may sleep is run from a worker, not by queue_rqs() nor past the
# plug: what the plug held is what block_unplug says.
holds()
{
	set_mode "$1" "$2" || return 1
	trace_start block:block_unplug
	shift 2
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) "$@" || return
	trace_end
	expect_count "plugs sent out with 32 requests" \
		"$(grep 'block_unplug:' "$TMP/trace" |
		   awk '$NF == 32' | wc -l)" $((N - 3)) "$N"
}

# merges DISK MODE REQUESTS LOOKUPS, per batch
merges()
{
	set_mode "$1" "$2" || return 1
	measure "$1" -a seq -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	expect_batches "requests for $((BATCH * N)) I/Os" "$REQUESTS" \
		$(($3 * N))
	expect_count "lookups for a merge" "$LOOKUPS" \
		$(($4 ? $4 * N - 3 : 0)) $(($4 * N))
}

# RWF_NOWAIT must not end up in a driver that sleeps.
nowait()
{
	set_mode bp0 "$1" || return 1
	load -N -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) /dev/bp0
}

make_disks()
{
	null_create bp0 blocking=1 &&
	truncate -s 16M "$TMP/file" && loop_create "$TMP/file" &&
	set_attr "/sys/block/$LOOP/queue/scheduler" none
}

require root knob debugfs profiler trace plug_load null_blk loop
plan 20
make_disks || ktap_exit_fail_msg "cannot create the disks"
for mode in always never seq-small adaptive; do
	check "$mode says that the driver blocks" \
		says bp0 $mode "blocking driver"
	check "$mode holds for a blocking driver" holds bp0 $mode /dev/bp0
	check "$mode completes NOWAIT I/O on a blocking driver" nowait $mode
	check "$mode says that loop has no queue_rqs()" \
		says "$LOOP" $mode "no queue_rqs"
done
check "always merges for a blocking driver" merges bp0 always 1 32
check "never merges for a blocking driver" merges bp0 never 1 32
check "seq-small merges for a blocking driver" merges bp0 seq-small 1 32
check "adaptive merges for a blocking driver" merges bp0 adaptive 1 32
finish
