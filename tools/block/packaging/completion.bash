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
	local modes="always never seq-small adaptive"
	local verbs="list try keep undo" verb="" words

	if [ "${1##*/}" = plugroll ] && [ "$COMP_CWORD" -gt 1 ]; then
		verb=${COMP_WORDS[1]}
	fi
	case $before in
	--textfile | --json | --html | --jobfile | --compare)
		if [ "${1##*/}" = plugbench ] || [ "$before" = --textfile ]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
		fi
		;;
	esac
	case $word:$before:${1##*/} in
	-*) words=$(_plugtools_options "$1" ${verb:+"$verb"}) ;;
	*:--counting:*) words="on off" ;;
	*:--policies:*) words=$modes ;;
	*:plugroll:plugroll | *:*/plugroll:plugroll) words=$verbs ;;
	*:try:plugroll | *:keep:plugroll) words=$modes ;;
	*:plugbench) words=$(_plugtools_disks /dev/) ;;
	*) words=$(_plugtools_disks "") ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _plugtools plugbench plugroll plugstat
