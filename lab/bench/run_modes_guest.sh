#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: what each mode of plug_policy does on an NVMe disk.
#
# run_modes_guest.sh counts|speed MODE...
#
# counts: the data is written and read back under each mode, then the calls of
#	  the driver and of the tag allocator are counted.  Slows things down.
# speed:  nothing but the I/O, for a guest whose time follows instructions.
#
# The workloads are those of the RFC that the project answers: t/io_uring with
# depth 128, 32 per submission, 32 per completion, polled, fixed files and
# buffers.  Results go to fd 3, as "key=value" words.
set -eu

DISK=nvme0n1
DEV=/dev/$DISK
DOORBELLS=/sys/kernel/debug/nvme_plug/nvme0/doorbells
RANGE=64m

# name, access, block size, I/Os to count, I/Os to time
WORKLOADS="rand4k:rand:4k:6400:64000 seq4k:seq:4k:6400:64000
seq128k:seq:128k:1600:6400"

# shellcheck source=cells_guest.sh
. /cells_guest.sh
# shellcheck source=nvme_guest.sh
. /nvme_guest.sh

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

# Completed read requests, of which a merged one is one.
requests()
{
	awk '{ print $1 }' "/sys/block/$DISK/stat"
}

doorbells()
{
	awk '$2 > 0 { d += $4; c += $6 } END { print d + 0, c + 0 }' \
		$DOORBELLS
}

profile()
{
	echo "$1" >$TRACE/function_profile_enabled
}

# "adaptive" finds out within some plugs whether bios merge.
count()
{
	mode=$1 name=$2 access=$3 bs=$4 n=$5

	load -a "$access" -b "$bs" -n 3200 >/dev/null ||
		die "$name under $mode failed"
	profile 1
	mark "$mode.$name.begin"
	before="$(requests) $(doorbells)"
	out=$(load -a "$access" -b "$bs" -n "$n") ||
		die "$name under $mode failed: $out"
	after="$(requests) $(doorbells)"
	mark "$mode.$name.end"
	profile 0
	# shellcheck disable=SC2086 # both are three numbers
	set -- $before $after
	echo "kind=count policy=$mode workload=$name" \
		"ios=$(value ios "$out") requests=$(($4 - $1))" \
		"doorbells=$(($5 - $2)) commands=$(($6 - $3)) $(calls)" >&3
}

speed()
{
	out=$(load -a "$3" -b "$4" -n "$6") || die "$2 under $1 failed: $out"
	echo "kind=speed policy=$1 workload=$2 iops=$(value iops "$out")" >&3
}

each_workload()
{
	for spec in $WORKLOADS; do
		old=$IFS
		IFS=:
		# shellcheck disable=SC2086 # split at the colons
		set -- "$1" "$2" $spec
		IFS=$old
		"$1" "$2" "$3" "$4" "$5" "$6" "$7"
		set -- "$1" "$2"
	done
}

prepare()
{
	[ -e /sys/block/$DISK/queue/plug_policy ] ||
		die "this kernel has no plug_policy"
	# shellcheck disable=SC2034 # what cells_guest.sh's functions work on
	disks=$DISK
	set_queues queue.scheduler=none
	if [ "$1" = counts ]; then
		[ -e $DOORBELLS ] || die "this kernel does not count doorbells"
		functions
	fi
	echo "kind=guest kernel=$(uname -r)" >&3
}

what=$1
shift
prepare "$what"
seed=1
for mode; do
	set_policy "$mode"
	if [ "$what" = counts ]; then
		check_data $seed "$mode"
		seed=$((seed + 1))
		each_workload count "$mode"
	else
		# once to warm up: the first run fills caches of the kernel's
		load -a rand -b 4k -n 6400 >/dev/null
		each_workload speed "$mode"
	fi
done
