#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: kyber sees the same total latency, whether the disk keeps I/O
# statistics or not.
#
# Reproducer: the time from which it is counted was taken for the statistics
# only. Without them, it was that of some earlier I/O, or of the boot.

. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

# kyber's last bucket takes all from 1.75 times the target on: 8/4.
WORST=8

# It looks at them ten times a second; what is wrong for one I/O in a hundred is
# the worst in each look. A host that is busy elsewhere spoils looks, but not
# often enough to spoil three attempts.
total_latency()
{
	local attempt looks worst

	set_attr /sys/block/bp0/queue/iostats "$1" || return 1
	for attempt in 1 2 3; do
		trace_start kyber:kyber_latency
		load -t 3 -s 8 -c 8 -d 8 /dev/bp0
		trace_end
		looks=$(grep -c 'READ total p99 ' "$TMP/trace")
		worst=$(grep -c "READ total p99 $WORST/" "$TMP/trace")
		note "attempt $attempt: $worst of $looks looks saw the worst"
		[ "$looks" -lt 5 ] || [ "$worst" -gt $((looks / 8)) ] || return 0
	done
	expect_count "looks in 3 s" "$looks" 5 31
	expect_count "looks, of $looks, that saw the worst latency there is" \
		"$worst" 0 $((looks / 8))
}

need_kyber()
{
	need_scheduler kyber CONFIG_MQ_IOSCHED_KYBER
}

require root trace plug_load null_blk kyber
must null_create bp0
must set_attr /sys/block/bp0/queue/scheduler kyber
plan 2
check "with I/O statistics" total_latency 1
check "without I/O statistics" total_latency 0
finish
