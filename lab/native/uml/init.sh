#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In User Mode Linux, as init: makes four null_blk disks, a and b, and pa and pb
# that are polled, and does what native_uml.py asks for on stdin.
#
# Each line read is one of
#
#   set NOMERGES POLICY COUNTERS  for all disks; POLICY may be "-", COUNTERS is
#				  on or off
#   load DISK DISK WORDS...	  what load.c does
#   run COMMAND...		  a program
#
# and is answered by a line "result OUTPUT" or "error WHY". The end of stdin is
# the end of the machine.
set -u

CONFIG=/sys/kernel/config/nullb
DEBUG=/sys/kernel/debug
DISKS="a b pa pb"
export PATH=/bin

die()
{
	echo "error $*"
	poweroff -f
}

mount_all()
{
	mount -t proc proc /proc &&
		mount -t sysfs sysfs /sys &&
		mount -t configfs configfs /sys/kernel/config &&
		mount -t devtmpfs devtmpfs /dev &&
		mount -t debugfs debugfs $DEBUG
}

# One hardware queue, deep enough for a batch of 128, that completes at once, or
# when it is polled.
make_disk()
{
	polls=0
	[ "${1#p}" = "$1" ] || polls=1
	mkdir "$CONFIG/$1" || return 1
	for pair in size=4096 irqmode=0 queue_mode=2 submit_queues=1 \
		    poll_queues=$polls hw_queue_depth=1023 power=1; do
		echo "${pair#*=}" >"$CONFIG/$1/${pair%%=*}" || return 1
	done
	echo none >"/sys/block/$1/queue/scheduler"
}

# choose FILE VALUE
choose()
{
	echo "$2" >"$1" || return 1
	case " $(cat "$1") " in
	*"[$2]"* | " $2 ") ;;
	*) return 1 ;;
	esac
}

count()
{
	echo 1 >"$DEBUG/block/$1/plug_stats_enabled"
}

set_disk()
{
	choose "/sys/block/$1/queue/nomerges" "$2" || return 1
	[ "$3" = - ] || choose "/sys/block/$1/queue/plug_policy" "$3" ||
		return 1
	[ "$4" = off ] || count "$1"
}

set_all()
{
	for disk in $DISKS; do
		set_disk "$disk" "$@" || die "$disk does not take: $*"
	done
	echo "result set=1"
}

measure()
{
	word=$1
	shift
	case $word in
	set)
		set_all "$@" ;;
	load)
		echo "$*" >$DEBUG/native_load || die "no such load: $*"
		echo "result $(cat $DEBUG/native_load)" ;;
	run)
		out=$("$@" 2>&1) || die "'$*' failed: $out"
		echo "result $out" ;;
	*)
		die "$word: what is that?" ;;
	esac
}

stty -echo
mount_all || die "a file system cannot be mounted"
for disk in $DISKS; do
	make_disk "$disk" || die "null_blk does not make $disk"
done
has=no
[ ! -e /sys/block/a/queue/plug_policy ] || has=yes
echo "ready plug_policy=$has"
while read -r line; do
	# shellcheck disable=SC2086 # words
	measure $line
done
poweroff -f
