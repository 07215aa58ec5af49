#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: writeback throttling sees every request, counts those that a plug
# holds as in flight, and makes their submitter wait. With and without it, in
# every mode, what is written is there, and nothing stays in flight.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"
. "${0%/*}/policy_lib.sh"

# Their sum over wbt's classes
in_flight_of()
{
	sed -n 's/.*inflight //p' "$DEBUGFS/block/$1/rqos/wbt/inflight" |
		awk '{ n += $1 } END { print n + 0 }'
}

wbt_idle()
{
	[ "$(in_flight_of "$1")" -eq 0 ]
}

# The profiler loses functions that sleep; tracing them does not.
trace_writes()
{
	profile_filter wbt_wait
	set_attr "$TRACEFS/current_tracer" function
	trace_start block:block_getrq block:block_unplug
}

# A disk that never had wbt does not tell; switching it off makes it tell.
set_wbt()
{
	local file="/sys/block/$1/queue/wbt_lat_usec"

	cat "$file" >/dev/null 2>&1 || echo 0 >"$file"
	set_attr "$file" "$2"
}

# both_kinds DISK OPTION: through the page cache, and past it by libaio, whose
# requests are allocated in batches: where io_uring gets no tag at once, it
# tries again, and wbt is asked twice.
both_kinds()
{
	local what="--filename=/dev/$1 --rw=randwrite --bs=4k --verify=crc32c
		    --verify_fatal=1 --randseed=$SEED $2"

	# shellcheck disable=SC2086 # a list of options
	fio_quiet $what --size=2m --ioengine=io_uring --iodepth=64 \
		--iodepth_batch_submit=$BATCH --fsync=256 &&
	fio_quiet $what --size=512k --offset=4m --ioengine=libaio --direct=1 \
		--iodepth=16 --iodepth_batch_submit=16
}

# writes DISK MODE LATENCY: 0 us switches throttling off, 1 is never met
writes()
{
	SEED=$((SEED + 1))
	set_fresh "$1" "$2" &&
	set_wbt "$1" "$3" || return 1
	trace_writes
	both_kinds "$1" --do_verify=0 || return
	trace_end
	set_attr "$TRACEFS/current_tracer" nop
	! is_nvme "$1" || both_kinds "$1" --verify_only || return
	expect_every_request "$1"
	if [ "$3" -eq 0 ]; then
		[ "$2" != always ] || expect_held $((LIMIT + 1)) $BATCH
		return
	fi
	expect_held 0 $LIMIT
	wait_for 60 wbt_idle "$1" ||
		failed "wbt counts $(in_flight_of "$1") requests in flight"
}

# expect_held LEAST MOST: the largest number that a plug sent out at once
expect_held()
{
	local most

	most=$(sed -n 's/.*block_unplug: .* \([0-9]*\)$/\1/p' "$TMP/trace" |
		sort -n | tail -n 1)
	expect_count "requests that a plug held" "${most:-0}" "$1" "$2"
}

# Whether it throttles them or not, wbt is asked about all.
expect_every_request()
{
	local requests

	requests=$(grep -c "block_getrq: $(tr : , <"/sys/block/$1/dev") " \
		"$TMP/trace")
	expect_count "requests in the trace" "$requests" 256 1536
	expect_count "calls of wbt_wait() for $requests requests" \
		"$(grep -c ': wbt_wait <-' "$TMP/trace")" "$requests"
}

# wbt lets 16 sync writes be in flight, and more, up to 3/4 of all tags, while
# there are no reads: these are 15 of 20, so that 16 is the limit at any time.
TAGS=20
LIMIT=16

SEED=0
require root knob debugfs trace profiler fio null_blk wbt nvme_if_any
# It completes late, and does not keep its data: who does, may sleep, so that all
# modes hold as "always".
must null_create bp0 irqmode=2 completion_nsec=50000
DISKS="bp0 $NVME"
MODES=$(modes_of bp0)
plan $((2 * $(count_words "$DISKS") * $(count_words "$MODES")))
for disk in $DISKS; do
	set_attr "/sys/block/$disk/queue/nr_requests" $TAGS
	for mode in $MODES; do
		check "$disk: $mode, not throttled" writes "$disk" "$mode" 0
		check "$disk: $mode, throttled" writes "$disk" "$mode" 1
	done
done
finish
