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

# passes COMMAND...: each with a seed of its own, R. COMMAND counts in IOS, and
# sets BYTES to what it has verified.
passes()
{
	local rc

	while more_passes; do
		rc=0 BYTES=0
		rnd 1000000
		"$@" >"$TMP/said.$LOAD" 2>&1 || rc=$?
		if [ $rc -eq 0 ]; then
			PASSES=$((PASSES + 1))
			trait nodata || VERIFIED=$((VERIFIED + BYTES))
		elif [ $rc -ne $STUCK ] && { trait errors || is_excused $rc; }; then
			sleep 0.2	# the disk may be away for a while
		else
			cat "$TMP/said.$LOAD"
			found "$LOAD: exit $rc:" "$(grep -im 1 -E \
				'plug_load:|verify|error|fail' \
				"$TMP/said.$LOAD" || tail -n 1 "$TMP/said.$LOAD")"
			break
		fi
	done
}

# Exits of plug_load: I/O that never ends; a kernel or disk that cannot do it
STUCK=3
CANNOT=4

# is_excused RC: what neither the disk nor the series has to answer for
is_excused()
{
	[ "$1" -ne $CANNOT ] || return 0
	# Before passthrough, fio identifies the namespace by a command that
	# nobody repeats when a reset of the controller ends it.
	grep -q "failed to fetch identify namespace" "$TMP/said.$LOAD" && return
	# md splits an I/O, and one part may find no tag. Linux 6.12's io_uring
	# repeats such an I/O only if all parts end in the task, and none in an
	# interrupt.
	uname -r | grep -q '^6\.12\.' && [ "${STACK#md_}" != "$STACK" ] &&
		grep -q "Resource temporarily unavailable" "$TMP/said.$LOAD"
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

# fio_pass RW OPTION...
fio_pass()
{
	local rw="$1" rc=0

	shift
	if ! trait nodata; then
		set -- "$@" --verify=crc32c --do_verify=1 --verify_fatal=1 \
			--verify_state_save=0
	elif [ "$rw" = randwrite ]; then
		rw=randrw
	fi
	# fio would read nothing, for ever, from a disk that is gone
	! trait errors || set -- "$@" --continue_on_error=all --runtime=30
	! trait zoned || set -- "$@" --zonemode=zbd --max_open_zones=2
	rm -f "$TMP/fio.$LOAD"
	# A disk that is away must not become a file in /dev.
	# shellcheck disable=SC2086 # a list
	fio --name="$LOAD" --thread --eta=never --output-format=json \
		--allow_file_create=0 --output="$TMP/fio.$LOAD" \
		--filename="$(fio_files)" --rw="$rw" --randseed="$R" \
		--file_service_type=roundrobin --offset="${START}m" \
		--size="$((RANGE_MB * $(count_words $DISKS)))m" "$@" || rc=$?
	[ -s "$TMP/fio.$LOAD" ] || return 255
	# shellcheck disable=SC2046 # two numbers
	set -- $(fio_sums "$TMP/fio.$LOAD")
	IOS=$((IOS + $1)) BYTES=$2
	return $rc
}

# async RW ENGINE OPTION...: an asynchronous engine, of some depth, that submits
# batches of some size
async()
{
	local rw="$1" engine="$2" depth

	shift 2
	pick 4 32 64 128
	depth=$WORD
	pick 1 4 8 16 32 32 64
	[ "$WORD" -le "$depth" ] || WORD=$depth
	passes fio_pass "$rw" --ioengine="$engine" --direct=1 \
		--iodepth="$depth" --iodepth_batch_submit="$WORD" \
		--iodepth_batch_complete_min=1 \
		--iodepth_batch_complete_max="$depth" "$@"
}

# async_write ENGINE OPTION...: in a row or at random
async_write()
{
	pick write randwrite
	async "$WORD" "$@"
}

# sync_write OPTION...
sync_write()
{
	pick write randwrite
	passes fio_pass "$WORD" --ioengine=psync --bs=4k "$@"
}

# --- plug_load: its batches are exact, its pattern depends on the seed -----

# What plug_load printed as NAME=VALUE, summed
batch_sum()
{
	tr ' ' '\n' <"$TMP/batch.$LOAD" |
		awk -F= -v name="$1" '$1 == name { n += $2 } END { print n + 0 }'
}

# batch_pass OPTION...
batch_pass()
{
	local rc=0

	pick 1 2 8 32 32 64 128
	# shellcheck disable=SC2046,SC2086 # a list
	set -- -s "$WORD" -c 1 "$@" -S "$R" -o "${START}m" -z ${RANGE_MB}m \
		$(printf '/dev/%s ' $DISKS)
	if trait nodata; then
		! trait errors || set -- -E "$@"
		plug_load -m 50 -n 4000 "$@"
	else
		plug_load -r write -a rand-once "$@" &&
			plug_load -r verify -a rand "$@"
	fi >"$TMP/batch.$LOAD" 2>&1 || rc=$?
	IOS=$((IOS + $(batch_sum ios))) BYTES=$(($(batch_sum bytes) / 2))
	cat "$TMP/batch.$LOAD"
	return $rc
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
	psync) sync_write --direct=1 ;;
	buffered) sync_write --fsync=64 --invalidate=1 ;;
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
	batch) passes batch_pass ;;
	batch_libaio) passes batch_pass -e libaio ;;
	batch_sqpoll) passes batch_pass -q ;;
	batch_polled) passes batch_pass -P ;;
	nowait) passes batch_pass -N ;;
	*) found "there is no load '$LOAD'" ;;
	esac
	did ios "$IOS"
	did passes "$PASSES"
	[ "$VERIFIED" -eq 0 ] || did bytes_verified "$VERIFIED"
	: >"$TMP/ended.$1"
}
