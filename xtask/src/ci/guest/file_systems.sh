# File systems that Linux has for zones: made, filled and verified by fio, mounted again, and checked; and zbd.
for module in $(cat /modules); do insmod "/$module" 2>/dev/null; done
fills() {
    fio --name=fill --directory=/mnt --rw=randwrite --bs=16k --size=12m --ioengine=psync --end_fsync=1 \
        --verify=crc32c --verify_fatal=1 "$@"
}
check file-systems-connect connect
check file-systems-zones until_true zones_are_there
zoned=/dev/$zoned
check file-systems-reset blkzone reset "$zoned"

# The drive of zones loses its power while `writes`, a process, writes to a file system on it. The kernel must have noticed before
# it is told to give the drive up, and the drive comes back when the file system is gone: what the kernel had written and not
# flushed may be lost, and file systems must not go on as if it were there.
are_there_again() {
    connect || return
    until_true zones_are_there && [ "/dev/$zoned" = "$of_zones" ] && [ "$blocks" = "$of_blocks" ] && return
    # Of f2fs both devices must have the names they had.
    leaves
    return 1
}
overwrites() {
    fio --name=lost --directory=/mnt --rw=randwrite --bs=16k --size=6m --ioengine=psync --fsync=4 --time_based --runtime=300
}
# In a file of which a part is durable already.
has_begun() { [ "$(stat -c %s "$lost")" -ge 262144 ]; }
lost=/mnt/lost.0.0
is_lost() { ! grep -qx live /sys/class/nvme/nvme0/state; }
gives_up() { umount /mnt; }
loses_power() {
    of_zones=$zoned
    of_blocks=$blocks
    check "$1-begins" until_true has_begun
    say kill-zones
    check "$1-loses-power" until_true is_lost
    check "$1-gives-the-drive-up" leaves
    wait "$writes"
    check "$1-umount-without-drive" gives_up
    say serve-zones
    check "$1-is-there-again" until_true are_there_again
    zoned=$of_zones
}

# zbd, a tool of its own for zones.
counts() { zbd report -n -ro "$2" "$zoned" >/scratch/count && cat /scratch/count && grep -qx "$1 zones" /scratch/count; }
zone_bytes=$((zone_sectors * 512))
check zbd-reports counts "$zones" em
check zbd-opens zbd open -ofst 0 -len $((3 * zone_bytes)) "$zoned"
check zbd-are-open counts 3 oe
check zbd-closes zbd close -ofst 0 -len $((3 * zone_bytes)) "$zoned"
check zbd-finishes zbd finish -ofst "$zone_bytes" -len "$zone_bytes" "$zoned"
check zbd-is-full counts 1 fu
check zbd-resets zbd reset "$zoned"
check zbd-are-empty counts "$zones" em

