# Namespaces of zones (1), of keys and values (3) and of transactions (4) beside one of blocks (2), in one controller of a server
# of its own.
target="-t tcp -a 10.0.2.2 -s $ocssd_zones_port"
ocssd_nqn=$ocssd_zones_nqn
. /find.sh
check zones-connect connect
check zones-are-there until_true zones_are_there
# Two drives at once are two to the kernel, though both were made with the same seed.
block_devices_are() { [ "$(ls /dev/nvme*n* | wc -l)" = "$1" ]; }
check two-drives-connect nvme connect $first_target -n "$first_nqn" $host
check two-drives-have-four-devices until_true block_devices_are 4
check two-drives-are-told-apart sh -c "! dmesg | grep -i 'duplicate IDs'"
check two-drives-disconnect nvme disconnect -n "$first_nqn"
check two-drives-are-one-again until_true block_devices_are 3
. /namespaces.sh
# Kernels from 6.11 on show what is written as a whole or not at all: where a request is a transaction as much as a command
# carries, 256 KiB beside zones and keys and a mebibyte alone, and of blocks that promise nothing no more than a sector.
# atomic_is FILE BYTES NSID...: a path or device of such a namespace has these bytes there; of any, without a number.
atomic_is() {
    for place in /sys/block/nvme*n*; do
        [ -n "$3" ] && [ "$(cat "$place/nsid")" != "$3" ] && continue
        grep -qx "$2" "$place/queue/$1" && return
    done
    return 1
}
mebibyte_is_there() {
    atomic_is atomic_write_max_bytes 1048576 && atomic_is atomic_write_unit_max_bytes 1048576
}
alone="-t tcp -a 10.0.2.2 -s $ocssd_transactions_port -n $ocssd_transactions_nqn"
if [ -e "/sys/block/$blocks/queue/atomic_write_unit_max_bytes" ]; then
    check transactions-are-atomic atomic_is atomic_write_max_bytes 262144 4
    check transactions-are-atomic-for-files atomic_is atomic_write_unit_max_bytes 262144 4
    check blocks-are-atomic-one-by-one atomic_is atomic_write_max_bytes 4096 2
    check transactions-not-longer fails mebibyte_is_there
    check transactions-connect nvme connect $alone $host
    check transactions-alone-are-longer until_true mebibyte_is_there
    check transactions-disconnect nvme disconnect -n "$ocssd_transactions_nqn"
fi
# The zones through the kernel's own driver, by the model that judges them in the simulator.
# Streams of requests have moods: some describe zones, others open random write areas.
conforms() {
    for seed in 1 2 3 4 5 6; do
        ocssd conform --zns "$1" --serial "$2" --requests "${3:-$ocssd_conform}" --seed $seed || return
    done
}
serial_of() { tr -d ' ' </sys/class/nvme/nvme0/serial; }
check zones-not-without-their-serial fails ocssd conform --zns "$zoned"
check zones-conform conforms "$zoned" "$(serial_of)"
check zones-conform-generic conforms "${zoned%nvme*}ng${zoned##*nvme}" "$(serial_of)"
check zones-disconnect leaves

# QEMU's own zoned namespaces, which nobody here wrote, under the same requests. One is plain, one has random write areas. Another
# has extensions, and QEMU 7.2 keeps the bytes of an extension that it refuses to set; and another has areas for three zones only,
# and QEMU does not count those of zones that are open already. The comparison has to find both.
for module in $(cat /pci.modules); do insmod "/$module" 2>/dev/null; done
qemu_is_there() { [ -e /dev/ng0n1 ] && [ -e /dev/ng0n4 ] && [ "$(serial_of)" = zones-of-qemu ]; }
# finds WORD DEVICE: the streams end with a difference that is of requests of this kind, and fails for nothing else.
finds() {
    conforms "$2" zones-of-qemu 3000 >/scratch/differences
    [ $? = 1 ] && tail -n 20 /scratch/differences && grep -q "$1" /scratch/differences &&
        tail -n 5 /scratch/differences | grep 'verdict: fail'
}
check qemu-zones-are-there until_true qemu_is_there
check qemu-zones-conform conforms /dev/ng0n1 zones-of-qemu
check qemu-areas-conform conforms /dev/ng0n3 zones-of-qemu
check qemu-keeps-a-refused-extension finds ReportExtended /dev/ng0n2
check qemu-opens-areas-it-has-not finds OpenWithArea /dev/ng0n4
