#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache holds the kernel source as Debian ships it:
# linux-source-7.3.tar.xz, and its Debian version beside it.
#
# apt downloads it, so that signatures are checked against Debian's keyring, but
# with sources and state of its own: the machine's are neither read nor changed.
# KSRC=<dir>: the user's tree is used instead, and only looked at here.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"

root=${PLUG_POLICY_ROOT:-$(dirname "$here")}
cache=${PLUG_POLICY_BUILD:-$root/build}/cache
package=linux-source-7.3
tarball=$cache/$package.tar.xz
version=$cache/$package.version
apt=$cache/apt
suites="trixie-backports sid experimental"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

write_sources() {
	cat >"$apt/src.sources" <<-END
		Types: deb
		URIs: $mirror
		Suites: $1
		Components: main
		Signed-By: $keyring
	END
}

# Sandbox: apt's own user cannot write below a home directory.
private_apt() {
	apt-get \
		-o Dir::Etc::sourcelist="$apt/src.sources" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State="$apt" \
		-o Dir::State::Lists="$apt/lists" \
		-o Dir::State::status=/dev/null \
		-o Dir::Cache="$apt" \
		-o APT::Sandbox::User=root \
		-o APT::Get::AllowUnauthenticated=false \
		-o Acquire::AllowInsecureRepositories=false \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 "$@"
}

# download SUITE: sets $deb, or fails and leaves the reason in $apt/log
download() {
	write_sources "$1"
	step "look for $package in $1"
	# --error-on=any: apt alone would pass over a bad signature
	private_apt --error-on=any update >"$apt/log" 2>&1 || return 1
	private_apt --print-uris download "$package" >"$apt/log" 2>&1 || return 1
	deb=$apt/$(sed -n "s/^'.*' \([^ ]*\.deb\) .*/\1/p" "$apt/log")
	step "download ${deb##*/}"
	# Straight to the terminal, so that apt shows how far it is.
	(cd "$apt" && private_apt -q=0 download "$package") && [ -s "$deb" ] && return
	echo "E: download failed, see above" >"$apt/log"
	return 1
}

reason() {
	sed -n 's/^E: //p' "$apt/log" | head -n 1 | grep . ||
		tail -n 1 "$apt/log"
}

# The tarball is renamed last: where it is, all of it is.
unpack() {
	step "take $package.tar.xz out of ${1##*/}"
	rm -rf "$apt/unpacked"
	dpkg-deb -x "$1" "$apt/unpacked" || {
		rm -rf "$1" "$apt/unpacked"
		die "${1##*/} is damaged and was removed; run this again"
	}
	dpkg-deb -f "$1" Version >"$version"
	mv "$apt/unpacked/usr/src/$package.tar.xz" "$tarball"
	rm -rf "$1" "$apt/unpacked"
	step "have $package $(cat "$version")"
}

fetch() {
	tried=
	for suite in $suites; do
		if download "$suite"; then
			unpack "$deb"
			return
		fi
		tried="$tried
  $suite: $(reason)"
	done
	die "cannot get $package from $mirror; tried$tried
Where a Linux 7.3 source tree is at hand, name it: KSRC=<dir> (only read)"
}

if [ -n "${KSRC:-}" ]; then
	exec "$here/series.py" ksrc --ksrc "$KSRC"
fi
[ ! -s "$version" ] || [ ! -s "$tarball" ] || exit 0
[ -r "$keyring" ] || die "$keyring is missing: install debian-archive-keyring," \
	"or set KSRC=<dir> to a Linux 7.3 source tree"
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
fetch
