#!/bin/busybox sh
# The guest's first program: loads modules, and goes on from the disk.
. /checks.sh
mkdir -p /root
for module in $(cat /modules); do insmod "/$module" 2>/dev/null; done
check boot-disk until_true [ -b /dev/vda ]
check mount-boot-disk mount -t ext4 /dev/vda /root
cd / || exit
exec switch_root /root /init
