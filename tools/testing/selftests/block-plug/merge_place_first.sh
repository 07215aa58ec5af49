#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a bio that no request in the plug ends or begins at is not
# checked for anything else.
#
# Reproducer: all other checks came before the place, which refuses most bios.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

N=100
IOS=$((BATCH * N))

# checks ACCESS LEAST MOST: how often a bio's further properties were compared
checks()
{
	profile_start blk_rq_merge_ok
	load -a "$1" -s $BATCH -c $BATCH -n $IOS /dev/bp0
	profile_end
	expect_count "calls of blk_rq_merge_ok() for $IOS I/Os" \
		"$(profile_hits blk_rq_merge_ok)" "$2" "$3"
}

require root profiler plug_load null_blk
plan 2
null_create bp0 || ktap_exit_fail_msg "cannot create bp0"
# By chance a random one may lie beside the last.
check "random I/Os" checks rand 0 $N
check "sequential I/Os" checks seq $((IOS - N - 3)) $((IOS - N))
finish
