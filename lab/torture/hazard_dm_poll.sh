#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: polled I/O on a stacked disk ends. Device-mapper finds the
# request of the disk below through the bio that it cloned, so nothing may be
# left held when a poller looks for it. Two disks below share each plug.
#
# NVMe disks: a null_blk with memory behind it holds as in "always" whatever the
# mode, and moves the data in its poll function, where it must not sleep but
# does (under rcu_read_lock(), with any kernel).
#
# did dm_polled_ios	I/Os on the dm disk, polled and verified

# shellcheck source=torture_lib.sh
. "${0%/*}/torture_lib.sh"

# shellcheck source=stacks.sh
. "${0%/*}/stacks.sh"

MAP=thazard
HALF_MB=16	# of each disk

find_disks()
{
	# shellcheck disable=SC2046 # a list
	set -- $(nvme_disks)
	[ $# -ge 2 ] || skip "this guest has less than two NVMe disks"
	FIRST=$1 SECOND=$2
	prepare "$FIRST" && prepare "$SECOND"
}

# A submission goes to both.
make_map()
{
	trap leave EXIT
	printf '0 %d striped 2 128 /dev/%s 0 /dev/%s 0\n' \
		$((HALF_MB * 2 * 2048)) "$FIRST" "$SECOND" |
		dmsetup create $MAP --noudevsync && dmsetup mknodes
}

# shellcheck disable=SC2317 # a trap
leave()
{
	local rc=$?

	dmsetup remove "$MAP" --noudevsync 2>/dev/null
	(exit "$rc")
	cleanup
}

polls()
{
	local path

	for path in /sys/block/dm-*; do
		if [ "$(cat "$path/dm/name")" = $MAP ]; then
			[ "$(cat "$path/queue/io_poll")" = 1 ]
			return
		fi
	done
	return 1
}

# pass SEED OPTION...
pass()
{
	local seed="$1"

	shift
	plug_load -r write -a rand-once -s $BATCH -c 1 -d 64 -z 4m -S "$seed" \
		"$@" "/dev/mapper/$MAP" &&
	plug_load -r verify -a seq -s $BATCH -c 1 -d 64 -z 4m -S "$seed" \
		"$@" "/dev/mapper/$MAP"
}

# one MODE MODE OPTION...: of the two disks
one()
{
	set_mode "$FIRST" "$1" && set_mode "$SECOND" "$2" || return 1
	shift 2
	rnd 1000000
	pass "$R" "$@" >"$TMP/pass" 2>&1 || {
		found "polled I/O on dm failed: $* seed $R:" \
			"$(tail -n 1 "$TMP/pass")"
		return 1
	}
	did dm_polled_ios 2048
}

[ $# -eq 2 ] || usage SEED SECONDS
rnd_seed "$1"
deadline "$2"
need_program dmsetup
[ -z "$MISSING" ] || skip "$MISSING"
find_disks
make_map || skip "cannot make a dm disk"
polls || skip "$FIRST or $SECOND does not poll (nvme.poll_queues)"
MODES=$(modes_of "$FIRST")
while time_left; do
	# shellcheck disable=SC2086 # a list
	pick $MODES
	first=$WORD
	# shellcheck disable=SC2086 # a list
	pick $MODES
	second=$WORD
	pick "-P" "-P -q"
	# shellcheck disable=SC2086 # options
	one "$first" "$second" $WORD || break
done
over
