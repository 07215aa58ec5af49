#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest's part of torture.py: rounds, each a process of its own.
#
# torture.sh SECONDS SLICE <ROUNDS
#
# A line of ROUNDS is "ITEM SEED SECONDS", where ITEM is KIND or KIND:PART; for
# KIND.sh SEED SECONDS [PART]. None begins that has not SLICE seconds until
# SECONDS after the boot. Prints before each "round N ITEM SEED SECONDS", after it
# "end N pass|fail|skip|timeout SECONDS".

# Much more than a round takes: what is stuck, a round finds itself, or the host,
# which hears nothing more. A busy machine alone must not get here.
PATIENCE=1000
KSFT_SKIP=4

# The console's copy says when, beside the kernel's messages.
tell()
{
	echo "$*" >"$VERDICT"
	echo "$*"
}

# Sets NOW to the seconds since boot
now()
{
	read -r NOW _ </proc/uptime
	NOW=${NOW%%.*}
}

n=0 status=0
while read -r item seed seconds; now; [ $((NOW + $2)) -le "$1" ]; do
	[ -n "$item" ] || break
	n=$((n + 1)) rc=0 begin=$NOW
	tell "round $n $item $seed $seconds"
	part=${item#"${item%%:*}"}
	timeout -s TERM -k 20 $((seconds + PATIENCE)) \
		"${0%/*}/${item%%:*}.sh" "$seed" "$seconds" ${part:+"${part#:}"} \
		</dev/null || rc=$?
	case $rc in
	0) end=pass ;;
	"$KSFT_SKIP") end=skip ;;
	137 | 143 | 124)
		end=timeout status=1
		tell "found still running after $((seconds + PATIENCE)) s"
		;;
	*)
		end=fail status=1
		[ $rc -eq 1 ] || tell "found exit $rc"
		;;
	esac
	now
	tell "end $n $end $((NOW - begin))"
	# What a killed round left behind would be blamed on the next.
	[ $end != timeout ] || break
done
exit $status
