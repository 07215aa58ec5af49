#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# In the guest: what a plug batches, on any kernel. See scripts/audit.py, which
# knows what each number should be.
#
# audit_guest.sh counts|queues|instructions|losers|few_tags
#
# counts:	calls and requests, on null_blk and on nvme with two namespaces
# queues:	nvme with a hardware queue of their own for reads
# instructions:	what must repeat, in a guest whose time follows instructions
# losers:	likewise, the loads that have to fear batches
# few_tags:	likewise, with a share of 4 tags
#
# Prints "value NAME NUMBER" to fd 3. Doorbells are counted by the host, between
# the marks NAME.begin and NAME.end.

# shellcheck source=../../tools/testing/selftests/block-plug/lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=../../tools/testing/selftests/block-plug/load_lib.sh
. "${0%/*}/load_lib.sh"
# shellcheck source=../../tools/testing/selftests/block-plug/trace_lib.sh
. "${0%/*}/trace_lib.sh"
# shellcheck source=../../tools/testing/selftests/block-plug/policy_lib.sh
. "${0%/*}/policy_lib.sh"

NVME=nvme0n1
N=100

# value NAME NUMBER: of a measurement that went as it should
value()
{
	if [ "$CASE_FAILED" -ne 0 ]; then
		echo "audit_guest.sh: $1 could not be measured" >&2
		exit 1
	fi
	echo "value $1 $2" >&3
}

must()
{
	"$@" || failed "$*: exit $?"
}

# rounded COUNT BY: to one decimal
rounded()
{
	awk -v n="$1" -v by="$2" 'BEGIN { printf "%.1f\n", n / by }'
}

# One submission with the I/Os that are listed.
submit()
{
	must submit_list "$@"
}

# turns DISKS: 32 reads of 4K, sequential on each disk, the disks in turn
turns()
{
	local n=0

	while [ $n -lt 32 ]; do
		echo "/dev/bp$((n % $1)):$((n / $1 << 12)):4096"
		n=$((n + 1))
	done
}

# apart DISK SIZE FIRST LAST: reads too far from each other to merge
apart()
{
	local n="$3"

	while [ "$n" -le "$4" ]; do
		echo "/dev/$1:$((n << 20)):$2"
		n=$((n + 1))
	done
}

# --- what is flushed, and merged -------------------------------------------

flush_size()
{
	profile_start null_queue_rqs
	# shellcheck disable=SC2046 # lists
	submit $(apart bp0 4096 0 0) $(apart bp0 131072 1 31)
	profile_end
	value flush_size "$(profile_hits null_queue_rqs)"
}

# merges NAME DISKS
merges()
{
	local disk sum=0

	for disk in bp0 bp1 bp2 bp3; do
		must set_attr /sys/block/$disk/queue/max_sectors_kb 8
		sum=$((sum - $(requests_of $disk)))
	done
	# shellcheck disable=SC2046 # a list
	submit $(turns "$2")
	for disk in bp0 bp1 bp2 bp3; do
		sum=$((sum + $(requests_of $disk)))
		must set_attr /sys/block/$disk/queue/max_sectors_kb 1024
	done
	value "$1" $sum
}

# sticky NAME DISK: groups of 199 requests behind one for a scheduler
sticky()
{
	local call

	call=$(driver_of "$2")_queue_rqs
	must set_attr /sys/block/bp0/queue/scheduler mq-deadline
	profile_start "$call"
	# shellcheck disable=SC2046 # lists
	submit $(apart bp0 4096 0 0) $(apart "$2" 4096 1 199)
	profile_end
	must set_attr /sys/block/bp0/queue/scheduler none
	value "$1" "$(profile_hits "$call")"
}

# --- tags ------------------------------------------------------------------

