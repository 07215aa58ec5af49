# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The disturbers of mixed.sh. disturb_NAME goes on until $TMP/stop is there, and
# says how often it did what. A write that the kernel refuses, since another
# disturber was quicker or the disk is away, is not counted, and is no error.
#
# shellcheck disable=SC2153,SC2154 # QUEUES, MORE...: of stacks.sh

# Which fit: those of every queue, those of the machine, the stack's own. One
# with a "!" is what the stack is there for.
disturbers_of_stack()
{
	if trait steady; then
		echo "modes! groups $(attributes_of_steady) cpus"
		return
	fi
	echo "modes! groups elevators nr_requests nomerges iostats wbt" \
		"read_ahead affinity cpus memory $MORE" \
		"${TORTURE_SABOTAGE:+sabotage_$TORTURE_SABOTAGE!}"
}

# Linux 6.12 freezes the queue for each attribute but plug_policy.
attributes_of_steady()
{
	case $(uname -r) in
	6.12.*) ;;
	*) echo nomerges affinity ;;
	esac
}

going_on()
{
	[ ! -e "$TMP/stop" ]
}

# try VALUE FILE: counts in N what the kernel took
try()
{
	(echo "$1" >"$2") 2>/dev/null && N=$((N + 1))
}

# pause MS: up to so many
pause()
{
	rnd "$1"
	usleep $((R * 1000))
}

pick_queue()
{
	# shellcheck disable=SC2086 # a list
	pick $QUEUES
	[ -z "$REMOVABLE" ] || WORD=$(removable_disk)
	QUEUE=/sys/block/$WORD/queue
}

# choices FILE: what a file that brackets its choice offers
choices()
{
	{ tr -d '[]' <"$1" || echo none; } 2>/dev/null
}

# write_often MS KEY FILE VALUE...: to the queues, one at a time
write_often()
{
	local ms="$1" key="$2" file="$3"

	shift 3
	N=0
	while going_on; do
		pick_queue
		pick "$@"
		try "$WORD" "$QUEUE/$file"
		pause "$ms"
	done
	did "$key" $N
}

disturb_modes()
{
	local burst modes

	pick_queue
	modes=${TORTURE_MODES:-$(choices "$QUEUE/plug_policy")}
	N=0
	while going_on; do
		pick_queue
		burst=20
		while [ $burst -gt 0 ]; do
			# shellcheck disable=SC2086 # a list
			pick $modes
			try "$WORD" "$QUEUE/plug_policy"
			burst=$((burst - 1))
		done
		pause 20
	done
	did flips $N
}

disturb_groups()
{
	local file

	N=0
	while going_on; do
		pick_queue
		file=${QUEUE%/queue}
		pick 0 0 1 2 3 7 8 16 31 32
		for file in "$DEBUGFS/block/${file##*/}"/hctx*/plug_adaptive; do
			try "$WORD" "$file"
		done
		pause 20
	done
	did pins $N
}

disturb_elevators()
{
	N=0
	while going_on; do
		pick_queue
		# shellcheck disable=SC2046 # a list
		pick $(choices "$QUEUE/scheduler")
		try "$WORD" "$QUEUE/scheduler"
		pause 300
	done
	did elevators $N
}

disturb_nr_requests()
{
	write_often 200 nr_requests nr_requests 4 8 31 32 64 128 255
}

disturb_nomerges()
{
	write_often 50 nomerges nomerges 0 0 1 2
}

disturb_iostats()
{
	write_often 50 iostats iostats 0 1
}

disturb_wbt()
{
	write_often 100 wbt wbt_lat_usec 0 -1 100 2000 75000
}

disturb_read_ahead()
{
	write_often 100 read_ahead read_ahead_kb 0 4 128 1024
}

disturb_affinity()
{
	write_often 50 affinity rq_affinity 0 1 2
}

# --- the machine -----------------------------------------------------------

disturb_cpus()
{
	local cpu

	N=0
	while going_on; do
		for cpu in /sys/devices/system/cpu/cpu[1-9]*; do
			rnd 2
			[ -e "$cpu/online" ] && try "$R" "$cpu/online"
		done
		pause 700
	done
	did hotplugs $N
	cpus_back
}

cpus_back()
{
	local cpu

	for cpu in /sys/devices/system/cpu/cpu[1-9]*; do
		[ ! -e "$cpu/online" ] ||
			[ "$(cat "$cpu/online")" = 1 ] || echo 1 >"$cpu/online"
	done
}

# Takes a quarter of what is free, at most: this is no test of the OOM killer.
disturb_memory()
{
	local free

	N=0
	while going_on; do
		free=$(awk '$1 == "MemAvailable:" { print int($2 / 4096) }' \
			/proc/meminfo)
		[ "$free" -le 64 ] || free=64
		dd if=/dev/zero of="$TMP/hog" bs=1M count="$free" 2>/dev/null
		try 3 /proc/sys/vm/drop_caches
		rm -f "$TMP/hog"
		pause 1000
	done
	did memory_pressures $N
}

# --- what only some stacks have --------------------------------------------

disturb_hw_queues()
{
	local cpus

	cpus=$(nproc)
	N=0
	while going_on; do
		rnd "$cpus"
		try $((R + 1)) "$NULLB/tn0/submit_queues"
		pause 400
	done
	did hw_queues $N
}

