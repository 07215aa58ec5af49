#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: the number of requests in flight returns to 0 after whatever may
# happen to a request, or to the queue, on the way.
#
# Its last case removes the controller, which may not come back.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=plug_stats_lib.sh
. "${0%/*}/plug_stats_lib.sh"

RUNS=8

# While I/O runs there is something in flight, and it is less than what the
# queue can hold; afterwards there is nothing.
in_flight_is_sane()
{
	[ "$(stats "$1" in_flight)" -lt 100000 ]
}

# I/O errors are part of some cases: what counts is that all of it ends.
load_until_stop()
{
	while [ ! -e "$TMP/stop" ]; do
		plug_load -t 1 -s $BATCH -d 128 "$@" >"$TMP/load.out" 2>&1
	done
}

start_load()
{
	local disk="$1"

	shift
	rm -f "$TMP/stop"
	set_attr "$(stats_switch "$disk")" 1 || return 1
	background load_until_stop "$@" "/dev/$disk"
	wait_for 10 io_under_way "$disk"
}

io_under_way()
{
	[ "$(stats "$1" requests)" -gt 500 ]
}

# end_load DISK: what is in flight must come to 0
end_load()
{
	: >"$TMP/stop"
	wait "$JOB"
	settles "$1"
}

settles()
{
	[ "$(stats "$1" requests)" -gt 0 ] || failed "no request was counted"
	wait_for 10 in_flight_is_0 "$1" ||
		failed "in flight on $1: $(grep -h '^in_flight' \
			"$DEBUGFS/block/$1"/hctx*/plug_stats | tr '\n' ' ')"
	expect_text "requests that did not complete" \
		"$(stats "$1" requests)" "$(stats "$1" completions)"
}

# The number is not 0 for want of counting: held back requests show.
shows_what_is_in_flight()
{
	local most=0 n=0 now

	null_create bpslow irqmode=2 completion_nsec=50000000 || return 1
	start_load bpslow || return 1
	while [ $n -lt 20 ]; do
		now=$(stats bpslow in_flight)
		[ "$now" -le "$most" ] || most=$now
		n=$((n + 1))
	done
	expect_count "most requests in flight" "$most" 32 256
	end_load bpslow
	null_remove bpslow
}

# injects WHAT: an error that null_blk makes up for one request in 20
injects()
{
	local dir="$NULLB/bpinj/$1_inject"

	null_create bpinj irqmode=1 || return 1
	[ -d "$dir" ] || {
		null_remove bpinj
		skip_case "no $dir (CONFIG_BLK_DEV_NULL_BLK_FAULT_INJECTION)"
		return
	}
	[ "$1" != timeout ] || set_attr /sys/block/bpinj/queue/io_timeout 500
	set_attr "$(stats_switch bpinj)" 1 || return 1
	echo 0 >"$dir/verbose"
	echo "$2" >"$dir/times"
	echo 5 >"$dir/probability"
	start_load bpinj || return 1
	wait_for 20 injected "$dir"
	echo 0 >"$dir/probability"
	end_load bpinj
	null_remove bpinj
}

injected()
{
	[ "$(cat "$1/times")" -le 0 ]
}

flips()
{
	local disk="$1" file="/sys/block/$1/queue/$2" n=0 value

	[ -e "$file" ] || { skip_case "no $file"; return; }
	shift 2
	start_load "$disk" || return 1
	while [ $n -lt $RUNS ]; do
		for value; do
			set_attr "$file" "$value" || break 2
		done
		in_flight_is_sane "$disk" ||
			failed "in flight: $(stats "$disk" in_flight)"
		n=$((n + 1))
	done
	set_attr "$file" "$1"
	end_load "$disk"
}

changes_hw_queues()
{
	local n=0 count

	null_create bphwq submit_queues=1 || return 1
	start_load bphwq || return 1
	while [ $n -lt $RUNS ]; do
		for count in 2 1; do
			echo $count >"$NULLB/bphwq/submit_queues" ||
				failed "submit_queues=$count was refused"
		done
		n=$((n + 1))
	done
	echo 2 >"$NULLB/bphwq/submit_queues"
	expect_text "hardware queues that have counters" \
		"$(echo "$DEBUGFS"/block/bphwq/hctx*/plug_stats | wc -w)" \
		"$(echo /sys/block/bphwq/mq/* | wc -w)"
	wait_for 10 io_under_way bphwq
	end_load bphwq
	null_remove bphwq
}

