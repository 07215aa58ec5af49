#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: however long it runs, sequential I/O makes as many requests under
# "adaptive" as under "always".
#
# Reproducer: where a plug's 32 I/Os became two requests, of 31 I/Os and of one,
# these were sent out one by one, which takes less time for each request. More
# requests are no gain: the time for an I/O is.

. "${0%/*}/lib.sh"
. "${0%/*}/measure_lib.sh"
. "${0%/*}/adaptive_lib.sh"

IOS=100000

# fio's t/io_uring submits and reaps like this.
fio_load()
{
	$PIN fio --name=block-plug --thread --eta=never --output="$TMP/fio" \
		--filename="/dev/$1" --rw=read --bs=4k --size=250m \
		--io_size=$((IOS * 4))k --direct=1 --ioengine=io_uring \
		--iodepth=128 --iodepth_batch_submit=32 \
		--iodepth_batch_complete_min=32 --fixedbufs --registerfiles >&2
}

# load_of DISK LOAD...: sets REQUESTS for 1000 I/Os
load_of()
{
	local disk="$1"

	shift
	counters_before "$disk"
	"$@" "$disk" || { failed "$* failed"; return 1; }
	counters_after "$disk"
	expect_count "I/Os" $((REQUESTS + MERGES)) $((IOS * 9 / 10)) \
		$((IOS * 11 / 10))
	REQUESTS=$((1000 * REQUESTS / (REQUESTS + MERGES)))
}

# in_sequence COMPLETE DISK: waits for so many before it submits 32 again
in_sequence()
{
	load -a seq -s $BATCH -c "$1" -d 128 -n $IOS "/dev/$2"
}

# as_always DISK LOAD...: by when its first 100000 I/Os are over, and with the
# next ones as well. What is complete together depends on who else uses the
# machine: that may spoil an attempt, not three.
as_always()
{
	local disk="$1" expected attempt first most

	shift
	for attempt in 1 2 3; do
		set_mode "$disk" always && load_of "$disk" "$@" || return
		expected=$REQUESTS
		expect_count "requests for 1000 I/Os on always" "$expected" 1 500
		most=$((expected * 21 / 20 + 1))
		set_fresh "$disk" adaptive || return 1
		expect_in_force "$disk" adaptive
		load_of "$disk" "$@" || return
		first=$REQUESTS
		load_of "$disk" "$@" || return
		note "$disk, attempt $attempt: $first, then $REQUESTS" \
			"requests for 1000 I/Os, $expected on always"
		[ "$first" -gt $most ] || [ "$REQUESTS" -gt $most ] || return 0
	done
	expect_count "requests for the first 1000 I/Os" "$first" 0 $most
	expect_count "requests for the next 1000 I/Os" "$REQUESTS" 0 $most
}

each_disk()
{
	check "$1: fio" as_always "$1" fio_load
	check "$1: submitting what is complete" as_always "$1" in_sequence 1
	check "$1: submitting 32" as_always "$1" in_sequence $BATCH
}

require root knob debugfs plug_load fio taskset null_blk
# One that splits 32 I/Os in 31 and one, and one that does not.
must null_create bp0 submit_queues=1 hw_queue_depth=1023
must set_attr /sys/block/bp0/queue/max_sectors_kb 124
must null_create bp1 submit_queues=1 hw_queue_depth=1023
DISKS="bp0 bp1 $(nvme_if_any)"
plan $((3 * $(count_words "$DISKS")))
for disk in $DISKS; do
	[ -d "$NULLB/$disk" ] || prepare "$disk"
	each_disk "$disk"
done
finish
