#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: under "adaptive" a hardware queue takes samples, tries other
# group sizes, parks, and says so in debugfs and in the trace; data stays right.
#
# Which size it finds is no matter here: that depends on the machine.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

SECOND=1000000000

# --- what it shows ----------------------------------------------------------

shows_samples()
{
	local nr flushes

	set_fresh "$1" adaptive || return 1
	watch
	# shellcheck disable=SC2086 # a list of options
	load $RANDOM_IO -n 20000 "/dev/$1" || return
	trace_end
	nr=$(line_of "$1" sample_ios)
	flushes=$(line_of "$1" sample_flushes)
	expect_count sample_ios "$nr" 64 40000
	[ "$nr" -gt 0 ] || return
	expect_count sample_flushes "$flushes" $((nr / 32)) "$nr"
	expect_count sample_ns "$(line_of "$1" sample_ns)" "$nr" $((60 * SECOND))
	expect_text sample_ns_per_io "$(line_of "$1" sample_ns_per_io)" \
		$(($(line_of "$1" sample_ns) / nr))
	expect_count epoch "$(line_of "$1" epoch)" 64 32768
	expect_text "lookup, where nothing merges" "$(line_of "$1" lookup)" 0
	# The file shows the last one.
	expect_text "last sample in the trace" "$(samples nr flushes | tail -n 1)" \
		"$nr $flushes"
}

# sum_of FIELD: of all samples in the trace
sum_of()
{
	samples "$1" | awk '{ n += $1 } END { print n + 0 }'
}

# samples_add_up DISK BATCH LOAD-OPTION...: each I/O is in one sample, and so is
# each that has merged; but for those since the last one
samples_add_up()
{
	local disk="$1" batch="$2" merges

	shift 2
	set_fresh "$disk" adaptive || return 1
	watch
	merges=$(merges_of "$disk")
	load "$@" -s "$batch" -c "$batch" -d $((4 * batch)) -n 102400 \
		"/dev/$disk" || return
	trace_end
	merges=$(($(merges_of "$disk") - merges))
	expect_count "I/Os in samples" "$(sum_of nr)" 90000 102400
	expect_count "of these, merged" "$(sum_of merged)" \
		$((merges * 9 / 10)) $merges
}

# has_response_times DISK IOSTATS: from when a request was claimed, so less than
# a load takes, and not from when the machine was started
has_response_times()
{
	set_attr "/sys/block/$1/queue/iostats" "$2" &&
	set_fresh "$1" adaptive || return 1
	watch
	# shellcheck disable=SC2086 # a list of options
	load $RANDOM_IO -n 100000 "/dev/$1" || return
	trace_end
	set_attr "/sys/block/$1/queue/iostats" 1
	# The first one began when nobody looked.
	samples wait_ns waits nr | sed 1d >"$TMP/waits"
	expect_count "samples" "$(wc -l <"$TMP/waits")" 3 10000
	# Those that were picked stand for all, in the long run.
	expect_count "response times for 1000 requests" \
		"$(awk '{ waits += $2; nr += $3 }
			END { printf "%d", 1000 * waits / nr }' "$TMP/waits")" \
		500 1500
	expect_text "response times of 0, or above a second" \
		"$(awk -v s=$SECOND '$2 && ($1 / $2 < 1 || $1 / $2 > s)' \
			"$TMP/waits" | wc -l)" 0
	expect_count "samples without response times, of $(wc -l <"$TMP/waits")" \
		"$(awk '!$2' "$TMP/waits" | wc -l)" 0 \
		$(($(wc -l <"$TMP/waits") / 8))
}

# What was in flight without a start time is not timed when it completes.
times_nothing_from_before()
{
	local n=0

	set_attr "/sys/block/$1/queue/iostats" 0 && set_mode "$1" always || return 1
	watch
	# shellcheck disable=SC2086 # a list of options
	background plug_load $RANDOM_IO -t 2 "/dev/$1" >"$TMP/load" 2>&1
	while [ $n -lt 60 ]; do
		set_mode "$1" adaptive
		sleep 0.01
		set_mode "$1" always
		n=$((n + 1))
	done
	wait "$JOB" || failed "the load failed"
	trace_end
	set_attr "/sys/block/$1/queue/iostats" 1
	samples wait_ns waits >"$TMP/waits"
	expect_count "samples" "$(wc -l <"$TMP/waits")" 1 1000000
	expect_text "response times above a second" \
		"$(awk -v s=$SECOND '$2 && $1 / $2 > s' "$TMP/waits" | wc -l)" 0
}

# --- what it does -----------------------------------------------------------

# A plug holds 32, so a quarter of it is what comes first.
measures_tries_and_parks()
{
	set_fresh "$1" adaptive || return 1
	watch
	# shellcheck disable=SC2086 # a list of options
	decides "$1" parked $RANDOM_IO
	trace_end
	expect_legal
	expect_text "first trial" \
		"$(decisions | grep ' try$' | head -n 1)" "32 8 try"
	expect_text "first that is not measuring" \
		"$(decisions | grep -v ' measure$' | head -n 1)" "32 8 try"
}

