#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: disks that share a tag set, as two namespaces of one controller
# do, take their tags in batches, and a flood to one disk does not take the
# share of the other.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

N=100

# All disks of this kind share one set, whose depth is the module's, 64 unless
# set. A share is half of it while both disks are in use, and has words of 16.
DEPTH=$(cat /sys/module/null_blk/parameters/hw_queue_depth 2>/dev/null)

# batches DISK...: no single tag for the 32 of a plug, once a plug has shown how
# many each disk uses
batches()
{
	load -s $BATCH -c $BATCH -d $BATCH -n $BATCH "$@" || return
	measure bp0 -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) "$@" ||
		return
	expect_tag_calls $((2 * N)) $((4 * N)) 0
}

# Eight tasks flood bp2, which completes I/O after 1 ms. The rate of bp3, with
# one task, is limited by its share: with all tags it would be the same. Where
# CPUs are slow, it is one task of nine that limits it; less than half of what
# that comes to would be starvation.
fair()
{
	local i modest flood

	null_create bp2 shared_tags=1 irqmode=2 completion_nsec=1000000 &&
	null_create bp3 shared_tags=1 irqmode=2 completion_nsec=1000000 ||
		return
	flood=$(requests_of bp2)
	modest=$(requests_of bp3)
	for i in 1 2 3 4 5 6 7 8; do
		background plug_load -t 3 -s 32 -c 32 -d 256 /dev/bp2 >"$TMP/flood$i"
	done
	plug_load -t 2 -s 16 -c 16 -d $((DEPTH / 2)) /dev/bp3 >"$TMP/modest" ||
		return
	flood=$(($(requests_of bp2) - flood))
	modest=$(($(requests_of bp3) - modest))
	note "$modest I/Os beside a flood of $flood"
	expect_count "I/Os beside a flood of $flood" "$modest" \
		$((flood / 18)) $((flood * 3))
}

require root profiler plug_load null_blk
plan 3
{ null_create bp0 shared_tags=1 && null_create bp1 shared_tags=1; } ||
	ktap_exit_fail_msg "cannot create the disks"
check "one of two disks" batches /dev/bp0
check "two disks in one plug" batches /dev/bp0 /dev/bp1
check "a flood leaves the other disk its share" fair
finish
