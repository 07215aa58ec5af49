# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests of queue/plug_policy share.
#
# A test sources this file, names what it needs (require), plans its cases
# (plan), checks them one by one (check), and finishes (finish). Whatever it
# changed on the way is put back when it exits, however it exits.
#
# BLOCK_PLUG_DEVS lists NVMe disks (/dev/nvme0n1 ...) whose contents may be
# destroyed. All other disks used here are made for the test.

DIR=$(cd "$(dirname "$0")" && pwd)
PATH=$DIR:$PATH

# shellcheck source=/dev/null
. "$DIR/../kselftest/ktap_helpers.sh"

DEBUGFS=/sys/kernel/debug
TRACEFS=/sys/kernel/tracing
NULLB=/sys/kernel/config/nullb

# One submission of plug_load fills one plug.
BATCH=32

TMP=$(mktemp -d "${TMPDIR:-/tmp}/block-plug.XXXXXX")
: >"$TMP/saved"
MISSING=
NULL_BLKS=
LOOPS=
JOBS=
CASE_FAILED=0

trap cleanup EXIT
trap 'exit 1' INT TERM

# --- verdicts --------------------------------------------------------------

# ktap_print_msg would expand "[always]" as a file name pattern.
note()
{
	echo "# $*"
}

failed()
{
	note "$*"
	CASE_FAILED=1
}

skip_case()
{
	note "skipped: $*"
	return "$KSFT_SKIP"
}

plan()
{
	ktap_print_header
	ktap_set_plan "$1"
}

# check DESCRIPTION COMMAND [ARG...]: one case. It fails if the command returns
# an error or called failed().
check()
{
	local what="$1" rc=0

	shift
	CASE_FAILED=0
	"$@" || rc=$?
	if [ "$CASE_FAILED" -ne 0 ]; then
		rc=1
	fi
	case $rc in
	0) ktap_test_pass "$what" ;;
	"$KSFT_SKIP") ktap_test_skip "$what" ;;
	*) ktap_test_fail "$what" ;;
	esac
}

# with_two_cpus COMMAND [ARG...]: a case that gives a null_blk two hardware
# queues, of which it has no more than the machine has CPUs.
with_two_cpus()
{
	[ "$(nproc)" -gt 1 ] || { skip_case "one CPU"; return; }
	"$@"
}

# A test all of whose cases were skipped has shown nothing.
finish()
{
	if [ "$KTAP_CNT_SKIP" -eq "$KSFT_NUM_TESTS" ]; then
		ktap_print_totals
		exit "$KSFT_SKIP"
	fi
	ktap_finished
}

# expect_text WHAT SEEN EXPECTED
expect_text()
{
	[ "$2" = "$3" ] || failed "$1: expected '$3', saw '$2'"
}

# expect_count WHAT SEEN LEAST MOST
expect_count()
{
	if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
		if [ "$3" -eq "$4" ]; then
			failed "$1: expected $3, saw $2"
		else
			failed "$1: expected $3 to $4, saw $2"
		fi
	fi
}

# --- requirements ----------------------------------------------------------

missing()
{
	MISSING="$MISSING${MISSING:+; }$*"
}

need_root()
{
	[ "$(id -u)" -eq 0 ] || missing "must run as root"
}

need_knob()
{
	ls /sys/block/*/queue/plug_policy >/dev/null 2>&1 && return
	# There may be no disk yet that could have the file.
	if null_create bpknob >/dev/null 2>&1; then
		[ ! -e /sys/block/bpknob/queue/plug_policy ] ||
			{ null_remove bpknob; return; }
		null_remove bpknob
	fi
	missing "no queue/plug_policy (CONFIG_BLK_PLUG_POLICY)"
}

need_debugfs()
{
	[ -d "$DEBUGFS/block" ] ||
		missing "no $DEBUGFS/block (debugfs, CONFIG_BLK_DEBUG_FS)"
}

need_trace()
{
	[ -d "$TRACEFS/events/block" ] ||
		missing "no block trace events (tracefs, CONFIG_BLK_DEV_IO_TRACE)"
}

need_profiler()
{
	[ -e "$TRACEFS/function_profile_enabled" ] || {
		missing "no function profiler (tracefs, CONFIG_FUNCTION_PROFILER)"
		return
	}
	# It has one filter, which may be somebody else's.
	if [ "$(cat "$TRACEFS/function_profile_enabled")" -ne 0 ] ||
	   ! grep -q '^nop$' "$TRACEFS/current_tracer"; then
		missing "somebody is tracing functions"
	fi
}

need_program()
{
	command -v "$1" >/dev/null || missing "no program $1"
}

need_plug_load()
{
	need_program plug_load
}

need_taskset()
{
	need_program taskset
}

need_as_nobody()
{
	need_program as_nobody
}

need_fio()
{
	need_program fio
}

need_null_blk()
{
	[ -d "$NULLB" ] || modprobe -q null_blk nr_devices=0 2>/dev/null
	[ -d "$NULLB" ] ||
		missing "no $NULLB (configfs, CONFIG_BLK_DEV_NULL_BLK)"
}

need_loop()
{
	losetup -f >/dev/null 2>&1 ||
		missing "no loop device (CONFIG_BLK_DEV_LOOP)"
}

# disk_use DEV: what DEV or a partition of it is in use for, if anything: by
# dm, and so by LVM, and by md as well, which all show as holders
disk_use()
{
	local name="${1##*/}" part="^$1\(p[0-9][0-9]*\)\{0,1\}[[:space:]]" holder

	if grep -q "$part" /proc/mounts; then
		echo "mounted"
	elif grep -q "$part" /proc/swaps; then
		echo "swap space"
	else
		for holder in /sys/block/"$name"/holders/* \
			      /sys/block/"$name"/"$name"*/holders/*; do
			[ ! -e "$holder" ] || echo "used by ${holder##*/}"
		done | head -n 1
	fi
}

