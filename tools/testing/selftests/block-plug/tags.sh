#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: tags are taken in batches as large as a plug can use, whoever
# submits, however small or busy the map is, and no tag is taken that nobody
# uses, or that a scheduler or another task has to have.

. "${0%/*}/measure_lib.sh"

# How many tags a plug uses, and whether its I/Os merge, is known to each CPU by
# itself.
PIN="taskset 1"

# Some time in which an I/O is in flight, in ns: longer than the submission of
# all takes, also where the CPU is emulated.
LONG=30000000

# --- loads ------------------------------------------------------------------

# merging PER_PLUG PER_REQUEST: sequential 4K
merging()
{
	set_attr /sys/block/bp0/queue/max_sectors_kb $(($2 * 4)) &&
	plugs "$1" bp0 $N -a seq
}

# One request of three I/Os, until that is known; then two.
then_two()
{
	plugs 3 bp0 3 -a seq && merging 3 2
}

# in_turn SIZE ACCESS SIZE ACCESS: plugs of two kinds
in_turn()
{
	local i=0

	set_attr /sys/block/bp0/queue/max_sectors_kb 128 || return
	while [ $((i += 1)) -le $N ]; do
		plugs "$1" bp0 1 -a "$2" && plugs "$3" bp0 1 -a "$4" || return
	done
}

# buffered MODE SIZE: each read sleeps until its page is there. "never" leaves
# the plug empty: that it sleeps must count all the same.
buffered()
{
	local policy=/sys/block/bp0/queue/plug_policy

	[ ! -e $policy ] || set_attr $policy "$1" || return
	fio_plugs libaio "$2" /dev/bp0 $N --direct=0
}

# unannounced REQUESTS...: reads of so many requests, of 17 at least: one that
# takes several bios has a plug, which nobody told how many come
unannounced()
{
	local requests

	set_attr /sys/block/bp0/queue/max_sectors_kb 64 || return
	for requests; do
		fio_quiet --filename=/dev/bp0 --ioengine=psync --direct=1 \
			--rw=randread --bs=$((requests * 64))k --number_ios=$N ||
			return
	done
}

# So many in flight that some have to wait for one of 32 tags.
waiting()
{
	fio_plugs libaio 32 /dev/bp0 $N --iodepth=128
}

# busy IN_FLIGHT SIZE
busy()
{
	load -s "$2" -c "$2" -d "$1" -n $(($2 * N)) /dev/bp0
}

# submit_with SCHEDULER RUN...: which limits the writes, so that their tags come
# singly; mq-deadline does so with a lower async_depth
submit_with()
{
	local file

	set_attr /sys/block/bp0/queue/scheduler "$1" || return
	shift
	for file in /sys/block/bp0/queue/async_depth \
		    /sys/block/bp0/queue/iosched/async_depth; do
		[ ! -e $file ] || set_attr $file 48 || return
	done
	submit "$@"
}

# unlimited RUN...: as mq-deadline is by default
unlimited()
{
	set_attr /sys/block/bp0/queue/scheduler mq-deadline && submit "$@"
}

# --- cases that a load alone does not make ----------------------------------

# Eight I/Os hold bp2's tags while a worker of io_uring waits for one. Ours find
# none, and go to workers, each of which counts as one more: calls, or tags that
# were taken where there is no profiler. A request may be in flight for 5 s.
full()
{
	null_create bp1 && null_create bp2 hw_queue_depth=8 submit_queues=1 \
		irqmode=2 completion_nsec=3000000000 || return
	background plug_load -s 9 -c 9 -d 9 -n 9 /dev/bp2 >"$TMP/full"
	wait_for 60 grep -q 'ws_active=[1-9]' "$DEBUGFS/block/bp2/hctx0/tags" ||
		return
	measure bp1 submit "bp2:0:4k*2+1m" "bp1:0:4k*30+1m" || return
	expect_counts "TAG_SINGLES=$(has_profiler && echo 4:6 || echo 2:4)"
	stop_jobs
	null_remove bp2
}

