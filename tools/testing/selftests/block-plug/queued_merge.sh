#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a bio merges with a request that waits in the scheduler, which
# came by another plug.
#
# An empty scheduler is not asked; one that is wrongly believed to be empty
# would send out each I/O by itself.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"

N=64

# use DISK SCHEDULER: with room for all that wait while the one tag is taken
use()
{
	modprobe -q "$2" 2>/dev/null
	grep -qw "$2" "/sys/block/$1/queue/scheduler" ||
		{ skip_case "no $2"; return; }
	set_attr "/sys/block/$1/queue/scheduler" "$2" &&
		set_attr "/sys/block/$1/queue/nr_requests" $N
}

# ascending SCHEDULER [ARG...]: one I/O per plug, all at once
ascending()
{
	local before

	use bp0 "$1" || return
	shift
	before=$(requests_of bp0)
	load -a seq -s 1 -c 1 -d $N -n $N "$@" /dev/bp0 || return
	expect_count "requests for $N I/Os in sequence" \
		$(($(requests_of bp0) - before)) 1 $((N / 4))
}

# The field of the disk's statistics, until it is so much.
reaches()
{
	[ "$(stat_field bp1 "$1")" -ge "$2" ]
}

# What comes before a request merges when the bio looks for it, or never: only
# what comes behind one is tried again as a request is inserted.
descending()
{
	local at merged n=0

	use bp1 "$1" || return
	merged=$(merges_of bp1)
	# One has the tag, one left the scheduler to wait for it, one stays.
	for at in 1m 2m 12k; do
		background submit_list bp1:$at:4k
		n=$((n + 1))
		wait_for 60 reaches 9 $n || return
	done
	for at in 8k 4k 0; do
		background submit_list bp1:$at:4k
		merged=$((merged + 1))
		wait_for 2 reaches 2 $merged ||
			failed "the I/O at $at did not merge" || break
	done
	wait
}

require root plug_load submit_list null_blk
must null_create bp0 irqmode=2 completion_nsec=20000000 hw_queue_depth=1 \
	submit_queues=1
must null_create bp1 irqmode=2 completion_nsec=3000000000 hw_queue_depth=1 \
	submit_queues=1
plan 4
for scheduler in mq-deadline kyber; do
	check "$scheduler: a bio behind a request" ascending $scheduler
	check "$scheduler: a bio before a request" descending $scheduler
done
finish
