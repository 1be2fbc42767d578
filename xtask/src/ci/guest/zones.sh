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
# with_atomic FILE BYTES NSID...: the path or device of such a namespace that has these bytes there; of any, without a number.
with_atomic() {
    for place in /sys/block/nvme*n*; do
        [ -n "$3" ] && [ "$(cat "$place/nsid")" != "$3" ] && continue
        grep -qx "$2" "$place/queue/$1" && echo "/dev/${place##*/}" && return
    done
    return 1
}
# There is one.
atomic_is() { with_atomic "$@" >/scratch/said; }
mebibyte_is_there() {
    atomic_is atomic_write_max_bytes 1048576 && atomic_is atomic_write_unit_max_bytes 1048576
}
# writes_atomically DEVICE BYTES BLOCK: one write of so many bytes from a block on, by pwritev2 (328 on x86-64) with RWF_ATOMIC
# (40h), of a device that was opened O_RDWR and O_DIRECT (4002h); fio of Debian 12 cannot. It begins with a page of memory: a
# mebibyte that does not has more pages than Linux puts into one request.
writes_atomically() {
    perl -e 'my ($device, $bytes, $block) = @ARGV;
        sysopen(my $file, $device, 0x4002) or die "it cannot be opened: $!";
        my $data = "\xA5" x ($bytes + 4096);
        my $from = unpack("Q", pack("P", $data));
        my $pages = pack("QQ", $from + -$from % 4096, $bytes);
        my $wrote = syscall(328, fileno($file), $pages, 1, $block * 4096, 0, 0x40);
        $wrote == $bytes or die "pwritev2 gave $wrote: $!\n";' "$@"
}
# was_written DEVICE BYTES BLOCK: and it is there.
was_written() {
    dd if="$1" bs=4096 skip="$3" count=$(($2 / 4096)) iflag=direct >/scratch/atomic &&
        head -c "$2" /dev/zero | tr '\0' '\245' | cmp - /scratch/atomic
}
alone="-t tcp -a 10.0.2.2 -s $ocssd_transactions_port -n $ocssd_transactions_nqn"
if [ -e "/sys/block/$blocks/queue/atomic_write_unit_max_bytes" ]; then
    check transactions-are-atomic atomic_is atomic_write_max_bytes 262144 4
    check transactions-are-atomic-for-files atomic_is atomic_write_unit_max_bytes 262144 4
    check blocks-are-atomic-one-by-one atomic_is atomic_write_max_bytes 4096 2
    check transactions-not-longer fails mebibyte_is_there
    transactions=$(with_atomic atomic_write_max_bytes 262144 4)
    check transactions-take-atomic-writes writes_atomically "$transactions" 262144 64
    check transactions-have-atomic-writes was_written "$transactions" 262144 64
    check transactions-refuse-longer-atomic-writes fails writes_atomically "$transactions" 524288 128
    check transactions-refuse-atomic-writes-across fails writes_atomically "$transactions" 262144 65
    check blocks-refuse-atomic-writes fails writes_atomically "$(with_atomic atomic_write_max_bytes 4096 2)" 8192 0
    check transactions-connect nvme connect $alone $host
    check transactions-alone-are-longer until_true mebibyte_is_there
    transactions=$(with_atomic atomic_write_unit_max_bytes 1048576)
    check transactions-alone-take-a-mebibyte writes_atomically "$transactions" 1048576 256
    check transactions-alone-have-a-mebibyte was_written "$transactions" 1048576 256
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
