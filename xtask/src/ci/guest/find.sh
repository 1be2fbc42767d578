# Which devices are which: newer kernels number them in any order.
block_of() {
    for place in /sys/block/nvme*n*; do
        [ "$(cat "$place/nsid" 2>/dev/null)" = "$1" ] && [ -b "/dev/${place##*/}" ] && echo "${place##*/}" && return
    done
    return 1
}
zones_are_there() { zoned=$(block_of 1) && blocks=$(block_of 2); }
keys_are_there() {
    for keys in /dev/ng*n*; do nvme get-ns-id "$keys" | grep -q ':3$' && return; done
    return 1
}
# fails COMMAND...: the command must not succeed.
fails() { ! "$@"; }
