#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The model SSD's own test. Argument: the directory of the .ko file
#
# Runs as root, in a guest. With EXACT_TIME=1 a ns is an instruction, and times
# are checked, too.

MODULES=${1:-${MODULES:-/modules}}
DEVICE=/sys/module/ssd_model/parameters/device
STATS=/sys/kernel/debug/ssd_model/t/stats

# shellcheck source-path=SCRIPTDIR source=../qemu/tap.sh
. "${0%/*}/tap.sh"

# up [WORD=VALUE...]: the device t, without an elevator
up()
{
	echo "t size_mb=32 $*" >"$DEVICE" || return
	for queue in /sys/block/tn*/queue; do
		echo none >"$queue/scheduler"
	done
	echo 0 >"$STATS"
}

down()
{
	echo -t >"$DEVICE"
}

stat()
{
	sed -n "s/^$1 //p" "$STATS"
}

load()
{
	plug_load "$@" >/tmp/load || { cat /tmp/load; return 1; }
}

# What the last load printed
seen()
{
	tr ' ' '\n' </tmp/load | sed -n "s/^$1=//p"
}

# One I/O after the other: one NUMBER [OPTION...]
one()
{
	number=$1
	shift
	load -s 1 -c 1 -d 1 -n "$number" "$@" /dev/tn1
}

mean_latency()
{
	echo $(($(stat latency_sum_ns) / $(stat commands)))
}

# with TEST WORD=VALUE... -- [ARGUMENT...]: runs TEST on such a device
with()
{
	test=$1
	words=
	shift
	while [ "$1" != -- ]; do
		words="$words $1"
		shift
	done
	shift
	up "$words" || return
	"$test" "$@"
	rc=$?
	down || rc=1
	return "$rc"
}

# near WHAT SEEN IDEAL PER_MILLE
near()
{
	[ $(($2 * 1000)) -ge $(($3 * (1000 - $4))) ] &&
		[ $(($2 * 1000)) -le $(($3 * (1000 + $4))) ] && return
	echo "# $1: expected $3, saw $2"
	return 1
}

# data [OPTION...]: what was written is read back
data()
{
	load -r write -a rand-once "$@" /dev/tn* &&
		load -r verify -a rand-once "$@" /dev/tn*
}

doorbells()
{
	load -s 32 -c 32 -d 128 -a rand-once -n 3200 /dev/tn1 &&
		near "commands" "$(stat commands)" 3200 0 &&
		near "doorbells" "$(stat doorbells)" 100 20
}

# Lets go of the CPU for the time of 1000 doorbells
doorbell_time()
{
	one 1000 -W 100 && before=$(seen cpu_ns) && down &&
		up doorbell_ns=20000 && one 1000 -W 100 &&
		near "CPU time of doorbells" $(($(seen cpu_ns) - before)) \
			$((900 * 20000)) 10
}

# latency MEAN PER_MILLE [OPTION...]
latency()
{
	mean=$1
	slack=$2
	shift 2
	one 200 "$@" && near "mean latency" "$(mean_latency)" "$mean" "$slack"
}

# seen_latency MEAN [OPTION...]: for a program, that and little more
seen_latency()
{
	mean=$1
	shift
	one 200 "$@" &&
		near "ns per I/O" $(($(seen ns) / 200)) "$mean" 20
}

units()
{
	load -s 8 -c 8 -d 64 -n 8000 /dev/tn1 &&
		near "IOPS" "$(seen iops)" "$1" 10 &&
		near "commands" "$(stat commands)" 8000 2
}

bandwidth()
{
	load -s 8 -c 8 -d 32 -b 64k -n 2000 /dev/tn1 &&
		near "MB/s" $(($(seen bytes) * 1000 / $(seen ns))) "$1" 10
}

# Requests that the queue cannot take as a whole
max_kb()
{
	load -b 256k -s 1 -c 1 -d 1 -n 16 /dev/tn1 &&
		near "commands" "$(stat commands)" 64 0 &&
		near "bytes" "$(stat bytes)" $((16 * 262144)) 0
}

