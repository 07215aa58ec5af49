#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: on null_blk, each mode looks for merges, merges and holds as
# documented, and every mode takes its tags in batches; with nomerges=2 none
# merges, or looks for a merge.

. "${0%/*}/lib.sh"
. "${0%/*}/groups_lib.sh"

DISK=bp0

# few MODE: "adaptive" tries no other size within 1000 requests
few()
{
	[ "$1" != adaptive ] || [ "$N" -lt 30 ] || N=30
}

# counts MODE ACCESS BS REQUESTS GROUPS LOOKUPS, per 32 I/Os of a batch
counts()
{
	local N=$N

	few "$1"
	set_fresh $DISK "$1" || return 1
	measure $DISK -a "$2" -b "$3" -s $BATCH -c $BATCH -d 128 \
		-n $((BATCH * N)) /dev/$DISK || return
	expect_io $((BATCH * N)) $(($4 * N)) $(($5 * N)) $(($6 * N))
	if [ "$4" -eq $BATCH ]; then
		expect_tags $DISK $((BATCH * N))
	fi
}

# nomerges VALUE MODE REQUESTS GROUPS LOOKUPS, of sequential 4K
nomerges()
{
	set_attr /sys/block/$DISK/queue/nomerges "$1" || return 1
	counts "$2" seq 4k "$3" "$4" "$5"
	set_attr /sys/block/$DISK/queue/nomerges 0
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
	measure $DISK -s 64 -c 64 -d 128 -n 640 /dev/$DISK || return
	expect_batches "calls of queue_rqs() for 10 batches of 64" \
		"$HELD_GROUPS" "$2"
}

N=64
require root knob debugfs profiler plug_load null_blk
plan 38
null_create $DISK || ktap_exit_fail_msg "cannot create $DISK"

#     description                                  mode  access bs   req grp look
check "always holds random 4K" counts              always    rand 4k   32  1  0
check "never issues random 4K" counts              never     rand 4k   32  0  0
check "seq-small groups random 4K by 8" counts     seq-small rand 4k   32  4  0
check "adaptive begins with random 4K held" counts adaptive  rand 4k   32  1  0
check "always merges sequential 4K" counts         always    seq  4k    1  1 31
check "never does not merge sequential 4K" counts  never     seq  4k   32  0  0
check "seq-small merges sequential 4K" counts      seq-small seq  4k    1  1 31
check "adaptive merges sequential 4K" counts       adaptive  seq  4k    1  1 31
N=20
check "always holds random 32K" counts             always    rand 32k  32  1  0
check "never issues random 32K" counts             never     rand 32k  32  0  0
check "seq-small groups random 32K by 4" counts    seq-small rand 32k  32  8  0
check "seq-small groups random 16K by 8" counts    seq-small rand 16k  32  4  0
check "seq-small groups random 20K by 6" counts    seq-small rand 20k  32  6  0
check "seq-small groups random 64K by 2" counts    seq-small rand 64k  32 16  0
check "always sends random 128K singly" counts     always    rand 128k 32 32  0
check "never issues random 128K" counts            never     rand 128k 32  0  0
check "seq-small sends random 128K singly" counts  seq-small rand 128k 32 32  0
check "seq-small merges sequential 64K" counts     seq-small seq  64k   4  4 31
check "adaptive begins with random 32K held" counts adaptive rand 32k  32  1  0
check "adaptive begins with random 64K held" counts adaptive rand 64k  32  1  0
check "always merges sequential 64K" counts        always    seq  64k   4  4 31
check "adaptive merges sequential 64K" counts      adaptive  seq  64k   4  4 31

check "always holds a batch of 5" short_batches always 100
check "never issues a batch of 5" short_batches never 0
check "seq-small holds a batch of 5" short_batches seq-small 100
check "adaptive begins with a batch of 5 held" short_batches adaptive 100
check "always holds 64 as 32 and 32" long_batches always 20
check "never issues 64" long_batches never 0
check "seq-small groups 64 by 8" long_batches seq-small 80
check "adaptive begins with 64 as 32 and 32" long_batches adaptive 20

#                                       nomerges mode    req grp look
check "always, nomerges=2" nomerges            2 always    32  1  0
check "never, nomerges=2" nomerges             2 never     32  0  0
check "seq-small, nomerges=2: groups of 8" \
	nomerges			       2 seq-small 32  4  0
check "adaptive, nomerges=2" nomerges          2 adaptive  32  1  0
check "always, nomerges=1" nomerges            1 always     1  1 31
check "never, nomerges=1" nomerges             1 never     32  0  0
check "seq-small, nomerges=1" nomerges         1 seq-small  1  1 31
check "adaptive, nomerges=1" nomerges          1 adaptive   1  1 31
finish
