#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: what else decides when an I/O is sent out, beside each mode in
# turn. What was written is read back.
#
# neighbours.sh SEED SECONDS [CASE]
#
# did neighbours		cases tried, each in one mode
# did throttled_ios		I/Os done under a limit
# did iocost_idle		times that the load was too slow to need io.cost
# did iocost_missed		times that weights were not kept
# did suspends_to_idle		under load

# shellcheck disable=SC2034 # TRAITS, QUEUES, KIND...: for who is sourced

. "${0%/*}/torture_lib.sh"
. "${0%/*}/stacks.sh"
. "${0%/*}/loads.sh"
. "${0%/*}/disturb.sh"

RATE=400	# I/Os a second, that a slow guest can exceed
COST_RATE=200	# by two loads that verify what they write
STEP=4		# seconds of a load
DEADLINE_IO=120	# by then any load has ended

# --- loads in the cgroups a and b -------------------------------------------

# start GROUP [OPTION...]: fio, in the background
start()
{
	local group="$1" place=0

	shift
	[ "$group" = a ] || place=24
	rm -f "$TMP/rc.$group" "$TMP/fio.$group"
	rnd 1000000
	set -- --name="$group" --thread --eta=never --output-format=json \
		--output="$TMP/fio.$group" --filename="/dev/$DISK" \
		--allow_file_create=0 --randseed="$R" --direct=1 \
		--ioengine=io_uring --iodepth=64 --iodepth_batch_submit=16 \
		--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=64 \
		--bs=4k --offset="${place}m" --size=16m \
		--time_based --runtime="$STEP" "$@"
	trait nodata || set -- "$@" --rw=randwrite --verify=crc32c \
		--verify_backlog=64 --verify_fatal=1 --verify_state_save=0
	background run_fio "$group" "$@"
}

run_fio()
{
	local group="$1" rc=0

	shift
	in_cgroup "$group" fio "$@" >"$TMP/err.$group" 2>&1 || rc=$?
	[ ! -e "$TMP/told" ] || rc=$((rc - 128))	# told to end
	echo "$rc" >"$TMP/rc.$group"
}

# finish_load GROUP: sets IOS; a trait errors says that it may fail
finish_load()
{
	IOS=0
	if ! wait_for "$DEADLINE_IO" test -s "$TMP/rc.$1"; then
		found "$CASE, $MODE: a load does not end"
		over
	fi
	IOS=$(fio_sums "$TMP/fio.$1")
	IOS=${IOS% *}
	did ios "$IOS"
	trait errors && return
	if [ "$(cat "$TMP/rc.$1")" -ne 0 ] || [ "$IOS" -eq 0 ]; then
		found "$CASE, $MODE: fio ended with $(cat "$TMP/rc.$1"), $IOS" \
			"I/Os: $(grep -im 1 -E 'verify|error|fail' \
				"$TMP/err.$1" || tail -n 1 "$TMP/err.$1")"
	fi
}

# alone GROUP: sets IOS
alone()
{
	start "$1"
	finish_load "$1"
}

# Sets IOS_A and IOS_B
both()
{
	start a
	start b
	finish_load a
	IOS_A=$IOS
	finish_load b
	IOS_B=$IOS
}

# limit FILE TEXT: for the disk, in one of the files of cgroups
limit()
{
	echo "$(cat "/sys/block/$DISK/dev") $2" >"$CGROUP/$1" ||
		found "$CASE: $1 does not take '$2'"
}

# group_stat GROUP KEY: of the disk
group_stat()
{
	sed -n "s/^$(cat "/sys/block/$DISK/dev") .*$2=\([0-9]*\).*/\1/p" \
		"$CGROUP/$1/io.stat" | grep . || echo 0
}

# --- cases: case_NAME tries one mode of $DISK --------------------------------

