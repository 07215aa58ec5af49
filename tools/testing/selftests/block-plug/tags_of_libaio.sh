#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: io_submit() tells the plug how many I/Os come, so that their tags
# are taken in batches.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

DISK=bp0
N=50

# batches SIZE CALLS: of io_submit(), and the calls for tags that each takes
batches()
{
	measure $DISK -e libaio -s "$1" -c "$1" -d "$1" -n $(($1 * N)) \
		/dev/$DISK || return
	expect_tag_calls $(($2 * N)) $(($2 * N)) 0
}

require root profiler plug_load null_blk
plan 3
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
check "4 I/Os per io_submit()" batches 4 1
check "32 I/Os per io_submit()" batches 32 1
check "128 I/Os per io_submit()" batches 128 4
finish
