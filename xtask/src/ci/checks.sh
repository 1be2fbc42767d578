# What every guest of the tests begins with: file systems of the kernel, words of its command line, and checks that are said
# on the console. `init.sh` reads it first.
/bin/busybox mkdir -p /bin /proc /sys /dev /mnt /scratch /run /tmp
/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/sbin:/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /scratch
cd /scratch || exit
for word in $(cat /proc/cmdline); do case "$word" in ocssd_*=*) export "${word?}" ;; esac; done

say() { echo "@$*"; }
# check NAME COMMAND...: the command must succeed.
check() {
    name=$1
    shift
    if "$@" >/scratch/out 2>&1; then say "ok $name"; else
        say "fail $name"
        cat /scratch/out
        dmesg | tail -n 60
        # What follows would fail too.
        poweroff -f
    fi
}
# until_true COMMAND...: tries for half a minute.
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -gt 150 ] && return 1
        usleep 200000
    done
}
