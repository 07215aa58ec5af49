#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a disk with an I/O scheduler, with a driver whose queue_rq() may
# sleep, or with one that has no queue_rqs(), holds and merges as for "always"
# in every mode, and says so; it goes back to its mode when the scheduler is
# gone.

. "${0%/*}/measure_lib.sh"
. "${0%/*}/policy_lib.sh"

# "adaptive" tries no other size within 1000 requests.
N=30
PIN="taskset 1"
SCHEDULER=/sys/block/bp0/queue/scheduler

# in_mode DISK MODE WHY
in_mode()
{
	set_mode "$1" "$2" || return 1
	[ "$3" != elevator ] || set_attr $SCHEDULER mq-deadline || return 1
	expect_fallback "$1" "$3"
}

# That a plug was held shows in block_unplug, which tells how many requests it
# held: queue_rqs() is not used here. Where the CPU is shared, some are cut short;
# in groups, none would be whole.
holds()
{
	in_mode "$1" "$2" "$3" || return
	trace_start block:block_unplug
	batches "$1" $N || return
	trace_end
	grep 'block_unplug: \[plug_load\]' "$TMP/trace" >"$TMP/unplugs"
	expect_count "plugs sent out with 32 requests" \
		"$(awk '$NF == 32' "$TMP/unplugs" | wc -l)" $((N / 2)) $N
	expect_count "plugs sent out" "$(wc -l <"$TMP/unplugs")" $N $((N * 2))
}

merges()
{
	in_mode "$1" "$2" "$3" || return
	measure "$1" batches "$1" $N -a seq || return
	expect_batches "requests for $((BATCH * N)) I/Os" "$REQUESTS" $N
	expect_lookups $((BATCH * N)) $(((BATCH - 1) * N - 3)) $((BATCH * N))
}

# There is nothing to pin, and so no loop, whatever the mode was before.
refuses_to_pin()
{
	local file

	set_mode "$1" adaptive || return 1
	file=$(adaptive_files "$1" | head -n 1)
	ensure_write_fails "$file" 8 "$2" "Operation not supported"
	ensure_write_fails "$file" 0 "$2" "Operation not supported"
	ensure_write_fails "$file" 33 "a plug holds 32"
}

# RWF_NOWAIT must not end up in a driver that sleeps.
nowait()
{
	set_mode bp1 "$1" || return 1
	load -N -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) /dev/bp1
}

# returns MODE GROUPS, per batch
returns()
{
	in_mode bp0 "$1" elevator && set_attr $SCHEDULER none || return 1
	expect_fallback bp0 none
	measure bp0 batches bp0 $N || return
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($2 * N))
}

require root knob debugfs counts trace plug_load taskset null_blk loop \
	deadline
must null_create bp0
must null_create bp1 blocking=1
must truncate -s 16M "$TMP/file"
must loop_create "$TMP/file"
set_attr "/sys/block/$LOOP/queue/scheduler" none
plan 31
set_attr $SCHEDULER mq-deadline
check "with an elevator there is nothing to pin" \
	refuses_to_pin bp0 "it has an elevator"
for mode in always never seq-small adaptive; do
	check "$mode holds for an elevator" holds bp0 $mode elevator
	check "$mode merges for an elevator" merges bp0 $mode elevator
	check "$mode holds for a blocking driver" \
		holds bp1 $mode blocking-driver
	check "$mode merges for a blocking driver" \
		merges bp1 $mode blocking-driver
	check "$mode completes NOWAIT I/O on a blocking driver" nowait $mode
	check "$mode holds for a driver without queue_rqs()" \
		holds "$LOOP" $mode no-queue_rqs
done
check "a blocking driver has nothing to pin" refuses_to_pin bp1 "it may sleep"
check "a driver without queue_rqs() has nothing to pin" \
	refuses_to_pin "$LOOP" "it takes no groups"
for row in "always 1" "never 0" "seq-small 4" "adaptive 1"; do
	check "${row% *} returns when the elevator is gone" \
		returns "${row% *}" "${row#* }"
done
finish
