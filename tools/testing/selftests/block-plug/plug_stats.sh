#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: the plug statistics in debugfs agree with the function profiler,
# with the disk's own statistics and, on nvme, with the trace of its commands.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=plug_stats_lib.sh
. "${0%/*}/plug_stats_lib.sh"

N=50

# counted DISK ARG...: runs plug_load under the profiler with counting on
counted()
{
	local disk="$1" driver rc=0

	driver=$(driver_of "$disk")
	shift
	set_attr "$(stats_switch "$disk")" 1 || return 1
	REQUESTS=$(requests_of "$disk")
	MERGES=$(merges_of "$disk")
	stats_reset "$disk"
	profile_start blk_mq_get_tags blk_mq_get_tag "${driver}_queue_rqs" \
		"${driver}_queue_rq"
	load "$@" || rc=$?
	profile_end
	REQUESTS=$(($(requests_of "$disk") - REQUESTS))
	MERGES=$(($(merges_of "$disk") - MERGES))
	return $rc
}

# Whoever opens a disk reads a bit of it, too.
expect_near()
{
	expect_count "$1" "$2" "$3" $(($3 + 8))
}

agrees()
{
	local disk="$1" driver

	shift
	driver=$(driver_of "$disk")
	counted "$disk" "$@" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$disk" || return
	expect_count "requests" "$(stats "$disk" requests)" "$REQUESTS" "$REQUESTS"
	expect_count "completions" "$(stats "$disk" completions)" \
		"$REQUESTS" "$REQUESTS"
	expect_count "merge_hits" "$(stats "$disk" merge_hits)" \
		"$MERGES" "$MERGES"
	expect_count "calls for a tag" "$(stats "$disk" tags_single)" \
		"$(profile_hits blk_mq_get_tag)" \
		"$(profile_hits blk_mq_get_tag)"
	# none for I/Os that merge
	expect_count "batches of tags" "$(stats "$disk" tag_batches)" \
		$((MERGES ? 0 : N)) "$(profile_hits blk_mq_get_tags)"
	expect_count "calls of queue_rqs()" "$(stats "$disk" queue_rqs_calls)" \
		"$(profile_hits "${driver}_queue_rqs")" \
		"$(profile_hits "${driver}_queue_rqs")"
	# null_blk's queue_rqs() calls its queue_rq() itself
	if is_nvme "$disk"; then
		expect_count "calls of queue_rq()" \
			"$(stats "$disk" queue_rq_calls)" \
			"$(profile_hits "${driver}_queue_rq")" \
			"$(profile_hits "${driver}_queue_rq")"
	fi
	expect_count "requests of a flush" "$(stats "$disk" flush_requests)" \
		$((REQUESTS - 4)) "$REQUESTS"
	consistent "$disk"
}

# What must hold whatever the load was.
consistent()
{
	local begun flushes

	begun=$(stats "$1" flush_count flush_size flush_policy flush_finish \
		flush_schedule)
	expect_count "plugs" "$(stats "$1" plugs)" "$begun" "$begun"
	flushes=$((begun + $(stats "$1" flush_other_queue)))
	expect_count "sum of the flush sizes' histogram" \
		"$(stats_like "$1" flush_hist_)" "$flushes" "$flushes"
	expect_count "sum of the completion batches' histogram" \
		"$(stats_like "$1" batch_hist_)" \
		"$(stats "$1" completion_batches)" \
		"$(stats "$1" completion_batches)"
	expect_count "requests in flight" "$(stats "$1" in_flight)" 0 0
}

# flushes DISK WHY FLUSHES SIZE ARG...: so many end for this reason, and at
# least so many are of this size
flushes()
{
	local disk="$1" why="$2" nr="$3" size="$4"

	shift 4
	counted "$disk" "$@" -n 2048 "/dev/$disk" || return
	expect_count "flush_$why" "$(stats "$disk" "flush_$why")" \
		$((nr - 8)) $((nr + 8))
	expect_count "flushes of $size or more" \
		"$(stats "$disk" "flush_hist_$size")" $((nr - 8)) 2048
	consistent "$disk"
}

