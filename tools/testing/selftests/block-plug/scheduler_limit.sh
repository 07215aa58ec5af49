#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a write does not get past an I/O scheduler's limit for writes by
# using a tag that was taken ahead for reads.
#
# Reproducer: any I/O of a plug used the requests that its first I/O had
# allocated. The limit is applied when a tag is taken, one at a time.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

need_kyber()
{
	null_create bp0 || { missing "cannot create a null_blk"; return; }
	use_kyber bp0
}

# single_tags READS: of as many reads, and writes up to 32 I/Os; sets SINGLES
single_tags()
{
	local list='' n=0 write

	while [ $n -lt 32 ]; do
		[ $n -lt "$1" ] && write= || write=:write
		list="$list /dev/bp0:$((n * 65536)):4096$write"
		n=$((n + 1))
	done
	profile_start blk_mq_get_tag
	# shellcheck disable=SC2086 # a list
	submit_list $list || failed "submit_list: exit $?"
	profile_end
	SINGLES=$(profile_hits blk_mq_get_tag)
}

# Older kybers do so for buffered writes only.
need_limit()
{
	single_tags 0
	[ "$SINGLES" -ge 30 ] || missing "kyber does not limit direct writes"
}

# The second read may take tags for all I/Os after it, which are writes.
writes_after_reads()
{
	single_tags 2
	expect_count "single tags for 2 reads and 30 writes" "$SINGLES" 30 35
}

require root profiler null_blk kyber
command -v submit_list >/dev/null || missing "no program submit_list"
require
need_limit
require
plan 1
check "reads, then writes, in one plug" writes_after_reads
finish
