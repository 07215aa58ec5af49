# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests do with any disk, and with loop devices.

# prepare DISK: as the counts expect it: no elevator (the default where there is
# one hardware queue), all merging allowed, I/O statistics on, and the policy
# that is as if there was none
prepare()
{
	local queue="/sys/block/$1/queue"

	set_attr "$queue/scheduler" none &&
	set_attr "$queue/nomerges" 0 &&
	set_attr "$queue/iostats" 1 || return 1
	[ ! -e "$queue/plug_policy" ] || set_attr "$queue/plug_policy" always
}

# driver_of DISK: the driver's half of the function names to count
driver_of()
{
	case $1 in
	nvme*) echo nvme ;;
	*) echo null ;;
	esac
}

# --- statistics ------------------------------------------------------------

# stat_field DISK N...: sum of fields of /sys/block/DISK/stat
stat_field()
{
	local disk="$1" sum=0 n

	shift
	for n; do
		sum=$((sum + $(awk -v n="$n" '{ print $n }' \
			"/sys/block/$disk/stat")))
	done
	echo "$sum"
}

requests_of()
{
	stat_field "$1" 1 5
}

# --- loop devices ----------------------------------------------------------

need_loop()
{
	losetup -f >/dev/null 2>&1 ||
		missing "no loop device (CONFIG_BLK_DEV_LOOP)"
}

# loop_create FILE: sets LOOP
loop_create()
{
	LOOP=$(losetup -f) && losetup "$LOOP" "$1" || return 1
	LOOP=${LOOP##*/}
	at_exit loop_remove "$LOOP"
}

loop_remove()
{
	[ ! -e "/sys/block/$1/loop/backing_file" ] || losetup -d "/dev/$1"
}
