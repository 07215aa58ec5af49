#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a plug that is told of more I/Os than one batch of tags takes all
# its tags in batches, not only the first 32.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

DISK=bp0
N=50

# batches SIZE CALLS: of so many I/Os each, and the calls that take their tags
batches()
{
	measure $DISK -s "$1" -c "$1" -d "$1" -n $(($1 * N)) /dev/$DISK ||
		return
	expect_tag_calls $(($2 * N)) $(($2 * N)) 0
}

require root profiler plug_load null_blk
plan 3
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
check "32 I/Os per plug" batches 32 1
check "64 I/Os per plug" batches 64 2
check "128 I/Os per plug" batches 128 4
finish
