#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest: the functions that a plan, written by lab.py, is made of.
#
#   begin KERNEL			  check the machine, load the model
#   cell ID POLICY DEVICES SETTINGS COMMAND...
#					  make the devices, run, count, report
#   nvme_cell ID POLICY COMMAND...	  on the real driver, whose controller
#					  QEMU emulates: once timed, its
#					  doorbells counted by the controller
#					  between two marks, once with its calls
#					  counted
#   nvme_load, null_blk_load ID POLICY COMMAND...
#					  on these drivers, timed
#
# KERNEL says which of the kernels this must be. DEVICES is how many models to
# make; SETTINGS are words, "key=value" of ssd_model or "queue.key=value" of
# each disk's queue. COMMAND is run with the disks' paths after it, unless it is
# on_disk of loads_guest.sh, and its "key=value" words go to fd 3, with the
# device's counters.
set -eu

DEVICE=/sys/module/ssd_model/parameters/device
NULLB=/sys/kernel/config/nullb
STATS=/sys/kernel/debug/ssd_model
TRACE=/sys/kernel/tracing
MODULES=/modules
disks=

die()
{
	echo "bench: $*" >&2
	echo "error $*" >&3
	exit 1
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
	words=
	for pair in $2; do
		case $pair in
		queue.*) ;;
		*) words="$words $pair" ;;
		esac
	done
	nr=0
	while [ $nr -lt "$1" ]; do
		echo "model$nr $words" >"$DEVICE" || die "no device: $words"
		nr=$((nr + 1))
	done
	find_disks
}

remove_devices()
{
	for dir in "$STATS"/model*; do
		[ ! -d "$dir" ] || echo "-${dir##*/}" >"$DEVICE"
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
		/^(doorbells|commands|interrupts|polls|poll_hits) / {
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
		[ "$1" = on_disk ] || paths="$paths /dev/$disk"
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

# --- other drivers ------------------------------------------------------------

# make_null DISK KEY=VALUE...: one that completes in the submission, with as much
# in flight as it can have: the least that a driver can do
make_null()
{
	mkdir "$NULLB/$1"
	made=$NULLB/$1
	shift
	for pair in hw_queue_depth=1023 irqmode=0 "$@" power=1; do
		echo "${pair#*=}" >"$made/${pair%%=*}" ||
			die "null_blk does not take $pair"
	done
}

functions()
{
	printf '%s\n' nvme_queue_rqs nvme_queue_rq blk_mq_get_tags \
		blk_mq_get_tag >$TRACE/set_ftrace_filter
}

profile()
{
	echo "$1" >$TRACE/function_profile_enabled
}

hits()
{
	cat $TRACE/trace_stat/function* |
		awk -v f="$1" '$1 == f { n += $2 } END { print n + 0 }'
}

# Of the driver and of the tag allocator, as words.
calls()
{
	echo "queue_rqs=$(hits nvme_queue_rqs)" \
		"queue_rq=$(hits nvme_queue_rq)" \
		"tag_batches=$(hits blk_mq_get_tags)" \
		"tags_single=$(hits blk_mq_get_tag)"
}

# Completed requests of the one disk; those merged into one count once.
completed()
{
	awk '{ print $1 + $5 }' "/sys/block/$disks/stat"
}

# driver_cell ID POLICY COMMAND...: prints what is reported
driver_cell()
{
	id=$1 policy=$2
	shift 2
	set_queues "queue.scheduler=none queue.nomerges=0"
	set_policy always
	set_policy "$policy"
	before=$(completed)
	out=$(run "$@") || die "cell $id, $policy: '$*' failed: $out"
	after=$(completed)
	echo "cell id=$id $out dev_commands=$((after - before))"
}

nvme_load()
{
	disks=nvme0n1
	mark "$1.begin"
	driver_cell "$@" >&3
	mark "$1.end"
}

nvme_cell()
{
	disks=nvme0n1
	mark "$1.begin"
	said=$(driver_cell "$@") || exit 1
	mark "$1.end"
	shift 2
	functions
	profile 1
	run "$@" >/dev/null || die "$said: '$*' failed"
	profile 0
	echo "$said $(calls)" >&3
}

null_blk_load()
{
	disks=nullb0
	make_null nullb0 size=4096 blocksize=512 submit_queues=1
	driver_cell "$@" >&3
	rmdir $NULLB/nullb0
}

# --- the machine --------------------------------------------------------------

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
	[ -e $DEVICE ] || die "ssd_model makes no devices"
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
