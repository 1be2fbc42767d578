# dm-zoned, Linux's own translation of blocks that are written anywhere to zones, with a part of the blocks beside them for its
# metadata and as its cache; and ext4 on it. Debian 12 has no dmzadm, so what it would write is made here.

# A cache of eight zones' size is soon full, so that what is written goes on to zones while more comes.
cache_zones=8
zone_blocks=$((zone_bytes / 4096))
chunks=16
chunk_sectors=$((chunks * zone_sectors))
all_zones=$((cache_zones + zones))
# le BYTES NUMBER: little endian.
le() {
    left=$1
    number=$2
    while [ "$left" -gt 0 ]; do
        printf "\\$(printf %03o $((number & 255)))"
        number=$((number >> 8))
        left=$((left - 1))
    done
}
# super BLOCK CRC: a super block that says it lies at this block of both devices. Behind the magic number: version, generation,
# place, blocks of metadata, zones for reclaim, chunks, blocks of the map and of the bitmaps, checksum; label, name of the set and
# of the device.
super() {
    printf DBZD && le 4 2 && le 8 4294967295 && le 8 "$1" && le 4 $((2 + all_zones)) && le 4 2 && le 4 $chunks && le 4 1 &&
        le 4 $all_zones && le 4 "$2" && le 32 0 && printf 'blocks and zonesa device of them' && head -c 3984 /dev/zero
}
# The checksum begins with the generation, and is not inverted at its end. Of this generation it is the inverse of gzip's.
summed() { super "$1" $((4294967295 - $(super "$1" 0 | gzip -c | tail -c 8 | hexdump -n 4 -e '1/4 "%u"'))); }
# A set: a super block, the map of chunks to zones, none of which has one yet, and a bitmap of blocks that are valid for each zone.
set_at() {
    { summed "$1" && tr '\0' '\377' </dev/zero | head -c 4096 && head -c $((all_zones * 4096)) /dev/zero; } >/scratch/set &&
        dd if=/scratch/set of=/dev/mapper/cache bs=4096 seek="$1" conv=fsync
}
# Two sets, each in a zone of its own; and a super block on the zones, which says to whom they belong. Linux flushes the device of
# the sets only, so it is flushed here.
makes_dm_zoned() {
    set_at 0 && set_at "$zone_blocks" && summed $((cache_zones * zone_blocks)) >/scratch/super &&
        dd if=/scratch/super of="$zoned" bs=4096 oflag=direct conv=fsync
}
# There is no udev here, so dmsetup makes the devices' names.
export DM_DISABLE_UDEV=1
creates() { dmsetup create "$1" --table "$2" && [ -b "/dev/mapper/$1" ]; }
creates_cache() { creates cache "0 $((cache_zones * zone_sectors)) linear /dev/$blocks 0"; }
creates_dm_zoned() { creates blocks "0 $chunk_sectors zoned /dev/mapper/cache $zoned"; }
removes_both() { dmsetup remove blocks && dmsetup remove cache; }
gives_up() { umount /mnt && removes_both; }
# Zones that hold chunks, of those that are written in order.
has_moved() {
    of="$(dmsetup status blocks | sed -n 's@.* \([0-9]*\)/\([0-9]*\) sequential.*@\1 \2@p')"
    [ -n "$of" ] && [ "${of% *}" -lt "${of#* }" ]
}
has_moved_all() { dmsetup status blocks | grep -q " zones $((cache_zones - 2))/$((cache_zones - 2)) cache"; }
check dm-zoned-zones blkzone reset "$zoned"
check dm-zoned-cache creates_cache
check dm-zoned-format makes_dm_zoned
check dm-zoned-create creates_dm_zoned
check dm-zoned-mkfs /sbin/mke2fs -q -t ext4 /dev/mapper/blocks
check dm-zoned-mount mount -t ext4 /dev/mapper/blocks /mnt
check dm-zoned-fill fills
check dm-zoned-copy sh -c "cp /scratch/data /mnt/data && sync"
check dm-zoned-moves-to-zones until_true has_moved
check dm-zoned-umount umount /mnt
check dm-zoned-check e2fsck -f -n /dev/mapper/blocks
check dm-zoned-remove dmsetup remove blocks
check dm-zoned-create-again creates_dm_zoned
check dm-zoned-has-moved has_moved
check dm-zoned-mount-again mount -t ext4 /dev/mapper/blocks /mnt
check dm-zoned-same sum_is /mnt/data /scratch/sum
check dm-zoned-verify fills --verify_only
# After a flush what dm-zoned moved to zones may be lost with the drive's buffer: it flushes the device of its metadata and
# no other. So all is moved, zones are flushed here, and the power goes when nothing is written.
check dm-zoned-moves-all until_true has_moved_all
check dm-zoned-flush-zones dd if=/dev/null of="$zoned" conv=notrunc,fsync
lost=/mnt/fill.0.0
true &
writes=$!
loses_power dm-zoned
check dm-zoned-cache-after-power creates_cache
check dm-zoned-create-after-power creates_dm_zoned
check dm-zoned-mount-after-power mount -t ext4 /dev/mapper/blocks /mnt
check dm-zoned-same-after-power sum_is /mnt/data /scratch/sum
check dm-zoned-verify-after-power fills --verify_only
check dm-zoned-umount-again umount /mnt
check dm-zoned-check-after-power e2fsck -f -n /dev/mapper/blocks
check dm-zoned-remove-both removes_both
check dm-zoned-reset blkzone reset "$zoned"
