//! A report over the paper's own numbers, with invented ones in the place of ours: only for looking at and testing.

use crate::tables::paper;
use ocssd_report::{Axis, ChartSpec, Panel, Point, Report, Role, Series, Style, Verdict, ksc};

/// Lines over a logarithmic axis, two panels, eight series a panel, annotations, a rule.
pub fn ksc_writes() -> ChartSpec {
    let table = paper("ksc17-t3");
    let grid = ksc::Grid::from_paper(&table).expect("the table is a grid");
    let threads = ksc::THREADS.map(f64::from);
    let x = Axis::log2("threads", "").ticks(&threads);
    let mut chart =
        ChartSpec::new("Write throughput by threads and write buffer", x, Axis::linear("throughput", "MB/s"))
            .subtitle("Invented numbers in the place of ours. One line per size of the write buffer.")
            .source("Paper: KSC'17, table 3, digitised, error 11 MB/s. <not ours & not \"real\">");
    for pattern in ksc::Pattern::ALL {
        let mut panel = Panel::new(pattern.word()).rule(2240.0, "limit of 8 channels, 2240 MB/s");
        for buffer in ksc::BUFFERS_MIB {
            let keys = [("pattern", pattern.word()), ("buffer_mib", &buffer.to_string())];
            let points = table.points(&keys, "threads").expect("threads are numbers");
            let invented = points
                .iter()
                .map(|point| Point::new(point.x, (point.y * 0.93).round()).noted("invented"))
                .collect();
            let name = format!("{buffer} MiB");
            panel = panel.series(Series::new(&name, Role::Ours, invented));
            panel = panel.series(Series::new(&name, Role::Paper, points));
        }
        panel = panel.verdict(&ksc::w3(&grid)).verdict(&ksc::w2(&ksc::Grid::default()));
        chart = chart.panel(panel.note("every run three times"));
    }
    chart
}

/// Bars by name over a logarithmic axis.
pub fn fast_bars() -> ChartSpec {
    let table = paper("fast17-f8");
    let names = ["p95", "p99", "p99.5", "p99.9"];
    let x = Axis::categories("percentile of 4 KiB reads", &names);
    let mut chart =
        ChartSpec::new("Read latency beside writes", x, Axis::log10("latency", "us").range(50.0, 5000.0))
            .source("Paper: FAST'17, figure 8, digitised, error 2 us.");
    for reads in ["100", "80", "50"] {
        let mut panel = Panel::new(&format!("{reads} % reads"));
        for device in ["ocssd", "nvme"] {
            for (role, factor) in [(Role::Ours, 1.1), (Role::Paper, 1.0)] {
                let point = |(index, name): (u32, &&str)| {
                    let keys = [("device", device), ("reads_percent", reads), ("percentile", &name[1..])];
                    let value = (table.value(&keys)? * factor).round();
                    Some(Point::new(f64::from(index), value).between(value - 2.0, value + 2.0))
                };
                let points = (0..).zip(&names).filter_map(point).collect();
                panel = panel.series(Series::new(device, role, points).style(Style::Bars));
            }
        }
        chart = chart.panel(panel);
    }
    chart
}

/// Many lines over two logarithmic axes; the second panel has an axis of its own.
pub fn fast_reads() -> ChartSpec {
    let table = paper("fast17-f4");
    let sizes = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
    let x = Axis::log2("block size", "KiB").ticks(&sizes);
    let mut chart =
        ChartSpec::new("Random reads by block size and depth", x, Axis::log10("throughput", "GB/s"))
            .source("Paper: FAST'17, figure 4, digitised, error 1 %.");
    for metric in ["throughput", "latency_mean"] {
        let mut panel = Panel::new(metric);
        panel.y = (metric == "latency_mean").then(|| Axis::log10("mean latency", "ms"));
        for depth in table.distinct("queue_depth") {
            let keys = [("metric", metric), ("pattern", "random_read"), ("queue_depth", depth)];
            let points = table.points(&keys, "block_kib").expect("sizes are numbers");
            let ours =
                points.iter().map(|point| Point::new(point.x, (point.y * 120.0).round() / 100.0)).collect();
            let name = format!("depth {depth}");
            panel = panel.series(Series::new(&name, Role::Paper, points));
            panel = panel.series(Series::new(&name, Role::Ours, ours));
        }
        chart = chart.panel(panel);
    }
    chart
}

/// Steps and lone markers, small numbers, many points.
pub fn steps() -> ChartSpec {
    let step = |index: u32| {
        Point::new(f64::from(index), (1000.0 - 1000.0 * 0.99_f64.powf(f64::from(index))).round() / 1000.0)
    };
    let many =
        Series::new("share of reads done", Role::Ours, (0..300).map(step).collect()).style(Style::Steps);
    let few = (0..6).map(|index| step(index * 60)).collect();
    let few = Series::new("share of reads done", Role::Paper, few).style(Style::Markers);
    let panel = Panel::new("").series(many).series(few);
    ChartSpec::new("Steps", Axis::linear("latency", "us"), Axis::linear("share", "")).panel(panel)
}

/// Everything together.
pub fn report() -> Report {
    let table = paper("ksc17-t3");
    let grid = ksc::Grid::from_paper(&table).expect("the table is a grid");
    let mut verdicts = ksc::judge_writes(&grid);
    verdicts.push(Verdict::decided("X1", "A claim with <b>markup</b> & \"quotes\".", false, "1 < 2"));
    verdicts.push(ksc::r2(&ksc::Grid::default()));
    Report::new("ksc17-t3", "Write throughput against write buffer and threads")
        .claim("More threads do not make writes faster.\n\nA buffer of 32 MiB makes them slower.")
        .method("Eight jobs of fio, three times each, medians shown.")
        .fact("commit", "0123456789abcdef")
        .fact("command", "ocssd experiment run ksc17-t3 --seed 1 </script><script>alert(1)</script>")
        .verdicts(verdicts)
        .chart(ksc_writes())
        .chart(fast_bars())
        .chart(fast_reads())
        .chart(steps())
        .section("What falls short", "These numbers are invented.")
}
