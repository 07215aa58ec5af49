#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: queue/plug_policy shows the modes, takes each of their names, and
# refuses anything else without a change. A disk without requests, and so
# without a plug to hold them in, has no such file.

. "${0%/*}/policy_lib.sh"

DISK=bp0

shows_modes()
{
	local word

	expect_count "bracketed modes in '$(cat "$KNOB")'" \
		"$(tr ' ' '\n' <"$KNOB" | grep -c '^\[.*\]$')" 1
	for word in always never seq-small adaptive; do
		modes_of $DISK | grep -qw -e "$word" ||
			failed "expected '$word' in '$(cat "$KNOB")'"
	done
	expect_text "permissions" "$(stat -c %a "$KNOB")" 644
	expect_text "permissions of plug_policy_fallback" \
		"$(stat -c %a "${KNOB}_fallback")" 444
}

# Every mode to every other one.
takes_each_mode()
{
	local from to

	for from in $(modes_of $DISK); do
		for to in $(modes_of $DISK); do
			set_mode $DISK "$from" && set_mode $DISK "$to" ||
				return 1
		done
	done
}

takes_name_without_newline()
{
	set_mode $DISK always
	printf never >"$KNOB" || failed "expected 'never' without newline to do"
	expect_text "mode" "$(attr "$KNOB")" never
}

# write(2) of nothing is no store, so there is nothing to refuse.
empty_changes_nothing()
{
	set_mode $DISK never
	: >"$KNOB"
	printf '' >"$KNOB"
	expect_text "mode after an empty write" "$(attr "$KNOB")" never
}

# refuses REASON TEXT, whatever the mode is
refuses()
{
	local mode

	for mode in always never seq-small adaptive; do
		set_mode $DISK $mode &&
		ensure_write_fails "$KNOB" "$2" "$1" || return 1
	done
}

anybody_may_read()
{
	local seen

	seen=$(as_nobody cat "$KNOB" 2>&1)
	expect_text "what an unprivileged reader sees" "$seen" "$(cat "$KNOB")"
}

# Which is not what an earlier disk of that name had.
a_new_disk_has_the_default()
{
	set_mode $DISK never
	null_remove $DISK
	mkdir $NULLB/$DISK
	echo 1 >$NULLB/$DISK/power
	wait_for 60 test -e "$KNOB" || return 1
	case $(attr "$KNOB") in
	always | adaptive) ;;
	*) failed "mode of a new disk: $(attr "$KNOB")" ;;
	esac
	null_remove $DISK
}

# Opening a node that has no ramdisk yet makes the ramdisk: null_blk has lost
# its bio mode.
need_brd()
{
	[ -d /sys/block/ram0 ] || modprobe -q brd 2>/dev/null
	if [ ! -d /sys/block/ram0 ]; then
		mknod "$TMP/ram0" b 1 0
		dd if="$TMP/ram0" of=/dev/null bs=4k count=1 2>/dev/null
	fi
	[ -d /sys/block/ram0 ] || missing "no ramdisk (CONFIG_BLK_DEV_RAM)"
}

ramdisk_has_none()
{
	[ -e /sys/block/ram0/queue/nomerges ] ||
		failed "expected a queue directory, there is none"
	[ ! -e "$(knob ram0)" ] ||
		failed "expected no $(knob ram0), it says $(cat "$(knob ram0)")"
	(echo never >"$(knob ram0)") 2>"$TMP/error" &&
		failed "expected the write to fail, it succeeded"
	grep -qi -e 'permission denied' -e 'no such file' -e nonexistent \
		"$TMP/error" ||
		failed "expected no such file, saw '$(cat "$TMP/error")'"
}

NEWLINE='
'
LONG=$(head -c 4096 /dev/zero | tr '\0' a)
KNOB=$(knob $DISK)

require root knob null_blk as_nobody brd
plan 20
must null_create $DISK

check "shows the modes, one of them chosen" shows_modes
check "takes each mode after each other" takes_each_mode
check "takes a name without newline" takes_name_without_newline
check "an empty write changes nothing" empty_changes_nothing
check "refuses a newline only" refuses "it names no mode" "$NEWLINE"
check "refuses an unknown name" refuses "there is no such mode" sometimes
check "refuses a prefix" refuses "it is only a prefix" nev
check "refuses trailing text" refuses "text follows the name" neverland
check "refuses a trailing blank" refuses "a blank follows the name" "never "
check "refuses a leading blank" refuses "a blank precedes the name" " never"
check "refuses a second newline" refuses "two newlines follow the name" \
	"never$NEWLINE$NEWLINE"
check "refuses capitals" refuses "names are in small letters" NEVER
check "refuses an underscore" refuses "the name has a hyphen" seq_small
check "refuses a number" refuses "modes have no numbers" 1
check "refuses two words" refuses "it is two names" "always never"
check "refuses 4 KiB of text" refuses "it is too long" "$LONG"
check "refuses an unprivileged writer" ensure_write_fails "$KNOB" never \
	"the writer is not root" "Permission denied" as_nobody
check "shows itself to an unprivileged reader" anybody_may_read
check "a ramdisk has none, and cannot be given one" ramdisk_has_none
check "a new disk starts with the default" a_new_disk_has_the_default
finish
