# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# Disks: all are made read-only, then the stick alone writable again. Sourced.
#
# ROOT is a tree in place of the machine's, for tests. STATE is a directory:
# STATE/read-only lists the NVMe disks that may be measured, STATE/left those
# that are left alone, each with the reason.

SYS=${ROOT-}/sys
DEV=${ROOT-}/dev
ID_FILE=${ROOT-}/stick/id

# The disks that are hardware; and the NVMe disks among them. A hidden one, a
# path of NVMe multipath, cannot be reached by itself.
disks()
{
	for disk in "$SYS"/block/*; do
		[ -e "$disk/device" ] && ! grep -qsx 1 "$disk/hidden" &&
			echo "${disk##*/}"
	done
}

nvme_disks()
{
	disks | grep '^nvme'
}

# partitions DISK
partitions()
{
	for part in "$SYS/block/$1"/*/partition; do
		[ -e "$part" ] || continue
		part=${part%/partition}
		echo "${part##*/}"
	done
}

# is_read_only DISK: as the kernel says, of its partitions, too
is_read_only()
{
	local name

	for name in "$1" $(partitions "$1"); do
		[ "$(blockdev --getro "$DEV/$name" 2>/dev/null)" = 1 ] || return 1
	done
}

# set_read_only DISK: fails if anything of it could be written afterwards
set_read_only()
{
	local name

	for name in "$1" $(partitions "$1"); do
		blockdev --setro "$DEV/$name" 2>/dev/null || return 1
	done
	is_read_only "$1"
}

# protect: all disks but the stick's. May be called again when more appear: who
# once could not be protected is not tried again.
protect()
{
	local disk

	for disk in $(nvme_disks); do
		grep -qs "^$disk: " "$STATE/left" && continue
		if set_read_only "$disk"; then
			grep -qsx "$disk" "$STATE/read-only" ||
				echo "$disk" >>"$STATE/read-only"
		else
			leave_alone "$disk" "cannot be set read-only"
		fi
	done
	for disk in $(disks | grep -v '^nvme'); do
		[ "$disk" = "$(cat "$STATE/stick" 2>/dev/null)" ] ||
			set_read_only "$disk" || :
	done
}

# leave_alone DISK WHY: it is not measured, and the report says so
leave_alone()
{
	echo "$1: $2" >>"$STATE/left"
	grep -vx "$1" "$STATE/read-only" >"$STATE/read-only.new" 2>/dev/null
	mv "$STATE/read-only.new" "$STATE/read-only"
}

# measured: the disks that may be read
measured()
{
	cat "$STATE/read-only" 2>/dev/null
}

# sectors_written DISK: since the kernel found it, discards included
sectors_written()
{
	awk '{ print $7 + $14 }' "$SYS/block/$1/stat" 2>/dev/null
}

# stick_partition: DISK/PARTITION whose table names it as this very image was
# named when it was built. On an NVMe disk it would be a copy: never that.
stick_partition()
{
	for file in "$SYS"/block/*/*/uevent; do
		file=${file#"$SYS"/block/}
		case $file in
		nvme*) continue ;;
		esac
		if grep -qsxF "PARTNAME=$(cat "$ID_FILE")" "$SYS/block/$file"; then
			echo "${file%/uevent}"
			return
		fi
	done
	return 1
}

# mount_stick DIR: fails if it is not there, or is another after all. It is
# written to only once that is known.
mount_stick()
{
	local options=noatime,nosuid,nodev,noexec

	found=$(stick_partition) || return 1
	disk=${found%/*} part=$DEV/${found#*/}
	mount -t vfat -o "ro,$options" "$part" "$1" || return 1
	if cmp -s "$1/plug-policy.id" "$ID_FILE"; then
		echo "$disk" >"$STATE/stick"
		blockdev --setrw "$DEV/$disk" && blockdev --setrw "$part" &&
			mount -o "remount,rw,$options" "$part" "$1" && return
	fi
	umount "$1" 2>/dev/null
	rm -f "$STATE/stick"
	set_read_only "$disk" || :
	return 1
}

# settled: the stick is there, and each NVMe controller has come up or given up.
# What has come by now is protected before the stick becomes writable.
settled()
{
	protect
	[ -e "$STATE/stick" ] || mount_stick "$STICK" || return 1
	! cat "$SYS"/class/nvme/nvme*/state 2>/dev/null |
		grep -qE 'new|connecting|resetting'
}