# random_latency SEED: the sum of 200
random_latency()
{
	up seed="$1" read_latency=uniform:0-100000 && one 200 >&2 &&
		stat latency_sum_ns
	down
}

seeds()
{
	first=$(random_latency 1)
	[ "${first:-0}" -gt 0 ] && [ "$(random_latency 1)" = "$first" ] &&
		[ "$(random_latency 2)" != "$first" ]
}

# 10 times 10 writes and an fsync
write_and_sync()
{
	[ "$(cat /sys/block/tn1/queue/write_cache)" = "$1" ] || return
	for n in 0 1 2 3 4 5 6 7 8 9; do
		dd if=/dev/zero of=/dev/tn1 bs=4k count=10 "seek=${n}0" \
			oflag=direct conv=fsync 2>/dev/null || return
	done
	near "flushes" "$(stat flushes)" "$2" 0 &&
		near "writes" "$(stat writes)" 100 0 &&
		near "bytes written" "$(stat bytes)" 409600 0
}

# With more requests at the elevator than tags, some batches have no last one.
commits()
{
	echo mq-deadline 2>/dev/null >/sys/block/tn1/queue/scheduler || {
		echo "# no mq-deadline"
		return 0
	}
	data -s 32 -c 32 -d 64 && [ "$(stat commit_rqs)" -gt 0 ]
}

slow_media()
{
	echo 100 >/sys/block/tn1/queue/io_timeout
	one 4 "$@" && near "errors" "$(seen errors)" 0 0
}

# A line that makes no device, and leaves none behind
refused()
{
	if (echo "$1" >"$DEVICE") 2>/dev/null; then
		echo "# taken: '$1'"
		return 1
	fi
	[ ! -e /sys/kernel/debug/ssd_model/u ]
}

refusals()
{
	rc=0
	for line in "u size_mb=0" "u size_mb=-1" "u size_mb=+1" "u size_mb=x" \
		    "u namespaces=17" "u queues=0" "u depth=0" "u depth=10241" \
		    "u max_kb=3" "u backing=2" "u doorbell_ns=1000001" \
		    "u seed=18446744073709551616" "u units=65537" \
		    "u bandwidth_mbs=1000001" "u time_scale=10001" \
		    "u read_latency=fixed:" "u service=table:0=1,50=2" \
		    "u size_mb" "u power=1" "u/u" "-u" "" \
		    "a_name_that_is_too_long_for_disks"; do
		refused "$line" || rc=1
	done
	up || return
	refused "t size_mb=32" || rc=1
	down && [ ! -e /dev/tn1 ] && return "$rc"
}

# What all are at first, as far as it can be seen
presets()
{
	echo t >"$DEVICE" || return
	queue=/sys/block/tn1/queue
	echo none >"$queue/scheduler"
	found="$(cat /sys/block/tn1/size "$queue/nr_requests" \
		"$queue/max_hw_sectors_kb" "$queue/write_cache" | tr '\n' ' ')"
	set -- /sys/block/tn*
	found="$found$# $(set -- /sys/block/tn1/mq/*; echo $#)"
	down
	[ "$found" = "2097152 1023 512 write through 1 1" ] && return
	echo "# $found"
	return 1
}

# An open file must not find the device when it is gone.
open_file()
{
	up || return
	exec 4<"$STATS"
	down && ! cat <&4 >/dev/null 2>&1 && [ ! -e /dev/tn1 ]
	rc=$?
	exec 4<&-
	return "$rc"
}

# removal WORD=VALUE [OPTION...]
removal()
{
	up read_latency=uniform:1000-3000000 "$1" || return
	shift
	plug_load -E -t 20 "$@" /dev/tn1 >/dev/null 2>&1 &
	sleep 1
	[ "$(stat commands)" -gt 0 ]
	rc=$?
	down || rc=1
	wait
	[ ! -e /dev/tn1 ] || rc=1
	return "$rc"
}

