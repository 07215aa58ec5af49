#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: from the first plug on, "adaptive", whatever the size of its
# groups, and "seq-small" make every merge that "always" makes, of discards as
# well.
#
# Each list of I/Os is one plug, submitted to a disk in each mode and size, and
# to its twin on "always".
#
# Reproducers: the halves of a page, where blocks are smaller, were torn apart
# by a group that left with the first half; of two disks that took turns, each
# one's requests pushed out those of the other; and where a plug's 32 I/Os became
# two requests, of 31 I/Os and of one, these were sent out one by one.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/policy_lib.sh"

PIN="taskset 1"

# requests_for DISK RUN...: sets REQUESTS to what becomes of them
requests_for()
{
	local disk="$1" first="$2"

	shift 2
	REQUESTS=$(stat_field "$disk" 1 5 12)
	submit "$disk:$first" "$@"
	REQUESTS=$(($(stat_field "$disk" 1 5 12) - REQUESTS))
}

# merges DISK TWIN LEAST[:MOST] RUN...: requests on "always"; 0 if it is the disk
# that decides
merges()
{
	local disk="$1" twin="$2" range="$3" how expected

	shift 3
	set_mode "$twin" always || return
	requests_for "$twin" "$@"
	expected=$REQUESTS
	[ "$range" = 0 ] || expect_count "requests on always" "$expected" \
		"${range%:*}" "${range#*:}"
	for how in adaptive seq-small 1 2 3 4 7 8 15 16 31; do
		set_fresh "$disk" $how || return
		requests_for "$disk" "$@"
		expect_count "requests in $how" "$REQUESTS" "$expected"
	done
}

# No plug was there before.
in_the_first_plug()
{
	null_create bp4 submit_queues=1 && set_mode bp4 "$1" || return 1
	requests_for bp4 124k:4k*32-4k
	expect_count "requests" "$REQUESTS" 1
	null_remove bp4
}

# A plug of runs on two disks that take turns.
of_two()
{
	local how requests

	for how in adaptive seq-small 1 2 3 8; do
		set_fresh bp0 $how && set_fresh bp2 $how || return
		requests=$(requests_of bp2)
		requests_for bp0 0:4k*8,bp2:0:4k*8
		expect_count "requests in $how" "$REQUESTS" 1
		expect_count "requests of the other" \
			$(($(requests_of bp2) - requests)) 1
	done
}

need_discards()
{
	local disk

	for disk in $NVME; do
		[ "$(cat "/sys/block/$disk/queue/discard_max_bytes")" -gt 0 ] ||
			missing "$disk does not discard"
	done
}

UP="0:4k*32"
DOWN="124k:4k*32-4k"
# Each half is an I/O.
PAGES="0:2k*24+1m,2k:2k*24+1m"
DISCARDS="0:64k*24+64k:discard"

require root knob debugfs submit_list taskset null_blk nvme_if_any discards
plan $((21 + 4 * $(count_words "$NVME")))
# bp0 and bp1 take 1 MiB in a request; bp2 and bp3 take 124 KiB, as a null_blk
# does that is not told, so that 32 I/Os of 4K become two requests.
for disk in bp0 bp1 bp2 bp3; do
	must null_create $disk submit_queues=1
done
must set_attr /sys/block/bp2/queue/max_sectors_kb 124
must set_attr /sys/block/bp3/queue/max_sectors_kb 124

check "adaptive: the first plug merges downwards" in_the_first_plug adaptive
check "seq-small: the first plug merges downwards" in_the_first_plug seq-small
check "up"                     merges bp0 bp1  1  "$UP"
check "down"                   merges bp0 bp1  1 "$DOWN"
check "up and down"            merges bp0 bp1  1 1m:4k*16,1020k:4k*16-4k
check "up, 31 to a request"    merges bp2 bp3  2  "$UP"
check "down, 31 to a request"  merges bp2 bp3  2 "$DOWN"
check "several streams, one after the other" \
			       merges bp0 bp1  4 0:4k*8 4124k:4k*8-4k 8m:8k*8 \
	12400k:16k*8-16k
check "two streams, by turns"  merges bp0 bp1  0 0:4k*16,4m:4k*16
check "streams among others"   merges bp0 bp1 10 0:4k*4+1m 4m:4k*8 8m:16k*3+1m \
	12316k:4k*8-4k 16m:4k
check "streams among others, and by turns" \
			       merges bp0 bp1  0 0:4k*3+1m 4m:4k*7 8m:4k \
	12320k:4k*9-4k 17m:4k*4,17404k:4k*4-4k
check "nothing to merge"       merges bp0 bp1 32 0:4k*32+1m
check "halves of pages"        merges bp0 bp1 24 "$PAGES"
check "halves of pages, after one more" merges bp0 bp1 25 64m:4k "$PAGES"
# 128 pages in all, which are as many segments, and as many as a request has,
# where no two adjoin.
check "64K up"                 merges bp0 bp1  0 0:64k*8
check "64K down, and 96K"      merges bp0 bp1  0 448k:64k*8-64k 4480k:96k*5-96k
check "96K up"                 merges bp0 bp1  0 0:96k*5
check "128K up"                merges bp0 bp1  0 0:128k*4
check "128K down"              merges bp0 bp1  0 384k:128k*4-128k
check "large ones among small ones" \
			       merges bp0 bp1  0 0:4k*6 4m:64k*3 8m:4k*3+1m \
	12536k:124k*3-124k 16m:4k*5
check "two disks by turns" of_two
# Halves of a page stay alone where the controller takes no gaps (Linux 6.12).
for disk in $NVME; do
	check "$disk: halves of pages" merges "$disk" "$disk" 24:48 "$PAGES"
	check "$disk: discards" merges "$disk" "$disk" 1:12 "$DISCARDS"
	for reads in 3 7; do
		check "$disk: discards behind $reads reads" merges "$disk" \
			"$disk" 1:$((reads + 12)) 64m:4k*$reads+1m "$DISCARDS"
	done
done
finish
