#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The guest's scheduler: rounds of torture, each a process of its own.
#
# torture.sh SEED SECONDS SLICE FIRST ITEM...
#
# It ends SECONDS after the boot, which may be slow. SLICE seconds for a round;
# ITEM is a kind, or mixed:STACK. FIRST is how many of the items come in order,
# before the seed picks among all. TORTURE_WEIGHTS lists kinds that take several
# slices, as KIND:NUMBER. Prints before each round "round N ITEM SEED SECONDS",
# after it "end N pass|fail|skip|timeout SECONDS". SEED and SECONDS repeat the
# round: KIND.sh SEED SECONDS [STACK].

# Much more than a round takes: it waits for what is slow, and reports it.
PATIENCE=${TORTURE_PATIENCE:-240}

# shellcheck source=torture_lib.sh
. "${0%/*}/torture_lib.sh"

# Sets ITEM, for round $1
choose_item()
{
	local n="$1"

	shift
	if [ "$n" -le "$FIRST" ]; then
		shift $((n - 1))
		ITEM=$1
	else
		pick "$@"
		ITEM=$WORD
	fi
}

# Sets TIME, which a kind is given
choose_time()
{
	local weight

	TIME=$SLICE
	for weight in ${TORTURE_WEIGHTS-}; do
		[ "${weight%:*}" != "$1" ] || TIME=$((SLICE * ${weight#*:}))
	done
}

# run_item ITEM SEED: sets STATUS
run_item()
{
	local kind="${1%%:*}" stack="" rc=0

	[ "$kind" = "$1" ] || stack=${1#*:}
	timeout -s TERM -k 20 $((TIME + PATIENCE)) \
		"${0%/*}/$kind.sh" "$2" "$TIME" ${stack:+"$stack"} || rc=$?
	case $rc in
	0) STATUS=pass ;;
	"$KSFT_SKIP") STATUS=skip ;;
	137 | 143 | 124)
		STATUS=timeout
		found "$1 was still running after $((TIME + PATIENCE)) s"
		;;
	*) STATUS=fail
		[ $rc -eq 1 ] || found "$1 ended with exit $rc"
		;;
	esac
}

[ $# -ge 5 ] || usage SEED SECONDS SLICE FIRST ITEM...
rnd_seed "$1"
SECONDS_ALL=$2 SLICE=$3 FIRST=$4
shift 4
[ "$FIRST" -le $# ] || FIRST=$#
N=0
while now; [ $((NOW + SLICE)) -le "$SECONDS_ALL" ]; do
	N=$((N + 1))
	rnd 1000000000
	ROUND_SEED=$R
	choose_item $N "$@"
	choose_time "${ITEM%%:*}"
	tell "round $N $ITEM $ROUND_SEED $TIME"
	BEGIN=$NOW
	run_item "$ITEM" $ROUND_SEED
	now
	tell "end $N $STATUS $((NOW - BEGIN))"
	# What a killed round left behind would be blamed on the next.
	[ $STATUS != timeout ] || break
	[ $STATUS != fail ] || : >"$TMP/found"
done
over
