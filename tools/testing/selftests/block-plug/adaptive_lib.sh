# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of what "adaptive" learns share.

. "${0%/*}/trace_lib.sh"
. "${0%/*}/policy_lib.sh"

# One submitter, so one hardware queue: what it learns is in one file, and what
# it decides in one order.
# shellcheck disable=SC2034 # for who sources this
PIN="taskset 1"

# line_of DISK WORD: of the hardware queue that CPU 0 submits to
line_of()
{
	adaptive_line "$1" "$2" "$(hctx_of "$1")"
}

hctx_of()
{
	local dir

	for dir in "/sys/block/$1"/mq/*; do
		if tr -d ' ' <"$dir/cpu_list" | tr ',' '\n' | grep -qx 0 &&
		   grep -qx default "$DEBUGFS/block/$1/hctx${dir##*/}/type"; then
			echo "${dir##*/}"
			return
		fi
	done
}

# state_of DISK: of all its hardware queues
state_of()
{
	cat "$DEBUGFS/block/$1"/hctx*/plug_adaptive
}

# sampled COMMAND...: while watched
sampled()
{
	trace_start block:block_plug_sample
	"$@" || return
	trace_end
}

# samples FIELD...: these fields of each sample in the trace, a line each
samples()
{
	awk -v names="$*" '/plug_sample:/ {
		n = split(names, name, " ")
		for (i = 1; i <= NF; i++) {
			split($i, pair, "=")
			value[pair[1]] = pair[2]
		}
		for (i = 1; i <= n; i++)
			printf "%s%s", value[name[i]], i < n ? " " : "\n"
	}' "$TMP/trace"
}

# No size is left to try: a fresh one waits for 8 samples, or 43.
is_parked()
{
	[ "$(line_of "$1" samples_parked)" -gt 64 ]
}

# load_until CONDITION DISK N [ARG...]: batches, a little at a time
load_until()
{
	local condition="$1" tries=400

	shift
	while [ $((tries -= 1)) -gt 0 ]; do
		batches "$@" || return
		! "$condition" "$1" || return 0
	done
	failed "waited in vain: $condition $1"
}

# What may follow what: sizes that plugs can have, the one that was decided on
# is in force, and one is the best only after a trial, or 32 from the start. A
# trace may begin with what was before.
expect_legal()
{
	samples group best trial next | awk '
	{ text = last " -> " $0; last = $0 }
	$2 !~ /^(1|2|4|8|16|32)$/ || $3 !~ /^(0|1|2|4|8|16|32)$/ ||
		$2 == $3 || $4 != $2 && $4 != $3 {
			print text
		}
	NR > 1 && $1 != next_group { print text }
	NR > 1 && $2 != best && $2 != trial && $2 != 32 { print text }
	{ best = $2; trial = $3; next_group = $4 }' >"$TMP/illegal"
	expect_text "impossible decision" "$(head -n 1 "$TMP/illegal")" ""
}
