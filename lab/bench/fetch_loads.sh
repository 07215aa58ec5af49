#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/loads holds what "make bench SUITE=loads" runs and
# the machine need not have installed:
#
#	bin/io_uring	fio's t/io_uring, built from Debian's source of fio
#	root/		RocksDB's db_bench, of Debian's package, unpacked
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../../scripts/say.sh
. "$here/../../scripts/say.sh"
# shellcheck source-path=SCRIPTDIR source=../../scripts/apt.sh
. "$here/../../scripts/apt.sh"

root=${PLUG_POLICY_ROOT:-$(cd "$here/../.." && pwd)}
loads=${PLUG_POLICY_BUILD:-$root/build}/cache/loads
log=$loads/log
apt=$loads/apt
# only read, for what need not be fetched
status=/var/lib/dpkg/status

# --reinstall: what is installed is fetched, too.
fetch_packages() {
	step "fetch rocksdb-tools"
	quiet "download" private_apt apt-get install --reinstall \
		--download-only -y --allow-downgrades --no-install-recommends \
		rocksdb-tools
	for deb in "$apt"/archives/*.deb; do
		quiet "unpacking ${deb##*/}" dpkg-deb -x "$deb" "$loads/root"
	done
	find "$loads/root" -type f \( -name '*.so*' -o -perm -100 \) \
		-exec strip --strip-unneeded {} + 2>/dev/null || :
}

# Without what this processor has and an emulated one has not, and without
# libraries that a guest would need.
build_io_uring() {
	step "fetch fio's source and build t/io_uring"
	(cd "$apt" && quiet "download of fio" private_apt apt-get source fio)
	cd "$apt"/fio-*/
	quiet "configure of fio" ./configure --disable-native --build-static
	quiet "build of t/io_uring" make -j"$(nproc)" t/io_uring
	mkdir -p "$loads/bin"
	strip -o "$loads/bin/io_uring" t/io_uring
	cd "$loads"
}

version=$(sha256sum <"$0")
[ "$(cat "$loads/done" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$loads"
make_apt
mkdir -p "$loads/root"
write_own_sources "deb deb-src"
step "look for fio and rocksdb-tools"
quiet "apt-get update" private_apt apt-get --error-on=any update
fetch_packages
build_io_uring
rm -rf "$apt"
echo "$version" >"$loads/done"
step "have $loads"
