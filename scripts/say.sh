# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# How every script here talks. Sourced, never run.

START=$(date +%s)

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
