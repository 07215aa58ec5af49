# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Completion of plugbench, plugroll and plugstat for bash. What each takes, its
# own --help says.

_plugtools_disks() {
	local disk
	for disk in /sys/block/*/queue/plug_policy; do
		disk=${disk#/sys/block/}
		[ "$disk" = '*/queue/plug_policy' ] ||
			echo "$1${disk%/queue/plug_policy}"
	done
}

_plugtools_options() {
	"$@" --help 2>/dev/null |
		grep -oE -- '(^|[[:space:],[])-(-[a-z][a-z-]*|[a-zA-Z])' |
		grep -oE -- '-.*' | sort -u
}

_plugtools() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local program=${1##*/} modes="always never seq-small adaptive" verb="" words

	if [ "$program" = plugroll ] && [ "$COMP_CWORD" -gt 1 ]; then
		verb=${COMP_WORDS[1]}
	fi
	case $word:$before:$program in
	*:--textfile:* | *:--json:plugbench | *:--html:* | *:--jobfile:* | *:--compare:*)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	-*) words=$(_plugtools_options "$1" ${verb:+"$verb"}) ;;
	*:--counting:*) words="on off" ;;
	*:--policies:* | *:try:plugroll | *:keep:plugroll) words=$modes ;;
	*:plugroll:plugroll | *:*/plugroll:plugroll) words="list try keep undo" ;;
	*:plugbench) words=$(_plugtools_disks /dev/) ;;
	*) words=$(_plugtools_disks "") ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _plugtools plugbench plugroll plugstat
