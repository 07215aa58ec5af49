#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: polled I/O, and I/O submitted by io_uring's own thread, completes
# in every mode, is held as documented, and its data is right, with two tasks
# that poll one queue, too; so does I/O that is complete before its submission
# is.
#
# Who touches a request or bio after it was sent out follows a pointer that is
# gone on the disk that completes at once: the request has lost its bio, the bio
# its disk. That does not need KASAN, which sees neither: requests are never
# freed, and bios are SLAB_TYPESAFE_BY_RCU, and mostly wait in a cache.

. "${0%/*}/measure_lib.sh"
. "${0%/*}/policy_lib.sh"

can_poll()
{
	[ "$(cat "/sys/block/$1/queue/io_poll")" -eq 1 ] ||
		{ skip_case "$1 has no poll queue (nvme.poll_queues=1)"; return; }
}

# groups_of MODE: per batch of random 4K, by the names of today. "adaptive"
# tries no other size within 1000 requests.
groups_of()
{
	case $1 in
	always | adaptive) echo 1 ;;
	never) echo 0 ;;
	seq-small) echo 4 ;;
	esac
}

# completes DISK MODE OPTION: I/Os all there, groups as documented; io_uring's
# thread takes what it finds: batches of any size.
completes()
{
	local groups

	groups=$(groups_of "$2")
	set_fresh "$1" "$2" || return 1
	measure "$1" batches "$1" 30 "$3" || return
	expect_counts REQUESTS=30*BATCH
	if [ "$3" = -P ] || [ "$groups" = 0 ]; then
		expect_counts "HELD_GROUPS~$groups*30"
	fi
}

# With a depth of 1 nothing but polling itself can complete the I/O.
polled()
{
	local poll

	poll=$(driver_of "$1")_poll
	can_poll "$1" && set_mode "$1" "$2" || return
	! has_profiler || profile_start "$poll"
	plugs 1 "$1" 64 -P || return
	if has_profiler; then
		profile_end
		expect_count "calls of poll()" "$(profile_hits "$poll")" \
			64 1000000000
	fi
	completes "$1" "$2" -P
}

# poller PLACE OPTION...: writes and verifies its part of the disk
poller()
{
	local n=0 what="-a rand-once -s $BATCH -c 1 -d 64 -z 4m -o $(($1 * 4))m"

	shift
	while [ $((n += 1)) -le 4 ]; do
		# shellcheck disable=SC2086 # a list of options
		load -r write $what -S $n "$@" &&
		load -r verify $what -S $n "$@" || return
	done
}

# together DISK MODE OPTIONS OPTIONS: of two that share the poll queue
together()
{
	can_poll "$1" && set_mode "$1" "$2" || return
	# shellcheck disable=SC2086 # options
	background poller 0 $3 "/dev/$1"
	# shellcheck disable=SC2086 # options
	background poller 1 $4 "/dev/$1"
	stop_jobs
}

# at_once DISK MODE: in groups of 8, or what else the mode makes of 32
at_once()
{
	local how="$2"

	[ "$2" != adaptive ] || how=8
	set_fresh "$1" "$how" || return
	plugs $BATCH "$1" 100 &&
	fio_plugs libaio $BATCH "/dev/$1" 100
}

require root knob counts plug_load fio null_blk nvme_if_any
must null_create bp0 poll_queues=1
must null_create bp1
must null_create bp2 submit_queues=1 poll_queues=1 irqmode=1 size=64 \
	memory_backed=1
# Its pages are there before anybody polls: null_blk would allocate them in
# ->poll(), under RCU, which sleeps where it must not.
must load -r write -a seq -z 16m /dev/bp2
MODES=$(modes_of bp0)
plan $(((5 + 4 * $(count_words "$NVME")) * $(count_words "$MODES")))
for mode in $MODES; do
	check "bp1: $mode, completed at once" at_once bp1 "$mode"
	for disk in bp0 $NVME; do
		check "$disk: $mode, polled" polled "$disk" "$mode"
		check "$disk: $mode, by io_uring's thread" \
			completes "$disk" "$mode" -q
	done
	for disk in bp2 $NVME; do
		check "$disk: $mode, two poll" together "$disk" "$mode" -P -P
		check "$disk: $mode, io_uring's thread polls, too" \
			together "$disk" "$mode" "-P -q" -P
	done
done
finish
