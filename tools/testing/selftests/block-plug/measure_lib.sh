# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# shellcheck disable=SC2034 # what is set here is for who measures
#
# What is counted of a load, and what to expect of it.

. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"

# measure DISK COMMAND...: runs it, and sets what came of it:
# REQUESTS MERGES LOOKUPS  requests, bios merged, bios that might have been:
#                          that adjoined the newest request, and were let to it
#                          (nothing, where that cannot be counted)
# TAG_BATCHES TAG_SINGLES  calls that took several tags, or one
# TAGS                     that were taken, whether used or not (on null_blk,
#                          which gives back each alone)
# HELD_GROUPS              calls of ->queue_rqs()
# DOORBELLS                as nvme counts them
measure()
{
	local disk="$1" driver rc=0

	driver=$(driver_of "$disk")
	shift
	REQUESTS=$(requests_of "$disk")
	MERGES=$(stat_field "$disk" 2 6)
	if is_nvme "$disk"; then
		count_doorbells "$disk"
		DOORBELLS=$(doorbells_of "$disk")
	fi
	profile_start blk_attempt_plug_merge blk_mq_get_tags blk_mq_get_tag \
		blk_mq_put_tag "${driver}_queue_rqs"
	"$@" || rc=$?
	profile_end
	REQUESTS=$(($(requests_of "$disk") - REQUESTS))
	MERGES=$(($(stat_field "$disk" 2 6) - MERGES))
	! is_nvme "$disk" || DOORBELLS=$(($(doorbells_of "$disk") - DOORBELLS))
	LOOKUPS=
	! has_profiler || LOOKUPS=$(profile_hits blk_attempt_plug_merge)
	TAG_BATCHES=$(profile_hits blk_mq_get_tags)
	TAG_SINGLES=$(profile_hits blk_mq_get_tag)
	TAGS=$(profile_hits blk_mq_put_tag)
	HELD_GROUPS=$(profile_hits "${driver}_queue_rqs")
	return $rc
}

# expect_batches WHAT SEEN IDEAL: a count of groups, or of merged requests
#
# plug_load's timer ends a wait once a second, so that it may submit a partial
# batch: that makes one group more there, and one at the end.
expect_batches()
{
	expect_count "$1" "$2" "$3" $(($3 ? $3 + 3 : 0))
}

# expect_requests WHAT SEEN I/Os IDEAL: where nothing merges, the count is exact
expect_requests()
{
	if [ "$4" -eq "$3" ]; then
		expect_count "requests $1" "$2" "$3"
	else
		expect_batches "requests $1" "$2" "$4"
	fi
}

# expect_lookups I/Os LEAST MOST
expect_lookups()
{
	[ -z "$LOOKUPS" ] ||
		expect_count "bios of $1 let to a request that they adjoin" \
			"$LOOKUPS" "$2" "$3"
}

# expect_counts [NAME=LEAST[:MOST]...]: of what measure() has set. With ~ for =,
# it may be three more: the timer may cut one I/O off, as in expect_batches(),
# and whoever opens a disk may read.
expect_counts()
{
	local word range seen slack

	for word; do
		slack=3
		[ "${word#*=}" = "$word" ] || slack=0
		range=${word#*[=~]}
		eval "seen=\$${word%%[=~]*}"
		expect_count "${word%%[=~]*}" "$seen" \
			$((${range%:*})) $((${range#*:} + slack))
	done
}

# --- a table of loads --------------------------------------------------------
#
# row DESCRIPTION "ATTRIBUTE=VALUE..." "COUNTS" COMMAND...: a case: a null_blk
# bp0 like this, and what is counted of a command, as expect_counts() has it;
# both may use N

N=50

row()
{
	check "$1" counted_row "$@"
}

counted_row()
{
	local disk="$2" counts="$3"

	shift 3
	# shellcheck disable=SC2086 # lists
	null_create bp0 $disk || return
	measure bp0 "$@" || return
	null_remove bp0
	# shellcheck disable=SC2086 # a list
	expect_counts $counts
}