# How many faults there were, the number left says. Not every time: a hardware
# queue that cannot be made anew is tried once more, and if that fails, too,
# blk-mq warns, with or without the series (__blk_mq_realloc_hw_ctxs()).
disturb_faults()
{
	local most=1000000

	echo 0 >"$FAULTS/verbose"
	echo $most >"$FAULTS/times"
	echo 50 >"$FAULTS/interval"
	echo 100 >"$FAULTS/probability"
	while going_on; do
		pick 2 7 20 100 400
		[ "$STACK" = null_init_hctx ] || [ "$WORD" -gt 2 ] || WORD=50
		echo "$WORD" >"$FAULTS/interval"
		pause 500
	done
	echo 0 >"$FAULTS/probability"
	did faults $((most - $(cat "$FAULTS/times")))
}

disturb_power()
{
	N=0
	while going_on; do
		pause 2000
		try 0 "$NULLB/tn0/power"
		pause 300
		power_back
	done
	did power_cycles $N
}

power_back()
{
	[ "$(cat "$NULLB/tn0/power")" = 1 ] || try 1 "$NULLB/tn0/power" ||
		found "null_blk does not come back"
}

ctrl_is_live()
{
	[ "$(cat "/sys/class/nvme/$1/state" 2>/dev/null)" = live ]
}

disturb_reset()
{
	local ctrl

	N=0
	while going_on; do
		pick_queue
		ctrl=${QUEUE#/sys/block/}
		ctrl=${ctrl%n*}
		if is_nvme "$ctrl" && [ -e "/sys/class/nvme/$ctrl" ]; then
			try 1 "/sys/class/nvme/$ctrl/reset_controller"
			trait errors || wait_for 60 ctrl_is_live "$ctrl"
		fi
		pause 1500
	done
	did resets $N
}

is_back()
{
	local disk

	disk=$(removable_disk)
	[ -b "/dev/$disk" ] && ctrl_is_live "$(ctrl_of "$disk")" &&
		ln -sf "$disk" /dev/removable
}

bring_back()
{
	echo 1 >/sys/bus/pci/rescan
	wait_for 60 is_back
}

reset_removable()
{
	N=0
	try 1 "$REMOVABLE/nvme/$(ctrl_of "$(removable_disk)")/reset_controller"
	did resets $N
}

# A reset may meet the removal, but not the probe: Linux 7.3 as it is takes one
# from a controller that is being probed, and then oopses, or leaves it dead.
disturb_remove()
{
	local reset

	N=0
	while going_on; do
		pause 3000
		reset_removable &
		reset=$!
		pause 300
		try 1 "$REMOVABLE/remove"
		wait $reset
		pause 300
		bring_back || break
	done
	did removals $N
}

disturb_dm_suspend()
{
	N=0
	while going_on; do
		# shellcheck disable=SC2086 # a list
		pick $DISKS
		WORD=${WORD#mapper/}
		dmsetup suspend "$WORD" --noudevsync || found "suspend failed"
		pause 200
		dmsetup resume "$WORD" --noudevsync || found "resume failed"
		N=$((N + 1))
		pause 500
	done
	did suspends $N
}

# One disk fails, and is taken back; the bitmap says what it missed.
disturb_md_fail()
{
	local disk

	N=0
	while going_on; do
		pause 2000
		# shellcheck disable=SC2086 # a list
		pick $QUEUES
		disk=/dev/$WORD
		mdadm --quiet /dev/md0 --fail "$disk" || continue
		wait_for 10 mdadm --quiet /dev/md0 --remove "$disk" 2>/dev/null
		mdadm --quiet /dev/md0 --re-add "$disk" ||
			mdadm --quiet /dev/md0 --add "$disk"
		mdadm --quiet --wait /dev/md0
		N=$((N + 1))
	done
	did disk_failures $N
}

disturb_md_check()
{
	N=0
	while going_on; do
		try check /sys/block/md0/md/sync_action
		pause 1000
		try idle /sys/block/md0/md/sync_action
		pause 500
	done
	did scrubs $N
}

has_no_cache()
{
	grep -q "no cache" /sys/block/bcache0/bcache/state
}

# The cache goes when all that is dirty in it is on the disk.
disturb_bcache()
{
	local bcache=/sys/block/bcache0/bcache uuid

	uuid=$(basename /sys/fs/bcache/*-*)
	N=0
	while going_on; do
		pick writeback writeback writethrough writearound
		echo "$WORD" >$bcache/cache_mode
		pause 1500
		# as fast as it can
		echo 0 >$bcache/writeback_percent
		echo 1 >$bcache/detach
		wait_for 120 has_no_cache || break
		pause 500
		# the state says so some time before the detachment is over
		wait_for 30 try "$uuid" $bcache/attach || break
		echo 10 >$bcache/writeback_percent
	done
	did cache_detaches $N
}

# --- what must be found: TORTURE_SABOTAGE names one ------------------------

# Bytes that no load wrote
disturb_sabotage_corrupt()
{
	# shellcheck disable=SC2086 # a list
	pick $DISKS
	while going_on; do
		rnd 4096
		dd if=/dev/urandom of="/dev/$WORD" bs=512 count=8 conv=notrunc \
			oflag=direct seek=$((R * 8)) 2>/dev/null
	done
}

# A load that does not go on
disturb_sabotage_hang()
{
	sleep 2
	killall -STOP fio plug_load
}

# What the kernel prints, although nobody warned
disturb_sabotage_warn()
{
	sleep 1
	echo "<3>WARNING: sabotage" >/dev/kmsg
}

# --- one disturber, in the background --------------------------------------

# run_disturber NAME SEED
run_disturber()
{
	rnd_seed "$2"
	"disturb_$1"
	: >"$TMP/undone.$1"
}
