#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# source.sh [--refuse VERSION]: makes sure that build/cache holds Debian's
# linux-source-$KVER.tar.xz, and its version beside it. KSRC=<dir>: that tree is used
# instead.
#
# A suite's is taken, for its point releases; where no suite has one that takes the
# series (--refuse), that of patches/$KVER/source, by its SHA256, from the pool,
# which keeps packages for longer. apt has sources and state of its own for this.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$here/say.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$here/apt.sh"

root=${PLUG_POLICY_ROOT:-$(dirname "$here")}
KVER=${KVER:-7.3}
cache=${PLUG_POLICY_BUILD:-$root/build}/cache
apt=$cache/apt-$KVER
security=${DEBIAN_SECURITY:-http://security.debian.org/debian-security}
helper=/usr/lib/apt/apt-helper
package=linux-source-$KVER member=$package.tar.xz
kept=$cache/$member version=$cache/$package.version refused=$cache/$package.refused

archive() {
	case $1 in
	*-security) echo "$security" ;;
	*) echo "$mirror" ;;
	esac
}

fails() {
	echo "E: $*" >"$apt/log"
	return 1
}

# The version that a suite offers, as its file name has it.
offered() {
	sed -n "s/^'.*' ${package}_\([^ ]*\)_all\.deb .*/\1/p" "$apt/log" |
		sed 's/%3a/:/g'
}

# What a version that does not take the series is remembered with: another
# series may fit it. One for another kernel shares mails with the first's.
series_sum() {
	cat "$root/patches/"*/*.patch 2>/dev/null | sha256sum | cut -c 1-16
}

is_refused() {
	grep -qxF "$1 $(series_sum)" "$refused" 2>/dev/null
}

# download SUITE: sets $deb, or fails and leaves the reason in $apt/log
download() {
	write_sources deb "$(archive "$1")" "$1"
	step "look for $package in $1"
	# --error-on=any: apt alone would pass over a bad signature
	private_apt apt-get --error-on=any update >"$apt/log" 2>&1 || return 1
	private_apt apt-get --print-uris download "$package" >"$apt/log" 2>&1 ||
		return 1
	deb=$apt/$(sed -n "s/^'.*' \([^ ]*\.deb\) .*/\1/p" "$apt/log")
	found=$(offered)
	! is_refused "$found" || fails "$found does not take the series" || return 1
	step "download ${deb##*/}"
	# Straight to the terminal, so that apt shows how far it is.
	(cd "$apt" && private_apt apt-get -q=0 download "$package") &&
		[ -s "$deb" ] && return
	fails "download failed, see above"
}

# pool AREA: the pinned version, wherever no suite lists it any more
pool() {
	deb=$apt/${package}_${pinned}_all.deb
	url=$1/main/l/linux/${deb##*/}
	step "download $url"
	private_apt "$helper" download-file "$url" "$deb" "SHA256:${sha256:?is not in patches/$KVER/source}" \
		>"$apt/log" 2>&1
}

reason() {
	sed -n 's/^E: //p' "$apt/log" | head -n 1 | grep . ||
		tail -n 1 "$apt/log"
}

# The file is renamed last: where it is, all of it is.
unpack() {
	step "take $member out of ${1##*/}"
	rm -rf "$apt/unpacked"
	dpkg-deb -x "$1" "$apt/unpacked" || {
		rm -rf "$1" "$apt/unpacked"
		die "${1##*/} is damaged and was removed; run this again"
	}
	dpkg-deb -f "$1" Version >"$version"
	mv "$apt/unpacked/usr/src/$member" "$kept"
	rm -rf "$1" "$apt/unpacked"
	step "have $package $(cat "$version")"
}

# try HOW WHERE: adds to $tried why it failed
try() {
	"$1" "$2" && return
	tried="$tried
  $1 $2: $(reason)"
	return 1
}

fetch() {
	tried=
	for suite in $suites; do
		! try download "$suite" || return 0
	done
	for where in "$mirror/pool" "$security/pool/updates"; do
		! try pool "$where" || return 0
	done
	die "cannot get $package; tried$tried
Mend that, $otherwise"
}

# A version that does not take the series is not tried again.
refuse() {
	[ "$1" != "$pinned" ] || die "$1 is the version that the series is for"
	is_refused "$1" || echo "$1 $(series_sum)" >>"$refused"
	rm -f "$version" "$kept"
}

[ -r "$root/patches/$KVER/source" ] || die "KVER=$KVER: no series is for that;" \
	"accepted: $(cd "$root/patches" && echo */source | sed 's:/source::g')"
suites="" pinned="" sha256=""
# shellcheck source=/dev/null
. "$root/patches/$KVER/source"
otherwise="or set KSRC=<dir> to a Linux $KVER source tree, which is only read"
case ${1:-} in
--refuse) refuse "${2:?wanted is a version}" ;;
"") [ -z "${KSRC:-}" ] || exit 0 ;;
*) die "'$1' is unknown; accepted: --refuse VERSION" ;;
esac
[ ! -s "$version" ] || [ ! -s "$kept" ] || exit 0
make_apt "$otherwise"
exec 9>"$apt/lock"
flock 9		# of two at a time, the second finds what the first has fetched
[ ! -s "$version" ] || [ ! -s "$kept" ] || exit 0
fetch
unpack "$deb"
