#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: a disk without requests, and so without a plug to hold them in,
# has no queue/plug_policy.
#
# null_blk has lost its bio mode (queue_mode=0), so a ramdisk stands for these.

. "${0%/*}/lib.sh"
. "${0%/*}/policy_lib.sh"

# Opening a node that has no ramdisk yet makes the ramdisk.
need_brd()
{
	[ -d /sys/block/ram0 ] || modprobe -q brd 2>/dev/null
	if [ ! -d /sys/block/ram0 ]; then
		mknod "$TMP/ram0" b 1 0
		dd if="$TMP/ram0" of=/dev/null bs=4k count=1 2>/dev/null
	fi
	[ -d /sys/block/ram0 ] || missing "no ramdisk (CONFIG_BLK_DEV_RAM)"
}

ramdisk_has_no_knob()
{
	[ -e /sys/block/ram0/queue/nomerges ] ||
		failed "expected a queue directory, there is none"
	[ ! -e "$(knob ram0)" ] ||
		failed "expected no $(knob ram0), it says $(cat "$(knob ram0)")"
}

ramdisk_cannot_be_given_one()
{
	(echo never >"$(knob ram0)") 2>"$TMP/error" &&
		failed "expected the write to fail, it succeeded"
	grep -qi -e 'permission denied' -e 'no such file' -e nonexistent \
		"$TMP/error" ||
		failed "expected no such file, saw '$(cat "$TMP/error")'"
}

request_based_disk_has_one()
{
	null_create bp0 || return 1
	[ -e "$(knob bp0)" ] || failed "expected $(knob bp0), there is none"
}

require root knob brd null_blk
plan 3
check "a ramdisk has no plug_policy" ramdisk_has_no_knob
check "a ramdisk refuses a plug_policy" ramdisk_cannot_be_given_one
check "a request-based disk has one" request_based_disk_has_one
finish
