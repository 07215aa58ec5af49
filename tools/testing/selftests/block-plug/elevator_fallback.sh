#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a disk with an I/O scheduler holds and merges as for "always" in
# every mode, says so, and goes back to its mode when the scheduler is gone.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

DISK=bp0
N=64
SCHEDULER=/sys/block/$DISK/queue/scheduler

need_scheduler()
{
	modprobe -q mq-deadline 2>/dev/null
	null_create $DISK || { missing "cannot create a null_blk"; return; }
	grep -qw mq-deadline $SCHEDULER ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

with_elevator()
{
	set_fresh $DISK "$1" && set_attr $SCHEDULER mq-deadline
}

without_elevator()
{
	set_fresh $DISK "$1" && set_attr $SCHEDULER none
}

# hold, merge and reason, as debugfs tells them
says()
{
	local why="elevator"

	[ "$1" != always ] || why="as set"
	with_elevator "$1" || return 1
	expect_effect $DISK "$1" "always ($why)" "all ($why)" elevator
	without_elevator "$1" || return 1
	expect_text "hold without elevator" "$(debugfs_line $DISK hold)" \
		"$1 (as set)"
	expect_text "fallback without elevator" \
		"$(attr "$(knob $DISK)_fallback")" none
}

# A plug bound for an elevator never uses queue_rqs(). That it was held shows
# in block_unplug, which tells how many requests the plug held.
holds()
{
	local groups

	with_elevator "$1" || return 1
	trace_start block:block_unplug blk_plug_policy:blk_plug_policy_group
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) /dev/$DISK || return
	trace_end
	groups=$(grep 'block_unplug:' "$TMP/trace" |
		 awk '$NF == 32' | wc -l)
	expect_count "plugs sent out with 32 requests" "$groups" \
		$((N - 3)) "$N"
	expect_text "groups sent out by the policy" \
		"$(grep -c blk_plug_policy_group: "$TMP/trace")" 0
}

merges()
{
	with_elevator "$1" || return 1
	measure $DISK -a seq -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		/dev/$DISK || return
	expect_io $((BATCH * N)) "$N" 0 $((BATCH * N))
}

returns_to_mode()
{
	with_elevator "$1" && without_elevator "$1" || return 1
	measure $DISK -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		/dev/$DISK || return
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($2 * N))
}

require root knob debugfs profiler trace plug_load null_blk scheduler
plan 16
for mode in always never seq-small adaptive; do
	check "$mode says that the elevator wins" says $mode
	check "$mode holds for an elevator" holds $mode
	check "$mode merges for an elevator" merges $mode
done
check "always returns when the elevator is gone" returns_to_mode always 1
check "never returns when the elevator is gone" returns_to_mode never 0
check "seq-small returns when the elevator is gone" returns_to_mode seq-small 4
check "adaptive returns when the elevator is gone" returns_to_mode adaptive 1
finish
