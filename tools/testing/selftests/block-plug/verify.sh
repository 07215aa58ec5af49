#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: data written in each mode reads back as it was written, and data
# verifies while the mode, or the group size of "adaptive", changes 1000 times,
# at random, under the load.
#
# The disks are those of BLOCK_PLUG_DEVS. A null_blk that keeps its data may
# sleep, and so does as under "always" in every mode.
#
# FLIP_SEED repeats the order of modes of an earlier run.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/policy_lib.sh"

SEED=${FLIP_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
PASS=0

# --- one mode ---------------------------------------------------------------

# Write in the mode under test, read in it and in "always": a wrong place could
# be found again by the same wrong way.
reads_back()
{
	local what="-b $4 -z 4m"

	PASS=$((PASS + 1))
	set_fresh "$1" "$2" || return 1
	# shellcheck disable=SC2086 # a list of options
	load -r write -a "$3" $what -S $PASS "/dev/$1" &&
	load -r verify -a "$3" $what -S $PASS "/dev/$1" &&
	set_mode "$1" always &&
	load -r verify -a seq $what -S $PASS "/dev/$1"
}

# --- while it changes -------------------------------------------------------

# fio_pass DISK FIO_RW
fio_pass()
{
	fio_quiet --filename="/dev/$1" --rw="$2" --bsrange=4k-64k --size=8m \
		--direct=1 --ioengine=io_uring --iodepth=64 --fsync=64 \
		--iodepth_batch_submit=32 --iodepth_batch_complete_min=16 \
		--verify=crc32c --verify_fatal=1 --do_verify=1 &&
		echo pass >>"$TMP/passes"
}

# pick_word N WORD...: sets WORD, without a process of its own
pick_word()
{
	local n="$1"

	shift
	shift $((n % $#))
	WORD=$1
}

# flip FLIPS "WORD..." FILE...: these in turn, at random, each other than the
# last one, so that each store is a change; paced so that I/O runs between them.
# Of several files, one by one: a submitter may find them at different sizes.
flip()
{
	local flips="$1" words="$2" state="$SEED" last='' file

	shift 2
	FLIPPED=0
	while [ $FLIPPED -lt "$flips" ]; do
		state=$(((state * 1103515245 + 12345) % 2147483648))
		# shellcheck disable=SC2086 # a list
		pick_word $((state / 65536)) $words
		[ "$WORD" != "$last" ] || continue
		for file; do
			echo "$WORD" >"$file" || return 1
		done
		last=$WORD
		FLIPPED=$((FLIPPED + 1))
		[ $((FLIPPED % 8)) -ne 0 ] || sleep 0.01
	done
}

# verifies DISK FIO_RW FLIPS "WORD..." FILE...
verifies()
{
	local disk="$1" rw="$2"

	shift 2
	note "$disk: FLIP_SEED=$SEED"
	: >"$TMP/passes"
	until_stop fio_pass "$disk" "$rw"
	flip "$@" || failed "$WORD was refused"
	stop_jobs
	expect_count "writes to ${3##*/}" $FLIPPED "$1"
	expect_count "passes of fio" "$(wc -l <"$TMP/passes")" 1 1000000
	# Whatever was counted on the way: a mode is what it was before.
	set_fresh "$disk" adaptive && set_mode "$disk" always &&
	load -r write -a rand-once -z 4m "/dev/$disk" &&
	load -r verify -a seq -z 4m "/dev/$disk"
}

modes_flip()
{
	verifies "$1" "$2" "$3" "$(modes_of "$1")" "$(knob "$1")"
}

# Here the static key changes with the mode, too.
without_pin()
{
	set_mode bppin always && modes_flip "$@"
}

groups_flip()
{
	set_mode "$1" adaptive && pin_group "$1" 1 || return 1
	# shellcheck disable=SC2046 # a list
	verifies "$1" "$2" "$3" "0 1 2 3 7 8 16 31 32" $(adaptive_files "$1")
}

require root knob debugfs plug_load fio null_blk nvme
MODES=$(modes_of "${NVME%% *}")
plan $(($(count_words "$NVME") * (5 + 3 * $(count_words "$MODES"))))
for disk in $NVME; do
	for mode in $MODES; do
		check "$disk: $mode, random 4K" reads_back "$disk" "$mode" \
			rand-once 4k
		check "$disk: $mode, sequential 4K" \
			reads_back "$disk" "$mode" seq 4k
		check "$disk: $mode, random 32K" reads_back "$disk" "$mode" \
			rand-once 32k
	done
	must pin_static_keys
	check "$disk: random, modes flip" modes_flip "$disk" randwrite 1000
	check "$disk: sequential, modes flip" modes_flip "$disk" write 1000
	check "$disk: random, modes flip and the static key" \
		without_pin "$disk" randwrite 50
	check "$disk: random, groups flip" groups_flip "$disk" randwrite 1000
	check "$disk: sequential, groups flip" groups_flip "$disk" write 1000
done
finish
