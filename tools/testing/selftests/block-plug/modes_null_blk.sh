#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: on null_blk, each mode looks for merges, merges and holds as
# documented, and every mode takes its tags in batches.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

DISK=bp0

says()
{
	set_mode $DISK "$1" && expect_effect $DISK "$1" "$1 (as set)" "$2"
}

# counts MODE ACCESS BS REQUESTS GROUPS LOOKUPS, per 32 I/Os of a batch
#
# "adaptive" begins with groups of 32, and knows soon whether bios merge.  Where
# they do not, those of one plug in 32 look.
counts()
{
	set_fresh $DISK "$1" || return 1
	[ "$1" != adaptive ] || sees $DISK -a "$2" -b "$3" || return
	measure $DISK -a "$2" -b "$3" -s $BATCH -c $BATCH -d 128 \
		-n $((BATCH * N)) /dev/$DISK || return
	expect_io $((BATCH * N)) $(($4 * N)) $(($5 * N)) $(($6 * N)) \
		$(($6 == 1 ? N + BATCH : 0))
	if [ "$4" -eq $BATCH ]; then
		expect_tags $DISK $((BATCH * N))
	fi
}

# Fewer than 32: nothing but the end of the submission ends the hold.
short_batches()
{
	set_fresh $DISK "$1" || return 1
	measure $DISK -s 5 -c 5 -d 20 -n 500 /dev/$DISK || return
	expect_batches "calls of queue_rqs() for 100 batches of 5" \
		"$HELD_GROUPS" "$2"
}

# Two plugs' worth per submission: held until 32, sent, held until the end.
long_batches()
{
	set_fresh $DISK "$1" || return 1
	measure $DISK -s 64 -c 64 -d 128 -n 2560 /dev/$DISK || return
	expect_batches "calls of queue_rqs() for 40 batches of 64" \
		"$HELD_GROUPS" "$2"
}

# The event says what the policy, not the plug, sent out.
groups_are_traced()
{
	set_fresh $DISK "$1" || return 1
	trace_start blk_plug_policy:blk_plug_policy_group
	load -s $BATCH -c $BATCH -d 128 -n 320 /dev/$DISK
	trace_end
	expect_batches "groups of $2 in the trace" \
		"$(grep -c "nr=$2\$" "$TMP/trace")" "$3"
}

N=64
require root knob debugfs profiler trace plug_load taskset null_blk
plan 36
null_create $DISK || ktap_exit_fail_msg "cannot create $DISK"

check "always says so in debugfs" says always "all (as set)"
check "never says so in debugfs" says never "none (as set)"
check "seq-small says so in debugfs" says seq-small "small sequential (as set)"
check "adaptive says so in debugfs" says adaptive "while found (as set)"

#     description                                  mode  access bs   req grp look
check "always holds random 4K" counts              always    rand 4k   32  1 32
check "never issues random 4K" counts              never     rand 4k   32  0  0
check "seq-small groups random 4K by 8" counts     seq-small rand 4k   32  4  4
check "adaptive begins with random 4K held" counts adaptive  rand 4k   32  1  1
check "always merges sequential 4K" counts         always    seq  4k    1  1 32
check "never does not merge sequential 4K" counts  never     seq  4k   32  0  0
check "seq-small merges sequential 4K" counts      seq-small seq  4k    1  1 32
check "adaptive merges sequential 4K" counts       adaptive  seq  4k    1  1 32
N=20
check "always holds random 32K" counts             always    rand 32k  32  1 32
check "never issues random 32K" counts             never     rand 32k  32  0  0
check "seq-small groups random 32K by 4" counts    seq-small rand 32k  32  8  8
check "seq-small groups random 16K by 8" counts    seq-small rand 16k  32  4  4
check "seq-small groups random 20K by 4" counts    seq-small rand 20k  32  8  8
check "seq-small groups random 64K by 2" counts    seq-small rand 64k  32 16  0
check "always sends random 128K singly" counts     always    rand 128k 32 32 32
check "never issues random 128K" counts            never     rand 128k 32  0  0
check "seq-small sends random 128K singly" counts  seq-small rand 128k 32 32  0
check "seq-small does not merge sequential 64K" \
	counts					   seq-small seq  64k  32 16  0
check "adaptive begins with random 32K held" counts adaptive rand 32k  32  1  1
check "adaptive begins with random 64K held" counts adaptive rand 64k  32  1  1
check "always merges sequential 64K" counts        always    seq  64k   4  4 32
check "adaptive merges sequential 64K" counts      adaptive  seq  64k   4  4 32

check "always holds a batch of 5" short_batches always 100
check "never issues a batch of 5" short_batches never 0
check "seq-small holds a batch of 5" short_batches seq-small 100
check "adaptive begins with a batch of 5 held" short_batches adaptive 100
check "always holds 64 as 32 and 32" long_batches always 80
check "never issues 64" long_batches never 0
check "seq-small groups 64 by 8" long_batches seq-small 320
check "adaptive begins with 64 as 32 and 32" long_batches adaptive 80
check "always has no policy groups" groups_are_traced always 8 0
check "seq-small's groups are traced" groups_are_traced seq-small 8 40
finish
