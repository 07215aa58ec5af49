#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: the I/Os of a plug of several disks are counted for the disk that
# they went to, where that is on "adaptive".
#
# Reproducer: all were counted for the disk of the newest.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

IOS=40000

sum_of_disk()
{
	samples_of "$1" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

# together ACCESS DISK...: loads all of them, which take turns
together()
{
	local access="$1" devs='' disk

	shift
	for disk; do
		devs="$devs /dev/$disk"
	done
	watch
	# shellcheck disable=SC2086 # a list
	load -a "$access" -s $BATCH -c $BATCH -d 128 -n $IOS $devs || return
	trace_end
}

# expect_share DISK I/Os: what came since the last sample is missing, and may be
# in the next one.
expect_share()
{
	expect_count "I/Os of $1 in samples" "$(sum_of_disk "$1" nr)" \
		$(($2 - 2048)) $(($2 + 2048))
}

# all_counted DISK...: an equal share for each
all_counted()
{
	local disk

	for disk; do
		set_fresh "$disk" adaptive || return 1
	done
	together rand "$@" || return
	for disk; do
		expect_share "$disk" $((IOS / $#))
		expect_count "I/Os in the last sample of $disk" \
			"$(line_of "$disk" sample_ios)" 64 2560
	done
}

# What merges is counted for the newest request's disk: none is lost.
merged_counted()
{
	set_fresh bp0 adaptive && set_fresh bp1 adaptive || return 1
	together seq bp0 bp1 || return
	expect_count "I/Os of both in samples" \
		$(($(sum_of_disk bp0 nr) + $(sum_of_disk bp1 nr))) \
		$((IOS - 4096)) $IOS
}

# with_another MODE: only what went to the disk that is on "adaptive"
with_another()
{
	set_fresh bp0 adaptive && set_mode bp1 "$1" || return 1
	together rand bp0 bp1 || return
	expect_share bp0 $((IOS / 2))
	expect_text "samples of the disk on $1" \
		"$(samples_of bp1 nr | wc -l)" 0
	together rand bp1 bp0 || return
	expect_share bp0 $((IOS / 2))
}

make_disks()
{
	local disk

	for disk in bp0 bp1 bp2 bp3; do
		null_create $disk submit_queues=1 || return 1
	done
}

require root knob debugfs trace plug_load taskset null_blk
make_disks || ktap_exit_fail_msg "cannot create the disks"
plan 7
check "two disks" all_counted bp0 bp1
check "two disks, the other way round" all_counted bp1 bp0
check "four disks" all_counted bp0 bp1 bp2 bp3
check "what merges" merged_counted
for mode in always never seq-small; do
	check "with a disk on $mode" with_another $mode
done
finish
