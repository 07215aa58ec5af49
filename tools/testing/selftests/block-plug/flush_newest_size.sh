#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a plug is flushed when its newest request has reached 128 KiB,
# wherever its oldest one stands.
#
# Reproducer: since the plug's list is first in, first out, the size test looked
# at the oldest request, and large requests behind a small one were held.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/trace_lib.sh"

# A gap between the I/Os, so that none merges.
STRIDE=$((1024 * 1024))

# ios SIZE COUNT: adds so many to LIST
ios()
{
	local n="$2"

	while [ "$n" -gt 0 ]; do
		LIST="$LIST /dev/bp0:$((NEXT * STRIDE)):$(($1 * 1024))"
		NEXT=$((NEXT + 1))
		n=$((n - 1))
	done
}

# groups EXPECTED SIZE COUNT [SIZE COUNT...]: sizes in KiB
groups()
{
	local expected="$1" requests

	shift
	LIST=
	NEXT=0
	while [ $# -gt 0 ]; do
		ios "$1" "$2"
		shift 2
	done
	requests=$(requests_of bp0)
	profile_start null_queue_rqs
	# shellcheck disable=SC2086 # a list
	submit_list $LIST || failed "submit_list: exit $?"
	profile_end
	expect_count "requests for $NEXT I/Os" \
		$(($(requests_of bp0) - requests)) "$NEXT" "$NEXT"
	expect_count "calls of queue_rqs() for $NEXT requests" \
		"$(profile_hits null_queue_rqs)" "$expected" "$expected"
}

require root profiler null_blk
command -v submit_list >/dev/null || missing "no program submit_list"
require
plan 6
null_create bp0 || ktap_exit_fail_msg "cannot create bp0"
#                                          groups  KiB count...
check "small ones only: held"		    groups  1  4 32
check "large ones only: one by one"	    groups 32  128 32
check "a small one, then large ones"	    groups 31  4 1 128 31
check "a large one, then small ones"	    groups  2  128 1 4 31
check "small ones, then large ones"	    groups 16  4 16 128 16
check "one large one among small ones"	    groups  2  4 16 128 1 4 15
finish
