#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: no tag is taken ahead for I/Os that will be merged.
#
# Reproducer: a plug took as many tags as it was told of I/Os. Of 32 that merged
# into one request, 31 were missing elsewhere until the submission was over.

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

require root profiler plug_load taskset null_blk
plan 3
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
check "32 I/Os per plug, one request" merged 32 32
check "128 I/Os per plug, four requests" merged 128 32
check "128 I/Os per plug, two per request" merged 128 2
finish