# No interrupts on a polled queue
polls()
{
	one 100 -P && near "interrupts" "$(stat interrupts)" 0 0 &&
		near "polls that hit" "$(stat poll_hits)" 100 0 &&
		[ "$(stat polls)" -ge 100 ]
}

# What nobody polls for is completed all the same.
nobody_polls()
{
	echo 100 >/sys/block/tn1/queue/io_timeout
	plug_load -P -s 4 -c 4 -d 4 -n 4 /dev/tn1 >/dev/null &
	sleep 0.3
	kill -STOP $!
	near "in flight at first" "$(stat inflight)" 4 0
	rc=$?
	sleep 3
	near "in flight at last" "$(stat inflight)" 0 0 || rc=1
	kill -CONT $!
	wait $! || rc=1
	return "$rc"
}

# What is in flight stays so.
reset_in_flight()
{
	plug_load -s 4 -c 4 -d 4 -n 4 /dev/tn1 >/dev/null &
	sleep 0.3
	echo 0 >"$STATS"
	near "in flight" "$(stat inflight)" 4 0
	rc=$?
	wait $! || rc=1
	near "in flight at last" "$(stat inflight)" 0 0 && return "$rc"
}

reset()
{
	load -n 320 /dev/tn1
	[ "$(stat commands)" -gt 0 ] && echo x >"$STATS" &&
		[ "$(stat commands)" -eq 0 ] && [ "$(stat inflight)" -eq 0 ]
}

insmod "$MODULES/ssd_model.ko" || exit 1
check "data, interrupts" with data backing=1 --
check "data, polled" with data backing=1 poll_queues=1 -- -P
check "data, two namespaces" with data backing=1 namespaces=2 \
	read_latency=uniform:0-9000 --
check "data, several queues" with data backing=1 queues=4 \
	write_latency=uniform:0-9000 --
check "data, few tags, commits" with commits depth=4 backing=1 --
check "one doorbell per 32 commands" with doorbells --
check "fixed latency" with latency read_latency=fixed:50000 -- 50000 0
check "uniform latency" with latency read_latency=uniform:40000-60000 -- \
	50000 50
check "write latency" with latency write_latency=fixed:70000 -- \
	70000 0 -r write
check "scaled latency" with latency read_latency=fixed:50000 time_scale=150 \
	-- 75000 0
check "latency, polled" with latency poll_queues=1 read_latency=fixed:50000 \
	-- 50000 0 -P
check "random numbers repeat" seeds
check "large requests are split" with max_kb max_kb=64 --
check "flushes" with write_and_sync write_cache=1 -- "write back" 10
check "no flushes without a cache" with write_and_sync -- "write through" 0
check "presets" presets
check "bad values are refused" refusals
check "timeouts of slow media" with slow_media read_latency=fixed:500000000 --
check "timeouts of slow media, polled" with slow_media poll_queues=1 \
	read_latency=fixed:500000000 -- -P
check "removal under load" removal queues=1
check "removal under load, polled" removal poll_queues=1 -P
check "removal with a file open" open_file
check "polls" with polls poll_queues=1 read_latency=fixed:50000 --
check "nobody polls" with nobody_polls poll_queues=1 \
	read_latency=fixed:1000000000 --
check "statistics are reset" with reset --
check "statistics are reset, commands in flight" with reset_in_flight \
	read_latency=fixed:1000000000 --
if [ "${EXACT_TIME:-0}" -eq 1 ]; then
	check "latency as a program sees it" with seen_latency \
		read_latency=fixed:1000000 -- 1000000
	check "latency as a polling program sees it" with seen_latency \
		poll_queues=1 read_latency=fixed:1000000 -- 1000000 -P
	check "units limit the rate" with units units=4 service=fixed:100000 \
		-- 40000
	check "bandwidth" with bandwidth bandwidth_mbs=500 -- 500
	check "time of a doorbell" with doorbell_time --
fi
echo "1..$N"
exit $FAILED
