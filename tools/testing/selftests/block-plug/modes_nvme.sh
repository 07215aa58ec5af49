#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: on nvme, each mode rings the doorbell once per group of the
# documented size, for block I/O and for passthrough commands.

. "${0%/*}/lib.sh"
. "${0%/*}/groups_lib.sh"

# few MODE: "adaptive" tries no other size within 1000 requests
few()
{
	[ "$1" != adaptive ] || [ "$N" -lt 30 ] || N=30
}

# counts MODE ACCESS BS REQUESTS GROUPS LOOKUPS DOORBELLS, per 32 I/Os of a batch
counts()
{
	local N=$N

	few "$1"
	set_fresh "$DISK" "$1" || return 1
	measure "$DISK" -a "$2" -b "$3" -s $BATCH -c $BATCH -d 128 \
		-n $((BATCH * N)) "/dev/$DISK" || return
	expect_io $((BATCH * N)) $(($4 * N)) $(($5 * N)) $(($6 * N))
	expect_count "commands for $REQUESTS requests" "$COMMANDS" \
		"$REQUESTS" "$REQUESTS"
	expect_doorbells $(($7 * N))
	if [ "$4" -eq $BATCH ]; then
		expect_tags "$DISK" $((BATCH * N))
	fi
}

# Passthrough commands go to the plug in every mode; "never" is for bios.
# plug_load identifies the disk with a single command.
passthrough()
{
	local N=$N ng="/dev/ng${DISK#nvme}"

	[ -c "$ng" ] || { skip_case "no $ng"; return; }
	few "$1"
	set_fresh "$DISK" "$1" || return 1
	measure "$DISK" -u -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"$ng" || return
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($2 * N))
	expect_count "commands" "$COMMANDS" $((BATCH * N)) $((BATCH * N))
	expect_doorbells $(($2 * N))
	expect_tags "$DISK" $((BATCH * N))
}

admin_queue_is_listed()
{
	local file

	file=$DEBUGFS/nvme_plug/$(ctrl_of "$DISK")/doorbells
	grep -q '^queue 0 doorbells [0-9]* commands [0-9]*$' "$file" ||
		failed "expected a line for queue 0, saw '$(head -n 1 "$file")'"
	expect_text "lines of another form" \
		"$(grep -cv '^queue [0-9]* doorbells [0-9]* commands [0-9]*$' \
			"$file")" 0
}

each_disk()
{
	N=64
	#                                              mode  access bs   req grp look db
	check "$DISK: always, random 4K" counts        always    rand 4k   32  1  0  1
	check "$DISK: never, random 4K" counts         never     rand 4k   32  0  0 32
	check "$DISK: seq-small, random 4K" counts     seq-small rand 4k   32  4  0  4
	check "$DISK: adaptive, random 4K" counts      adaptive  rand 4k   32  1  0  1
	check "$DISK: always, sequential 4K" counts    always    seq  4k    1  1 31  1
	check "$DISK: never, sequential 4K" counts     never     seq  4k   32  0  0 32
	check "$DISK: seq-small, sequential 4K" counts seq-small seq  4k    1  1 31  1
	check "$DISK: adaptive, sequential 4K" counts  adaptive  seq  4k    1  1 31  1
	check "$DISK: always, passthrough" passthrough always 1
	check "$DISK: never, passthrough" passthrough never 1
	check "$DISK: seq-small, passthrough" passthrough seq-small 4
	check "$DISK: adaptive, passthrough" passthrough adaptive 1
	N=10
	check "$DISK: always, random 32K" counts       always    rand 32k  32  1  0  1
	check "$DISK: seq-small, random 32K" counts    seq-small rand 32k  32  8  0  8
	check "$DISK: adaptive, random 32K" counts     adaptive  rand 32k  32  1  0  1
	check "$DISK: always, random 128K" counts      always    rand 128k 32 32  0 32
	check "$DISK: never, random 128K" counts       never     rand 128k 32  0  0 32
	check "$DISK: seq-small, random 128K" counts   seq-small rand 128k 32 32  0 32
	check "$DISK: doorbells lists each queue" admin_queue_is_listed
}

require root knob debugfs profiler plug_load nvme
# shellcheck disable=SC2086 # a list
plan $((19 * $(count_words $NVME)))
for DISK in $NVME; do
	prepare "$DISK"
	each_disk
done
finish
