#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: loads that others wrote, on the one disk that
# there is.
#
#   on_disk COMMAND...	a cell's command; adds what the disk's files say
#
# with one of
#
#   raw LEARN_MS MS PROGRAM...		until disk_rate has measured it
#   files TYPE MB LEARN_MS MS PROGRAM...	likewise, on files of that size
#   db BENCHMARKS OPTIONS...		db_bench on ext4, to its end
#
# "@" in the program's words becomes the disk, or the directory.

# shellcheck disable=SC2154 # $disks and $MODULES are those of cells_guest.sh
FILES=/mnt

# The mode in force; "none" is a kernel that has none.
in_force()
{
	queue=/sys/block/$1/queue
	if [ ! -e "$queue/plug_policy" ]; then
		echo none
	elif [ "$(cat "$queue/plug_policy_fallback")" = none ]; then
		sed 's/.*\[\(.*\)\].*/\1/' "$queue/plug_policy"
	else
		echo always
	fi
}

on_disk()
{
	disk=${disks# }
	words=$("$@") || return 1
	echo "$words in_force=$(in_force "$disk")" \
		"nomerges=$(cat "/sys/block/$disk/queue/nomerges")"
}

# watch PLACE LEARN_MS MS PROGRAM...
watch()
{
	place=$1
	shift
	# shellcheck disable=SC2046 # as many words as there are
	disk_rate "/dev/$disk" $(echo "$@" | sed "s|@|$place|g")
}

raw()
{
	watch "/dev/$disk" "$@"
}

make_files()
{
	case $1 in
	ext4)
		mkfs.ext4 -q -F -E nodiscard "/dev/$disk" >&2 ;;
	xfs)
		{ [ -d /sys/module/xfs ] || insmod "$MODULES/xfs.ko"; } >&2 &&
			mkfs.xfs -q -f -K "/dev/$disk" >&2 ;;
	esac && mount -t "$1" "/dev/$disk" $FILES
}

# What was killed lets go of its files some time later.
unmount()
{
	tries=50
	until umount $FILES 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || die "$FILES stays busy"
		sleep 0.1
	done
}

# What is read from now on is read from the disk, and what is counted counts.
forget()
{
	unmount
	mount -t "$1" "/dev/$disk" $FILES || die "$1 cannot be mounted again"
	reset_counters
}

# Those that the program's words name are written, since what was never written
# is not read from the disk.
files()
{
	type=$1 mb=$2
	shift 2
	make_files "$type" || return 1
	for name in $(echo "$@" | grep -o '@/[a-z]*' | sort -u); do
		dd if=/dev/zero of="$FILES/${name#@/}" bs=1M count="$mb" \
			oflag=direct 2>/dev/null || return 1
	done
	forget "$type"
	watch $FILES "$@" && unmount
}

# 16 MB in tables of 2 MB, written out; then what is measured, from the disk.
# Its figure is its own: operations, and the us that they took.
db()
{
	make_files ext4 || return 1
	fill=--benchmarks=fillseq,flush,waitforcompaction
	words="--db=$FILES/db --num=20000 --value_size=800 --histogram=0
		--write_buffer_size=2097152 --compression_type=none
		--cache_size=65536 --open_files=100 --seed=1"
	case $1 in
	*=fill*) ;;
	*)
		# shellcheck disable=SC2086 # as many words as there are
		db_bench $words $fill >/tmp/said 2>&1 || return 1
		words="$words --use_existing_db=1"
		;;
	esac
	forget ext4
	# shellcheck disable=SC2086
	db_bench $words "$@" >/tmp/said 2>&1 || return 1
	echo "bytes=$(stat bytes) $(awk '{ for (i = 3; i < NF; i++)
		if ($i == "micros/op") { us = $(i - 1); ops = $(i + 5) } }
		END { printf "ops=%d us=%d", ops, us * ops }' /tmp/said)"
	unmount
}
