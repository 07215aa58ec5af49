#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: two disks that take turns in one plug both get their tags in
# batches.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=50

# batches SIZE: of so many I/Os each, half of them to each disk
batches()
{
	measure bp0 -s "$1" -c "$1" -d "$1" -n $(($1 * N)) \
		/dev/bp0 /dev/bp1 || return
	expect_count "calls for a batch of tags" "$TAG_BATCHES" \
		$(($1 * N / BATCH)) $(($1 * N / 4))
	expect_count "calls for a single tag" "$TAG_SINGLES" 0 $((N * 3))
}

require root profiler plug_load null_blk
plan 3
{ null_create bp0 && null_create bp1; } ||
	ktap_exit_fail_msg "cannot create the disks"
for size in 32 64 128; do
	check "$size I/Os per plug" batches $size
done
finish
