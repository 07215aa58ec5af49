#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The model SSD's own test: test.sh [DIRECTORY OF THE .ko FILES]
#
# Runs as root, in a guest. With EXACT_TIME=1 a ns is an instruction, and times
# are checked, too.

MODULES=${1:-${MODULES:-/modules}}
CONFIG=/sys/kernel/config/ssd_model
STATS=/sys/kernel/debug/ssd_model/t/stats
N=0
FAILED=0

verdict()
{
	N=$((N + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $N $2"
	else
		echo "not ok $N $2"
		FAILED=1
	fi
}

# check NAME COMMAND...
check()
{
	name=$1
	shift
	"$@"
	verdict $? "$name"
}

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
	return $rc
}

doorbells()
{
	up || return
	load -s 32 -c 32 -d 128 -a rand-once -n 3200 /dev/tn1 &&
		near "commands" "$(stat commands)" 3200 0 &&
		near "doorbells" "$(stat doorbells)" 100 20
	rc=$?
	down
	return $rc
}

latency()
{
	up read_latency="$1" || return
	load -s 1 -c 1 -d 1 -n 200 /dev/tn1 &&
		near "mean latency" \
			$(($(stat latency_sum_ns) / $(stat commands))) \
			"$2" "$3"
	rc=$?
	down
	return $rc
}

# What a program sees of 1 ms: that, and little more
seen_latency()
{
	up read_latency=fixed:1000000 || return
	load -s 1 -c 1 -d 1 -n 200 /dev/tn1 &&
		near "ns per I/O" $(($(sed 's/.* ns=\([0-9]*\).*/\1/' \
			/tmp/load) / 200)) 1000000 20
	rc=$?
	down
	return $rc
}

# 4 units of 100 us: 40000 I/Os per s
units()
{
	up units=4 service=fixed:100000 || return
	load -s 8 -c 8 -d 64 -n 8000 /dev/tn1 &&
		near "IOPS" "$(sed 's/.*iops=\([0-9]*\).*/\1/' /tmp/load)" \
			40000 10
	rc=$?
	down
	return $rc
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
		    time_scale=10001 irq_count=0 read_latency=fixed: \
		    read_latency=uniform:2-1 service=table:0=1,50=2; do
		refused "${pair%%=*}" "${pair#*=}" || rc=1
	done
	echo 1 >"$CONFIG/t/power"
	refused size_mb 5 || rc=1
	refused service fixed:5 || rc=1
	down
	return $rc
}

removal()
{
	up read_latency=uniform:1000-3000000 || return
	plug_load -E -t 20 /dev/tn1 >/dev/null 2>&1 &
	sleep 1
	down
	rc=$?
	wait
	[ ! -e /dev/tn1 ] || rc=1
	return $rc
}

reset()
{
	up || return
	load -n 320 /dev/tn1
	[ "$(stat commands)" -gt 0 ] && echo x >"$STATS" &&
		[ "$(stat commands)" -eq 0 ] && [ "$(stat inflight)" -eq 0 ]
	rc=$?
	down
	return $rc
}

kunit()
{
	results=/sys/kernel/debug/kunit/ssd_model/results
	insmod "$MODULES/kunit.ko" 2>/dev/null
	insmod "$MODULES/ssd_model.ko" || exit 1
	insmod "$MODULES/ssd_model_kunit.ko"
	grep -q '^    1\.\.' $results
	verdict $? "kunit ran"
	grep '^    ok\|^    not ok' $results >/tmp/kunit
	while read -r word rest; do
		[ "$word" = ok ]
		verdict $? "kunit ${rest##* }"
	done </tmp/kunit
}

kunit
check "data, interrupts" data ""
check "data, polled" data -P poll_queues=1
check "data, two namespaces" data "" namespaces=2 read_latency=uniform:0-9000
check "data, coalesced interrupts" data "" read_latency=uniform:1000-9000 \
	irq_count=8 irq_time_ns=50000
check "data, several queues" data "" queues=4 write_latency=uniform:0-9000
check "one doorbell per 32 commands" doorbells
check "fixed latency" latency fixed:50000 50000 0
check "uniform latency" latency uniform:40000-60000 50000 50
check "bad values are refused" refusals
check "removal under load" removal
check "statistics are reset" reset
if [ "${EXACT_TIME:-0}" -eq 1 ]; then
	check "latency as a program sees it" seen_latency
	check "units limit the rate" units
fi
echo "1..$N"
exit $FAILED
