#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/prometheus holds promtool of Debian's prometheus, which
# tools/block/tests/test_prometheus.py runs. Unpacked, not installed: the package would
# start a server.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../say.sh
. "$here/../say.sh"
# shellcheck source-path=SCRIPTDIR source=../apt.sh
. "$here/../apt.sh"

root=${PLUG_POLICY_ROOT:-$(cd "$here/../.." && pwd)}
cache=${PLUG_POLICY_BUILD:-$root/build}/cache/prometheus
[ ! -x "$cache/usr/bin/promtool" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get: install promtool" \
	"yourself, so that PATH has it"
rm -rf "$cache.new"
apt=$cache.new/apt
log=$cache.new/log
make_apt
write_own_sources deb
quiet "apt-get update" private_apt apt-get --error-on=any update
cd "$apt/archives"
quiet "download of prometheus" \
	private_apt apt-get download prometheus
dpkg-deb -x prometheus_*.deb "$cache.new"
rm -rf "$apt" "$log" "$cache"
mv "$cache.new" "$cache"