# A decision is in force.
sends_out_what_it_tries()
{
	set_fresh "$1" adaptive || return 1
	trace_start blk_plug_policy:blk_plug_policy_decide \
		blk_plug_policy:blk_plug_policy_group
	# shellcheck disable=SC2086 # a list of options
	decides "$1" try $RANDOM_IO
	trace_end
	# Up to where the trial ends, but for plugs that are being filled.
	awk '/policy_decide:/ { if (trying) exit; trying = /state=try/ }
		trying && /policy_group:/' "$TMP/trace" >"$TMP/groups"
	expect_count "groups of 8 sent out while 8 was tried" \
		"$(grep -c ' nr=8$' "$TMP/groups")" 5 100000
	expect_text "groups of another size" \
		"$(grep -vc ' nr=8$' "$TMP/groups")" 0
	expect_text "groups before that" "$(sed '/state=try/,$d' "$TMP/trace" |
		grep -c policy_group:)" 0
}

# There is nothing to send out earlier.
stays_at_32()
{
	local disk="$1"

	shift
	set_fresh "$disk" adaptive || return 1
	watch
	decides "$disk" parked "$@"
	trace_end
	expect_text "sizes decided on" \
		"$(decisions | cut -d ' ' -f 2 | sort -u)" 32
	expect_text group "$(line_of "$disk" group)" 32
}

# No plug, no sample.
one_by_one()
{
	local before after

	set_fresh "$1" adaptive || return 1
	trace_start blk_plug_policy:blk_plug_policy_sample \
		blk_plug_policy:blk_plug_policy_decide
	before=$(cat "$DEBUGFS/block/$1"/hctx*/plug_adaptive)
	load -s 1 -c 1 -d 1 -n 20000 "/dev/$1" || return
	after=$(cat "$DEBUGFS/block/$1"/hctx*/plug_adaptive)
	trace_end
	expect_text "events" "$(grep -c policy_ "$TMP/trace")" 0
	expect_text "state" "$after" "$before"
}

# On and off without any I/O: twice, since the first may not be the same as a
# later one.
idle()
{
	local before n=0

	null_create bp3 && set_mode bp3 adaptive || return 1
	before=$(cat "$DEBUGFS"/block/bp3/hctx*/plug_adaptive)
	watch
	while [ $n -lt 2 ]; do
		set_mode bp3 always && set_mode bp3 adaptive || return 1
		n=$((n + 1))
	done
	trace_end
	expect_text "events" "$(grep -c policy_ "$TMP/trace")" 0
	expect_text "state" "$(cat "$DEBUGFS"/block/bp3/hctx*/plug_adaptive)" \
		"$before"
	null_remove bp3
}

# Two submitters take the samples of one hardware queue in turns.
shared_by_two()
{
	set_fresh bp0 adaptive || return 1
	watch
	# shellcheck disable=SC2086 # a list of options
	background plug_load $RANDOM_IO -t 1 /dev/bp0 >"$TMP/other" 2>&1
	# shellcheck disable=SC2086 # a list of options
	PIN='' load $RANDOM_IO -t 1 /dev/bp0 || return
	wait "$JOB" || failed "the other load failed"
	trace_end
	expect_legal
	expect_count "samples" "$(samples nr | wc -l)" 20 1000000
	expect_text "samples of nothing" \
		"$(samples nr | grep -cx 0)" 0
}

# Data is right, whatever is being tried. A null_blk that keeps its data may
# sleep, so that nothing is tried there.
verifies()
{
	local pass=0

	set_fresh "$1" adaptive || return 1
	watch
	# A busy machine changes what is measured, so that it starts anew.
	until [ $pass -ge 4 ] && { has_decided try || [ $pass -ge 20 ]; }; do
		pass=$((pass + 1))
		# shellcheck disable=SC2086 # a list of options
		load -r write -a rand-once -z 32m $RANDOM_IO -S $pass \
			"/dev/$1" &&
		load -r verify -a rand-once -z 32m $RANDOM_IO -S $pass \
			"/dev/$1" || return
	done
	trace_end
	expect_legal
	expect_count "trials on the way" \
		"$(decisions | grep -c ' try$')" 1 1000000
	set_mode "$1" always &&
	load -r verify -a seq -z 32m -S $pass "/dev/$1"
}

# --- all of it --------------------------------------------------------------

each_disk()
{
	check "$1: shows its samples" shows_samples "$1"
	check "$1: samples add up" samples_add_up "$1" 32 -a rand
	check "$1: what merges is in the samples" \
		samples_add_up "$1" 32 -a seq
	check "$1: what merges is in the samples, 512 to a plug" \
		samples_add_up "$1" 512 -a seq -b 512
	check "$1: has response times" has_response_times "$1" 1
	check "$1: has response times, iostats=0" has_response_times "$1" 0
	check "$1: times nothing from before, iostats=0" \
		times_nothing_from_before "$1"
	check "$1: measures, tries and parks" measures_tries_and_parks "$1"
	check "$1: sends out what it tries" sends_out_what_it_tries "$1"
	check "$1: sequential I/O stays at 32" \
		stays_at_32 "$1" -a seq -s $BATCH -c $BATCH -d 128
	check "$1: I/O without a plug teaches nothing" one_by_one "$1"
}

require root knob debugfs trace plug_load taskset null_blk
null_create bp0 submit_queues=1 || ktap_exit_fail_msg "cannot create bp0"
NVME_DISKS=$(nvme_if_any)
# shellcheck disable=SC2086 # a list
plan $((13 + 12 * $(count_words $NVME_DISKS)))

each_disk bp0
check "bp0: is shared by two submitters" shared_by_two
check "nothing happens on an idle disk" idle
for disk in $NVME_DISKS; do
	prepare "$disk"
	each_disk "$disk"
	check "$disk: data is right" verifies "$disk"
done
finish
