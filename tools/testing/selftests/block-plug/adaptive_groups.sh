#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: debugfs pins the group size of "adaptive", and refuses what is no
# size; plugs then send out groups of exactly that size, but for what is large,
# or shared with another disk. While merges are found, a full group waits for
# the next request that joins none.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=adaptive_lib.sh
. "${0%/*}/adaptive_lib.sh"

DISK=bp0
N=64

# A gap between the I/Os of submit_list, so that none merges.
STRIDE=$((1024 * 1024))

need_submit_list()
{
	need_program submit_list
}

# --- the file ---------------------------------------------------------------

expect_pin()
{
	expect_text "pinned" "$(adaptive_line $DISK pinned)" "$1"
	expect_text "group" "$(adaptive_line $DISK group)" "$2"
}

# Before it was ever on "adaptive" there is nothing to pin.
starts_off()
{
	expect_text "permissions" "$(stat -c %a "$FILE")" 600
	expect_text "what it says" "$(cat "$FILE")" "state off"
	ensure_write_fails "$FILE" 8 "it was never on adaptive" \
		"Operation not supported"
	ensure_write_fails "$FILE" 33 "a plug holds 32"
}

starts_as_always()
{
	local word

	set_mode $DISK adaptive || return 1
	expect_pin 0 32
	expect_text "lookup" "$(adaptive_line $DISK lookup)" 1
	expect_text "state" "$(adaptive_line $DISK state)" measure
	for word in ns ios ns_per_io response_ns flushes merged; do
		expect_text "sample_$word" \
			"$(adaptive_line $DISK sample_$word)" 0
	done
}

pins_each_size()
{
	local size=32

	set_mode $DISK adaptive || return 1
	while [ $size -gt 0 ]; do
		pin_group $DISK $size
		expect_pin $size $size
		size=$((size - 1))
	done
	pin_group $DISK 0
	expect_pin 0 32
}

# pins_later MODE: where it shows nothing, until "adaptive" is there
pins_later()
{
	local size

	for size in 1 7 32; do
		set_mode $DISK "$1" && pin_group $DISK $size || return 1
		expect_text "what it says on $1" "$(cat "$FILE")" "state off"
		set_mode $DISK adaptive || return 1
		expect_pin $size $size
	done
	pin_group $DISK 0
}

# Only the hardware queue that the file belongs to.
pins_one_queue()
{
	set_mode $DISK adaptive && pin_group $DISK 0 || return 1
	echo 4 >"$FILE"
	expect_text "group of hctx0" "$(adaptive_line $DISK group 0)" 4
	expect_text "group of hctx1" "$(adaptive_line $DISK group 1)" 32
	pin_group $DISK 0
}

# refuses REASON TEXT [ERROR], pinned or not
refuses()
{
	local size

	for size in 0 8; do
		pin_group $DISK $size
		ensure_write_fails "$FILE" "$2" "$1" "${3:-Invalid argument}"
	done
	pin_group $DISK 0
}

refuses_unprivileged()
{
	pin_group $DISK 0
	ensure_write_fails "$FILE" 8 "the writer is not root" \
		"Permission denied" as_nobody
}

# A pin is not of the mode, nor of what is learnt, but of the hardware queue.
outlives_the_mode()
{
	pin_group $DISK 8
	set_mode $DISK always && set_mode $DISK adaptive || return 1
	expect_pin 8 8
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * 1000)) /dev/$DISK
	expect_pin 8 8
	expect_text "state while pinned" "$(adaptive_line $DISK state)" measure
	pin_group $DISK 0
}

# A controller that decided nothing must say so. That bios do not merge is no
# decision on the size.
pinned_decides_no_size()
{
	set_mode $DISK adaptive && pin_group $DISK 4 || return 1
	trace_start blk_plug_policy:blk_plug_policy_decide \
		blk_plug_policy:blk_plug_policy_sample
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * 1000)) /dev/$DISK
	trace_end
	expect_text "decisions" "$(decisions | sort -u)" "4 4 measure"
	expect_text "lookup, where nothing merges" \
		"$(line_of $DISK lookup)" 0
	expect_count "samples" "$(grep -c policy_sample: "$TMP/trace")" 1 1000
}

