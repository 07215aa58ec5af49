#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: what one task submits may be complete before it has returned:
# with two that poll one queue, and on a disk that completes I/O as it is
# issued, in every mode, each I/O completes, and its data is right.
#
# Who touches a request or bio after it was sent out follows a pointer that is
# gone on the disk that completes at once: the request has lost its bio, the bio
# its disk. That does not need KASAN, which sees neither: requests are never
# freed, and bios are SLAB_TYPESAFE_BY_RCU, and mostly wait in a cache.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

PASSES=4

# poller PLACE OPTION...: writes and verifies its part of the disk
poller()
{
	local place="$1" n=0

	shift
	while [ $n -lt $PASSES ]; do
		n=$((n + 1))
		plug_load -r write -a rand-once -s $BATCH -c 1 -d 64 \
			-o $((place * 4))m -z 4m -S $n "$@" &&
		plug_load -r verify -a rand-once -s $BATCH -c 1 -d 64 \
			-o $((place * 4))m -z 4m -S $n "$@" || return
	done >"$TMP/poller.$place" 2>&1
}

# together DISK MODE OPTIONS OPTIONS: of two that share the poll queue
together()
{
	local jobs n=0 job rc

	can_poll "$1" || {
		skip_case "$1 has no poll queue"
		return
	}
	set_mode "$1" "$2" || return 1
	# shellcheck disable=SC2086 # options
	background poller 0 $3 "/dev/$1"
	jobs=$JOB
	# shellcheck disable=SC2086 # options
	background poller 1 $4 "/dev/$1"
	for job in $jobs $JOB; do
		rc=0
		wait "$job" || rc=$?
		[ $rc -eq 0 ] || failed "poller $n: exit $rc:" \
			"$(tail -n 1 "$TMP/poller.$n")"
		n=$((n + 1))
	done
}

# at_once DISK MODE: in groups of 8, or what else the mode makes of 32
at_once()
{
	set_mode "$1" "$2" || return 1
	[ "$2" != adaptive ] || pin_group "$1" 8
	load -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * 100)) "/dev/$1" &&
	load -e libaio -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * 100)) \
		"/dev/$1"
}

can_poll()
{
	[ "$(cat "/sys/block/$1/queue/io_poll")" -eq 1 ]
}

each_mode()
{
	local mode

	for mode in $MODES; do
		check "$1: $mode, two poll" together "$1" "$mode" -P -P
		check "$1: $mode, io_uring's thread polls, too" \
			together "$1" "$mode" "-P -q" -P
	done
}

# Its pages are there before anybody polls: null_blk would allocate them in
# ->poll(), under RCU, which sleeps where it must not.
make_disks()
{
	null_create bp0 submit_queues=1 poll_queues=1 irqmode=1 size=64 \
		memory_backed=1 &&
	load -r write -a seq -z 16m /dev/bp0 &&
	null_create bp1
}

require root knob plug_load null_blk
make_disks || ktap_exit_fail_msg "cannot create the disks"
DISKS="bp0 $(nvme_if_any)"
MODES=$(modes_of bp0)
# shellcheck disable=SC2046,SC2086 # lists
plan $(((1 + 2 * $(count_words $DISKS)) * $(count_words $MODES)))
for mode in $MODES; do
	check "bp1: $mode, completed at once" at_once bp1 "$mode"
done
for disk in $DISKS; do
	prepare "$disk"
	each_mode "$disk"
done
finish
