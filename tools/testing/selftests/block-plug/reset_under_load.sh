#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: when the controller is reset under load, I/O goes on and is not
# lost, and the disk keeps its mode.

. "${0%/*}/groups_lib.sh"

RESETS=3

# Each pass writes something else, so that what one loses shows.
write_pass()
{
	local seed

	seed=$(($(cat "$TMP/seed") + 1))
	load -r write -a rand-once -z 16m -s $BATCH -d 128 -S $seed "/dev/$1" &&
		echo $seed >"$TMP/seed"
}

# One after the other, each in the midst of I/O.
reset_often()
{
	local ctrl="$1" seed

	for _ in $(seq $RESETS); do
		seed=$(cat "$TMP/seed")
		reset_ctrl "$ctrl" || return
		wait_for 60 wrote_since "$seed" || return
	done
}

# Is a pass complete that began after the pass with this seed?
wrote_since()
{
	[ "$(cat "$TMP/seed")" -gt $((${1:-0} + 1)) ]
}

survives()
{
	set_mode "$1" "$2" || return 1
	echo 1 >"$TMP/seed"
	until_stop write_pass "$1"
	reset_often "$(ctrl_of "$1")"
	stop_jobs
	expect_text "mode after $RESETS resets" "$(attr "$(knob "$1")")" "$2"
	load -r verify -a seq -z 16m -S "$(cat "$TMP/seed")" "/dev/$1"
}

# The mode does not only look the same, and the counters go on.
still_in_force()
{
	set_mode "$1" never && reset_ctrl "$(ctrl_of "$1")" &&
	measure "$1" batches "$1" 20 || return
	expect_counts HELD_GROUPS=0 REQUESTS=640:643
	expect_doorbells 640
}

require root knob debugfs profiler plug_load nvme
plan $((($(count_words "$(modes_of "${NVME%% *}")") + 1) * $(count_words "$NVME")))
for disk in $NVME; do
	for mode in $(modes_of "$disk"); do
		check "$disk: $mode, reset $RESETS times under load" \
			survives "$disk" "$mode"
	done
	check "$disk: the mode is in force after a reset" still_in_force "$disk"
done
finish
