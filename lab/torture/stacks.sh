# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What mixed.sh puts I/O on. stack_NAME makes it, or skips, and sets
#
# DISKS   the disks that loads write to, as named in /dev
# QUEUES  the disks whose queues are disturbed: also those underneath
# TRAITS  what loads and judgement must know:
#	  poll    has queues to poll
#	  cmd     takes NVMe commands through /dev/ngXnY
#	  nodata  does not keep what is written
#	  errors  I/O may fail; it must still end
#	  zoned   writes go in sequence, zone by zone
#	  fewtags NOWAIT I/O is refused more often than not
#	  steady  the queue is not frozen, nor memory short
# MORE    disturbers that fit, besides those that fit each queue
#
# down_NAME, if there is one, takes down what lib.sh does not know of.
#
# shellcheck disable=SC2034,SC2153 # they are set for mixed.sh

REMOVABLE=
SSD=/sys/kernel/config/ssd_model

# Disks that keep data keep this much; a load has 16 MiB of it.
SIZE_MB=64

# --- parts -----------------------------------------------------------------

need_disks()
{
	local disk

	for disk; do
		[ -b "/dev/$disk" ] || skip "no disk $disk in this guest"
		prepare "$disk"
	done
}

# A null_blk that keeps no data, so that its queue need not sleep and the modes
# are in force. null DISK [ATTRIBUTE=VALUE...]
null()
{
	need_null_blk
	[ -z "$MISSING" ] || skip "$MISSING"
	null_create "$@" || skip "null_blk refuses $*"
}

null_alone()
{
	TRAITS=nodata
	MORE=hw_queues
	DISKS=tn0
	null tn0 "$@"
}

# ssd NAME [ATTRIBUTE=VALUE...]: a model SSD, which keeps data
ssd()
{
	local name="$1" pair

	shift
	if [ ! -d $SSD ]; then
		insmod /modules/ssd_model.ko || skip "no module ssd_model"
	fi
	mkdir "$SSD/$name" || skip "no model SSD $name"
	SSDS="${SSDS-} $name"
	for pair in size_mb=$SIZE_MB backing=1 write_cache=1 queues=2 \
		    depth=256 read_latency=fixed:50000 \
		    write_latency=fixed:20000 "$@" power=1; do
		echo "${pair#*=}" >"$SSD/$name/${pair%%=*}" ||
			skip "the model SSD refuses $pair"
	done
	wait_for 5 test -b "/dev/${name}n1" && prepare "${name}n1"
}

# The NVMe disks of controllers with one namespace. A controller that was
# removed may come back under another name.
nvme_disks()
{
	local path

	for path in /sys/block/nvme*n1; do
		[ -e "$path/queue" ] && [ ! -e "${path%n1}n2" ] &&
			echo "${path##*/}"
	done
}

# nvme_disk N: sets DISK
nvme_disk()
{
	DISK=$(nvme_disks | sed -n "$1p")
	[ -n "$DISK" ] || skip "this guest has less than $1 NVMe disks"
	need_disks "$DISK"
}

