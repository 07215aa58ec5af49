#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: from the first plug on, "adaptive" makes every merge that
# "always" makes, whatever the size of its groups, and "seq-small" every one of
# small I/O, but for a group that has left; having learnt that nothing merges,
# "adaptive" finds merges again.
#
# Each list of I/Os is one plug, submitted to a disk in the mode under test and
# to its twin on "always".

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

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

# like_twin DISK TWIN WHAT: of LIST
like_twin()
{
	requests_for "$2"
	EXPECTED=$REQUESTS
	requests_for "$1"
	expect_count "requests $3" "$REQUESTS" "$EXPECTED" "$EXPECTED"
}

# merges MODE DISK TWIN REQUESTS PART...: 0 if it is the disk that decides
merges()
{
	local mode="$1" disk="$2" twin="$3" requests="$4"

	shift 4
	list "$@"
	set_fresh "$disk" "$mode" && set_mode "$twin" always || return 1
	expect_in_force "$disk" "$mode"
	like_twin "$disk" "$twin" "in $mode"
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
	local disk="$1" twin="$2" size=32

	shift 2
	list "$@"
	set_fresh "$disk" adaptive && set_mode "$twin" always || return 1
	while [ $size -gt 0 ]; do
		pin_group "$disk" $size
		like_twin "$disk" "$twin" "in groups of $size"
		size=$((size - 1))
	done
	pin_group "$disk" 0
}

# --- after random I/O -------------------------------------------------------

# finds_again DISK TWIN SIZE IOS: after so many sequential I/Os at most
finds_again()
{
	local disk="$1" twin="$2"

	set_fresh "$disk" adaptive && set_mode "$twin" always &&
	pin_group "$disk" "$3" && sees "$disk" -a rand || return 1
	expect_text "lookup after random I/O" "$(line_of "$disk" lookup)" 0
	load -a seq -s $BATCH -c $BATCH -d 128 -n "$4" "/dev/$disk" || return
	expect_text "lookup after sequential I/O" \
		"$(line_of "$disk" lookup)" 1
	list "up 4 32"
	like_twin "$disk" "$twin" "for 32 ascending"
	list "down 4 32"
	like_twin "$disk" "$twin" "for 32 descending"
	pin_group "$disk" 0
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
}

# Of more than 64K, which "seq-small" does not merge; 128 pages in all, which are
# as many segments, and as many as a request has, where no two adjoin.
each_large()
{
	check "adaptive: 64K up"    merges adaptive bp0 bp1 0 "up 64 8"
	check "adaptive: 64K down"  merges adaptive bp0 bp1 0 "down 64 8"
	check "adaptive: 96K up"    merges adaptive bp0 bp1 0 "up 96 5"
	check "adaptive: 128K up"   merges adaptive bp0 bp1 0 "up 128 4"
	check "adaptive: 128K down" merges adaptive bp0 bp1 0 "down 128 4"
	check "adaptive: large ones among small ones" \
		merges adaptive bp0 bp1 0 "up 4 6" "up 64 3" "far 4 3" \
		"down 124 3" "up 4 5"
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
}

# While groups are of one, bios look for a merge in one of 16 samples.
each_return()
{
	check "found again: what it chose" finds_again bp0 bp1  0 4096
	check "found again: groups of 32"  finds_again bp0 bp1 32 4096
	check "found again: groups of 8"   finds_again bp0 bp1  8 4096
	check "found again: groups of 2"   finds_again bp0 bp1  2 4096
	check "found again: groups of 1"   finds_again bp0 bp1  1 16384
	check "found again: 31 to a request" finds_again bp2 bp3 8 4096
	check "found again: 31 to a request, groups of 1" \
		finds_again bp2 bp3 1 16384
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
plan 38
make_disks || ktap_exit_fail_msg "cannot create the disks"
each_mode adaptive
each_mode seq-small
each_large
each_size
each_return
finish
