#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: discards merge in every mode but "never" as under "always", also
# where "adaptive" has learnt that reads do not.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

discards_of()
{
	stat_field "$1" 12
}

# discard READS COUNT: one plug of some reads that do not merge, then of
# discards that adjoin each other; sets DISCARDS to the requests that these made
discard()
{
	local n=0 ios=

	while [ $n -lt "$1" ]; do
		ios="$ios /dev/$DISK:$(((n + 64) * 1048576)):4096"
		n=$((n + 1))
	done
	n=0
	while [ $n -lt "$2" ]; do
		ios="$ios /dev/$DISK:$((n * 65536)):65536:discard"
		n=$((n + 1))
	done
	DISCARDS=$(discards_of "$DISK")
	# shellcheck disable=SC2086 # a list
	$PIN submit_list $ios || failed "submit_list: exit $?"
	DISCARDS=$(($(discards_of "$DISK") - DISCARDS))
}

expect_as_always()
{
	discard "$1" 24
	expect_count "requests for 24 discards behind $1 reads" "$DISCARDS" \
		"$2" "$2"
}

# in_mode MODE
in_mode()
{
	set_mode "$DISK" "$1" || return 1
	expect_in_force "$DISK" "$1"
	expect_as_always 0 "$ALONE"
	expect_as_always 4 "$BEHIND"
}

# after_random SIZE
after_random()
{
	set_fresh "$DISK" adaptive && pin_group "$DISK" "$1" &&
	sees "$DISK" -a rand || return 1
	expect_text "lookup" "$(line_of "$DISK" lookup)" 0
	expect_as_always 0 "$ALONE"
	expect_as_always 3 "$BEHIND"
	expect_as_always 7 "$BEHIND"
	pin_group "$DISK" 0
}

# Whatever it has decided meanwhile, and is trying.
after_much()
{
	set_fresh "$DISK" adaptive || return 1
	# shellcheck disable=SC2086 # a list of options
	load $RANDOM_IO -n 20000 "/dev/$DISK" || return
	expect_text "lookup" "$(line_of "$DISK" lookup)" 0
	expect_as_always 0 "$ALONE"
	expect_as_always 3 "$BEHIND"
	expect_as_always 7 "$BEHIND"
}

# Otherwise the cases would show nothing.
merges_on_always()
{
	expect_count "requests for 24 discards on always" "$ALONE" 1 12
	expect_count "likewise, behind 4 reads" "$BEHIND" 1 12
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
	discard 4 24
	BEHIND=$DISCARDS
	check "$DISK: always merges discards" merges_on_always
	check "$DISK: seq-small" in_mode seq-small
	check "$DISK: adaptive" in_mode adaptive
	for size in 32 8 2 1; do
		check "$DISK: after random reads, groups of $size" \
			after_random $size
	done
	check "$DISK: after many random reads" after_much
}

require root knob debugfs plug_load taskset nvme discards
command -v submit_list >/dev/null || missing "no program submit_list"
require
# shellcheck disable=SC2086 # a list
plan $((8 * $(count_words $NVME)))
for DISK in $NVME; do
	prepare "$DISK"
	each_disk
done
finish
