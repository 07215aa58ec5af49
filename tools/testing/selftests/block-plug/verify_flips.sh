#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: data verifies while the mode, or the group size of "adaptive",
# changes 1000 times, at random, under the load.
#
# The disks are those of BLOCK_PLUG_DEVS. A null_blk that keeps its data may
# sleep, and so does as under "always" in every mode.
#
# FLIP_SEED repeats the order of modes of an earlier run.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

# Writes and verifies pass after pass, until told to stop.
fio_until_stop()
{
	rm -f "$TMP/stop" "$TMP/passes"
	while [ ! -e "$TMP/stop" ]; do
		fio_quiet --filename="/dev/$1" --rw="$2" --bsrange=4k-64k \
			--size=8m --direct=1 --ioengine=io_uring \
			--iodepth=64 --iodepth_batch_submit=32 \
			--iodepth_batch_complete_min=16 --fsync=64 \
			--verify=crc32c --verify_fatal=1 --do_verify=1 ||
			return 1
		echo pass >>"$TMP/passes"
	done
}

# Modes in force one after the other, so that each store is a change, paced so
# that I/O runs between them.
flip_modes()
{
	local state="$2" modes last=

	KNOB=$(knob "$1")
	modes=$(modes_of "$1")
	FLIPPED=0
	while [ $FLIPPED -lt "$FLIPS" ]; do
		state=$(((state * 1103515245 + 12345) % 2147483648))
		# shellcheck disable=SC2086 # a list
		pick_word $((state / 65536)) $modes
		[ "$WORD" != "$last" ] || continue
		echo "$WORD" >"$KNOB" || return 1
		last=$WORD
		FLIPPED=$((FLIPPED + 1))
		[ $((FLIPPED % 8)) -ne 0 ] || sleep 0.01
	done
}

# pick_word N WORD...: sets WORD, without a process of its own
pick_word()
{
	local n="$1"

	shift
	shift $((n % $#))
	WORD=$1
}

# verifies DISK FIO_RW FLIPS
verifies()
{
	local rc=0

	FLIPS=$3
	note "$1: FLIP_SEED=$SEED"
	set_mode "$1" always || return 1
	background fio_until_stop "$1" "$2"
	flip_modes "$1" "$SEED" || failed "a mode was refused"
	: >"$TMP/stop"
	wait "$JOB" || rc=1
	[ $rc -eq 0 ] || failed "expected fio to verify, it failed"
	expect_count "modes written" $FLIPPED "$FLIPS" "$FLIPS"
	expect_count "passes of fio" \
		"$(grep -c pass "$TMP/passes" 2>/dev/null)" 1 1000000
	still_works "$1"
}

# Whatever was counted on the way: a mode is what it was before.
still_works()
{
	set_mode "$1" adaptive && expect_in_force "$1" adaptive
	set_mode "$1" always &&
	load -r write -a rand-once -z 4m "/dev/$1" &&
	load -r verify -a seq -z 4m "/dev/$1"
}

# Here the static key changes with the mode, too.
verifies_without_pin()
{
	unpin_static_keys && verifies "$@"
}

# All hardware queues, one by one: a submitter may find them at different sizes.
flip_groups()
{
	local state="$SEED" files file

	files=$(adaptive_files "$1")
	FLIPPED=0
	while [ $FLIPPED -lt "$FLIPS" ]; do
		state=$(((state * 1103515245 + 12345) % 2147483648))
		pick_word $((state / 65536)) 0 1 2 3 7 8 16 31 32
		for file in $files; do
			echo "$WORD" >"$file" || return 1
		done
		FLIPPED=$((FLIPPED + 1))
		[ $((FLIPPED % 8)) -ne 0 ] || sleep 0.01
	done
}

# verifies_groups DISK FIO_RW FLIPS
verifies_groups()
{
	local rc=0

	FLIPS=$3
	note "$1: FLIP_SEED=$SEED"
	set_mode "$1" adaptive && pin_group "$1" 1 || return 1
	background fio_until_stop "$1" "$2"
	flip_groups "$1" || failed "a group size was refused"
	: >"$TMP/stop"
	wait "$JOB" || rc=1
	[ $rc -eq 0 ] || failed "expected fio to verify, it failed"
	expect_count "passes of fio" \
		"$(grep -c pass "$TMP/passes" 2>/dev/null)" 1 1000000
	pin_group "$1" 0
	still_works "$1"
}

SEED=${FLIP_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
require root knob debugfs plug_load fio null_blk nvme
# shellcheck disable=SC2086 # a list
plan $((5 * $(count_words $NVME)))
for disk in $NVME; do
	prepare "$disk"
	pin_static_keys || ktap_exit_fail_msg "cannot create bppin"
	check "$disk: random writes verify" verifies "$disk" randwrite 1000
	check "$disk: sequential writes verify" verifies "$disk" write 1000
	check "$disk: writes verify while the static key changes" \
		verifies_without_pin "$disk" randwrite 50
	check "$disk: random writes verify while groups change" \
		verifies_groups "$disk" randwrite 1000
	check "$disk: sequential writes verify while groups change" \
		verifies_groups "$disk" write 1000
done
finish
