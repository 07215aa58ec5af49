# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What mixed.sh puts I/O on. "stack NAME" makes it, or skips, and sets
#
# DISKS   the disks that loads write to, as named in /dev
# QUEUES  the disks whose queues are disturbed: also those underneath
# TRAITS  what loads and judgement must know:
#	  poll    has queues to poll
#	  polled  all I/O is to be polled
#	  cmd     takes NVMe commands through /dev/ngXnY
#	  nodata  does not keep what is written
#	  errors  I/O may fail; it must still end
#	  zoned   writes go in sequence, zone by zone
#	  fewtags NOWAIT I/O is refused more often than not
#	  steady  the queue is not frozen, nor memory short
# MORE    disturbers that fit, besides those that fit each queue
#
# What a part has made it takes down at the end of this script (at_exit), what
# was made last first.
#
# shellcheck disable=SC2034,SC2153 # they are set for mixed.sh

REMOVABLE=
SSD=/sys/module/ssd_model/parameters/device

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

# null DISK [ATTRIBUTE=VALUE...]: a null_blk that keeps no data, so that its
# queue need not sleep and the modes are in force
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

null_zoned()
{
	null_alone size=$SIZE_MB zoned=1 zone_size=4 zone_nr_conv=0 irqmode=2 \
		"$@"
	TRAITS="zoned nodata"
	[ $# -eq 0 ] || TRAITS=zoned	# memory_backed=1
	MORE=
}

# null_faulty FAULT: how often a fault comes is for the disturber to say
null_faulty()
{
	null_alone irqmode=2 completion_nsec=50000
	FAULTS="$NULLB/tn0/$1"
	[ -d "$FAULTS" ] || skip "null_blk injects no faults in this kernel"
	MORE="hw_queues faults!"
}

# ssd NAME [WORD=VALUE...]: a model SSD, which keeps data
ssd()
{
	local name="$1"

	shift
	[ -e $SSD ] || insmod /modules/ssd_model.ko || skip "no module ssd_model"
	echo "$name size_mb=$SIZE_MB backing=1 write_cache=1 queues=2 depth=256" \
		"read_latency=fixed:50000 write_latency=fixed:20000 $*" >$SSD ||
		skip "the model SSD refuses $*"
	at_exit ssd_remove "$name"
	wait_for 5 test -b "/dev/${name}n1" && prepare "${name}n1"
}

ssd_remove()
{
	echo "-$1" >$SSD || found "the model SSD $1 stays"
}

# The NVMe disks of controllers with one namespace. A controller that was
# removed may come back under another name, and so may its namespace.
nvme_disks()
{
	local path

	for path in /sys/class/nvme/nvme*; do
		set -- "$path"/nvme*n*
		[ $# -gt 1 ] || [ ! -e "$1/queue" ] || echo "${1##*/}"
	done
}

# nvme N: sets BASES to so many
nvme()
{
	BASES=$(nvme_disks | head -n "$1" | xargs)
	# shellcheck disable=SC2086 # lists
	[ "$(count_words $BASES)" -eq "$1" ] ||
		skip "this guest has less than $1 NVMe disks"
	# shellcheck disable=SC2086 # a list
	need_disks $BASES
	MORE=reset
}

# bases N: sets BASES to N disks to build on, of a kind that the seed picks
bases()
{
	local n=0

	pick ssd nvme
	[ "$(nvme_disks | wc -l)" -ge "$1" ] || WORD=ssd
	[ -e /modules/ssd_model.ko ] || WORD=nvme
	if [ "$WORD" = nvme ]; then
		nvme "$1"
	else
		BASES=
		while [ $n -lt "$1" ]; do
			n=$((n + 1))
			ssd tb$n
			BASES="${BASES}${BASES:+ }tb${n}n1"
		done
	fi
	QUEUES=$BASES
}

wipe_bases()
{
	local disk

	for disk in $BASES; do
		dd if=/dev/zero of="/dev/$disk" bs=64k count=16 2>/dev/null
	done
}

# need_programs NAME...
need_programs()
{
	local name

	for name; do
		command -v "$name" >/dev/null ||
			skip "no program $name in this guest"
	done
}

# need_option CONFIG_X: of the kernel
need_option()
{
	zcat /proc/config.gz | grep -q "^$1=[ym]" || skip "the kernel has no $1"
}

# dm_create NAME TABLE
dm_create()
{
	need_programs dmsetup
	dmsetup create "$1" --noudevsync --table "$2" ||
		skip "dmsetup cannot create $1"
	at_exit dm_remove "$1"
	dmsetup mknodes
}

dm_remove()
{
	dmsetup info "$1" >/dev/null 2>&1 || return 0
	dmsetup resume "$1" 2>/dev/null
	wait_for 10 dmsetup remove "$1" --noudevsync
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

dm_thin()
{
	need_option CONFIG_DM_THIN_PROVISIONING
	wipe_bases
	dm_create tpool "0 $(($(cat "/sys/block/$1/size") / 128 * 128)) \
		thin-pool /dev/$2 /dev/$1 128 0 1 skip_block_zeroing"
	dmsetup message tpool 0 "create_thin 0" || skip "no thin volume"
	dm_create tthin "0 $((SIZE_MB * 2048)) thin /dev/mapper/tpool 0"
	DISKS=mapper/tthin
	MORE="$MORE dm_suspend"
}

# Device-mapper finds the request of the disk below through the bio that it
# cloned, so nothing may be left held when a poller looks for it. A submission
# goes to both disks.
dm_polled()
{
	local name

	dm_create tpolled "0 $((SIZE_MB * 2048)) striped 2 128 /dev/$1 0 /dev/$2 0"
	name=$(grep -lx tpolled /sys/block/dm-*/dm/name)
	[ "$(cat "${name%/dm/name}/queue/io_poll")" = 1 ] ||
		skip "$1 or $2 does not poll (nvme.poll_queues)"
	DISKS=mapper/tpolled
	QUEUES="$1 $2"
	TRAITS="poll polled steady"
}

# scsi DISKS PARAMETER=VALUE...: a host of scsi_debug; sets DISKS
scsi()
{
	local count="$1"

	shift
	need_option CONFIG_SCSI_DEBUG
	insmod /modules/scsi_debug.ko "$@" ||
		skip "scsi_debug cannot be loaded with $*"
	at_exit wait_for 20 rmmod scsi_debug
	wait_for 20 have_scsi_disks "$count" || return
	DISKS=$(cd /sys/block && echo sd*)
	# shellcheck disable=SC2086 # a list
	need_disks $DISKS
}

have_scsi_disks()
{
	# shellcheck disable=SC2046 # a list
	[ -e /dev/sda ] && [ "$(count_words $(ls -d /sys/block/sd*))" -eq "$1" ]
}

# Units of one host with few tags, which it says at times that it has not. They
# have one store: dm gives each its part.
scsi_luns()
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
		DISKS="$DISKS${DISKS:+ }mapper/tlun$lun"
		lun=$((lun + 1))
	done
	TRAITS=fewtags
	MORE=dm_suspend
}

scsi_zoned()
{
	pick 0 4 16
	scsi 1 zbc=managed zone_size_mb=4 zone_nr_conv=0 submit_queues=2 \
		dev_size_mb=$SIZE_MB host_max_queue="$WORD" ndelay=50000
	TRAITS=zoned
}

# raid CONFIG LEVEL DISKS [OPTION...]
raid()
{
	local config="$1" level="$2" count="$3"

	shift 3
	need_option "CONFIG_MD_RAID$config"
	need_programs mdadm
	bases "$count"
	wipe_bases
	# shellcheck disable=SC2046,SC2086 # a list
	mdadm --create /dev/md0 --run --assume-clean --metadata=1.2 \
		--level="$level" --raid-devices="$count" --homehost=none \
		--data-offset=1M "$@" $(printf '/dev/%s ' $BASES) 2>&1 ||
		skip "mdadm cannot create a raid"
	at_exit wait_for 20 mdadm --quiet --stop /dev/md0
	wait_for 5 test -b /dev/md0
	DISKS=md0
}

# raid_with_bitmap: says what it missed to a disk that failed
raid_with_bitmap()
{
	raid "$@" --bitmap=internal
	MORE="$MORE md_fail md_check"
}

# A cache that writes back, and that is taken away in the midst
bcache()
{
	local disk

	need_option CONFIG_BCACHE
	need_programs make-bcache
	wipe_bases
	make-bcache --writeback --bucket 64k -B "/dev/$1" -C "/dev/$2" ||
		skip "make-bcache cannot make a cache"
	at_exit bcache_remove
	for disk; do
		echo "/dev/$disk" >/sys/fs/bcache/register
	done
	wait_for 10 test -b /dev/bcache0 || return
	echo 0 >/sys/block/bcache0/bcache/sequential_cutoff
	echo 0 >/sys/block/bcache0/bcache/writeback_delay
	DISKS=bcache0
	MORE="$MORE bcache!"
}

bcache_is_gone()
{
	! ls -d /sys/block/bcache0 /sys/fs/bcache/*-* >/dev/null 2>&1
}

bcache_remove()
{
	local stop

	for stop in /sys/block/bcache0/bcache/stop /sys/fs/bcache/*-*/stop; do
		[ ! -e "$stop" ] || echo 1 >"$stop"
	done
	wait_for 60 bcache_is_gone
}

ublk()
{
	need_option CONFIG_BLK_DEV_UBLK
	need_programs kublk
	# Its threads would outlive this script with a pipe in their hands.
	kublk add -t loop -q 2 -d 64 -n 0 --quiet "/dev/$1" \
		</dev/null >"$TMP/kublk" 2>&1 ||
		skip "kublk cannot add a disk: $(tail -n 1 "$TMP/kublk")"
	at_exit ublk_remove
	wait_for 10 test -b /dev/ublkb0 && prepare ublkb0
	DISKS=ublkb0
	QUEUES="ublkb0 $1"
}

# Its server holds the base until it ends.
ublk_is_gone()
{
	[ ! -e /dev/ublkb0 ] && ! killall -0 kublk 2>/dev/null
}

# kublk's own exit status is also that of a server that is slow to end.
ublk_remove()
{
	timeout 60 kublk del -n 0
	wait_for 60 ublk_is_gone
}

# The controller goes away in the midst, and comes back.
nvme_remove()
{
	REMOVABLE=$(readlink -f "/sys/block/$1/device/device")
	ln -sf "$1" /dev/removable
	at_exit rm -f /dev/removable
	at_exit removable_back
	DISKS=removable
	QUEUES=$1
	TRAITS="errors nodata"
	MORE="remove! fuzz"
}

removable_disk()
{
	nvme_disk_at "$REMOVABLE"
}

removable_back()
{
	[ -n "$(removable_disk)" ] || bring_back
}

# --- the stacks ------------------------------------------------------------

# stack NAME: the labels are all there are
stack()
{
	case $1 in
	nvme)
		nvme 1
		DISKS=$BASES
		TRAITS="poll cmd"
		MORE="reset fuzz"
		;;
	nvme_two)			# controllers in one job
		nvme 2
		DISKS=$BASES
		TRAITS="poll cmd"
		;;
	nvme_namespaces)		# so one set of tags, in one job
		DISKS=$(cd /sys/block && ls -d nvme*n2) ||
			skip "no controller with two namespaces"
		DISKS="${DISKS%n2}n1 $DISKS"
		# shellcheck disable=SC2086 # a list
		need_disks $DISKS
		TRAITS="poll cmd"
		MORE=reset
		;;
	nvme_remove)
		nvme 1
		nvme_remove "$BASES"
		;;
	null_irq0) null_alone irqmode=0 ;;
	null_irq1)
		null_alone irqmode=1
		MORE="hw_queues! fuzz!"
		;;
	null_irq2) null_alone irqmode=2 completion_nsec=100000 ;;
	null_blocking) null_alone blocking=1 ;;
	null_memory)			# makes it sleep: it falls back to "always"
		null_alone size=$SIZE_MB memory_backed=1 irqmode=2
		TRAITS=
		;;
	null_shared_tags)
		null tn0 shared_tags=1 irqmode=2
		null tn1 shared_tags=1 irqmode=2
		DISKS="tn0 tn1"
		TRAITS=nodata
		;;
	null_shared_bitmap)
		null_alone shared_tag_bitmap=1 irqmode=2 submit_queues=4
		;;
	null_poll)
		null_alone submit_queues=1 poll_queues=1 irqmode=1
		TRAITS="nodata poll"
		;;
	null_zoned) null_zoned memory_backed=1 ;;
	# io_uring hands a write that would have to wait, so one to a frozen
	# queue, to a worker, and the next one overtakes it: with or without the
	# series, that is an error where the order counts.
	null_zoned_uring)
		null_zoned memory_backed=1
		TRAITS="zoned steady"
		;;
	null_timeout)
		null_faulty timeout_inject
		echo 500 >/sys/block/tn0/queue/io_timeout
		TRAITS="nodata errors"
		;;
	null_requeue) null_faulty requeue_inject ;;
	null_init_hctx)
		null_faulty init_hctx_fault_inject
		MORE="hw_queues! faults!"
		;;
	null_power)			# goes in the midst, and comes back
		null_alone irqmode=2
		TRAITS="nodata errors"
		MORE="power! fuzz!"
		;;
	virtio)
		DISKS=vda
		need_disks vda
		;;
	ssd)
		ssd tb1 poll_queues=1
		DISKS=tb1n1
		TRAITS=poll
		MORE=fuzz
		;;
	ssd_namespaces)
		ssd tb1 namespaces=2
		prepare tb1n2
		DISKS="tb1n1 tb1n2"
		;;
	scsi_luns) scsi_luns ;;
	scsi_zoned) scsi_zoned ;;
	dm_crypt)
		bases 1
		crypt "$BASES"
		;;
	# The null_blk that keeps no data follows the modes, the others do not.
	dm_crypt_zoned)
		pick null_zoned "null_zoned memory_backed=1" scsi_zoned
		$WORD
		crypt "$DISKS"
		;;
	dm_thin)			# whose chunks come as they are written
		bases 2
		# shellcheck disable=SC2086 # two
		dm_thin $BASES
		;;
	dm_polled)
		nvme 2
		# shellcheck disable=SC2086 # two
		dm_polled $BASES
		;;
	md_raid0) raid 0 0 2 ;;
	md_raid1) raid_with_bitmap 1 1 2 ;;
	md_raid10)
		raid 10 10 4 --bitmap=internal
		MORE="$MORE md_fail! md_check"
		;;
	md_raid5) raid_with_bitmap 456 5 3 ;;
	bcache)
		bases 2
		# shellcheck disable=SC2086 # two
		bcache $BASES
		;;
	loop)
		bases 1
		loop_create "/dev/$BASES" || skip "no loop device"
		DISKS=$LOOP
		QUEUES="$LOOP $BASES"
		;;
	ublk)
		bases 1
		ublk "$BASES"
		;;
	*) found "there is no stack '$1'" ;;
	esac
	QUEUES=${QUEUES:-$DISKS}
}
