#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: what a power failure leaves at any time is a file system that
# recovers, with all that had been synced, under each mode.
#
# power.sh SEED SECONDS [ROUND...]	ROUND is FS:MODE, as ext4:never
#
# dm-log-writes logs what ext4 or XFS writes to a model SSD, while power_load
# and fio sync files. replay_log then goes through the log, sync by sync, with
# the log and what is replayed on an NVMe disk. Both are in the mode that is
# tried. The SSD has one hardware queue, with which flushes complete in order:
# replay_log relies on that. No null_blk, since one with memory behind it
# blocks, and so holds as in "always" whatever the mode.
#
# BREAK=write, data, corrupt or flush makes replay_log do wrong, which must be
# found.

# shellcheck disable=SC2317 # functions are called by the names given to others

# shellcheck source=torture_lib.sh
. "${0%/*}/torture_lib.sh"
# shellcheck source=stacks.sh
. "${0%/*}/stacks.sh"

MIB=2048		# sectors
DEVICE_MIB=32		# of the file system; what is replayed takes the same
LOG_MIB=96		# at least
LOG_MIB_MOST=512
ROUND_SECONDS=20	# that one wants

# --- devices ---------------------------------------------------------------

size_mib()
{
	echo $(($(cat "/sys/block/$1/size") / MIB))
}

# dm_create NAME TABLE...
dm_create()
{
	local name="$1"

	shift
	dmsetup create "$name" --noudevsync --noudevrules --table "$*"
}

# dm_node NAME: as the kernel names it, for nobody makes /dev/mapper/NAME here
dm_node()
{
	local path

	for path in /sys/block/dm-*; do
		[ "$(cat "$path/dm/name" 2>/dev/null)" != "$1" ] ||
			echo "/dev/${path##*/}"
	done
}

# The device is removed once udev, fsck or whoever has let go of it.
dm_remove()
{
	[ -z "$(dm_node "$1")" ] ||
		dmsetup remove --noudevsync --noudevrules --retry "$1"
}

make_devices()
{
	local mib=$(($(size_mib "$OTHER") - DEVICE_MIB))

	[ $mib -lt $LOG_MIB_MOST ] || mib=$LOG_MIB_MOST
	dm_create power-replay "0 $((DEVICE_MIB * MIB)) linear" \
		"/dev/$OTHER 0" &&
	dm_create power-log "0 $((mib * MIB)) linear" \
		"/dev/$OTHER $((DEVICE_MIB * MIB))" &&
	dm_create power-device "0 $((DEVICE_MIB * MIB)) log-writes" \
		"/dev/$DISK $(dm_node power-log)"
}

remove_devices()
{
	grep -q ' /mnt ' /proc/mounts && umount /mnt
	dm_remove power-device
	dm_remove power-log
	dm_remove power-replay
}

finish_and_cleanup()
{
	local rc=$?

	[ -z "$NOISE" ] || kill "$NOISE" 2>/dev/null
	remove_devices
	down_bases
	(exit "$rc")
	cleanup
}

# --- one round -------------------------------------------------------------

make_fs()
{
	case $1 in
	ext4) mkfs.ext4 -q -F -b 4096 -J size=4 "$2" ;;
	# XFS below 300 MiB is for tests alone, and wants to be told.
	xfs) TEST_DIR=/mnt TEST_DEV=$2 QA_CHECK_FS=1 mkfs.xfs -q -f "$2" ;;
	esac
}

# Buffered writes, synced now and then, and direct ones in batches.
noise()
{
	exec fio --name=buffered --rw=randwrite --bsrange=4k-64k --size=3m \
		--filename=/mnt/buffered --fsync=16 \
		--name=direct --rw=randwrite --bsrange=4k-16k --size=2m \
		--filename=/mnt/direct --direct=1 --fsync=32 \
		--ioengine=io_uring --iodepth=32 --iodepth_batch_submit=16 \
		--minimal --time_based --runtime="$1" --randseed="$SEED"
}

