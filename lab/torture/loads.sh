# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The loads of mixed.sh. Each runs passes until the time is over; each pass writes
# all of the load's part of each disk in DISKS, and reads it back, unless the
# stack keeps no data. START is the part's first MiB.
#
# A pass that fails is "found", unless the stack's TRAITS say errors.
#
# shellcheck disable=SC2153 # DISKS, TRAITS: of stacks.sh

# Of each disk; 4 MiB takes a slow guest seconds.
RANGE_MB=4

trait()
{
	case " $TRAITS " in
	*" $1 "*) return 0 ;;
	esac
	return 1
}

# loads_of_stack: the names that fit
loads_of_stack()
{
	if trait zoned; then
		echo libaio psync
		! trait steady || echo uring large
		return
	fi
	trait polled || echo uring sqpoll libaio psync buffered merge large \
		batch batch_sqpoll batch_libaio
	trait fewtags || trait polled || echo nowait
	! trait poll || echo iopoll sqpoll_iopoll batch_polled
	! trait cmd || echo passthrough
	! trait nodata || echo mixed_sizes
}

# However slow the guest is, a round without I/O would have tried nothing.
more_passes()
{
	BEGUN=$((BEGUN + 1))
	[ $BEGUN -eq 1 ] || time_left
}

# --- fio -------------------------------------------------------------------

# The sum of what the jobs in fio's JSON did: ios, and bytes read
fio_sums()
{
	awk '/"(read|write|trim)" : [{]/ { part = $1 }
	/"total_ios" :/ { ios += $3 }
	/"io_bytes" :/ && part == "\"read\"" { bytes += $3 }
	END { printf "%d %d\n", ios, bytes }' "$1"
}

# All disks in one job, so in one plug, where the engine submits batches;
# passthrough wants NVMe's character devices.
fio_files()
{
	# shellcheck disable=SC2086 # a list
	printf ':/dev/%s' $DISKS | sed -e 's/^://' \
		-e "$([ "$LOAD" != passthrough ] || echo 's,/nvme,/ng,g')"
}

fio_options()
{
	local option=

	if trait nodata; then
		option="--rw=$1"
		[ "$1" != randwrite ] || option="--rw=randrw"
	else
		option="--rw=$1 --verify=crc32c --do_verify=1 --verify_fatal=1"
		option="$option --verify_state_save=0"
	fi
	! trait errors || option="$option --continue_on_error=all"
	! trait zoned || option="$option --zonemode=zbd --max_open_zones=2"
	echo "$option"
}

# fio_pass SEED RW OPTION...
fio_pass()
{
	local seed="$1" rw="$2" disks size

	shift 2
	# shellcheck disable=SC2086 # a list
	disks=$(count_words $DISKS)
	size=$((RANGE_MB * disks))
	# A disk that is away must not become a file in /dev.
	# shellcheck disable=SC2046 # a list
	fio --name="$LOAD" --thread --eta=never --output-format=json \
		--allow_file_create=0 \
		--output="$TMP/fio.$LOAD" --filename="$(fio_files)" \
		--randseed="$seed" --file_service_type=roundrobin \
		--offset="${START}m" --size="${size}m" $(fio_options "$rw") \
		"$@" 2>&1
}

# Before passthrough, fio identifies the namespace by a command that nobody
# repeats when a reset of the controller ends it.
identify_failed()
{
	grep -q "failed to fetch identify namespace" "$TMP/fio.$LOAD.err"
}

# md splits an I/O, and one part may find no tag. Linux 6.12's io_uring repeats
# such an I/O only if all parts end in the task, and none in an interrupt.
uring_gave_up()
{
	case $(uname -r):${STACK-} in
	6.12.*:md_*) grep -q "Resource temporarily unavailable" \
		"$TMP/fio.$LOAD.err" ;;
	*) return 1 ;;
	esac
}

# Counts, and says what was wrong.
fio_took()
{
	local rc="$1" ios bytes

	[ "$rc" -ne 0 ] && { identify_failed || uring_gave_up; } && return
	[ -s "$TMP/fio.$LOAD" ] || {
		trait errors || found "$LOAD: fio left no result, exit $rc"
		return
	}
	# shellcheck disable=SC2046 # two numbers
	set -- $(fio_sums "$TMP/fio.$LOAD")
	ios=$1 bytes=$2
	IOS=$((IOS + ios))
	if [ "$rc" -eq 0 ] && ! trait nodata; then
		VERIFIED=$((VERIFIED + bytes))
	elif [ "$rc" -ne 0 ] && ! trait errors; then
		cat "$TMP/fio.$LOAD.err"
		found "$LOAD: fio exit $rc:" \
			"$(grep -im 1 -E 'verify|error|fail' "$TMP/fio.$LOAD.err" ||
				tail -n 1 "$TMP/fio.$LOAD.err")"
		return 1
	fi
	PASSES=$((PASSES + 1))
}

# fio_load RW OPTION...: passes with their own seeds
fio_load()
{
	local rc

	while more_passes; do
		rc=0
		rm -f "$TMP/fio.$LOAD"
		rnd 1000000
		fio_pass "$R" "$@" >"$TMP/fio.$LOAD.err" || rc=$?
		fio_took $rc || break
		# The disk may be away for a while.
		[ $rc -eq 0 ] || sleep 0.1
	done
}

