# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# What the tests know of NVMe disks. BLOCK_PLUG_DEVS lists those (/dev/nvme0n1
# ...) whose contents may be destroyed; all other disks are made for the tests.

. "${0%/*}/disk_lib.sh"

# disk_use DEV: what DEV or a partition of it is in use for, if anything: by
# dm, and so by LVM, and by md as well, which all show as holders
disk_use()
{
	local name="${1##*/}" part="^$1\(p[0-9][0-9]*\)\{0,1\}[[:space:]]" holder

	if grep -q "$part" /proc/mounts; then
		echo "mounted"
	elif grep -q "$part" /proc/swaps; then
		echo "swap space"
	else
		for holder in /sys/block/"$name"/holders/* \
			      /sys/block/"$name"/"$name"*/holders/*; do
			[ ! -e "$holder" ] || echo "used by ${holder##*/}"
		done | head -n 1
	fi
}

# Sets NVME to the names of the disks (nvme0n1 ...) that may be written, and
# prepares them.
need_nvme()
{
	local dev use

	NVME=
	for dev in ${BLOCK_PLUG_DEVS-}; do
		use=$(disk_use "$dev")
		if [ ! -b "$dev" ] || [ ! -e "/sys/block/${dev##*/}/queue" ]; then
			missing "BLOCK_PLUG_DEVS: $dev is no whole disk"
		elif [ "${dev#/dev/nvme}" = "$dev" ]; then
			missing "BLOCK_PLUG_DEVS: $dev is no NVMe disk"
		elif [ -n "$use" ]; then
			missing "BLOCK_PLUG_DEVS: $dev is $use"
		else
			NVME="$NVME${NVME:+ }${dev##*/}"
			[ "$(id -u)" -ne 0 ] || prepare "${dev##*/}"
		fi
	done
	[ -n "$NVME" ] || missing "BLOCK_PLUG_DEVS names no NVMe disk to use"
}

# For a test that can do without NVMe disks, but not tacitly.
need_nvme_if_any()
{
	local before="$MISSING"

	MISSING=
	need_nvme
	[ -n "$NVME" ] || note "NVMe left out: $MISSING"
	MISSING=$before
}

# nvme_state_is CONTROLLER STATE
nvme_state_is()
{
	[ "$(cat "/sys/class/nvme/$1/state" 2>/dev/null)" = "$2" ]
}

# reset_ctrl CONTROLLER: until it works again
reset_ctrl()
{
	echo 1 >"/sys/class/nvme/$1/reset_controller" ||
		{ failed "the reset of $1 was refused"; return 1; }
	wait_for 60 nvme_state_is "$1" live
}

# remove_device PCI_DEVICE: with the disk
remove_device()
{
	echo 1 >"$1/remove"
	wait_for 60 test ! -e "$1"
}

# nvme_is_back PCI_DEVICE, and works
nvme_is_back()
{
	local disk

	disk=$(nvme_disk_at "$1")
	[ -n "$disk" ] && [ -b "/dev/$disk" ] &&
		nvme_state_is "$(ctrl_of "$disk")" live
}

rescan_pci()
{
	echo 1 >/sys/bus/pci/rescan
	wait_for 60 nvme_is_back "$1"
}

# nvme_disk_at PCI_DEVICE: the name of its first disk, if it has one now; after
# a removal both numbers may differ, the second if the old disk is still open
nvme_disk_at()
{
	local path

	for path in "$1"/nvme/nvme*/nvme*n*; do
		[ ! -e "$path/queue" ] || { echo "${path##*/}"; return; }
	done
}

is_nvme()
{
	[ "${1#nvme}" != "$1" ]
}

# ctrl_of DISK: nvme0n1 belongs to nvme0
ctrl_of()
{
	echo "${1%n*}"
}

# count_doorbells DISK: from now on, if the kernel can
count_doorbells()
{
	local file="$DEBUGFS/block/$1/plug_stats_enabled"

	[ ! -e "$file" ] || set_attr "$file" 1
}

# doorbells_of DISK: all hardware queues' together
doorbells_of()
{
	cat "$DEBUGFS/block/$1"/hctx*/plug_stats 2>/dev/null |
		awk '$1 == "doorbells" { n += $2 } END { print n + 0 }'
}
