#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: two disks that take turns in one plug both get their tags in
# batches, and no more of them than they use.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

N=50

# How many tags a plug uses is known to each CPU by itself.
PIN="taskset 1"

# batches SIZE CALLS: of so many I/Os each, half of them to each disk, once a plug
# has shown how many that is. null_blk gives each tag back alone, whether it was
# used or not.
batches()
{
	load -s "$1" -c "$1" -d "$1" -n "$1" /dev/bp0 /dev/bp1 || return
	profile_start blk_mq_get_tags blk_mq_get_tag blk_mq_put_tag
	load -s "$1" -c "$1" -d "$1" -n $(($1 * N)) /dev/bp0 /dev/bp1 || return
	profile_end
	expect_batches "calls for a batch of tags" \
		"$(profile_hits blk_mq_get_tags)" $(($2 * N))
	expect_count "calls for a single tag" \
		"$(profile_hits blk_mq_get_tag)" 0 3
	expect_count "tags taken for $(($1 * N)) I/Os" \
		"$(profile_hits blk_mq_put_tag)" $(($1 * N)) $(($1 * N + 3))
}

require root profiler plug_load taskset null_blk
plan 3
{ null_create bp0 && null_create bp1; } ||
	ktap_exit_fail_msg "cannot create the disks"
check "32 I/Os per plug" batches 32 2
check "64 I/Os per plug" batches 64 2
check "128 I/Os per plug" batches 128 4
finish