# bases N: sets BASES to N disks to build on, of a kind that the seed picks
bases()
{
	local n=0

	BASES=
	pick ssd nvme
	[ "$(nvme_disks | wc -l)" -ge "$1" ] || WORD=ssd
	[ -e /modules/ssd_model.ko ] || WORD=nvme
	while [ $n -lt "$1" ]; do
		n=$((n + 1))
		if [ "$WORD" = ssd ]; then
			ssd tb$n
			BASES="$BASES tb${n}n1"
		else
			nvme_disk $n
			BASES="$BASES $DISK"
		fi
	done
	BASES=${BASES# }
	[ "$WORD" = ssd ] || MORE="$MORE reset"
}

down_bases()
{
	local name

	for name in ${SSDS-}; do
		rmdir "$SSD/$name" || found "the model SSD $name stays"
	done
	SSDS=
}

need_tool()
{
	command -v "$1" >/dev/null || skip "no program $1 in this guest"
}

# need_option CONFIG_X...: of the kernel
need_option()
{
	local option

	for option; do
		zcat /proc/config.gz | grep -q "^$option=[ym]" ||
			skip "the kernel has no $option"
	done
}

# --- NVMe ------------------------------------------------------------------

stack_nvme()
{
	nvme_disk 1
	DISKS=$DISK
	TRAITS="poll cmd"
	MORE=reset
}

# Two controllers in one job
stack_nvme_two()
{
	nvme_disk 1
	DISKS=$DISK
	nvme_disk 2
	DISKS="$DISKS $DISK"
	TRAITS="poll cmd"
	MORE=reset
}

# Two namespaces, so one set of tags, in one job
stack_nvme_namespaces()
{
	local path

	for path in /sys/block/nvme*n2; do
		[ -e "$path" ] || skip "no controller with two namespaces"
		path=${path##*/}
	done
	need_disks "${path%n2}n1" "$path"
	DISKS="${path%n2}n1 $path"
	TRAITS="poll cmd"
	MORE=reset
}

# The controller goes away in the midst, and comes back.
stack_nvme_remove()
{
	nvme_disk 1
	REMOVABLE=$(readlink -f "/sys/block/$DISK/device/device")
	ln -sf "$DISK" /dev/removable
	DISKS=removable
	QUEUES=$DISK
	TRAITS="errors nodata"
	MORE="remove!"
}

down_nvme_remove()
{
	[ -n "$(removable_disk)" ] || bring_back
	rm -f /dev/removable
}

removable_disk()
{
	nvme_disk_at "$REMOVABLE"
}

# --- null_blk --------------------------------------------------------------

stack_null_irq0()
{
	null_alone irqmode=0
}

stack_null_irq1()
{
	null_alone irqmode=1
}

stack_null_irq2()
{
	null_alone irqmode=2 completion_nsec=100000
}

stack_null_blocking()
{
	null_alone blocking=1
}

# Memory makes it sleep, so that it falls back to "always".
stack_null_memory()
{
	null_alone size=$SIZE_MB memory_backed=1 irqmode=2
	TRAITS=
}

stack_null_shared_tags()
{
	null tn0 shared_tags=1 irqmode=2
	null tn1 shared_tags=1 irqmode=2
	DISKS="tn0 tn1"
	TRAITS=nodata
}

stack_null_shared_bitmap()
{
	null_alone shared_tag_bitmap=1 irqmode=2 submit_queues=4
}

stack_null_poll()
{
	null_alone submit_queues=1 poll_queues=1 irqmode=1
	TRAITS="nodata poll"
}

# null_zoned [ATTRIBUTE=VALUE...]
null_zoned()
{
	null_alone size=$SIZE_MB zoned=1 zone_size=4 zone_nr_conv=0 irqmode=2 \
		"$@"
	TRAITS="zoned nodata"
	MORE=
}

stack_null_zoned()
{
	null_zoned memory_backed=1
	TRAITS=zoned
}

# io_uring hands a write that would have to wait, so one to a frozen queue, to a
# worker, and the next one overtakes it: with or without the series, that is an
# error where the order counts.
stack_null_zoned_uring()
{
	stack_null_zoned
	TRAITS="zoned steady"
}

# null_faulty FAULT: how often a fault comes is for the disturber to say
null_faulty()
{
	null_alone irqmode=2 completion_nsec=50000
	FAULTS="$NULLB/tn0/$1"
	[ -d "$FAULTS" ] || skip "null_blk injects no faults in this kernel"
	MORE="hw_queues faults!"
}

stack_null_timeout()
{
	null_faulty timeout_inject
	echo 500 >/sys/block/tn0/queue/io_timeout
	TRAITS="nodata errors"
}

stack_null_requeue()
{
	null_faulty requeue_inject
}

stack_null_init_hctx()
{
	null_faulty init_hctx_fault_inject
	MORE="hw_queues! faults!"
}

# The power goes in the midst, and comes back.
stack_null_power()
{
	null_alone irqmode=2
	TRAITS="nodata errors"
	MORE=power!
}

# --- other drivers ---------------------------------------------------------

stack_virtio()
{
	need_disks vda
	DISKS=vda
}

stack_ssd()
{
	ssd tb1 poll_queues=1
	DISKS=tb1n1
	TRAITS=poll
}

down_ssd()
{
	down_bases
}

stack_ssd_namespaces()
{
	ssd tb1 namespaces=2
	prepare tb1n2
	DISKS="tb1n1 tb1n2"
}

down_ssd_namespaces()
{
	down_bases
}

# scsi DISKS PARAMETER=VALUE...: a host of scsi_debug; sets DISKS
scsi()
{
	local count="$1"

	shift
	need_option CONFIG_SCSI_DEBUG
	insmod /modules/scsi_debug.ko "$@" ||
		skip "scsi_debug cannot be loaded with $*"
	wait_for 20 have_scsi_disks "$count" || return
	DISKS=$(cd /sys/block && echo sd*)
	for DISK in $DISKS; do
		prepare "$DISK"
	done
}

have_scsi_disks()
{
	# shellcheck disable=SC2046 # a list
	[ -e /dev/sda ] && [ "$(count_words $(ls -d /sys/block/sd*))" -eq "$1" ]
}

down_scsi()
{
	[ ! -d /sys/module/scsi_debug ] || wait_for 20 rmmod scsi_debug
}

# Units of one host with few tags, which it says at times that it has not. They
# have one store: dm gives each its part.
stack_scsi_luns()
{
	local lun=0 busy depth

	pick 0 0x8000
	busy=$WORD
	pick 0 4 16 64
	depth=$WORD
	pick delay=0 ndelay=50000
	scsi 3 max_luns=3 host_max_queue="$depth" submit_queues=2 "$WORD" \
		dev_size_mb=$((3 * SIZE_MB)) every_nth=100 opts="$busy"
	QUEUES=$DISKS
	DISKS=
	for DISK in $QUEUES; do
		dm_create tlun$lun "0 $((SIZE_MB * 2048)) linear /dev/$DISK \
			$((lun * SIZE_MB * 2048))"
		DISKS="$DISKS mapper/tlun$lun"
		lun=$((lun + 1))
	done
	DISKS=${DISKS# }
	TRAITS=fewtags
	MORE=dm_suspend
}

down_scsi_luns()
{
	down_dm
	down_scsi
}

stack_scsi_zoned()
{
	pick 0 4 16
	scsi 1 zbc=managed zone_size_mb=4 zone_nr_conv=0 submit_queues=2 \
		dev_size_mb=$SIZE_MB host_max_queue="$WORD" ndelay=50000
	TRAITS=zoned
}

down_scsi_zoned()
{
	down_scsi
}

# --- stacked ---------------------------------------------------------------

# dm_create NAME TABLE
dm_create()
{
	need_tool dmsetup
	dmsetup create "$1" --noudevsync --table "$2" ||
		skip "dmsetup cannot create $1"
	# the first to be removed
	DMS="$1 ${DMS-}"
	dmsetup mknodes
}

down_dm()
{
	local name

	for name in ${DMS-}; do
		dmsetup resume "$name" 2>/dev/null
		wait_for 10 dmsetup remove "$name" --noudevsync
	done
	DMS=
	down_bases
}

# crypt DISK: dm-crypt on it
crypt()
{
	need_option CONFIG_DM_CRYPT
	dm_create tcrypt "0 $(cat "/sys/block/$1/size") crypt aes-xts-plain64 \
		$(printf '%064d' 7) 0 /dev/$1 0"
	DISKS=mapper/tcrypt
	QUEUES=$1
	MORE="$MORE dm_suspend"
}

stack_dm_crypt()
{
	bases 1
	crypt "$BASES"
}

down_dm_crypt()
{
	down_dm
}

# The null_blk that keeps no data follows the modes, the others do not.
stack_dm_crypt_zoned()
{
	pick null_zoned stack_null_zoned stack_scsi_zoned
	$WORD
	crypt "$DISKS"
}

down_dm_crypt_zoned()
{
	down_dm
	down_scsi
}

# dm-thin, whose chunks come into being as they are written
stack_dm_thin()
{
	need_option CONFIG_DM_THIN_PROVISIONING
	bases 2
	# shellcheck disable=SC2086 # two
	set -- $BASES
	dd if=/dev/zero of="/dev/$2" bs=64k count=16 2>/dev/null
	dm_create tpool "0 $(($(cat "/sys/block/$1/size") / 128 * 128)) \
		thin-pool /dev/$2 /dev/$1 128 0 1 skip_block_zeroing"
	dmsetup message tpool 0 "create_thin 0" || skip "no thin volume"
	dm_create tthin "0 $((SIZE_MB * 2048)) thin /dev/mapper/tpool 0"
	DISKS=mapper/tthin
	QUEUES=$BASES
	MORE="$MORE dm_suspend"
}

down_dm_thin()
{
	down_dm
}

# raid LEVEL DISKS
raid()
{
	local disk devices=

	need_option "CONFIG_MD_RAID$1"
	need_tool mdadm
	bases "$2"
	for disk in $BASES; do
		dd if=/dev/zero of="/dev/$disk" bs=64k count=16 2>/dev/null
		devices="$devices /dev/$disk"
	done
	# shellcheck disable=SC2086 # a list
	mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 \
		--level="${3:-$1}" --raid-devices="$2" --homehost=none \
		--data-offset=1M ${4-} $devices 2>&1 || skip "mdadm cannot create a raid"
	wait_for 5 test -b /dev/md0
	DISKS=md0
	QUEUES=$BASES
}

stack_md_raid0()
{
	raid 0 2
}

stack_md_raid1()
{
	raid 1 2 1 --bitmap=internal
	MORE="$MORE md_fail md_check"
}

stack_md_raid10()
{
	raid 10 4 10 --bitmap=internal
	MORE="$MORE md_fail! md_check"
}

stack_md_raid5()
{
	raid 456 3 5 --bitmap=internal
	MORE="$MORE md_fail md_check"
}

down_md()
{
	[ ! -b /dev/md0 ] || wait_for 20 mdadm --quiet --stop /dev/md0
	down_bases
}

down_md_raid0()
{
	down_md
}

down_md_raid1()
{
	down_md
}

down_md_raid10()
{
	down_md
}

down_md_raid5()
{
	down_md
}

# A cache that writes back, and that is taken away in the midst
stack_bcache()
{
	local disk

	need_option CONFIG_BCACHE
	need_tool make-bcache
	bases 2
	# shellcheck disable=SC2086 # two
	set -- $BASES
	for disk; do
		dd if=/dev/zero of="/dev/$disk" bs=64k count=16 2>/dev/null
	done
	make-bcache --writeback --bucket 64k -B "/dev/$1" -C "/dev/$2" ||
		skip "make-bcache cannot make a cache"
	for disk; do
		echo "/dev/$disk" >/sys/fs/bcache/register
	done
	wait_for 10 test -b /dev/bcache0 || return
	echo 0 >/sys/block/bcache0/bcache/sequential_cutoff
	echo 0 >/sys/block/bcache0/bcache/writeback_delay
	DISKS=bcache0
	QUEUES=$BASES
	MORE="$MORE bcache!"
}

bcache_is_gone()
{
	! ls -d /sys/block/bcache0 /sys/fs/bcache/*-* >/dev/null 2>&1
}

down_bcache()
{
	local stop

	for stop in /sys/block/bcache0/bcache/stop /sys/fs/bcache/*-*/stop; do
		[ ! -e "$stop" ] || echo 1 >"$stop"
	done
	wait_for 60 bcache_is_gone
	down_bases
}

stack_loop()
{
	bases 1
	loop_create "/dev/$BASES" || skip "no loop device"
	DISKS=$LOOP
	QUEUES="$LOOP $BASES"
}

# The base goes before lib.sh's cleanup().
down_loop()
{
	[ -z "${LOOP-}" ] || wait_for 10 loop_remove "$LOOP"
	down_bases
}

stack_ublk()
{
	need_option CONFIG_BLK_DEV_UBLK
	need_tool kublk
	bases 1
	# Its threads would outlive this script with a pipe in their hands.
	kublk add -t loop -q 2 -d 64 -n 0 --quiet "/dev/$BASES" \
		</dev/null >"$TMP/kublk" 2>&1 ||
		skip "kublk cannot add a disk: $(tail -n 1 "$TMP/kublk")"
	wait_for 10 test -b /dev/ublkb0 && prepare ublkb0
	DISKS=ublkb0
	QUEUES="ublkb0 $BASES"
}

# Its server holds the base until it ends.
ublk_is_gone()
{
	[ ! -e /dev/ublkb0 ] && ! killall -0 kublk 2>/dev/null
}

# kublk's own exit status is also that of a server that is slow to end.
down_ublk()
{
	if [ -b /dev/ublkb0 ]; then
		timeout 60 kublk del -n 0
		wait_for 60 ublk_is_gone
	fi
	down_bases
}
