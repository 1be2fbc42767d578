# What a boot does that ends with a power cut, whatever its drive went through before: `init.sh` reads it, and `turn.sh` with it.
# `tell_kernel` is theirs.

# write_synced CHECK NAME: a file that must be there after a cut. Its content stays in /scratch.
write_synced() {
    dd if=/dev/urandom of="/scratch/$2" bs=64k count=32 2>/dev/null
    check "$1" dd if="/scratch/$2" of="/mnt/$2" bs=64k conv=fsync
    check sync sync
}

# write_until_cut COUNT: writes another, of so many times 64 KiB, again and again until the power is cut.
write_until_cut() {
    tell_kernel
    while :; do dd if=/dev/urandom of=/mnt/noise bs=64k count="$1" conv=fsync; done 2>/dev/null &
    until_true [ -s /mnt/noise ]
    say cut
    wait
}
