# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What submits I/O for the tests.

# One submission of plug_load fills one plug.
# shellcheck disable=SC2034 # for who sources this
BATCH=32

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

# plugs SIZE DISK N [ARG...]: of random 4K, if nothing else is said, N plugs of
# so many I/Os, each complete before the next begins
plugs()
{
	local size="$1" disk="$2" n="$3"

	shift 3
	load -s "$size" -c "$size" -d "$size" -n $((size * n)) "/dev/$disk" "$@"
}

# batches DISK $N [ARG...]: N full plugs of random 4K, if nothing else is said,
# with up to 128 I/Os in flight
batches()
{
	local disk="$1" n="$2"

	shift 2
	load -s $BATCH -c $BATCH -d 128 -n $((BATCH * n)) "/dev/$disk" "$@"
}

# fio_quiet ARG...: likewise
fio_quiet()
{
	# shellcheck disable=SC2086 # a command, or nothing
	${PIN-} fio --name=block-plug --thread --eta=never --output="$TMP/fio" \
		"$@" >&2 && return
	note "fio $*: failed:"
	sed 's/^/#   /' "$TMP/fio"
	return 1
}

# fio_plugs ENGINE SIZE DEVICE N [ARG...]: as plugs() does, by another engine
fio_plugs()
{
	local engine="$1" size="$2" device="$3" n="$4"

	shift 4
	fio_quiet --filename="$device" --ioengine="$engine" --direct=1 \
		--rw=randread --bs=4k --number_ios=$((size * n)) \
		--iodepth="$size" --iodepth_batch_submit="$size" \
		--iodepth_batch_complete_min="$size" \
		--iodepth_batch_complete_max="$size" "$@"
}

# submit RUN...: one plug
submit()
{
	# shellcheck disable=SC2086 # a command, or nothing
	${PIN-} submit_list "$@" || failed "submit_list: exit $?"
}
