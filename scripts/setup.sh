#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# setup.sh [GROUP...]: makes sure that what verbs need is there.
#
# all, the default, is what "make check" needs; kernel is what a build needs; the
# others are what the verbs of these names need besides. On Debian what is
# missing is installed, by package name; elsewhere, or where we may not, it is
# named. Nothing that is installed is upgraded or removed for it, and nothing
# under /etc is changed by us.
# SETUP=no: nothing is installed, only named.
set -eu

here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=say.sh
. "$here/say.sh"

# One list per purpose. package=program or file that tells whether it is there,
# where dpkg does not know; the program has the package's name if none is given.
tree="git python3"
# The kernel source is taken from Debian where no other is given.
source="apt=apt-get dpkg=dpkg-deb xz-utils=xz
	debian-archive-keyring=/usr/share/keyrings/debian-archive-keyring.gpg"
compile="build-essential=gcc bc bison flex perl libelf-dev=/usr/include/libelf.h
	libssl-dev=/usr/include/openssl/ssl.h cpio rsync kmod=modprobe patch ccache"
each_commit="sparse clang-19 python3-ply= python3-git=
	python3-sphinx=sphinx-build liburing-dev=/usr/include/liburing.h"
# busybox-static: as "busybox" it would want libraries, which no guest has.
guests="qemu-system-x86=qemu-system-x86_64 busybox-static=busybox fio
	nvme-cli=nvme xfsprogs=mkfs.xfs e2fsprogs=mke2fs mdadm dmsetup
	bcache-tools=make-bcache bsdextrautils=column
	libaio-dev=/usr/include/libaio.h"
host="python3-pytest=pytest-3 shellcheck mandoc bubblewrap=bwrap"

deb="debhelper=dh libdw-dev=/usr/include/dwarf.h dpkg-dev=dpkg-buildpackage"
deb_test="mmdebstrap uidmap=newuidmap fakeroot e2fsprogs=mke2fs"
arm64="gcc-aarch64-linux-gnu=aarch64-linux-gnu-gcc
	qemu-system-arm=qemu-system-aarch64 qemu-user=qemu-aarch64
	apt=apt-get dpkg=dpkg-deb
	debian-archive-keyring=/usr/share/keyrings/debian-archive-keyring.gpg"
stick="busybox-static=busybox fio linux-perf=perf zstd fdisk=sfdisk
	dosfstools=mkfs.vfat mtools=mcopy ovmf=/usr/share/ovmf/OVMF.fd
	grub-common=grub-mkimage grub-pc-bin=/usr/lib/grub/i386-pc/boot.img"

wanted() {
	echo "$tree"
	[ -n "${KSRC:-}" ] || echo "$source"
	case $1 in
	tree) ;;
	kernel) echo "$compile" ;;
	each-commit) echo "$compile $each_commit" ;;
	all) echo "$compile $each_commit $guests $host" ;;
	arm64) echo "$arm64" ;;
	deb) echo "$deb" ;;
	deb-test) echo "$deb_test" ;;
	rpm) echo "rpm=rpmbuild" ;;
	stick) echo "$stick" ;;
	*)
		die "'$1' is unknown; accepted: all, kernel, tree, each-commit," \
			"arm64, deb, deb-test, rpm, stick"
		;;
	esac
}

is_there() {
	case $1 in
	"") return 0 ;;		# nothing tells; on Debian dpkg does
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

is_debian() {
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

# missing WHAT...: packages, each once. One query of dpkg for all of them: this
# runs before every other verb. Debian's own are wanted where a program of the
# same name may be another: busybox without its static linking.
missing() {
	items=$(for what; do wanted "$what"; done)
	if ! is_debian; then
		for item in $items; do
			is_there "${item#*=}" || echo "${item%%=*}"
		done | sort -u
		return
	fi
	# shellcheck disable=SC2086 # one word per item
	names=$(printf '%s\n' $items | sed 's/=.*//' | sort -u)
	# what is wanted and installed is there twice
	# shellcheck disable=SC2016,SC2086 # dpkg's own ${}; one word per package
	{
		echo "$names"
		dpkg-query -W -f '${db:Status-Status} ${Package}\n' $names \
			2>/dev/null | sed -n 's/^installed //p'
	} | sort | uniq -u
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
apt_install() {
	$as apt-get -o Acquire::Retries=3 -o Dir::Etc::Preferences="$pins" "$@" \
		--no-install-recommends install $missing
}

# A new package may want its like of the same release: udev wants libudev1's. So
# what goes with an installed package is taken of its version.
pin_installed() {
	[ ! -f /etc/apt/preferences ] || cat /etc/apt/preferences
	# shellcheck disable=SC2016 # dpkg's own ${}
	dpkg-query -W -f '\nPackage: src:${source:Package}
Pin: version ${Version}\nPin-Priority: 990\n'
}

# Sets $plan; where nothing can be had so, what would do is said at least.
make_plan() {
	pin_installed >"$pins"
	plan=$(apt_install --simulate 2>/dev/null) && return
	pins=/etc/apt/preferences
	plan=$(apt_install --simulate) || die "apt-get cannot install: $missing"
}

# planned EXPRESSION: packages of the plan, in one line
planned() {
	printf '%s\n' "$plan" | sed -n "$1" | tr '\n' ' '
}

install_packages() {
	as="$as DEBIAN_FRONTEND=noninteractive"
	say "missing: $missing"
	# A third party's broken source must not stop us: what counts is
	# whether the install works.
	$as apt-get -o Acquire::Retries=3 update ||
		say "apt-get update complained; going on with what it has"
	pinned=$(mktemp) pins=$pinned
	trap 'rm -f "$pinned"' EXIT
	trap 'exit 1' INT TERM
	make_plan
	changed=$(planned 's/^Inst \([^ ]*\) \[.*/\1/p; s/^Remv \([^ ]*\).*/\1/p')
	[ -z "$changed" ] || die "to install $missing, apt-get would upgrade or" \
		"remove packages, which is for you to decide: $changed; as root:" \
		"apt-get install --no-install-recommends $missing"
	step "install, with what they need:" "$(planned 's/^Inst \([^ ]*\).*/\1/p')"
	apt_install --yes || die "apt-get could not install: $missing"
	step "installed: $missing"
}

case ${SETUP:=yes} in
yes | no) ;;
*) die "SETUP=$SETUP is unknown; accepted: yes, no" ;;
esac
[ $# -gt 0 ] || set -- all
for what; do
	wanted "$what" >/dev/null
done
PATH=$PATH:/usr/sbin:/sbin
missing=$(missing "$@" | tr '\n' ' ')
missing=${missing% }
[ -n "$missing" ] || exit 0
if ! is_debian; then
	[ -n "${KSRC:-}" ] || say "The kernel source comes from Debian, unless" \
		"KSRC=<dir> names a Linux ${KVER:-7.3} source tree."
	die "this is not a Debian system (12 and 13 are supported);" \
		"install what corresponds to these packages: $missing"
fi
[ "$SETUP" != no ] || die "SETUP=no installs nothing; what is missing:" \
	"$missing"
as=$(root_prefix) || die "packages are missing and this user may not install" \
	"them; as root: apt-get install -y --no-install-recommends $missing"
install_packages
