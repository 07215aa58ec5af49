#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: with hardware queues of their own, no read is issued in a queue
# for writes.
#
# Reproducer: a read that followed a write in the same plug used the request
# that had been allocated for a write.

. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"

PARAM=/sys/module/nvme/parameters/write_queues
IOS=1600

need_write_queues()
{
	[ -w $PARAM ] || missing "no $PARAM (CONFIG_BLK_DEV_NVME)"
	[ "$(nproc)" -gt 1 ] || missing "one CPU has no queues for writes alone"
	[ -e "$TRACEFS/events/nvme/nvme_setup_cmd" ] ||
		missing "no trace event nvme:nvme_setup_cmd"
}

# qids OPERATION: of the commands seen
qids()
{
	sed -n "s/.*qid=\([1-9][0-9]*\),.*cmd=(nvme_cmd_$1 .*/\1/p" \
		"$TMP/trace" | sort -u | tr '\n' ' '
}

apart()
{
	local disk="$1" qid

	trace_start nvme:nvme_setup_cmd
	load -m 50 -s $BATCH -c $BATCH -d $BATCH -n $IOS "/dev/$disk" || return
	trace_end
	note "queues of reads: $(qids read), of writes: $(qids write)"
	[ -n "$(qids read)" ] || failed "no read was seen"
	[ -n "$(qids write)" ] || failed "no write was seen"
	for qid in $(qids read); do
		! qids write | grep -qw "$qid" ||
			failed "queue $qid has reads and writes"
	done
}

require root trace plug_load nvme write_queues
DISK=${NVME%% *}
CTRL=${DISK%n[0-9]*}
plan 1
# The number of queues changes with a reset: at the end, with the old value.
at_exit reset_ctrl "$CTRL"
{ set_attr $PARAM 1 && reset_ctrl "$CTRL"; } ||
	ktap_exit_fail_msg "no queues for writes"
check "reads and writes in one plug" apart "$DISK"
finish
