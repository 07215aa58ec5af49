# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# How every script here talks. Sourced, never run.

# A caller that has been running for a while passes its own start on.
START=${PLUG_POLICY_START:-$(date +%s)}

say() {
	printf '%s\n' "$*"
}

# step TEXT: what happens now, after the seconds since the start
step() {
	printf '[%4ds] %s\n' "$(($(date +%s) - START))" "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}
