# Namespaces of zones (1) and of keys and values (3) beside one of blocks (2), in one controller of a server of its own.
target="-t tcp -a 10.0.2.2 -s $ocssd_zones_port"
ocssd_nqn=$ocssd_zones_nqn
. /find.sh
check zones-connect connect
check zones-are-there until_true zones_are_there
# Two drives at once are two to the kernel, though both were made with the same seed.
block_devices_are() { [ "$(ls /dev/nvme*n* | wc -l)" = "$1" ]; }
check two-drives-connect nvme connect $first_target -n "$first_nqn" $host
check two-drives-have-three-devices until_true block_devices_are 3
check two-drives-are-told-apart sh -c "! dmesg | grep -i 'duplicate IDs'"
check two-drives-disconnect nvme disconnect -n "$first_nqn"
check two-drives-are-one-again until_true block_devices_are 2
. /namespaces.sh
check zones-disconnect leaves