# zonefs, a file for each zone but the first, whose super block is made here: Debian has no mkzonefs. It is the magic number and the
# checksum of it before zeroes. A write that is waited for ends with EIO on Linux 6.1, on QEMU's own zones too ("Corrupted write
# pointer"; the block is where it belongs), so all are asynchronous.
makes_zonefs() {
    { printf 'SFOZ\005\253\277\131' && head -c 4088 /dev/zero; } >/scratch/super &&
        dd if=/scratch/super of="$zoned" bs=4096 oflag=direct && blkzone finish -c 1 "$zoned"
}
# files FILE...: writes such a file, or verifies it.
files() {
    file=$1
    shift
    fio --name=zonefs --filename="/mnt/seq/$file" --allow_file_create=0 --rw=write --bs=16k --size="$zone_bytes" \
        --ioengine=libaio --iodepth=1 --direct=1 --verify=crc32c --verify_fatal=1 "$@"
}
files_are() { [ "$(ls /mnt/seq | wc -l)" = "$1" ]; }
size_is() { [ "$(stat -c %s "/mnt/seq/$1")" "$2" "$3" ]; }
check zonefs-mkfs makes_zonefs
check zonefs-mount mount -t zonefs "$zoned" /mnt
check zonefs-has-a-file-of-each-zone files_are $((zones - 1))
check zonefs-fill files 0 --file_append=1
check zonefs-is-full size_is 0 = "$zone_bytes"
check zonefs-full-is-refused fails dd if=/dev/zero of=/mnt/seq/0 bs=4096 count=1 seek=$((zone_bytes / 4096)) oflag=direct
check zonefs-fill-another files 1 --file_append=1
check zonefs-truncate truncate -s 0 /mnt/seq/1
check zonefs-is-empty size_is 1 = 0
check zonefs-umount umount /mnt
check zonefs-mount-again mount -t zonefs "$zoned" /mnt
check zonefs-verify files 0 --verify_only
check zonefs-is-empty-still size_is 1 = 0
lost=/mnt/seq/2
files 2 --file_append=1 --do_verify=0 --fsync=4 --rate_iops=,10 >/scratch/lost 2>&1 &
writes=$!
loses_power zonefs
check zonefs-mount-after-power mount -t zonefs "$zoned" /mnt
check zonefs-verify-after-power files 0 --verify_only
# What came before the last flush at least; and what there is is sound.
check zonefs-has-what-was-durable size_is 2 -ge 196608
check zonefs-verify-what-is-left files 2 --verify_only --size=$(($(stat -c %s /mnt/seq/2) / 16384 * 16384))
check zonefs-goes-on truncate -s 0 /mnt/seq/2
check zonefs-fill-after-power files 2 --file_append=1
check zonefs-umount-again umount /mnt
check zonefs-reset blkzone reset "$zoned"
lost=/mnt/lost.0.0

# btrfs, on zones alone.
check btrfs-mkfs mkfs.btrfs -q -f -O zoned -m single -d single "$zoned"
check btrfs-mount mount -t btrfs "$zoned" /mnt
check btrfs-fill fills
check btrfs-copy sh -c "cp /scratch/data /mnt/data && sync"
check btrfs-umount umount /mnt
check btrfs-mount-again mount -t btrfs "$zoned" /mnt
check btrfs-same sum_is /mnt/data /scratch/sum
check btrfs-verify fills --verify_only
check btrfs-scrub btrfs scrub start -B -r /mnt
overwrites >/scratch/lost 2>&1 &
writes=$!
loses_power btrfs
check btrfs-mount-after-power mount -t btrfs "$zoned" /mnt
check btrfs-same-after-power sum_is /mnt/data /scratch/sum
check btrfs-verify-after-power fills --verify_only
check btrfs-scrub-after-power btrfs scrub start -B -r /mnt
check btrfs-umount-again umount /mnt
check btrfs-reset blkzone reset "$zoned"

# f2fs, on zones for its data and blocks beside them for what it writes in place.
check f2fs-mkfs mkfs.f2fs -q -f -m -c "$zoned" "/dev/$blocks"
check f2fs-mount mount -t f2fs "/dev/$blocks" /mnt
check f2fs-fill fills
check f2fs-copy sh -c "cp /scratch/data /mnt/data && sync"
check f2fs-umount umount /mnt
check f2fs-check fsck.f2fs "/dev/$blocks"
check f2fs-mount-again mount -t f2fs "/dev/$blocks" /mnt
check f2fs-same sum_is /mnt/data /scratch/sum
check f2fs-verify fills --verify_only
overwrites >/scratch/lost 2>&1 &
writes=$!
loses_power f2fs
check f2fs-check-after-power fsck.f2fs -f -y "/dev/$blocks"
check f2fs-mount-after-power mount -t f2fs "/dev/$blocks" /mnt
check f2fs-same-after-power sum_is /mnt/data /scratch/sum
check f2fs-verify-after-power fills --verify_only
check f2fs-umount-again umount /mnt
check f2fs-check-at-the-end fsck.f2fs "/dev/$blocks"

. /dm_zoned.sh
check file-systems-disconnect leaves
