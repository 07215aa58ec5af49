#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: data written in each mode, at random and sequentially, reads back
# as it was written.
#
# The disks are those of BLOCK_PLUG_DEVS. A null_blk that keeps its data may
# sleep, and so does as under "always" in every mode.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

SEED=0

# Write in the mode under test, read in it and in "always": a wrong place could
# be found again by the same wrong way.
own_pattern()
{
	local what="-z 4m -s $BATCH -c $BATCH -d 128"

	SEED=$((SEED + 1))
	set_mode "$1" "$2" || return 1
	expect_in_force "$1" "$2"
	# shellcheck disable=SC2086 # a list of options
	load -r write -a "$3" -b "$4" $what --fsync 256 -S $SEED "/dev/$1" &&
	load -r verify -a "$3" -b "$4" $what -S $SEED "/dev/$1" &&
	set_mode "$1" always &&
	load -r verify -a seq -b "$4" $what -S $SEED "/dev/$1"
}

fio_pattern()
{
	set_mode "$1" "$2" || return 1
	expect_in_force "$1" "$2"
	fio_quiet --filename="/dev/$1" --rw="$3" --bs=4k --size=4m --direct=1 \
		--ioengine=io_uring --iodepth=64 --iodepth_batch_submit=32 \
		--iodepth_batch_complete_min=16 --fsync=128 --verify=crc32c \
		--verify_fatal=1 --do_verify=1
}

each_mode()
{
	local mode

	for mode in $(modes_of "$1"); do
		check "$1: $mode, random 4K" own_pattern "$1" "$mode" \
			rand-once 4k
		check "$1: $mode, sequential 4K" own_pattern "$1" "$mode" seq 4k
		check "$1: $mode, random 32K" own_pattern "$1" "$mode" \
			rand-once 32k
		check "$1: $mode, fio random" fio_pattern "$1" "$mode" randwrite
		check "$1: $mode, fio sequential" fio_pattern "$1" "$mode" write
	done
}

require root knob debugfs plug_load fio nvme
# shellcheck disable=SC2046,SC2086 # lists
plan $((5 * $(count_words $NVME) * $(count_words $(modes_of "${NVME%% *}"))))
for disk in $NVME; do
	prepare "$disk"
	each_mode "$disk"
done
finish
