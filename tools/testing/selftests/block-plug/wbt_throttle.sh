#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: writeback throttling counts requests that a plug holds as in
# flight, and makes their submitter wait. With and without it, in every mode,
# what is written is there, and nothing stays in flight.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

need_wbt()
{
	null_create bpwbt || { missing "cannot create a null_blk"; return; }
	(echo 1000 >/sys/block/bpwbt/queue/wbt_lat_usec) 2>/dev/null
	[ -d "$DEBUGFS/block/bpwbt/rqos/wbt" ] ||
		missing "no writeback throttling (CONFIG_BLK_WBT)"
	null_remove bpwbt
}

# Their sum over wbt's classes
in_flight_of()
{
	sed -n 's/.*inflight //p' "$DEBUGFS/block/$1/rqos/wbt/inflight" |
		awk '{ n += $1 } END { print n + 0 }'
}

wbt_idle()
{
	[ "$(in_flight_of "$1")" -eq 0 ]
}

# writes DISK MODE LATENCY: 0 us switches throttling off, 1 is never met
writes()
{
	SEED=$((SEED + 1))
	set_mode "$1" "$2" &&
	set_attr "/sys/block/$1/queue/wbt_lat_usec" "$3" || return 1
	load -B -r write -a rand-once -z 4m -s $BATCH -d 64 --fsync 256 \
		-S $SEED "/dev/$1" &&
	load -r verify -a seq -z 4m -S $SEED "/dev/$1" || return
	[ "$3" -eq 0 ] || wait_for 5 wbt_idle "$1" ||
		failed "wbt counts $(in_flight_of "$1") requests in flight"
}

# Throttling steps down, which only happens if it sees the writes.
throttles()
{
	set_mode "$1" "$2" &&
	set_attr "/sys/block/$1/queue/wbt_lat_usec" 1 || return 1
	profile_start wbt_wait
	load -B -r write -a rand-once -z 4m -s $BATCH -d 64 --fsync 256 \
		"/dev/$1" || return
	profile_end
	expect_count "calls of wbt_wait()" "$(profile_hits wbt_wait)" \
		1 100000000
}

# A null_blk that completes late and keeps its data.
make_disks()
{
	null_create bp0 size=64 memory_backed=1 irqmode=2 completion_nsec=50000
}

SEED=0
require root knob debugfs profiler plug_load null_blk wbt
make_disks || ktap_exit_fail_msg "cannot create the disks"
DISKS="bp0 $(nvme_if_any)"
MODES=$(modes_of bp0)
# shellcheck disable=SC2046,SC2086 # lists
plan $((3 * $(count_words $DISKS) * $(count_words $MODES)))
for disk in $DISKS; do
	prepare "$disk"
	for mode in $MODES; do
		check "$disk: $mode, not throttled" writes "$disk" "$mode" 0
		check "$disk: $mode, throttled" writes "$disk" "$mode" 1
		check "$disk: $mode, wbt sees the writes" \
			throttles "$disk" "$mode"
	done
done
finish
