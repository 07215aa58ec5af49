# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the kinds of torture share, in the guest.
#
# A kind is /torture/<kind>.sh SEED SECONDS. It does bounded work, which the
# seed determines, for about SECONDS; says what it did (did) and what is wrong
# (found); puts its devices away; and ends with "over". What else it prints is
# log. The scheduler puts a timeout around it.
#
# A kind that lacks something of the kernel or of the guest calls skip.
#
# What the selftests share is there, too: null_create, set_mode, pin_group,
# wait_for, background... What fails there (failed) counts as found here. All
# that it made or changed is put back when the kind exits, however it exits:
# at_exit says how.
#
# In the guest /torture stands for the selftests' directory: their libraries are
# beside this one, and /kselftest/ktap_helpers.sh is where these look for it.

. "${0%/*}/lib.sh"
. "${0%/*}/nvme_lib.sh"
. "${0%/*}/trace_lib.sh"
. "${0%/*}/plug_stats_lib.sh"
. "${0%/*}/policy_lib.sh"

# --- what is told to the host ----------------------------------------------

# One write each, since several jobs talk at once.
tell()
{
	[ -z "${VERDICT-}" ] || printf '%s\n' "$*" >"$VERDICT"
	# The console's copy says when, beside the kernel's messages.
	printf '%s\n' "$*"
}

# did KEY N: adds to what the host counts under KEY
did()
{
	tell "did $1 $2"
}

# found TEXT: something is wrong; a background job may say so, too
found()
{
	: >"$TMP/found"
	tell "found $*"
}

# lib.sh reports through this.
failed()
{
	found "$*"
}

# skip WHY: ends this kind; it does not count as tried
skip()
{
	tell "skipped ${KIND:-$(basename "$0" .sh)} $*"
	exit "$KSFT_SKIP"
}

# Ends this kind: 1 if something was found, else 0.
over()
{
	[ ! -e "$TMP/found" ]
	exit
}

# labels FILE FUNCTION: what its table has, a case statement whose labels stand
# behind one tab
labels()
{
	sed -n "/^$2()/,/^}/s/^\t\([a-z][a-z0-9_]*\)).*/\1/p" "${0%/*}/$1"
}

# relay WHERE: passes on what a program, on our input, found and did
relay()
{
	local where="$1" word rest

	while read -r word rest; do
		case $word in
		did) # shellcheck disable=SC2086 # KEY N
		     did $rest ;;
		found) found "$where: $rest" ;;
		*) echo "$word $rest" ;;
		esac
	done
}

# Nothing is in flight when nobody waits for anything.
idle()
{
	[ ! -e "/sys/block/$1/inflight" ] ||
		! grep -q '[1-9]' "/sys/block/$1/inflight"
}

# --- chance ----------------------------------------------------------------

# rnd_seed SEED: any decimal number; equal seeds, equal numbers
rnd_seed()
{
	RND_STATE=$(($1 % 2147483648))
}

# rnd N: sets R to 0..N-1, for N up to 2^30
rnd()
{
	R=0
	for _ in 1 2; do
		RND_STATE=$(((RND_STATE * 1103515245 + 12345) % 2147483648))
		R=$((R * 32768 + RND_STATE / 65536))
	done
	R=$((R % $1))
}

# pick WORD...: sets WORD to one of them
pick()
{
	rnd $#
	shift $R
	# shellcheck disable=SC2034 # for who sources this
	WORD=$1
}

# --- time ------------------------------------------------------------------

# now: sets NOW to the seconds since boot, without a process
now()
{
	read -r NOW _ </proc/uptime
	NOW=${NOW%%.*}
}

# deadline SECONDS: from now on time_left is true for so long
deadline()
{
	now
	DEADLINE=$((NOW + $1))
}

# time_left: is there some? Sets LEFT to the seconds.
time_left()
{
	now
	LEFT=$((DEADLINE - NOW))
	[ $LEFT -gt 0 ]
}

# --- cgroups ---------------------------------------------------------------

# make_cgroups CONTROLLER NAME...: sets CGROUP to where they are
make_cgroups()
{
	local controller="$1" name

	shift
	CGROUP=$TMP/cgroup
	mkdir "$CGROUP"
	mount -t cgroup2 none "$CGROUP" || skip "no cgroup2 (CONFIG_CGROUPS)"
	at_exit remove_cgroups
	grep -qw "$controller" "$CGROUP/cgroup.controllers" ||
		skip "no $controller controller in this kernel"
	echo "+$controller" >"$CGROUP/cgroup.subtree_control"
	for name; do
		mkdir "$CGROUP/$name"
	done
}

# in_cgroup NAME COMMAND...: in a process of its own
in_cgroup()
{
	(
		echo 0 >"$CGROUP/$1/cgroup.procs" || exit
		shift
		exec "$@"
	)
}

remove_cgroups()
{
	rmdir "$CGROUP"/*/ 2>/dev/null
	umount "$CGROUP"
}
