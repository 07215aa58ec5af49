#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# new_test.sh NAME: writes the skeleton of a new kselftest,
# tools/testing/selftests/block-plug/NAME.sh, and says what is left to do. It
# fails until its case is written. NAME says what holds, in a-z, 0-9 and _.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$here/say.sh"
root=${PLUG_POLICY_ROOT:-$(dirname "$here")}
room=tools/testing/selftests/block-plug

case ${1:-} in
-h | --help)
	sed -n '3,5s/^# //p' "$0"
	exit
	;;
'' | *[!a-z0-9_]* | [!a-z]* | *_lib | lib)
	die "'${1:-}' is no name of a test; accepted: a-z, 0-9 and _, a letter" \
		"first, and no _lib at the end, as in polled_split"
	;;
esac
[ $# -eq 1 ] || die "one name, not $#"
file=$room/$1.sh
[ ! -e "$root/$file" ] || die "$file is there already"

cat >"$root/$file" <<'END'
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: TODO: what holds, in one sentence.
#
# Reproducer: TODO: what went wrong before, if it did; else remove this.

. "${0%/*}/lib.sh"
. "${0%/*}/null_blk_lib.sh"
. "${0%/*}/load_lib.sh"

DISK=bp0

# One case. It fails if it returns an error or calls failed().
sends_all()
{
	local requests

	requests=$(requests_of $DISK)
	load -s $BATCH -c $BATCH -d $BATCH -n 3200 /dev/$DISK || return
	expect_count "requests" $(($(requests_of $DISK) - requests)) 3200 3200
	failed "TODO: this test is a skeleton"
}

# Whatever is missing skips the test: need_root() and so on, in lib.sh and in
# the other libraries.
require root plug_load null_blk
plan 1
null_create $DISK || ktap_exit_fail_msg "cannot create the disk"
check "TODO: what this case is" sends_all
finish
END
chmod 755 "$root/$file"
say "$file: fill in what says TODO, and list it in
patches/7.3/series and patches/6.12/series, under the mail with the tests of its
section. Then: make selftest TESTS=$1"