batches_tags()
{
	counted "$1" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	expect_near "tags of batches" $(((BATCH - 1) * N)) \
		"$(stats "$1" tags_batched)"
	expect_count "first requests of a plug" \
		"$(stats "$1" no_batch_budget)" $N $((N + 3))
	expect_count "all requests without a batch" \
		"$(stats_like "$1" no_batch_)" $N $((N + 5))
}

# why_no_batch REASON ATTRIBUTE=VALUE...: a null_blk that cannot batch
why_no_batch()
{
	local reason="$1"

	shift
	null_create bpwhy "$@" || return 1
	# the plug is never asked for a batch with one request at a time
	counted bpwhy -s $BATCH -c $BATCH -d 32 -n $((BATCH * N)) \
		/dev/bpwhy || return
	expect_count "tags of batches" "$(stats bpwhy tags_batched)" 0 0
	expect_count "no_batch_$reason" "$(stats bpwhy "no_batch_$reason")" \
		$N $((BATCH * N))
	null_remove bpwhy
}

# All 64 are announced, and so batched, but for the first one; one on its own is
# not.
spends_the_budget()
{
	counted "$1" -e libaio -s 1 -c 1 -d 1 -n $N "/dev/$1" || return
	expect_count "tags of batches" "$(stats "$1" tags_batched)" 0 0
	counted "$1" -s 64 -c 64 -d 128 -n $((64 * N)) "/dev/$1" || return
	expect_near "tags of batches" $((63 * N)) "$(stats "$1" tags_batched)"
	expect_count "no_batch_budget" "$(stats "$1" no_batch_budget)" \
		$N $((N + 8))
}

# Half of 64 tags is the share of each, and half of that a batch.
shared_by_two()
{
	local disk

	for disk in bpsh1 bpsh2; do
		null_create $disk shared_tags=1 || return 1
	done
	counted bpsh1 -s $BATCH -c $BATCH -d 64 -n $((BATCH * N)) \
		/dev/bpsh1 || return
	expect_count "requests without a batch" \
		"$(stats bpsh1 no_batch_depth no_batch_reserved)" 0 0
	expect_count "tags of batches" "$(stats bpsh1 tags_batched)" \
		$((BATCH * N / 4)) $((BATCH * N))
	null_remove bpsh1
	null_remove bpsh2
}

holds_are_timed()
{
	set_attr "$(stats_switch "$1")" 2 || return 1
	stats_reset "$1"
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) "/dev/$1" || return
	expect_count "holds" "$(stats "$1" holds)" $((N - 3)) $((N + 8))
	[ "$(stats "$1" hold_us)" -gt 0 ] || failed "the holds took no time"
	set_attr "$(stats_switch "$1")" 1
	stats_reset "$1"
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) "/dev/$1" || return
	expect_count "holds when they are not asked for" \
		"$(stats "$1" holds)" 0 0
}

nothing_when_off()
{
	set_attr "$(stats_switch "$1")" 1 && stats_reset "$1"
	set_attr "$(stats_switch "$1")" 0 || return 1
	load -s $BATCH -c $BATCH -n $((BATCH * N)) "/dev/$1" || return
	expect_text "counters that moved" \
		"$(cat "$DEBUGFS/block/$1"/hctx*/plug_stats | grep -v ' 0$')" ""
}

resets()
{
	set_attr "$(stats_switch "$1")" 1
	load -s $BATCH -c $BATCH -n $((BATCH * N)) "/dev/$1" || return
	[ "$(stats "$1" requests)" -gt 0 ] || failed "expected requests, saw none"
	stats_reset "$1"
	expect_text "counters after a reset" \
		"$(cat "$DEBUGFS/block/$1"/hctx*/plug_stats | grep -v ' 0$')" ""
}

