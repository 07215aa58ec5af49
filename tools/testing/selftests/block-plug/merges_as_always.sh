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

# bp0 and bp1 take 1 MiB in a request; bp2 and bp3 take 124 KiB, as a null_blk
# does that is not told, so that 32 I/Os of 4K become two requests.
SMALL_KB=124

# --- lists of I/Os: "OFFSET:SIZE ..." ---------------------------------------
# Parts lie far from each other. All sizes are in KiB.

# io OFFSET SIZE
io()
{
	LIST="$LIST $(((NEXT * 4096 + $1) * 1024)):$(($2 * 1024))"
}

# up SIZE COUNT
up()
{
	local n=0

	while [ $n -lt "$2" ]; do
		io $((n * $1)) "$1"
		n=$((n + 1))
	done
	NEXT=$((NEXT + 1))
}

# down SIZE COUNT
down()
{
	local n="$2"

	while [ "$n" -gt 0 ]; do
		n=$((n - 1))
		io $((n * $1)) "$1"
	done
	NEXT=$((NEXT + 1))
}

# both SIZE COUNT: from the middle, by turns up and down
both()
{
	local n=0

	while [ $n -lt "$2" ]; do
		io $((1024 + n * $1)) "$1"
		n=$((n + 1))
		io $((1024 - n * $1)) "$1"
	done
	NEXT=$((NEXT + 1))
}

# far SIZE COUNT: none adjoins another
far()
{
	local n="$2"

	while [ "$n" -gt 0 ]; do
		up "$1" 1
		n=$((n - 1))
	done
}

# turns STREAMS SIZE COUNT: streams that take turns
turns()
{
	local n=0 stream first=$NEXT

	while [ $n -lt "$3" ]; do
		stream=0
		while [ $stream -lt "$1" ]; do
			NEXT=$((first + stream))
			io $((n * $2)) "$2"
			stream=$((stream + 1))
		done
		n=$((n + 1))
	done
	NEXT=$((first + $1))
}

# pairs COUNT: halves of pages that lie far from each other
pairs()
{
	local n="$1"

	while [ "$n" -gt 0 ]; do
		up 2 2
		n=$((n - 1))
	done
}

# list PART...: "up 4 32" ...
list()
{
	local part

	LIST=
	NEXT=0
	for part; do
		$part
	done
}

# --- comparing --------------------------------------------------------------

# requests_for DISK: sets REQUESTS to what becomes of LIST
requests_for()
{
	local one ios=

	for one in $LIST; do
		ios="$ios /dev/$1:$one"
	done
	REQUESTS=$(requests_of "$1")
	# shellcheck disable=SC2086 # a list
	$PIN submit_list $ios || failed "submit_list: exit $?"
	REQUESTS=$(($(requests_of "$1") - REQUESTS))
}

# merges MODE DISK TWIN REQUESTS PART...: 0 if it is the disk that decides
merges()
{
	local mode="$1" disk="$2" twin="$3" requests="$4"

	shift 4
	list "$@"
	set_fresh "$disk" "$mode" && set_mode "$twin" always || return 1
	expect_in_force "$disk" "$mode"
	requests_for "$twin"
	EXPECTED=$REQUESTS
	requests_for "$disk"
	expect_count "requests in $mode" "$REQUESTS" \
		"$EXPECTED" "$EXPECTED"
	[ "$requests" -eq 0 ] ||
		expect_count "requests on always" "$EXPECTED" \
			"$requests" "$requests"
}

# No plug was there before.
in_the_first_plug()
{
	null_create bp4 submit_queues=1 && set_mode bp4 "$1" || return 1
	list "down 4 32"
	requests_for bp4
	expect_count "requests" "$REQUESTS" 1 1
	null_remove bp4
}

# at_each_size DISK TWIN PART...
at_each_size()
{
	local disk="$1" twin="$2" size

	shift 2
	list "$@"
	set_fresh "$disk" adaptive && set_mode "$twin" always || return 1
	requests_for "$twin"
	EXPECTED=$REQUESTS
	for size in 1 2 3 4 7 8 15 16 31; do
		pin_group "$disk" $size
		requests_for "$disk"
		expect_count "requests in groups of $size" "$REQUESTS" \
			"$EXPECTED" "$EXPECTED"
	done
	pin_group "$disk" 0
}

# --- two disks --------------------------------------------------------------

