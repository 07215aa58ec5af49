#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: the knobs take what is documented and nothing else, whatever is
# written to them by many tasks at once, under verified I/O, and while the disks
# they belong to go and come back.
#
# fuzz.sh SEED SECONDS
#
# First the NVMe disk stays, while null_blk disks are switched off and on,
# removed and made anew, and change their number of queues; then its controller
# is removed and found again. FUZZ_MODES stands for the documented modes: to see
# that this can fail, leave one out.

# shellcheck disable=SC2317 # functions are called by the names given to others

# shellcheck source=torture_lib.sh
. "${0%/*}/torture_lib.sh"
# shellcheck source=stacks.sh
. "${0%/*}/stacks.sh"

FUZZ_MODES=${FUZZ_MODES:-always never seq-small adaptive}
TASKS=24
STAYS=fuzz0		# with memory behind it, so that data verifies
SWITCHED=fuzz1
REMADE=fuzz2
GONE_SECONDS=20		# for a controller to go, or to come back

# --- load ------------------------------------------------------------------
# (nice, so that most of the time goes to the knobs)

# verify_until_stop DISK: writes and verifies, pass after pass
verify_until_stop()
{
	local passes=0

	while [ ! -e "$TMP/stop" ]; do
		fio --name=fuzz --thread --nice=10 \
			--filename="/dev/$1" --rw=randwrite \
			--bsrange=4k-64k --size=4m --direct=1 \
			--ioengine=io_uring --iodepth=64 \
			--iodepth_batch_submit=32 --fsync=64 --minimal \
			--iodepth_batch_complete_min=16 --verify=crc32c \
			--verify_fatal=1 --do_verify=1 >"$TMP/fio.$1" 2>&1 || {
			found "$1: fio: $(tail -n 1 "$TMP/fio.$1")"
			return
		}
		passes=$((passes + 1))
	done
	did fuzz_bytes_verified $((passes * 4 * 1048576))
}

# load_until_stop DISK: its I/O may fail, since the disk goes
load_until_stop()
{
	while [ ! -e "$TMP/stop" ]; do
		plug_load -t 2 -s 32 -d 128 "/dev/$1" >"$TMP/load.$1" 2>&1 &
		renice -n 10 -p $! >/dev/null 2>&1
		wait $!
		# 3: I/O that never completes
		[ $? -ne 3 ] || found "$1: $(head -n 1 "$TMP/load.$1")"
		sleep 0.1
	done
}

# --- disks that go ---------------------------------------------------------

set_power()
{
	echo "$2" >"$NULLB/$1/power"
}

# One way in which null_blk disks go, as $1 % 3 says.
disturb_null()
{
	case $(($1 % 3)) in
	0)
		set_power "$SWITCHED" 0 && sleep 0.1 && set_power "$SWITCHED" 1
		did removals 1
		;;
	1)
		rmdir "$NULLB/$REMADE" && make_null "$REMADE"
		did removals 1
		;;
	2)
		echo $((1 + $1 / 3 % 2)) >"$NULLB/$SWITCHED/submit_queues" &&
		did queue_changes 1
		;;
	esac
}

make_null()
{
	mkdir "$NULLB/$1" &&
	echo 64 >"$NULLB/$1/size" &&
	echo 2 >"$NULLB/$1/submit_queues" &&
	echo 256 >"$NULLB/$1/hw_queue_depth" &&
	echo 0 >"$NULLB/$1/irqmode" &&
	set_power "$1" 1
}

disturb_nulls()
{
	local n=0

	while [ ! -e "$TMP/stop" ]; do
		disturb_null "$n" || {
			found "null_blk: disturbance $((n % 3)) failed"
			return
		}
		n=$((n + 1))
		sleep 0.3
	done
}

is_back()
{
	[ -b "/dev/$(nvme_disk_at "$DEVICE")" ]
}

is_gone()
{
	[ ! -e "$DEVICE" ]
}

# The load ends when the disk goes; without it the name is free.
remove_and_rescan()
{
	local load

	plug_load -t "$GONE_SECONDS" -s 32 -d 128 \
		"/dev/$(nvme_disk_at "$DEVICE")" \
		>"$TMP/load" 2>&1 &
	load=$!
	sleep 0.5
	echo 1 >"$DEVICE/remove"
	wait_for "$GONE_SECONDS" is_gone || return 1
	wait "$load"
	[ $? -ne 3 ] || found "$DEVICE: I/O never completed"
	did removals 1
	echo 1 >/sys/bus/pci/rescan
	wait_for "$GONE_SECONDS" is_back
}

