#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: the clones that dm-multipath submits while a plug is flushed take
# nothing off the tags that the plug's own I/Os were promised, and no batches.
#
# Guards against a budget that anybody's request is taken off, and that ends when
# a clone finds no batch.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/measure_lib.sh"

MAP=block-plug-test
N=50
SIZE=128
DM=

remove_map()
{
	dmsetup remove $MAP --noudevsync 2>/dev/null
}

# Sets DM to the name of the disk.
need_mpath()
{
	local path

	command -v dmsetup >/dev/null || { missing "no program dmsetup"; return; }
	null_create bp0 || { missing "cannot create a null_blk"; return; }
	at_exit remove_map
	echo "0 $(cat /sys/block/bp0/size) multipath 2 queue_mode mq 0 1 1" \
		"round-robin 0 1 1 /dev/bp0 1000" |
		dmsetup create $MAP --noudevsync 2>/dev/null ||
		missing "no dm-multipath (CONFIG_DM_MULTIPATH)"
	for path in /sys/block/dm-*; do
		[ "$(cat "$path/dm/name" 2>/dev/null)" != $MAP ] ||
			DM=${path##*/}
	done
	[ -z "$DM" ] || echo none >"/sys/block/$DM/queue/scheduler"
	use_kyber bp0
}

# Each request has a clone, which takes its tag alone, since kyber limits writes;
# the I/Os of the plug take theirs in batches. A few I/Os may merge. Disks of dm
# do not know NOWAIT, without which io_uring submits from its workers.
clones_and_batches()
{
	measure bp0 -e libaio -m 100 -s $SIZE -c $SIZE -d $SIZE \
		-n $((SIZE * N)) "/dev/$DM" || return
	expect_count "requests of the path" "$REQUESTS" \
		$((SIZE * N - N)) $((SIZE * N))
	expect_tag_calls $((4 * N)) $((12 * N)) $REQUESTS \
		$((REQUESTS + N / 2))
}

require root profiler plug_load null_blk mpath
plan 1
check "$SIZE I/Os per plug" clones_and_batches
finish
