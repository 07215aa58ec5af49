# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of the groups that a mode sends out share.

. "${0%/*}/policy_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/measure_lib.sh"

# mixed_groups DISK OTHER N: sets MIXED to the number of groups in which a plug
# of two disks on "always" is sent out: one for each, in older kernels none
mixed_groups()
{
	set_mode "$1" always && set_mode "$2" always &&
	measure "$1" batches "$1" "$3" "/dev/$2" || return
	MIXED=$((HELD_GROUPS ? 2 : 0))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $((MIXED * $3))
}

# expect_io I/Os REQUESTS GROUPS LOOKUPS: what measure() saw
expect_io()
{
	if [ "$2" -eq "$1" ]; then
		expect_count "requests for $1 I/Os" "$REQUESTS" "$1" "$1"
	else
		expect_batches "requests for $1 I/Os" "$REQUESTS" "$2"
	fi
	expect_count "I/Os merged" "$MERGES" \
		$(($1 - REQUESTS)) $(($1 - REQUESTS))
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

# random_io DISK [passthrough] N: batches of 4K, as commands of a program or as
# I/O
random_io()
{
	local ng="/dev/ng${1#nvme}"

	if [ -z "$2" ]; then
		batches "$1" "$3"
	elif [ -c "$ng" ]; then
		fio_plugs io_uring_cmd $BATCH "$ng" "$3" --cmd_type=nvme \
			--direct=0
	else
		skip_case "no $ng"
	fi
}

# expect_doorbells IDEAL
#
# With shadow doorbells a write is left out where the controller is awake.
expect_doorbells()
{
	expect_count "doorbells for $COMMANDS commands" "$DOORBELLS" \
		$(($1 * 9 / 10)) $(($1 + 3))
}
