#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: whoever writes a disk's plug_policy and plug_stats_enabled makes
# no write to the files of another disk of its tag set fail, and does not fail
# either.
#
# Reproducer: both held update_nr_hwq_lock, which others take by trylock.

. "${0%/*}/policy_lib.sh"

QUEUE=/sys/block/bpsib2/queue

# together [FILE=VALUE...]: what another disk writes, while four of ours write
# these under load; two of the other may make each other fail, so it is one
together()
{
	local n=0

	until_stop write_in_turn $QUEUE/scheduler=mq-deadline \
		$QUEUE/nr_requests=32 $QUEUE/scheduler=none $QUEUE/nr_requests=16
	while [ $# -gt 0 ] && [ $((n += 1)) -le 4 ]; do
		until_stop write_in_turn "$@"
	done
	load -s $BATCH -c $BATCH -d 128 -t 4 /dev/bpsib1 ||
		failed "the load failed"
	stop_jobs
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
must set_attr $QUEUE/nr_requests "$(attr $QUEUE/nr_requests)"
plan 3
check "a disk alone" together
check "with plug_stats_enabled of another" counting
check "with plug_policy of another" modes
finish