# io.max: no more than it allows, and all of it is done.
case_throttle()
{
	local key before most

	need_option CONFIG_BLK_DEV_THROTTLING
	pick "riops=$RATE wiops=$RATE" \
		"rbps=$((RATE * 4096)) wbps=$((RATE * 4096))"
	limit a/io.max "$WORD"
	set -- "$(group_stat a rios)" "$(group_stat a wios)"
	now
	before=$NOW
	alone a
	did throttled_ios "$IOS"
	now
	# a second for the clock's grain, and a slice that may be unused before
	most=$((RATE * (NOW - before + 2)))
	for key in rios wios; do
		[ $(($(group_stat a "$key") - $1)) -le "$most" ] ||
			found "$CASE, $MODE: $key of $(group_stat a "$key")," \
				"before $1; $most are allowed by '$WORD'"
		shift
	done
	limit a/io.max "riops=max wiops=max rbps=max wbps=max"
	alone a
}

# The disk goes while its I/O waits for its turn.
case_throttle_gone()
{
	need_option CONFIG_BLK_DEV_THROTTLING
	limit a/io.max "riops=50 wiops=50"
	start a --rw=randrw --runtime="$DEADLINE_IO"
	sleep 1
	echo 0 >"$NULLB/$DISK/power"
	now
	finish_load a
	set -- "$NOW"
	now
	[ $((NOW - $1)) -lt $((DEADLINE_IO / 2)) ] ||
		found "$CASE, $MODE: I/O outlived its disk by $((NOW - $1)) s"
	echo 1 >"$NULLB/$DISK/power"
	wait_for 5 test -b "/dev/$DISK"
}

# io.cost: weights are kept, with and without the statistics that it needs.
case_iocost()
{
	local model="rbps=2000000000 wbps=2000000000" key iostats

	need_option CONFIG_BLK_CGROUP_IOCOST
	for key in rseqiops rrandiops wseqiops wrandiops; do
		model="$model $key=$COST_RATE"
	done
	limit io.cost.model "ctrl=user model=linear $model"
	limit io.cost.qos "enable=1 ctrl=user rpct=95 rlat=20000 wpct=95 \
wlat=20000 min=100 max=100"
	echo 100 >"$CGROUP/a/io.weight"
	echo 400 >"$CGROUP/b/io.weight"
	for iostats in 1 0; do
		set_attr "/sys/block/$DISK/queue/iostats" "$iostats"
		# a guest that had to wait may miss them, once
		weights_kept "$iostats" || weights_kept "$iostats" ||
			found "$CASE, $MODE: with iostats $iostats, weight" \
				"400 did $IOS_B I/Os, weight 100 $IOS_A"
	done
	set_attr "/sys/block/$DISK/queue/iostats" 1
	limit io.cost.qos "enable=0"
}

# done_by GROUP: its I/Os on the disk, with those that verify
done_by()
{
	echo $(($(group_stat "$1" rios) + $(group_stat "$1" wios)))
}

# began GROUP NR: it has done more
began()
{
	[ "$(done_by "$1")" -gt "$2" ]
}

# begins GROUP: waits for its first I/Os
begins()
{
	set -- "$1" "$(done_by "$1")"
	start "$1" --runtime="$DEADLINE_IO"
	wait_for "$DEADLINE_IO" began "$@"
}

# since_boot: hundredths of a second
since_boot()
{
	sed 's/ .*//; s/\.//' /proc/uptime
}

# Sets IOS_A and IOS_B to what both do at once in TIME, hundredths of a second
side_by_side()
{
	begins a
	begins b
	set -- "$(done_by a)" "$(since_boot)" "$(done_by b)"
	sleep "$STEP"
	set -- $(($(done_by a) - $1)) $(($(since_boot) - $2)) \
		$(($(done_by b) - $3))
	: >"$TMP/told"
	killall -INT fio
	finish_load a
	finish_load b
	rm "$TMP/told"
	IOS_A=$1 TIME=$2 IOS_B=$3
}

# weights_kept IOSTATS
weights_kept()
{
	side_by_side
	echo "$CASE, $MODE, iostats $1: weight 100: $IOS_A, 400: $IOS_B, in $TIME"
	# a guest too slow to use the rate up
	if [ $(((IOS_A + IOS_B) * 1000)) -lt $((COST_RATE * TIME * 9)) ]; then
		did iocost_idle 1
		return 0
	fi
	[ "$IOS_B" -ge $((IOS_A * 2)) ] && return
	did iocost_missed 1
	return 1
}