refuses()
{
	local file

	file=$(stats_switch "$1")
	set_attr "$file" 1
	ensure_write_fails "$file" 3 "there are three modes"
	ensure_write_fails "$file" -1 "it is no number of a mode"
	ensure_write_fails "$file" yes "it is a number"
	ensure_write_fails "$file" "1 2" "it is one number"
}

# The trace event says what the counters say.
traced()
{
	trace_start blk_plug_stat:blk_plug_stat_flush
	counted "$1" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	trace_end
	expect_count "flush events for 'finish'" \
		"$(grep -c "blk_plug_stat_flush:.*nr=$BATCH reason=finish" \
			"$TMP/trace")" \
		"$(stats "$1" flush_hist_32)" "$(stats "$1" flush_hist_32)"
	trace_stop
}

# Commands that the driver has set up, in its own trace.
commands_agree()
{
	trace_start nvme:nvme_setup_cmd
	set_attr "$(stats_switch "$1")" 1
	stats_reset "$1"
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) "/dev/$1" || return
	trace_end
	expect_count "requests for the commands of nvme's trace" \
		"$(stats "$1" queue_rqs_requests queue_rq_calls)" \
		"$(grep -c "nvme_setup_cmd:.*disk=$1" "$TMP/trace")" \
		"$(grep -c "nvme_setup_cmd:.*disk=$1" "$TMP/trace")"
	trace_stop
}

# The driver counts doorbells, if this kernel has that.
doorbells_agree()
{
	local counting="$DEBUGFS/nvme_plug/counting" bells commands

	[ -e "$counting" ] || {
		skip_case "no $counting"
		return
	}
	set_attr "$counting" 1 || return 1
	bells=$(doorbells_of "$1" doorbells)
	commands=$(doorbells_of "$1" commands)
	counted "$1" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	bells=$(($(doorbells_of "$1" doorbells) - bells))
	commands=$(($(doorbells_of "$1" commands) - commands))
	expect_count "doorbells for queue_rqs() and queue_rq()" "$bells" 1 \
		"$(stats "$1" queue_rqs_calls queue_rq_calls)"
	expect_count "commands" "$commands" "$(stats "$1" requests)" \
		"$(stats "$1" requests)"
}

common()
{
	check "$1: random 4K agrees with the profiler" agrees "$1" -a rand
	check "$1: sequential 4K agrees with the profiler" agrees "$1" -a seq
	check "$1: all tags but the first are taken at once" batches_tags "$1"
	check "$1: 64 per submission stay within the budget" spends_the_budget "$1"
	check "$1: a full plug is flushed for its count" \
		flushes "$1" count 48 32 -a rand -s 128 -c 128 -d 128
	check "$1: the end of a submission flushes" \
		flushes "$1" finish 128 16 -a rand -s 16 -c 16 -d 128
	check "$1: large requests flush" \
		flushes "$1" size 1920 1 -a rand -b 128k -s 16 -c 16 -d 16
	check "$1: holds are timed if asked for" holds_are_timed "$1"
	check "$1: switched off, nothing is counted" nothing_when_off "$1"
	check "$1: a write resets the counters" resets "$1"
	check "$1: what is no mode is refused" refuses "$1"
	check "$1: the trace event agrees" traced "$1"
}

require root debugfs plug_stats profiler trace plug_load null_blk
NVME=$(nvme_if_any)
# shellcheck disable=SC2086 # a list
plan $((12 + 2 + 14 * $(count_words $NVME)))
null_create bpstat
common bpstat
check "a map whose words have one tag is why there is no batch" \
	why_no_batch depth hw_queue_depth=4
check "a shared tag set is no reason but for its share" shared_by_two
for disk in $NVME; do
	prepare "$disk"
	common "$disk"
	check "$disk: agrees with nvme's trace" commands_agree "$disk"
	check "$disk: agrees with nvme's doorbells" doorbells_agree "$disk"
done
finish
