# File systems that Linux has for zones: made, filled and verified by fio, mounted again, and checked.
for module in $(cat /modules); do insmod "/$module" 2>/dev/null; done
fills() {
    fio --name=fill --directory=/mnt --rw=randwrite --bs=16k --size=12m --ioengine=psync --end_fsync=1 \
        --verify=crc32c --verify_fatal=1 "$@"
}
check file-systems-connect connect
check file-systems-zones until_true zones_are_there
zoned=/dev/$zoned
check file-systems-reset blkzone reset "$zoned"

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
check f2fs-umount-again umount /mnt
check file-systems-disconnect leaves
