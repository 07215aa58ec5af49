#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: rq_qos policies are told of requests that carried an I/O only.
#
# Reproducer: what a plug had allocated ahead and did not use was freed as if it
# had completed: 32 calls for 32 I/Os that had merged into one request.

. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

calls()
{
	local requests

	requests=$(requests_of bp0)
	profile_start __rq_qos_done
	plugs $BATCH bp0 100 -a seq || return
	profile_end
	requests=$(($(requests_of bp0) - requests))
	expect_count "calls of rq_qos_done() for $requests requests" \
		"$(profile_hits __rq_qos_done)" "$requests"
}

require root profiler plug_load null_blk wbt
must null_create bp0
echo 75000 >/sys/block/bp0/queue/wbt_lat_usec
plan 1
check "sequential I/Os that merge" calls
finish
