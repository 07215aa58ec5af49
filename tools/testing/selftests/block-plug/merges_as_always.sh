#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: from the first plug on, "adaptive", whatever the size of its
# groups, and "seq-small" make every merge that "always" makes.
#
# Each list of I/Os is one plug, submitted to a disk in the mode under test and
# to its twin on "always".
#
# Reproducers: the halves of a page, where blocks are smaller, were torn apart
# by a group that left with the first half; and of two disks that took turns,
# each one's requests pushed out those of the other.

. "${0%/*}/lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

PIN="taskset 1"

# requests_for DISK RUN...: sets REQUESTS to what becomes of them
requests_for()
{
	local disk="$1" first="$2"

	shift 2
	REQUESTS=$(requests_of "$disk")
	submit "$disk:$first" "$@"
	REQUESTS=$(($(requests_of "$disk") - REQUESTS))
}

# merges MODE DISK TWIN REQUESTS RUN...: 0 if it is the disk that decides
merges()
{
	local mode="$1" disk="$2" twin="$3" requests="$4" expected

	shift 4
	set_fresh "$disk" "$mode" && set_mode "$twin" always || return 1
	expect_in_force "$disk" "$mode"
	requests_for "$twin" "$@"
	expected=$REQUESTS
	requests_for "$disk" "$@"
	expect_count "requests in $mode" "$REQUESTS" "$expected" "$expected"
	[ "$requests" -eq 0 ] ||
		expect_count "requests on always" "$expected" \
			"$requests" "$requests"
}

# No plug was there before.
in_the_first_plug()
{
	null_create bp4 submit_queues=1 && set_mode bp4 "$1" || return 1
	requests_for bp4 124k:4k*32-4k
	expect_count "requests" "$REQUESTS" 1 1
	null_remove bp4
}

# at_each_size DISK TWIN RUN...
at_each_size()
{
	local disk="$1" twin="$2" size expected

	shift 2
	set_fresh "$disk" adaptive && set_mode "$twin" always || return 1
	requests_for "$twin" "$@"
	expected=$REQUESTS
	for size in 1 2 3 4 7 8 15 16 31; do
		pin_group "$disk" $size
		requests_for "$disk" "$@"
		expect_count "requests in groups of $size" "$REQUESTS" \
			"$expected" "$expected"
	done
	pin_group "$disk" 0
}

# of_two MODE SIZE: a plug of runs on two disks that take turns
of_two()
{
	local disk requests

	for disk in bp0 bp2; do
		set_fresh $disk "$1" || return 1
		[ "$2" -eq 0 ] || pin_group $disk "$2"
	done
	requests=$(($(requests_of bp0) + $(requests_of bp2)))
	submit bp0:0:4k*8,bp2:0:4k*8
	expect_count "requests of both" \
		$(($(requests_of bp0) + $(requests_of bp2) - requests)) 2 2
}

# one DESCRIPTION DISK TWIN REQUESTS RUN..., in MODE
one()
{
	local what="$1"

	shift
	check "$MODE: $what" merges "$MODE" "$@"
}

UP="0:4k*32"
DOWN="124k:4k*32-4k"
# Each half is an I/O.
PAGES="0:2k*24+1m,2k:2k*24+1m"

each_mode()
{
	MODE=$1
	check "$MODE: the first plug merges downwards" in_the_first_plug "$MODE"
	one "up"                       bp0 bp1  1  "$UP"
	one "down"                     bp0 bp1  1 "$DOWN"
	one "up and down"              bp0 bp1  1 1m:4k*16,1020k:4k*16-4k
	one "up, 31 to a request"      bp2 bp3  2  "$UP"
	one "down, 31 to a request"    bp2 bp3  2 "$DOWN"
	one "several streams, one after the other" \
		bp0 bp1 4 0:4k*8 4124k:4k*8-4k 8m:8k*8 12400k:16k*8-16k
	one "two streams, by turns"    bp0 bp1  0 0:4k*16,4m:4k*16
	one "streams among others" \
		bp0 bp1 10 0:4k*4+1m 4m:4k*8 8m:16k*3+1m 12316k:4k*8-4k 16m:4k
	one "nothing to merge"         bp0 bp1 32 0:4k*32+1m
	one "halves of pages"          bp0 bp1 24 "$PAGES"
	one "halves of pages, after one more" bp0 bp1 25 64m:4k "$PAGES"
	# 128 pages in all, which are as many segments, and as many as a request
	# has, where no two adjoin.
	one "64K up"                   bp0 bp1  0 0:64k*8
	one "64K down"                 bp0 bp1  0 448k:64k*8-64k
	one "96K up"                   bp0 bp1  0 0:96k*5
	one "128K up"                  bp0 bp1  0 0:128k*4
	one "128K down"                bp0 bp1  0 384k:128k*4-128k
	one "large ones among small ones" \
		bp0 bp1 0 0:4k*6 4m:64k*3 8m:4k*3+1m 12536k:124k*3-124k 16m:4k*5
	check "$MODE: two disks by turns" of_two "$MODE" 0
}

each_size()
{
	check "each size: up" at_each_size bp0 bp1  "$UP"
	check "each size: down" at_each_size bp0 bp1 "$DOWN"
	check "each size: up, 31 to a request" at_each_size bp2 bp3  "$UP"
	check "each size: several streams among others" \
		at_each_size bp0 bp1 0:4k*3+1m 4m:4k*7 8m:4k 12320k:4k*9-4k \
		17m:4k*4,17404k:4k*4-4k
	check "each size: large ones" at_each_size bp0 bp1 0:64k*8 4480k:96k*5-96k
	check "each size: halves of pages" at_each_size bp0 bp1 "$PAGES"
	for size in 1 2 3 8; do
		check "groups of $size: two disks by turns" \
			of_two adaptive $size
	done
}

require root knob debugfs submit_list taskset null_blk
plan 48
# bp0 and bp1 take 1 MiB in a request; bp2 and bp3 take 124 KiB, as a null_blk
# does that is not told, so that 32 I/Os of 4K become two requests.
for disk in bp0 bp1 bp2 bp3; do
	must null_create $disk submit_queues=1
done
must set_attr /sys/block/bp2/queue/max_sectors_kb 124
must set_attr /sys/block/bp3/queue/max_sectors_kb 124
each_mode adaptive
each_mode seq-small
each_size
finish
