# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What makes null_blk disks for the tests.

. "${0%/*}/disk_lib.sh"

NULLB=/sys/kernel/config/nullb

need_null_blk()
{
	[ -d "$NULLB" ] || modprobe -q null_blk nr_devices=0 2>/dev/null
	[ -d "$NULLB" ] ||
		missing "no $NULLB (configfs, CONFIG_BLK_DEV_NULL_BLK)"
}

# with_two_cpus COMMAND [ARG...]: a case that gives a null_blk two hardware
# queues, of which it has no more than the machine has CPUs.
with_two_cpus()
{
	[ "$(nproc)" -gt 1 ] || { skip_case "one CPU"; return; }
	"$@"
}

# null_create NAME [ATTRIBUTE=VALUE...]: /dev/NAME, for the time of this test.
# The defaults are what lets a batch of 32 tags, and a request of 128 KiB,
# happen at all.
null_create()
{
	local name="$1" pair

	shift
	mkdir "$NULLB/$name" || return 1
	at_exit null_remove "$name"
	for pair in size=256 hw_queue_depth=256 submit_queues=2 irqmode=0 \
		    max_sectors=2048 "$@" power=1; do
		echo "${pair#*=}" >"$NULLB/$name/${pair%%=*}" || return 1
	done
	wait_for 60 test -b "/dev/$name" && prepare "$name"
}

null_remove()
{
	[ ! -d "$NULLB/$1" ] || rmdir "$NULLB/$1"
	# The next disk of this name starts anew.
	forget_attrs "/block/$1/"
}

# some_disk COMMAND: is it true of some disk or, since there may be none yet, of a
# null_blk made for the question, bphas?
some_disk()
{
	local rc=0

	! eval "$1" >/dev/null 2>&1 || return 0
	null_create bphas >/dev/null 2>&1 || return
	eval "$1" >/dev/null 2>&1 || rc=$?
	null_remove bphas
	return $rc
}

# need_scheduler NAME CONFIG
need_scheduler()
{
	modprobe -q "$1-iosched" 2>/dev/null
	some_disk "grep -w $1 /sys/block/*/queue/scheduler" ||
		missing "no $1 ($2)"
}

need_deadline()
{
	need_scheduler mq-deadline CONFIG_MQ_IOSCHED_DEADLINE
}

need_wbt()
{
	some_disk "echo 75000 >/sys/block/bphas/queue/wbt_lat_usec" ||
		missing "no writeback throttling (CONFIG_BLK_WBT)"
}
