#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: polled I/O, and I/O submitted by io_uring's own thread, completes
# in every mode and is held as documented.

. "${0%/*}/lib.sh"
. "${0%/*}/measure_lib.sh"
. "${0%/*}/policy_lib.sh"

# "adaptive" tries no other size within 1000 requests.
N=30

can_poll()
{
	[ "$(cat "/sys/block/$1/queue/io_poll")" -eq 1 ]
}

# Groups per batch of random 4K. A mode unknown here has to complete, however it
# holds.
groups_of()
{
	case $1 in
	always) echo 1 ;;
	never) echo 0 ;;
	seq-small) echo 4 ;;
	adaptive) echo 1 ;;
	esac
}

# completes DISK MODE OPTION: I/Os all there, groups as documented
completes()
{
	local groups

	groups=$(groups_of "$2")
	set_fresh "$1" "$2" || return 1
	measure "$1" "$3" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	expect_count "requests" "$REQUESTS" $((BATCH * N)) $((BATCH * N))
	# io_uring's thread takes what it finds: batches of any size.
	if [ -n "$groups" ] && [ "$3" = -P ]; then
		expect_batches "calls of queue_rqs()" "$HELD_GROUPS" \
			$((groups * N))
	elif [ "$groups" = 0 ]; then
		expect_count "calls of queue_rqs()" "$HELD_GROUPS" 0 0
	fi
}

# With a depth of 1 nothing but polling itself can complete the I/O.
completes_one_by_one()
{
	set_mode "$1" "$2" || return 1
	load -P -s 1 -c 1 -d 1 -n 64 "/dev/$1"
}

polled()
{
	can_poll "$1" || {
		skip_case "$1 has no poll queue (nvme.poll_queues=1)"
		return
	}
	profile_start "$(driver_of "$1")_poll"
	completes_one_by_one "$1" "$2"
	profile_end
	expect_count "calls of poll()" \
		"$(profile_hits "$(driver_of "$1")_poll")" 64 1000000000
	completes "$1" "$2" -P
}

sqpoll()
{
	completes "$1" "$2" -q
}

each_mode()
{
	local mode

	for mode in $(modes_of "$1"); do
		check "$1: $mode completes polled I/O" polled "$1" "$mode"
		check "$1: $mode completes I/O of io_uring's thread" \
			sqpoll "$1" "$mode"
	done
}

require root knob profiler plug_load null_blk
null_create bp0 poll_queues=1 || ktap_exit_fail_msg "cannot create bp0"
DISKS="bp0 $(nvme_if_any)"
# shellcheck disable=SC2046,SC2086 # lists
plan $((2 * $(count_words $DISKS) * $(count_words $(modes_of bp0))))
for disk in $DISKS; do
	prepare "$disk"
	each_mode "$disk"
done
finish