# tags NAME SIZE ARG...: of SIZE I/Os per submission, how many have their tag
# from a batch; and how many a batch has
tags()
{
	local name="$1" size="$2" ios=$(($2 * N)) batched

	shift 2
	profile_start blk_mq_get_tags blk_mq_get_tag
	must load -s "$size" -c "$size" -d "$size" -n $ios "$@"
	profile_end
	batched=$((ios - $(profile_hits blk_mq_get_tag)))
	[ $batched -ge 0 ] || batched=0
	value "$name" "$(rounded $batched $N)"
	value "$name.at_once" "$(rounded $batched \
		$(($(profile_hits blk_mq_get_tags) + (batched == 0))))"
}

# words_value KEY FILE: of "key=value ..."
words_value()
{
	sed "s/.*\\b$1=\\([^ ]*\\).*/\\1/" "$2"
}

# depth DEPTH
tags_of_depth()
{
	must null_create bpdepth hw_queue_depth="$1" submit_queues=1
	tags "tags_depth$1" 32 /dev/bpdepth
	null_remove bpdepth
}

tags_of_shared_set()
{
	must null_create bpsh0 shared_tags=1
	must null_create bpsh1 shared_tags=1
	tags tags_shared 32 /dev/bpsh0
	must set_attr /sys/block/bpsh0/queue/scheduler mq-deadline
	tags tags_shared_sched 32 /dev/bpsh0
	null_remove bpsh0
	null_remove bpsh1
}

# A scheduler's limit for writes must not be one for the reads between them.
tags_of_mixed_kinds()
{
	local scheduler

	for scheduler in mq-deadline kyber; do
		must set_attr /sys/block/bp0/queue/scheduler $scheduler
		tags "tags_mixed_${scheduler#*-}" 32 -m 50 /dev/bp0
	done
	must set_attr /sys/block/bp0/queue/scheduler none
}

# allocated NAME DISK ARG...: requests allocated for each 100 used: null_blk gives
# back each one's tag alone
allocated()
{
	local name="$1" disk="$2" used

	shift 2
	used=$(requests_of "$disk")
	profile_start blk_mq_put_tag
	must load -e libaio -s 32 -c 32 "$@" "/dev/$disk"
	profile_end
	used=$(($(requests_of "$disk") - used))
	[ $used -gt 0 ] || failed "$name: no request"
	value "$name" "$((100 * $(profile_hits blk_mq_put_tag) / (used + !used)))"
}

# Whoever sleeps gives back what was allocated ahead: for a page, for a tag.
allocated_by_sleepers()
{
	allocated allocated_buffered bp0 -d 32 -B -a rand-once -n $((32 * N))
	must null_create bpwait hw_queue_depth=32 submit_queues=1 irqmode=2
	allocated allocated_waiting bpwait -d 128 -n $((32 * N))
	null_remove bpwait
}

# --- doorbells, polling, kyber ---------------------------------------------

# doorbells NAME ARG...: of 100 submissions of 32
doorbells()
{
	local name="$1"

	shift
	mark "$name.begin"
	must load -s 32 -c 32 -d 32 -n $((32 * N)) "$@" /dev/$NVME
	mark "$name.end"
}

# A large request is sent out at once, also if a small one is before it.
doorbells_of_large()
{
	local n=0

	mark doorbells_large.begin
	while [ $n -lt $N ]; do
		# shellcheck disable=SC2046 # lists
		submit $(apart $NVME 4096 0 0) $(apart $NVME 131072 1 31)
		n=$((n + 1))
	done
	mark doorbells_large.end
}

# Polls that ended before the queue was polled, for want of an I/O to poll.
polls_in_vain()
{
	profile_start bio_poll blk_mq_poll
	must load -P -s 32 -c 32 -d 128 -n $((32 * N)) /dev/$NVME
	profile_end
	[ "$(profile_hits bio_poll)" -gt 0 ] || failed "nothing was polled"
	value polls_in_vain \
		$(($(profile_hits bio_poll) - $(profile_hits blk_mq_poll)))
}