each_pin_refusal()
{
	check "refuses 33" refuses "a plug holds 32" 33
	check "refuses -1" refuses "it is below 1" -1
	check "refuses 2^32" refuses "it does not fit" 4294967296 \
		"Numerical result out of range"
	check "refuses a word" refuses "it is no number" all
	check "refuses trailing text" refuses "text follows the number" 8x
	check "refuses two numbers" refuses "it is two numbers" "8 8"
	check "refuses a fraction" refuses "it is no whole number" 1.5
	check "refuses a newline only" refuses "there is no number" "$NEWLINE"
	check "refuses a blank" refuses "there is no number" " "
	check "refuses an unprivileged writer" refuses_unprivileged
}

# --- what plugs do ----------------------------------------------------------

# pinned SIZE LOAD-OPTION...: the disk, after it has seen from this load whether
# bios merge
pinned()
{
	set_fresh $DISK adaptive && pin_group $DISK "$1" || return 1
	shift
	sees $DISK "$@"
}

# counts SIZE ACCESS BS REQUESTS GROUPS LOOKUPS, per 32 I/Os of a batch
counts()
{
	pinned "$1" -a "$2" -b "$3" || return
	measure $DISK -a "$2" -b "$3" -s $BATCH -c $BATCH -d 128 \
		-n $((BATCH * N)) /dev/$DISK || return
	# one plug in 32 looks: as many I/Os as two plugs have
	expect_io $((BATCH * N)) $(($4 * N)) $(($5 * N)) $(($6 * N)) \
		$(($4 == BATCH ? 2 * N : 0))
	if [ "$4" -eq $BATCH ]; then
		expect_tags $DISK $((BATCH * N))
	fi
}

# traced SEEN SIZE NR...: the groups of a plug of 32, oldest first, that the
# policy sent out; the plug's end sends out the rest
traced()
{
	local first

	pinned "$2" -a "$1" || return
	shift 2
	trace_start blk_plug_policy:blk_plug_policy_group
	load -s $BATCH -c $BATCH -n $BATCH -d $BATCH /dev/$DISK
	trace_end
	first=$(sed -n 's/.*policy_group:.* nr=//p' "$TMP/trace" | tr '\n' ' ')
	expect_text "groups in the trace" "$first" "$*${1:+ }"
}

# ios SIZE COUNT: adds so many that do not merge to LIST; sizes in KiB
ios()
{
	local n="$2"

	while [ "$n" -gt 0 ]; do
		LIST="$LIST /dev/$DISK:$((NEXT * STRIDE)):$(($1 * 1024))"
		NEXT=$((NEXT + 1))
		n=$((n - 1))
	done
}

# run SIZE COUNT: likewise, of which each continues the one before
run()
{
	local n=0

	while [ $n -lt "$2" ]; do
		LIST="$LIST /dev/$DISK:$((NEXT * STRIDE + n * $1 * 1024)):$(($1 * 1024))"
		n=$((n + 1))
	done
	NEXT=$((NEXT + 1))
}

# plug SEEN GROUP REQUESTS GROUPS PART...: one plug of these parts, "ios 4 3" ...
# after random or sequential I/O
plug()
{
	local seen="$1" group="$2" requests="$3" groups="$4" part

	shift 4
	LIST=
	NEXT=0
	for part; do
		$part
	done
	pinned "$group" -a "$seen" || return
	REQUESTS=$(requests_of $DISK)
	profile_start null_queue_rqs
	# shellcheck disable=SC2086 # a list
	$PIN submit_list $LIST || failed "submit_list: exit $?"
	profile_end
	expect_count "requests" $(($(requests_of $DISK) - REQUESTS)) \
		"$requests" "$requests"
	expect_count "calls of queue_rqs()" "$(profile_hits null_queue_rqs)" \
		"$groups" "$groups"
}

