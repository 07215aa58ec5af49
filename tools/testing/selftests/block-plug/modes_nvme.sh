#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: on nvme, each mode rings the doorbell once per group of the
# documented size, for block I/O and for passthrough commands.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

says()
{
	set_mode "$DISK" "$1" && expect_effect "$DISK" "$1" "$1 (as set)" "$2"
}

# counts MODE ACCESS BS REQUESTS GROUPS LOOKUPS DOORBELLS, per 32 I/Os of a batch
#
# "adaptive" begins with groups of 32, and knows soon whether bios merge.
counts()
{
	set_fresh "$DISK" "$1" || return 1
	[ "$1" != adaptive ] || sees "$DISK" -a "$2" -b "$3" || return
	measure "$DISK" -a "$2" -b "$3" -s $BATCH -c $BATCH -d 128 \
		-n $((BATCH * N)) "/dev/$DISK" || return
	expect_io $((BATCH * N)) $(($4 * N)) $(($5 * N)) $(($6 * N)) \
		$(($6 == 1 ? N + BATCH : 0))
	expect_count "commands for $REQUESTS requests" "$COMMANDS" \
		"$REQUESTS" "$REQUESTS"
	expect_doorbells "$DISK" $(($7 * N))
	if [ "$4" -eq $BATCH ]; then
		expect_tags "$DISK" $((BATCH * N))
	fi
}

# Passthrough commands go to the plug in every mode: a group of one is what
# "never" makes of them. plug_load identifies the disk with a single command.
passthrough()
{
	local ng="/dev/ng${DISK#nvme}"

	[ -c "$ng" ] || { skip_case "no $ng"; return; }
	set_fresh "$DISK" "$1" || return 1
	measure "$DISK" -u -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"$ng" || return
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($2 * N))
	expect_count "commands" "$COMMANDS" $((BATCH * N)) $((BATCH * N))
	expect_doorbells "$DISK" $(($2 * N))
	expect_tags "$DISK" $((BATCH * N))
}

# The counters stand still when they are told to.
counting_stops()
{
	set_attr "$COUNTING" 0 || return 1
	COMMANDS=$(doorbells_of "$DISK" commands)
	load -s $BATCH -c $BATCH -n $((BATCH * 4)) "/dev/$DISK"
	expect_text "commands counted" "$(doorbells_of "$DISK" commands)" \
		"$COMMANDS"
	ensure_write_fails "$COUNTING" 2 "it is a switch"
	set_attr "$COUNTING" 1
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
	check "$DISK: always says so in debugfs" says always "all (as set)"
	check "$DISK: never says so in debugfs" says never "none (as set)"
	check "$DISK: seq-small says so in debugfs" \
		says seq-small "small sequential (as set)"
	check "$DISK: adaptive says so in debugfs" \
		says adaptive "while found (as set)"
	#                                              mode  access bs   req grp look db
	check "$DISK: always, random 4K" counts        always    rand 4k   32  1 32  1
	check "$DISK: never, random 4K" counts         never     rand 4k   32  0  0 32
	check "$DISK: seq-small, random 4K" counts     seq-small rand 4k   32  4  4  4
	check "$DISK: adaptive, random 4K" counts      adaptive  rand 4k   32  1  1  1
	check "$DISK: always, sequential 4K" counts    always    seq  4k    1  1 32  1
	check "$DISK: never, sequential 4K" counts     never     seq  4k   32  0  0 32
	check "$DISK: seq-small, sequential 4K" counts seq-small seq  4k    1  1 32  1
	check "$DISK: adaptive, sequential 4K" counts  adaptive  seq  4k    1  1 32  1
	check "$DISK: always, passthrough" passthrough always 1
	check "$DISK: never, passthrough" passthrough never 32
	check "$DISK: seq-small, passthrough" passthrough seq-small 4
	check "$DISK: adaptive, passthrough" passthrough adaptive 1
	N=10
	check "$DISK: always, random 32K" counts       always    rand 32k  32  1 32  1
	check "$DISK: seq-small, random 32K" counts    seq-small rand 32k  32  8  8  8
	check "$DISK: adaptive, random 32K" counts     adaptive  rand 32k  32  1  1  1
	check "$DISK: always, random 128K" counts      always    rand 128k 32 32 32 32
	check "$DISK: never, random 128K" counts       never     rand 128k 32  0  0 32
	check "$DISK: seq-small, random 128K" counts   seq-small rand 128k 32 32  0 32
	check "$DISK: counting can be switched off" counting_stops
	check "$DISK: doorbells lists each queue" admin_queue_is_listed
}

COUNTING=$DEBUGFS/nvme_plug/counting
require root knob debugfs profiler plug_load taskset nvme
# shellcheck disable=SC2086 # a list
plan $((24 * $(count_words $NVME)))
for DISK in $NVME; do
	prepare "$DISK"
	each_disk
done
finish
