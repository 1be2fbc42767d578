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
# Kernels from 6.11 on show what is written as a whole or not at all: a mebibyte where a request is a transaction, and of blocks
# that promise nothing no more than the block itself.
transactions=/sys/block/$(block_of 4)/queue
if [ -e "$transactions/atomic_write_unit_max_bytes" ]; then
    check transactions-are-atomic grep -qx 1048576 "$transactions/atomic_write_max_bytes"
    check transactions-are-atomic-for-files grep -qx 1048576 "$transactions/atomic_write_unit_max_bytes"
    check blocks-are-not [ "$(cat "/sys/block/$blocks/queue/atomic_write_max_bytes")" -le 4096 ]
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
