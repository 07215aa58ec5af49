#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: passthrough commands, whose response times nobody takes, begin no
# trial of "adaptive", and end one.
#
# Reproducer: the trial's size stayed for as long as nothing else came.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

# passthrough DISK COUNT
passthrough()
{
	load -u -s $BATCH -c $BATCH -d 128 -n "$2" "/dev/ng${1#nvme}"
}

expect_no_trial()
{
	expect_text "state" "$(line_of "$1" state)" measure
	expect_text "group" "$(line_of "$1" group)" 32
}

begins_none()
{
	set_fresh "$1" adaptive || return 1
	expect_in_force "$1" adaptive
	watch
	passthrough "$1" 30000 || return
	trace_end
	expect_count "samples" "$(samples nr | wc -l)" 5 100
	expect_text "response times" \
		"$(samples waits | awk '{ n += $1 } END { print n + 0 }')" 0
	expect_text "decisions on a size, or to try one" \
		"$(decisions | grep -v '^32 32 measure$')" ""
	expect_no_trial "$1"
}

# in_trial DISK: with random I/O, a little at a time, so that it is still on
in_trial()
{
	local tries=400

	set_fresh "$1" adaptive || return 1
	until [ "$(line_of "$1" state)" = try ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || {
			failed "waited in vain for a trial"
			return 1
		}
		# shellcheck disable=SC2086 # a list of options
		load $RANDOM_IO -n 256 "/dev/$1" || return
	done
	note "$1: tries $(line_of "$1" group)"
}

ends_it()
{
	in_trial "$1" || return
	passthrough "$1" 8192 || return
	expect_no_trial "$1"
	passthrough "$1" 8192 || return
	expect_no_trial "$1"
}

# Only what can be timed can be compared.
tries_again()
{
	in_trial "$1" || return
	passthrough "$1" 8192 || return
	watch
	# shellcheck disable=SC2086 # a list of options
	decides "$1" try $RANDOM_IO
	trace_end
	expect_legal
}

need_passthrough()
{
	local disk disks="$NVME"

	NVME=
	for disk in $disks; do
		if [ ! -c "/dev/ng${disk#nvme}" ]; then
			missing "no /dev/ng${disk#nvme}"
		else
			NVME="$NVME${NVME:+ }$disk"
		fi
	done
}

require root knob debugfs trace plug_load taskset nvme passthrough
# shellcheck disable=SC2086 # a list
plan $((3 * $(count_words $NVME)))
for disk in $NVME; do
	prepare "$disk"
	check "$disk: begins none" begins_none "$disk"
	check "$disk: ends one" ends_it "$disk"
	check "$disk: what is timed is tried again" tries_again "$disk"
done
finish