MAP=block-plug-test

remove_map()
{
	dmsetup remove $MAP --noudevsync 2>/dev/null
}

# Each request has a clone, which takes its tag alone, since the scheduler
# limits writes; the I/Os of the plug take theirs in batches. A few I/Os may
# merge. Disks of dm do not know NOWAIT, without which io_uring submits from its
# workers.
below_mpath()
{
	local path dm=

	null_create bp0 || return
	set_attr /sys/block/bp0/queue/scheduler mq-deadline || return
	at_exit remove_map
	echo "0 $(cat /sys/block/bp0/size) multipath 2 queue_mode mq 0 1 1" \
		"round-robin 0 1 1 /dev/bp0 1000" |
		dmsetup create $MAP --noudevsync 2>/dev/null ||
		{ skip_case "no dmsetup, or CONFIG_DM_MULTIPATH"; return; }
	for path in /sys/block/dm-*; do
		[ "$(cat "$path/dm/name")" != $MAP ] || dm=${path##*/}
	done
	echo none >"/sys/block/$dm/queue/scheduler"
	measure bp0 fio_plugs libaio 128 "/dev/$dm" $N --rw=randwrite || return
	remove_map
	null_remove bp0
	expect_counts "REQUESTS~127*N:128*N" "TAG_BATCHES~4*N:12*N" \
		"TAG_SINGLES~REQUESTS:REQUESTS+N"
}

# --- the table --------------------------------------------------------------

require root debugfs counts plug_load submit_list fio taskset null_blk
plan $((3 + 3 + 3 + 7 + 12 + 4 + 2 + 6 + 1 + 7 + 2))

# A batch has 32 tags at most; the first is no exception.
for i in 32 64 128; do
	row "$i per io_uring_enter()" "" \
		"TAG_BATCHES~$i/32*N TAG_SINGLES~0" plugs $i bp0 $N
done
for i in 4 32 128; do
	row "$i per io_submit()" "" \
		"TAG_BATCHES~(${i}+31)/32*N TAG_SINGLES~0" \
		fio_plugs libaio $i /dev/bp0 $N
done

# Who sleeps gives back what the plug has taken ahead: a tenth at most.
few_unused="TAGS~REQUESTS:REQUESTS*11/10"

# Reproducer: a plug that announces nothing took each tag alone. The first eight
# are, as most such plugs are short; then come as many as the last plugs used.
# A bio ends where the pages' places say, and so may a request: one more for each
# bio of 1M but the last. A plug that has to sleep has no further batch.
row "reads of 32 requests, not announced" "" \
	"REQUESTS~32*N:33*N $few_unused TAG_BATCHES~N*9/10:N TAG_SINGLES~8*N:12*N" \
	unannounced 32
row "reads of 64 requests, not announced" "" \
	"REQUESTS~64*N:67*N $few_unused TAG_BATCHES~N*9/5:3*N TAG_SINGLES~8*N:15*N" \
	unannounced 64
row "reads of 32 requests, then of 20, not announced" "" \
	"REQUESTS~52*N:54*N $few_unused TAG_BATCHES~N*9/5:2*N" \
	unannounced 32 20

# A word of the map has a quarter of the bits, rounded down to a power of two,
# and one call takes what is free in it. All are free where null_blk completes
# I/O as it is issued. A word may be short, so that one tag is left to be taken
# alone.
#           depth, words                    calls   singles
for what in "32, words of 8:                4*N     0" \
	    "64, words of 16:               2*N     0" \
	    "96, words of 16:               2*N     0" \
	    "127, words of 16, one of 15:   2*N:3*N 0:N" \
	    "128, words of 32:              N       0" \
	    "255, words of 32, one of 31:   N:2*N   0:N" \
	    "1023, words of 64, one of 63:  N       0"; do
	# shellcheck disable=SC2086 # two words
	set -- ${what#*:}
	row "depth ${what%%:*}" \
		"hw_queue_depth=${what%%,*} submit_queues=1" \
		"TAG_BATCHES~$1 TAG_SINGLES~$2" plugs 32 bp0 $N
done

# Reproducer: batches left half of each word to those who take single tags. All
# but the first tag of a plug come in batches; one more may miss them. Of the
# whole map: with all in flight, no more than a plug's tags are free.
for depth in 128 256; do
	for size in 8 32; do
		for flight in $((depth / 2)) $((depth * 3 / 4)) \
			      $((depth - size)); do
			N=$((flight * 20 / size))
			row "depth $depth, $flight in flight, $size per plug" \
				"hw_queue_depth=$depth submit_queues=1 irqmode=2
				 completion_nsec=$LONG" \
				"TAG_SINGLES~0:2*N" busy $flight $size
		done
	done
done
N=50

# Reproducer: a plug took as many tags as it was told of I/Os. A disk's first
# plug does not know that they merge.
merged="TAGS~REQUESTS:REQUESTS+BATCH"
row "32 that merge into one request" "" "REQUESTS~N $merged" merging 32 32
row "128 that merge into four" "" "REQUESTS~4*N $merged" merging 128 32
row "128 that merge two by two" "" "REQUESTS~64*N $merged" merging 128 2
row "plugs of 32 and 16 in turn, one request each" "" "REQUESTS~2*N $merged" \
	in_turn 32 seq 16 seq

# Reproducer: each random plug learnt anew, by 1, 1, 2 and 4, what the one before
# the last had used.
row "plugs of 8 that merge, and that do not, in turn" "" \
	"REQUESTS~9*N $merged TAG_BATCHES~N:N+2" in_turn 8 seq 8 rand

# Reproducer: the last I/O that was announced was not counted.
row "plugs of 3 that merge into one request, then into two" "" \
	"REQUESTS~3+2*N $merged TAG_BATCHES~N-2" then_two

# Reproducer: whoever sleeps gives back what the plug has allocated ahead, and
# the next I/O allocated 31 requests anew. A timer completes, or "never" would
# find each page at once, late enough for a CPU that is slow.
for mode in always never; do
	for i in 3 32 128; do
		row "$mode: buffered reads, $i per io_submit()" \
			"irqmode=2 completion_nsec=500000" \
			"REQUESTS~$i*N/2:$i*N $few_unused" buffered $mode $i
	done
done

row "128 in flight, of 32 tags, 32 per io_submit()" \
	"hw_queue_depth=32 submit_queues=1 irqmode=2" \
	"$few_unused" waiting

# Reproducers: the first write that was refused a batch ended the batches of the
# whole plug, of other disks, too; and any I/O used the requests that its first
# had allocated, past the limit. The first read does not know whether it merges.
for scheduler in mq-deadline kyber; do
	row "$scheduler: reads and writes in turn" "" "TAG_SINGLES=0:18" \
		submit_with $scheduler bp0:0:4k*16+2m,1m:4k*16+2m:write
	row "$scheduler: writes and reads in turn" "" "TAG_SINGLES=0:18" \
		submit_with $scheduler bp0:0:4k*16+2m:write,1m:4k*16+2m
done
row "two reads, then 30 writes, each with a tag of its own" "" \
	"TAG_SINGLES=30:35" \
	submit_with mq-deadline "bp0:0:4k*2+1m" "bp0:2m:4k*30+1m:write"
row "32 writes, which mq-deadline does not limit" "" "TAG_SINGLES=0:2" \
	unlimited "bp0:2m:4k*32+1m:write"
must null_create bp1
row "two writes, then 30 reads of another disk" "" "TAG_SINGLES=2:4" \
	submit_with mq-deadline "bp0:0:4k*2+1m:write" "bp1:0:4k*30+1m"
null_remove bp1
check "reads of a disk without free tags, then of another" full
check "clones of dm-multipath while a plug of 128 is flushed" below_mpath
finish
