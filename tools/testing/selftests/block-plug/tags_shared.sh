#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: disks that share a tag set, as two namespaces of one controller
# do, take their tags in batches; a flood to one disk does not take the share of
# the other, nor do CPUs that take batches at the same time.
#
# Reproducer: each CPU compared the share with what the others had taken, not
# with what they were about to take.

. "${0%/*}/measure_lib.sh"

# All disks of this kind share one set, whose depth is the module's, 64 unless
# set. A share is half of it while both disks are in use, and has words of 16.
DEPTH=$(cat /sys/module/null_blk/parameters/hw_queue_depth 2>/dev/null)
N=100

# in_batches SCHEDULER DEV...: no single tag for the 32 of a plug, once a plug
# has shown how many each disk uses
in_batches()
{
	set_attr /sys/block/bp0/queue/scheduler "$1" || return
	shift
	load -s $BATCH -c $BATCH -d $BATCH -n $BATCH "$@" &&
	measure bp0 load -s $BATCH -c $BATCH -d $BATCH -n $((BATCH * N)) "$@" &&
	expect_counts TAG_BATCHES~N:4*N TAG_SINGLES~0
}

# two_disks NSEC NSEC: bp2 and bp3, and how long each takes
two_disks()
{
	null_create bp2 shared_tags=1 submit_queues=1 irqmode=2 \
		completion_nsec="$1" &&
	null_create bp3 shared_tags=1 submit_queues=1 irqmode=2 \
		completion_nsec="$2"
}

# Eight tasks flood bp2. The rate of bp3, with one task, is limited by its
# share: with all tags it would be the same. Where CPUs are slow, it is one task
# of nine that limits it; less than half of what that comes to would be
# starvation.
fair()
{
	local i modest flood

	two_disks 1000000 1000000 || return
	flood=$(requests_of bp2)
	modest=$(requests_of bp3)
	for i in 1 2 3 4 5 6 7 8; do
		background plug_load -t 3 -d 256 /dev/bp2 >"$TMP/flood$i"
	done
	load -t 2 -s 16 -c 16 -d $((DEPTH / 2)) /dev/bp3 || return
	flood=$(($(requests_of bp2) - flood))
	modest=$(($(requests_of bp3) - modest))
	note "$modest I/Os beside a flood of $flood"
	expect_count "I/Os beside a flood of $flood" "$modest" \
		$((flood / 18)) $((flood * 3))
}

# A word of 16 tags has three batches of 5, and one left for the fourth.
falls_short()
{
	two_disks 1000000 1000000 &&
	load -s 5 -c 5 -d $((DEPTH / 2)) -n $((50 * N)) /dev/bp2 &&
	wait_for 30 grep -q '^0$' "$DEBUGFS/block/bp2/hctx0/active"
}

both_active()
{
	grep -q "^active_queues=2$" "$DEBUGFS/block/bp2/hctx0/tags"
}

# The most that a look at bp2's hardware queue saw. While bp3 counts as idle,
# which it does if the timer finds it so, its share is bp2's.
most_active()
{
	local n=0 most=0 now

	while [ $((n += 1)) -le 200 ]; do
		both_active || continue
		sleep 0.01
		now=$(cat "$DEBUGFS/block/bp2/hctx0/active")
		both_active && [ "$now" -gt "$most" ] && most=$now
	done
	echo "$most"
}

# A single tag may be one too many for each CPU: its check and its count are two
# steps, too. bp3 has always something in flight, so that it seldom counts as
# idle.
within_share()
{
	local share=$((DEPTH / 2)) cpu most

	[ "$(nproc)" -ge 4 ] || { skip_case "$(nproc) CPUs, not 4"; return; }
	two_disks 1000000 50000000 || return
	background plug_load -t 25 -s 1 -c 1 -d 8 /dev/bp3 >"$TMP/other"
	wait_for 60 grep -q '^ *[1-9]' /sys/block/bp3/stat || return
	for cpu in $(seq 0 $(($(nproc) - 1))); do
		background taskset -c "$cpu" plug_load -t 25 -s $BATCH -c 1 \
			-d 128 /dev/bp2 >"$TMP/load$cpu"
	done
	sleep 1
	most=$(most_active)
	note "at most $most of a share of $share were in use"
	expect_count "tags in use, of a share of $share" "$most" \
		$((share / 2)) $((share + $(nproc)))
}

remove_two()
{
	stop_jobs
	null_remove bp2
	null_remove bp3
}

require root debugfs counts plug_load null_blk
plan 6
must null_create bp0 shared_tags=1
must null_create bp1 shared_tags=1
check "one of two disks" in_batches none /dev/bp0
check "one of two disks, with a scheduler" in_batches mq-deadline /dev/bp0
check "two disks in one plug" in_batches none /dev/bp0 /dev/bp1
null_remove bp0
null_remove bp1
check "what a batch has reserved and not found is given back" falls_short
remove_two
check "a flood leaves the other disk its share" fair
remove_two
check "a load on each CPU stays within the share" within_share
finish
