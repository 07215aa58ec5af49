#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: cells whose accesses to memory the plugin counts.
#
#   make_null QUEUES			  the disk
#   print_map				  what lies where in memory
#   PROBE=N lines_cell NAME POLICY CPUS WARM FILL IOS BATCH ARGUMENTS...
#					  load it from each CPU, by plug_load

NULL=bl0

# It completes in the context that submits, so that no CPU waits for another.
make_null()
{
	dir=/sys/kernel/config/nullb/$NULL
	mkdir "$dir"
	for pair in size=1024 queue_mode=2 irqmode=0 hw_queue_depth=1023 \
		    submit_queues="$1" max_sectors=1024; do
		echo "${pair#*=}" >"$dir/${pair%=*}" || die "null_blk: $pair"
	done
	echo 1 >"$dir/power" || die "no null_blk with $1 queues"
	# shellcheck disable=SC2034 # what cells_guest.sh's functions work on
	disks=$NULL
	set_queues "queue.scheduler=none"
}

# loads CPUS ARGUMENTS...: one from each CPU, until they are stopped
loads()
{
	cpus=$1 cpu=0 jobs=
	shift
	while [ "$cpu" -lt "$cpus" ]; do
		taskset "$(printf %x $((1 << cpu)))" plug_load "$@" -t 3600 \
			-S $((cpu + 1)) "/dev/$NULL" >&2 &
		jobs="$jobs $!"
		cpu=$((cpu + 1))
	done
}

# They end well when they are interrupted.
stop_loads()
{
	for job in $jobs; do
		kill -INT "$job" && wait "$job" || return
	done
}

need_module()
{
	[ -d /sys/module/lines_guest ] || insmod /modules/lines_guest.ko ||
		die "lines_guest does not load"
}

# The module costs something itself: "off" is without it.
set_probe()
{
	[ "$1" != off ] || return 0
	need_module
	echo "$1" >/sys/module/lines_guest/parameters/probe
}

lines_cell()
{
	name=$1 policy=$2 cpus=$3 window="$3 $4 $5 $6 $7"
	shift 7
	set_queues "queue.nomerges=0"
	set_policy always
	set_policy "$policy"
	set_probe "$PROBE"
	# shellcheck disable=SC2086 # words
	linessay window "$name" $window
	loads "$cpus" "$@"
	# until the host has seen the plugin's result
	mark "$name"
	stop_loads || die "$name: plug_load $* failed"
}

print_map()
{
	need_module
	echo "/dev/$NULL" >/sys/kernel/debug/lines_map
	sed 's/^/map /' /sys/kernel/debug/lines_map >&3
}
