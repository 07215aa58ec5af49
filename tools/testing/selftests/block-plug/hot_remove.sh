#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a controller that is removed under load fails the I/O in flight,
# whatever the mode, and comes back, after a rescan, with the default mode.
#
# Runs last: what is removed may not come back.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/policy_lib.sh"

io_under_way()
{
	[ "$(requests_of "$1")" -gt "$2" ]
}

# A case for one mode and one way to do I/O.
survives()
{
	local device="$1" mode="$2" disk before rc=0

	shift 2
	nvme_is_back "$device" || {
		failed "the disk is gone since an earlier case"
		return
	}
	disk=$(nvme_disk_at "$device")
	prepare "$disk" && set_mode "$disk" "$mode" || return 1
	before=$(requests_of "$disk")
	# Ends by itself when all that is in flight fails.
	background plug_load -t 30 -s $BATCH -d 128 "$@" "/dev/$disk" \
		>"$TMP/victim" 2>&1
	wait_for 60 io_under_way "$disk" $((before + 1000)) || return 1
	remove_device "$device" || return 1
	wait "$JOB" || rc=$?
	# 1: failed I/O; 3 would be I/O that never completes
	expect_count "exit of the load, whose disk was removed" $rc 1
	rescan_pci "$device" || return 1
	works_anew "$(nvme_disk_at "$device")"
}

works_anew()
{
	expect_text "mode of the disk that came back" "$(attr "$(knob "$1")")" \
		"$DEFAULT"
	prepare "$1" &&
	load -r write -a rand-once -z 4m "/dev/$1" &&
	load -r verify -a seq -z 4m "/dev/$1"
}

# The default is a choice of the kernel's configuration: what a disk has that
# nobody has set anything on.
find_default()
{
	remove_device "$1" && rescan_pci "$1" || return 1
	DEFAULT=$(attr "$(knob "$(nvme_disk_at "$1")")")
	note "the default is $DEFAULT"
}

require root knob debugfs plug_load nvme
MODES=$(modes_of "${NVME%% *}")
plan $(((2 * $(count_words "$MODES") + 1) * $(count_words "$NVME")))
# Their names change, their places do not.
for disk in $NVME; do
	DEVICES="${DEVICES-} $(readlink -f "/sys/block/$disk/device/device")"
done
for device in $DEVICES; do
	name=${device##*/}
	check "$name: comes back after a rescan" find_default "$device"
	for mode in $MODES; do
		check "$name: $mode, removed while reading" \
			survives "$device" "$mode"
		check "$name: $mode, removed while writing in sequence" \
			survives "$device" "$mode" -r write -a seq
	done
done
finish
