#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: io_submit() tells the plug how many I/Os come, so that their tags
# are taken in batches.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

DISK=bp0
N=50

batches()
{
	measure $DISK -e libaio -s "$1" -c "$1" -d "$1" -n $(($1 * N)) \
		/dev/$DISK || return
	expect_count "calls for a batch of tags" "$TAG_BATCHES" "$N" $(($1 * N / 4))
	expect_count "calls for a single tag" "$TAG_SINGLES" 0 1
}

require root profiler plug_load null_blk
plan 3
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
for size in 4 32 128; do
	check "$size I/Os per io_submit()" batches $size
done
finish
