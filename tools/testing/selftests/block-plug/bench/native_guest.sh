#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In User Mode Linux, as init: measures what native.py asks for on stdin.
#
# Each line read is
#
#   POLICY DEVICES COMMAND...	  run COMMAND with the paths of so many
#				  null_blk devices under the policy after it
#
# and is answered by a line "result OUTPUT" or "error WHY". A policy has devices
# of its own, which keep what they have learnt. The end of stdin is the end of
# the machine.
set -u

CONFIG=/sys/kernel/config/nullb
DELAY=/sys/module/blk_mq/parameters/delay
export PATH=/bin

answer()
{
	echo "$*"
}

die()
{
	answer "error $*"
	poweroff -f
}

mount_all()
{
	mount -t proc proc /proc &&
		mount -t sysfs sysfs /sys &&
		mount -t configfs configfs /sys/kernel/config &&
		mount -t devtmpfs devtmpfs /dev
}

# One hardware queue, deep enough for a batch of 128, that completes at once.
make_device()
{
	mkdir "$CONFIG/$1" || return 1
	for pair in size=4096 irqmode=0 queue_mode=2 submit_queues=1 \
		    hw_queue_depth=1023 power=1; do
		echo "${pair#*=}" >"$CONFIG/$1/${pair%%=*}" || return 1
	done
	echo none >"/sys/block/$1/queue/scheduler"
}

in_force()
{
	case " $(cat "$1") " in
	*"[$2]"* | " $2 ") ;;
	*) return 1 ;;
	esac
}

# choose FILE VALUE: written anew, "adaptive" would forget
choose()
{
	in_force "$1" "$2" || { echo "$2" >"$1" && in_force "$1" "$2"; }
}

# What a user of any kernel can choose, and what only the patched one offers.
set_policy()
{
	queue=/sys/block/$1/queue nomerges=0 policy=$2 delay=0
	case $2 in
	nomerges2)
		nomerges=2 policy=always ;;
	delay*)
		delay=${2#delay} policy=always ;;
	esac
	choose "$queue/nomerges" $nomerges || return 1
	if [ "$delay" != 0 ] || [ -e $DELAY ]; then
		choose $DELAY "$delay" || return 1
	fi
	if [ "$policy" != always ] || [ -e "$queue/plug_policy" ]; then
		choose "$queue/plug_policy" "$policy"
	fi
}

measure()
{
	policy=$1 devices=$2 paths=
	shift 2
	while [ "$devices" -gt 0 ]; do
		disk=$policy-$devices
		devices=$((devices - 1))
		[ -e "/sys/block/$disk" ] || make_device "$disk" ||
			die "$disk cannot be made"
		set_policy "$disk" "$policy" ||
			die "$disk: policy $policy cannot be set"
		paths="$paths /dev/$disk"
	done
	# shellcheck disable=SC2086 # one word per path
	out=$("$@" $paths 2>&1) || die "'$*' failed: $out"
	answer "result $out"
}

stty -echo
mount_all || die "a file system cannot be mounted"
make_device probe || die "null_blk cannot be configured"
has=no
[ ! -e /sys/block/probe/queue/plug_policy ] || has=yes
answer "ready plug_policy=$has"
while read -r line; do
	# shellcheck disable=SC2086 # words
	measure $line
done
poweroff -f
