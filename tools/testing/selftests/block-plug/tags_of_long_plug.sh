#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a plug that is told of more I/Os than one batch of tags takes all
# its tags in batches, not only the first 32.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

DISK=bp0
N=50

# batches SIZE: of so many I/Os each
batches()
{
	measure $DISK -s "$1" -c "$1" -d "$1" -n $(($1 * N)) /dev/$DISK ||
		return
	expect_tags $DISK $(($1 * N))
}

# Merged I/Os need no request. Those allocated for them serve the next I/Os.
merged()
{
	set_attr /sys/block/$DISK/queue/max_sectors_kb 8 || return
	measure $DISK -a seq -s 128 -c 128 -d 128 -n $((128 * N)) /dev/$DISK ||
		return
	set_attr /sys/block/$DISK/queue/max_sectors_kb 128
	expect_tags $DISK $((64 * N))
}

require root profiler plug_load null_blk
plan 4
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
for size in 32 64 128; do
	check "$size I/Os per plug" batches $size
done
check "128 I/Os per plug, two per request" merged
finish
