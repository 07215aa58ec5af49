#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In the guest, with cells_guest.sh: cells on the real nvme driver, whose controller
# QEMU emulates.
#
#   nvme_cell ID POLICY COMMAND...	run it twice: once timed, its doorbells
#					counted by the controller between two
#					marks, once with its calls counted

TRACE=/sys/kernel/tracing
NVME=nvme0n1

functions()
{
	printf '%s\n' nvme_queue_rqs nvme_queue_rq blk_mq_get_tags \
		blk_mq_get_tag >$TRACE/set_ftrace_filter
}

hits()
{
	cat $TRACE/trace_stat/function* |
		awk -v f="$1" '$1 == f { n += $2 } END { print n + 0 }'
}

# Of the driver and of the tag allocator, as words.
calls()
{
	echo "queue_rqs=$(hits nvme_queue_rqs)" \
		"queue_rq=$(hits nvme_queue_rq)" \
		"tag_batches=$(hits blk_mq_get_tags)" \
		"tags_single=$(hits blk_mq_get_tag)"
}

nvme_cell()
{
	id=$1 policy=$2
	shift 2
	# shellcheck disable=SC2034 # what cells_guest.sh's functions work on
	disks=$NVME
	set_queues "queue.scheduler=none queue.nomerges=0"
	set_policy always
	set_policy "$policy"
	mark "$id.begin"
	before=$(completed)
	out=$(run "$@") || die "cell $id, $policy: '$*' failed: $out"
	after=$(completed)
	mark "$id.end"
	functions
	echo 1 >$TRACE/function_profile_enabled
	run "$@" >/dev/null || die "cell $id, $policy: '$*' failed"
	echo 0 >$TRACE/function_profile_enabled
	echo "cell id=$id $out dev_commands=$((after - before)) $(calls)" >&3
}
