# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The disturbers of mixed.sh. Each goes on until $TMP/stop is there, and says how
# often it did what. A write that the kernel refuses, since another disturber was
# quicker or the disk is away, is not counted, and is no error.
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
	uname -r | grep -q '^6\.12\.' || echo nomerges affinity
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

# often MS KEY COMMAND...: with pauses of up to so many milliseconds; what
# COMMAND counts in N is told as KEY
often()
{
	local ms="$1" key="$2"

	shift 2
	N=0
	while pause "$ms"; going_on; do
		"$@"
	done
	did "$key" $N
}

# Sets QUEUE to one of the queues' directories
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

# set_one FILE VALUE...: of one queue
set_one()
{
	local file="$1"

	shift
	pick_queue
	pick "$@"
	try "$WORD" "$QUEUE/$file"
}

flip_modes()
{
	local burst=20

	pick_queue
	: "${MODES:=${TORTURE_MODES:-$(choices "$QUEUE/plug_policy")}}"
	while [ $burst -gt 0 ]; do
		# shellcheck disable=SC2086 # a list
		set_one plug_policy $MODES
		burst=$((burst - 1))
	done
}

pin_groups()
{
	local file disk

	pick_queue
	disk=${QUEUE%/queue}
	pick 0 0 1 2 3 7 8 16 31 32
	for file in "$DEBUGFS/block/${disk##*/}"/hctx*/plug_adaptive; do
		try "$WORD" "$file"
	done
}

set_elevator()
{
	pick_queue
	# shellcheck disable=SC2046 # a list
	pick $(choices "$QUEUE/scheduler")
	try "$WORD" "$QUEUE/scheduler"
}

