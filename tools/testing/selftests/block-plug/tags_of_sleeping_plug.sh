#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a plug whose task sleeps does not allocate requests that it will
# not use.
#
# Reproducer: whoever sleeps gives back what the plug has allocated ahead, and
# the next I/O allocated 31 requests anew: buffered reads by io_submit(), each of
# which sleeps until its page is there, used one of 15.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

N=50

# sleeps SIZE: null_blk gives each request's tag back alone, whether it was used
# or not.
sleeps()
{
	local ios=$(($1 * N)) requests

	requests=$(requests_of bp0)
	profile_start blk_mq_put_tag
	load -e libaio -B -a rand-once -s "$1" -c "$1" -d "$1" -n $ios \
		/dev/bp0 || return
	profile_end
	requests=$(($(requests_of bp0) - requests))
	expect_count "reads of $ios that needed a request" $requests \
		$((ios / 2)) $ios
	expect_count "requests allocated, of which $requests were used" \
		"$(profile_hits blk_mq_put_tag)" $requests $((requests * 11 / 10))
}

require root profiler plug_load null_blk
# A timer completes, or "never" would find each page at once, and not sleep; late
# enough for a CPU that is slow, or is taken away for a while.
null_create bp0 irqmode=2 completion_nsec=500000 ||
	ktap_exit_fail_msg "cannot create the disk"
policy=/sys/block/bp0/queue/plug_policy
# "never" leaves the plug empty: that it sleeps must count all the same
modes=always
[ ! -e $policy ] || modes="always never"
plan $((3 * $(echo "$modes" | wc -w)))
for mode in $modes; do
	[ ! -e $policy ] || set_attr $policy "$mode"
	for size in 3 32 128; do
		echo 1 >/proc/sys/vm/drop_caches
		check "$mode: buffered reads, $size per io_submit()" sleeps $size
	done
done
finish
