#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a disk that is refused a batch of tags does not keep the other
# disks of its plug from theirs.
#
# Reproducer: the first refusal ended the batches of the whole plug.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

# A request may be in flight for 5 s; time to submit, and less than that.
LONG=3000000000

# apart DISK FIRST LAST [HOW]: I/Os too far from each other to merge
apart()
{
	local n

	for n in $(seq "$2" "$3"); do
		echo "/dev/$1:$((n << 20)):4096${4-}"
	done
}

# one_plug SINGLES I/O...: of all disks, of which two may be of the disk whose
# batches are good: its first, and one that its batch misses
one_plug()
{
	local singles="$1"

	shift
	profile_start blk_mq_get_tags blk_mq_get_tag
	submit_list "$@" || failed "submit_list: exit $?"
	profile_end
	expect_count "single tags" "$(profile_hits blk_mq_get_tag)" \
		"$singles" $((singles + 2))
}

# The scheduler limits writes, so that their tags come singly.
limited()
{
	set_attr /sys/block/bp0/queue/scheduler mq-deadline || return
	# shellcheck disable=SC2046 # lists
	one_plug 2 $(apart bp0 0 1 :write) $(apart bp1 0 29)
}

somebody_waits()
{
	grep -q 'ws_active=[1-9]' "$DEBUGFS/block/bp2/hctx0/tags"
}

# Four I/Os hold bp2's tags while a worker of io_uring waits for one. Ours find
# none, and go to workers, each of which counts as one more.
full()
{
	null_create bp2 hw_queue_depth=4 submit_queues=1 irqmode=2 \
		completion_nsec=$LONG || return
	background plug_load -s 8 -c 8 -d 8 -n 8 /dev/bp2 >"$TMP/full"
	wait_for 2 somebody_waits || return
	# shellcheck disable=SC2046 # lists
	one_plug 4 $(apart bp2 0 1) $(apart bp1 0 29)
}

need_submit_list()
{
	need_program submit_list
}

need_deadline()
{
	modprobe -q mq-deadline 2>/dev/null
	{ null_create bp0 && null_create bp1; } ||
		{ missing "cannot create two null_blk"; return; }
	set_attr /sys/block/bp0/queue/scheduler mq-deadline ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

require root debugfs profiler plug_load submit_list null_blk deadline
plan 2
check "writes that a scheduler limits, then reads of another disk" limited
check "reads of a disk without free tags, then of another" full
finish