# A disk may go and come back at any time.
fuzz_knobs()
{
	local disk rc=0

	set --
	for disk in ${REMOVABLE:+$(removable_disk)} $QUEUES; do
		[ ! -e "$(knob "$disk")" ] || set -- "$@" "goes:$disk"
	done
	[ $# -gt 0 ] || return 0
	rnd 1000000
	knob_fuzz "$R" 1 "$@" >"$TMP/fuzz" 2>&1 || rc=$?
	[ $rc -le 1 ] || found "knob_fuzz: exit $rc: $(tail -n 1 "$TMP/fuzz")"
	relay knob_fuzz <"$TMP/fuzz"
	N=$((N + 1))
}

# --- the machine -----------------------------------------------------------

plug_cpus()
{
	local cpu

	for cpu in /sys/devices/system/cpu/cpu[1-9]*; do
		rnd 2
		[ -e "$cpu/online" ] && try "$R" "$cpu/online"
	done
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
take_memory()
{
	local free

	free=$(awk '$1 == "MemAvailable:" { print int($2 / 4096) }' \
		/proc/meminfo)
	[ "$free" -le 64 ] || free=64
	dd if=/dev/zero of="$TMP/hog" bs=1M count="$free" 2>/dev/null
	try 3 /proc/sys/vm/drop_caches
	rm -f "$TMP/hog"
}

# --- what only some stacks have --------------------------------------------

change_queues()
{
	rnd "$(nproc)"
	try $((R + 1)) "$NULLB/tn0/submit_queues"
}

# How many faults there were, the number left says. Not every time: a hardware
# queue that cannot be made anew is tried once more, and if that fails, too,
# blk-mq warns, with or without the series (__blk_mq_realloc_hw_ctxs()).
inject_faults()
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

cut_power()
{
	try 0 "$NULLB/tn0/power"
	pause 300
	[ "$(cat "$NULLB/tn0/power")" = 1 ] || try 1 "$NULLB/tn0/power" ||
		found "null_blk does not come back"
}

reset_one()
{
	local ctrl

	pick_queue
	ctrl=${QUEUE#/sys/block/}
	ctrl=${ctrl%n*}
	is_nvme "$ctrl" && [ -e "/sys/class/nvme/$ctrl" ] || return
	try 1 "/sys/class/nvme/$ctrl/reset_controller"
	trait errors || wait_for 60 nvme_state_is "$ctrl" live
}

bring_back()
{
	rescan_pci "$REMOVABLE" && ln -sf "$(removable_disk)" /dev/removable
}

reset_removable()
{
	N=0
	try 1 "$REMOVABLE/nvme/$(ctrl_of "$(removable_disk)")/reset_controller"
	did resets $N
}

# A reset may meet the removal, but not the probe: Linux 7.3 as it is takes one
# from a controller that is being probed, and then oopses, or leaves it dead.
remove_once()
{
	local reset

	reset_removable &
	reset=$!
	pause 300
	try 1 "$REMOVABLE/remove"
	wait $reset
	pause 300
	bring_back
}

suspend_dm()
{
	# shellcheck disable=SC2086 # a list
	pick $DISKS
	WORD=${WORD#mapper/}
	dmsetup suspend "$WORD" --noudevsync || found "suspend failed"
	pause 200
	dmsetup resume "$WORD" --noudevsync || found "resume failed"
	N=$((N + 1))
}

# One disk fails, and is taken back; the bitmap says what it missed.
fail_disk()
{
	local disk

	# shellcheck disable=SC2086 # a list
	pick $QUEUES
	disk=/dev/$WORD
	mdadm --quiet /dev/md0 --fail "$disk" || return
	wait_for 10 mdadm --quiet /dev/md0 --remove "$disk" 2>/dev/null
	mdadm --quiet /dev/md0 --re-add "$disk" ||
		mdadm --quiet /dev/md0 --add "$disk"
	mdadm --quiet --wait /dev/md0
	N=$((N + 1))
}

check_md()
{
	try check /sys/block/md0/md/sync_action
	pause 1000
	try idle /sys/block/md0/md/sync_action
}

# The cache goes when all that is dirty in it is on the disk.
detach_cache()
{
	local bcache=/sys/block/bcache0/bcache

	pick writeback writeback writethrough writearound
	echo "$WORD" >$bcache/cache_mode
	pause 1500
	# as fast as it can
	echo 0 >$bcache/writeback_percent
	echo 1 >$bcache/detach
	wait_for 120 grep -q "no cache" $bcache/state || return
	pause 500
	# the state says so some time before the detachment is over
	wait_for 30 try "$(basename /sys/fs/bcache/*-*)" $bcache/attach
	echo 10 >$bcache/writeback_percent
}

# --- what must be found: TORTURE_SABOTAGE names one ------------------------

# Bytes that no load wrote
write_over()
{
	# shellcheck disable=SC2086 # a list
	pick $DISKS
	rnd 4096
	dd if=/dev/urandom of="/dev/$WORD" bs=512 count=8 conv=notrunc \
		oflag=direct seek=$((R * 8)) 2>/dev/null
}

# --- one disturber, in the background --------------------------------------

# run_disturber NAME SEED
run_disturber()
{
	rnd_seed "$2"
	case $1 in
	modes) often 20 flips flip_modes ;;
	groups) often 20 pins pin_groups ;;
	elevators) often 300 elevators set_elevator ;;
	nr_requests)
		often 200 nr_requests set_one nr_requests 4 8 31 32 64 128 255
		;;
	nomerges) often 50 nomerges set_one nomerges 0 0 1 2 ;;
	iostats) often 50 iostats set_one iostats 0 1 ;;
	wbt) often 100 wbt set_one wbt_lat_usec 0 -1 100 2000 75000 ;;
	read_ahead)
		often 100 read_ahead set_one read_ahead_kb 0 4 128 1024
		;;
	affinity) often 50 affinity set_one rq_affinity 0 1 2 ;;
	fuzz) often 500 fuzzes fuzz_knobs ;;
	cpus) often 700 hotplugs plug_cpus ;;
	memory) often 1000 memory_pressures take_memory ;;
	hw_queues) often 400 hw_queues change_queues ;;
	faults) inject_faults ;;
	power) often 2000 power_cycles cut_power ;;
	reset) often 1500 resets reset_one ;;
	remove) often 3000 removals remove_once ;;
	dm_suspend) often 500 suspends suspend_dm ;;
	md_fail) often 2000 disk_failures fail_disk ;;
	md_check) often 500 scrubs check_md ;;
	bcache) often 500 cache_detaches detach_cache ;;
	sabotage_corrupt) often 10 overwrites write_over ;;
	sabotage_hang)		# a load that does not go on
		sleep 2
		killall -STOP fio plug_load
		;;
	sabotage_warn)		# what the kernel prints, although nobody warned
		sleep 1
		echo "<3>WARNING: sabotage" >/dev/kmsg
		;;
	*) found "there is no disturber '$1'" ;;
	esac
	: >"$TMP/undone.$1"
}
