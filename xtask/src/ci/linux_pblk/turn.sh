# A boot of a drive that Linux's pblk and our `linux-pblk` write in turn; the guest's first program goes on here if the kernel's
# command line has ocssd_turn:
#   first    a new drive: Linux makes an instance, fills and overwrites it, and removes it
#   ours     an instance that we wrote: an ext4 at its start, whose file has the sum ocssd_sum, and behind it what fio wrote
#   cut      the same; then Linux goes on writing until its power is cut
# Where fio's part begins, and how large it is, is in ocssd_fio_at and ocssd_fio_size; the job is the one that wrote it.
verify_what_we_wrote() {
    job ours --filename=/dev/pb0 --rw=randwrite --bs=4k --iodepth=16 --offset="$ocssd_fio_at" --size="$ocssd_fio_size" \
        --verify_only
}
no_warnings() { ! dmesg | grep -E 'WARNING:|BUG:|corrupted (L2P|read)|inconsistent lba|failed to GC|could not recover'; }

if [ "$ocssd_turn" = first ]; then
    check create create factory
    check fill job fill --filename=/dev/pb0 --rw=write --bs=64k --iodepth=4 --size=100% --do_verify=0
    check overwrite-and-verify job over --filename=/dev/pb0 --rw=randwrite --bs=16k --iodepth=16 --size=20%
    tell_fio
else
    check recover create
    # Before anything is written: our own mount must have come to the same.
    say "value recovered $(crc init) $(sum_of /dev/pb0)"
    # The counters of the newest end metadata: ours.
    check garbage-was-collected is_more_than_none write_amp_mileage gc
    check mount mount -t ext4 /dev/pb0 /mnt
    check our-file-is-there sum_is /mnt/ours "$ocssd_sum"
    check umount umount /mnt
    check file-system-is-sound /sbin/e2fsck -f -n /dev/pb0
    check fio-verifies-what-we-wrote verify_what_we_wrote
    tell_fio
    check mount-again mount -t ext4 /dev/pb0 /mnt
    write_synced write linux
    if [ "$ocssd_turn" = cut ]; then
        say "value mileage $(pblk write_amp_mileage)"
        check no-warnings no_warnings
        write_until_cut 64
    fi
    drop_caches
    check file-is-the-same sum_is /mnt/linux "$(sum_of /scratch/linux)"
    check our-file-is-the-same sum_is /mnt/ours "$ocssd_sum"
    check umount-at-the-end umount /mnt
    # Garbage collection of what we wrote, and what fio makes of that.
    check overwrite-and-verify job over --filename=/dev/pb0 --rw=randwrite --bs=16k --iodepth=16 --offset="$ocssd_fio_at"
    check file-system-is-sound-again /sbin/e2fsck -f -n /dev/pb0
fi
say "value mileage $(pblk write_amp_mileage)"
drop_caches
sum=$(sum_of /dev/pb0)
check remove remove
say "value removed $(crc exit) $sum"
check no-warnings-at-all no_warnings
tell_kernel
say end
poweroff -f
