#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: the plug statistics in debugfs agree with the function profiler,
# with the disk's own statistics and, on nvme, with the trace of its commands.

. "${0%/*}/measure_lib.sh"
. "${0%/*}/plug_stats_lib.sh"

# counted DISK COMMAND...: measure(), with counting on
counted()
{
	set_attr "$(stats_switch "$1")" 1 || return 1
	stats_start "$1"
	measure "$@" || return
	stats_read "$1"
}

# Whoever opens a disk reads a bit of it, too; I/Os that merge take no batch of
# tags.
agrees()
{
	counted "$1" batches "$1" $N -a "$2" || return
	expect_counts tags_single=TAG_SINGLES \
		tag_batches=!MERGES*N:TAG_BATCHES \
		flush_requests=REQUESTS-4:REQUESTS
	consistent
}

# What must hold whatever the load was.
consistent()
{
	expect_counts flush_requests=flushes:REQUESTS refused=0:tags_single
}

# flushes DISK FLUSHES ARG...
flushes()
{
	local disk="$1" nr="$2"

	shift 2
	counted "$disk" load "$@" -n 2048 "/dev/$disk" || return
	expect_counts "flushes=$nr-8:$nr+8"
	consistent
}

# A plug of two disks is counted for each, with its part of the requests.
flushes_two_disks()
{
	local disk

	null_create bptwo && set_attr "$(stats_switch bptwo)" 1 || return 1
	stats_start bptwo
	counted "$1" batches "$1" $N /dev/bptwo || return
	for disk in "$1" bptwo; do
		stats_read "$disk"
		expect_counts flushes=N-8:N+8 flush_requests=16*N-8:16*N+8
	done
	null_remove bptwo
}

# How many tags a plug uses is known to each CPU by itself, after a first one.
batches_tags()
{
	local PIN="taskset 1"

	load -s $BATCH -c $BATCH -d 128 -n $BATCH "/dev/$1" || return
	counted "$1" batches "$1" $N || return
	expect_counts tags_batched=BATCH*N*9/10:BATCH*N refused=0:5
}

# why_no_batch: a null_blk whose four tags are too few to batch; the trace event
# says what the counters say
why_no_batch()
{
	local reason=no_batch_depth events

	null_create bpwhy hw_queue_depth=4 || return 1
	trace_start block:block_tag_batch_refused
	counted bpwhy plugs $BATCH bpwhy $N || return
	trace_end
	events=$(grep -c "batch_refused:.* ios=.* reason=$reason" "$TMP/trace")
	expect_counts tags_batched=0 "$reason=N:BATCH*N" "$reason=$events"
	trace_stop
	null_remove bpwhy
}

# I/Os one at a time ask for no batch, and so are refused none.
wants_no_batch()
{
	counted "$1" fio_plugs libaio 1 "/dev/$1" $N || return
	expect_counts tags_batched=0 tags_single=N:N+8 refused=0
}

# Half of 64 tags is the share of each, and a quarter of them a batch.
shared_by_two()
{
	null_create bpsh1 shared_tags=1 && null_create bpsh2 shared_tags=1 &&
	counted bpsh1 load -s $BATCH -c $BATCH -d 64 -n $((BATCH * N)) \
		/dev/bpsh1 || return
	expect_counts no_batch_depth=0 tags_batched=BATCH*N/4:BATCH*N
	null_remove bpsh1
	null_remove bpsh2
}

nothing_when_off()
{
	set_attr "$(stats_switch "$1")" 0 || return 1
	cat "$DEBUGFS/block/$1"/hctx*/plug_stats >"$TMP/before"
	load -s $BATCH -c $BATCH -n $((BATCH * N)) "/dev/$1" || return
	expect_text "counters" "$(cat "$DEBUGFS/block/$1"/hctx*/plug_stats)" \
		"$(cat "$TMP/before")"
}

refuses()
{
	local file

	file=$(stats_switch "$1")
	set_attr "$file" 1
	ensure_write_fails "$file" 2 "it is 0 or 1"
	ensure_write_fails "$file" -1 "it is not negative"
	ensure_write_fails "$file" yes "it is a number"
	ensure_write_fails "$file" "1 2" "it is one number"
}

# What plugs send out is what nvme's own trace has, and rings a doorbell for each
# group.
doorbells_agree()
{
	local traced

	trace_start nvme:nvme_setup_cmd
	counted "$1" batches "$1" $N || return
	trace_end
	# shellcheck disable=SC2034 # expect_counts reads it
	traced=$(grep -c "nvme_setup_cmd:.*disk=$1" "$TMP/trace")
	expect_counts flush_requests=traced-4:traced doorbells=1:HELD_GROUPS+8
	trace_stop
}

common()
{
	check "$1: random 4K agrees with the profiler" agrees "$1" rand
	check "$1: sequential 4K agrees with the profiler" agrees "$1" seq
	check "$1: all tags are taken at once" batches_tags "$1"
	check "$1: one at a time wants no batch" wants_no_batch "$1"
	check "$1: a full plug is flushed" \
		flushes "$1" 64 -a rand -s 128 -c 128 -d 128
	check "$1: the end of a submission flushes" \
		flushes "$1" 128 -a rand -s 16 -c 16 -d 128
	check "$1: large requests flush" \
		flushes "$1" 2048 -a rand -b 128k -s 16 -c 16 -d 16
	check "$1: a plug of two disks" flushes_two_disks "$1"
	check "$1: switched off, nothing is counted" nothing_when_off "$1"
	check "$1: what is not 0 or 1 is refused" refuses "$1"
}

require root debugfs plug_stats profiler trace plug_load fio taskset null_blk \
	nvme_if_any
plan $((10 + 2 + 11 * $(count_words "$NVME")))
null_create bpstat
common bpstat
check "a map of four tags is why there is no batch" why_no_batch
check "a shared tag set is no reason but for its share" shared_by_two
for disk in $NVME; do
	common "$disk"
	check "$disk: agrees with nvme's trace" doorbells_agree "$disk"
done
finish
