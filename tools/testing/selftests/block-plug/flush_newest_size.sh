#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a plug is flushed when its newest request has reached 128 KiB,
# wherever its oldest one stands.
#
# Reproducer: since the plug's list is first in, first out, the size test looked
# at the oldest request, and large requests behind a small one were held.

. "${0%/*}/measure_lib.sh"

# groups WHAT NUMBER RUN...: of 32 I/Os, which lie too far from each other to
# merge
groups()
{
	local what="$1" nr="$2"

	shift 2
	row "$what" "" "REQUESTS=32 HELD_GROUPS=$nr" submit "$@"
}

require root counts submit_list null_blk
plan 6
groups "small ones only: held"	      1 bp0:0:4k*32+1m
groups "large ones only: one by one" 32 bp0:0:128k*32+1m
groups "a small one, then large ones" 31 bp0:0:4k 1m:128k*31+1m
groups "a large one, then small ones" 2 bp0:0:128k 1m:4k*31+1m
groups "small ones, then large ones" 16 bp0:0:4k*16+1m 16m:128k*16+1m
groups "one large one among small ones" 2 bp0:0:4k*16+1m 16m:128k 17m:4k*15+1m
finish
