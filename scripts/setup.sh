#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Installs, by package name, what the repository needs and the machine lacks.
# Nothing under /etc is changed by us.
set -eu

here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"

packages="
	build-essential bc bison flex libelf-dev libssl-dev cpio rsync kmod
	python3 perl patch git xz-utils debian-archive-keyring
	qemu-system-x86 busybox-static fio nvme-cli liburing-dev libaio-dev
	sparse ccache python3-ply shellcheck gnuplot-nox xfsprogs sysstat
	clang-19 coccinelle python3-sphinx dwarves e2fsprogs mdadm dmsetup
"

# One query for all of them: this runs before every other verb.
missing_packages() {
	# shellcheck disable=SC2016,SC2086 # dpkg's own ${}; one word per package
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
		$packages 2>/dev/null | sed -n 's/^installed //p') || true
	for package in $packages; do
		printf '%s\n' "$installed" | grep -qxF "$package" ||
			printf '%s ' "$package"
	done
}

# Prints the prefix that makes us root, fails where there is none.
root_prefix() {
	if [ "$(id -u)" -eq 0 ]; then
		echo env
	elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		echo sudo env
	else
		return 1
	fi
}

# shellcheck disable=SC2086 # $as and $missing are lists of words
install_packages() {
	as="$as DEBIAN_FRONTEND=noninteractive"
	step "install, once: $missing"
	# A third party's broken source must not stop us: what counts is
	# whether the install works.
	$as apt-get -o Acquire::Retries=3 update ||
		say "apt-get update complained; going on with what it has"
	$as apt-get -o Acquire::Retries=3 install -y --no-install-recommends \
		$missing || die "apt-get could not install: $missing"
	step "installed: $missing"
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	# shellcheck disable=SC2086 # unquoted, to join the lines
	die "this is not a Debian system (12 and 13 are supported);" \
		"install what corresponds to:" $packages
fi

missing=$(missing_packages)
missing=${missing% }
[ -n "$missing" ] || exit 0
as=$(root_prefix) || die "packages are missing and this user may not install" \
	"them; as root: apt-get install -y --no-install-recommends $missing"
install_packages
