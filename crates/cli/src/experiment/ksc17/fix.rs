//! The write path without its bottleneck, beside the one pblk had.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::point::{Cell, Factor};
use ocssd_report::ksc::{self, BUFFERS_MIB, Grid, Pattern, THREADS};
use ocssd_report::{Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Verdict};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "ksc17-fix",
    aliases: &[],
    title: "The write path without its bottleneck",
    source: "KSC 2017, future work; the curve before is its table 3",
    claim: "KSC'17 leaves the bottleneck of the write path as future work. A changed write path keeps the throughput of 18 threads \
            at 72, with 32 MiB too, and is no slower anywhere else.",
    method: super::METHOD_FIX,
    paper: include_str!("../../../../../experiments/ksc17-t3/paper.csv"),
    run,
    report,
    why,
};

const PATHS: [Factor; 3] = [Factor::Baseline, Factor::FairFourWriters, Factor::Improved];
/// The improved mode refuses buffers that the drive's read window does not fit.
const IMPROVED_MIB: u32 = 128;

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["pattern", "buffer_mib", "threads", "factor"]);
    let threads: &[u32] = lab.size.pick(&[18, 36], &THREADS);
    let buffers: &[u32] = lab.size.pick(&[32, 128], &BUFFERS_MIB);
    let patterns: &[Pattern] = lab.size.pick(&Pattern::ALL[1..], &Pattern::ALL);
    let mut cells = Vec::new();
    for factor in PATHS {
        for &buffer_mib in buffers.iter().filter(|&&mib| factor != Factor::Improved || mib >= IMPROVED_MIB) {
            cells.extend(threads.iter().map(|&threads| Cell { buffer_mib, threads, factor, reads: false }));
        }
    }
    lab.expect(cells.len() * patterns.len());
    for cell in cells {
        for &pattern in patterns {
            let Cell { buffer_mib, threads, factor, .. } = cell;
            lab.point(&format!("{}, {} {buffer_mib} MiB, {threads} threads", factor.name(), pattern.word()));
            let mut world = cell.world()?;
            cell.prime(&mut world, lab.seed)?;
            let (rate, note) = cell.measure(&mut world, pattern, false, lab.size, lab.seed)?;
            let keys = [pattern.word(), &buffer_mib.to_string(), &threads.to_string(), factor.name()];
            data.push(&keys, rate, "MB/s", &note);
        }
    }
    Ok(data)
}

/// The cells of one write path.
fn grid(ours: &PaperTable, factor: &str) -> anyhow::Result<Grid> {
    let mut grid = Grid::default();
    for row in ours.select(&[("factor", factor)]) {
        let key = |name| ours.key(row, name);
        let pattern = if key("pattern") == "random" { Pattern::Random } else { Pattern::Sequential };
        let cell =
            ksc::Cell { pattern, buffer_mib: key("buffer_mib").parse()?, threads: key("threads").parse()? };
        grid.insert(cell, row.value)?;
    }
    Ok(grid)
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let threads = Axis::log2("threads", "").ticks(&THREADS.map(f64::from));
    let mut chart = ChartSpec::new("Writes before and after", threads, Axis::linear("throughput", "MB/s"))
        .subtitle("baseline: pblk as it was. fair four writers: the same with a queue and four writers. improved: the improved mode.")
        .source("Paper (baseline): KSC'17, table 3, digitised, error 11 MB/s.");
    for pattern in Pattern::ALL {
        for buffer in BUFFERS_MIB {
            let mut panel = Panel::new(&format!("{}, {buffer} MiB", pattern.word()));
            let curve = |grid: &Grid| -> Vec<Point> {
                let at = |threads| grid.get(ksc::Cell { pattern, buffer_mib: buffer, threads });
                THREADS.into_iter().filter_map(|t| Some(Point::new(f64::from(t), at(t)?))).collect()
            };
            let mut measured = 0;
            for factor in PATHS {
                let points = curve(&grid(&numbers.ours, factor.name())?);
                measured += points.len();
                if !points.is_empty() {
                    panel = panel.series(Series::new(&factor.name().replace('_', " "), Role::Ours, points));
                }
            }
            if measured > 0 {
                let paper = curve(&Grid::from_paper(&numbers.paper)?);
                chart = chart.panel(panel.series(Series::new("baseline", Role::Paper, paper)));
            }
        }
    }
    Ok(report.verdicts(verdicts(&numbers.ours)?).chart(chart))
}

fn verdicts(ours: &PaperTable) -> anyhow::Result<Vec<Verdict>> {
    let before = grid(ours, "baseline")?;
    let after = grid(ours, "fair_four_writers")?;
    let rename = |mut verdict: Verdict, id: &str, when: &str| {
        id.clone_into(&mut verdict.id);
        verdict.claim = format!("{when}: {}", verdict.claim);
        verdict
    };
    let mut verdicts = vec![
        rename(ksc::w3(&before), "W3 before", "With pblk's write path"),
        rename(ksc::w3(&after), "W3 after", "With the changed write path (should fail)"),
    ];
    let claim = "The changed write path is no slower anywhere (2 %).";
    let mut worst: Option<(String, f64)> = None;
    for row in ours.select(&[("factor", "fair_four_writers")]) {
        let keys: Vec<(&str, &str)> =
            ["pattern", "buffer_mib", "threads"].map(|name| (name, ours.key(row, name))).to_vec();
        let Some(base) = ours.value(&[keys.as_slice(), &[("factor", "baseline")]].concat()) else { continue };
        let change = (row.value / base - 1.0) * 100.0;
        if worst.as_ref().is_none_or(|(_, least)| change < *least) {
            worst = Some((format!("{} {} MiB, {} threads", keys[0].1, keys[1].1, keys[2].1), change));
        }
    }
    verdicts.push(match worst {
        Some((place, change)) => {
            Verdict::decided("FX1", claim, change >= -2.0, format!("worst: {change:+.1} % at {place}"))
        }
        None => Verdict::not_evaluated("FX1", claim, "nothing was measured"),
    });
    Ok(verdicts)
}

fn why(_ours: &PaperTable, _row: &PaperRow, percent: f64) -> Option<String> {
    (percent < 0.0).then(|| super::STARVED_WRITER.to_owned())
}