# use_kyber DISK: for the time of this test; needs it
use_kyber()
{
	modprobe -q kyber-iosched 2>/dev/null
	set_attr "/sys/block/$1/queue/scheduler" kyber
	[ "$(attr "/sys/block/$1/queue/scheduler")" = kyber ] ||
		missing "no kyber (CONFIG_MQ_IOSCHED_KYBER)"
}

# Sets NVME to the names of the disks (nvme0n1 ...) that may be written.
need_nvme()
{
	local dev use

	NVME=
	for dev in ${BLOCK_PLUG_DEVS-}; do
		if [ ! -b "$dev" ] || [ ! -e "/sys/block/${dev##*/}/queue" ]; then
			missing "BLOCK_PLUG_DEVS: $dev is no whole disk"
		elif [ "${dev#/dev/nvme}" = "$dev" ]; then
			missing "BLOCK_PLUG_DEVS: $dev is no NVMe disk"
		else
			use=$(disk_use "$dev")
			if [ -n "$use" ]; then
				missing "BLOCK_PLUG_DEVS: $dev is $use"
			else
				NVME="$NVME${NVME:+ }${dev##*/}"
			fi
		fi
	done
	[ -n "$NVME" ] || missing "BLOCK_PLUG_DEVS names no NVMe disk to use"
}

# nvme_state_is CONTROLLER STATE
nvme_state_is()
{
	[ "$(cat "/sys/class/nvme/$1/state" 2>/dev/null)" = "$2" ]
}

# For a test that can do without NVMe disks, but not tacitly.
nvme_if_any()
{
	(
		need_nvme
		[ -n "$NVME" ] || note "NVMe left out: $MISSING" >&2
		echo "$NVME"
	)
}

# require WHAT...: skips the test, with all reasons, unless everything is there.
require()
{
	local what

	for what; do
		"need_$what"
	done
	[ -n "$MISSING" ] || return 0
	ktap_print_header
	ktap_skip_all "$MISSING"
	exit "$KSFT_SKIP"
}

# --- attributes ------------------------------------------------------------

# attr FILE: its value, or the bracketed one where it shows a choice; without
# the remark that the trace buffer's size may come with
attr()
{
	sed -e 's/.*\[\(.*\)\].*/\1/' -e 's/ (expanded.*//' "$1"
}

# set_attr FILE VALUE: for the time of this test
set_attr()
{
	grep -qF "$1 " "$TMP/saved" || echo "$1 $(attr "$1")" >>"$TMP/saved"
	(echo "$2" >"$1") 2>"$TMP/error" && return
	failed "writing '$2' to $1 failed: $(cat "$TMP/error")"
	return 1
}

restore_attrs()
{
	local file value

	while read -r file value; do
		if [ -e "$file" ] && [ "$(attr "$file")" != "$value" ]; then
			echo "$value" >"$file"
		fi
	done <"$TMP/saved"
}

