#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/arm64/root holds Debian's programs for arm64 that
# guests with ARCH=arm64 run, and what is compiled for them links.
#
# Unpacked, not installed: neither apt nor dpkg of this machine learns of a
# second architecture.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$here/say.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$here/apt.sh"

cache=${PLUG_POLICY_BUILD:-${PLUG_POLICY_ROOT:-$(dirname "$here")}/build}/cache
place=$cache/arm64
apt=$place/apt
log=$place/log
architecture=arm64
packages="busybox-static fio coreutils dmsetup mdadm bcache-tools e2fsprogs
	xfsprogs libc6-dev liburing-dev libaio-dev"

# Debian 12 has files below both /lib and /usr/lib, Debian 13 below the latter.
make_root() {
	mkdir -p "$place/root/usr/lib" "$place/root/usr/bin" \
		"$place/root/usr/sbin"
	for name in lib bin sbin; do
		ln -s "usr/$name" "$place/root/$name"
	done
	for deb in "$apt"/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x --keep-directory-symlink --no-same-owner \
				-C "$place/root" ||
			die "unpacking ${deb##*/} failed"
	done
	rm -rf "$place/root/usr/share" "$place/root/var" "$place/root/etc"
}

version=$(sha256sum <"$0")
[ "$(cat "$place/done" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$place"
make_apt
write_own_sources deb
step "fetch programs for arm64, about 80 MB"
quiet "apt-get update" private_apt apt-get --error-on=any update
# shellcheck disable=SC2086 # a list of words
quiet "download" private_apt apt-get install --download-only -y \
	--no-install-recommends $packages
make_root
rm -rf "$apt"
echo "$version" >"$place/done"
step "have $place/root"
