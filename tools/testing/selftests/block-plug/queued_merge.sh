#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a bio merges with a request that waits in the scheduler, which
# came by another plug.
#
# An empty scheduler is not asked; one that is wrongly believed to be empty
# would send out each I/O by itself.

. "${0%/*}/null_blk_lib.sh"

SCHEDULER=/sys/block/bp0/queue/scheduler

# The sum of these fields of the disk's statistics, until it is so much.
reaches()
{
	[ "$(stat_field bp0 "$1")" -ge "$2" ]
}

# Only what comes before a request needs the lookup: what comes behind one is
# tried once more when a request is inserted.
merges()
{
	local at merged n=0

	modprobe -q "$1" 2>/dev/null
	grep -qw "$1" $SCHEDULER || { skip_case "no $1"; return; }
	set_attr $SCHEDULER "$1" &&
		set_attr /sys/block/bp0/queue/nr_requests 64 || return
	merged=$(stat_field bp0 2)
	# One has the tag, one left the scheduler to wait for it, one stays.
	for at in 1m 2m 12k; do
		background submit_list bp0:$at:4k
		n=$((n + 1))
		wait_for 60 reaches 9 $n || return
	done
	for at in 8k 4k 0; do
		background submit_list bp0:$at:4k
		merged=$((merged + 1))
		wait_for 2 reaches 2 $merged ||
			failed "the I/O at $at did not merge" || break
	done
	end_jobs
}

require root submit_list null_blk
must null_create bp0 irqmode=2 completion_nsec=3000000000 hw_queue_depth=1 \
	submit_queues=1
plan 2
check "mq-deadline" merges mq-deadline
check "kyber" merges kyber
finish
