# Zones with descriptor extensions and with random write areas, by the tools of Linux: /dev/... of `$zoned`, whose zones are
# empty, before and after. An area has 32 blocks of 4 KiB, which are committed by eight.
begin_of() { echo $(($1 * zone_sectors / 8)); }
second=$(begin_of 1)
third=$(begin_of 2)
# one_zone ZONE MORE...: the report of that zone.
one_zone() {
    from=$(begin_of "$1")
    shift
    nvme zns report-zones "$zoned" --start-lba="$from" --descs=1 "$@"
}
# zone_is ZONE TEXT: the report of that zone says so.
zone_is() { one_zone "$1" | grep "^SLBA" | grep -qi -- "$2"; }
# has_bytes ZONE FILE: its extension, which ends the report, is that.
has_bytes() {
    one_zone "$1" --extended --output-format=binary | tail -c 64 >/scratch/extension
    cmp /scratch/extension "$2"
}
describes() { nvme zns set-zone-desc "$zoned" --start-lba="$(begin_of "$1")" --data="$2"; }
# refused_with STATUS COMMAND...: the command is refused with the status.
refused_with() {
    status=$1
    shift
    "$@" >/scratch/said 2>&1 && return 1
    cat /scratch/said && grep -qi "$status" /scratch/said
}

# An extension is the host's bytes, but for the hint that its zone be as wide as one unit.
{ printf 'ZwDt\001\000\000\000' && head -c 56 /scratch/data; } >/scratch/hint
head -c 64 /dev/zero >/scratch/nothing
check zones-describe describes 1 /scratch/hint
check zones-described-is-closed zone_is 1 'state: 0x40.*attrs: 0x80'
check zones-described-is-active are 1 cl
check zones-describe-again-is-refused refused_with 'invalid zone state' describes 1 /scratch/nothing
check zones-extension has_bytes 1 /scratch/hint
check zones-others-have-none has_bytes 2 /scratch/nothing
# As many as may be active, and no more.
active=$(cat "$queue/max_active_zones")
describes_many() {
    number=2
    while [ "$number" -le "$1" ]; do
        describes "$number" /scratch/hint || return
        number=$((number + 1))
    done
}
check zones-describe-many describes_many "$active"
check zones-many-are-active are "$active" cl
check zones-describe-no-more refused_with 'too many active' describes $((active + 1)) /scratch/hint
check zones-one-more-is-empty zone_is $((active + 1)) 'state: 0x10.*attrs: 0 '
check zones-described-take-writes nvme write "$zoned" -s "$second" -c 3 -z 16384 -d /scratch/four
check zones-described-read reads "$second" 3 16384 /scratch/four
check zones-extension-stays has_bytes 1 /scratch/hint
check zones-described-finish nvme zns finish-zone "$zoned" --start-lba="$second"
check zones-extension-stays-when-full has_bytes 1 /scratch/hint
check zones-described-reset nvme zns reset-zone "$zoned" --select-all
check zones-extension-is-gone has_bytes 1 /scratch/nothing
check zones-described-are-empty are "$zones" em

# A random write area: blocks in any order, and again, without moving the pointer.
head -c 131072 /scratch/data >/scratch/area
tail -c 16384 /scratch/data >/scratch/later
nvme zns id-ns "$zoned" >/scratch/id
check areas-are-there grep -Eq 'zrwasz *: *32' /scratch/id
check areas-granule grep -Eq 'zrwafg *: *8' /scratch/id
opens() { nvme zns open-zone "$zoned" --start-lba="$(begin_of "$1")" "$2"; }
# puts BLOCK COUNT FILE: so many blocks of the file to a block of the second zone.
puts() { nvme write "$zoned" -s $((second + $1)) -c $(($2 - 1)) -z $(($2 * 4096)) -d "$3"; }
gets() { reads $((second + $1)) $(($2 - 1)) $(($2 * 4096)) "$3"; }
commits() { nvme zns zrwa-flush-zone "$zoned" --lba=$((second + $1)); }
pointer_is() { zone_is 1 "wp: $(printf '0x%x' $((second + $1))) "; }
check areas-open opens 1 --zrwaa
check areas-is-open zone_is 1 'state: 0x30.*attrs: 0x8 '
check areas-write-behind puts 8 4 /scratch/four
check areas-write-before puts 4 4 /scratch/four
check areas-write-again puts 8 4 /scratch/later
check areas-pointer-stays pointer_is 0
check areas-read gets 4 4 /scratch/four
check areas-read-what-was-written-again gets 8 4 /scratch/later
check areas-take-no-appends fails nvme zns zone-append "$zoned" -s "$second" -z 4096 -d /scratch/one
check areas-not-beyond-two refused_with 'invalid write' puts 62 4 /scratch/four
check areas-commit commits 15
check areas-pointer-moves pointer_is 16
check areas-commit-half-a-granule refused_with 'invalid field' commits 19
check areas-commit-beyond refused_with 'invalid field' commits 55
check areas-not-before-the-pointer refused_with 'invalid write' puts 8 4 /scratch/four
head -c 16384 /dev/zero >/scratch/zeroes
check areas-unwritten-reads-as-zeroes gets 12 4 /scratch/zeroes
# A write behind the area commits by itself: up to block 52 the area reaches once 24 blocks are committed.
check areas-commit-by-writing puts 49 4 /scratch/later
check areas-pointer-follows pointer_is 24
check areas-flush nvme flush "$zoned" -n 1
check areas-stay-when-closed nvme zns close-zone "$zoned" --start-lba="$second"
check areas-closed zone_is 1 'state: 0x40.*attrs: 0x8 '
check areas-closed-takes-writes puts 24 32 /scratch/area
check areas-closed-is-open zone_is 1 'state: 0x20.*attrs: 0x8 '
check areas-read-all gets 24 32 /scratch/area
# A zone whose pointer lies within a granule gets none, and no zone does when all areas are in use.
check areas-third-zone nvme write "$zoned" -s "$third" -c 3 -z 16384 -d /scratch/four
check areas-not-within-a-granule refused_with 'zrwa resources' opens 2 --zrwaa
check areas-opens-without opens 2
check areas-reset nvme zns reset-zone "$zoned" --select-all
check areas-are-gone zone_is 1 'state: 0x10.*attrs: 0 '
areas=$(sed -n 's/^numzrwa *: *//p' /scratch/id)
areas=$((areas))
takes_all() {
    number=1
    while [ "$number" -le "$areas" ]; do
        opens "$number" --zrwaa && nvme zns close-zone "$zoned" --start-lba="$(begin_of $number)" || return
        number=$((number + 1))
    done
}
check areas-take-all takes_all
check areas-none-is-left refused_with 'zrwa resources' opens $((areas + 1)) --zrwaa
check areas-no-more-is-empty zone_is $((areas + 1)) 'state: 0x10.*attrs: 0 '
check areas-finish-gives-one-back nvme zns finish-zone "$zoned" --start-lba="$second"
check areas-one-is-left opens $((areas + 1)) --zrwaa
check areas-not-with-an-extension refused_with 'invalid field' \
    nvme zns set-zone-desc "$zoned" --start-lba="$(begin_of $((areas + 2)))" --data=/scratch/hint --zrwaa
check areas-reset-at-the-end nvme zns reset-zone "$zoned" --select-all

# No zone changed by itself.
changes_none() { nvme zns changed-zone-list "$zoned" | grep -Eqi 'nrzid *: *0'; }
check zones-none-changed changes_none
check zones-are-empty-at-the-end are "$zones" em