remove_until_stop()
{
	while [ ! -e "$TMP/stop" ]; do
		remove_and_rescan || return
		sleep 0.2
	done
}

# --- fuzzing ---------------------------------------------------------------

# fuzz SECONDS ARG...: knob_fuzz, whose output goes on as did and found
fuzz()
{
	local seconds="$1"

	shift
	knob_fuzz -m "$FUZZ_MODES" -S "$SEED" -t "$seconds" -j $TASKS "$@" \
		>"$TMP/fuzz" 2>&1 || [ $? -eq 1 ] ||
		found "knob_fuzz: $(tail -n 1 "$TMP/fuzz")"
	relay knob_fuzz <"$TMP/fuzz"
}

# stop_jobs: those that were started with background
stop_jobs()
{
	: >"$TMP/stop"
	# shellcheck disable=SC2086 # a list
	wait $JOBS
	JOBS=
	rm -f "$TMP/stop"
}

# In the first half of the time the static keys stay on, so that switching is
# cheap and there is more of it; in the other half they change with the modes.
while_nvme_stays()
{
	local seconds=$(($1 / 2 + 1))

	set -- -s $STAYS -r $SWITCHED -r $REMADE
	background verify_until_stop $STAYS
	background load_until_stop $SWITCHED
	background load_until_stop $REMADE
	background disturb_nulls
	if [ -n "$DISK" ]; then
		background verify_until_stop "$DISK"
		set -- "$@" -s "$DISK"
	fi
	pin_static_keys
	fuzz "$seconds" "$@"
	unpin_static_keys
	fuzz "$seconds" "$@"
	stop_jobs
}

# Names that the disk may come back with.
names_of_disk()
{
	local n

	echo "-r $DISK"
	for n in 0 1 2 3 4 5; do
		[ -e "/sys/block/nvme${n}n1" ] || echo "-r nvme${n}n1"
	done
}

while_nvme_goes()
{
	# shellcheck disable=SC2046 # a list
	set -- $(($1 + 1)) -s $STAYS $(names_of_disk)
	background verify_until_stop $STAYS
	background remove_until_stop
	fuzz "$@"
	stop_jobs
}

# Whatever was done to them, disks still switch and do I/O.
still_works()
{
	local mode

	for mode in $FUZZ_MODES; do
		if ! set_mode "$1" "$mode" ||
		   ! load -r write -a rand-once -z 1m "/dev/$1" ||
		   ! load -r verify -a seq -z 1m "/dev/$1"; then
			found "$1: does not work under $mode afterwards"
		fi
	done
}

finish_and_cleanup()
{
	local rc=$? name

	: >"$TMP/stop"
	# shellcheck disable=SC2086 # a list
	[ -z "$JOBS" ] || kill $JOBS 2>/dev/null
	wait
	for name in $SWITCHED $REMADE; do
		[ ! -d "$NULLB/$name" ] || rmdir "$NULLB/$name"
	done
	if [ -n "$DISK" ] && ! is_back; then
		echo 1 >/sys/bus/pci/rescan
		wait_for "$GONE_SECONDS" is_back
	fi
	(exit "$rc")
	cleanup
}

[ $# -eq 2 ] || usage SEED SECONDS
PATH=${0%/*}:$PATH
SEED=$1
command -v knob_fuzz >/dev/null || skip "no knob_fuzz"
need_null_blk
[ -z "$MISSING" ] || skip "$MISSING"
# shellcheck disable=SC2046 # a list
set -- "$2" $(nvme_disks)
DISK=${2-}
[ -z "$DISK" ] || DEVICE=$(readlink -f "/sys/block/$DISK/device/device")
trap finish_and_cleanup EXIT
null_create $STAYS memory_backed=1 size=64 ||
	{ found "cannot make a null_blk disk"; over; }
for name in $SWITCHED $REMADE; do
	make_null "$name" || { found "cannot make $name"; over; }
done
if [ -n "$DISK" ]; then
	while_nvme_stays $(($1 * 2 / 3))
	while_nvme_goes $(($1 / 3))
	if is_back; then
		DISK=$(nvme_disk_at "$DEVICE")
		still_works "$DISK"
	else
		found "$DISK: did not come back"
	fi
else
	while_nvme_stays "$1"
fi
still_works $STAYS
over
