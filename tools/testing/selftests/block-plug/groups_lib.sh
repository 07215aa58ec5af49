# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of the groups that a mode sends out share.

. "${0%/*}/policy_lib.sh"
. "${0%/*}/measure_lib.sh"

# expect_io I/Os REQUESTS GROUPS LOOKUPS: what measure() saw
expect_io()
{
	expect_requests "for $1 I/Os" "$REQUESTS" "$1" "$2"
	expect_count "I/Os merged" "$MERGES" $(($1 - REQUESTS))
	expect_batches "calls of queue_rqs() for $REQUESTS requests" \
		"$HELD_GROUPS" "$3"
	expect_lookups "$1" $(($4 ? $4 - 3 : 0)) "$4"
}

# expect_tags DISK I/Os: in plugs of 32, all tags in a batch
#
# A call takes what is free in one word of the tag bitmap, which has 64 here.
# All are free on null_blk, which completes I/O as it is issued: one call. On
# nvme 96 others may be in flight, so that up to four words are needed, of which
# the last may have to give just one.
expect_tags()
{
	local plugs=$(($2 / BATCH)) words=1 singles=0

	! is_nvme "$1" || { words=4; singles=$((plugs / 2)); }
	expect_counts "TAG_BATCHES~$plugs:$((words * plugs))" \
		"TAG_SINGLES~0:$singles"
}

# expect_doorbells IDEAL
#
# With shadow doorbells a write is left out where the controller is awake.
expect_doorbells()
{
	expect_count "doorbells" "$DOORBELLS" \
		$(($1 * 9 / 10)) $(($1 + 3))
}

# mode_counts MODE|SIZE ACCESS BS REQUESTS GROUPS LOOKUPS, of DISK, per 32 I/Os
# of a batch
mode_counts()
{
	local n=20

	# shellcheck disable=SC2153 # who sources this sets DISK
	set_fresh "$DISK" "$1" || return 1
	measure "$DISK" batches "$DISK" $n -a "$2" -b "$3" || return
	expect_io $((BATCH * n)) $(($4 * n)) $(($5 * n)) $(($6 * n))
	[ "$4" -ne "$BATCH" ] || expect_tags "$DISK" $((BATCH * n))
	! is_nvme "$DISK" || expect_doorbells $((($5 ? $5 : $4) * n))
}

# with_nomerges VALUE COMMAND...
with_nomerges()
{
	set_attr "/sys/block/$DISK/queue/nomerges" "$1" || return 1
	shift
	"$@"
	set_attr "/sys/block/$DISK/queue/nomerges" 0
}

# passthrough MODE|SIZE GROUPS, of DISK, per 32 commands. They go to the plug in
# every mode; "never" is for bios. How many tags a plug uses is known after a
# first one.
passthrough()
{
	local n=20 ng="/dev/ng${DISK#nvme}"

	[ -c "$ng" ] || { skip_case "no $ng"; return; }
	set_fresh "$DISK" "$1" && nvme_commands "$ng" 1 &&
	measure "$DISK" nvme_commands "$ng" $n || return
	expect_counts "HELD_GROUPS~$2*$n"
	expect_doorbells $(($2 * n))
	expect_tags "$DISK" $((BATCH * n))
}

nvme_commands()
{
	fio_plugs io_uring_cmd $BATCH "$1" "$2" --cmd_type=nvme --direct=0
}
