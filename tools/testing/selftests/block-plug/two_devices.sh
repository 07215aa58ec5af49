#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: where two disks share a plug, each one's bios merge as its own
# mode says, requests are held as for "always", and those of a disk on "never"
# pass the other disk's.

. "${0%/*}/measure_lib.sh"
. "${0%/*}/policy_lib.sh"

# "adaptive" tries no other size within 1000 requests.
N=60
HALF=$((BATCH * N / 2))

# mixed_groups DISK OTHER N: sets MIXED to the number of groups in which a plug
# of two disks on "always" is sent out: one for each, in older kernels none
mixed_groups()
{
	set_mode "$1" always && set_mode "$2" always &&
	measure "$1" batches "$1" "$3" "/dev/$2" || return
	MIXED=$((HELD_GROUPS ? 2 : 0))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $((MIXED * $3))
}

# pair_counts MODE_A MODE_B ACCESS REQUESTS_A REQUESTS_B GROUPS, per batch of 16 I/Os
# for each disk, which take turns
pair_counts()
{
	local other

	set_fresh bp0 "$1" && set_fresh bp1 "$2" || return 1
	other=$(requests_of bp1)
	measure bp0 batches bp0 $N -a "$3" /dev/bp1 || return
	expect_requests "of the disk on $1" "$REQUESTS" $HALF $(($4 * N))
	expect_requests "of the disk on $2" $(($(requests_of bp1) - other)) \
		$HALF $(($5 * N))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($6 * N))
}

pair()
{
	check "$1 and $2, $3: $4 and $5 requests, groups: $6" pair_counts "$@"
}

# Data of both disks is right, too: each I/O went to its own. The one that keeps
# its data without being nvme may sleep, and so does as under "always".
verifies()
{
	[ -n "$NVME" ] || { skip_case "no nvme disk"; return; }
	set_fresh "$NVME" "$1" || return
	load -r write -a rand-once -z 8m -S 7 "/dev/$NVME" /dev/bp2 &&
	load -r verify -a seq -z 8m -S 7 "/dev/$NVME" /dev/bp2
}

require root knob debugfs counts plug_load null_blk nvme_if_any
plan 31
must null_create bp0
must null_create bp1
must null_create bp2 memory_backed=1 size=32
NVME=${NVME%% *}

check "groups for two disks" mixed_groups bp0 bp1 $N
#    mode A    mode B    access A  B groups
pair always    always    rand  16 16 "$MIXED"
pair always    always    seq    1  1 "$MIXED"
pair never     always    rand  16 16 1
pair never     always    seq   16  1 1
pair always    never     rand  16 16 1
pair always    never     seq    1 16 1
pair seq-small always    rand  16 16 "$MIXED"
pair seq-small always    seq    1  1 "$MIXED"
pair always    seq-small rand  16 16 "$MIXED"
pair seq-small seq-small seq    1  1 "$MIXED"
pair never     seq-small rand  16 16 2
pair never     seq-small seq   16  1 1
pair adaptive  always    rand  16 16 "$MIXED"
pair always    adaptive  seq    1  1 "$MIXED"
pair adaptive  adaptive  seq    1  1 "$MIXED"
pair adaptive  seq-small rand  16 16 "$MIXED"
pair seq-small adaptive  seq    1  1 "$MIXED"
pair never     adaptive  rand  16 16 1
pair adaptive  never     seq    1 16 1
pair never     never     seq   16 16 0
# Groups of "adaptive" of one size: all is held, but beside a disk on never.
pair 1         always    rand  16 16 "$MIXED"
pair 1         1         rand  16 16 "$MIXED"
pair 1         seq-small rand  16 16 "$MIXED"
pair 4         always    rand  16 16 "$MIXED"
pair 4         never     rand  16 16 4
pair 1         never     rand  16 16 16
for mode in always never seq-small adaptive; do
	check "$mode and always: data is right" verifies $mode
done
finish
