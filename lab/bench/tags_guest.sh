#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# In the guest: who wants for tags.
#
#   tags_cell NAME SHARED DEPTH TASKS LOAD SEED	tasks that load a null_blk

T=/sys/kernel/tracing
NULLB=/sys/kernel/config/nullb
IOS=1600				# of each task, in plugs of 32

# The disk of a cell; another one makes the set a shared one.
tags_disk()
{
	mkdir "$NULLB/$1" || return 1
	for pair in size=256 irqmode=2 completion_nsec=50000 submit_queues=1 \
		    max_sectors=2048 \
		    hw_queue_depth="$3" shared_tags="$2" power=1; do
		echo "${pair#*=}" >"$NULLB/$1/${pair%%=*}" || return 1
	done
	echo none >"/sys/block/$1/queue/scheduler"
}

# count NAME EVENT [FUNCTION]: from now on, in a trace buffer of its own; calls of
# the function where the kernel does not have the event
count()
{
	local own="$T/instances/$1"

	[ -d "$own" ] || mkdir "$own" || return 1
	echo >"$own/trace" || return 1
	if [ -d "$own/events/$2" ] || [ -z "${3-}" ]; then
		echo 1 >"$own/events/$2/enable"
	else
		echo "$3" >"$own/set_ftrace_filter" &&
			echo function >"$own/current_tracer"
	fi
}

# count_of NAME: the events, also those that the buffer has no room for
count_of()
{
	awk '/^(entries|overrun):/ { n += $2 } END { print n + 0 }' \
		"$T/instances/$1"/per_cpu/cpu*/stats
}

# tasks N OPTIONS...: at once
tasks()
{
	n=$1 jobs=
	shift
	for task in $(seq "$n"); do
		plug_load "$@" -s 32 -c 32 -d 32 -n $IOS -S $((task + 100 * seed)) \
			/dev/tags0 >"/tmp/load$task" 2>&1 &
		jobs="$jobs $!"
	done
	for job in $jobs; do
		wait "$job" || return 1
	done
}

# seq: 32 I/Os are one request; pairs: two are; rand: each is one
options_of()
{
	kb=128 access=seq seed=$2
	case $1 in
	pairs) kb=8 ;;
	rand) access=rand ;;
	esac
	echo $kb >/sys/block/tags0/queue/max_sectors_kb
}

tags_cell()
{
	tags_disk tags0 "$2" "$3" &&
		{ [ "$2" = 0 ] || tags_disk tags1 "$2" "$3"; } || return 1
	options_of "$5" "$6"
	count punts io_uring/io_uring_queue_async_work &&
		count sleeps block/block_rq_tag_wait io_schedule &&
		tasks "$4" -a $access || return 1
	punts=$(count_of punts) sleeps=$(count_of sleeps)
	rmdir $NULLB/tags*
	echo "$1 punts=$punts sleeps=$sleeps" >&3
}
