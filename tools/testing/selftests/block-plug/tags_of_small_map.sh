#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: tags are taken in batches from small tag maps, too, with one call
# for each word of the map that a batch needs.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=100

# batches DEPTH CALLS MOST [SINGLES MOST]: for the 32 tags of a plug
#
# A word has a quarter of the bits, rounded down to a power of two, and batches
# take half of it. All are free where null_blk completes I/O as it is issued.
# Where the word is short from which the plug's first tag was taken, a batch
# needs one more. In a map of 32 batches have 16, and the others come singly.
batches()
{
	null_create bp0 hw_queue_depth="$1" submit_queues=1 || return
	measure bp0 -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) /dev/bp0 ||
		return
	null_remove bp0
	expect_tag_calls $(($2 * N)) $(($3 * N)) \
		$((${4:-1} * N)) $((${5:-1} * N))
}

require root profiler plug_load null_blk
plan 7
check "depth 32, words of 8" batches 32 5 7 16 18
check "depth 64, words of 16" batches 64 4 4
check "depth 96, words of 16" batches 96 4 4
check "depth 127, words of 16, one of 15" batches 127 4 5
check "depth 128, words of 32" batches 128 2 3
check "depth 255, words of 32, one of 31" batches 255 2 3
check "depth 1023, words of 64, one of 63" batches 1023 1 2
finish
