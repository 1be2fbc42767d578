#!/bin/sh
# Pairs of fio and ocssd on the same file with the same cells, one after the other, in alternating order.
# Usage: run.sh OCSSD FILE PAIRS SECONDS > pairs.csv      FILE is made if it is not there; it needs 1 GiB. Needs fio and jq.
set -eu
ocssd=$1 file=$2 pairs=$3 seconds=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -e "$file" ] || fio --name=make --filename="$file" --rw=write --bs=1m --iodepth=8 --ioengine=io_uring --direct=1 \
  --size=1g > "$work/make"

# All directions together, as `ocssd` has them: read or write, whichever did anything.
of_job='.jobs[-1] | (if .read.total_ios > 0 then .read else .write end)
  | [.iops, .lat_ns.mean, .lat_ns.percentile["50.000000"], .lat_ns.percentile["99.000000"], .total_ios]'

by_fio() { # pair cell rw bs depth
  fio --output-format=json+ --name=x --filename="$file" --ioengine=io_uring --direct=1 --rw="$3" --bs="$4" --iodepth="$5" \
    --size=1g --norandommap --time_based --runtime="$seconds" --ramp_time=0.3 --randseed="$1" --lat_percentiles=1 \
    --clat_percentiles=0 --percentile_list=50:99 > "$work/fio.json"
  jq -r "$of_job | [\"$1\", \"$2\", \"fio\"] + . | @csv" "$work/fio.json"
}

by_ocssd() { # pair cell; a write cell needs --overwrite, which fills first: not part of what is measured
  # The schedule spends a tenth before measuring, and with --overwrite up to 45 % on filling and rounds.
  case $2 in
    *write*) mode=--overwrite time=$((seconds * 2200)) ;;
    *) mode="" time=$((seconds * 1100 + 50)) ;;
  esac
  # Its linter may fail the numbers of a busy machine, which is no reason to stop here.
  "$ocssd" profile "$file" $mode --cell "$2" --repetitions 1 --time "${time}ms" --seed "$1" --quiet \
    --out "$work/out" > "$work/log" || true
  jq -r "$of_job | [\"$1\", \"$2\", \"ocssd\"] + . | @csv" "$work/out/result.json"
}

echo pair,cell,by,iops,mean_ns,p50_ns,p99_ns,ios
pair=1
while [ "$pair" -le "$pairs" ]; do
  for cell in "randread 4k 1" "randread 4k 32" "randread 128k 1" "read 128k 32" "randwrite 4k 32"; do
    set -- $cell
    name="$1-$2-qd$3"
    if [ $((pair % 2)) -eq 1 ]; then
      by_fio "$pair" "$name" "$1" "$2" "$3"; by_ocssd "$pair" "$name"
    else
      by_ocssd "$pair" "$name"; by_fio "$pair" "$name" "$1" "$2" "$3"
    fi
  done
  pair=$((pair + 1))
done
