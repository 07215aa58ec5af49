#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# list.sh ROOT: the files of a Debian system with mode, size and target, to see
# what packages leave behind. What is passed over is written by a running
# system, by dpkg, mmdebstrap or mke2fs, whatever is installed; what lies in it
# is named here one by one.
cd "$1" || exit
find . -xdev \
	\( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run \
	-o -path ./tmp -o -path ./var/tmp -o -path ./root/debtest \
	-o -path ./var/log -o -path ./var/cache/man \
	-o -path ./var/lib/systemd -o -path ./var/cache/ldconfig \
	-o -path ./etc/.updated -o -path ./var/.updated -o -path ./lost+found \
	-o -path ./var/lib/dpkg/status -o -path ./var/lib/dpkg/status-old \
	-o -path ./etc/apt -o -path ./var/lib/apt -o -path ./var/cache/apt \
	-o -path ./usr/sbin/policy-rc.d -o -path './usr/sbin/start-stop-daemon*' \
	-o -path ./etc/machine-id \) -prune -o \
	\( -type d -printf '%p %M\n' \) -o -printf '%p %M %s %l\n' |
	LC_ALL=C sort