# ensure_write_fails FILE TEXT REASON [ERROR [COMMAND...]]: with one write(2),
# which COMMAND may prefix
ensure_write_fails()
{
	local file="$1" text="$2" reason="$3" before rc=0
	local error="${4:-Invalid argument}"

	shift 3
	[ $# -eq 0 ] || shift
	before=$(cat "$file")
	printf '%s' "$text" >"$TMP/text"
	chmod 755 "$TMP"
	"$@" dd if="$TMP/text" of="$file" bs=64k conv=notrunc \
		2>"$TMP/error" || rc=$?
	if [ $rc -eq 0 ]; then
		failed "expected a write to fail because $reason, it succeeded"
	elif ! grep -q "$error" "$TMP/error"; then
		failed "expected '$error' because $reason, saw '$(head -n 1 "$TMP/error")'"
	fi
	expect_text "$file after the refusal" "$(cat "$file")" "$before"
}

knob()
{
	echo "/sys/block/$1/queue/plug_policy"
}

# All modes that this kernel knows, not only those this file's author knew.
modes_of()
{
	tr -d '[]' <"$(knob "$1")"
}

count_words()
{
	echo $#
}

# set_mode DISK MODE
set_mode()
{
	set_attr "$(knob "$1")" "$2" || return 1
	expect_text "$(knob "$1")" "$(attr "$(knob "$1")")" "$2"
}

# Each hardware queue's state of "adaptive".
adaptive_files()
{
	ls "$DEBUGFS/block/$1"/hctx*/plug_adaptive
}

# adaptive_line DISK WORD [HCTX]: the rest of a line of plug_adaptive
adaptive_line()
{
	sed -n "s/^$2 //p" "$DEBUGFS/block/$1/hctx${3:-0}/plug_adaptive"
}

# pin_group DISK SIZE: of "adaptive", for the time of this test; 0 lets go
pin_group()
{
	local file

	for file in $(adaptive_files "$1"); do
		echo "$2" >"$file" || {
			failed "writing '$2' to $file failed"
			return 1
		}
		grep -qF "$file " "$TMP/saved" || echo "$file 0" >>"$TMP/saved"
	done
}

# set_fresh DISK MODE: as if nothing had been learnt or pinned. "adaptive" tries
# no other group size within 1000 requests.
set_fresh()
{
	set_mode "$1" always && set_mode "$1" "$2" || return 1
	! grep -q "/$1/.*plug_adaptive" "$TMP/saved" || pin_group "$1" 0
}

# A disk as the counts expect it: no elevator (the default where there is one
# hardware queue), all merging allowed, I/O statistics on.
prepare()
{
	local queue="/sys/block/$1/queue"

	set_attr "$queue/scheduler" none &&
	set_attr "$queue/nomerges" 0 &&
	set_attr "$queue/iostats" 1 || return 1
	[ ! -e "$queue/plug_policy" ] || set_mode "$1" always
}

# Keeps the policy's static keys on, by a disk of its own that is never used:
# otherwise the change from and to "always" or "adaptive" patches the kernel's
# text with all CPUs held, which takes long and hides the races that a change
# may have.
pin_static_keys()
{
	[ -e "$(knob bppin)" ] || null_create bppin size=1 || return 1
	set_mode bppin adaptive
}

unpin_static_keys()
{
	set_mode bppin always
}

# expect_fallback DISK WORD: why its mode is not followed
expect_fallback()
{
	expect_text "plug_policy_fallback of $1" \
		"$(cat "$(knob "$1")_fallback")" "$2"
}

# expect_in_force DISK MODE: and nothing keeps the disk from it, as it might
# from any but "always"
expect_in_force()
{
	expect_text "mode of $1" "$(attr "$(knob "$1")")" "$2"
	[ "$2" = always ] || expect_fallback "$1" none
}

# --- devices made for the test ---------------------------------------------

# wait_for SECONDS COMMAND...
wait_for()
{
	local tries=$(($1 * 10))

	shift
	until "$@"; do
		tries=$((tries - 1))
		if [ $tries -le 0 ]; then
			failed "waited in vain for: $*"
			return 1
		fi
		sleep 0.1
	done
}

# null_create NAME [ATTRIBUTE=VALUE...]: /dev/NAME. The defaults are what lets
# a batch of 32 tags, and a request of 128 KiB, happen at all.
null_create()
{
	local name="$1" pair

	shift
	mkdir "$NULLB/$name" || return 1
	NULL_BLKS="$NULL_BLKS $name"
	for pair in size=256 hw_queue_depth=256 submit_queues=2 irqmode=0 \
		    max_sectors=2048 "$@" power=1; do
		echo "${pair#*=}" >"$NULLB/$name/${pair%%=*}" || return 1
	done
	wait_for 5 test -b "/dev/$name" && prepare "$name"
}

null_remove()
{
	[ ! -d "$NULLB/$1" ] || rmdir "$NULLB/$1"
	# The next disk of this name starts anew.
	sed -i "\\,/block/$1/,d" "$TMP/saved"
}

# loop_create FILE: sets LOOP
loop_create()
{
	LOOP=$(losetup -f) && losetup "$LOOP" "$1" || return 1
	LOOPS="$LOOPS $LOOP"
	LOOP=${LOOP##*/}
}

# background COMMAND...: sets JOB to its process id
background()
{
	"$@" &
	JOB=$!
	JOBS="$JOBS $JOB"
}

cleanup()
{
	local rc=$? word

	trap - EXIT
	for word in $JOBS; do
		kill "$word" 2>/dev/null
	done
	# A job's children hold the disks, too.
	: >"$TMP/stop"
	wait
	[ ! -e "$TMP/profiling" ] || profile_stop
	[ ! -e "$TMP/tracing" ] || trace_stop
	restore_attrs
	for word in $LOOPS; do
		losetup -d "$word"
	done
	for word in $NULL_BLKS; do
		null_remove "$word"
	done
	rm -rf "$TMP"
	exit $rc
}

# --- load and counters -----------------------------------------------------

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

# fio_quiet ARG...: likewise
fio_quiet()
{
	fio --name=block-plug --thread --eta=never --output="$TMP/fio" "$@" >&2 && return
	note "fio $*: failed:"
	sed 's/^/#   /' "$TMP/fio"
	return 1
}

# profile_start FUNCTION...: counts their calls from now on
profile_start()
{
	[ "$(cat "$TMP/profiling" 2>/dev/null)" = "$*" ] || profile_filter "$@"
	# Switching on is what sets the counts to 0.
	echo 1 >"$TRACEFS/function_profile_enabled"
}

profile_filter()
{
	local function

	echo "$*" >"$TMP/profiling"
	echo 0 >"$TRACEFS/function_profile_enabled"
	echo >"$TRACEFS/set_ftrace_filter"
	for function; do
		(echo "$function" >>"$TRACEFS/set_ftrace_filter") \
			2>/dev/null ||
			failed "$function() cannot be counted by ftrace"
	done
}

# profile_end: the counts stand still; profile_hits tells them
profile_end()
{
	echo 0 >"$TRACEFS/function_profile_enabled"
	cat "$TRACEFS"/trace_stat/function* >"$TMP/profile"
}

profile_hits()
{
	awk -v f="$1" '$1 == f { n += $2 } END { print n + 0 }' "$TMP/profile"
}

profile_stop()
{
	echo 0 >"$TRACEFS/function_profile_enabled"
	echo >"$TRACEFS/set_ftrace_filter"
}

# trace_start EVENT...: a trace of these, with room for 8 MiB
trace_start()
{
	local event

	: >"$TMP/tracing"
	set_attr "$TRACEFS/buffer_size_kb" 8192
	echo >"$TRACEFS/trace"
	for event; do
		set_attr "$TRACEFS/events/${event%:*}/${event#*:}/enable" 1
	done
	set_attr "$TRACEFS/tracing_on" 1
}

trace_end()
{
	echo 0 >"$TRACEFS/tracing_on"
	cp "$TRACEFS/trace" "$TMP/trace"
}

trace_stop()
{
	echo >"$TRACEFS/trace"
}

# stat_field DISK N...: sum of fields of /sys/block/DISK/stat
stat_field()
{
	local disk="$1" sum=0 n

	shift
	for n; do
		sum=$((sum + $(awk -v n="$n" '{ print $n }' \
			"/sys/block/$disk/stat")))
	done
	echo "$sum"
}

requests_of()
{
	stat_field "$1" 1 5
}

merges_of()
{
	stat_field "$1" 2 6
}

# doorbells_of DISK doorbells|commands: all I/O queues' together
doorbells_of()
{
	awk -v what="$2" '$2 != 0 { n += what == "commands" ? $6 : $4 }
		END { print n + 0 }' "$DEBUGFS/nvme_plug/$(ctrl_of "$1")/doorbells"
}

# ctrl_of DISK: nvme0n1 belongs to nvme0
ctrl_of()
{
	echo "${1%n*}"
}

is_nvme()
{
	[ "${1#nvme}" != "$1" ]
}

# nvme_disk_at PCI_DEVICE: the name of the disk that is there now, if it is;
# after a removal that may differ from before
nvme_disk_at()
{
	local path

	for path in "$1"/nvme/nvme*/nvme*n1; do
		[ ! -e "$path/queue" ] || echo "${path##*/}"
	done
}

# The driver's half of the function names to count.
driver_of()
{
	if is_nvme "$1"; then
		echo nvme
	else
		echo null
	fi
}

# measure DISK ARG...: runs plug_load, and sets what came of it:
# REQUESTS MERGES LOOKUPS  requests, bios merged, bios that might have been: that
#                          adjoined the newest request, and were let to it
# TAG_BATCHES TAG_SINGLES  calls that took several tags, or one
# HELD_GROUPS              calls of ->queue_rqs()
# DOORBELLS COMMANDS       as nvme counts them
measure()
{
	local disk="$1" driver rc=0

	driver=$(driver_of "$disk")
	shift
	counters_before "$disk"
	profile_start blk_attempt_plug_merge blk_mq_get_tags blk_mq_get_tag \
		"${driver}_queue_rqs" "${driver}_queue_rq"
	load "$@" || rc=$?
	profile_end
	counters_after "$disk"
	LOOKUPS=$(profile_hits blk_attempt_plug_merge)
	TAG_BATCHES=$(profile_hits blk_mq_get_tags)
	TAG_SINGLES=$(profile_hits blk_mq_get_tag)
	HELD_GROUPS=$(profile_hits "${driver}_queue_rqs")
	return $rc
}

# mixed_groups DISK OTHER N: sets MIXED to the number of groups in which a plug
# of two disks on "always" is sent out: one for each, in older kernels none
mixed_groups()
{
	set_mode "$1" always && set_mode "$2" always &&
	measure "$1" -s $BATCH -c $BATCH -d 128 -n $((BATCH * $3)) \
		"/dev/$1" "/dev/$2" || return
	MIXED=$((HELD_GROUPS ? 2 : 0))
	expect_batches "calls of queue_rqs()" "$HELD_GROUPS" $((MIXED * $3))
}

counters_before()
{
	REQUESTS=$(requests_of "$1")
	MERGES=$(merges_of "$1")
	if is_nvme "$1"; then
		DOORBELLS=$(doorbells_of "$1" doorbells)
		COMMANDS=$(doorbells_of "$1" commands)
	fi
}

counters_after()
{
	REQUESTS=$(($(requests_of "$1") - REQUESTS))
	MERGES=$(($(merges_of "$1") - MERGES))
	if is_nvme "$1"; then
		DOORBELLS=$(($(doorbells_of "$1" doorbells) - DOORBELLS))
		COMMANDS=$(($(doorbells_of "$1" commands) - COMMANDS))
	fi
}

# expect_batches WHAT SEEN IDEAL: a count of groups, or of merged requests
#
# plug_load's timer ends a wait once a second, so that it may submit a partial
# batch: that makes one group more there, and one at the end.
expect_batches()
{
	expect_count "$1" "$2" "$3" $(($3 ? $3 + 3 : 0))
}

# expect_doorbells IDEAL
#
# With shadow doorbells a write is left out where the controller is awake.
expect_doorbells()
{
	expect_count "doorbells for $COMMANDS commands" "$DOORBELLS" \
		$(($1 * 9 / 10)) $(($1 + 3))
}

# expect_tag_calls LEAST MOST SINGLES [MOST]: LEAST to MOST of those that take a
# batch, and so many single tags
#
# As in expect_batches(), the timer may cut a batch in two, and leave one I/O
# alone. nvme passthrough identifies the disk with a single command.
expect_tag_calls()
{
	expect_count "calls for a batch of tags" "$TAG_BATCHES" \
		"$1" $(($2 + 3))
	expect_count "calls for a single tag" "$TAG_SINGLES" \
		"$3" $((${4:-$3} + 3))
}

# expect_tags DISK I/Os: in plugs of 32, all tags in a batch
#
# A call takes what is free in one word of the tag bitmap, which has 64 here. All
# are free on null_blk, which completes I/O as it is issued: one call. On nvme 96
# others may be in flight, so that up to four words are needed, of which the last
# may have to give just one.
expect_tags()
{
	local plugs=$(($2 / BATCH)) words=1 singles=0

	! is_nvme "$1" || { words=4; singles=$((plugs / 2)); }
	expect_tag_calls $plugs $((words * plugs)) 0 $singles
}

# expect_io I/Os REQUESTS GROUPS LOOKUPS: what measure() saw
expect_io()
{
	if [ "$2" -eq "$1" ]; then
		expect_count "requests for $1 I/Os" "$REQUESTS" "$1" "$1"
	else
		expect_batches "requests for $1 I/Os" "$REQUESTS" "$2"
	fi
	expect_count "I/Os merged" "$MERGES" \
		$(($1 - REQUESTS)) $(($1 - REQUESTS))
	expect_batches "calls of queue_rqs() for $REQUESTS requests" \
		"$HELD_GROUPS" "$3"
	expect_count "bios of $1 let to a request that they adjoin" \
		"$LOOKUPS" $(($4 ? $4 - 3 : 0)) "$4"
}