# The switch itself, while I/O runs: an end that is missed, or counted without
# its start, would stay.
toggles()
{
	local disk="$1" file n=0 value

	shift
	file=$(stats_switch "$disk")
	start_load "$disk" "$@" || return 1
	while [ $n -lt $((RUNS * 2)) ]; do
		for value in 0 1 2 0 2 1; do
			set_attr "$file" $value || break 2
			in_flight_is_sane "$disk" ||
				failed "in flight: $(stats "$disk" in_flight)"
		done
		n=$((n + 1))
	done
	wait_for 10 io_under_way "$disk"
	end_load "$disk"
}

# A key that is on for another disk makes late ends count.
toggles_with_another()
{
	null_create bpother && set_attr "$(stats_switch bpother)" 1 || return 1
	toggles "$@"
	null_remove bpother
}

# Removal switches counting off: what the key guards is patched out again.
leaves_nothing()
{
	local n=0

	while [ $n -lt 3 ]; do
		null_create bpgone && set_attr "$(stats_switch bpgone)" 2 ||
			return 1
		start_load bpgone || return 1
		end_load bpgone
		null_remove bpgone
		n=$((n + 1))
	done
	null_create bpgone || return 1
	expect_text "switch of a new disk" "$(cat "$(stats_switch bpgone)")" 0
	set_attr "$(stats_switch bpgone)" 1
	settles_after_load bpgone
	null_remove bpgone
}

settles_after_load()
{
	load -s $BATCH -c $BATCH -n 640 "/dev/$1"
	settles "$1"
}

resets()
{
	local n=0 ctrl

	ctrl=$(ctrl_of "$1")
	start_load "$1" || return 1
	while [ $n -lt 3 ]; do
		echo 1 >"/sys/class/nvme/$ctrl/reset_controller" ||
			failed "reset $n of $ctrl was refused"
		wait_for 20 nvme_state_is "$ctrl" live || return 1
		n=$((n + 1))
	done
	end_load "$1"
}

# The disk goes under load, with its counters; the next one starts anew.
hot_removal()
{
	local device disk

	device=$(readlink -f "/sys/block/$1/device/device")
	start_load "$1" || return 1
	: >"$TMP/stop"
	echo 1 >"$device/remove"
	wait "$JOB"
	wait_for 20 test ! -e "$DEBUGFS/block/$1" || return 1
	echo 1 >/sys/bus/pci/rescan
	wait_for 20 test -e "$(stats_switch "$1")" || return 1
	prepare "$1"
	expect_text "switch of the disk that came back" \
		"$(cat "$(stats_switch "$1")")" 0
	set_attr "$(stats_switch "$1")" 1
	settles_after_load "$1"
}

each_nvme()
{
	check "$1: elevator changes" flips "$1" scheduler none mq-deadline
	check "$1: toggled under load" toggles_with_another "$1"
	check "$1: toggled under sequential load" toggles "$1" -a seq
	check "$1: the controller is reset" resets "$1"
	check "$1: the controller is removed" hot_removal "$1"
}

require root debugfs plug_stats plug_load null_blk
NVME=$(nvme_if_any)
# shellcheck disable=SC2086 # a list
plan $((8 + 5 * $(count_words $NVME)))
check "what is in flight shows" shows_what_is_in_flight
check "requests are requeued" injects requeue 50
check "requests time out" injects timeout 10
check "the number of hardware queues changes" \
	with_two_cpus changes_hw_queues
null_create bpinf irqmode=1
check "the elevator changes" flips bpinf scheduler none mq-deadline
check "the number of requests changes" flips bpinf nr_requests 256 16
check "counting is toggled" toggles_with_another bpinf
check "the disk is removed" leaves_nothing
for disk in $NVME; do
	prepare "$disk"
	each_nvme "$disk"
done
finish
