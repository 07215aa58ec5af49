#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# fetch_debian.sh arm64 | loads | prometheus: makes sure that build/cache/<that>/root
# holds Debian's programs for guests with ARCH=arm64, and what is compiled for them links;
# or RocksDB's db_bench, and bin/ fio's t/io_uring, for SUITE=loads; or promtool.
#
# Unpacked, not installed: neither apt nor dpkg of this machine learns of a second
# architecture, and no server is started.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$here/say.sh"
# shellcheck source-path=SCRIPTDIR source=apt.sh
. "$here/apt.sh"

get=download types=deb
case ${1:-} in
arm64)
	architecture=arm64 get="install --download-only -y --no-install-recommends"
	packages="busybox-static fio coreutils dmsetup mdadm bcache-tools e2fsprogs
		xfsprogs libc6-dev liburing-dev libaio-dev"
	about="programs for arm64, about 80 MB"
	;;
loads)
	# what is installed is fetched, too, but not all that it needs
	status=/var/lib/dpkg/status types="deb deb-src" packages=rocksdb-tools
	get="install --reinstall --download-only -y --allow-downgrades \
		--no-install-recommends"
	about="rocksdb-tools, and fio's source"
	;;
prometheus) packages=prometheus about="promtool, about 20 MB" ;;
*) die "'${1:-}' is unknown; accepted: arm64, loads, prometheus" ;;
esac
place=${PLUG_POLICY_BUILD:-${PLUG_POLICY_ROOT:-$(dirname "$here")}/build}/cache/$1
apt=$place/apt
log=$place/log

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

# Without what an emulated processor has not, and without libraries.
build_io_uring() {
	quiet "download of fio" private_apt apt-get source fio
	cd fio-*/
	quiet "configure of fio" ./configure --disable-native --build-static
	quiet "build of t/io_uring" make -j"$(nproc)" t/io_uring
	mkdir "$place/bin"
	strip -o "$place/bin/io_uring" t/io_uring
}

version=$(sha256sum <"$0")
[ "$(cat "$place/done" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$place"
make_apt
write_own_sources "$types"
step "fetch $about"
quiet "apt-get update" private_apt apt-get --error-on=any update
cd "$apt/archives"
# shellcheck disable=SC2086 # lists of words
quiet "download" private_apt apt-get $get $packages
make_root
[ "$1" != loads ] || build_io_uring
cd "$place"
rm -rf "$apt"
echo "$version" >"$place/done"
step "have $place/root"
