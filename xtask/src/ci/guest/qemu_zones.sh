# QEMU's own zoned namespaces, which nobody here wrote, under the same requests. One is plain, one has random write areas. Another
# has extensions, and QEMU 7.2 keeps the bytes of an extension that it refuses to set; and another has areas for three zones only,
# and QEMU does not count those of zones that are open already. The comparison has to find both.
for module in $(cat /pci.modules); do insmod "/$module" 2>/dev/null; done
qemu_is_there() { [ -e /dev/ng0n1 ] && [ -e /dev/ng0n4 ] && [ "$(serial_of)" = zones-of-qemu ]; }
# generic_of NSID: its device, which newer kernels number in any order.
generic_of() {
    for generic in /dev/ng0n*; do
        nvme get-ns-id "$generic" | grep -q ":$1\$" && echo "$generic" && return
    done
    return 1
}
# finds WORD DEVICE: the streams end with a difference that is of requests of this kind, and fails for nothing else.
finds() {
    conforms "$2" zones-of-qemu 3000 >/scratch/differences
    [ $? = 1 ] && tail -n 20 /scratch/differences && grep -q "$1" /scratch/differences &&
        tail -n 5 /scratch/differences | grep 'verdict: fail'
}
check qemu-zones-are-there until_true qemu_is_there
check qemu-zones-conform conforms "$(generic_of 1)" zones-of-qemu
check qemu-areas-conform conforms "$(generic_of 3)" zones-of-qemu
check qemu-keeps-a-refused-extension finds ReportExtended "$(generic_of 2)"
check qemu-opens-areas-it-has-not finds OpenWithArea "$(generic_of 4)"