# of_two MODE SIZE: a plug of runs on two disks that take turns
of_two()
{
	local n=0 ios='' disk

	for disk in bp0 bp2; do
		set_fresh $disk "$1" || return 1
		[ "$2" -eq 0 ] || pin_group $disk "$2"
	done
	while [ $n -lt 8 ]; do
		for disk in bp0 bp2; do
			ios="$ios /dev/$disk:$((n * 4096)):4096"
		done
		n=$((n + 1))
	done
	REQUESTS=$(($(requests_of bp0) + $(requests_of bp2)))
	# shellcheck disable=SC2086 # a list
	$PIN submit_list $ios || failed "submit_list: exit $?"
	expect_count "requests of both" \
		$(($(requests_of bp0) + $(requests_of bp2) - REQUESTS)) 2 2
}

# --- all of it --------------------------------------------------------------

# each_mode MODE
each_mode()
{
	local mode="$1"

	check "$mode: the first plug merges downwards" in_the_first_plug "$mode"
	#                                                  disks   req parts
	check "$mode: up"		merges "$mode"	bp0 bp1  1 "up 4 32"
	check "$mode: down"		merges "$mode"	bp0 bp1  1 "down 4 32"
	check "$mode: up and down"	merges "$mode"	bp0 bp1  1 "both 4 16"
	check "$mode: up, 31 to a request" \
					merges "$mode"	bp2 bp3  2 "up 4 32"
	check "$mode: down, 31 to a request" \
					merges "$mode"	bp2 bp3  2 "down 4 32"
	check "$mode: several streams, one after the other" \
		merges "$mode"				bp0 bp1  4 "up 4 8" \
		"down 4 8" "up 8 8" "down 16 8"
	check "$mode: two streams, by turns" \
					merges "$mode"	bp0 bp1  0 "turns 2 4 16"
	check "$mode: streams among others" \
		merges "$mode"				bp0 bp1 10 "far 4 4" \
		"up 4 8" "far 16 3" "down 4 8" "far 4 1"
	check "$mode: nothing to merge"	merges "$mode"	bp0 bp1 32 "far 4 32"
	check "$mode: halves of pages"	merges "$mode"	bp0 bp1 24 "pairs 24"
	check "$mode: halves of pages, after one more" \
				merges "$mode"	bp0 bp1 25 "far 4 1" "pairs 24"
	# 128 pages in all, which are as many segments, and as many as a request
	# has, where no two adjoin.
	check "$mode: 64K up"		merges "$mode"	bp0 bp1  0 "up 64 8"
	check "$mode: 64K down"		merges "$mode"	bp0 bp1  0 "down 64 8"
	check "$mode: 96K up"		merges "$mode"	bp0 bp1  0 "up 96 5"
	check "$mode: 128K up"		merges "$mode"	bp0 bp1  0 "up 128 4"
	check "$mode: 128K down"	merges "$mode"	bp0 bp1  0 "down 128 4"
	check "$mode: large ones among small ones" \
		merges "$mode" bp0 bp1 0 "up 4 6" "up 64 3" "far 4 3" \
		"down 124 3" "up 4 5"
	check "$mode: two disks by turns" of_two "$mode" 0
}

each_size()
{
	check "each size: up" at_each_size bp0 bp1 "up 4 32"
	check "each size: down" at_each_size bp0 bp1 "down 4 32"
	check "each size: up, 31 to a request" at_each_size bp2 bp3 "up 4 32"
	check "each size: several streams among others" \
		at_each_size bp0 bp1 "far 4 3" "up 4 7" "far 4 1" "down 4 9" \
		"both 4 4"
	check "each size: large ones" at_each_size bp0 bp1 "up 64 8" "down 96 5"
	check "each size: halves of pages" at_each_size bp0 bp1 "pairs 16"
	for size in 1 2 3 8; do
		check "groups of $size: two disks by turns" \
			of_two adaptive $size
	done
}

make_disks()
{
	local disk

	for disk in bp0 bp1 bp2 bp3; do
		null_create $disk submit_queues=1 || return 1
	done
	for disk in bp2 bp3; do
		set_attr /sys/block/$disk/queue/max_sectors_kb $SMALL_KB ||
			return 1
	done
}

require root knob debugfs plug_load taskset null_blk
command -v submit_list >/dev/null || missing "no program submit_list"
require
plan 48
make_disks || ktap_exit_fail_msg "cannot create the disks"
each_mode adaptive
each_mode seq-small
each_size
finish