# kyber IOSTATS: of its looks at the total latency, how many percent saw the
# worst there is
kyber()
{
	must set_attr /sys/block/bp0/queue/scheduler kyber
	must set_attr /sys/block/bp0/queue/iostats "$1"
	must trace_start kyber:kyber_latency
	must load -t 2 -s 8 -c 8 -d 8 /dev/bp0
	trace_end
	trace_stop
	must set_attr /sys/block/bp0/queue/iostats 1
	must set_attr /sys/block/bp0/queue/scheduler none
	grep -o 'READ total p99 [0-9]*' "$TMP/trace" >"$TMP/seen" ||
		failed "kyber told no latency"
	value "kyber_iostats$1" "$(awk '{ bad += $4 == 8 }
		END { printf "%d\n", 100 * bad / (NR ? NR : 1) }' "$TMP/seen")"
}

counts()
{
	local disk

	for disk in bp0 bp1 bp2 bp3; do
		must null_create $disk
	done
	must prepare $NVME
	must prepare "${NVME%1}2"
	flush_size
	merges merge_two 2
	merges merge_four 4
	sticky sticky_null bp1
	sticky sticky_nvme $NVME
	tags tags_32 32 /dev/bp0
	tags tags_64 64 /dev/bp0
	tags tags_128 128 /dev/bp0
	tags tags_libaio 32 -e libaio /dev/bp0
	tags tags_two_disks 32 /dev/bp0 /dev/bp1
	tags_of_shared_set
	tags tags_namespaces 32 /dev/$NVME
	for disk in 32 64 127 128; do
		tags_of_depth $disk
	done
	tags_of_mixed_kinds
	allocated_by_sleepers
	doorbells doorbells_rand
	doorbells_of_large
	polls_in_vain
	kyber 1
	kyber 0
}

# --- queues of their own for reads -----------------------------------------

# Reads that the driver set up for the writes' queue, which is the first.
misrouted()
{
	must trace_start nvme:nvme_setup_cmd
	must load -m 30 -s 32 -c 32 -d 32 -n $((32 * N)) /dev/$NVME
	trace_end
	trace_stop
	grep -q 'nvme_cmd_read' "$TMP/trace" || failed "no read was traced"
	value misrouted "$(grep -c 'qid=1,.*nvme_cmd_read' "$TMP/trace")"
}

queues()
{
	must prepare $NVME
	doorbells doorbells_mixed -m 30
	tags tags_mixed 32 -m 30 /dev/$NVME
	misrouted
}

# --- instructions ----------------------------------------------------------

# cost NAME ARG...: virtual nanoseconds, that is instructions, of 64000 I/Os
cost()
{
	local name="$1"

	shift
	must load -n 64000 "$@"
	words_value ns "$TMP/load" >>"$TMP/cost.$name"
}

# Where the timer's ticks fall moves a single run by some tenths of a percent.
costs()
{
	local round file

	must load -n 6400 /dev/bp0
	for round in 1 2; do
		note "costs, round $round of 2"
		cost rand32 -s 32 -c 32 /dev/bp0
		cost rand128 -s 128 -c 128 /dev/bp0
		cost libaio -e libaio -s 32 -c 32 /dev/bp0
		cost shared -s 32 -c 32 /dev/bpsh0
		cost depth64 -s 32 -c 32 /dev/bp64
		cost two_disks -s 32 -c 32 /dev/bp0 /dev/bp1
		cost seq -a seq -s 32 -c 32 /dev/bp0
		cost seq_libaio -a seq -e libaio -s 32 -c 32 /dev/bp0
	done
	for file in "$TMP"/cost.*; do
		value "insns_${file##*.}" \
			"$(rounded "$(awk '{ n += $1 } END { print n }' "$file")" 128000)"
	done
}

# clock NAME: readings of the clock per 32 I/Os
clock()
{
	profile_start ktime_get
	must load -n 32000 -s 32 -c 32 /dev/bp0
	profile_end
	value "$1" "$(rounded "$(profile_hits ktime_get)" 1000)"
}

