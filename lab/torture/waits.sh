#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: no request sits in a plug longer than its submitter runs.
#
# Each case runs one load in one mode under a trace, which waits.awk judges:
# nothing may be held while the submitter sleeps, for whatever reason, nor when
# it is back in user space. A submitter that is preempted keeps what it holds
# until it runs again, as everywhere in Linux; how much that may be depends on
# the mode, and how long it took is printed (hog_*_us).
#
# did waits_checked	requests whose whole hold was seen
# did sleeps_checked	times that a submitter slept, was stopped, or left the
#			kernel, holding nothing
# did preempts_checked	times that one was preempted, holding what it may
# did hog_max_us_MODE	the longest hold beside the hog
# did hog_mean_us_MODE	the mean one
# did copies_us_MODE	how long a read was held that came before copies

. "${0%/*}/torture_lib.sh"

DISK=bpwait
CPU=1
LOADS=$(labels waits.sh run_load)

# One burst is longer than any submission, so that a request that waits for the
# hog is told from one that waits for the rest of its plug.
BUSY_US=4000
IDLE_US=3000

# One read beside a plug's worth of copies.
COPIES=63

# What waits.awk prints of a case
W_waits=0 W_sleeps=0 W_exits=0 W_stops=0 W_preempts=0 W_held=0 W_most=0
W_first_us=0 W_max_us=0 W_mean_us=0

# --- the trace -------------------------------------------------------------

record()
{
	set_attr "$TRACEFS/trace_clock" global
	trace_start block:block_getrq block:block_rq_insert \
		block:block_rq_issue block:block_rq_merge \
		block:block_bio_frontmerge sched:sched_switch \
		raw_syscalls:sys_exit
}

# judge WHAT LIMIT: of the trace, and count; sets W_*
judge()
{
	local word value

	trace_end
	awk -v dev="$DEV" -v limit="$2" -f "$DIR/waits.awk" "$TMP/trace" \
		>"$TMP/waits"
	while read -r word value; do
		case $word in
		bad) found "waits: $1: at $value" ;;
		*) eval "W_$word=\$value" ;;
		esac
	done <"$TMP/waits"
	[ "$W_waits" -gt 0 ] || found "waits: $1: no request in the trace"
	did waits_checked "$W_waits"
	did sleeps_checked $((W_sleeps + W_exits))
	did preempts_checked "$W_preempts"
	echo "waits: $1: $(tr '\n' ' ' <"$TMP/waits")"
}

# How many requests a preempted submitter may hold: the one that it is sending
# is not in the plug, but looks so in the trace; a plug that is full as well.
limit_of()
{
	case $1 in
	never) echo 1 ;;
	seq-small) echo 9 ;;
	*) echo $((BATCH + 1)) ;;
	esac
}

# --- loads -----------------------------------------------------------------

# io ARG...: of this case, of random 4K
io()
{
	load -n "$IOS" -s "$BATCH" -c 8 -d 128 "$@" "/dev/$DISK"
}

# The submitter sleeps for a tag while it holds requests.
few_tags()
{
	set_attr "/sys/block/$DISK/queue/nr_requests" 24
	io -e libaio || return
	set_attr "/sys/block/$DISK/queue/nr_requests" 256
}

exec_load()
{
	exec plug_load -n "$IOS" -s "$BATCH" -c 8 -d 128 "/dev/$DISK" \
		>"$TMP/load" 2>&1
}

# A signal is taken on the way back to user space, or in a sleep.
stopped()
{
	background exec_load
	while kill -STOP "$JOB" 2>/dev/null; do
		usleep 4000
		kill -CONT "$JOB" 2>/dev/null
		usleep 6000
	done
	wait "$JOB"
}

# On one CPU, which the hog takes away again and again.
beside_hog()
{
	local rc=0

	PIN="taskset $((1 << CPU))"
	# shellcheck disable=SC2086 # a command
	background $PIN hog $BUSY_US $IDLE_US
	"$@" || rc=$?
	PIN=
	kill "$JOB" || found "waits: there is no hog any more"
	wait "$JOB" 2>/dev/null
	return $rc
}

# The copies come from the page cache of another disk.
copies()
{
	local list="/dev/$DISK:0:4096" n=0

	while [ $n -lt $COPIES ]; do
		list="$list /dev/bpcopy:$((n % 16 * 1048576)):1048576:buffered"
		n=$((n + 1))
	done
	# shellcheck disable=SC2086 # a list
	submit_list $list
}

