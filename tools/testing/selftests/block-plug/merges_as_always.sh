#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
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

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
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
		expect_count "requests in $how" "$REQUESTS" "$expected" \
			"$expected"
	done
}

# No plug was there before.
in_the_first_plug()
{
	null_create bp4 submit_queues=1 && set_mode bp4 "$1" || return 1
	requests_for bp4 124k:4k*32-4k
	expect_count "requests" "$REQUESTS" 1 1
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
		expect_count "requests in $how" "$REQUESTS" 1 1
		expect_count "requests of the other" \
			$(($(requests_of bp2) - requests)) 1 1
	done
}

# A row of the table.
one()
{
	local what="$1"

	shift
	check "$what" merges "$@"
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
one "up"                       bp0 bp1  1  "$UP"
one "down"                     bp0 bp1  1 "$DOWN"
one "up and down"              bp0 bp1  1 1m:4k*16,1020k:4k*16-4k
one "up, 31 to a request"      bp2 bp3  2  "$UP"
one "down, 31 to a request"    bp2 bp3  2 "$DOWN"
one "several streams, one after the other" \
			       bp0 bp1  4 0:4k*8 4124k:4k*8-4k 8m:8k*8 \
	12400k:16k*8-16k
one "two streams, by turns"    bp0 bp1  0 0:4k*16,4m:4k*16
one "streams among others"     bp0 bp1 10 0:4k*4+1m 4m:4k*8 8m:16k*3+1m \
	12316k:4k*8-4k 16m:4k
one "streams among others, and by turns" \
			       bp0 bp1  0 0:4k*3+1m 4m:4k*7 8m:4k \
	12320k:4k*9-4k 17m:4k*4,17404k:4k*4-4k
one "nothing to merge"         bp0 bp1 32 0:4k*32+1m
one "halves of pages"          bp0 bp1 24 "$PAGES"
one "halves of pages, after one more" bp0 bp1 25 64m:4k "$PAGES"
# 128 pages in all, which are as many segments, and as many as a request has,
# where no two adjoin.
one "64K up"                   bp0 bp1  0 0:64k*8
one "64K down, and 96K"        bp0 bp1  0 448k:64k*8-64k 4480k:96k*5-96k
one "96K up"                   bp0 bp1  0 0:96k*5
one "128K up"                  bp0 bp1  0 0:128k*4
one "128K down"                bp0 bp1  0 384k:128k*4-128k
one "large ones among small ones" \
			       bp0 bp1  0 0:4k*6 4m:64k*3 8m:4k*3+1m \
	12536k:124k*3-124k 16m:4k*5
check "two disks by turns" of_two
# Halves of a page stay alone where the controller takes no gaps (Linux 6.12).
for disk in $NVME; do
	one "$disk: halves of pages" "$disk" "$disk" 24:48 "$PAGES"
	one "$disk: discards" "$disk" "$disk" 1:12 "$DISCARDS"
	for reads in 3 7; do
		one "$disk: discards behind $reads reads" "$disk" "$disk" \
			1:$((reads + 12)) 64m:4k*$reads+1m "$DISCARDS"
	done
done
finish
