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
	some_disk "ls $DEBUGFS/block/*/plug_stats_enabled" ||
		missing "no plug_stats_enabled (CONFIG_BLK_PLUG_STAT)"
}

# stats_start DISK: what stats() tells is since then
stats_start()
{
	cat "$DEBUGFS/block/$1"/hctx*/plug_stats >"$TMP/stats.$1"
}

# stats_read DISK: sets a variable of its name to what each counter has counted
# since then, over all hardware queues; and "refused" to the refused batches, for
# whatever reason
stats_read()
{
	eval "$(awk '
		{ nr[$1] += FILENAME == ARGV[1] ? -$2 : $2 }
		END {
			for (name in nr)
				print name "=" nr[name]
			print "refused=" nr["no_batch_shared"] \
				+ nr["no_batch_depth"] + nr["no_batch_busy"] \
				+ nr["no_batch_scheduler"]
		}' "$TMP/stats.$1" "$DEBUGFS/block/$1"/hctx*/plug_stats)"
}
