#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a polled bio that must be split is not polled any more, and none
# of its parts waits in a queue that is only polled.
#
# Reproducer: the bio took a cached request of a poll queue, was split, and lost
# its poll flag; the request stayed in the poll queue, where no interrupt and,
# if nothing else is polled there, nobody completes it.
#
# It takes a file system: io_uring has a disk fail what must be split (NOWAIT).

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=plug_stats_lib.sh
. "${0%/*}/plug_stats_lib.sh"

DISK=bp0
N=512

need_ext4()
{
	modprobe -q ext4 2>/dev/null
	grep -qw ext4 /proc/filesystems || missing "no ext4 (CONFIG_EXT4_FS)"
}

# requests_in TYPE: requests of the hardware queues of this type
requests_in()
{
	local dir sum=0

	for dir in "$DEBUGFS/block/$DISK"/hctx*; do
		[ "$(cat "$dir/type")" = "$1" ] || continue
		sum=$((sum + $(sed -n 's/^requests //p' "$dir/plug_stats")))
	done
	echo $sum
}

# every_other SIZE: I/Os of 4K and of SIZE in turns, in plugs of 32
every_other()
{
	stats_reset $DISK
	load -P -F -b 4k -2 "$1" -p 1 -s $BATCH -c $BATCH -d $BATCH -w -n $N \
		"$TMP/mnt/file" || failed "the load failed"
}

# Each fits into one request.
stays_polled()
{
	every_other 8k
	expect_count "polled requests" "$(requests_in poll)" $N $N
	expect_count "other requests" "$(requests_in default)" 0 0
}

# 64K are four requests.
is_not_polled()
{
	every_other 64k
	expect_count "polled requests" "$(requests_in poll)" \
		$((N / 2)) $((N / 2))
	[ "$(requests_in default)" -ge $((N / 2)) ] ||
		failed "only $(requests_in default) requests are not polled"
}

# Its blocks are neighbours, so that each I/O is one bio.
make_file()
{
	null_create $DISK size=64 memory_backed=1 poll_queues=1 irqmode=1 &&
	mke2fs -b 4096 "/dev/$DISK" >/dev/null 2>&1 &&
	mkdir "$TMP/mnt" && mount -t ext4 "/dev/$DISK" "$TMP/mnt" &&
	dd if=/dev/zero of="$TMP/mnt/file" bs=1M count=16 2>/dev/null &&
	sync || return 1
	set_attr "/sys/block/$DISK/queue/max_sectors_kb" 16 &&
	set_attr "$(stats_switch $DISK)" 1
}

# Before the disk goes.
leave()
{
	local rc=$?

	umount "$TMP/mnt" 2>/dev/null
	(exit $rc)
	cleanup
}

require root debugfs plug_stats plug_load null_blk ext4
command -v mke2fs >/dev/null || missing "no program mke2fs"
require
trap leave EXIT
make_file || ktap_exit_fail_msg "cannot make a file to read"
plan 2
check "what need not be split is polled" stays_polled
check "what is split is not polled" is_not_polled
finish
