#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a write does not get past an I/O scheduler's limit for writes by
# using a tag that was taken ahead for reads.
#
# Reproducer: any I/O of a plug used the requests that its first I/O had
# allocated. The limit is applied when a tag is taken, one at a time.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=100

need_kyber()
{
	null_create bp0 || { missing "cannot create a null_blk"; return; }
	use_kyber bp0
}

writes_of()
{
	stat_field "$1" 5
}

half_writes()
{
	local writes

	writes=$(writes_of bp0)
	measure bp0 -m 50 -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) \
		/dev/bp0 || return
	writes=$(($(writes_of bp0) - writes))
	expect_count "writes" "$writes" $((BATCH * N / 3)) $((BATCH * N))
	expect_count "single tags for $writes writes" "$TAG_SINGLES" \
		"$writes" $((BATCH * N))
}

require root profiler plug_load null_blk kyber
plan 1
check "reads and writes in one plug" half_writes
finish
