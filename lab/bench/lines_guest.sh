#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: cells whose accesses to memory the plugin counts.
#
#   null_disk QUEUES			  the disk
#   PROBE=N lines_cell NAME POLICY CPUS ARGUMENTS...
#					  load it from each CPU, by plug_load

NULL=bl0

# It completes in the context that submits, so that no CPU waits for another.
null_disk()
{
	# shellcheck disable=SC2034 # what cells_guest.sh's functions work on
	disks=$NULL
	make_null $NULL size=1024 max_sectors=1024 submit_queues="$1"
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

# The module costs something itself: "off" is without it.
set_probe()
{
	[ "$1" != off ] || return 0
	[ -d /sys/module/lines_guest ] || insmod /modules/lines_guest.ko ||
		die "lines_guest does not load"
	echo "$1" >/sys/module/lines_guest/parameters/probe
}

lines_cell()
{
	name=$1 policy=$2 cpus=$3
	shift 3
	set_queues "queue.nomerges=0"
	set_policy always
	set_policy "$policy"
	set_probe "$PROBE"
	# by which the plugin begins a window
	sync
	loads "$cpus" "$@"
	# until the host has seen the plugin's result
	mark "$name"
	stop_loads || die "$name: plug_load $* failed"
}
