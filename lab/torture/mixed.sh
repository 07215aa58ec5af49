#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: a stack of block devices, loads on it that verify what they
# wrote, and disturbers. The seed picks all of them, and all they do.
#
# mixed.sh SEED SECONDS [STACK]

. "${0%/*}/torture_lib.sh"
. "${0%/*}/stacks.sh"
. "${0%/*}/loads.sh"
. "${0%/*}/disturb.sh"

# Attributes that a disturber may change; a disk that outlives this round gets
# them back.
save_queues()
{
	local disk name file

	for disk in $QUEUES; do
		for name in nr_requests wbt_lat_usec read_ahead_kb rq_affinity; do
			file=/sys/block/$disk/queue/$name
			[ ! -e "$file" ] || grep -qF "$file " "$TMP/saved" ||
				echo "$file $(cat "$file" 2>/dev/null)" >>"$TMP/saved"
		done
	done
}

# choose N WORD...: sets CHOSEN to N different ones
choose()
{
	local left="$1"

	shift
	CHOSEN=
	while [ "$left" -gt 0 ] && [ $# -gt 0 ]; do
		pick "$@"
		CHOSEN="$CHOSEN $WORD"
		# shellcheck disable=SC2046 # a list
		set -- $(printf '%s\n' "$@" | grep -vx "$WORD")
		left=$((left - 1))
	done
}

# Each with even chance, but for what must be
choose_disturbers()
{
	local word

	DISTURBERS=
	for word in $(disturbers_of_stack); do
		rnd 2
		case $word in
		*!) DISTURBERS="$DISTURBERS ${word%!}" ;;
		*) [ $R -eq 0 ] || DISTURBERS="$DISTURBERS $word" ;;
		esac
	done
	spare_elevators
}

# Linux 6.12 as it is crashes when a scheduler is set while the number of
# hardware queues is updated, as a reset does, too.
spare_elevators()
{
	case "$(uname -r): $DISTURBERS " in
	6.12.*" reset "* | 6.12.*" remove "* | 6.12.*" hw_queues "*)
		DISTURBERS=$(echo "$DISTURBERS" | sed 's/ elevators\>//') ;;
	esac
}

start_loads()
{
	local load place=0

	LOAD_JOBS=
	for load in $LOADS; do
		rnd 1000000000
		run_load "$load" $place $R &
		LOAD_JOBS="$LOAD_JOBS $!"
		JOBS="$JOBS $!"
		place=$((place + 1))
	done
}

start_disturbers()
{
	local name

	for name in $DISTURBERS; do
		rnd 1000000000
		background run_disturber "$name" $R
	done
}

# all_have MARK NAME...: set when each has ended
all_have()
{
	local mark="$1" name

	shift
	for name; do
		[ -e "$TMP/$mark.$name" ] || return 1
	done
}

# A pass that was begun in time may be slow, but no disk may be idle for so long.
GRACE=150

show_queues()
{
	local disk

	for disk in $QUEUES; do
		(cd "$DEBUGFS/block/$disk" && grep -s . state hctx*/state \
			hctx*/busy hctx*/dispatch hctx*/plug_stats)
	done
}

hung()
{
	found "$*"
	show_queues
	over
}

# end_all MARK NAME...: or say that one of them does not end
end_all()
{
	local stat before=

	until all_have "$@"; do
		stat=$(cat /sys/block/*/stat 2>/dev/null)
		[ "$stat" = "$before" ] || deadline "$GRACE"
		before=$stat
		time_left || hung "one does not end: $*"
		sleep 0.2
	done
}

run_all()
{
	rm -f "$TMP/stop"
	deadline "$SECONDS_LEFT"
	start_loads
	start_disturbers
	# shellcheck disable=SC2086 # a list
	while time_left && ! all_have ended $LOADS; do
		sleep 0.5
	done
	# A disturber keeps nobody from ending: it stops first.
	: >"$TMP/stop"
	# shellcheck disable=SC2086 # lists
	{
		end_all undone $DISTURBERS
		end_all ended $LOADS
		wait $LOAD_JOBS
	}
	cpus_back
	[ -z "$REMOVABLE" ] || QUEUES=$(removable_disk)
}

expect_idle()
{
	local disk

	for disk in $QUEUES; do
		wait_for 60 idle "$disk" || hung "$disk: I/O stays in flight"
	done
}

writes_and_reads()
{
	load -r write -a rand-once -o 56m -z 2m "/dev/$1" &&
	load -r verify -a seq -o 56m -z 2m "/dev/$1"
}

# What was disturbed works as ever.
still_works()
{
	local disk

	for disk in $QUEUES; do
		prepare "$disk"
	done
	if ! trait zoned && ! trait nodata; then
		for disk in $DISKS; do
			writes_and_reads "$disk" ||
				found "$disk does not work any more"
		done
	fi
}

enable_stats()
{
	local disk

	for disk in $QUEUES; do
		[ ! -e "$(stats_switch "$disk")" ] ||
			echo 1 >"$(stats_switch "$disk")"
	done
}

rnd_seed "$1"
SECONDS_LEFT=$2
# shellcheck disable=SC2046 # a list
pick $(labels stacks.sh stack)
STACK=${3:-$WORD}
KIND=mixed:$STACK
DISKS='' QUEUES='' TRAITS='' MORE=''
stack "$STACK"
[ ! -e "$TMP/found" ] || over
at_exit cpus_back
save_queues
enable_stats
rnd 2
# shellcheck disable=SC2046 # a list
choose $((R + 2)) $(loads_of_stack)
LOADS=$CHOSEN
choose_disturbers
# Where static keys stay on, modes flip faster than the kernel's text changes.
rnd 2
[ $R -eq 0 ] || [ ! -d "$NULLB" ] || [ ! -e "$(knob "${QUEUES%% *}")" ] ||
	pin_static_keys
tell "detail $STACK on ${QUEUES# }: loads$LOADS; disturbers$DISTURBERS"
run_all
expect_idle
trait errors || still_works
over
