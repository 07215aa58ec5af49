#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: where several disks share a plug, a bio merges into the newest
# request of its disk.
#
# Reproducer: the search stopped at the oldest request of that disk, so that
# nothing merged any more once that request was full.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"

# A request takes two I/Os.
MAX_KB=8
DISKS="bp0 bp1 bp2 bp3"

# interleaved DISKS I/Os: one submission of 4K I/Os, sequential on each disk,
# which take turns; sets LIST
interleaved()
{
	local disks="$1" ios="$2" n=0

	LIST=
	while [ $n -lt "$ios" ]; do
		# shellcheck disable=SC2017 # rounded on purpose
		LIST="$LIST /dev/bp$((n % disks)):$((n / disks * 4096)):4096"
		n=$((n + 1))
	done
}

all_requests()
{
	local disk sum=0

	for disk in $DISKS; do
		sum=$((sum + $(requests_of "$disk")))
	done
	echo $sum
}

# merges I/Os REQUESTS: of LIST
merges()
{
	local before

	before=$(all_requests)
	# shellcheck disable=SC2086 # a list
	submit_list $LIST || failed "submit_list: exit $?"
	expect_count "requests for $1 I/Os" \
		$(($(all_requests) - before)) "$2" "$2"
}

taking_turns()
{
	interleaved "$1" "$2"
	merges "$2" "$3"
}

# One disk's sequence goes on behind the other's.
interrupted()
{
	LIST="/dev/bp0:0:4096 /dev/bp0:4096:4096 /dev/bp0:8192:4096"
	LIST="$LIST /dev/bp1:0:4096 /dev/bp1:65536:4096 /dev/bp0:12288:4096"
	merges 6 4
}

make_disks()
{
	local disk

	for disk in $DISKS; do
		null_create "$disk" &&
		set_attr "/sys/block/$disk/queue/max_sectors_kb" $MAX_KB ||
			return 1
	done
}

require root null_blk
command -v submit_list >/dev/null || missing "no program submit_list"
require
plan 5
make_disks || ktap_exit_fail_msg "cannot create the disks"
#                              disks I/Os requests
check "one disk"   taking_turns    1   32   16
check "two disks"  taking_turns    2   32   16
check "four disks" taking_turns    4   32   16
check "two disks, two full plugs" taking_turns 2 128 64
check "a sequence that was interrupted goes on" interrupted
finish
