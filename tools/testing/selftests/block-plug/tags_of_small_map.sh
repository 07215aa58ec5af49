#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: tags are taken in batches from small tag maps, too, with one call
# for each word of the map that a batch needs.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

N=100

# batches DEPTH CALLS [MOST [SINGLES]]: for the 32 tags of a plug
#
# A word has a quarter of the bits, rounded down to a power of two, and one call
# takes what is free in it. All are free where null_blk completes I/O as it is
# issued. A word may be short, so that one tag is left to be taken alone.
batches()
{
	null_create bp0 hw_queue_depth="$1" submit_queues=1 || return
	measure bp0 -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) /dev/bp0 ||
		return
	null_remove bp0
	expect_tag_calls $(($2 * N)) $((${3:-$2} * N)) 0 $((${4:-0} * N))
}

require root profiler plug_load null_blk
plan 7
check "depth 32, words of 8" batches 32 4
check "depth 64, words of 16" batches 64 2
check "depth 96, words of 16" batches 96 2
check "depth 127, words of 16, one of 15" batches 127 2 3 1
check "depth 128, words of 32" batches 128 1
check "depth 255, words of 32, one of 31" batches 255 1 2 1
check "depth 1023, words of 64, one of 63" batches 1023 1
finish
