# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of queue/plug_policy share.

. "${0%/*}/null_blk_lib.sh"

need_knob()
{
	some_disk "ls /sys/block/*/queue/plug_policy" ||
		missing "no queue/plug_policy (CONFIG_BLK_PLUG_POLICY)"
}

# --- modes -----------------------------------------------------------------

knob()
{
	echo "/sys/block/$1/queue/plug_policy"
}

# All modes that this kernel knows, not only those this file's author knew.
modes_of()
{
	tr -d '[]' <"$(knob "$1")"
}

# set_mode DISK MODE
set_mode()
{
	set_attr "$(knob "$1")" "$2" || return 1
	expect_text "$(knob "$1")" "$(attr "$(knob "$1")")" "$2"
}

# expect_fallback DISK WORD: why its mode is not followed
expect_fallback()
{
	expect_text "plug_policy_fallback of $1" \
		"$(cat "$(knob "$1")_fallback")" "$2"
}

# Keeps the policy's static keys on, by a disk of its own that is never used:
# otherwise the change from and to "always" or "adaptive" patches the kernel's
# text with all CPUs held, which takes long and hides the races that a change
# may have.
pin_static_keys()
{
	[ -e "$(knob bppin)" ] || null_create bppin size=1 || return 1
	set_mode bppin adaptive
}

# --- "adaptive" ------------------------------------------------------------

# Each hardware queue's state of "adaptive".
adaptive_files()
{
	ls "$DEBUGFS/block/$1"/hctx*/plug_adaptive
}

# adaptive_line DISK WORD [HCTX]: the rest of a line of plug_adaptive
adaptive_line()
{
	sed -n "s/^$2 //p" "$DEBUGFS/block/$1/hctx${3:-0}/plug_adaptive"
}

# pin_group DISK SIZE: of "adaptive", for the time of this test; 0 lets go
pin_group()
{
	local file

	for file in $(adaptive_files "$1"); do
		echo "$2" >"$file" || {
			failed "writing '$2' to $file failed"
			return 1
		}
		grep -qF "$file " "$TMP/saved" || echo "$file 0" >>"$TMP/saved"
	done
}

# set_fresh DISK MODE|SIZE: as if nothing had been learnt or pinned, or pinned to
# this size of "adaptive"; nothing keeps the disk from it, as it might from any
# mode but "always". "adaptive" tries no other group size within 1000 requests.
set_fresh()
{
	local mode="$2" size=0

	[ "${2#[0-9]}" = "$2" ] || { mode=adaptive; size=$2; }
	set_mode "$1" always && set_mode "$1" "$mode" || return 1
	[ "$mode" = always ] || expect_fallback "$1" none
	if [ "$size" -ne 0 ] || grep -q "/$1/.*plug_adaptive" "$TMP/saved"; then
		pin_group "$1" "$size"
	fi
}
