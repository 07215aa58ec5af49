# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of the plug statistics share, on top of lib.sh.

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

stats_reset()
{
	local file

	for file in "$DEBUGFS/block/$1"/hctx*/plug_stats; do
		echo 0 >"$file"
	done
}

# stats DISK NAME...: the sum of these counters over all hardware queues
stats()
{
	local disk="$1"

	shift
	cat "$DEBUGFS/block/$disk"/hctx*/plug_stats |
		awk -v names=" $* " 'index(names, " " $1 " ") { n += $2 }
			END { print n + 0 }'
}

# stats_like DISK PREFIX: likewise, of all whose name begins so
stats_like()
{
	cat "$DEBUGFS/block/$1"/hctx*/plug_stats |
		awk -v prefix="$2" 'index($1, prefix) == 1 { n += $2 }
			END { print n + 0 }'
}

# in_flight_is_0 DISK: of each hardware queue, not of their sum
in_flight_is_0()
{
	! grep -h '^in_flight' "$DEBUGFS/block/$1"/hctx*/plug_stats |
		grep -qv ' 0$'
}
