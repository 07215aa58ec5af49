#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: debugfs pins the group size of "adaptive", and refuses what is no
# size; plugs then send out groups of exactly that size, however large requests
# are. A full group waits for the next request that joins none.

. "${0%/*}/groups_lib.sh"
. "${0%/*}/adaptive_lib.sh"

DISK=bp0

FIELDS="group pinned from trial samples_parked plug_fill epoch sample_ns \
sample_requests sample_flushes sample_in_flight "

# --- the file ---------------------------------------------------------------

expect_pin()
{
	expect_text pinned "$(adaptive_line "$DISK" pinned)" "$1"
	expect_text group "$(adaptive_line "$DISK" group)" "$2"
}

starts_unpinned()
{
	set_mode "$DISK" adaptive || return 1
	expect_text "permissions" "$(stat -c %a "$FILE")" 600
	expect_pin 0 32
	ensure_write_fails "$FILE" 33 "a plug holds 32"
	echo 0 >"$FILE"
	expect_pin 0 32
	expect_text "lines" "$(cut -d ' ' -f 1 "$FILE" | tr '\n' ' ')" \
		"$FIELDS"
}

# In each mode, for when "adaptive" comes.
pins_sizes()
{
	local size

	set_mode "$DISK" "$1" || return 1
	for size in 32 31 8 1; do
		pin_group "$DISK" $size
		expect_pin 1 $size
	done
	set_mode "$DISK" adaptive
	expect_pin 1 1
	pin_group "$DISK" 0
	expect_pin 0 32
}

# Only the hardware queue that the file belongs to.
pins_one_queue()
{
	set_mode "$DISK" adaptive && pin_group "$DISK" 0 || return 1
	echo 4 >"$FILE"
	expect_text "group of hctx0" "$(adaptive_line "$DISK" group 0)" 4
	expect_text "group of hctx1" "$(adaptive_line "$DISK" group 1)" 32
	pin_group "$DISK" 0
}

# refuses REASON TEXT [ERROR], pinned or not
refuses()
{
	local size

	for size in 0 8; do
		pin_group "$DISK" $size
		ensure_write_fails "$FILE" "$2" "$1" "${3:-Invalid argument}"
	done
	pin_group "$DISK" 0
}

# A pin is not of the mode, nor of what is learnt, but of the hardware queue.
outlives_the_mode()
{
	set_mode "$DISK" adaptive && pin_group "$DISK" 8 &&
	set_mode "$DISK" always && set_mode "$DISK" adaptive || return 1
	expect_pin 1 8
	sampled batches "$DISK" 1000 || return
	expect_text "sizes in force" "$(samples group | sort -u)" 8
	expect_pin 1 8
	pin_group "$DISK" 0
}

# --- what plugs do ----------------------------------------------------------

# plug SIZE REQUESTS GROUPS RUN...: one plug
plug()
{
	local requests="$2" groups="$3" first="$4"

	set_fresh "$DISK" "$1" || return
	shift 4
	measure "$DISK" submit "$DISK:$first" "$@" || return
	expect_counts "REQUESTS=$requests" "HELD_GROUPS=$groups"
}

NEWLINE='
'
FILE=$DEBUGFS/block/$DISK/hctx0/plug_adaptive
require root knob debugfs counts trace plug_load submit_list as_nobody \
	taskset null_blk nvme_if_any
must null_create "$DISK"
plan $((36 + 4 * $(count_words "$NVME")))

check "is unpinned on a new disk, and takes 0" starts_unpinned
for mode in always never seq-small adaptive; do
	check "takes sizes on $mode" pins_sizes $mode
done
check "takes a size for one hardware queue" pins_one_queue
check "refuses 33" refuses "a plug holds 32" 33
check "refuses -1" refuses "it is below 1" -1
check "refuses 2^32" refuses "it does not fit" 4294967296 \
	"Numerical result out of range"
check "refuses a word" refuses "it is no number" all
check "refuses trailing text" refuses "text follows the number" 8x
check "refuses a newline only" refuses "there is no number" "$NEWLINE"
check "refuses an unprivileged writer" ensure_write_fails "$FILE" 8 \
	"the writer is not root" "Permission denied" as_nobody
check "a pin outlives the mode, and what is learnt" outlives_the_mode

#         size access bs req grp look
for row in "1  rand 4k   32 32  0" "32 rand 4k   32  1  0" \
	   "3  rand 4k   32 11  0" "31 rand 4k   32  2  0" \
	   "1  seq  4k    1  1 31" "8  seq  4k    1  1 31" \
	   "8  seq  64k   4  1 31" "8  rand 128k 32  4  0"; do
	# shellcheck disable=SC2086 # a row
	set -- $row
	check "$1: $2 $3" mode_counts "$@"
done
check "8: seq 4k, nomerges=2" with_nomerges 2 mode_counts 8 seq 4k 32 4 0

#                                          size req grp
check "4: sequential behind random" plug      4  17  5 0:4k*16+1m 16m:4k*16
check "32: sequential behind random" plug    32  17  1 0:4k*16+1m 16m:4k*16
check "2: sequential behind random" plug      2  17  9 0:4k*16+1m 16m:4k*16
check "8: random behind sequential" plug      8  17  3 0:4k*16 1m:4k*16+1m
check "4: random, sequential, random" plug    4   7  2 0:4k*2+1m 2m:4k*8 \
	3m:4k*4+1m
check "1: a run after singles merges" plug    1   4  4 0:4k*3+1m 3m:4k*8
check "1: a plug of three" plug		      1   3  3 0:4k*3+1m
check "8: the size of requests does not count" \
	plug				      8   9  2 0:4k*4+1m 4m:64k*3+1m \
	7m:124k*2+1m
check "8: a large one ends no group" plug     8   8  1 0:4k*3+1m 3m:128k \
	4m:4k*4+1m
check "8: a large one is the first" plug      8  12  2 0:128k 1m:4k*11+1m
check "32: large ones are held as small ones are" \
	plug				     32   8  1 0:4k*4+1m 4m:128k*2+1m \
	6m:4k*2+1m
check "8: two runs are two requests" plug     8   2  1 0:4k*8 1m:4k*8
check "1: two runs are two requests" plug     1   2  2 0:4k*8 1m:4k*8
for DISK in $NVME; do
	for size in 1 8 32; do
		check "$DISK: $size, doorbells of 32" \
			mode_counts $size rand 4k 32 $((32 / size)) 0
	done
	check "$DISK: 4 rings 8 doorbells, passthrough" passthrough 4 8
done
finish
