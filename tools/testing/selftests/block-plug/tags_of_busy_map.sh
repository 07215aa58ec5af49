#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: tags are taken in batches from a busy tag map, too, while it has
# more free tags than a batch wants.
#
# Reproducer: batches left half of each word to those who take single tags: once
# half of the tags were in use, no batch was to be had, and each one asked for in
# vain.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

# In flight for so long, in ns, that the submission of all takes less, also where
# the CPU is emulated.
LONG=30000000

# busy DEPTH SIZE IN_FLIGHT: of the tags of a plug, all but the first come in
# batches; one more may miss them.
busy()
{
	local ios=$(($3 * 20 / $2 * $2)) batched

	null_create bp0 hw_queue_depth="$1" submit_queues=1 irqmode=2 \
		completion_nsec=$LONG || return
	measure bp0 -s "$2" -c "$2" -d "$3" -n $ios /dev/bp0 || return
	null_remove bp0
	batched=$(((ios - TAG_SINGLES) * $2 / ios))
	note "$batched of $2 in batches, $TAG_BATCHES calls for $((ios / $2)) plugs"
	expect_count "tags of $2 that came in batches" $batched \
		$(($2 - 2)) "$2"
}

# Of the whole map: with all in flight, no more than a plug's tags are free.
levels()
{
	check "depth $1, half in flight, $2 per plug" busy "$1" "$2" $(($1 / 2))
	check "depth $1, three quarters, $2 per plug" \
		busy "$1" "$2" $(($1 * 3 / 4))
	check "depth $1, all but a plug's, $2 per plug" \
		busy "$1" "$2" $(($1 - $2))
}

require root profiler plug_load null_blk
plan 12
levels 128 8
levels 128 32
levels 256 8
levels 256 32
finish