# The labels are all there are.
run_load()
{
	case $1 in
	uring) io ;;
	libaio) io -e libaio ;;
	libaio_tags) few_tags ;;
	large)		# so that io_uring's workers take what is several requests
		load -n 128 -b 4m -s 4 -c 1 -d 8 "/dev/$DISK"
		;;
	readahead)	# each pass goes on where the last one was
		echo 1 >/proc/sys/vm/drop_caches
		dd if="/dev/$DISK" of=/dev/null bs=64k count=$((IOS / 8))
		;;
	writeback)
		dd if=/dev/zero of="/dev/$DISK" bs=64k count=$((IOS / 16)) \
			conv=fsync
		;;
	psync) dd if="/dev/$DISK" of=/dev/null bs=4M count=8 iflag=direct ;;
	stopped) stopped ;;
	sqpoll) io -q ;;
	hog) beside_hog io ;;
	hog_tags) beside_hog few_tags ;;
	copies) copies ;;
	esac || found "waits: the load failed: $1"
}

# --- cases -----------------------------------------------------------------

# one_case MODE LOAD
one_case()
{
	set_fresh $DISK "$1" || return 1
	record
	run_load "$2"
	judge "$1, $2" "$(limit_of "$1")"
	case $2 in
	hog*) remember_hog "$1" ;;
	copies) did "copies_us_$1" "$W_first_us" ;;
	stopped) [ "$W_stops" -gt 0 ] || echo "waits: nobody was stopped" ;;
	esac
}

# --- what the hog costs ----------------------------------------------------

remember_hog()
{
	echo "$W_max_us $W_mean_us $W_waits $W_held $W_most" >>"$TMP/hog.$1"
}

# hog_figures MODE: sets MAX, MEAN, HELD and MOST of all its cases
hog_figures()
{
	[ -e "$TMP/hog.$1" ] || return
	# shellcheck disable=SC2046 # four numbers
	set -- $(awk '{ if ($1 > max) max = $1; sum += $2 * $3; n += $3
		held += $4; if ($5 > most) most = $5 }
		END { print max + 0, int(n ? sum / n : 0), held, most + 0 }' \
		"$TMP/hog.$1")
	MAX=$1 MEAN=$2 HELD=$3 MOST=$4
}

# What a mode holds less, waits less for the hog; what it holds as long, waits
# as long. Twice and a burst is what chance makes of equals.
tell_hog()
{
	local mode always=

	! hog_figures always || always=$MEAN
	for mode in $MODES; do
		hog_figures "$mode" || continue
		did "hog_max_us_$mode" "$MAX"
		did "hog_mean_us_$mode" "$MEAN"
		echo "waits: $mode was preempted $HELD times with requests" \
			"held, at most $MOST"
		[ -z "$always" ] || [ "$MEAN" -le $((2 * always + BUSY_US)) ] ||
			found "waits: beside a hog $mode holds for $MEAN us," \
				"always for $always us"
	done
}

# --- all of it -------------------------------------------------------------

# A disk that takes its time, so that submitters sleep for completions, and
# for tags where there are few.
make_disks()
{
	null_create $DISK irqmode=2 completion_nsec=100000 max_sectors=256 &&
	null_create bpcopy size=16 || return 1
	# a block device's page cache goes when nobody has it open
	exec 9</dev/bpcopy
	dd if=/dev/bpcopy of=/dev/null bs=1M 2>/dev/null || return 1
	DEV=$(tr : , <"/sys/block/$DISK/dev")
	MODES=$(modes_of $DISK)
}

# Every load in every mode, as long as there is time, from a random place.
all_cases()
{
	local load mode begun=

	# shellcheck disable=SC2086 # a list
	pick $LOADS
	while time_left; do
		for load in $LOADS; do
			[ -n "$begun" ] || [ "$load" = "$WORD" ] || continue
			begun=1
			for mode in $MODES; do
				time_left || return 0
				one_case "$mode" "$load"
			done
		done
	done
}

rnd_seed "$1"
deadline "$2"
IOS=2048
need_null_blk
need_trace
need_program hog
need_program submit_list
[ -z "$MISSING" ] || skip "$MISSING"
make_disks || skip "cannot create the disks"
all_cases
tell_hog
over
