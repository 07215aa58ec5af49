#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/prometheus holds Debian's prometheus, promtool and
# prometheus-node-exporter, which tools/block/test_prometheus.py runs. Unpacked,
# not installed: the packages would start servers.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"

root=${PLUG_POLICY_ROOT:-$(dirname "$here")}
cache=${PLUG_POLICY_BUILD:-$root/build}/cache/prometheus
[ ! -x "$cache/usr/bin/prometheus-node-exporter" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get: install prometheus," \
	"promtool and node_exporter yourself, so that PATH has them"
rm -rf "$cache.new"
mkdir -p "$cache.new/debs"
cd "$cache.new/debs"
# apt's own user cannot write below a home directory
apt-get -q -o APT::Sandbox::User=root download prometheus \
	prometheus-node-exporter >log 2>&1 || {
	tail -n 5 log >&2
	die "apt-get cannot download prometheus; try apt-get update"
}
for package in *.deb; do
	dpkg-deb -x "$package" "$cache.new"
done
rm -rf "$cache.new/debs" "$cache"
mv "$cache.new" "$cache"
