#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/prometheus holds Debian's prometheus, promtool and
# prometheus-node-exporter, which tools/block/tests/test_prometheus.py runs. Unpacked,
# not installed: the packages would start servers.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../say.sh
. "$here/../say.sh"
# shellcheck source-path=SCRIPTDIR source=../apt.sh
. "$here/../apt.sh"

root=${PLUG_POLICY_ROOT:-$(cd "$here/../.." && pwd)}
cache=${PLUG_POLICY_BUILD:-$root/build}/cache/prometheus
[ ! -x "$cache/usr/bin/prometheus-node-exporter" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get: install prometheus," \
	"promtool and node_exporter yourself, so that PATH has them"
rm -rf "$cache.new"
apt=$cache.new/apt
log=$cache.new/log
make_apt
write_own_sources deb
quiet "apt-get update" private_apt apt-get --error-on=any update
cd "$apt/archives"
quiet "download of prometheus" \
	private_apt apt-get download prometheus prometheus-node-exporter
for package in *.deb; do
	dpkg-deb -x "$package" "$cache.new"
done
rm -rf "$apt" "$log" "$cache"
mv "$cache.new" "$cache"
