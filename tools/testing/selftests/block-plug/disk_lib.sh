# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests do with any disk: its settings and statistics, I/O by plug_load
# and fio, loop devices.

. "${0%/*}/lib.sh"

# prepare DISK: as the counts expect it: no elevator (the default where there is
# one hardware queue), all merging allowed, I/O statistics on, and the policy
# that is as if there was none
prepare()
{
	local queue="/sys/block/$1/queue"

	set_attr "$queue/scheduler" none &&
	set_attr "$queue/nomerges" 0 &&
	set_attr "$queue/iostats" 1 || return 1
	[ ! -e "$queue/plug_policy" ] || set_attr "$queue/plug_policy" always
}

# driver_of DISK: the driver's half of the function names to count
driver_of()
{
	case $1 in
	nvme*) echo nvme ;;
	*) echo null ;;
	esac
}

# --- statistics ------------------------------------------------------------

# stat_field DISK N...: sum of fields of /sys/block/DISK/stat; DISK may be a
# pattern, for several disks
stat_field()
{
	local disk="$1"

	shift
	# shellcheck disable=SC2086 # a pattern
	awk -v fields="$*" '
		{ for (n = split(fields, f); n; n--) sum += $f[n] }
		END { printf "%.0f\n", sum }' /sys/block/$disk/stat
}

requests_of()
{
	stat_field "$1" 1 5
}

# --- I/O -------------------------------------------------------------------

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

# --- loop devices ----------------------------------------------------------

need_loop()
{
	losetup -f >/dev/null 2>&1 ||
		missing "no loop device (CONFIG_BLK_DEV_LOOP)"
}

# loop_create FILE: sets LOOP
loop_create()
{
	LOOP=$(losetup -f) && losetup "$LOOP" "$1" || return 1
	LOOP=${LOOP##*/}
	at_exit loop_remove "$LOOP"
}

loop_remove()
{
	[ ! -e "/sys/block/$1/loop/backing_file" ] || losetup -d "/dev/$1"
}
