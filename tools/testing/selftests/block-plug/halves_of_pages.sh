#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: where blocks are smaller than pages, each page that is written
# back is one request in every mode but "never", and not one for each half.
#
# Reproducer: "seq-small" and small groups of "adaptive" sent out a group with
# the first half of a page.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

MAP=block-plug-test
PAGES=2048
SECTORS=200000

remove_map()
{
	dmsetup remove --noudevsync $MAP 2>/dev/null
}

# create DISK: sets DM to a disk on top of it; half a page remains at its end,
# so its blocks are half a page
create()
{
	local path

	echo "0 $((SECTORS - 4)) linear /dev/$1 0" |
		dmsetup create --noudevsync $MAP 2>"$TMP/error" ||
		{ failed "dmsetup: $(cat "$TMP/error")"; return 1; }
	for path in /sys/block/dm-*; do
		[ "$(cat "$path/dm/name")" != $MAP ] || DM=/dev/${path##*/}
	done
	wait_for 60 test -b "$DM"
}

# requests_for DISK MODE [SIZE]: sets REQUESTS to those for 1000 pages
requests_for()
{
	local requests sectors

	set_fresh "$1" "$2" || return 1
	[ $# -lt 3 ] || pin_group "$1" "$3" || return
	requests=$(stat_field "$1" 5)
	sectors=$(stat_field "$1" 7)
	fio_quiet --filename="$DM" --rw=randwrite --ioengine=psync --bs=4k \
		--fsync=64 --size=64m --io_size=$((PAGES * 4))k \
		--norandommap --randseed=7 || return
	sectors=$(($(stat_field "$1" 7) - sectors))
	requests=$(($(stat_field "$1" 5) - requests))
	expect_count "sectors written" $sectors $((PAGES * 7)) $((PAGES * 9))
	REQUESTS=$((requests * 8000 / (sectors ? sectors : 1)))
	note "$*: $REQUESTS requests for 1000 pages"
}

# as_always DISK MODE [SIZE]: within 1%
as_always()
{
	requests_for "$@" || return
	expect_count "requests for 1000 pages" "$REQUESTS" \
		$((ALWAYS * 99 / 100)) $((ALWAYS * 101 / 100 + 1))
}

# Otherwise the cases would show nothing: there are halves, which may merge.
each_half_is_a_bio()
{
	requests_for "$1" always || return
	ALWAYS=$REQUESTS
	expect_count "requests for 1000 pages on always" "$ALWAYS" 900 1050
	requests_for "$1" never || return
	expect_count "requests for 1000 pages on never" "$REQUESTS" 1900 2100
}

each_disk()
{
	ALWAYS=0
	create "$1" || ktap_exit_fail_msg "cannot create $MAP"
	check "$1: a half is a bio" each_half_is_a_bio "$1"
	check "$1: seq-small" as_always "$1" seq-small
	check "$1: adaptive" as_always "$1" adaptive
	check "$1: adaptive, groups of 1" as_always "$1" adaptive 1
	check "$1: adaptive, groups of 3" as_always "$1" adaptive 3
	dmsetup remove --noudevsync $MAP
}

need_linear()
{
	modprobe -q dm-mod 2>/dev/null
	dmsetup targets 2>/dev/null | grep -q '^linear ' ||
		missing "no device mapper (CONFIG_BLK_DEV_DM)"
}

require root knob debugfs fio dmsetup null_blk linear
must null_create bp0
at_exit remove_map
DISKS="bp0 $(nvme_if_any)"
plan $((5 * $(count_words "$DISKS")))
for disk in $DISKS; do
	[ -d "$NULLB/$disk" ] || prepare "$disk"
	each_disk "$disk"
done
finish
