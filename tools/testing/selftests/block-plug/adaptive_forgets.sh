#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: what "adaptive" has learnt is forgotten when the mode, the queues
# or the controller are set up anew.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

has_sample()
{
	look && [ -n "$(samples nr)" ]
}

is_parked()
{
	[ "$(line_of "$1" state)" = parked ]
}

# load_until DISK TRIES BATCHES CONDITION: so many sequential batches at a time,
# until the condition, which gets the disk, is met
load_until()
{
	local tries="$2"

	until "$4" "$1"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || {
			failed "waited in vain: $4"
			return 1
		}
		load -a seq -s $BATCH -c $BATCH -d 128 -n $((BATCH * $3)) \
			"/dev/$1" || return
	done
}

# The next sample is where it forgets. The same load goes on until then: another
# one would look like a change of the load, on which it starts anew, too.
next_sample()
{
	watch
	load_until "$1" 60 100 has_sample || return
	trace_end
}

# Sequential I/O parks soon: each plug sends out one request. Where its speed
# changes it does so again and again, so stop in time. What is parked from
# before is not what is waited for.
learn()
{
	set_fresh "$1" adaptive && next_sample "$1" || return 1
	load_until "$1" 200 600 is_parked
}

expect_new()
{
	expect_text state "$(line_of "$1" state)" measure
	expect_text group "$(line_of "$1" group)" 32
	expect_text from "$(line_of "$1" from)" 0
	expect_text samples_parked "$(line_of "$1" samples_parked)" 0
}

# forgets DISK COMMAND...
forgets()
{
	local disk="$1"

	learn "$disk" || return
	shift
	"$@" || return
	next_sample "$disk" || return
	expect_new "$disk"
}

# With new queues there is nothing that could be remembered.
forgets_at_once()
{
	local disk="$1"

	learn "$disk" || return
	shift
	pin_group "$disk" 4
	"$@" || return
	expect_new "$disk"
	expect_text pinned "$(line_of "$disk" pinned)" 0
	expect_text sample_ios "$(line_of "$disk" sample_ios)" 0
	expect_text mode "$(attr "$(knob "$disk")")" adaptive
	watch
	# shellcheck disable=SC2086 # a list of options
	decides "$disk" try $RANDOM_IO
	trace_end
	expect_legal
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

is_live()
{
	[ "$(cat "/sys/class/nvme/$1/state")" = live ] &&
	[ -e "$DEBUGFS/block/$2/hctx0/plug_adaptive" ]
}

reset()
{
	local ctrl

	ctrl=$(ctrl_of "$1")
	echo 1 >"/sys/class/nvme/$ctrl/reset_controller" || return
	wait_for 20 is_live "$ctrl" "$1"
}

# Queues come and go under load; nothing is lost, and each learns anew.
queues_change_under_load()
{
	local n=0

	set_mode bp0 adaptive || return 1
	# shellcheck disable=SC2086 # a list of options
	background plug_load $RANDOM_IO -t 2 /dev/bp0 >"$TMP/other" 2>&1
	while [ $n -lt 20 ]; do
		submit_queues bp0 $((n % 2 + 1))
		sleep 0.05
		n=$((n + 1))
	done
	wait "$JOB" || failed "the load failed: $(head -n 1 "$TMP/other")"
	submit_queues bp0 1
}

each_disk()
{
	check "$1: forgets on always" forgets "$1" away_and_back "$1" always
	check "$1: forgets on never" forgets "$1" away_and_back "$1" never
	check "$1: forgets on seq-small" \
		forgets "$1" away_and_back "$1" seq-small
	check "$1: forgets when nr_requests changes" \
		forgets "$1" fewer_requests "$1"
}

need_scheduler()
{
	modprobe -q mq-deadline 2>/dev/null
	null_create bp0 submit_queues=1 ||
		{ missing "cannot create a null_blk"; return; }
	grep -qw mq-deadline /sys/block/bp0/queue/scheduler ||
		missing "no mq-deadline (CONFIG_MQ_IOSCHED_DEADLINE)"
}

require root knob debugfs trace plug_load taskset null_blk scheduler
NVME_DISKS=$(nvme_if_any)
# shellcheck disable=SC2086 # a list
plan $((7 + 5 * $(count_words $NVME_DISKS)))

each_disk bp0
check "bp0: forgets with an elevator" forgets bp0 elevator_and_back bp0
check "bp0: forgets with more queues" \
	with_two_cpus forgets_at_once bp0 submit_queues bp0 2
check "bp0: queues change under load" with_two_cpus queues_change_under_load
for disk in $NVME_DISKS; do
	prepare "$disk"
	each_disk "$disk"
	check "$disk: forgets with a reset" \
		forgets_at_once "$disk" reset "$disk"
done
finish
