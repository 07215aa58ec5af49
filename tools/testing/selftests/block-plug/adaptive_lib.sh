# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of what "adaptive" learns share, on top of lib.sh.

# One submitter, so one hardware queue: what it learns is in one file, and what
# it decides in one order.
# shellcheck disable=SC2034 # for who sources this
PIN="taskset 1"
# shellcheck disable=SC2034 # likewise
RANDOM_IO="-s $BATCH -c $BATCH -d 128"

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

# sees DISK LOAD-OPTION...: loads it until its queue has taken the first sample
# since set_fresh, which is how it knows whether bios merge
sees()
{
	local disk="$1" tries=100

	shift
	until [ "$(line_of "$disk" sample_ios)" -gt 0 ]; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || {
			failed "$disk takes no samples"
			return 1
		}
		load "$@" -s "$BATCH" -c "$BATCH" -d 128 -n $((BATCH * 4)) \
			"/dev/$disk" || return
	done
}

# unless_probed COMMAND [ARG...]: what it expects of a plug that looks for no
# merges; one in 32 does, and so does none of the next
unless_probed()
{
	"$@" || return
	[ "$CASE_FAILED" -eq 0 ] && return
	note "once more: one plug in 32 looks for merges"
	CASE_FAILED=0
	# shellcheck disable=SC2153 # the test's
	load -s 5 -c 5 -d 5 -n 25 "/dev/$DISK" || return
	"$@"
}

watch()
{
	trace_start blk_plug_policy:blk_plug_policy_sample \
		blk_plug_policy:blk_plug_policy_decide
}

# Copies the trace, and goes on with it.
look()
{
	cp "$TRACEFS/trace" "$TMP/trace"
}

# samples FIELD...: these fields of each sample in the trace, a line each
samples()
{
	samples_matching policy_sample: "$@"
}

# samples_of DISK FIELD...: likewise, of one disk
samples_of()
{
	local dev

	dev=$(tr : , <"/sys/block/$1/dev")
	shift
	samples_matching "policy_sample: $dev " "$@"
}

samples_matching()
{
	local text="$1"

	shift
	awk -v text="$text" -v names="$*" 'index($0, text) {
		n = split(names, name, " ")
		for (i = 1; i <= NF; i++) {
			split($i, pair, "=")
			value[pair[1]] = pair[2]
		}
		for (i = 1; i <= n; i++)
			printf "%s%s", value[name[i]], i < n ? " " : "\n"
	}' "$TMP/trace"
}

# "FROM TO STATE" of each decision; from a size to itself where bios turn out to
# merge or not
decisions()
{
	sed -n 's/.*policy_decide:.* from=\(.*\) to=\(.*\) state=\(.*\)/\1 \2 \3/p' \
		"$TMP/trace"
}

has_decided()
{
	look
	decisions | grep -q " $1\$"
}

# decides DISK STATE LOAD-OPTION...: loads it until that is decided
decides()
{
	local disk="$1" state="$2" tries=200

	shift 2
	until has_decided "$state"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || {
			failed "waited in vain for '$state'"
			return 1
		}
		load "$@" -n 20000 "/dev/$disk" || return
	done
}

# What may follow what, with a size that follows on the last one. The first may
# go on from what was there before.
expect_legal()
{
	decisions | awk '
	BEGIN {
		before["try"] = "measure parked try"
		before["parked"] = "measure try parked"
		before["measure"] = "measure try parked"
		state = "measure"
		group = 32
	}
	index(before[$3], state) == 0 { print state " -> " $3 }
	NR > 1 && $1 != group { print group " -> " $1 "?" }
	$2 !~ /^(1|2|4|8|16|32)$/ { print "size " $2 }
	$3 == "try" && $1 == $2 && state != "try" { print "tries " $2 " at " $1 }
	{ state = $3; group = $2 }' >"$TMP/illegal"
	expect_text "impossible decisions" "$(head -n 1 "$TMP/illegal")" ""
}
