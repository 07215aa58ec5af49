#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: when the mode changes while a plug holds requests, these leave in
# the order in which they were submitted, and the new mode is for those that
# come when the plug is empty.
#
# The submitter changes the mode itself, in the middle of its submission, so
# that each run meets the change at the same place: after 12 of 32 requests.
# Changes that come from another CPU, at any instruction, are tried as well.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"
. "${0%/*}/policy_lib.sh"

BEFORE=12
AFTER=20
FLIPPED_IOS=8192

# expect_order PROGRAM IOS: its requests, in the trace, are issued in the order
# of their sectors
expect_order()
{
	grep -F 'block_rq_issue:' "$TMP/trace" | grep "^ *$1-" |
		sed -e 's/ + .*//' -e 's/.* //' >"$TMP/sectors"
	expect_text "request out of order" "$(awk '
		NR > 1 && $1 <= last { print $1 " after " last; exit }
		{ last = $1 }' "$TMP/sectors")" ""
	expect_count "requests in the trace" "$(wc -l <"$TMP/sectors")" \
		"$2" "$2"
}

# switched DISK FROM TO GROUP...: the sizes of the groups that are sent out,
# oldest first; "never" sends out no group
switched()
{
	local disk="$1" from="$2" to="$3"

	shift 3
	set_fresh "$disk" adaptive && pin_group "$disk" 5 &&
	set_mode "$disk" "$from" || return 1
	trace_start block:block_rq_issue block:block_unplug
	taskset 1 switch_in_plug "/dev/$disk" "$(knob "$disk")" \
		$BEFORE "$to" $AFTER || failed "switch_in_plug: exit $?"
	trace_end
	expect_order switch_in_plug $((BEFORE + AFTER))
	sed -n 's/.*block_unplug: \[switch_in_plug\] //p' "$TMP/trace" \
		>"$TMP/groups"
	expect_text "groups" "$(tr '\n' ' ' <"$TMP/groups")" "$* "
}

# Each echo is a write(2) of its own.
flip_until_stop()
{
	while [ ! -e "$TMP/stop" ]; do
		echo "$2"
		echo "$3"
	done >"$(knob "$1")"
}

# flipped DISK MODE MODE: with nomerges=2 a sequential stream is one request
# per I/O
flipped()
{
	rm -f "$TMP/stop"
	set_attr "/sys/block/$1/queue/nomerges" 2 &&
	set_mode "$1" adaptive && pin_group "$1" 5 &&
	set_mode "$1" "$2" || return 1
	trace_start block:block_rq_issue
	background flip_until_stop "$@"
	# On one CPU, so that the trace has one clock.
	PIN="taskset 1" load -r write -a seq -s $BATCH -c $BATCH -d 128 \
		-n $FLIPPED_IOS -z $((FLIPPED_IOS * 4))k "/dev/$1" ||
		failed "the load failed"
	trace_end
	: >"$TMP/stop"
	wait "$JOB" || failed "a mode was refused"
	set_attr "/sys/block/$1/queue/nomerges" 0
	expect_order plug_load $FLIPPED_IOS
}

turn()
{
	check "$1: $2, then $3" switched "$@"
}

each_switch()
{
	#    disk from      to        groups
	turn "$1" always    never     12
	turn "$1" always    seq-small 32
	turn "$1" always    adaptive  32
	turn "$1" never     always    20
	turn "$1" never     seq-small 8 8 4
	turn "$1" never     adaptive  5 5 5 5
	turn "$1" seq-small always    8 8 16
	turn "$1" seq-small never     8 4
	turn "$1" seq-small adaptive  8 8 5 5 5 1
	turn "$1" adaptive  always    5 5 5 17
	turn "$1" adaptive  never     5 5 2
	turn "$1" adaptive  seq-small 5 5 5 8 8 1
	check "$1: always and never flip" flipped "$1" always never
	check "$1: adaptive and never flip" flipped "$1" adaptive never
}

# One submitter on one queue: what leaves first arrives first.
require root knob debugfs trace plug_load switch_in_plug taskset null_blk \
	nvme_if_any
must null_create bp0 submit_queues=1
must pin_static_keys
DISKS="bp0 $NVME"
plan $((14 * $(count_words "$DISKS")))
for disk in $DISKS; do
	each_switch "$disk"
done
finish
