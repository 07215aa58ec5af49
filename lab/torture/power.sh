#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: what a power failure leaves at any time is a file system that
# recovers, with all that had been synced, under each mode.
#
# power.sh SEED SECONDS
#
# dm-log-writes logs what ext4 or XFS writes to a model SSD, while power_log and
# fio sync files. power_log then goes through the log, sync by sync, with the log
# and what is replayed on an NVMe disk. Both are in the mode that is tried. The
# SSD has one hardware queue, with which flushes complete in order: power_log
# relies on that. No null_blk, since one with memory behind it blocks, and so
# holds as in "always" whatever the mode.
#
# BREAK=write, data, corrupt or flush makes power_log do wrong, which must be
# found.

. "${0%/*}/torture_lib.sh"
. "${0%/*}/stacks.sh"

MIB=2048		# sectors
DEVICE_MIB=32		# of the file system; what is replayed takes the same
LOG_MIB=96		# at least
LOG_MIB_MOST=512
ROUND_SECONDS=20	# that one wants

size_mib()
{
	echo $(($(cat "/sys/block/$1/size") / MIB))
}

# --- one round -------------------------------------------------------------

make_devices()
{
	local mib=$(($(size_mib "$OTHER") - DEVICE_MIB))

	[ $mib -lt $LOG_MIB_MOST ] || mib=$LOG_MIB_MOST
	dm_create replay "0 $((DEVICE_MIB * MIB)) linear /dev/$OTHER 0"
	dm_create log "0 $((mib * MIB)) linear /dev/$OTHER $((DEVICE_MIB * MIB))"
	dm_create device "0 $((DEVICE_MIB * MIB)) log-writes /dev/$DISK \
		/dev/mapper/log"
	at_exit leave_fs
}

remove_devices()
{
	dm_remove device
	dm_remove log
	dm_remove replay
}

leave_fs()
{
	! grep -q ' /mnt ' /proc/mounts || umount /mnt
}

make_fs()
{
	case $1 in
	ext4) mkfs.ext4 -q -F -b 4096 -J size=4 /dev/mapper/device ;;
	# XFS below 300 MiB is for tests alone, and wants to be told.
	xfs) TEST_DIR=/mnt TEST_DEV=/dev/mapper/device QA_CHECK_FS=1 \
		mkfs.xfs -q -f /dev/mapper/device ;;
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
	mount -t "$1" /dev/mapper/device /mnt || {
		found "$WHAT: cannot mount a new file system"
		return 1
	}
	background noise "$2" >"$TMP/noise" 2>&1
	power_log write device /mnt "$SEED" "$2" | relay "$WHAT"
	wait "$JOB" || found "$WHAT: fio: $(tail -n 1 "$TMP/noise")"
	umount /mnt || found "$WHAT: cannot unmount"
	# What came behind the log's end is not replayed, what came before is.
	! dmsetup status device | grep -q logging_disabled ||
		echo "$WHAT: the log was full"
}

# round FS MODE SECONDS
round()
{
	local end

	WHAT="$1 under $2"
	now
	end=$((NOW + $3))
	set_mode "$DISK" "$2" && set_mode "$OTHER" "$2" || return
	remove_devices
	make_devices
	make_fs "$1" >"$TMP/mkfs" 2>&1 || {
		found "$WHAT: mkfs: $(tail -n 1 "$TMP/mkfs")"
		return
	}
	write_files "$1" $(($3 / 8 + 1)) || return
	# This writes the log's end.
	dm_remove device
	now
	# Where all is slow, the replay still gets half of the round's time.
	[ $end -ge $((NOW + $3 / 2)) ] || end=$((NOW + $3 / 2))
	echo "$WHAT: replaying for $((end - NOW)) s"
	power_log replay /dev/mapper/log /dev/mapper/replay \
		$((DEVICE_MIB * MIB)) "$1" "$SEED" $((end - NOW)) | relay "$WHAT"
	did "power_rounds_$1" 1
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

SEED=$1
rnd_seed "$SEED"
deadline "$2"
# All rounds, or as many as fit.
COUNT=$(($2 / ROUND_SECONDS))
[ $COUNT -ge 1 ] || COUNT=1
[ $COUNT -le 8 ] || COUNT=8
ROUND=$(($2 / COUNT))
need_programs dmsetup fio power_log mkfs.ext4 mkfs.xfs e2fsck xfs_repair
need_option CONFIG_DM_LOG_WRITES
mkdir -p /mnt
find_disks
for what in $(rounds); do
	time_left || break
	round "${what%%:*}" "${what#*:}" $ROUND
done
over