write_files()
{
	mount -t "$1" "$(dm_node power-device)" /mnt ||
		{ found "$WHAT: cannot mount a new file system"; return 1; }
	noise "$2" >"$TMP/noise" 2>&1 &
	NOISE=$!
	power_load write power-device /mnt "$SEED" "$2" | relay "$WHAT"
	wait $NOISE || found "$WHAT: fio: $(tail -n 1 "$TMP/noise")"
	NOISE=
	umount /mnt || found "$WHAT: cannot unmount"
	# What came behind the log's end is not replayed, what came before is.
	! dmsetup status power-device | grep -q logging_disabled ||
		echo "$WHAT: the log was full"
}

# round FS MODE SECONDS
round()
{
	local end

	WHAT="$1 under $2"
	now
	end=$((NOW + $3))
	set_mode "$DISK" "$2" && set_mode "$OTHER" "$2" || return 1
	make_devices || { found "$WHAT: cannot make the devices"; return 1; }
	make_fs "$1" "$(dm_node power-device)" >"$TMP/mkfs" 2>&1 ||
		{ found "$WHAT: mkfs: $(tail -n 1 "$TMP/mkfs")"; return 1; }
	write_files "$1" $(($3 / 8 + 1)) || return 1
	# This writes the log's end.
	dm_remove power-device
	now
	# Where all is slow, the replay still gets half of the round's time.
	[ $end -ge $((NOW + $3 / 2)) ] || end=$((NOW + $3 / 2))
	echo "$WHAT: replaying for $((end - NOW)) s"
	replay_log "$(dm_node power-log)" "$(dm_node power-replay)" \
		$((DEVICE_MIB * MIB)) "$1" "$SEED" \
		$((end - NOW)) >"$TMP/replay"
	relay "$WHAT" <"$TMP/replay"
	did "power_rounds_$1" 1
	remove_devices
}

# --- all -------------------------------------------------------------------

# As many rounds as fit, from where the seed says.
rounds()
{
	local fs mode all=

	for mode in $(modes_of "$DISK"); do
		for fs in ext4 xfs; do
			all="$all $fs:$mode"
		done
	done
	rnd 8
	# shellcheck disable=SC2086 # lists
	set -- $all $all
	shift "$R"
	echo "$1 $2 $3 $4 $5 $6 $7 $8"
}

need_programs()
{
	local program

	for program in dmsetup fio power_load replay_log mkfs.ext4 mkfs.xfs \
		       e2fsck xfs_repair; do
		command -v "$program" >/dev/null || skip "no $program"
	done
	dmsetup targets | grep -q '^log-writes' ||
		skip "no dm-log-writes (CONFIG_DM_LOG_WRITES)"
}

find_disks()
{
	OTHER=$(nvme_disks | head -n 1)
	[ -n "$OTHER" ] || skip "no NVMe disk"
	[ "$(size_mib "$OTHER")" -ge $((DEVICE_MIB + LOG_MIB)) ] ||
		skip "$OTHER has less than $((DEVICE_MIB + LOG_MIB)) MiB"
	ssd power size_mb=$DEVICE_MIB queues=1
	DISK=powern1
	prepare "$OTHER"
}

[ $# -ge 2 ] || usage SEED SECONDS '[FS:MODE...]'
PATH=${0%/*}:$PATH
SEED=$1
NOISE=
rnd_seed "$SEED"
deadline "$2"
# All rounds, or as many as fit.
COUNT=$(($2 / ROUND_SECONDS))
[ $COUNT -ge 1 ] || COUNT=1
[ $COUNT -le 8 ] || COUNT=8
ROUND=$(($2 / COUNT))
shift 2
need_programs
trap finish_and_cleanup EXIT
find_disks
mkdir -p /mnt
# shellcheck disable=SC2046 # a list
[ $# -gt 0 ] || set -- $(rounds)
for what; do
	time_left || break
	round "${what%%:*}" "${what#*:}" $ROUND
done
over