# io.latency: who had to make way gets all of its depth back.
case_iolatency()
{
	local before

	need_option CONFIG_BLK_CGROUP_IOLATENCY
	alone b
	before=$IOS
	limit a/io.latency "target=200"
	both
	echo "$CASE, $MODE: alone $before, target $IOS_A, beside it $IOS_B"
	grep "^$(cat "/sys/block/$DISK/dev")" "$CGROUP/b/io.stat"
	deadline 60
	until alone b; [ "$IOS" -ge $((before / 3)) ]; do
		time_left || {
			found "$CASE, $MODE: $before I/Os, then $IOS for good"
			break
		}
	done
	limit a/io.latency "target=max"
}

# io.prio: nobody starves, whatever looks at priorities.
case_ioprio()
{
	local name

	need_option CONFIG_BLK_CGROUP_IOPRIO
	echo idle >"$CGROUP/a/io.prio.class"
	echo promote-to-rt >"$CGROUP/b/io.prio.class"
	for name in $(choices "/sys/block/$DISK/queue/scheduler"); do
		set_attr "/sys/block/$DISK/queue/scheduler" "$name"
		both
	done
	set_attr "/sys/block/$DISK/queue/scheduler" none
	echo no-change >"$CGROUP/a/io.prio.class"
	echo no-change >"$CGROUP/b/io.prio.class"
}

# bfq with groups of its own, then other schedulers in its place, and back
case_bfq()
{
	local disturber

	need_option CONFIG_BFQ_GROUP_IOSCHED
	echo 100 >"$CGROUP/a/io.bfq.weight"
	echo 500 >"$CGROUP/b/io.bfq.weight"
	set_attr "/sys/block/$DISK/queue/scheduler" bfq
	both
	rm -f "$TMP/stop"
	background run_disturber elevators "$R"
	disturber=$JOB
	both
	: >"$TMP/stop"
	wait "$disturber"
	set_attr "/sys/block/$DISK/queue/scheduler" none
}

# Devices sleep, under load, and wake up with the modes that they had.
case_suspend()
{
	need_option CONFIG_PM_DEBUG
	set_attr /sys/power/pm_test devices
	set_attr /sys/module/suspend/parameters/pm_test_delay 1
	start a
	start b
	for _ in 1 2; do
		sleep 1
		if echo freeze >/sys/power/state; then
			did suspends_to_idle 1
		else
			found "$CASE, $MODE: no suspend"
		fi
	done
	finish_load a
	finish_load b
	[ "$MODE" = unpatched ] ||
		expect_text "mode after suspend" "$(attr "$(knob "$DISK")")" \
			"$MODE"
}

# --- all ---------------------------------------------------------------------

cases()
{
	sed -n 's/^case_\(.*\)()$/\1/p' "$0"
}

# Sets DISK to one that keeps data, if the case lets it
make_disk()
{
	TRAITS='' MORE=''
	case $CASE in
	throttle_gone)
		null_alone irqmode=2
		DISK=tn0
		TRAITS="nodata errors"
		;;
	suspend)
		nvme 1
		DISK=$BASES
		;;
	*)
		bases 1
		DISK=$BASES
		;;
	esac
	QUEUES=$DISK
}

one_mode()
{
	[ "$MODE" = unpatched ] || set_mode "$DISK" "$MODE"
	"case_$CASE"
	did neighbours 1
	wait_for 60 idle "$DISK" || found "$CASE, $MODE: I/O stays in flight"
}

rnd_seed "$1"
# shellcheck disable=SC2046 # a list
pick $(cases)
CASE=${3:-$WORD}
KIND=neighbours:$CASE
deadline "$2"
END=$DEADLINE
make_cgroups io a b
make_disk
MODES=unpatched
[ ! -e "$(knob "$DISK")" ] || MODES=${TORTURE_MODES:-$(modes_of "$DISK")}
# As long as there is time, from a mode that the seed picks
# shellcheck disable=SC2086 # a list
pick $MODES
FIRST=$WORD
while :; do
	for MODE in $MODES; do
		[ -z "$FIRST" ] || [ "$MODE" = "$FIRST" ] || continue
		FIRST=
		one_mode
		now
		[ "$NOW" -lt "$END" ] || over
	done
done