# Nothing merges, and "always" would hold 32 of any size.
large_without_merges()
{
	set_attr /sys/block/$DISK/queue/nomerges 2 &&
	plug seq 32 "$@"
	set_attr /sys/block/$DISK/queue/nomerges 0
}

# A size of nomerges=2 is that of random I/O, whatever the I/O is.
sequential_without_merges()
{
	set_attr /sys/block/$DISK/queue/nomerges 2 &&
	counts 8 seq 4k 32 4 0
	set_attr /sys/block/$DISK/queue/nomerges 0
}

# two_disks MODE REQUESTS GROUPS: a plug of 16 for each, which take turns
two_disks()
{
	local other

	set_mode $DISK adaptive && pin_group $DISK 4 &&
	set_mode bp1 "$1" && pin_group bp1 4 || return 1
	other=$(requests_of bp1)
	measure $DISK -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		/dev/$DISK /dev/bp1 || return
	expect_count "requests of the other" \
		$(($(requests_of bp1) - other)) $(($2 * N)) $(($2 * N))
	expect_count "requests" "$REQUESTS" $((16 * N)) $((16 * N))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($3 * N))
}

# doorbells DISK SIZE GROUPS, per batch of random 4K
doorbells()
{
	set_mode "$1" adaptive && pin_group "$1" "$2" || return 1
	measure "$1" -s $BATCH -c $BATCH -d 128 -n $((BATCH * N)) \
		"/dev/$1" || return
	expect_count "commands" "$COMMANDS" $((BATCH * N)) $((BATCH * N))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $(($3 * N))
	expect_doorbells "$1" $(($3 * N))
}

each_nvme()
{
	local disk

	for disk in $NVME_DISKS; do
		prepare "$disk"
		check "$disk: 1 rings 32 doorbells"  doorbells "$disk"  1 32
		check "$disk: 8 rings 4 doorbells"   doorbells "$disk"  8  4
		check "$disk: 32 rings one doorbell" doorbells "$disk" 32  1
		pin_group "$disk" 0
	done
}

# One of them was never on "adaptive".
make_disks()
{
	null_create $DISK && null_create bp1 && set_mode bp1 adaptive
}

NEWLINE='
'
FILE=$DEBUGFS/block/$DISK/hctx0/plug_adaptive
require root knob debugfs profiler trace plug_load submit_list \
	as_nobody taskset null_blk
make_disks || ktap_exit_fail_msg "cannot create the disks"
NVME_DISKS=$(nvme_if_any)
# shellcheck disable=SC2086 # a list
plan $((71 + 3 * $(count_words $NVME_DISKS)))

check "a new disk shows and takes nothing" starts_off
check "adaptive starts as always" starts_as_always
check "takes each size" pins_each_size
for mode in always never seq-small; do
	check "takes a size on $mode, for later" pins_later $mode
done
check "takes a size for one hardware queue" pins_one_queue
each_pin_refusal
check "a pin outlives the mode" outlives_the_mode
check "with a pin no size is decided" pinned_decides_no_size

# Where nothing merges, the first bio of a plug looks, which costs nothing.
#                                        size access bs  req grp look
check "1: random 4K" counts                 1 rand 4k    32  32  1
check "2: random 4K" counts                 2 rand 4k    32  16  1
check "4: random 4K" counts                 4 rand 4k    32   8  1
check "8: random 4K" counts                 8 rand 4k    32   4  1
check "16: random 4K" counts               16 rand 4k    32   2  1
check "32: random 4K" counts               32 rand 4k    32   1  1
check "3: random 4K, and a rest" counts     3 rand 4k    32  11  1
check "31: random 4K, and a rest" counts   31 rand 4k    32   2  1
check "1: sequential 4K merges" counts      1 seq  4k     1   1 32
check "2: sequential 4K merges" counts      2 seq  4k     1   1 32
check "4: sequential 4K merges" counts      4 seq  4k     1   1 32
check "8: sequential 4K merges" counts      8 seq  4k     1   1 32
check "16: sequential 4K merges" counts    16 seq  4k     1   1 32
check "32: sequential 4K merges" counts    32 seq  4k     1   1 32
check "1: sequential 32K merges" counts     1 seq  32k    2   2 32
check "8: sequential 32K merges" counts     8 seq  32k    2   2 32
check "1: sequential 64K merges" counts     1 seq  64k    4   4 32
check "8: sequential 64K merges" counts     8 seq  64k    4   4 32
check "8: sequential 4K, nomerges=2" sequential_without_merges
check "1: random 128K goes out singly" counts  1 rand 128k 32 32 1

