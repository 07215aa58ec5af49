#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: fsync, O_SYNC and O_DSYNC reach the disk in every mode, among I/O
# that is held, and what they cover reads back.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"
. "${0%/*}/policy_lib.sh"

# The flushes go past the plug; the writes around them, which do not merge, do
# not. A plug has one fsync: flushes that wait at the same time would become
# one.
fsyncs()
{
	local flushes n=-1

	set_fresh "$1" "$2" || return 1
	load -r write -a seq -z 4m "/dev/$1" || return
	flushes=$(stat_field "$1" 16)
	while [ $((n += 1)) -lt 32 ]; do
		submit "$1:$((n * 128))k:4k*16+8k:write" 0:4k:fsync \
			"$((n * 128 + 4))k:4k*16+8k:write"
	done
	expect_count "flushes for 32 fsyncs" \
		$(($(stat_field "$1" 16) - flushes)) 32
	cmp -n 4194304 "/dev/$1" /dev/zero ||
		failed "what was written is not there"
}

# synced DISK MODE HOW DEPTH: a sync write is one with FUA, or one that a flush
# follows. Of several at a time, a flush serves as many as there are.
synced()
{
	set_fresh "$1" "$2" || return 1
	trace_start block:block_rq_issue block:block_rq_complete
	fio_quiet --filename="/dev/$1" --rw=randwrite --bs=4k --size=512k \
		--direct=1 --sync="$3" --ioengine=io_uring --iodepth="$4" \
		--iodepth_batch_submit=$((($4 + 1) / 2)) \
		--iodepth_batch_complete_min=$((($4 + 3) / 4)) \
		--verify=crc32c --verify_fatal=1 || return
	trace_end
	events_of "$1" >"$TMP/events"
	if [ "$(cat "/sys/block/$1/queue/fua")" -eq 1 ]; then
		expect_count "FUA writes issued for 128 writes" \
			"$(grep -c '^issue WF' "$TMP/events")" 128
		expect_count "flushes issued for 128 FUA writes" \
			"$(grep -c '^issue F' "$TMP/events")" 0
	else
		expect_text "flushes" "$(flushed_writes)" "128 writes flushed"
	fi
}

# events_of DISK: issue or complete, what it is, sector and size
events_of()
{
	grep -F ": $(tr : , <"/sys/block/$1/dev") " "$TMP/trace" |
		sed -n -e 's/.*block_rq_//' -e 's/: [0-9,]* / /' \
			-e 's/ [^A-Z]*() / /' -e 's/ + \([0-9]*\) .*/ \1/p'
}

# A write completes twice: with its data, and, of size 0, after the flush that
# has to begin in between. Flushes that no write waits for are not wanted. One
# hardware queue does one flush at a time.
flushed_writes()
{
	awk '/^issue F/ {
			if (begun && !ended)
				print "no write waited for a flush"
			begun = NR
			ended = 0
		}
		/^complete F/ { covered = begun }
		/^complete W/ && $4 { data[$3] = NR }
		/^complete W/ && !$4 {
			ended++
			writes++
			if (!data[$3] || data[$3] > covered)
				print "no flush after the write at " $3
		}
		END { print writes + 0 " writes flushed" }' "$TMP/events" |
		uniq -c | sed -e 's/^ *//' -e 's/^1 //' | head -n 3
}

each_mode()
{
	local disk="$1" mode

	shift
	for mode; do
		check "$disk: $mode, fsync" fsyncs "$disk" "$mode"
		check "$disk: $mode, O_SYNC, one at a time" \
			synced "$disk" "$mode" sync 1
		check "$disk: $mode, O_DSYNC, 32 at a time" \
			synced "$disk" "$mode" dsync 32
	done
}

require root knob debugfs trace plug_load submit_list fio null_blk \
	nvme_if_any
# A null_blk with a cache of 32 MB needs flushes; one with FUA needs none for a
# sync write. They may sleep, so that all modes hold as "always", which is all
# that they are tested in: the other modes are tested on nvme.
must null_create bp0 size=64 memory_backed=1 cache_size=32 fua=0 submit_queues=1
must null_create bp1 size=64 memory_backed=1 cache_size=32 fua=1
MODES=$(modes_of bp0)
plan $((3 * (2 + $(count_words "$NVME") * $(count_words "$MODES"))))
each_mode bp0 always
each_mode bp1 always
for disk in $NVME; do
	# shellcheck disable=SC2086 # a list
	each_mode "$disk" $MODES
done
finish
