#!/bin/busybox sh
# The program of the guest's disk: does all checks, and says what came of each on the console.
. /checks.sh
mkdir -p /etc/nvme
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0

target="-t tcp -a 10.0.2.2 -s $ocssd_port"
# Newer kernels refuse two names with one identifier, and the identifier they make up belongs to a name they make up.
host="-q $ocssd_host -I ${ocssd_host##*:}"
stranger="-q ${ocssd_host%1}2 -I 6f637373-6400-4000-8000-000000000002"
connect() { nvme connect $target -n "$ocssd_nqn" $host --reconnect-delay=1 --keep-alive-tmo=5 -i 2 "$@"; }
is_gone() { [ ! -e /dev/nvme0 ]; }
# Newer kernels look at all namespaces at once, so that their devices are numbered in any order.
is_there() {
    for place in /sys/block/nvme0n*; do
        block=/dev/${place##*/}
        [ "$(cat "$place/nsid")" = 1 ] && [ -b "$block" ] && return
    done
    return 1
}
raw_is_there() {
    for raw in /dev/ng0n*; do nvme get-ns-id "$raw" | grep -q ':2$' && return; done
    return 1
}
discovers() { nvme discover $target $host | grep "$ocssd_nqn"; }
sum_is() { [ "$(md5sum <"$1")" = "$(cat "$2")" ]; }
leaves() { nvme disconnect -n "$ocssd_nqn" && until_true is_gone; }

# The disk this program lies on. What is written is read from it again, and not from memory.
is_root() { grep -q '^/dev/vda / ext4 rw' /proc/mounts; }
forget() { sync && echo 3 >/proc/sys/vm/drop_caches; }
check root-is-the-served-disk is_root
check disk-writes-back grep -qx 'write back' /sys/block/vda/cache_type
dd if=/dev/urandom of=/scratch/data bs=64k count="$ocssd_blocks" 2>/dev/null
md5sum </scratch/data >/scratch/sum
check disk-write sh -c "cp /scratch/data /file && cp /scratch/data /other && sync"
check disk-forget forget
check disk-checksum sum_is /file /scratch/sum
check disk-trim sh -c "rm /other && sync && fstrim /"
check disk-forget-again forget
check disk-checksum-after-trim sum_is /file /scratch/sum

# The disk's server is stopped while a file is written to it, and another goes on.
cat /scratch/data /scratch/data >/restarted &
say restart
check disk-written-over-restart wait $!
check disk-sync-after-restart sync
check disk-forget-after-restart forget
cat /scratch/data /scratch/data | md5sum >/scratch/sum2
check disk-checksum-after-restart sum_is /restarted /scratch/sum2
check disk-old-checksum-after-restart sum_is /file /scratch/sum

# The next one is killed. Without write-back what has ended is durable, and what has not is carried out by who comes then.
check disk-writes-through sh -c "echo 'write through' >/sys/block/vda/cache_type"
check disk-sync-before-kill sync
cat /scratch/data /scratch/data >/killed &
say kill
check disk-written-over-kill wait $!
check disk-sync-after-kill sync
check disk-forget-after-kill forget
check disk-checksum-after-kill sum_is /killed /scratch/sum2
check disk-old-checksum-after-kill sum_is /restarted /scratch/sum2

check discover discovers
check stranger sh -c "! nvme connect $target -n $ocssd_nqn $stranger"
check connect connect
check block-device until_true is_there
check physical-block grep -qx 4096 "/sys/block/${block##*/}/queue/physical_block_size"
check no-raw-block-device [ "$(ls /dev/nvme0n* | wc -l)" = 1 ]
check smart nvme smart-log /dev/nvme0
check effects nvme effects-log /dev/nvme0
check error-log nvme error-log /dev/nvme0
check mkfs /sbin/mke2fs -q -t ext4 -E nodiscard "$block"
check mount mount -t ext4 -o discard "$block" /mnt
check write sh -c "cp /scratch/data /mnt/file && sync"
check trim sh -c "cp /scratch/data /mnt/other && sync && rm /mnt/other && sync"
check umount umount /mnt
check disconnect leaves

check reconnect-with-digests connect -g -G
check block-device-again until_true is_there
check mount-again mount -t ext4 "$block" /mnt
check checksum-after-reconnect sum_is /mnt/file /scratch/sum

# The connections are cut while a file is written; the kernel connects again and goes on.
# A command that finds its connection closed before the kernel has noticed is tried again at once, and a sixth time in vain within
# half a millisecond; then its writer would hear of it (seen on Linux 6.1; `max_retries`).
echo 255 >/sys/module/nvme_core/parameters/max_retries
round=0
while [ $round -lt "$ocssd_cuts" ]; do
    round=$((round + 1))
    cat /scratch/data /scratch/data >/mnt/cut &
    say cut
    wait $!
    check "sync-after-cut-$round" sync
    echo 3 >/proc/sys/vm/drop_caches
    cat /scratch/data /scratch/data | md5sum >/scratch/sum2
    check "checksum-after-cut-$round" sum_is /mnt/cut /scratch/sum2
    check "old-file-after-cut-$round" sum_is /mnt/file /scratch/sum
    check "reconnected-$round" sh -c "dmesg | grep -c 'Successfully reconnected' | grep -qx $round"
done

# fio writes, and verifies what it wrote, while the connections are cut; it must not notice.
reconnections() { dmesg | grep -c 'Successfully reconnected'; }
has_more() { [ "$(reconnections)" -gt "$1" ]; }
runs_fio() {
    fio --name=cut --directory=/mnt --rw=randwrite --bs=4k --size=16m --ioengine=libaio --iodepth=8 --direct=1 \
        --verify=crc32c --verify_fatal=1 "$@"
}
fio_goes_on() { kill -0 $fio || { cat /scratch/fio && false; }; }
fio_is_done() { wait $fio || { cat /scratch/fio && false; }; }
if [ "$ocssd_fio_cuts" -gt 0 ]; then
    # Slow enough to be still at it when the last cut is over.
    runs_fio --verify_backlog=64 --rate_iops=,150 >/scratch/fio 2>&1 &
    fio=$!
    round=0
    while [ $round -lt "$ocssd_fio_cuts" ]; do
        round=$((round + 1))
        before=$(reconnections)
        say cut
        check "fio-reconnected-$round" until_true has_more "$before"
        check "fio-goes-on-$round" fio_goes_on
    done
    check fio-verified fio_is_done
    check fio-verified-much grep -E 'READ:.*io=(1[5-9]|[2-9][0-9])' /scratch/fio
    check fio-forget forget
    check fio-verifies-again runs_fio --verify_only
    check fio-removes rm /mnt/cut.0.0
fi
check reset nvme reset /dev/nvme0
check checksum-after-reset sum_is /mnt/file /scratch/sum
check umount-again umount /mnt

# What is there is compared by the server with what the guest sends: the first sector, and something else.
dd if="$block" of=/scratch/there bs=512 count=1 2>/dev/null
head -c 512 /scratch/data >/scratch/other
compares() { nvme compare "$block" -s 0 -c 0 -z 512 -d "$1" 2>&1; }
differs() { compares "$1" | grep -i 'compare failure'; }
check compare-same compares /scratch/there
check compare-different differs /scratch/other

# The open-channel drive: geometry, chunk log, one sector written, read, its chunk reset; by the raw namespace's device.
check raw-device until_true raw_is_there
check raw-identify nvme id-ns /dev/nvme0 -n 2
first_byte_is() { [ "$(head -c 1 "$1" | hexdump -e '"%d"')" = "$2" ]; }
geometry() {
    nvme admin-passthru /dev/nvme0 -o 0xe2 -n 2 -l 4096 -r -b >/scratch/geometry && first_byte_is /scratch/geometry 2
}
check raw-geometry geometry
chunks() { nvme get-log /dev/nvme0 -n 2 -i 0xca -l 64 -b >/scratch/chunks && [ "$(wc -c </scratch/chunks)" = 64 ]; }
state() { chunks && first_byte_is /scratch/chunks "$1"; }
# reads_back OPCODE NLB BYTES FILE: what is read from the first sector on is what the file holds.
reads_back() {
    nvme io-passthru $raw -o "$1" -n 2 --cdw10=0 --cdw12="$2" -l "$3" -r -b >/scratch/back && cmp /scratch/back "$4"
}
check raw-chunk-log chunks
check raw-chunk-is-free state 1
head -c 16384 /scratch/data >/scratch/sector4
head -c 4096 /scratch/data >/scratch/sector
# What was written last can be read only when more has been written behind it (MW_CUNITS): half of it is.
head -c 65536 /scratch/data >/scratch/sector16
check raw-scalar-write nvme io-passthru $raw -o 0x01 -n 2 --cdw10=0 --cdw12=15 -l 65536 -w -i /scratch/sector16
check raw-chunk-is-open state 4
check raw-vector-write nvme io-passthru $raw -o 0x91 -n 2 --cdw10=16 --cdw12=0 -l 4096 -w -i /scratch/sector
check raw-vector-read reads_back 0x92 0 4096 /scratch/sector
check raw-scalar-read reads_back 0x02 3 16384 /scratch/sector4
check raw-list-is-refused sh -c "! nvme io-passthru $raw -o 0x92 -n 2 --cdw10=0 --cdw12=3 -l 16384 -r -b"
# Only a closed chunk can be reset.
check raw-early-reset-is-refused sh -c "! nvme io-passthru $raw -o 0x90 -n 2 --cdw10=0 --cdw12=0"
head -c 61440 /scratch/data >/scratch/sector15
check raw-write-to-the-end nvme io-passthru $raw -o 0x01 -n 2 --cdw10=17 --cdw12=14 -l 61440 -w -i /scratch/sector15
check raw-chunk-is-closed state 2
check raw-vector-reset nvme io-passthru $raw -o 0x90 -n 2 --cdw10=0 --cdw12=0
check raw-chunk-is-free-again state 1
check raw-wrong-write-is-refused sh -c "! nvme io-passthru $raw -o 0x01 -n 2 --cdw10=4 --cdw12=3 -l 16384 -w -i /scratch/sector4"
check disconnect-again leaves
first_target=$target
first_nqn=$ocssd_nqn
. /zones.sh
[ -e /modules ] && . /file_systems.sh
. /qemu_zones.sh
check disk-checksum-at-the-end sum_is /file /scratch/sum
check disk-is-left-sound mount -o remount,ro /
say end
poweroff -f
