#!/bin/busybox sh
# The first program of the guest: makes Linux's pblk on the drive that it finds, uses it, and says what came of each check.
# One boot is a part of a drive's life. Words of the kernel's command line say which:
#   ocssd_fresh=1     a new drive; else one whose power was cut, with the sum of a file that must be there (ocssd_sum)
#   ocssd_again=1     ends with "cut": writes until its power is cut
#   ocssd_faults=1    the drive has bad media; pblk must have met it
#   ocssd_units=N     parallel units of the drive
. /checks.sh
# shellcheck source=cut.sh
. /cut.sh

# What the kernel said about the drive, and anything that went wrong in it.
tell_kernel() { dmesg | grep -E 'nvm|pblk|EXT4|rror|WARN|BUG|Call Trace|RIP' | tail -n 300 | sed 's/^/# /'; }
kernel_says() { dmesg | grep -qE "$1"; }
create() { lnvmctl create nvme0n1 pb0 0 $((ocssd_units - 1)) "$@" && until_true [ -b /dev/pb0 ]; }
remove() { lnvmctl remove pb0; }
# crc exit|init: the checksum of the whole map that pblk last said when it ended or began.
crc() { dmesg | sed -n "s/.*$1: L2P CRC: //p" | tail -n 1; }
crcs_are_equal() { [ -n "$(crc exit)" ] && [ "$(crc exit)" = "$(crc init)" ]; }
pblk() { cat "/sys/block/pb0/pblk/$1"; }
# counted FILE NAME: a number of pblk's sysfs, written NAME:12 or NAME=12.
counted() { pblk "$1" | head -n 1 | grep -oE "$2[:=][0-9]+" | grep -oE '[0-9]+$'; }
is_more_than_none() { [ "$(counted "$1" "$2")" -gt 0 ]; }
# job NAME OPTION...: fio on the device; every block it wrote is checked.
job() {
    local job=$1
    shift
    fio --name="$job" --thread --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --output=/scratch/fio "$@" &&
        grep -q 'err= 0' /scratch/fio
}
tell_fio() { grep -E 'err=|IOPS=' /scratch/fio | sed 's/^ */# /'; }
size() { cat /sys/block/pb0/size; }
sum_of() { md5sum <"$1" | cut -c 1-32; }
sum_is() { [ "$(sum_of "$1")" = "$2" ]; }
drop_caches() { echo 3 >/proc/sys/vm/drop_caches; }

check registered until_true kernel_says 'nvm: registered nvme0n1'
check device [ "$(lnvmctl devices)" = nvme0n1 ]
# shellcheck source=turn.sh
[ -n "$ocssd_turn" ] && . /turn.sh

if [ "$ocssd_fresh" = 1 ]; then
    check create create factory
    check created kernel_says "pblk pb0: luns:$ocssd_units"
    check fio-verify job small --filename=/dev/pb0 --rw=randwrite --bs=4k --iodepth=16 --size=8m
    tell_fio
    check fill job fill --filename=/dev/pb0 --rw=write --bs=64k --iodepth=4 --size=100% --do_verify=0
    check verify-filled job fill --filename=/dev/pb0 --rw=write --bs=64k --iodepth=4 --size=100% --verify_only
    check overwrite-and-verify job over --filename=/dev/pb0 --rw=randwrite --bs=16k --iodepth=16 --size=30%
    tell_fio
    check garbage-was-collected is_more_than_none write_amp_mileage gc
    say "value mileage $(pblk write_amp_mileage)"
    say "value errors $(pblk errors)"
    say "value lines $(pblk lines | tr '\n' ' ')"
    check no-read-failed [ "$(counted errors read_failed)" = 0 ]
    if [ "$ocssd_faults" = 1 ]; then
        check writes-failed is_more_than_none errors write_failed
        check erases-failed is_more_than_none errors erase_failed
    else
        check no-write-failed [ "$(counted errors write_failed)" = 0 ]
    fi
    size=$(size)
    check remove remove
    check create-again create
    if [ "$ocssd_faults" = 1 ]; then
        # Linux makes the device as large as the chunks that are left allow, and forgets what lay behind that.
        check device-is-smaller [ "$(size)" -lt "$size" ]
    else
        check map-is-the-same crcs_are_equal
    fi
    say "value map $(crc exit) $(crc init)"
    check verify-again job over --filename=/dev/pb0 --rw=randwrite --bs=16k --iodepth=16 --size=30% --verify_only
    check mkfs /sbin/mke2fs -q -t ext4 -E nodiscard /dev/pb0
    check mount mount -t ext4 /dev/pb0 /mnt
    dd if=/dev/urandom of=/scratch/data bs=64k count=64 2>/dev/null
    check write cp /scratch/data /mnt/file
    check umount umount /mnt
    check remove-with-files remove
    check create-with-files create
    check map-is-the-same-again crcs_are_equal
    check mount-again mount -t ext4 /dev/pb0 /mnt
    check file-is-the-same sum_is /mnt/file "$(sum_of /scratch/data)"
else
    check recover create
    # Before anything is written: our own reader must come to the same.
    say "value recovered $(crc init) $(sum_of /dev/pb0)"
    check mount-after-cut mount -t ext4 /dev/pb0 /mnt
    check synced-file-is-there sum_is /mnt/kept "$ocssd_sum"
    check umount-after-cut umount /mnt
    check file-system-is-sound /sbin/e2fsck -f -n /dev/pb0
    check mount-recovered mount -t ext4 /dev/pb0 /mnt
    check synced-file-is-still-there sum_is /mnt/kept "$ocssd_sum"
fi
rm -f /mnt/noise
check verify-in-a-file job file --filename=/mnt/job --rw=randwrite --bs=8k --iodepth=8 --size=4m
tell_fio

if [ "$ocssd_again" = 1 ]; then
    # This file was synced: it must be there after the cut, which comes while others are written.
    write_synced write-kept kept
    say "value sum $(sum_of /scratch/kept)"
    write_until_cut 256
fi
drop_caches
if [ "$ocssd_fresh" = 0 ]; then
    check read-again sum_is /mnt/kept "$ocssd_sum"
fi
check umount-at-the-end umount /mnt
drop_caches
sum=$(sum_of /dev/pb0)
check remove-at-the-end remove
say "value removed $(crc exit) $sum"
tell_kernel
say end
poweroff -f
