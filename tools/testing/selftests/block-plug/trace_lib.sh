# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests see of the kernel at work: how often it called a function, and
# trace events.

. "${0%/*}/lib.sh"

TRACEFS=/sys/kernel/tracing

# --- calls of functions ----------------------------------------------------
#
# The function profiler counts them. Where a kernel has none, as User Mode
# Linux, the plug statistics count some of the same, as plug_stats.sh tests:
# need_counts is for who asks for no others.

need_counts()
{
	if has_profiler ||
	   [ ! -d "$TRACEFS/events/block/block_tag_batch_refused" ]; then
		need_profiler
	fi
}

has_profiler()
{
	[ -e "$TRACEFS/function_profile_enabled" ]
}

need_profiler()
{
	[ -e "$TRACEFS/function_profile_enabled" ] || {
		missing "no function profiler (tracefs, CONFIG_FUNCTION_PROFILER)"
		return
	}
	# It has one filter, which may be somebody else's.
	if [ "$(cat "$TRACEFS/function_profile_enabled")" -ne 0 ] ||
	   ! grep -q '^nop$' "$TRACEFS/current_tracer"; then
		missing "somebody is tracing functions"
	fi
}

# profile_start FUNCTION...: counts their calls from now on
profile_start()
{
	has_profiler || { stats_count 1; stats_now >"$TMP/before"; return; }
	[ "$(cat "$TMP/profiling" 2>/dev/null)" = "$*" ] || profile_filter "$@"
	# Switching on is what sets the counts to 0.
	echo 1 >"$TRACEFS/function_profile_enabled"
}

profile_filter()
{
	local function

	at_exit profile_stop
	echo "$*" >"$TMP/profiling"
	echo 0 >"$TRACEFS/function_profile_enabled"
	echo >"$TRACEFS/set_ftrace_filter"
	for function; do
		(echo "$function" >>"$TRACEFS/set_ftrace_filter") \
			2>/dev/null ||
			failed "$function() cannot be counted by ftrace"
	done
}

# profile_end: the counts stand still; profile_hits tells them
profile_end()
{
	has_profiler || { stats_profile; return; }
	echo 0 >"$TRACEFS/function_profile_enabled"
	cat "$TRACEFS"/trace_stat/function* >"$TMP/profile"
}

profile_hits()
{
	awk -v f="$1" '$1 == f { n += $2 } END { print n + 0 }' "$TMP/profile"
}

profile_stop()
{
	echo 0 >"$TRACEFS/function_profile_enabled"
	echo >"$TRACEFS/set_ftrace_filter"
}

# stats_count 1|0: switches the counting of all disks on or off
stats_count()
{
	local file

	for file in "$DEBUGFS"/block/*/plug_stats_enabled; do
		echo "$1" >"$file"
	done
}

stats_now()
{
	cat "$DEBUGFS"/block/*/hctx*/plug_stats
}

# The profile that the statistics make.
stats_profile()
{
	stats_count 0
	stats_now | awk '
		{ nr[$1] += FILENAME == "-" ? $2 : -$2 }
		END {
			print "blk_mq_get_tags", nr["tag_batches"]
			print "blk_mq_get_tag", nr["tags_single"]
			print "blk_mq_put_tag", \
				nr["tags_single"] + nr["tags_batched"]
			print "null_queue_rqs", nr["flushes"]
		}' "$TMP/before" - >"$TMP/profile"
}

# --- trace events ----------------------------------------------------------

need_trace()
{
	[ -d "$TRACEFS/events/block" ] ||
		missing "no block trace events (tracefs, CONFIG_BLK_DEV_IO_TRACE)"
}

# trace_start EVENT...: a trace of these, with room for 8 MiB
trace_start()
{
	local event

	at_exit trace_stop
	set_attr "$TRACEFS/buffer_size_kb" 8192
	echo >"$TRACEFS/trace"
	for event; do
		set_attr "$TRACEFS/events/${event%:*}/${event#*:}/enable" 1
	done
	set_attr "$TRACEFS/tracing_on" 1
}

trace_end()
{
	echo 0 >"$TRACEFS/tracing_on"
	cp "$TRACEFS/trace" "$TMP/trace"
}

trace_stop()
{
	echo >"$TRACEFS/trace"
}
