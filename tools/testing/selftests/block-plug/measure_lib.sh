# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What is counted of a load, and what to expect of it.

. "${0%/*}/disk_lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/load_lib.sh"
. "${0%/*}/trace_lib.sh"

# measure DISK ARG...: runs plug_load, and sets what came of it:
# REQUESTS MERGES LOOKUPS  requests, bios merged, bios that might have been:
#                          that adjoined the newest request, and were let to it
# TAG_BATCHES TAG_SINGLES  calls that took several tags, or one
# HELD_GROUPS              calls of ->queue_rqs()
# DOORBELLS COMMANDS       as nvme counts them
measure()
{
	local disk="$1" driver rc=0

	driver=$(driver_of "$disk")
	shift
	counters_before "$disk"
	profile_start blk_attempt_plug_merge blk_mq_get_tags blk_mq_get_tag \
		"${driver}_queue_rqs" "${driver}_queue_rq"
	load "$@" || rc=$?
	profile_end
	counters_after "$disk"
	# shellcheck disable=SC2034 # for who measures
	LOOKUPS=$(profile_hits blk_attempt_plug_merge)
	TAG_BATCHES=$(profile_hits blk_mq_get_tags)
	TAG_SINGLES=$(profile_hits blk_mq_get_tag)
	# shellcheck disable=SC2034 # likewise
	HELD_GROUPS=$(profile_hits "${driver}_queue_rqs")
	return $rc
}

counters_before()
{
	REQUESTS=$(requests_of "$1")
	MERGES=$(merges_of "$1")
	if is_nvme "$1"; then
		DOORBELLS=$(doorbells_of "$1" doorbells)
		COMMANDS=$(doorbells_of "$1" commands)
	fi
}

counters_after()
{
	REQUESTS=$(($(requests_of "$1") - REQUESTS))
	MERGES=$(($(merges_of "$1") - MERGES))
	if is_nvme "$1"; then
		DOORBELLS=$(($(doorbells_of "$1" doorbells) - DOORBELLS))
		COMMANDS=$(($(doorbells_of "$1" commands) - COMMANDS))
	fi
}

# expect_batches WHAT SEEN IDEAL: a count of groups, or of merged requests
#
# plug_load's timer ends a wait once a second, so that it may submit a partial
# batch: that makes one group more there, and one at the end.
expect_batches()
{
	expect_count "$1" "$2" "$3" $(($3 ? $3 + 3 : 0))
}

# expect_tag_calls LEAST MOST SINGLES [MOST]: LEAST to MOST of those that take a
# batch, and so many single tags
#
# As in expect_batches(), the timer may cut a batch in two, and leave one I/O
# alone. nvme passthrough identifies the disk with a single command.
expect_tag_calls()
{
	expect_count "calls for a batch of tags" "$TAG_BATCHES" \
		"$1" $(($2 + 3))
	expect_count "calls for a single tag" "$TAG_SINGLES" \
		"$3" $((${4:-$3} + 3))
}
