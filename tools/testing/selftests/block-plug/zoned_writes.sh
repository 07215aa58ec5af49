#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Description: writes to the sequential zones of a zoned disk arrive in order in
# every mode: a write out of order is an I/O error.

# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

# Zones of 16 MB. A null_blk that keeps its data blocks, so that requests are
# held in every mode; on one that keeps none the mode decides.
KEEPS=bp0
DROPS=bp1
MB=24

# With empty zones.
make_disk()
{
	local keep=0

	[ "$1" = $DROPS ] || keep=1
	null_remove "$1"
	null_create "$1" size=64 zoned=1 zone_size=16 zone_nr_conv=0 \
		memory_backed=$keep && set_mode "$1" "$2"
}

# Through the page cache: writeback submits many bios of a zone in one plug.
writeback()
{
	make_disk "$1" "$2" || return 1
	dd if="$TMP/data" of="/dev/$1" bs=1M conv=fsync,notrunc \
		2>"$TMP/error" ||
		failed "writing $MB MB in order failed: $(grep -v records "$TMP/error")"
}

reads_back()
{
	local seen

	writeback $KEEPS "$1" || return 1
	echo 1 >/proc/sys/vm/drop_caches
	seen=$(dd if=/dev/$KEEPS bs=1M count=$MB 2>/dev/null | md5sum)
	expect_text "checksum of $MB MB" "$seen" "$(md5sum <"$TMP/data")"
}

# Direct I/O, as deep as the four zones allow.
fio_zones()
{
	local verify=

	make_disk "$1" "$2" || return 1
	[ "$1" = $DROPS ] ||
		verify="--verify=crc32c --verify_fatal=1 --do_verify=1"
	# shellcheck disable=SC2086 # a list of options
	fio_quiet --filename="/dev/$1" --rw=randwrite --bs=4k --size=64m \
		--io_size=2m --direct=1 --zonemode=zbd --ioengine=libaio \
		--iodepth=16 --iodepth_batch_submit=8 \
		--iodepth_batch_complete_min=4 $verify
}

# Otherwise the cases above would show nothing.
wrong_order_is_noticed()
{
	make_disk $DROPS never || return 1
	dd if="$TMP/data" of=/dev/$DROPS bs=1M count=1 seek=1 \
		oflag=direct conv=notrunc 2>/dev/null &&
		failed "expected a write beyond the write pointer to fail"
	return 0
}

need_zoned()
{
	grep -qs 'zoned' "$NULLB/features" ||
		missing "null_blk has no zones (CONFIG_BLK_DEV_ZONED)"
}

require root knob null_blk zoned fio
make_disk $KEEPS always || ktap_exit_fail_msg "cannot create a zoned null_blk"
MODES=$(modes_of $KEEPS)
# shellcheck disable=SC2086 # a list
plan $((4 * $(count_words $MODES) + 1))
dd if=/dev/urandom of="$TMP/data" bs=1M count=$MB 2>/dev/null
for mode in $MODES; do
	check "$mode: data written back reads back" reads_back "$mode"
	check "$mode: writeback is in order" writeback $DROPS "$mode"
	check "$mode: fio's zones verify" fio_zones $KEEPS "$mode"
	check "$mode: fio's zones are in order" fio_zones $DROPS "$mode"
done
check "a write out of order is noticed" wrong_order_is_noticed
finish
