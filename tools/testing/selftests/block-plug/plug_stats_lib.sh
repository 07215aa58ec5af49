# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of the plug statistics share.

. "${0%/*}/null_blk_lib.sh"

stats_switch()
{
	echo "$DEBUGFS/block/$1/plug_stats_enabled"
}

need_plug_stats()
{
	ls "$DEBUGFS"/block/*/plug_stats_enabled >/dev/null 2>&1 && return
	# There may be no disk yet that could have the file.
	if null_create bphas >/dev/null 2>&1; then
		[ -e "$(stats_switch bphas)" ] ||
			missing "no plug_stats_enabled (CONFIG_BLK_PLUG_STAT)"
		null_remove bphas
		return
	fi
	missing "no plug_stats_enabled (CONFIG_BLK_PLUG_STAT)"
}

# stats_start DISK: what stats() tells is since then
stats_start()
{
	cat "$DEBUGFS/block/$1"/hctx*/plug_stats >"$TMP/stats.$1"
}

# stats DISK NAME...: the sum of these counters over all hardware queues
stats()
{
	local disk="$1" start="$TMP/stats.$1"

	shift
	[ -e "$start" ] || : >"$start"
	awk -v names=" $* " -v start="$start" '
		index(names, " " $1 " ") { n += FILENAME == start ? -$2 : $2 }
		END { print n + 0 }' \
		"$start" "$DEBUGFS/block/$disk"/hctx*/plug_stats
}

# stats_flushes DISK: for whatever reason
stats_flushes()
{
	stats "$1" flush_full flush_policy flush_finish flush_schedule
}

# stats_no_batch DISK: likewise
stats_no_batch()
{
	stats "$1" no_batch_shared no_batch_depth no_batch_busy \
		no_batch_scheduler
}
