#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In User Mode Linux, as init: makes null_blk disks, and does what native_uml.py
# asks for on stdin.
#
# Each line read is one of
#
#   set NOMERGES POLICY COUNTERS  for all disks; POLICY may be "-", COUNTERS is
#				  on or off
#   load DISK... WORDS...	  what load.c does
#   run COMMAND...		  a program
#
# and is answered by a line "result OUTPUT" or "error WHY". The end of stdin is
# the end of the machine.
set -u

CONFIG=/sys/kernel/config/nullb
DEBUG=/sys/kernel/debug
export PATH=/bin

# Each has one hardware queue, deep enough for a batch of 128, that completes at
# once, unless it says so: NAME, a choice of queue/, choices of null_blk.
disks()
{
	cat <<END
a scheduler=none
b scheduler=none
c scheduler=none
d scheduler=none
pa scheduler=none poll_queues=1
pb scheduler=none poll_queues=1
small scheduler=none hw_queue_depth=64
large scheduler=none max_sectors=1280
part scheduler=none size=8192
softirq scheduler=none irqmode=1
timer scheduler=none irqmode=2 completion_nsec=10000
deadline scheduler=mq-deadline
kyber scheduler=kyber
noiostats iostats=0
two scheduler=none submit_queues=2
sa scheduler=none shared_tags=1
sb scheduler=none shared_tags=1
END
}

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

# put DIRECTORY FILE=VALUE...
put()
{
	where=$1
	shift
	for pair; do
		echo "${pair#*=}" >"$where/${pair%%=*}" || return 1
	done
}

make_disk()
{
	name=$1 queue=$2
	shift 2
	mkdir "$CONFIG/$name" &&
		put "$CONFIG/$name" size=4096 irqmode=0 queue_mode=2 \
			submit_queues=1 poll_queues=0 hw_queue_depth=1023 \
			"$@" power=1 &&
		put "/sys/block/$name/queue" scheduler=none "$queue"
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
	for disk in "$CONFIG"/*/; do
		disk=${disk%/} disk=${disk##*/}
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
		read -r out <$DEBUG/native_load # without a process
		echo "result $out" ;;
	run)
		out=$("$@" 2>&1) || die "'$*' failed: $out"
		echo "result $out" ;;
	*)
		die "$word: what is that?" ;;
	esac
}

stty -echo
mount_all || die "a file system cannot be mounted"
disks | while read -r line; do
	# shellcheck disable=SC2086 # words
	make_disk $line || die "null_blk does not make $line"
done
has=no
[ ! -e /sys/block/a/queue/plug_policy ] || has=yes
echo "ready plug_policy=$has cpus=$(cat /sys/devices/system/cpu/online)"
while read -r line; do
	# shellcheck disable=SC2086 # words
	measure $line
done
poweroff -f
