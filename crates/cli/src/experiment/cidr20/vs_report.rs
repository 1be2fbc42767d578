//! LightLSM beside tables on block targets: pictures, verdicts and reasons.
//!
//! Deliberately not here: the runs (`vs`).

use super::super::catalogue::Numbers;
use ocssd_report::{
    Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Style, Verdict,
};

const DATABASES: [&str; 3] = ["small", "large", "wide"];
const ON_BLOCKS: [&str; 3] = ["pblk", "block_ssd", "ox-block"];
/// Below the pictures.
const LABELS: [&str; 7] = ["H", "V", "HR", "VR", "pblk", "SSD", "OX"];
const TARGETS: [&str; 7] = ["H", "V", "HR", "VR", "pblk", "block_ssd", "ox-block"];

fn value(ours: &PaperTable, target: &str, database: &str, metric: &str) -> Option<f64> {
    ours.value(&[("target", target), ("database", database), ("metric", metric)])
}

/// Fill is why a drive that resets closed chunks only writes more than the tree.
pub fn why(ours: &PaperTable, row: &PaperRow, _: f64) -> Option<String> {
    let [target, database, _] = row.keys.as_slice() else { return None };
    let of = |metric| value(ours, target, database, metric);
    let (filled, media, tree) = (of("filled")?, of("media")?, of("tree")?);
    let excess = media - tree;
    (filled > 0.8 * excess).then(|| {
        format!("fill behind deleted tables, whose chunks the drive resets once they are closed: x{filled:.2} of x{excess:.2} more")
    })
}

/// Adds everything.
pub fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let rates = chart(ours, "Operations a second", Axis::linear("rate", "IOPS"), &["overwrite", "gets"])
        .subtitle("LightLSM horizontal and vertical, R: the drive resets open chunks; tables on pblk, block_ssd, ox-block. overwrite: puts of 4 threads. gets: of 4 threads beside 10 MiB/s of puts.");
    let reads =
        chart(ours, "Gets beside puts", Axis::log10("latency", "us"), &["get_p50", "get_p99", "get_p999"]);
    let bytes =
        chart(ours, "Bytes written for each byte put", Axis::linear("written", "x"), &["tree", "media"])
            .subtitle("tree: flushes and compactions. media: all programs.");
    let below = chart(
        ours,
        "Written below the tree",
        Axis::linear("of what the tree writes", "%"),
        &["garbage", "rest"],
    )
    .subtitle(
        "garbage: fill behind deleted tables, and copies of garbage collection. rest: metadata and padding.",
    );
    let space = chart(ours, "Space of the media", Axis::linear("part", "%"), &["capacity", "unfilled"])
        .subtitle("capacity: promised to tables. unfilled: of the chunks or extents that tables have.");
    Ok(report.verdicts(verdicts(ours)).chart(rates).chart(reads).chart(bytes).chart(below).chart(space))
}

/// A panel for each metric, with bars of each database at every target.
fn chart(ours: &PaperTable, title: &str, axis: Axis, metrics: &[&str]) -> ChartSpec {
    let mut chart = ChartSpec::new(title, Axis::categories("target", &LABELS), axis);
    for &metric in metrics {
        let mut panel = Panel::new(metric);
        for database in DATABASES {
            let points = (0_u32..).zip(TARGETS).filter_map(|(x, target)| {
                Some(Point::new(f64::from(x), value(ours, target, database, metric)?))
            });
            let points: Vec<Point> = points.collect();
            if !points.is_empty() {
                panel = panel.series(Series::new(database, Role::Ours, points).style(Style::Bars));
            }
        }
        chart = chart.panel(panel);
    }
    chart
}

/// A metric of some targets, judged in every database that was run.
struct Claim<'a> {
    id: &'a str,
    text: &'a str,
    metric: &'a str,
    targets: &'a [&'a str],
    digits: usize,
}

impl Claim<'_> {
    /// Holds if it does in each of these databases.
    fn judge(&self, ours: &PaperTable, databases: &[&str], holds: impl Fn(&[f64]) -> bool) -> Verdict {
        let digits = self.digits;
        let (mut all, mut told) = (true, Vec::new());
        for database in databases {
            let found: Vec<f64> =
                self.targets.iter().filter_map(|target| value(ours, target, database, self.metric)).collect();
            if found.len() < self.targets.len() {
                continue;
            }
            all &= holds(&found);
            let words: Vec<String> = self
                .targets
                .iter()
                .zip(&found)
                .map(|(target, found)| format!("{target} {found:.digits$}"))
                .collect();
            told.push(format!("{database}: {}", words.join(", ")));
        }
        if told.is_empty() {
            return Verdict::not_evaluated(self.id, self.text, "no such database was run");
        }
        Verdict::decided(self.id, self.text, all, told.join("; "))
    }
}

fn least(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(0.0, f64::max)
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let claim = |id, text, metric, targets, digits| Claim { id, text, metric, targets, digits };
    let raw_and_blocks = &["H", "V", ON_BLOCKS[0], ON_BLOCKS[1], ON_BLOCKS[2]];
    let early = &["HR", "VR", ON_BLOCKS[0], ON_BLOCKS[1], ON_BLOCKS[2]];
    let text = "On a drive that resets open chunks, LightLSM writes at most 5 % more than the tree.";
    let nothing_else = claim("LV1", text, "below", &["HR", "VR"], 3);
    let text = "On the paper's drive, which resets closed chunks only, LightLSM writes no more for the space of deleted tables than any block target (in percent of what the tree writes).";
    let less = claim("LV2", text, "garbage", raw_and_blocks, 1);
    let text = "On a drive that resets open chunks it does.";
    let less_early = claim("LV3", text, "garbage", early, 1);
    let text = "LightLSM, better placement, overwrites at least as fast as the best block target with tables of 64 MiB (divided by 16).";
    let rate = claim("LV4", text, "overwrite", raw_and_blocks, 0);
    let text = "It does with tables that are a chunk of every unit, as the paper's.";
    let rate_wide = claim("LV5", text, "overwrite", raw_and_blocks, 0);
    let text = "p99 of gets beside puts is lower vertically than horizontally.";
    let vertical = claim("LV6", text, "get_p99", &["H", "V"], 0);
    let text =
        "p99 of gets beside puts is lower on LightLSM, better placement, than on the best block target.";
    let gets = claim("LV7", text, "get_p99", raw_and_blocks, 0);
    let text = "LightLSM promises more of the media to tables than any block target.";
    let capacity = claim("LV8", text, "capacity", raw_and_blocks, 1);
    let (tables, all) = (&DATABASES[..2], &DATABASES[..]);
    vec![
        nothing_else.judge(ours, all, |of| most(of) <= 1.05),
        less.judge(ours, all, |of| most(&of[..2]) <= least(&of[2..])),
        less_early.judge(ours, all, |of| most(&of[..2]) <= least(&of[2..])),
        rate.judge(ours, tables, |of| most(&of[..2]) >= most(&of[2..])),
        rate_wide.judge(ours, &DATABASES[2..], |of| most(&of[..2]) >= most(&of[2..])),
        vertical.judge(ours, all, |of| of[1] < of[0]),
        gets.judge(ours, all, |of| least(&of[..2]) < least(&of[2..])),
        capacity.judge(ours, tables, |of| least(&of[..2]) > most(&of[2..])),
    ]
}
