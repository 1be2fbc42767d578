#!/bin/sh
# Pairs of fio and ocssd on the same file with the same cells, one after the other, in alternating order.
# Usage: run.sh OCSSD FILE PAIRS SECONDS [CELL...] > pairs.csv
# FILE is made if it is not there; it needs 1 GiB. A CELL is "rw bs depth", as "randread 4k 32"; without any, those below.
# FIO_FLAGS go to fio besides. Needs fio and jq. Use a release build of ocssd, and a machine that does
# nothing else: the load is in the rows.
set -eu
ocssd=$1 file=$2 pairs=$3 seconds=$4
shift 4
# Writes last: they change what lies below the file.
[ $# -gt 0 ] || set -- "randread 4k 1" "randread 4k 4" "randread 4k 16" "randread 4k 32" "randread 4k 128" "randread 128k 1" \
  "randread 128k 8" "read 128k 32" "null 4k 32" "randrw70 4k 16" "randwrite 4k 1" "randwrite 4k 32"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -e "$file" ] || fio --name=make --filename="$file" --rw=write --bs=1m --iodepth=8 --ioengine=io_uring --direct=1 \
  --size=1g > "$work/make"

# All directions together: I/Os each second, latencies weighted by I/Os (percentiles of the direction with more of them), and
# processor time for each I/O in nanoseconds, as the program counts its own thread.
of_job='.jobs[-1] | .read as $r | .write as $w | ($r.total_ios + $w.total_ios) as $ios
  | (if $r.total_ios >= $w.total_ios then $r else $w end) as $side
  | [ $r.iops + $w.iops, ($r.lat_ns.mean * $r.total_ios + $w.lat_ns.mean * $w.total_ios) / $ios,
      $side.lat_ns.percentile["50.000000"], $side.lat_ns.percentile["99.000000"], $ios,
      (.usr_cpu + .sys_cpu) * 1e7 / ($r.iops + $w.iops) ]'
# What writes use: as much as reads do, or what lies in a cache of the drive differs.
written=1GiB
load() { cut -d ' ' -f 1 /proc/loadavg; }

by_fio() { # pair cell rw bs depth
  where="--filename=$file --ioengine=io_uring --direct=1" rw=$3 mix=
  case $3 in
    null) where="--ioengine=null --size=1g" rw=randread ;;
    randrw*) rw=randrw mix="--rwmixread=${3#randrw} --size=1g" ;;
    *write) mix="--size=1g" ;;
    *) mix="--size=1g" ;;
  esac
  # `ocssd` fills what it writes to before it measures: without that, reads find what earlier cells left in a drive's buffer.
  case $3 in
    *w*) fio --name=fill --filename="$file" --ioengine=io_uring --direct=1 --rw=write --bs=128k --iodepth=32 --size=1g \
      > "$work/fill" ;;
  esac
  # The words of $where, $mix and $FIO_FLAGS are arguments of their own.
  fio --output-format=json+ --name=x $where ${FIO_FLAGS-} $mix --rw="$rw" --bs="$4" --iodepth="$5" --norandommap --time_based \
    --runtime="$seconds" --ramp_time=0.3 --randseed="$1" --lat_percentiles=1 --clat_percentiles=0 --percentile_list=50:99 \
    > "$work/fio.json"
  jq -r "$of_job | [$1, \"$2\", \"fio\"] + . + [$(load)] | @csv" "$work/fio.json"
}

by_ocssd() { # pair cell; a write cell needs --overwrite, which fills first: not part of what is measured
  case $2 in
    # `profile` measures its own ceiling for a moment before anything else; IOPS are all that is kept of it.
    null-*)
      "$ocssd" profile "$file" --cell randread-4k-qd1 --repetitions 1 --time 300ms --seed "$1" --quiet \
        --out "$work/out" > "$work/log" || true
      jq -r "[$1, \"$2\", \"ocssd\", .ocssd.profile.ceiling_iops, 0, 0, 0, 0, 0, $(load)] | @csv" "$work/out/result.json"
      return ;;
    # The schedule spends a tenth before measuring, and with --overwrite up to 45 % on filling and rounds.
    *w*) mode="--overwrite --size $written" time=$((seconds * 2200)) ;;
    *) mode="--size 1GiB" time=$((seconds * 1100 + 50)) ;;
  esac
  # Its linter may fail the numbers of a busy machine, which is no reason to stop here.
  "$ocssd" profile "$file" $mode --cell "$2" --repetitions 1 --time "${time}ms" --seed "$1" --quiet \
    --out "$work/out" > "$work/log" || true
  jq -r "$of_job | [$1, \"$2\", \"ocssd\"] + . + [$(load)] | @csv" "$work/out/result.json"
}

echo pair,cell,by,iops,mean_ns,p50_ns,p99_ns,ios,cpu_ns_per_io,load
pair=1
while [ "$pair" -le "$pairs" ]; do
  for cell; do
    name=$(printf %s "$cell" | sed 's/^\([^ ]*\) \([^ ]*\) /\1-\2-qd/')
    rw=${cell%% *} depth=${cell##* } bs=${cell#* }
    bs=${bs%% *}
    if [ $((pair % 2)) -eq 1 ]; then
      by_fio "$pair" "$name" "$rw" "$bs" "$depth"; by_ocssd "$pair" "$name"
    else
      by_ocssd "$pair" "$name"; by_fio "$pair" "$name" "$rw" "$bs" "$depth"
    fi
  done
  pair=$((pair + 1))
done
