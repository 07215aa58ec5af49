#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: the functions that a plan, written by lab.py, is made of.
#
#   begin KERNEL			  check the machine, load the model
#   cell ID POLICY DEVICES SETTINGS COMMAND...
#					  make the devices, run, count, report
#
# KERNEL says which of the kernels this must be. DEVICES is how many models to
# make; SETTINGS are words, "key=value" of ssd_model or "queue.key=value" of
# each disk's queue. COMMAND is run with the disks' paths after it, and its
# "key=value" words go to fd 3, with the device's counters.
set -eu

CONFIG=/sys/kernel/config/ssd_model
STATS=/sys/kernel/debug/ssd_model
MODULES=/modules
disks=

die()
{
	echo "bench: $*" >&2
	echo "error $*" >&3
	exit 1
}

# make_xfs DISK
make_xfs()
{
	[ -d /sys/module/xfs ] || insmod $MODULES/xfs.ko >&2 || return 1
	mkfs.xfs -q -f -K "$1" >&2
}

# The disks of all devices.
find_disks()
{
	disks=
	for path in /sys/block/model*n*; do
		[ ! -e "$path" ] || disks="$disks ${path##*/}"
	done
}

make_devices()
{
	nr=0
	while [ $nr -lt "$1" ]; do
		mkdir $CONFIG/model$nr
		for pair in $2; do
			case $pair in
			queue.*) ;;
			*) echo "${pair#*=}" >"$CONFIG/model$nr/${pair%%=*}" ||
				die "ssd_model does not take $pair" ;;
			esac
		done
		echo 1 >$CONFIG/model$nr/power || die "no device: $2"
		nr=$((nr + 1))
	done
	find_disks
}

remove_devices()
{
	for dir in "$CONFIG"/model*; do
		[ ! -d "$dir" ] || rmdir "$dir"
	done
}

set_queues()
{
	for pair in $1; do
		case $pair in
		queue.*) ;;
		*) continue ;;
		esac
		key=${pair%%=*}
		for disk in $disks; do
			echo "${pair#*=}" >"/sys/block/$disk/queue/${key#queue.}" ||
				die "$disk: $pair cannot be set"
		done
	done
}

# What a user of any kernel can choose, and what only the patched one offers.
set_policy()
{
	for disk in $disks; do
		queue=/sys/block/$disk/queue
		case $1 in
		nomerges*)
			echo "${1#nomerges}" >"$queue/nomerges" ;;
		noplug) ;;
		always)
			[ ! -e "$queue/plug_policy" ] ||
				echo always >"$queue/plug_policy" ;;
		*)
			echo "$1" >"$queue/plug_policy" ;;
		esac || die "$disk: policy $1 cannot be set"
	done
}

# stat NAME: a counter, the sum over all devices
stat()
{
	cat $STATS/model*/stats | awk -v name="$1" '$1 == name { n += $2 }
		END { printf "%d", n }'
}

# The device's words: those that a sum over devices leaves a meaning.
counters()
{
	cat $STATS/model*/stats | awk '
		/^(doorbells|commands|interrupts|queue_rqs|queue_rq) / ||
		/^(polls|poll_hits) / {
			n[$1] += $2
		}
		END { for (name in n) printf " dev_%s=%d", name, n[name] }'
}

reset_counters()
{
	for file in "$STATS"/model*/stats; do
		echo 0 >"$file"
	done
}

run()
{
	paths=
	for disk in $disks; do
		paths="$paths /dev/$disk"
	done
	# shellcheck disable=SC2086 # one word per path
	"$@" $paths
}

cell()
{
	id=$1 policy=$2 devices=$3 settings=$4
	shift 4
	make_devices "$devices" "$settings"
	set_queues "$settings"
	set_policy "$policy"
	reset_counters
	out=$(run "$@") || die "cell $id, $policy: '$*' failed: $out"
	echo "cell id=$id $out$(counters)" >&3
	remove_devices
}

# A plug, as the kernel named must treat it: 32 commands per doorbell, or 1.
check_plug()
{
	make_devices 1 "poll_queues=1"
	set_queues "queue.scheduler=none"
	reset_counters
	run plug_load -P -a rand -n 3200 >/dev/null ||
		die "the model does not work"
	rang=$(stat doorbells) want=100
	[ "$1" != noplug ] || want=3200
	[ "$rang" -eq $want ] ||
		die "kernel $1: $rang doorbells for 3200 I/Os, expected $want"
	has=no
	[ ! -e /sys/block/model0n1/queue/plug_policy ] || has=yes
	remove_devices
}

begin()
{
	insmod $MODULES/ssd_model.ko || die "ssd_model does not load"
	[ -d $CONFIG ] || die "ssd_model has no configfs directory"
	clock=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)
	[ "$(nproc)" = 1 ] || die "$(nproc) CPUs: only one makes runs repeat"
	check_plug "$1"
	# The sections before "policy" do not have it, either.
	case $1,$has in
	patched,yes) ;;
	patched,* | *,yes) die "kernel $1: plug_policy there: $has" ;;
	esac
	echo "machine kernel=$1 release=$(uname -r) clock=$clock" \
		"plug_policy=$has" >&3
}
