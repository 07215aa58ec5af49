#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: I/O that completes in a batch, or alone, is in the statistics of
# the disk, all of it and once, and so is its time: reads and writes, for which
# a batch changes its kind.

. "${0%/*}/null_blk_lib.sh"

N=1600

# gained FIELD: of /sys/block/bp0/stat, since $TMP/before
gained()
{
	echo $(($(stat_field bp0 "$1") - $(awk -v n="$1" '{ print $n }' \
		"$TMP/before")))
}

# counts MIN MAX [ARG...]: so many writes, the rest reads. One poll finds 32.
counts()
{
	local reads writes ms min="$1" max="$2"

	shift 2
	cp /sys/block/bp0/stat "$TMP/before" &&
		plugs 32 bp0 $((N / 32)) "$@" || return
	reads=$(gained 1)
	writes=$(gained 5)
	expect_count "writes" "$writes" "$min" "$max"
	expect_count "I/Os" $((reads + writes)) $N
	expect_count "sectors read" "$(gained 3)" $((8 * reads))
	expect_count "sectors written" "$(gained 7)" $((8 * writes))
	expect_count "in flight" "$(stat_field bp0 9)" 0
	# of the load, rounded up, in each of whose ms there are 32 at most
	ms=$(($(sed 's/.* ns=\([0-9]*\) .*/\1/' "$TMP/load") / 1000000 + 1))
	expect_count "ms of I/O" $(($(gained 4) + $(gained 8))) 0 $((32 * ms))
}

require root plug_load null_blk
must null_create bp0 poll_queues=1 submit_queues=1
plan 4
check "reads" counts 0 0 -P
check "writes" counts $N $N -P -r write
check "reads and writes" counts $((N / 4)) $((3 * N / 4)) -P -m 50
check "reads and writes, alone" counts $((N / 4)) $((3 * N / 4)) -m 50
finish
