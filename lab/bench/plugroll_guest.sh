#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In a guest of laboratory.py: plugroll on a disk whose doorbells are expensive, as
# each leaves the guest, under a live load: "never", which rings one per request,
# does harm, and trips the guard.  Speaks TAP.

set -u

DISK=nvme0n1
LOG=/tmp/plugroll.log

# shellcheck source-path=SCRIPTDIR source=../../lab/qemu/tap.sh
. "${0%/*}/tap.sh"

is()
{
	grep -q "\[$2\]" "/sys/block/$1/queue/plug_policy"
}

# soon SECONDS COMMAND...: it succeeds within that time
soon()
{
	tries=$(($1 * 10))
	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return
		sleep 0.1
	done
}

plugroll()
{
	python3 /plugroll "$@" >"$LOG" 2>&1 </dev/null
}

# exits CODE ARGUMENT...: plugroll does, and the mode is as before
exits()
{
	want=$1
	shift
	start=$(date +%s)
	plugroll "$@"
	code=$?
	echo "exit $code after $(($(date +%s) - start)) s" >>"$LOG"
	sed 's/^/# /' "$LOG"
	case " $want " in *" $code "*) is "$DISK" always ;; *) false ;; esac
}

start_load()
{
	fio --name=live "--filename=/dev/$DISK" --ioengine=io_uring --direct=1 \
		--rw=read --bs=4k --iodepth=32 --iodepth_batch=32 \
		--iodepth_batch_complete_min=32 --time_based --runtime=3600 \
		>/tmp/fio.log 2>&1 &
	sleep 2
}

within_its_time()
{
	[ "$(sed -n 's/^exit 3 after \([0-9]*\) s/\1/p' "$LOG")" -lt 120 ]
}

says_why()
{
	grep -q "guard tripped: $DISK: iops by -" "$LOG" &&
		grep -q "the mode before is back" "$LOG"
}

no_tracing()
{
	[ -d /sys/kernel/tracing/instances ] &&
		! ls -d /sys/kernel/tracing/instances/plugroll* 2>/dev/null
}

# A kill that cannot be caught, while the other mode is set
killed()
{
	python3 /plugroll try never "$DISK" --for 2m --block 5 \
		--guard iops=-90% >"$LOG" 2>&1 </dev/null &
	pid=$!
	soon 60 is "$DISK" never || return
	kill -9 "$pid"
	wait "$pid"
	sleep 2
	is "$DISK" always
}

exits 4 try never "$DISK" --for 12s
result $? "an idle disk: not enough I/O to tell"
start_load
exits 3 try never "$DISK" --for 2m --guard iops=-5%
result $? "never does harm: the guard trips, always is back"
check "within its time" within_its_time
check "it says why" says_why
plugroll list
sed 's/^/# /' "$LOG"
check "list tells of it" grep -q "tried never .*guard tripped" "$LOG"
exits 0 try always "$DISK" --for 10m
result $? "the same mode: nothing to try"
exits "0 3 4" try seq-small "$DISK" --for 24s --guard p99=99%,iops=-95%
result $? "another mode is tried, always is back"
check "p99 is measured" grep -q "^  p99 .*ms" "$LOG"
check "no tracing is left" no_tracing
check "killed: always is back" killed
kill %1
wait
echo "1..$N"
exit $FAILED
