#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: fio as the load of a cell.
#
#   fio_raw [--iostat SECONDS] OPTIONS... DISK
#   fio_xfs OPTIONS... DISK	on a fresh XFS; OPTIONS may begin with
#				--dirty=BACKGROUND:LIMIT, bytes, of vm.dirty_*
#
# fio's own result goes to fd 3 as one line, "fio ID {...}"; what this prints
# are the words that fio does not know: context switches and plug flushes.

TRACE=/sys/kernel/tracing
id=

switches()
{
	awk '$1 == "ctxt" { print $2 }' /proc/stat
}

unplug_events()
{
	[ -w $TRACE/events/block/block_unplug/enable ] ||
		die "this kernel has no trace event block_unplug"
	echo "$1" >$TRACE/events/block/block_unplug/enable
}

# Flushes of a plug, and the requests that they sent.
unplugged()
{
	awk '/block_unplug:/ { flushes++; requests += $NF }
		END { printf "flushes=%d flushed=%d", flushes, requests }' \
		$TRACE/trace
}

# run_fio TARGET OPTIONS... DISK: TARGET is fio's option for where, instead of
# the disk
run_fio()
{
	target=$1
	shift
	n=$#
	while [ $n -gt 1 ]; do
		set -- "$@" "$1"
		shift
		n=$((n - 1))
	done
	shift
	echo >$TRACE/trace
	unplug_events 1
	before=$(switches)
	fio --name=load --output=/tmp/fio.json --output-format=json \
		--group_reporting --lat_percentiles=1 \
		--percentile_list=50:99:99.9 "$@" "$target" >&2 || return 1
	after=$(switches)
	unplug_events 0
	printf 'fio %s %s\n' "$id" "$(tr -d '\n' </tmp/fio.json)" >&3
	echo "ctx=$((after - before)) $(unplugged)"
}

# The last of the arguments.
last()
{
	shift $(($# - 1))
	echo "$1"
}

fio_raw()
{
	disk=$(last "$@")
	seconds=
	if [ "$1" = --iostat ]; then
		seconds=$2
		shift 2
		iostat -dxky "$seconds" 1 "${disk#/dev/}" >/tmp/iostat &
	fi
	words=$(run_fio --filename="$disk" "$@") || return 1
	[ -z "$seconds" ] || wait
	echo "$words$(iostat_words "$seconds")"
}

# wrqm/s and the mean size of a write request, by their names in the heading.
iostat_words()
{
	[ -n "$1" ] || return 0
	awk '$1 == "Device" { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 ~ /^model/ && at["wrqm/s"] {
			printf " iostat_wrqm=%s iostat_kb=%s iostat_w=%s",
				$at["wrqm/s"], $at["wareq-sz"], $at["w/s"]
		}' /tmp/iostat
}

# set_dirty BACKGROUND:LIMIT
set_dirty()
{
	echo "${1%:*}" >/proc/sys/vm/dirty_background_bytes
	echo "${1#*:}" >/proc/sys/vm/dirty_bytes
}

fio_xfs()
{
	disk=$(last "$@")
	case $1 in
	--dirty=*)
		set_dirty "${1#--dirty=}"
		shift
		;;
	*)
		echo 10 >/proc/sys/vm/dirty_background_ratio
		echo 20 >/proc/sys/vm/dirty_ratio
		;;
	esac
	make_xfs "$disk" || return 1
	mount -t xfs "$disk" /mnt || return 1
	words=$(run_fio --directory=/mnt "$@") || return 1
	umount /mnt || return 1
	echo "$words"
}
