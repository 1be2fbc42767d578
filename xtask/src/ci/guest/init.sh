#!/bin/busybox sh
# The first program of the guest: loads modules, finds the target, and says what came of each check on the console.
. /checks.sh
mkdir -p /etc/nvme
for module in $(cat /modules); do insmod "$module" 2>/dev/null; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0

target="-t tcp -a 10.0.2.2 -s $ocssd_port"
connect() { nvme connect $target -n "$ocssd_nqn" -q "$ocssd_host" --reconnect-delay=1 --keep-alive-tmo=5 -i 2 "$@"; }
is_gone() { [ ! -e /dev/nvme0 ]; }
is_there() { [ -b /dev/nvme0n1 ]; }
discovers() { nvme discover $target -q "$ocssd_host" | grep "$ocssd_nqn"; }
sum_is() { [ "$(md5sum <"$1")" = "$(cat "$2")" ]; }
leaves() { nvme disconnect -n "$ocssd_nqn" && until_true is_gone; }

check discover discovers
check stranger sh -c "! nvme connect $target -n $ocssd_nqn -q nqn.2014-08.org.nvmexpress:uuid:stranger"
check connect connect
check block-device until_true is_there
check no-raw-block-device [ ! -b /dev/nvme0n2 ]
check smart nvme smart-log /dev/nvme0
check effects nvme effects-log /dev/nvme0
check error-log nvme error-log /dev/nvme0
check mkfs /sbin/mke2fs -q -t ext4 -E nodiscard /dev/nvme0n1
check mount mount -t ext4 -o discard /dev/nvme0n1 /mnt
dd if=/dev/urandom of=/scratch/data bs=64k count="$ocssd_blocks" 2>/dev/null
md5sum </scratch/data >/scratch/sum
check write sh -c "cp /scratch/data /mnt/file && sync"
check trim sh -c "cp /scratch/data /mnt/other && sync && rm /mnt/other && sync"
check umount umount /mnt
check disconnect leaves

check reconnect-with-digests connect -g -G
check block-device-again until_true is_there
check mount-again mount -t ext4 /dev/nvme0n1 /mnt
check checksum-after-reconnect sum_is /mnt/file /scratch/sum

# The connections are cut while a file is written; the kernel connects again and goes on.
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
check reset nvme reset /dev/nvme0
check checksum-after-reset sum_is /mnt/file /scratch/sum
check umount-again umount /mnt

# The open-channel drive: geometry, chunk log, one sector written, read, its chunk reset; by the raw namespace's device.
raw=/dev/ng0n2
check raw-device [ -c $raw ]
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
say end
poweroff -f
