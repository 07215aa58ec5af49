# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What submits I/O for the tests.

# One submission of plug_load fills one plug.
# shellcheck disable=SC2034 # for who sources this
BATCH=32

need_plug_load()
{
	need_program plug_load
}

need_fio()
{
	need_program fio
}

# load ARG...: plug_load, which explains itself only when it fails
load()
{
	local rc=0

	# shellcheck disable=SC2086 # a command, or nothing
	${PIN-} plug_load "$@" >"$TMP/load" 2>&1 || rc=$?
	if [ $rc -ne 0 ]; then
		note "plug_load $*: exit $rc: $(head -n 1 "$TMP/load")"
	fi
	return $rc
}

# fio_quiet ARG...: likewise
fio_quiet()
{
	fio --name=block-plug --thread --eta=never --output="$TMP/fio" \
		"$@" >&2 && return
	note "fio $*: failed:"
	sed 's/^/#   /' "$TMP/fio"
	return 1
}
