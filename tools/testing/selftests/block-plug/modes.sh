#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: each mode looks for merges, merges and holds as documented, takes
# its tags in batches, and, on nvme, rings the doorbell once per group of the
# documented size, for block I/O and for passthrough commands; with nomerges=2
# none merges, or looks for a merge.

. "${0%/*}/groups_lib.sh"

PIN="taskset 1"

# sized MODE I/Os GROUPS: plugs of so many. With fewer than 32, nothing but the
# end of the submission ends the hold; 64 are held until 32, sent, and held
# again.
sized()
{
	set_fresh "$DISK" "$1" &&
	measure "$DISK" plugs "$2" "$DISK" 10 || return
	expect_counts "HELD_GROUPS~$3*10"
}

# in_mode WHAT COMMAND MODE ARG...
each()
{
	local what="$1" command="$2"

	shift 2
	check "$DISK: $1, $what" "$command" "$@"
}

# "adaptive" begins with 32, and tries no other size within 1000 requests.
each_disk()
{
	local mode

	#                   mode      access bs   req grp look
	for mode in always adaptive; do
		each "random 4K"       mode_counts $mode rand 4k   32  1  0
		each "sequential 4K"   mode_counts $mode seq  4k    1  1 31
		each "random 64K"      mode_counts $mode rand 64k  32  1  0
	done
	each "random 128K"     mode_counts always    rand 128k 32 32  0
	each "random 128K"     mode_counts adaptive  rand 128k 32  1  0
	each "sequential 64K"  mode_counts always    seq  64k   4  4 31
	each "sequential 64K"  mode_counts adaptive  seq  64k   4  1 31
	each "random 4K"       mode_counts seq-small rand 4k   32  4  0
	each "random 16K"      mode_counts seq-small rand 16k  32  4  0
	each "random 20K"      mode_counts seq-small rand 20k  32  6  0
	each "random 32K"      mode_counts seq-small rand 32k  32  8  0
	each "random 64K"      mode_counts seq-small rand 64k  32 16  0
	each "random 128K"     mode_counts seq-small rand 128k 32 32  0
	each "sequential 4K"   mode_counts seq-small seq  4k    1  1 31
	each "sequential 64K"  mode_counts seq-small seq  64k   4  4 31
	each "random 4K"       mode_counts never     rand 4k   32  0  0
	each "random 128K"     mode_counts never     rand 128k 32  0  0
	each "sequential 4K"   mode_counts never     seq  4k   32  0  0
	#                    mode      I/Os groups
	each "5 to a plug"     sized always     5  1
	each "5 to a plug"     sized adaptive   5  1
	each "5 to a plug"     sized seq-small  5  1
	each "5 to a plug"     sized never      5  0
	each "64 to a plug"    sized always    64  2
	each "64 to a plug"    sized adaptive  64  2
	each "64 to a plug"    sized seq-small 64  8
	each "64 to a plug"    sized never     64  0
}

require root knob debugfs counts plug_load fio taskset null_blk nvme_if_any
plan $((29 + 8 + 33 * $(count_words "$NVME")))
must null_create bp0
for DISK in bp0 $NVME; do
	each_disk
	is_nvme "$DISK" || continue
	each "passthrough" passthrough always 1
	each "passthrough" passthrough never 1
	each "passthrough" passthrough seq-small 4
	each "passthrough" passthrough adaptive 1
done
DISK=bp0
for row in "2 always    32  1  0" "2 never     32  0  0" \
	   "2 seq-small 32  4  0" "2 adaptive  32  1  0" \
	   "1 always     1  1 31" "1 never     32  0  0" \
	   "1 seq-small  1  1 31" "1 adaptive   1  1 31"; do
	# shellcheck disable=SC2086 # nomerges, mode, req, grp, look
	set -- $row
	check "$2, nomerges=$1" with_nomerges "$1" \
		mode_counts "$2" seq 4k "$3" "$4" "$5"
done
finish
