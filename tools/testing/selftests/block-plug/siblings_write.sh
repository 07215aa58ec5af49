#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: whoever writes a disk's plug_policy and plug_stats_enabled makes
# no write to the files of another disk of its tag set fail, and does not fail
# either.
#
# Reproducer: both held update_nr_hwq_lock, which others take by trylock.

. "${0%/*}/lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

SECONDS_EACH=4

# turns NAME FILE=VALUE...: writes these in turn; says how often, and how many
# of them failed
turns()
{
	local name="$1" failed=0 all=0 pair

	shift
	while [ ! -e "$TMP/stop" ]; do
		for pair; do
			all=$((all + 1))
			echo "${pair#*=}" 2>"$TMP/error.$name" \
				>"${pair%%=*}" || failed=$((failed + 1))
		done
	done
	echo "$failed $all" >"$TMP/turns.$name"
}

# expect_no_failure NAME: of the writes of turns()
expect_no_failure()
{
	local failed all

	read -r failed all <"$TMP/turns.$1"
	note "$1: $failed of $all writes failed"
	expect_count "$1: writes" "$all" 4 100000000
	expect_count "$1: failures of $all writes" "$failed" 0 0
}

start()
{
	background turns "$@"
	RUNNING="$RUNNING $JOB"
	NAMES="$NAMES $1"
}

# together [FILE=VALUE...]: what another disk writes, while four of ours write
# these under load; two of the other may make each other fail, so it is one
together()
{
	local queue=/sys/block/bpsib2/queue n=0 name

	rm -f "$TMP/stop"
	RUNNING=
	NAMES=
	start sibling $queue/scheduler=mq-deadline $queue/nr_requests=32 \
		$queue/scheduler=none $queue/nr_requests=16
	while [ $# -gt 0 ] && [ $n -lt 4 ]; do
		n=$((n + 1))
		start ours$n "$@"
	done
	load -s $BATCH -c $BATCH -d 128 -t $SECONDS_EACH /dev/bpsib1 ||
		failed "the load failed"
	: >"$TMP/stop"
	# shellcheck disable=SC2086 # a list
	wait $RUNNING
	for name in $NAMES; do
		expect_no_failure "$name"
	done
}

counting()
{
	local file="$DEBUGFS/block/bpsib1/plug_stats_enabled"

	[ -e "$file" ] || { skip_case "no $file"; return; }
	set_attr "$file" 0
	together "$file=1" "$file=0"
}

modes()
{
	local mode knob turns=''

	knob=$(knob bpsib1)
	set_attr "$knob" always
	for mode in $(modes_of bpsib1); do
		turns="$turns $knob=$mode"
	done
	# shellcheck disable=SC2086 # a list
	together $turns
}

require root knob debugfs plug_load null_blk deadline
must null_create bpsib1 shared_tags=1
must null_create bpsib2 shared_tags=1
# The set of tags outlives the disks: it gets its size back.
file=/sys/block/bpsib2/queue/nr_requests
must set_attr $file "$(attr $file)"
plan 3
check "a disk alone" together
check "with plug_stats_enabled of another" counting
check "with plug_policy of another" modes
finish
