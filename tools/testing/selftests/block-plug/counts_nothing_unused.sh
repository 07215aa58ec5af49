#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: where "adaptive" is not in force, since another mode is, or an
# elevator is there, or the driver may sleep or takes no groups, nothing is
# counted, sampled, tried, sent out in groups, or shown.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

NOT_THERE="Operation not supported"

# expect_off DISK: all hardware queues say nothing else
expect_off()
{
	expect_text "plug_adaptive of $1" \
		"$(cat "$DEBUGFS/block/$1"/hctx*/plug_adaptive | sort -u)" \
		"state off"
}

# expect_nothing DISK: under a load that begins a trial elsewhere
expect_nothing()
{
	expect_off "$1"
	trace_start blk_plug_policy:blk_plug_policy_sample \
		blk_plug_policy:blk_plug_policy_decide
	# shellcheck disable=SC2086 # a list of options
	load $RANDOM_IO -n 20000 "/dev/$1" &&
	load -a seq -s $BATCH -c $BATCH -d 128 -n 20000 "/dev/$1" || return
	trace_end
	expect_text "samples and decisions" \
		"$(grep -c 'policy_\(sample\|decide\):' "$TMP/trace")" 0
	expect_off "$1"
}

# expect_something DISK: or the cases above show nothing
expect_something()
{
	watch
	# shellcheck disable=SC2086 # a list of options
	load $RANDOM_IO -n 20000 "/dev/$1" || return
	trace_end
	expect_count "samples" "$(samples nr | wc -l)" 1 1000
}

# What it has learnt is not shown, and not gone on with.
other_mode()
{
	set_fresh bp0 adaptive && expect_something bp0 &&
	set_mode bp0 "$1" || return 1
	expect_in_force bp0 "$1"
	expect_nothing bp0
}

elevator()
{
	set_fresh bp0 adaptive && expect_something bp0 &&
	set_attr /sys/block/bp0/queue/scheduler mq-deadline || return 1
	expect_text "hold" "$(debugfs_line bp0 hold)" "always (elevator)"
	expect_nothing bp0
	set_attr /sys/block/bp0/queue/scheduler none &&
	expect_something bp0
}

# elevator_first: "adaptive" comes when the elevator is there
elevator_first()
{
	null_create bp2 submit_queues=1 &&
	set_attr /sys/block/bp2/queue/scheduler mq-deadline &&
	set_mode bp2 adaptive || return 1
	expect_nothing bp2
	set_attr /sys/block/bp2/queue/scheduler none &&
	expect_something bp2
	null_remove bp2
}

# never_in_force DISK WHY: there is nothing to pin, either
never_in_force()
{
	set_mode "$1" adaptive || return 1
	expect_text "hold" "$(debugfs_line "$1" hold)" "always ($2)"
	expect_nothing "$1"
	ensure_write_fails "$DEBUGFS/block/$1/hctx0/plug_adaptive" 8 \
		"$2" "$NOT_THERE"
	ensure_write_fails "$DEBUGFS/block/$1/hctx0/plug_adaptive" 0 \
		"$2" "$NOT_THERE"
	set_mode "$1" always
}

make_disks()
{
	null_create bp0 submit_queues=1 && null_create bp1 blocking=1 &&
	null_create bp3 memory_backed=1 size=32 &&
	truncate -s 64M "$TMP/file" && loop_create "$TMP/file" &&
	set_attr "/sys/block/$LOOP/queue/scheduler" none
}

need_scheduler()
{
	modprobe -q mq-deadline 2>/dev/null
	grep -qw mq-deadline /sys/block/bp0/queue/scheduler ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

require root knob debugfs trace plug_load taskset null_blk loop
make_disks || ktap_exit_fail_msg "cannot create the disks"
require scheduler
plan 8
for mode in always never seq-small; do
	check "on $mode" other_mode $mode
done
check "with an elevator" elevator
check "with an elevator that was there first" elevator_first
check "with a driver that may sleep" never_in_force bp1 "blocking driver"
check "with memory behind null_blk" never_in_force bp3 "blocking driver"
check "with a driver that takes no groups" never_in_force "$LOOP" "no queue_rqs"
finish
