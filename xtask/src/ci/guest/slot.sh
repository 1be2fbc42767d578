#!/bin/busybox sh
# The first program of a guest with targets in a PCI slot: does all checks, and says what came of each on the console.
. /checks.sh
. /find.sh
for module in $(cat /modules); do insmod "/$module" 2>/dev/null; done
dd if=/dev/urandom of=/scratch/data bs=64k count=32 2>/dev/null
transport_is() { grep -qx "$1" /sys/class/nvme/nvme0/transport; }
check slot-controller until_true transport_is pcie
check slot-zones-are-there until_true zones_are_there
check slot-model grep -q 'ocssd NVMe target' /sys/class/nvme/nvme0/model
check slot-smart nvme smart-log /dev/nvme0
check slot-error-log nvme error-log /dev/nvme0
check slot-physical-block grep -qx 4096 "/sys/block/$blocks/queue/physical_block_size"
of_blocks=/dev/$blocks
. /namespaces.sh

# fio writes blocks with many commands at once, and reads what it wrote, before and after a reset of the controller.
runs_fio() {
    fio --name=blocks --filename="$of_blocks" --rw=randwrite --bs=4k --size=8m --ioengine=libaio --iodepth=32 --direct=1 \
        --verify=crc32c --verify_fatal=1 "$@"
}
check slot-fio runs_fio
check slot-reset nvme reset /dev/nvme0
check slot-fio-verifies-again runs_fio --verify_only
check slot-large-blocks dd if="$of_blocks" of=/dev/null bs=1M count=8 iflag=direct
check slot-no-complaint sh -c "! dmesg | grep -i 'nvme.*\\(timeout\\|abort\\|failed\\)'"
say end
poweroff -f
