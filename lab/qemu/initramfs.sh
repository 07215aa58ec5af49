#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Build the guest's initramfs: busybox, /init, fio, plug_load, extra files.
#
# initramfs.sh OUT.cpio [SRC:DST ...]
#
# SRC is a file or a directory, DST its absolute path in the guest. PLUG_LOAD
# names a static plug_load built already; without, it is compiled here. For
# another processor than the host's BUSYBOX, FIO, CC and STRIP name what is
# taken, and FIO_LIBRARIES, as SRC:DST, what fio links. The archive is the same
# for the same inputs, and is rebuilt only when they change. It is not
# compressed: unpacking would be emulated, loading it is not.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# It has what is not the laboratory's own from the kselftests' program.
plug_load=$here/../load/plug_load.c
kselftest=$here/../../tools/testing/selftests/block-plug/plug_load.c
busybox=${BUSYBOX:-$(command -v busybox || :)}
fio=${FIO:-$(command -v fio || :)}
strip=${STRIP:-strip}
CC=${CC:-gcc}

die()
{
	echo "initramfs.sh: $*" >&2
	exit 1
}

need()
{
	for tool; do
		command -v "$tool" >/dev/null ||
			die "needs $tool (Debian: busybox-static fio cpio gcc)"
	done
}

check_extra()
{
	for pair; do
		case $pair in
		?*:/*) ;;
		*) die "'$pair' is not SRC:DST with an absolute DST" ;;
		esac
		[ -e "${pair%%:/*}" ] || die "${pair%%:/*}: no such file"
	done
}

# What the archive is made of, as a checksum. The names of the extra files
# count too, since they say where a file goes.
inputs()
{
	{
		cat "$here/init" "$here/initramfs.sh" "$plug_load" \
			"$kselftest"
		cat "$busybox" "$fio"
		[ -z "${PLUG_LOAD-}" ] || cat "$PLUG_LOAD"
		for pair; do
			echo "$pair"
			find "${pair%%:/*}" -print -type f -exec cat {} + |
				sha256sum
		done
	} | sha256sum
}

add()
{
	mkdir -p "$root${2%/*}"
	cp -RL "$1" "$root$2"
}

# Where nobody says what fio links: what the host's loader would give it.
fio_libraries()
{
	if [ -n "${FIO_LIBRARIES-}" ]; then
		printf '%s\n' "$FIO_LIBRARIES" | tr ' ' '\n'
	else
		ldd "$fio" | grep -o '/[^ ]*' | sed 's/.*/&:&/'
	fi
}

add_fio()
{
	add "$fio" /bin/fio
	"$strip" "$root/bin/fio" 2>/dev/null || :
	fio_libraries | while IFS=: read -r lib dst; do
		add "$lib" "$dst"
		"$strip" --strip-unneeded "$root$dst" 2>/dev/null || :
	done
}

add_plug_load()
{
	if [ -n "${PLUG_LOAD-}" ]; then
		add "$PLUG_LOAD" /bin/plug_load
	else
		# shellcheck disable=SC2086 # a command with arguments
		$CC -O2 -static -o "$root/bin/plug_load" \
			"$plug_load" -luring ||
			die "cannot compile plug_load (Debian: liburing-dev)"
	fi
	"$strip" "$root/bin/plug_load"
}

fill_root()
{
	for dir in bin dev etc mnt proc run sys tmp; do
		mkdir "$root/$dir"
	done
	add "$busybox" /bin/busybox
	# The host's has the same applets, and can be asked.
	for applet in $(busybox --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	ln -s bin "$root/sbin"
	add "$here/init" /init
	ln -s ../init "$root/bin/mark"
	add_fio
	add_plug_load
	for pair; do
		add "${pair%%:/*}" "${pair#"${pair%%:/*}":}"
	done
}

pack()
{
	chmod -R u+rwX,go=rX "$root"
	chmod 755 "$root/init"
	find "$root" -exec touch -h -d @0 {} +
	(cd "$root" && find . | LC_ALL=C sort |
		cpio --quiet -o -H newc -R 0:0 --reproducible)
}

[ $# -ge 1 ] || die "usage: initramfs.sh OUT.cpio [SRC:DST ...]"
out=$1
shift
need busybox "${fio:-fio}" cpio "${CC%% *}" "$strip"
check_extra "$@"

sum=$(inputs "$@")
if [ -f "$out" ] && [ "$(cat "$out.inputs" 2>/dev/null)" = "$sum" ]; then
	exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 1' HUP INT TERM
fill_root "$@"
rm -f "$out.inputs"
pack "$root" >"$out.tmp"
mv "$out.tmp" "$out"
echo "$sum" >"$out.inputs"
