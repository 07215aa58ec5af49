#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: memory that is short comes back from swap as it went, under each
# mode and while modes flip.
#
# swap.sh SEED SECONDS
#
# swap_load has more memory than its cgroup may hold, so that reclaim writes to
# the NVMe disk, then to a null_blk disk, with tasks in the middle of anything.

. "${0%/*}/torture_lib.sh"
. "${0%/*}/stacks.sh"

MIB=64			# that swap_load has
MAX=24M			# that it may hold
LEAST=4			# seconds, to fill that
NULL_DISK=swap0
FLIP_SECONDS=0.2

# --- one disk --------------------------------------------------------------

# Half of the time each mode in turn, half of it random flips.
change_modes()
{
	local mode modes seconds=$(($2 / 8)) flips=0

	modes=$(modes_of "$1")
	for mode in $modes; do
		set_mode "$1" "$mode"
		sleep $((seconds ? seconds : 1))
	done
	while [ ! -e "$TMP/stop" ]; do
		# shellcheck disable=SC2086 # a list
		pick $modes
		echo "$WORD" >"$(knob "$1")" || found "$1: '$WORD' refused"
		flips=$((flips + 1))
		sleep "$FLIP_SECONDS"
	done
	did swap_flips "$flips"
}

swapped_out()
{
	sed -n 's/^pswpout //p' /proc/vmstat
}

# swap_to DISK SECONDS
swap_to()
{
	local rc=0 before

	DISK=$1
	mkswap "/dev/$1" >"$TMP/mkswap" 2>&1
	swapon "/dev/$1" || { found "$1: cannot swap to it"; return 1; }
	at_exit swap_off "/dev/$1"
	before=$(swapped_out)
	rm -f "$TMP/stop"
	background change_modes "$1" "$2"
	in_cgroup torture swap_load "$SEED" "$2" $MIB >"$TMP/swap" 2>&1 || rc=$?
	: >"$TMP/stop"
	wait "$JOB"
	JOBS=
	relay "$DISK" <"$TMP/swap"
	[ $rc -le 1 ] || found "$1: swap_load: exit $rc"
	did swapouts $(($(swapped_out) - before))
	[ "$(swapped_out)" -gt "$before" ] || found "$1: nothing was swapped"
	swap_off "/dev/$1" || found "$1: swapoff"
}

swap_off()
{
	! grep -q "^$1 " /proc/swaps || swapoff "$1"
}

SEED=$1
rnd_seed "$SEED"
[ -e /proc/swaps ] || skip "no swap (CONFIG_SWAP)"
need_programs swap_load
# shellcheck disable=SC2046 # a list
set -- "$2" $(nvme_disks)
make_cgroups memory torture
echo $MAX >"$CGROUP/torture/memory.max" || found "cannot limit memory"
if [ $# -gt 1 ]; then
	prepare "$2"
	swap_to "$2" $(($1 * 2 / 3 + LEAST))
	set -- $(($1 / 3))
fi
null_create $NULL_DISK memory_backed=1 size=256 ||
	{ found "cannot make a null_blk disk"; over; }
swap_to $NULL_DISK $(($1 + LEAST))
over
