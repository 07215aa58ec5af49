#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# From the stick's menu to its measurements. /init runs it and, however it ends,
# writes the report and switches off.

# shellcheck source=disks.sh
. /stick/disks.sh
# shellcheck source=talk.sh
. /stick/talk.sh
# shellcheck source=report.sh
. /stick/report.sh
# shellcheck source=bench.sh
. /stick/bench.sh

MENU_SECONDS=30
FIND_SECONDS=60

# find_disks: they turn up one after the other
find_disks()
{
	left=$FIND_SECONDS
	until settled || [ "$left" = 0 ]; do
		[ $((left % 10)) != 0 ] ||
			say "Waiting for the stick and for NVMe disks, $left s."
		sleep 1
		left=$((left - 1))
	done
	# Some come late, behind a bridge of their own.
	sleep 3
	protect
}

# choice: what plug-policy.conf says, or the user
choice()
{
	local chosen wrong

	wrong=$(check_settings)
	chosen=$(setting RUN menu)
	if [ -n "$wrong" ]; then
		say "plug-policy.conf: '$wrong' is not understood." \
			"Accepted: RUN=menu, short, full, shell or off;" \
			"SECONDS and ROUNDS=1 to 99; WORKLOADS=a,b."
		chosen=menu
	fi
	[ "$chosen" != menu ] || chosen=$(menu "$MENU_SECONDS")
	echo "$chosen"
}

# run FORM: short or full
run()
{
	new_run || {
		say "The stick is full, or cannot be written: nothing is done."
		return 1
	}
	describe >"$OUT/machine.txt"
	save machine.txt dmesg
	say "Working out what there is to do."
	protect
	choose_form "$1" "$(echo null "$(measured)" | wc -w)"
	plan
	drain
	show_plan
	if [ -n "$(ask 10)" ]; then
		fail "stopped by the user before it began"
		return
	fi
	for name in $names; do
		measure "$name"
	done
}

find_disks
if ! [ -e "$STATE/stick" ]; then
	say "The stick that this was booted from is not found: nothing is done."
	exit 1
fi
chosen=$(choice)
while [ "$chosen" = shell ]; do
	protect
	shells
	chosen=$(menu "$MENU_SECONDS")
done
[ "$chosen" = off ] || run "$chosen"
