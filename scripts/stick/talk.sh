# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# What the user sees and types, on each console that the kernel has. Sourced.

CONSOLES=$(cat "${ROOT-}/sys/class/tty/console/active" 2>/dev/null)

# show: stdin to the consoles and to the log, line by line
show()
{
	while IFS= read -r line || [ -n "$line" ]; do
		echo "$line" >>"$STATE/log.txt"
		for tty in $CONSOLES; do
			echo "$line" >"${ROOT-}/dev/$tty"
		done
	done
} 2>/dev/null

say()
{
	printf '%s\n' "$*" | show
}

# drain: forgets what was typed ahead, on any console
drain()
{
	for tty in $CONSOLES; do
		timeout 1 cat "${ROOT-}/dev/$tty" >/dev/null 2>&1 &
	done
	sleep 1
}

# ask SECONDS: prints what was typed first, on any console; nothing if nothing
# was in time
ask()
{
	local left=$1 readers=

	rm -f "$STATE/answer"
	for tty in $CONSOLES; do
		(read -r line <"${ROOT-}/dev/$tty" &&
			echo "${line:-enter}" >"$STATE/answer") 2>/dev/null &
		readers="$readers $!"
	done
	while [ "$left" -gt 0 ] && ! [ -s "$STATE/answer" ]; do
		sleep 1
		left=$((left - 1))
	done
	# shellcheck disable=SC2086 # a list
	kill $readers 2>/dev/null
	cat "$STATE/answer" 2>/dev/null
}

# menu SECONDS: prints short, full, shell or off; short if nobody answers
menu()
{
	while :; do
		show <<-EOT

		  1  short run: 10 minutes; 3 more for each disk above two
		  2  full run: half an hour for each disk, and half an hour more
		  3  shell, for who knows what they do
		  4  power off

		Type a number and Enter. Without, 1 is taken after $1 seconds.
		EOT
		case $(ask "$1") in
		"" | enter | 1) echo short ;;
		2) echo full ;;
		3) echo shell ;;
		4) echo off ;;
		*)
			say "That is none of 1, 2, 3 and 4."
			continue
			;;
		esac
		return
	done
}

# all_run PID...: whether none of these children has ended
all_run()
{
	for pid; do
		case $(cat "/proc/$pid/stat" 2>/dev/null) in
		"" | *") Z "*) return 1 ;;
		esac
	done
}

# shells: one on each console, until one of them ends
shells()
{
	say "Disks are read-only, but the stick is not, nor what was left alone."
	say "'exit' leads back to the menu."
	pids=
	for tty in $CONSOLES; do
		# tty0 is whichever is seen, which nobody can control.
		[ "$tty" != tty0 ] || tty=tty1
		setsid -c sh -i <>"/dev/$tty" >&0 2>&1 &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086 # a list
	while all_run $pids; do
		sleep 1
	done
	# shellcheck disable=SC2086 # an interactive shell ignores SIGTERM
	kill -HUP $pids 2>/dev/null
}
