#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: tags are taken in batches from small tag maps, too, and no batch
# takes more than a quarter of them.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=100

# batches DEPTH
batches()
{
	local depth="$1" share=$(($1 / 4))

	[ $share -lt $BATCH ] || share=$BATCH
	null_create bp0 hw_queue_depth="$depth" submit_queues=1 || return
	measure bp0 -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) /dev/bp0 ||
		return
	null_remove bp0
	expect_count "calls for a batch of tags" "$TAG_BATCHES" \
		$((BATCH * N / share)) $((BATCH * N))
	expect_count "calls for a single tag" "$TAG_SINGLES" 0 $((BATCH * N / 8))
}

require root profiler plug_load null_blk
plan 7
for depth in 32 64 96 127 128 255 1023; do
	check "depth $depth" batches $depth
done
finish
