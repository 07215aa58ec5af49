#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: when the mode changes while a plug holds requests, these leave in
# the order in which they were submitted, and the new mode is for those that
# come when the plug is empty.
#
# The submitter changes the mode itself, in the middle of its submission, so
# that each run meets the change at the same place: after 12 of 32 requests.
# Changes that come from another CPU, at any instruction, are tried as well.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"
. "${0%/*}/policy_lib.sh"

# On one CPU, so that the trace has one clock.
PIN="taskset 1"
FLIPPED_IOS=8192

# expect_order PROGRAM IOS: its requests, in the trace, are issued in the order
# of their sectors
expect_order()
{
	trace_end
	grep -F 'block_rq_issue:' "$TMP/trace" | grep "^ *$1-" |
		sed -e 's/ + .*//' -e 's/.* //' >"$TMP/sectors"
	expect_text "request out of order" "$(awk '
		NR > 1 && $1 <= last { print $1 " after " last; exit }
		{ last = $1 }' "$TMP/sectors")" ""
	expect_count "requests in the trace" "$(wc -l <"$TMP/sectors")" "$2"
}

# switched FROM TO GROUP...: the sizes of the groups that are sent out, oldest
# first; "never" sends out no group
switched()
{
	local from="$1" to="$2"

	shift 2
	set_fresh "$DISK" 5 && set_mode "$DISK" "$from" || return 1
	trace_start block:block_rq_issue block:block_unplug
	submit -A "$DISK:0:4k*12+64k:write" "$(knob "$DISK"):0:0:=$to" \
		"$DISK:768k:4k*20+64k:write"
	expect_order submit_list 32
	expect_text "groups" "$(sed -n 's/.*block_unplug: \[submit_list\] //p' \
		"$TMP/trace" | tr '\n' ' ')" "$* "
}

# flipped MODE: and "never"; with nomerges=2 a sequential stream is one request
# per I/O
flipped()
{
	local knob

	knob=$(knob "$DISK")
	set_attr "/sys/block/$DISK/queue/nomerges" 2 && set_fresh "$DISK" 5 &&
	set_mode "$DISK" "$1" || return 1
	trace_start block:block_rq_issue
	until_stop write_in_turn "$knob=$1" "$knob=never"
	batches "$DISK" $((FLIPPED_IOS / BATCH)) -r write -a seq \
		-z $((FLIPPED_IOS * 4))k || failed "the load failed"
	stop_jobs
	set_attr "/sys/block/$DISK/queue/nomerges" 0
	expect_order plug_load $FLIPPED_IOS
}

turn()
{
	check "$DISK: $1, then $2" switched "$@"
}

# One submitter on one queue: what leaves first arrives first.
require root knob debugfs trace plug_load submit_list taskset null_blk \
	nvme_if_any
must null_create bp0 submit_queues=1
must pin_static_keys
plan $((14 * (1 + $(count_words "$NVME"))))
for DISK in bp0 $NVME; do
	#    from      to        groups
	turn always    never     12
	turn always    seq-small 32
	turn always    adaptive  32
	turn never     always    20
	turn never     seq-small 8 8 4
	turn never     adaptive  5 5 5 5
	turn seq-small always    8 8 16
	turn seq-small never     8 4
	turn seq-small adaptive  8 8 5 5 5 1
	turn adaptive  always    5 5 5 17
	turn adaptive  never     5 5 2
	turn adaptive  seq-small 5 5 5 8 8 1
	check "$DISK: always and never flip" flipped always
	check "$DISK: adaptive and never flip" flipped adaptive
done
finish
