# What is done with namespaces of zones (1), of blocks (2) and of keys and values (3) in one controller, however it came. Before
# that `zones_are_there` has found the first two.
queue=/sys/block/$zoned/queue
zoned=/dev/$zoned
check zones-are-host-managed grep -qx host-managed "$queue/zoned"
check zones-not-of-blocks grep -qx none "/sys/block/$blocks/queue/zoned"
zone_sectors=$(cat "$queue/chunk_sectors")
zones=$(cat "$queue/nr_zones")
check zones-take-appends [ "$(cat "$queue/zone_append_max_bytes")" -ge 65536 ]
check zones-have-limits [ "$(cat "$queue/max_active_zones")" -ge 4 ]
check zones-identify nvme zns id-ns "$zoned"
check zones-identify-controller nvme zns id-ctrl "${zoned%n*}"
check zones-effects nvme effects-log "${zoned%n*}" --csi=2

# are COUNT CONDITION: so many zones are em(pty), oi, oe (open), cl(osed) or fu(ll).
are() { [ "$(blkzone report "$zoned" | grep -c "($2)")" = "$1" ]; }
check zones-are-empty are "$zones" em
head -c 16384 /scratch/data >/scratch/four
head -c 4096 /scratch/data >/scratch/one
writes() { nvme write "$zoned" -s "$1" -c 3 -z 16384 -d /scratch/four; }
check zones-write writes 0
check zones-wrong-place fails writes 8
check zones-one-is-open are 1 oi
points_to() { blkzone report -c 1 "$zoned" | grep -q "wptr $1 "; }
check zones-write-pointer points_to 0x000020
appends_at() { nvme zns zone-append "$zoned" -s 0 -z 4096 -d /scratch/one 2>&1 | grep -q "LBA $1\$"; }
check zones-append appends_at 4
check zones-append-again appends_at 5
reads() { rm -f /scratch/back && nvme read "$zoned" -s "$1" -c "$2" -z "$3" -d /scratch/back && cmp /scratch/back "$4"; }
check zones-read reads 0 3 16384 /scratch/four
check zones-read-what-was-appended reads 5 0 4096 /scratch/one
check zones-open blkzone open -c 1 "$zoned"
check zones-one-is-explicitly-open are 1 oe
check zones-close blkzone close -c 1 "$zoned"
check zones-one-is-closed are 1 cl
check zones-finish blkzone finish -c 1 "$zoned"
check zones-one-is-full are 1 fu
check zones-full-is-refused fails writes 6
check zones-filtered sh -c "nvme zns report-zones $zoned -S 5 | grep -q 'nr_zones: 1'"
check zones-reset blkzone reset "$zoned"
check zones-are-empty-again are "$zones" em
check zones-flush nvme flush "$zoned" -n 1

# fio writes zones in order and at random, and reads what it wrote.
writes_by_fio() {
    fio --name=zbd --filename="$zoned" --direct=1 --ioengine=psync --zonemode=zbd --verify=crc32c --verify_fatal=1 \
        --max_open_zones=3 --size=$((4 * zone_sectors * 512)) "$@"
}
check zones-fio-in-order writes_by_fio --rw=write --bs=64k
check zones-reset-after-fio blkzone reset "$zoned"
check zones-fio-at-random writes_by_fio --rw=randwrite --bs=16k --io_size=2m
check zones-reset-at-the-end blkzone reset "$zoned"
. /described.sh

# Keys and values, as a cache of a language model asks for them: 16 bytes of a hash, of which byte 11 is a version; stores
# only of what is not there; and a number of blocks in CDW12, which means nothing here.
check keys-are-there until_true keys_are_there
check keys-are-no-block-device fails block_of 3
key="--cdw2=0x33221100 --cdw3=0x77665544 --cdw14=0x01aa9988 --cdw15=0xffeeddcc"
# asks OPCODE CDW10 CDW11 MORE...: a command about the key.
asks() {
    opcode=$1
    cdw10=$2
    cdw11=$3
    shift 3
    nvme io-passthru "$keys" -o "$opcode" -n 3 $key --cdw10="$cdw10" --cdw11="$cdw11" "$@"
}
stores() { asks 0x01 4096 0x210 --cdw12=7 -l 4096 -w -i /scratch/one; }
brings() { asks 0x02 4096 16 --cdw12=7 -l 4096 -r -b >/scratch/back && cmp /scratch/back /scratch/one; }
# says TEXT COMMAND...: the command says the text.
says() {
    text=$1
    shift
    "$@" 2>&1 | grep -a -q "$text"
}
exists() { asks 0x14 0 16; }
check keys-store stores
check keys-store-again-is-refused fails stores
check keys-retrieve brings
check keys-true-length says 'result: 0x00001000' asks 0x02 512 16 -l 512 -r
check keys-exist exists
printf '\001\000\000\000\020\000' >/scratch/one-key
lists() {
    asks 0x06 4096 0 -l 4096 -r -b >/scratch/list && head -c 6 /scratch/list >/scratch/begin &&
        cmp /scratch/begin /scratch/one-key
}
check keys-list lists
check keys-delete asks 0x10 0 16
check keys-gone fails exists
check keys-too-long-is-refused fails asks 0x01 4096 17 -l 4096 -w -i /scratch/one
check keys-store-anew stores

# The block device beside them is one.
check blocks-mkfs /sbin/mke2fs -q -t ext4 -E nodiscard "/dev/$blocks"
check blocks-mount mount -t ext4 "/dev/$blocks" /mnt
check blocks-write sh -c "cp /scratch/four /mnt/file && sync && cmp /scratch/four /mnt/file"
check blocks-umount umount /mnt
