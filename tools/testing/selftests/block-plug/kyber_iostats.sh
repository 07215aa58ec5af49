#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: kyber sees the same total latency, whether the disk keeps I/O
# statistics or not.
#
# Reproducer: the time from which it is counted was taken for the statistics
# only. Without them, it was that of some earlier I/O, or of the boot.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

# kyber's last bucket takes all from 1.75 times the target on: 8/4.
WORST=8

# It looks at them ten times a second. What is wrong for one I/O in a hundred is
# the worst in each look; a host that is busy elsewhere spoils a few looks.
total_latency()
{
	local looks

	set_attr /sys/block/bp0/queue/iostats "$1" || return 1
	trace_start kyber:kyber_latency
	load -t 3 -s 8 -c 8 -d 8 /dev/bp0
	trace_end
	grep -o 'READ total p99 [0-9]*' "$TMP/trace" >"$TMP/seen" || {
		failed "kyber told no total latency"
		return
	}
	note "p99 buckets: $(sort "$TMP/seen" | uniq -c | tr -s ' \n' ' ')"
	looks=$(wc -l <"$TMP/seen")
	expect_count "looks in 3 s" "$looks" 8 31
	expect_count "looks, of $looks, that saw the worst latency there is" \
		"$(grep -c " $WORST\$" "$TMP/seen")" 0 $((looks / 8))
}

make_disk()
{
	null_create bp0 || ktap_exit_fail_msg "cannot create bp0"
	use_kyber bp0
}

require root trace plug_load null_blk
make_disk
require
plan 2
check "with I/O statistics" total_latency 1
check "without I/O statistics" total_latency 0
finish
