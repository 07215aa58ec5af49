#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: discards merge in every mode but "never" as under "always",
# behind reads as well.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/policy_lib.sh"

PIN="taskset 1"

discards_of()
{
	stat_field "$1" 12
}

# discard READS COUNT: one plug of some reads that do not merge, then of
# discards that adjoin each other; sets DISCARDS to the requests that these made
discard()
{
	local discards="$DISK:0:64k*$2+64k:discard"

	[ "$1" -eq 0 ] || discards="$DISK:64m:4k*$1+1m $discards"
	DISCARDS=$(discards_of "$DISK")
	# shellcheck disable=SC2086 # a list
	submit $discards
	DISCARDS=$(($(discards_of "$DISK") - DISCARDS))
}

expect_as_always()
{
	discard "$1" 24
	expect_count "requests for 24 discards behind $1 reads" "$DISCARDS" \
		"$2" "$2"
}

# in_mode MODE [SIZE]
in_mode()
{
	set_fresh "$DISK" "$1" || return 1
	[ $# -lt 2 ] || pin_group "$DISK" "$2" || return
	expect_in_force "$DISK" "$1"
	expect_as_always 0 "$ALONE"
	expect_as_always 3 "$BEHIND"
	expect_as_always 7 "$BEHIND"
}

# Otherwise the cases would show nothing.
merges_on_always()
{
	expect_count "requests for 24 discards on always" "$ALONE" 1 12
	expect_count "likewise, behind 3 reads" "$BEHIND" 1 12
}

need_discards()
{
	local disk

	for disk in $NVME; do
		[ "$(cat "/sys/block/$disk/queue/discard_max_bytes")" -gt 0 ] ||
			missing "$disk does not discard"
	done
}

each_disk()
{
	set_mode "$DISK" always && discard 0 24 || return
	ALONE=$DISCARDS
	discard 3 24
	BEHIND=$DISCARDS
	check "$DISK: always merges discards" merges_on_always
	check "$DISK: seq-small" in_mode seq-small
	check "$DISK: adaptive" in_mode adaptive
	for size in 32 8 2 1; do
		check "$DISK: adaptive, groups of $size" \
			in_mode adaptive $size
	done
}

require root knob debugfs submit_list taskset nvme discards
plan $((7 * $(count_words "$NVME")))
for DISK in $NVME; do
	prepare "$DISK"
	each_disk
done
finish
