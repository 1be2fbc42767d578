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
has_begun() { [ -s /mnt/lost.0.0 ]; }
is_lost() { ! grep -qx live /sys/class/nvme/nvme0/state; }
loses_power() {
    of_zones=$zoned
    of_blocks=$blocks
    check "$1-begins" until_true has_begun
    say kill-zones
    check "$1-loses-power" until_true is_lost
    check "$1-gives-the-drive-up" leaves
    wait "$writes"
    check "$1-umount-without-drive" umount /mnt
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
check file-systems-disconnect leaves
