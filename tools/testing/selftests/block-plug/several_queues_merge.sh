#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: where several disks share a plug, a bio merges into the newest
# request of its disk.
#
# Reproducer: the search stopped at the oldest request of that disk, so that
# nothing merged any more once that request was full.

. "${0%/*}/null_blk_lib.sh"

# merges REQUESTS RUN...
merges()
{
	local before expected="$1"

	before=$(requests_of "bp[0-3]")
	shift
	submit "$@"
	expect_count "requests" $(($(requests_of "bp[0-3]") - before)) "$expected"
}

require root submit_list null_blk
plan 5
# A request takes two I/Os.
for disk in bp0 bp1 bp2 bp3; do
	must null_create "$disk"
	must set_attr "/sys/block/$disk/queue/max_sectors_kb" 8
done
check "one disk" merges 16 bp0:0:4k*32
check "two disks by turns" merges 16 bp0:0:4k*16,bp1:0:4k*16
check "four disks by turns" \
	merges 16 bp0:0:4k*8,bp1:0:4k*8,bp2:0:4k*8,bp3:0:4k*8
check "two disks, two full plugs" merges 64 bp0:0:4k*64,bp1:0:4k*64
check "a sequence that another disk's interrupted goes on" \
	merges 4 bp0:0:4k*3 bp1:0:4k*2+64k bp0:12k:4k
finish
