#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: the plug statistics are switched on and off while whatever may
# happen to the disk does; no write fails, and afterwards each hardware queue is
# counted, unless it is gone.
#
# Its last case removes the controller, which may not come back.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/plug_stats_lib.sh"

# I/O errors are part of some cases.
some_io()
{
	plug_load -t 1 -s $BATCH -d 128 "/dev/$1" >"$TMP/load.out" 2>&1 || :
}

# start DISK: load, and two that toggle
start()
{
	local file

	file=$(stats_switch "$1")
	until_stop some_io "$1"
	for _ in 1 2; do
		until_stop write_in_turn "$file=1" "$file=0" "$file=1" \
			"$file=1" "$file=0"
	done
	stats_start "$1"
	wait_for 60 io_is_counted "$1"
}

# As the disk goes, there is a reason for a write to fail.
stop_going()
{
	end_jobs
	rm -f "$TMP/refused"
}

io_is_counted()
{
	stats_read "$1"
	[ "${flush_requests-0}" -gt 500 ]
}

# Each hardware queue that has CPUs, and whose I/O is not polled.
counts()
{
	local dir

	set_attr "$(stats_switch "$1")" 1 || return 1
	for dir in "$DEBUGFS/block/$1"/hctx*; do
		[ "$(cat "$dir/type")" = poll ] ||
			counts_on "$1" "$dir" || return
	done
	set_attr "$(stats_switch "$1")" 0
	expect_text "$(stats_switch "$1")" "$(cat "$(stats_switch "$1")")" 0
}

# counts_on DISK DIRECTORY_OF_HCTX
counts_on()
{
	local cpu PIN

	cpu=$(cat "/sys/block/$1/mq/${2##*/hctx}/cpu_list")
	[ -n "$cpu" ] || return 0
	PIN="taskset -c ${cpu%%,*}"
	cp "$2/plug_stats" "$TMP/before"
	load -s $BATCH -c $BATCH -n $((BATCH * 20)) "/dev/$1" || return
	! cmp -s "$2/plug_stats" "$TMP/before" ||
		failed "nothing is counted in $2"
}

# changes DISK FILE=VALUE...
changes()
{
	local disk="$1"

	shift
	start "$disk" || return 1
	for _ in 1 2 3 4 5 6 7 8; do
		write_in_turn "$@"
	done
	stop_jobs
	counts "$disk"
}

changes_hw_queues()
{
	local file=$NULLB/bphwq/submit_queues

	null_create bphwq submit_queues=1 &&
	changes bphwq $file=2 $file=1 $file=2 || return
	null_remove bphwq
}

# The key that switching on patches in is patched out again.
goes()
{
	for _ in 1 2 3; do
		null_create bpgone && start bpgone || return 1
		null_remove bpgone
		stop_going
	done
	null_create bpgone || return 1
	expect_text "switch of a new disk" "$(cat "$(stats_switch bpgone)")" 0
	counts bpgone
	null_remove bpgone
}

# Each disk has a switch of its own.
off_for_one()
{
	null_create bpone && set_attr "$(stats_switch bpone)" 1 &&
	counts "$1" || return
	stats_start "$1"
	stats_start bpone
	load -s $BATCH -c $BATCH -n $((BATCH * 20)) "/dev/$1" /dev/bpone ||
		return
	stats_read "$1"
	expect_count "requests of the disk that is not counted" \
		"$flush_requests" 0
	stats_read bpone
	expect_count "requests of the other" \
		"$flush_requests" $((BATCH * 10)) $((BATCH * 11))
	null_remove bpone
}

resets()
{
	local ctrl

	ctrl=$(ctrl_of "$1")
	start "$1" && reset_ctrl "$ctrl" && reset_ctrl "$ctrl" &&
		reset_ctrl "$ctrl" || return
	stop_jobs
	counts "$1"
}

hot_removal()
{
	local device disk

	device=$(readlink -f "/sys/block/$1/device/device")
	start "$1" && remove_device "$device" || return
	stop_going
	rescan_pci "$device" || return
	disk=$(nvme_disk_at "$device")
	prepare "$disk"
	expect_text "switch of the disk that came back" \
		"$(cat "$(stats_switch "$disk")")" 0
	counts "$disk"
}

require root debugfs plug_stats plug_load taskset null_blk nvme_if_any
plan $((5 + 2 * $(count_words "$NVME")))
null_create bpsw irqmode=1
check "the number of hardware queues changes" \
	with_two_cpus changes_hw_queues
QUEUE=/sys/block/bpsw/queue
check "the elevator changes" changes bpsw $QUEUE/scheduler=mq-deadline \
	$QUEUE/scheduler=none
check "the number of requests changes" changes bpsw $QUEUE/nr_requests=16 \
	$QUEUE/nr_requests=256
check "another disk goes on" off_for_one bpsw
check "the disk goes" goes
for disk in $NVME; do
	check "$disk: the controller is reset" resets "$disk"
	check "$disk: the controller is removed" hot_removal "$disk"
done
finish
