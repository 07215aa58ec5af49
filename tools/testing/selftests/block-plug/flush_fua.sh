#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: fsync, O_SYNC and O_DSYNC reach the disk in every mode, among I/O
# that is held, and what they cover reads back.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

flushes_of()
{
	stat_field "$1" 16
}

# The flushes go past the plug; the writes around them do not.
fsyncs()
{
	local flushes

	set_mode "$1" "$2" || return 1
	flushes=$(flushes_of "$1")
	load -r write -a rand-once -z 4m -s $BATCH -c 8 -d 64 --fsync 16 \
		-S 3 "/dev/$1" || return
	# Flushes that wait at the same time become one.
	expect_count "flushes for 63 fsyncs" $(($(flushes_of "$1") - flushes)) \
		1 200
	load -r verify -a seq -z 4m -S 3 "/dev/$1"
}

# A sync write is a write with FUA, or a write between flushes.
synced()
{
	set_mode "$1" "$2" || return 1
	trace_start block:block_rq_issue
	fio_quiet --filename="/dev/$1" --rw=randwrite --bs=4k --size=512k \
		--direct=1 --sync="$3" --ioengine=io_uring --iodepth=32 \
		--iodepth_batch_submit=16 --iodepth_batch_complete_min=8 \
		--verify=crc32c --verify_fatal=1 || return
	trace_end
	grep 'block_rq_issue:' "$TMP/trace" >"$TMP/issued"
	expect_count "FUA writes and flushes issued for 128 writes" \
		"$(awk '$6 ~ /F/ || $7 ~ /F/' "$TMP/issued" | wc -l)" 2 1000
}

each_mode()
{
	local mode

	for mode in $(modes_of "$1"); do
		check "$1: $mode, fsync" fsyncs "$1" "$mode"
		check "$1: $mode, O_SYNC" synced "$1" "$mode" sync
		check "$1: $mode, O_DSYNC" synced "$1" "$mode" dsync
	done
}

# A null_blk with a cache of 32 MB needs flushes; one with FUA needs fewer.
make_disks()
{
	null_create bp0 size=64 memory_backed=1 cache_size=32 &&
	null_create bp1 size=64 memory_backed=1 cache_size=32 fua=1
}

require root knob trace plug_load fio null_blk
make_disks || ktap_exit_fail_msg "cannot create the disks"
DISKS="bp0 bp1 $(nvme_if_any)"
# shellcheck disable=SC2046,SC2086 # lists
plan $((3 * $(count_words $DISKS) * $(count_words $(modes_of bp0))))
for disk in $DISKS; do
	prepare "$disk"
	each_mode "$disk"
done
finish
