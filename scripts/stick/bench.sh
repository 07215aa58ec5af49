# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# What a run measures, how long it takes, and plugbench under a deadline.
# Sourced after disks.sh, talk.sh and report.sh.

PLUGBENCH="python3 /stick/plugbench"
# What the short run measures of those that plugbench knows.
SHORT=rand4k-s32,seq4k-s32,rand4k-qd4
SHORT_RUNS=15			# in a round: three workloads, five policies
SHORT_SECONDS=600

# runs_take RUNS SECONDS: with what plugbench spends beside SECONDS on a run, to
# warm up, to count and to start fio
runs_take()
{
	echo $(($1 * ($2 * 10 + 44) / 10))
}

# short_form DISKS: rounds and seconds, as many as fit into the ten minutes
short_form()
{
	for form in "3 2" "2 2" "2 1"; do
		took=$(runs_take $((SHORT_RUNS * ${form% *} * $1)) "${form#* }")
		[ "$took" -le "$SHORT_SECONDS" ] && break
	done
	echo "$form"
}

# choose_form RUN DISKS: sets rounds, seconds and workloads ("": plugbench's)
choose_form()
{
	rounds=5 seconds=5 workloads=
	if [ "$1" = short ]; then
		form=$(short_form "$2")
		rounds=${form% *} seconds=${form#* } workloads=$SHORT
	fi
	rounds=$(setting ROUNDS "$rounds")
	seconds=$(setting SECONDS "$seconds")
	workloads=$(setting WORKLOADS "$workloads")
}

# target NAME: what plugbench calls it
target()
{
	case $1 in
	null) echo --null ;;
	*) echo "/dev/$1" ;;
	esac
}

# plugbench NAME ARGS...: takes the place of this shell, so that signals reach
# it
plugbench()
{
	local name=$1

	shift
	exec $PLUGBENCH --verbose --runtime "$seconds" --repeat "$rounds" \
		${workloads:+--workloads "$workloads"} \
		--commit "$(cat /stick/commit)" --json "$OUT/$name.json" \
		"$@" "$(target "$name")"
}

# runs_of NAME: how many runs it needs; or fails, and STATE/why has the reason
runs_of()
{
	(plugbench "$1" --dry-run >"$STATE/plan.new" 2>"$STATE/why") &&
		mv "$STATE/plan.new" "$STATE/plan" &&
		sed -n 's/^  \([0-9]*\) runs, .*/\1/p' "$STATE/plan"
}

# plan: sets names, of what can be measured, and total, of seconds
plan()
{
	total=0 names=
	for name in null $(measured); do
		if runs=$(runs_of "$name"); then
			names="$names $name"
			total=$((total + $(runs_take "$runs" "$seconds")))
		elif [ "$name" = null ]; then
			fail "null_blk: $(tail -n 1 "$STATE/why")"
		else
			leave_alone "$name" "$(tail -n 1 "$STATE/why")"
		fi
	done
}

minutes()
{
	echo "$((($1 + 59) / 60)) min"
}

# show_plan: before anything of it is done
show_plan()
{
	{
		echo
		echo "Read, and only read, since the kernel now refuses writes:"
		for disk in $(measured); do
			echo "  $(describe_disk "$disk")"
		done
		[ -n "$(measured)" ] || echo "  no NVMe disk"
		[ ! -s "$STATE/left" ] || sed 's/^/Left alone: /' "$STATE/left"
		echo "Also: a disk in memory (null_blk), with perf."
		sed -n -e 's/^  policies: */Policies: /p' \
			-e 's/^  workload: */Workload: /p' "$STATE/plan"
		echo "Rounds: $rounds; of a measurement: $seconds s; altogether" \
			"some $(minutes "$total")."
		echo "The report goes to ${RUN##*/} on the stick. Then the" \
			"machine is switched off."
		echo
		echo "It starts in 10 seconds. To stop it, press Enter."
	} | show
}

# within SECONDS COMMAND...: its exit code; 124 if it had to be ended
within()
{
	local left=$1

	shift
	"$@" &
	child=$!
	while all_run "$child" && [ "$left" -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
	if all_run "$child"; then
		end_child
		return 124
	fi
	wait "$child"
}

# end_child: plugbench puts settings back on SIGTERM. A process that hangs in
# the kernel is left behind.
end_child()
{
	local left=30

	kill "$child"
	while all_run "$child" && [ "$left" -gt 0 ]; do
		sleep 1
		left=$((left - 1))
	done
	kill -KILL "$child" 2>/dev/null
}

# measure NAME: null or a disk; what fails is noted, and the next one has its
# turn
measure()
{
	if [ "$1" != null ] && ! is_read_only "$1"; then
		leave_alone "$1" "is no longer read-only"
		return
	fi
	say "== $1"
	rm -f "$STATE/output"
	mkfifo "$STATE/output"
	tee "$OUT/$1.txt" <"$STATE/output" | show &
	shown=$!
	limit=$((total * 2 + 600))
	within "$limit" plugbench "$1" >"$STATE/output" 2>&1
	status=$?
	# Who hangs keeps its output open.
	[ "$status" = 124 ] || wait "$shown"
	note_end "$1" "$status" "$limit"
	save "$1.txt" "$1.json" dmesg
}

# note_end NAME STATUS LIMIT
note_end()
{
	case $2 in
	0) ;;
	124) fail "$1: not done after $3 seconds" ;;
	*) fail "$1: plugbench ended with $2: $(tail -n 1 "$OUT/$1.txt")" ;;
	esac
	written=$(sectors_written "$1")
	[ "${written:-0}" = 0 ] ||
		fail "$1: the kernel counts $written sectors written"
}
