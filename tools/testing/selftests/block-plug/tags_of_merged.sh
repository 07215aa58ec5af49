#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: no tag is taken ahead for I/Os that will be merged.
#
# Reproducer: a plug took as many tags as it was told of I/Os. Of 32 that merged
# into one request, 31 were missing elsewhere until the submission was over. And
# what one plug has taken must not be added to what the next one takes.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

DISK=bp0
N=50

# Whether the I/Os of a plug merge is known to each CPU by itself.
PIN="taskset 1"

# merged PER_PLUG PER_REQUEST: sequential I/Os of 4K, of which a disk's first plug
# does not know that they merge
#
# null_blk gives each tag back alone, whether it was used or not.
merged()
{
	local requests

	set_attr /sys/block/$DISK/queue/max_sectors_kb $(($2 * 4)) || return
	requests=$(requests_of $DISK)
	profile_start blk_mq_put_tag
	load -a seq -s "$1" -c "$1" -d "$1" -n $(($1 * N)) /dev/$DISK || return
	profile_end
	requests=$(($(requests_of $DISK) - requests))
	expect_count "requests" $requests $(($1 * N / $2)) $(($1 * N / $2 + 3))
	expect_count "tags taken for $requests requests" \
		"$(profile_hits blk_mq_put_tag)" $requests $((requests + BATCH))
}

# in_turn: plugs of two sizes, of which all I/Os merge into one request
in_turn()
{
	local i=0 requests

	set_attr /sys/block/$DISK/queue/max_sectors_kb 128 || return
	requests=$(requests_of $DISK)
	profile_start blk_mq_put_tag
	while [ $((i += 1)) -le $N ]; do
		load -a seq -s 32 -c 32 -d 32 -n 32 /dev/$DISK || return
		load -a seq -s 16 -c 16 -d 16 -n 16 /dev/$DISK || return
	done
	profile_end
	requests=$(($(requests_of $DISK) - requests))
	expect_count "requests" $requests $((2 * N)) $((2 * N + 6))
	expect_count "tags taken for $requests requests" \
		"$(profile_hits blk_mq_put_tag)" $requests $((requests + BATCH))
}

require root profiler plug_load taskset null_blk
plan 4
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
check "32 I/Os per plug, one request" merged 32 32
check "128 I/Os per plug, four requests" merged 128 32
check "128 I/Os per plug, two per request" merged 128 2
check "plugs of 32 and 16 I/Os in turn, one request each" in_turn
finish
