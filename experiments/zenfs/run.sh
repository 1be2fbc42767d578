#!/bin/bash
# One store under Debian's db_bench, on the wall clock, four processes one after the other; prints what they print.
#
#   run.sh NAME zenfs|lightlsm|table-block TARGET KEYS READS
#
# OCSSD, LIBRARIES (a folder with libocssd.so and libocssd_rocksdb.so) and ZENFS (one with libzenfs.so, zenfs and libzbd-ocssd.so,
# made as README.md says) name what is used. Images lie in /dev/shm/zenfs.
set -eu
echo "load $(cut -d' ' -f1 /proc/loadavg)"
name=$1 kind=$2 target=$3 keys=$4 reads=$5
folder=/dev/shm/zenfs
image=$folder/$name.ocssd
device=../..$folder/device
mkdir -p $folder/device/queue
# ZenFS looks here for the scheduler that zoned devices of Linux need.
echo '[mq-deadline] none' >$folder/device/queue/scheduler
rm -rf "$image"* $folder/aux

drive="chunks_per_pu=48 sectors_per_chunk=384"
case $kind in
zenfs)
    settings=$(for setting in $drive; do printf ' --set %s' "$setting"; done)
    # shellcheck disable=SC2086
    "$OCSSD" format "$image" --drive cidr20 $settings >/dev/null
    export ZBD_DRIVE="$image" ZBD_TARGET="$target" LD_LIBRARY_PATH="$ZENFS:$LIBRARIES"
    preload="$ZENFS/libzbd-ocssd.so $ZENFS/libzenfs.so"
    LD_PRELOAD="$ZENFS/libzbd-ocssd.so" "$ZENFS/zenfs" mkfs --zbd="$device" --aux_path=$folder/aux --force --finish_threshold=0
    store=--fs_uri=zenfs://dev:$device
    ;;
*)
    settings=$(for setting in $drive; do printf ';set.%s' "$setting"; done)
    options=$(echo "$target" | tr ':,' ';;')
    export OCSSD_NOTES=1
    preload=$LIBRARIES/libocssd_rocksdb.so
    store="--fs_uri=lightlsm://drive=$image;create=cidr20$settings;clock=wall;target=$options"
    ;;
esac

run() {
    echo "== $*"
    # Processor seconds go to standard error: keep it with the rest, as collect.py reads both.
    time env LD_PRELOAD="$preload" timeout -k 5 300 db_bench "$store" --db=/db --key_size=16 --value_size=1000 --num="$keys" \
        --write_buffer_size=4194304 --target_file_size_base=4194304 --max_bytes_for_level_base=16777216 \
        --max_background_jobs=4 --compression_type=none --cache_size=1048576 --histogram=1 --seed=1 --open_files=-1 \
        --bloom_bits=10 --compaction_readahead_size=131072 "$@"
}
run --benchmarks=fillrandom,stats
run --use_existing_db=1 --benchmarks=overwrite,waitforcompaction,stats
run --use_existing_db=1 --benchmarks=readwhilewriting --threads=2 --reads="$reads" --benchmark_write_rate_limit=20000000
run --use_existing_db=1 --benchmarks=readrandom,levelstats --reads="$reads"
echo "== consistency"
LD_PRELOAD="$preload" ldb "$store" --db=/db checkconsistency
if [ "$kind" = zenfs ]; then LD_PRELOAD="$ZENFS/libzbd-ocssd.so" "$ZENFS/zenfs" df --zbd="$device"; fi
rm -rf "$image"* $folder/aux
