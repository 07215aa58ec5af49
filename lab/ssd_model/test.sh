#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The model SSD's own test. Argument: the directory of the .ko file
#
# Runs as root, in a guest. With EXACT_TIME=1 a ns is an instruction, and times
# are checked, too.

# shellcheck disable=SC2317 # functions are called by the names given to check

MODULES=${1:-${MODULES:-/modules}}
CONFIG=/sys/kernel/config/ssd_model
STATS=/sys/kernel/debug/ssd_model/t/stats

# shellcheck source-path=SCRIPTDIR source=../qemu/tap.sh
. "${0%/*}/tap.sh"

# up [ATTRIBUTE=VALUE...]: the device t, without an elevator
up()
{
	mkdir "$CONFIG/t" || return
	for pair in size_mb=32 "$@" power=1; do
		echo "${pair#*=}" >"$CONFIG/t/${pair%%=*}" || return
	done
	for queue in /sys/block/tn*/queue; do
		echo none >"$queue/scheduler"
	done
	echo 0 >"$STATS"
}

down()
{
	rmdir "$CONFIG/t"
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

# with TEST ATTRIBUTE=VALUE... -- [ARGUMENT...]: runs TEST on such a device
with()
{
	test=$1
	attributes=
	shift
	while [ "$1" != -- ]; do
		attributes="$attributes $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # none has blanks
	up $attributes || { down; return 1; }
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

# data OPTION ATTRIBUTE...: what was written is read back
data()
{
	option=$1
	shift
	up backing=1 "$@" || { down; return 1; }
	# shellcheck disable=SC2086 # an option, or none
	load -r write -a rand-once $option /dev/tn* &&
		load -r verify -a rand-once $option /dev/tn*
	rc=$?
	down
	return "$rc"
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

flushes()
{
	[ "$(cat /sys/block/tn1/queue/write_cache)" = "write back" ] &&
		[ "$(cat /sys/block/tn1/queue/fua)" -eq 1 ] &&
		one 100 -r write -f 10 &&
		near "fsyncs" "$(seen fsyncs)" 10 100 &&
		near "flushes" "$(stat flushes)" "$(seen fsyncs)" 0 &&
		near "writes" "$(stat writes)" 100 0 &&
		near "bytes" "$(stat bytes)" 409600 0
}

no_flushes()
{
	[ "$(cat /sys/block/tn1/queue/write_cache)" = "write through" ] &&
		one 100 -r write -f 10 && near "flushes" "$(stat flushes)" 0 0
}

# With more requests at the elevator than tags, some batches have no last one.
commits()
{
	echo mq-deadline 2>/dev/null >/sys/block/tn1/queue/scheduler || {
		echo "# no mq-deadline"
		return 0
	}
	load -r write -a rand-once -s 32 -c 32 -d 64 /dev/tn1 &&
		load -r verify -a rand-once -s 32 -c 32 -d 64 /dev/tn1 &&
		[ "$(stat commit_rqs)" -gt 0 ]
}

slow_media()
{
	echo 100 >/sys/block/tn1/queue/io_timeout
	one 4 "$@" && near "errors" "$(seen errors)" 0 0
}

# refused ATTRIBUTE VALUE
refused()
{
	before=$(cat "$CONFIG/t/$1")
	if (echo "$2" >"$CONFIG/t/$1") 2>/dev/null; then
		echo "# $1 took '$2'"
		return 1
	fi
	[ "$(cat "$CONFIG/t/$1")" = "$before" ]
}

refusals()
{
	mkdir "$CONFIG/t" || return
	rc=0
	for pair in size_mb=0 size_mb=-1 size_mb=+1 size_mb=x namespaces=17 \
		    queues=0 depth=0 depth=100000 max_kb=3 backing=2 power=2 \
		    depth=10241 doorbell_ns=1000001 seed=18446744073709551616 \
		    units=65537 bandwidth_mbs=1000001 time_scale=10001 \
		    read_latency=fixed: read_latency=uniform:2-1 \
		    read_latency="fixed:5 " service=table:0=1,50=2; do
		refused "${pair%%=*}" "${pair#*=}" || rc=1
	done
	echo 1 >"$CONFIG/t/power"
	refused size_mb 5 || rc=1
	refused service fixed:5 || rc=1
	down
	return "$rc"
}

# What all are at first
presets()
{
	mkdir "$CONFIG/t" || return
	found=$(cd "$CONFIG/t" && grep . -- * | sort | tr '\n' ' ')
	down
	[ "$found" = "backing:0 bandwidth_mbs:0 depth:1023 doorbell_ns:0 \
max_kb:512 namespaces:1 poll_queues:0 power:0 queues:1 \
read_latency:fixed:0 seed:1 service:fixed:0 size_mb:1024 time_scale:100 \
units:0 write_cache:0 write_latency:fixed:0 " ] && return
	echo "# $found"
	return 1
}

# Open files must not keep the device, nor find it when it is gone.
open_files()
{
	up read_latency=uniform:1000-9000 || return
	exec 4<"$STATS" 5<"$CONFIG/t/size_mb" 6>"$CONFIG/t/power"
	echo 0 >"$CONFIG/t/power"
	! cat <&4 >/dev/null 2>&1 && echo 1 >"$CONFIG/t/power" &&
		! cat <&4 >/dev/null 2>&1 && [ "$(cat <&5)" = 32 ] &&
		one 10
	rc=$?
	exec 4<"$STATS" 5<"$CONFIG/t/seed"
	down || rc=1
	! cat <&4 >/dev/null 2>&1 && ! cat <&5 >/dev/null 2>&1 &&
		! (echo 1 >&6) 2>/dev/null && [ ! -e /dev/tn1 ] || rc=1
	exec 4<&- 5<&- 6>&-
	return "$rc"
}

# removal ATTRIBUTE=VALUE [OPTION...]
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
	up || return
	load -n 320 /dev/tn1
	[ "$(stat commands)" -gt 0 ] && echo x >"$STATS" &&
		[ "$(stat commands)" -eq 0 ] && [ "$(stat inflight)" -eq 0 ]
	rc=$?
	down
	return "$rc"
}

insmod "$MODULES/ssd_model.ko" || exit 1
check "data, interrupts" data ""
check "data, polled" data -P poll_queues=1
check "data, two namespaces" data "" namespaces=2 read_latency=uniform:0-9000
check "data, several queues" data "" queues=4 write_latency=uniform:0-9000
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
check "flushes" with flushes write_cache=1 --
check "no flushes without a cache" with no_flushes --
check "presets" presets
check "bad values are refused" refusals
check "timeouts of slow media" with slow_media read_latency=fixed:500000000 --
check "timeouts of slow media, polled" with slow_media poll_queues=1 \
	read_latency=fixed:500000000 -- -P
check "removal under load" removal queues=1
check "removal under load, polled" removal poll_queues=1 -P
check "removal with files open" open_files
check "polls" with polls poll_queues=1 read_latency=fixed:50000 --
check "nobody polls" with nobody_polls poll_queues=1 \
	read_latency=fixed:1000000000 --
check "statistics are reset" reset
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
