#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: what "adaptive" has learnt is forgotten when that mode is set
# again and when the hardware queues are mapped anew, and not for anything less.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/adaptive_lib.sh"

# learn DISK: sequential I/O parks soon, since each plug sends out one request.
learn()
{
	set_fresh "$1" adaptive &&
	load_until is_parked "$1" 625 -a seq
}

# forgets DISK COMMAND...
forgets()
{
	local disk="$1"

	learn "$disk" || return
	shift
	"$@" || return
	expect_text mode "$(attr "$(knob "$disk")")" adaptive
	# It is as in a new one.
	expect_text group "$(line_of "$disk" group)" 32
	expect_text trial "$(line_of "$disk" trial)" 0
	expect_text plug_fill "$(line_of "$disk" plug_fill)" 1
	expect_text sample_requests "$(line_of "$disk" sample_requests)" 0
	expect_count samples_parked "$(line_of "$disk" samples_parked)" 1 36
}

# remembers DISK COMMAND...
remembers()
{
	local disk="$1" before

	learn "$disk" || return
	before=$(state_of "$disk")
	shift
	"$@" || return
	expect_text plug_adaptive "$(state_of "$disk")" "$before"
}

away_and_back()
{
	set_mode "$1" "$2" && set_mode "$1" adaptive
}

# Stops and starts the queue, as whatever changes it does.
fewer_requests()
{
	local file="/sys/block/$1/queue/nr_requests" nr

	nr=$(cat "$file")
	set_attr "$file" $((nr - 1)) && set_attr "$file" "$nr"
}

elevator_and_back()
{
	set_attr "/sys/block/$1/queue/scheduler" mq-deadline &&
	set_attr "/sys/block/$1/queue/scheduler" none
}

submit_queues()
{
	echo "$2" >"$NULLB/$1/submit_queues"
	expect_text "hardware queues, without those for polling" \
		"$(cat "$DEBUGFS/block/$1"/hctx*/type | grep -c default)" "$2"
}

reset()
{
	reset_ctrl "$(ctrl_of "$1")" &&
	wait_for 60 test -e "$DEBUGFS/block/$1/hctx0/plug_adaptive"
}

# Queues come and go under load; nothing is lost, and each learns anew.
queues_change_under_load()
{
	local n=0

	set_mode bp0 adaptive || return 1
	background plug_load -t 2 /dev/bp0 >"$TMP/other" 2>&1
	while [ $n -lt 20 ]; do
		submit_queues bp0 $((n % 2 + 1))
		[ $((n % 4)) -ne 0 ] || away_and_back bp0 never
		sleep 0.05
		n=$((n + 1))
	done
	stop_jobs
	submit_queues bp0 1
	sampled batches bp0 625 || return
	expect_legal
	expect_count "samples" "$(samples nr | wc -l)" 5 1000
}

each_disk()
{
	local mode

	for mode in always never seq-small; do
		check "$1: forgets on $mode" forgets "$1" \
			away_and_back "$1" $mode
	done
	check "$1: remembers when adaptive follows adaptive" \
		remembers "$1" away_and_back "$1" adaptive
	check "$1: remembers when nr_requests changes" \
		remembers "$1" fewer_requests "$1"
}

require root knob debugfs trace plug_load taskset null_blk deadline \
	nvme_if_any
must null_create bp0 submit_queues=1
plan $((8 + 6 * $(count_words "$NVME")))

each_disk bp0
check "bp0: remembers after an elevator" remembers bp0 elevator_and_back bp0
check "bp0: forgets with more queues" \
	with_two_cpus forgets bp0 submit_queues bp0 2
check "bp0: queues change under load" with_two_cpus queues_change_under_load
for disk in $NVME; do
	each_disk "$disk"
	check "$disk: forgets with a reset" forgets "$disk" reset "$disk"
done
finish