instructions()
{
	local one=submit_queues=1

	must null_create bp0 $one
	must null_create bp1 $one
	must null_create bpsh0 shared_tags=1
	must null_create bpsh1 shared_tags=1
	must null_create bp64 $one hw_queue_depth=64
	costs
	clock clock
	must set_attr /sys/block/bp0/queue/iostats 0
	clock clock_iostats0
}

# --- the loads that have to fear batches -----------------------------------

# spent NAME I/Os ARG...: instructions of the task for so many I/Os, also in each
# of several calls for a name
spent()
{
	local name="$1" ios="$2"

	shift 2
	must load -n "$ios" "$@"
	echo "$(words_value cpu_ns "$TMP/load") $ios" >>"$TMP/spent.$name"
}

spent_values()
{
	local file

	for file in "$TMP"/spent.*; do
		value "insns_${file##*/spent.}" "$(awk '{ n += $1; ios += $2 }
			END { printf "%.1f\n", n / ios }' "$file")"
	done
}

# An I/O costs some 4 us with its interrupt: so many are in flight if each takes
# more than as many times longer, US for each of them. Which interrupts find the
# task running is chance, 3% of the cost of a run.
busy_map()
{
	local depth="$1" flight=$(($1 * $2 / 4)) us size

	for us in 7 8 9; do
		must null_create bpbusy hw_queue_depth="$depth" irqmode=2 \
			submit_queues=1 completion_nsec=$((flight * us * 1000))
		for size in 8 32; do
			spent "busy$depth.$2.$size" 12800 -s $size -c $size \
				-d "$flight" /dev/bpbusy
		done
		null_remove bpbusy
	done
}

# Timers are exact once the kernel trusts the TSC, after 1.4 seconds.
busy_maps()
{
	local depth quarters

	sleep 2
	for depth in 128 256; do
		for quarters in 1 2 3 4; do
			busy_map $depth $quarters
		done
	done
}

# Disks in turn, of which each gets one or two I/Os of a plug.
many_disks()
{
	local n list=""

	for n in $(seq 24); do
		must null_create "bpmany$n" submit_queues=1
		list="$list /dev/bpmany$n"
	done
	# shellcheck disable=SC2086 # a list
	for n in 32 128; do
		spent disks24.$n 12800 -s $n -c $n -d $n $list
	done
}

losers()
{
	local n

	must null_create bp0 submit_queues=1
	must prepare $NVME
	must load -n 6400 /dev/bp0
	for n in 2 4 8; do
		spent rand$n 32000 -s $n -c $n -d $n /dev/bp0
	done
	for n in 8 32; do
		spent passthrough$n 6400 -u -s $n -c $n -d $n "/dev/ng${NVME#nvme}"
	done
	spent buffered 6400 -e libaio -B -a rand-once -s 32 -c 32 -d 32 /dev/bp0
	for n in mq-deadline kyber; do
		must set_attr /sys/block/bp0/queue/scheduler $n
		spent "mixed_${n#*-}" 12800 -m 50 -s 32 -c 32 -d 32 /dev/bp0
	done
	busy_maps
	many_disks
	spent_values
}

# Four disks of one set are in use, of 16 tags: as LUNs of SCSI are.
few_tags()
{
	local n

	for n in 0 1 2 3; do
		must null_create bpsh$n shared_tags=1
		must load -n 32 -s 1 -c 1 -d 1 /dev/bpsh$n
	done
	for n in 2 4 32; do
		spent share4.$n 6400 -s $n -c $n -d $n /dev/bpsh0
	done
	spent_values
}

if [ -e /sys/kernel/debug/block ]; then
	# Any disk will do to see which kernel this is.
	must null_create bpwho size=1
	if [ -e "$(knob bpwho)" ]; then
		echo "kernel patched" >&3
	else
		echo "kernel base" >&3
	fi
	null_remove bpwho
fi
case $1 in
counts | queues | instructions | losers | few_tags) "$1" ;;
*)
	echo "usage: audit_guest.sh counts|queues|instructions|losers|few_tags" >&2
	exit 2
	;;
esac
[ "$CASE_FAILED" -eq 0 ]
