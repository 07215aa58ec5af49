#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: with nomerges=2 no mode merges, and none looks for a merge; how
# long requests are held still depends on the mode.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

DISK=bp0
N=64

# counts MODE NOMERGES REQUESTS GROUPS LOOKUPS, per batch of sequential 4K
counts()
{
	set_fresh $DISK "$1" || return 1
	set_attr /sys/block/$DISK/queue/nomerges "$2" || return 1
	measure $DISK -a seq -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		/dev/$DISK || return
	expect_io $((BATCH * N)) $(($3 * N)) $(($4 * N)) $(($5 * N))
}

says()
{
	set_mode $DISK "$1" || return 1
	set_attr /sys/block/$DISK/queue/nomerges 2 || return 1
	expect_effect $DISK "$1" "$1 (as set)" "none (nomerges)"
}

require root knob debugfs profiler plug_load null_blk
plan 16
null_create $DISK || ktap_exit_fail_msg "cannot create $DISK"

#                                             mode nomerges req grp look
check "always, nomerges=2: no merge" counts    always    2   32  1  0
check "never, nomerges=2: no merge" counts     never     2   32  0  0
check "seq-small, nomerges=2: no merge, groups of 8" \
	counts				       seq-small 2   32  4  0
check "adaptive, nomerges=2: no merge" counts  adaptive  2   32  1  0
check "always, nomerges=1: simple merges" counts    always    1  1  1 32
check "never, nomerges=1: no merge" counts          never     1 32  0  0
check "seq-small, nomerges=1: simple merges" counts seq-small 1  1  1 32
check "adaptive, nomerges=1: simple merges" counts  adaptive  1  1  1 32
check "always says that nomerges wins" says always
check "never says that nomerges wins" says never
check "seq-small says that nomerges wins" says seq-small
check "adaptive says that nomerges wins" says adaptive
check "always merges again after nomerges" counts    always    0  1  1 32
check "never does not merge after nomerges" counts   never     0 32  0  0
check "seq-small merges again after nomerges" counts seq-small 0  1  1 32
check "adaptive merges again after nomerges" counts  adaptive  0  1  1 32
finish
