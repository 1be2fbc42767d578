# Reads pairs.csv (jq -r -R -s) and prints, for each cell and number, the median ratio of ocssd to fio over the pairs, its least and
# greatest, how far fio's own runs are apart, the pairs, and whether the median is within 5 %. Processor time and the generators
# alone (null) are not judged: less time, and more IOPS, are better. A percentile that too few samples carry is left out.
def median: sort | if length % 2 == 1 then .[(length - 1) / 2] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def shown: . * 1000 | round / 1000;
(["cell", "number", "median", "least", "greatest", "fio_apart", "pairs", "within_5_percent"] | @csv),
([split("\n")[1:][] | select(length > 0) | split(",") | map(gsub("\""; ""))
  | { pair: .[0], cell: .[1], by: .[2], numbers: (.[3:] | map(if . == "" then 0 else tonumber end)) }]
| group_by(.cell)[]
| .[0].cell as $cell
| [group_by(.pair)[] | { o: (map(select(.by == "ocssd"))[0].numbers), f: (map(select(.by == "fio"))[0].numbers) }
    | select(.o and .f)] as $pairs
| [["IOPS", 0], ["mean", 1], ["p50", 2], ["p99", 3], ["processor time", 5]][]
| .[0] as $name | .[1] as $column
| [$pairs[] | select(.f[$column] > 0 and .o[$column] > 0)] as $known
| select($known | length > 0)
| ($known | map(.o[$column] / .f[$column])) as $all
| ($known | map(.f[$column])) as $fio
| ($all | median) as $middle
| (if $name == "processor time" or ($cell | startswith("null")) then "-"
   elif $middle >= 0.95 and $middle <= 1.05 then "yes" else "no" end) as $verdict
| [$cell, $name, ($middle | shown), ($all | min | shown), ($all | max | shown), (($fio | max) / ($fio | min) - 1 | shown),
   ($all | length), $verdict] | @csv)