# batches DEPTH: how an asynchronous engine shall submit and wait
batches()
{
	pick 1 4 8 16 32 32 64
	[ "$WORD" -le "$1" ] || WORD=$1
	echo "--iodepth=$1 --iodepth_batch_submit=$WORD" \
		"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=$1"
}

# async RW ENGINE OPTION...
async()
{
	local rw="$1" engine="$2" depth

	shift 2
	pick 4 32 64 128
	depth=$WORD
	# shellcheck disable=SC2046 # a list
	fio_load "$rw" --ioengine="$engine" --direct=1 $(batches "$depth") "$@"
}

# async_write ENGINE OPTION...: in a row or at random
async_write()
{
	pick write randwrite
	async "$WORD" "$@"
}

# --- plug_load: its batches are exact, its pattern depends on the seed -----

# batch_pass SEED OPTION...
batch_pass()
{
	local seed="$1"

	shift
	set -- -S "$seed" -o "${START}m" -z ${RANGE_MB}m "$@"
	if trait nodata; then
		! trait errors || set -- -E "$@"
		# shellcheck disable=SC2046,SC2086 # a list
		plug_load -m 50 -n 4000 "$@" $(printf '/dev/%s ' $DISKS)
		return
	fi
	# shellcheck disable=SC2046,SC2086 # a list
	set -- "$@" $(printf '/dev/%s ' $DISKS)
	plug_load -r write -a rand-once "$@" && plug_load -r verify -a rand "$@"
}

# What plug_load printed as NAME=VALUE, summed
batch_sum()
{
	tr ' ' '\n' <"$TMP/batch.$LOAD" |
		awk -F= -v name="$1" '$1 == name { n += $2 } END { print n + 0 }'
}

# 4 is a kernel or disk that cannot do it.
batch_took()
{
	local rc="$1"

	IOS=$((IOS + $(batch_sum ios)))
	if [ "$rc" -eq 3 ]; then
		found "$LOAD: plug_load is stuck"
		return 1
	elif [ "$rc" -eq 4 ] || { [ "$rc" -ne 0 ] && trait errors; }; then
		sleep 0.2
		return
	elif [ "$rc" -ne 0 ]; then
		cat "$TMP/batch.$LOAD"
		found "$LOAD: plug_load exit $rc:" \
			"$(grep -m 1 plug_load: "$TMP/batch.$LOAD")"
		return 1
	fi
	PASSES=$((PASSES + 1))
	trait nodata || VERIFIED=$((VERIFIED + $(batch_sum bytes) / 2))
}

# batch_load OPTION...
batch_load()
{
	local rc submit

	while more_passes; do
		rc=0
		pick 1 2 8 32 32 64 128
		submit=$WORD
		rnd 1000000
		batch_pass "$R" -s "$submit" -c 1 "$@" >"$TMP/batch.$LOAD" 2>&1 ||
			rc=$?
		batch_took $rc || break
	done
}

# --- one load, in the background -------------------------------------------

# run_load NAME PLACE SEED: PLACE is which part of the disks it has
run_load()
{
	LOAD=$1
	START=$((16 * $2))
	IOS=0 VERIFIED=0 PASSES=0 BEGUN=0
	rnd_seed "$3"
	case $LOAD in
	uring)
		pick --bs=4k --bsrange=4k-64k "--bs=4k --fixedbufs=1" \
			"--bs=4k --registerfiles=1"
		# shellcheck disable=SC2086 # options
		async_write io_uring $WORD
		;;
	sqpoll) async_write io_uring --bs=4k --sqthread_poll=1 ;;
	iopoll) async_write io_uring --bs=4k --hipri=1 ;;
	sqpoll_iopoll)
		async_write io_uring --bs=4k --hipri=1 --sqthread_poll=1
		;;
	libaio) async_write libaio --bsrange=4k-16k ;;
	psync)
		pick write randwrite
		fio_load "$WORD" --ioengine=psync --direct=1 --bs=4k
		;;
	buffered)
		pick write randwrite
		fio_load "$WORD" --ioengine=psync --bs=4k --fsync=64 \
			--invalidate=1
		;;
	merge) async write io_uring --bs=4k ;;	# what plugs are for
	large) async_write io_uring --bs=128k ;;
	mixed_sizes)		# within a plug; only where no data is kept
		async randrw io_uring --bssplit=4k/70:64k/20:256k/10
		;;
	passthrough)		# a character device knows no O_DIRECT
		pick 0 1
		async_write io_uring_cmd --direct=0 --cmd_type=nvme --bs=4k \
			--hipri="$WORD"
		;;
	batch) batch_load ;;
	batch_libaio) batch_load -e libaio ;;
	batch_sqpoll) batch_load -q ;;
	batch_polled) batch_load -P ;;
	nowait) batch_load -N ;;
	esac
	did ios "$IOS"
	did passes "$PASSES"
	[ "$VERIFIED" -eq 0 ] || did bytes_verified "$VERIFIED"
	: >"$TMP/ended.$1"
}
