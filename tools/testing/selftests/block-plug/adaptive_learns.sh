#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: under "adaptive" a hardware queue takes samples of what its plugs
# send out, tries other group sizes, parks, and says so in debugfs and in the
# trace; where there is nothing to learn from, it does none of this.
#
# Which size it finds is no matter here: that depends on the machine.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/adaptive_lib.sh"

# --- what it shows ----------------------------------------------------------

shows_its_samples()
{
	local nr flushes

	set_fresh "$1" adaptive || return 1
	sampled batches "$1" 625 || return
	nr=$(line_of "$1" sample_requests)
	flushes=$(line_of "$1" sample_flushes)
	expect_count sample_requests "$nr" 128 40000
	expect_count sample_flushes "$flushes" $((nr / 32)) "$nr"
	expect_count sample_ns "$(line_of "$1" sample_ns)" "$nr" 60000000000
	expect_count sample_in_flight "$(line_of "$1" sample_in_flight)" 0 1024
	expect_count epoch "$(line_of "$1" epoch)" 128 32768
	# The file shows the last one.
	expect_text "last sample in the trace" \
		"$(samples ns nr flushes in_flight best trial | tail -n 1)" \
		"$(line_of "$1" sample_ns) $nr $flushes $(line_of "$1" \
			sample_in_flight) $(line_of "$1" from) $(line_of "$1" \
			trial)"
}

# expect_sampled REQUESTS [LEAST]: so many are in samples, or in the next one
expect_sampled()
{
	expect_count "requests in samples" \
		"$(samples nr | awk '{ n += $1 } END { print n + 0 }')" \
		"${2:-$(($1 - 1024))}" "$1"
}

# samples_add_up DISK N [ARG...]: of batches, each request is in one sample, but
# for those since the last one, and what has merged is in none
samples_add_up()
{
	local requests

	set_fresh "$1" adaptive || return 1
	requests=$(requests_of "$1")
	sampled batches "$@" || return
	requests=$(($(requests_of "$1") - requests))
	expect_sampled $requests $((requests / 2))
}

# --- what it does -----------------------------------------------------------

# Nothing is tried while the time varies by more than 1/16, as that of a guest
# does whose CPUs are emulated; in a kernel that is a process it does not.
has_tried()
{
	samples group | grep -qv '^32$' ||
		skip_case "the time varied too much for a trial"
}

# A plug holds 32, so a quarter of it is what comes first.
tries_and_parks()
{
	set_fresh "$1" adaptive || return 1
	sampled load_until is_parked "$1" 625 || return
	expect_legal
	has_tried || return
	expect_text "first trial" \
		"$(samples best trial | grep -v ' 0$' | head -n 1)" "32 8"
}

# A decision is in force: with 32 to a plug, each plug makes whole groups, but
# where plug_load's timer has cut one in two.
sends_out_what_it_tries()
{
	set_fresh "$1" adaptive || return 1
	sampled batches "$1" 625 || return
	has_tried || return
	samples group nr flushes >"$TMP/sizes"
	expect_count "sizes in force" \
		"$(cut -d ' ' -f 1 "$TMP/sizes" | sort -u | wc -l)" 2 6
	expect_text "samples of other groups than the size in force" \
		"$(awk '$2 > $1 * $3 || $2 * 21 / 20 < $1 * ($3 - 2)' \
			"$TMP/sizes" | head -n 1)" ""
}

# A plug sends out one request, so there is nothing to send out earlier.
stays_at_32()
{
	set_fresh "$1" adaptive || return 1
	sampled load_until is_parked "$1" 1250 -a seq || return
	expect_text "sizes in force" "$(samples group | sort -u)" 32
	expect_text group "$(line_of "$1" group)" 32
	expect_text plug_fill "$(line_of "$1" plug_fill)" 1
}

# Reproducer: where a plug's 32 I/Os became two requests, of 31 I/Os and of one,
# these were sent out one by one, which takes less time for each request. More
# requests are no gain: the time for an I/O is.
merges_while_it_learns()
{
	local requests

	set_attr /sys/block/bp0/queue/max_sectors_kb 124 &&
	set_fresh bp0 adaptive || return 1
	requests=$(requests_of bp0)
	batches bp0 3200 -a seq || return
	expect_count "requests of plugs of 32" \
		$(($(requests_of bp0) - requests)) 6400 6464
	set_attr /sys/block/bp0/queue/max_sectors_kb 1024
}

