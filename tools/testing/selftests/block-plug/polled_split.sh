#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a polled bio that must be split is not polled any more, and none
# of its parts waits in a queue that is only polled.
#
# Reproducer: the bio took a cached request of a poll queue, was split, and lost
# its poll flag; the request stayed in the poll queue, where no interrupt and,
# if nothing else is polled there, nobody completes it.
#
# It takes a file system: io_uring has a disk fail what must be split (NOWAIT).

. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

DISK=bp0
PLUGS=16

need_ext4()
{
	modprobe -q ext4 2>/dev/null
	grep -qw ext4 /proc/filesystems || missing "no ext4 (CONFIG_EXT4_FS)"
}

# every_other SIZE: I/Os of 4K and of SIZE in turns, in plugs of 32; sets POLLED
# and OTHER to the requests. What is not polled is completed by null_blk's
# softirq handler, which polling does without.
every_other()
{
	local n=0

	REQUESTS=$(requests_of $DISK)
	profile_start null_complete_rq
	while [ $((n += 1)) -le $PLUGS ]; do
		submit -P "$TMP/mnt/file:0:4k*16+1m,512k:$1*16+1m"
	done
	profile_end
	OTHER=$(profile_hits null_complete_rq)
	POLLED=$(($(requests_of $DISK) - REQUESTS - OTHER))
}

# polls SIZE POLLED LEAST MOST: polled, and other requests of a plug
polls()
{
	every_other "$1"
	expect_count "polled requests" $POLLED $(($2 * PLUGS))
	expect_count "other requests" "$OTHER" $(($3 * PLUGS)) $(($4 * PLUGS))
}

# Its blocks are neighbours, so that each I/O is one bio.
make_file()
{
	null_create $DISK size=64 memory_backed=1 poll_queues=1 irqmode=1 &&
	mke2fs -b 4096 "/dev/$DISK" >/dev/null 2>&1 &&
	mkdir "$TMP/mnt" && mount -t ext4 "/dev/$DISK" "$TMP/mnt" &&
	at_exit umount "$TMP/mnt" &&
	dd if=/dev/zero of="$TMP/mnt/file" bs=1M count=16 2>/dev/null &&
	sync || return 1
	set_attr "/sys/block/$DISK/queue/max_sectors_kb" 16
}

require root profiler submit_list mke2fs null_blk ext4
make_file || ktap_exit_fail_msg "cannot make a file to read"
plan 2
check "what need not be split is polled" polls 8k 32 0 0
# 64K are four requests, which are not all polled
check "what is split is not polled" polls 64k 16 16 64
finish
