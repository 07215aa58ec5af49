# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# shellcheck disable=SC2034 # the scripts that source it read these
# Results in TAP, for a script that runs in a guest and sources this file, which
# lies beside it there. N is how many there are, FAILED whether one is bad; what
# the file $LOG holds, if it is set, explains a bad one.

N=0
FAILED=0

# result STATUS NAME
result()
{
	N=$((N + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $N $2"
	else
		FAILED=1
		[ -z "${LOG-}" ] || sed 's/^/# /' "$LOG"
		echo "not ok $N $2"
	fi
}

# check NAME COMMAND...
check()
{
	title=$1
	shift
	"$@"
	result $? "$title"
}
