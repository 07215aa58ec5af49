# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests see of the kernel at work: how often it called a function, and
# trace events.

TRACEFS=/sys/kernel/tracing

# --- calls of functions ----------------------------------------------------

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
