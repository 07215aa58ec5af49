#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: two disks that take turns in one plug both get their tags in
# batches.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=50

# batches SIZE CALLS MOST: of so many I/Os each, half of them to each disk, which
# both take batches for half of what is to come
batches()
{
	measure bp0 -s "$1" -c "$1" -d "$1" -n $(($1 * N)) \
		/dev/bp0 /dev/bp1 || return
	expect_tag_calls $(($2 * N)) $(($3 * N)) $N
}

require root profiler plug_load null_blk
plan 3
{ null_create bp0 && null_create bp1; } ||
	ktap_exit_fail_msg "cannot create the disks"
check "32 I/Os per plug" batches 32 2 4
check "64 I/Os per plug" batches 64 2 4
check "128 I/Os per plug" batches 128 4 8
finish