# Two submitters take the samples of one hardware queue in turns.
shared_by_two()
{
	set_fresh bp0 adaptive || return 1
	trace_start block:block_plug_sample
	background plug_load -t 1 /dev/bp0 >"$TMP/other" 2>&1
	# shellcheck disable=SC2086 # a list of options
	PIN='' load -t 1 /dev/bp0 || return
	stop_jobs
	trace_end
	expect_legal
	expect_count "samples" "$(samples nr | wc -l)" 2 1000000
}

# While sizes are tried, what was written is there.
verifies()
{
	local pass

	set_fresh "$1" adaptive || return 1
	trace_start block:block_plug_sample
	for pass in 1 2 3 4; do
		load -r write -a rand-once -z 32m -S $pass "/dev/$1" &&
		load -r verify -a rand-once -z 32m -S $pass "/dev/$1" || return
	done
	trace_end
	expect_legal
	set_mode "$1" always &&
	load -r verify -a seq -z 32m -S $pass "/dev/$1" || return
	has_tried || return
}

# --- where there is nothing to learn from -----------------------------------

# learns_nothing DISK N [ARG...]: of batches it takes no sample, and what it
# shows stays as it was
learns_nothing()
{
	local before

	before=$(state_of "$1")
	sampled batches "$@" || return
	expect_text "samples" "$(samples nr | wc -l)" 0
	expect_text "plug_adaptive" "$(state_of "$1")" "$before"
}

# new_disk [ATTRIBUTE=VALUE...]: bp3, on "adaptive", which has learnt nothing
new_disk()
{
	null_remove bp3
	null_create bp3 submit_queues=1 "$@" &&
	set_mode bp3 adaptive || return 1
	expect_text "samples of a new disk" \
		"$(state_of bp3 | grep -c '^sample_.* [^0]')" 0
}

idle()
{
	new_disk && set_mode bp3 always && set_mode bp3 adaptive || return 1
	expect_text sample_requests "$(line_of bp3 sample_requests)" 0
}

# other_mode MODE: nor is what was learnt before gone on with
other_mode()
{
	new_disk || return 1
	load_until is_parked bp3 625 &&
	set_mode bp3 "$1" &&
	learns_nothing bp3 625
}

elevator()
{
	new_disk || return 1
	batches bp3 625 &&
	set_attr /sys/block/bp3/queue/scheduler mq-deadline &&
	learns_nothing bp3 625 &&
	set_attr /sys/block/bp3/queue/scheduler none || return
	sampled batches bp3 625 || return
	expect_count "samples without elevator" "$(samples nr | wc -l)" 5 1000
}

# not_taught "ATTRIBUTE=VALUE..." ARG...: by batches of a new disk like this
not_taught()
{
	# shellcheck disable=SC2086 # a list
	new_disk $1 || return
	shift
	learns_nothing bp3 625 "$@"
}

# two_disks MODE: one request of each plug counts, so there is nothing to try
two_disks()
{
	new_disk && set_mode bp0 "$1" || return 1
	sampled batches bp3 6400 /dev/bp0 || return
	expect_sampled 6400
	expect_text "trials" "$(samples trial | sort -u)" 0
}

# What is on "never" is not in the plug.
with_never()
{
	new_disk && set_mode bp0 never || return 1
	sampled batches bp0 625 /dev/bp3 || return
	expect_sampled "$(requests_of bp3)"
}

# --- all of it --------------------------------------------------------------

each_disk()
{
	check "$1: shows its samples" shows_its_samples "$1"
	check "$1: samples add up" samples_add_up "$1" 3200
	check "$1: what merges is in no sample" samples_add_up "$1" 6400 -a seq
	check "$1: tries and parks" tries_and_parks "$1"
	check "$1: sends out what it tries" sends_out_what_it_tries "$1"
	check "$1: sequential I/O stays at 32" stays_at_32 "$1"
}

require root knob debugfs trace plug_load taskset null_blk deadline \
	nvme_if_any
must null_create bp0 submit_queues=1
plan $((18 + 7 * $(count_words "$NVME")))

each_disk bp0
check "bp0: sequential I/O merges, 31 to a request" merges_while_it_learns
check "bp0: is shared by two submitters" shared_by_two
check "an idle disk learns nothing" idle
check "I/O without a plug teaches nothing" not_taught "" -s 1 -c 1 -d 1
for mode in always never seq-small; do
	check "nothing is learnt on $mode" other_mode $mode
done
check "nothing is learnt with an elevator" elevator
check "nothing is learnt with a driver that may sleep" not_taught blocking=1
check "a plug of two disks tries nothing: always" two_disks always
check "a plug of two disks tries nothing: adaptive" two_disks adaptive
check "what passes a disk on never is in samples" with_never
for disk in $NVME; do
	each_disk "$disk"
	check "$disk: data is right" verifies "$disk"
done
finish