ONES="1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
TWOS="2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"
# shellcheck disable=SC2086 # lists
{
	check "1 is traced" unless_probed traced rand 1 $ONES 1
	check "2 is traced" unless_probed traced rand 2 $TWOS 2
	check "1 is traced, the last one waits" traced seq 1 $ONES
	check "2 is traced, the last ones wait" traced seq 2 $TWOS
}
check "8 is traced" unless_probed traced rand 8 8 8 8 8
check "8 is traced, the last ones wait" traced seq 8 8 8 8
check "12 is traced, and what the plug's end sends out is not" \
	unless_probed traced rand 12 12 12
check "32 is not the policy's" traced rand 32
check "32 is not the policy's, either" traced seq 32

# While merges are found.
#                                         seen size req grp
check "4: sequential behind random" plug  seq  4  17  5 "ios 4 16" "run 4 16"
check "32: sequential behind random" plug seq 32  17  1 "ios 4 16" "run 4 16"
check "2: sequential behind random" plug  seq  2  17  9 "ios 4 16" "run 4 16"
check "8: random behind sequential" plug  seq  8  17  3 "run 4 16" "ios 4 16"
check "4: random, sequential, random" plug seq 4   7  2 "ios 4 2" "run 4 8" \
	"ios 4 4"
check "1: a run after singles merges" plug seq 1   4  4 "ios 4 3" "run 4 8"
check "1: a plug of three" plug		  seq  1   3  3 "ios 4 3"
check "8: the size of requests does not count" \
	plug				  seq  8   9  2 "ios 4 4" "ios 64 3" \
	"ios 124 2"
check "8: a large one ends a group" plug  seq  8   8  2 "ios 4 3" "ios 128 1" \
	"ios 4 4"
check "8: a large one is the first" plug  seq  8  12  3 "ios 128 1" "ios 4 11"
check "32: large ones leave with what is held" \
	plug				  seq 32   8  3 "ios 4 4" "ios 128 2" \
	"ios 4 2"
check "32: large ones are held without merges, as under always" \
	large_without_merges			   8  1 "ios 128 8"
check "8: two runs are two requests" plug seq  8   2  1 "run 4 8" "run 4 8"
check "1: two runs are two requests" plug seq  1   2  2 "run 4 8" "run 4 8"

# While none are found, none look.
check "1: random, a run does not merge" unless_probed \
	plug				  rand 1  11 11 "ios 4 3" "run 4 8"
check "4: random, sequential, random, where none merged" unless_probed \
	plug				  rand 4  14  4 "ios 4 2" "run 4 8" \
	"ios 4 4"
check "8: runs do not merge" unless_probed \
	plug				  rand 8  16  2 "run 4 8" "run 4 8"
check "32: runs do not merge, and are held" unless_probed \
	plug				  rand 32 16  1 "run 4 8" "run 4 8"

check "two disks on always" mixed_groups $DISK bp1 $N
check "4: with a disk on always, all is held" two_disks always 16 "$MIXED"
check "4: with a disk on adaptive, all is held" \
	two_disks adaptive 16 "$MIXED"
check "4: with a disk on seq-small, all is held" \
	two_disks seq-small 16 "$MIXED"
check "4: with a disk on never, groups of 4" two_disks never 16 4
each_nvme
finish
