#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: when the mode changes while a plug holds requests, the requests
# of a submitter still leave in the order in which they were submitted.
#
# With nomerges=2 a sequential stream is one request per I/O, so their order
# shows in the sectors of the trace. That changes came while requests were held
# shows in the groups that the policy sent out: a group of an odd size is none
# of its own. Those of "adaptive" are pinned to the size of those of "seq-small".

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

TRIES=10

# Each echo is a write(2) of its own.
flip_until_stop()
{
	while [ ! -e "$TMP/stop" ]; do
		echo "$2"
		echo "$3"
	done >"$(knob "$1")"
}

one_run()
{
	rm -f "$TMP/stop"
	trace_start block:block_rq_issue blk_plug_policy:blk_plug_policy_group
	background flip_until_stop "$@"
	# On one CPU, so that the trace has one clock.
	PIN="taskset 1" load -r "$RW" -a seq -s $BATCH -c $BATCH -d 128 -n "$IOS" -z $((IOS * 4))k \
		"/dev/$1" || failed "the load failed"
	trace_end
	: >"$TMP/stop"
	wait "$JOB" || failed "a mode was refused"
	sectors >"$TMP/sectors"
}

# Sectors of the load's requests, in the order of their issue.
sectors()
{
	grep -F 'block_rq_issue:' "$TMP/trace" | grep -F '[plug_load]' |
		sed -e 's/ + .*//' -e 's/.* //'
}

# The first sector that is not beyond the one before it, if any.
first_out_of_order()
{
	awk 'NR > 1 && $1 <= last { print $1 " after " last; exit }
		{ last = $1 }' "$TMP/sectors"
}

# Groups that a change of mode cut short.
cut_groups()
{
	grep -c 'blk_plug_policy_group:.*nr=\([1-79]\|[1-3][0-9]\)$' \
		"$TMP/trace"
}

# keeps_order DISK MODE MODE READ|WRITE
keeps_order()
{
	local tries=$TRIES

	RW=$4
	# An nvme interrupt lets the other CPU in more often, in a guest.
	IOS=16384
	! is_nvme "$1" || IOS=8192
	set_attr "/sys/block/$1/queue/nomerges" 2 &&
	set_mode "$1" always && pin_group "$1" 8 || return 1
	while :; do
		one_run "$1" "$2" "$3"
		expect_text "request out of order" "$(first_out_of_order)" ""
		expect_count "requests in the trace" "$(wc -l <"$TMP/sectors")" \
			$IOS $IOS
		[ "$CASE_FAILED" -eq 0 ] || return
		[ "$(cut_groups)" -eq 0 ] || break
		tries=$((tries - 1))
		[ $tries -gt 0 ] || {
			skip_case "no change came while requests were held"
			return
		}
	done
	note "$(cut_groups) plugs held requests when the mode changed"
}

# One submitter on one queue: what leaves first arrives first.
make_disks()
{
	null_create bp0 submit_queues=1 && pin_static_keys
}

require root knob trace plug_load taskset null_blk
make_disks || ktap_exit_fail_msg "cannot create the disks"
DISKS="bp0 $(nvme_if_any)"
# shellcheck disable=SC2086 # a list
plan $((4 * $(count_words $DISKS)))
for disk in $DISKS; do
	prepare "$disk"
	check "$disk: between always and never, writes" \
		keeps_order "$disk" always never write
	check "$disk: between seq-small and never, writes" \
		keeps_order "$disk" seq-small never write
	check "$disk: between always and seq-small, reads" \
		keeps_order "$disk" always seq-small read
	check "$disk: between adaptive and never, writes" \
		keeps_order "$disk" adaptive never write
done
finish
