#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: what each mode of plug_policy does on an NVMe
# disk. run_modes.py makes a job of these functions:
#
#   prepare			  the disk
#   check_data SEED MODE	  write and read back
#   count MODE NAME ACCESS BS N	  load it, and count the calls of the driver and of
#				  the tag allocator
#
# The workloads are those of the RFC that the project answers: t/io_uring with
# depth 128, 32 per submission, 32 per completion, polled, fixed files and
# buffers.  Results go to fd 3, as "key=value" words.

DISK=nvme0n1
DEV=/dev/$DISK
DEBUG=/sys/kernel/debug/block/$DISK
RANGE=64m

# shellcheck source=cells_guest.sh
. /cells_guest.sh

prepare()
{
	[ -e /sys/block/$DISK/queue/plug_policy ] ||
		die "this kernel has no plug_policy"
	echo 1 >$DEBUG/plug_stats_enabled ||
		die "this kernel does not count doorbells"
	# shellcheck disable=SC2034 # what cells_guest.sh's functions work on
	disks=$DISK
	set_queues queue.scheduler=none
	functions
	echo "kind=guest kernel=$(uname -r)" >&3
}

load()
{
	plug_load -d 128 -s 32 -c 32 -P -z "$RANGE" "$@" "$DEV"
}

# value KEY "key=value ..."
value()
{
	echo " $2" | sed "s/.* $1=\([^ ]*\).*/\1/"
}

check_data()
{
	plug_load -r write -a rand-once -z "$RANGE" -S "$1" "$DEV" >/dev/null ||
		die "writing under $2 failed"
	plug_load -r verify -a rand-once -z "$RANGE" -S "$1" "$DEV" \
		>/dev/null || die "data written under $2 reads back wrong"
}

doorbells()
{
	cat $DEBUG/hctx*/plug_stats |
		awk '$1 == "doorbells" { n += $2 } END { print n + 0 }'
}

# "adaptive" finds out within some plugs whether bios merge.
count()
{
	mode=$1 name=$2 access=$3 bs=$4 n=$5

	load -a "$access" -b "$bs" -n 3200 >/dev/null ||
		die "$name under $mode failed"
	profile 1
	mark "$mode.$name.begin"
	before="$(completed) $(doorbells)"
	out=$(load -a "$access" -b "$bs" -n "$n") ||
		die "$name under $mode failed: $out"
	after="$(completed) $(doorbells)"
	mark "$mode.$name.end"
	profile 0
	# shellcheck disable=SC2086 # both are two numbers
	set -- $before $after
	echo "kind=count policy=$mode workload=$name" \
		"ios=$(value ios "$out") requests=$(($3 - $1))" \
		"doorbells=$(($4 - $2)) $(calls)" >&3
}
