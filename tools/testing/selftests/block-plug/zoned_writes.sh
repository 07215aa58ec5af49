#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: writes to the sequential zones of a zoned disk arrive in order in
# every mode: a write out of order is an I/O error.

. "${0%/*}/policy_lib.sh"

# Zones of 16 MB. It keeps no data: a null_blk that does may sleep, so that all
# modes hold as "always".
DISK=bp0
MB=24

# With empty zones.
make_disk()
{
	null_remove $DISK
	null_create $DISK size=64 zoned=1 zone_size=16 zone_nr_conv=0 &&
		set_fresh $DISK "$1"
}

# Through the page cache: writeback submits many bios of a zone in one plug.
writeback()
{
	make_disk "$1" || return 1
	dd if="$TMP/data" of=/dev/$DISK bs=1M conv=fsync,notrunc \
		2>"$TMP/error" ||
		failed "writing $MB MB in order failed: $(grep -v records "$TMP/error")"
}

# Direct I/O, as deep as the four zones allow.
fio_zones()
{
	make_disk "$1" || return 1
	fio_quiet --filename=/dev/$DISK --rw=randwrite --bs=4k --size=64m \
		--io_size=2m --direct=1 --zonemode=zbd --ioengine="$2" \
		--iodepth=16 --iodepth_batch_submit=8 \
		--iodepth_batch_complete_min=4
}

# Otherwise the cases above would show nothing.
wrong_order_is_noticed()
{
	make_disk never || return 1
	dd if="$TMP/data" of=/dev/$DISK bs=1M count=1 seek=1 \
		oflag=direct conv=notrunc 2>/dev/null &&
		failed "expected a write beyond the write pointer to fail"
	return 0
}

need_zoned()
{
	grep -qs 'zoned' "$NULLB/features" ||
		missing "null_blk has no zones (CONFIG_BLK_DEV_ZONED)"
}

require root knob debugfs null_blk zoned fio
make_disk always || ktap_exit_fail_msg "cannot create a zoned null_blk"
MODES=$(modes_of $DISK)
plan $((3 * $(count_words "$MODES") + 1))
dd if=/dev/urandom of="$TMP/data" bs=1M count=$MB 2>/dev/null
for mode in $MODES; do
	check "$mode: writeback is in order" writeback "$mode"
	check "$mode: libaio's writes are in order" fio_zones "$mode" libaio
	check "$mode: io_uring's writes are in order" fio_zones "$mode" io_uring
done
check "a write out of order is noticed" wrong_order_is_noticed
finish
