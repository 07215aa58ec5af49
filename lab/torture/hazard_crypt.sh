#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Description: files with a key each are encrypted by the block layer, while
# there are fewer keyslots than files, so that writers wait for a slot with
# requests in their plugs.
#
# The guest's kernel has blk_crypto_fallback.num_keyslots=1, or shows little.
#
# did crypt_passes	passes of fio, over all files
# did crypt_mb_verified	MiB written through the plug and read back

. "${0%/*}/torture_lib.sh"
. "${0%/*}/stacks.sh"

FILES=4
FILE_MB=2
MNT=/mnt/hazard_crypt

# encrypt DIR N: what it will hold, by a key of its own
encrypt()
{
	local key

	key=$(printf '%064d' "$2" | xfs_io -c add_enckey "$1") || return
	xfs_io -c "set_encpolicy ${key##* }" "$1"
}

make_fs()
{
	local n=0

	mkfs.ext4 -q -F -O encrypt -b 4096 "/dev/$DISK" 24m || return 1
	mkdir -p $MNT
	mount -t ext4 -o inlinecrypt "/dev/$DISK" $MNT ||
		skip "no inlinecrypt (CONFIG_FS_ENCRYPTION_INLINE_CRYPT)"
	at_exit umount $MNT
	while [ $n -lt $FILES ]; do
		mkdir $MNT/$n && encrypt $MNT/$n $n || return 1
		n=$((n + 1))
	done
}

# Without a key it is not what was written.
is_encrypted()
{
	tr '\0' P </dev/zero | dd of=$MNT/0/plain bs=4k count=16 2>/dev/null
	sync
	! dd if="/dev/$DISK" bs=1M count=24 2>/dev/null |
		grep -aq PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP
}

# one MODE ENGINE RW DIRECT: all files at a time
one()
{
	local n=0

	set_mode "$DISK" "$1" || return 1
	rnd 1000000
	set -- --ioengine="$2" --rw="$3" --direct="$4" --randseed="$R" \
		--bs=4k --size=${FILE_MB}m --iodepth=64 --fsync=256 \
		--iodepth_batch_submit=32 --iodepth_batch_complete_min=1 \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0
	while [ $n -lt $FILES ]; do
		set -- "$@" --name=file$n --filename=$MNT/$n/data
		n=$((n + 1))
	done
	timeout 120 fio --thread --eta=never --output="$TMP/fio" "$@" || {
		found "encrypted writes failed: $*:" \
			"$(grep -im 1 -E 'verify|error|fail' "$TMP/fio")"
		return 1
	}
	did crypt_passes 1
	did crypt_mb_verified $((FILES * FILE_MB))
}

rnd_seed "$1"
need_programs mkfs.ext4 xfs_io fio
# no null_blk: one that keeps its data is as "always"
nvme 1
DISK=$BASES
make_fs || skip "cannot make an encrypted ext4"
is_encrypted || found "what was written is on the disk as it was"
MODES=$(modes_of "$DISK")
# Making all that takes a slow guest long.
deadline "$2"
while time_left; do
	for mode in $MODES; do
		pick io_uring libaio
		engine=$WORD
		pick write randwrite
		direction=$WORD
		pick 1 1 0
		one "$mode" "$engine" "$direction" "$WORD" || over
		time_left || break
	done
done
over
