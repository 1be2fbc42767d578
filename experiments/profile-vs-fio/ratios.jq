# Reads pairs.csv (jq -R -s), prints the median ratio of ocssd to fio of each cell, and its least and greatest.
def median: sort | if length % 2 == 1 then .[(length - 1) / 2] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def shown: . * 1000 | round / 1000;
[split("\n")[1:][] | select(length > 0) | split(",") | map(gsub("\""; ""))
  | { pair: .[0], cell: .[1], by: .[2], numbers: (.[3:7] | map(tonumber)) }]
| group_by(.cell)[]
| .[0].cell as $cell
| [group_by(.pair)[] | (map(select(.by == "ocssd"))[0].numbers) as $o | (map(select(.by == "fio"))[0].numbers) as $f
    | [range(4)] | map($o[.] / $f[.])]
| . as $rows
| [["IOPS", 0], ["mean", 1], ["p50", 2], ["p99", 3]][]
| .[0] as $name | .[1] as $column
| ($rows | map(.[$column])) as $all
| [$cell, $name, ($all | median | shown), ($all | min | shown), ($all | max | shown)] | @csv
