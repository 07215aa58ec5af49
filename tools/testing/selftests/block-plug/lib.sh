# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests share: a test sources the libraries that it uses, names what it
# needs (require), plans its cases (plan), checks them one by one (check), and
# finishes (finish). Whatever it changed on the way is put back when it exits,
# however it exits.
#
# Each library sources those that it is built on, and all of them this one. Which
# of them there are depends on which patches the tree has.
#
# disk_lib.sh		any disk's settings, statistics, I/O; loop devices
# null_blk_lib.sh	disks made for the test
# nvme_lib.sh		NVMe disks, in BLOCK_PLUG_DEVS
# trace_lib.sh		how often a function was called, trace events
# measure_lib.sh	all that is counted of a load, and what to expect
# plug_stats_lib.sh	debugfs: plug_stats
# policy_lib.sh		queue/plug_policy, and debugfs: plug_adaptive
# groups_lib.sh		in which groups a mode sends out requests
# adaptive_lib.sh	what "adaptive" learns

DIR=$(cd "$(dirname "$0")" && pwd)
PATH=$DIR:$PATH

# shellcheck source=/dev/null
. "$DIR/../kselftest/ktap_helpers.sh"

DEBUGFS=/sys/kernel/debug

# Whoever is the first to source this makes it.
[ -e "${TMP-}/at_exit" ] || TMP=$(mktemp -d "${TMPDIR:-/tmp}/block-plug.XXXXXX")
: >"$TMP/saved"
: >"$TMP/at_exit"
MISSING=
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

count_words()
{
	echo "$*" | wc -w
}

# must COMMAND...: that without which there is nothing to test
must()
{
	"$@" || ktap_exit_fail_msg "failed: $*"
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

# expect_count WHAT SEEN LEAST [MOST]: exactly so many, if there is no most; with
# a number in BLOCK_PLUG_COUNTS it says what it saw
expect_count()
{
	local most="${4:-$3}"

	[ -z "${BLOCK_PLUG_COUNTS-}" ] || note "count $2 of $3 to $most: $1"
	if [ "$2" -lt "$3" ] || [ "$2" -gt "$most" ]; then
		[ "$3" -eq "$most" ] || most="$3 to $most"
		failed "$1: expected $most, saw $2"
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

need_debugfs()
{
	[ -d "$DEBUGFS/block" ] ||
		missing "no $DEBUGFS/block (debugfs, CONFIG_BLK_DEBUG_FS)"
}

need_program()
{
	command -v "$1" >/dev/null || missing "no program $1"
}

# require WHAT...: skips the test, with all reasons, unless everything is there.
# What has no function need_WHAT is a program.
require()
{
	local what

	for what; do
		if command -v "need_$what" >/dev/null; then
			"need_$what"
		else
			need_program "$what"
		fi
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

# forget_attrs WHERE: what has WHERE in its path is gone
forget_attrs()
{
	sed -i "\\,$1,d" "$TMP/saved"
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

# --- jobs, and the end -----------------------------------------------------

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

# background COMMAND...: sets JOB to its process id
background()
{
	"$@" &
	JOB=$!
	JOBS="$JOBS $JOB"
}

# until_stop COMMAND...: in the background, again and again, but at least once,
# until stop_jobs(), or until it fails
until_stop()
{
	rm -f "$TMP/stop"
	background repeat "$@"
}

repeat()
{
	while "$@"; do
		[ ! -e "$TMP/stop" ] || return 0
	done
	return 1
}

# write_in_turn FILE=VALUE...: stop_jobs() tells whether all of it was taken
write_in_turn()
{
	local pair

	for pair; do
		echo "${pair#*=}" 2>/dev/null >"${pair%%=*}" ||
			echo "$pair" >>"$TMP/refused"
	done
}

# end_jobs: waits for all jobs, none of which may fail
end_jobs()
{
	local job rc

	: >"$TMP/stop"
	for job in $JOBS; do
		rc=0
		wait "$job" || rc=$?
		[ $rc -eq 0 ] || failed "a job ended with $rc"
	done
	JOBS=
}

# stop_jobs: nor may a write in turn
stop_jobs()
{
	end_jobs
	[ ! -e "$TMP/refused" ] ||
		failed "$(wc -l <"$TMP/refused") writes were refused:" \
			"$(head -n 1 "$TMP/refused")"
	rm -f "$TMP/refused"
}

# at_exit COMMAND [ARG...]: to be called when the test exits, however it exits,
# after the jobs have ended and the attributes have their values back. What was
# said last is called first; what was said twice is called once.
at_exit()
{
	! grep -qxF "$*" "$TMP/at_exit" || return 0
	echo "$*" | cat - "$TMP/at_exit" >"$TMP/at_exit.new"
	mv "$TMP/at_exit.new" "$TMP/at_exit"
}

cleanup()
{
	local rc=$? job

	trap - EXIT
	for job in $JOBS; do
		kill "$job" 2>/dev/null
	done
	# A job's children hold the disks, too.
	: >"$TMP/stop"
	wait
	restore_attrs
	# shellcheck source=/dev/null
	. "$TMP/at_exit"
	rm -rf "$TMP"
	exit $rc
}
