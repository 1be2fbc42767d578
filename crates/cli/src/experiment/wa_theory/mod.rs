//! Write amplification against closed forms and a small independent simulator.

mod point;
mod report;

use super::catalogue::Experiment;
use super::data::Data;
use super::lab::{Lab, Size};
use ocssd_report::{PaperRow, PaperTable};
use point::{Ftl, Skew, measure};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "wa-theory",
    aliases: &[],
    title: "Write amplification against closed forms",
    source: "closed forms of Menon, Robinson, Desnoyers, Xiang and Kurkoski; a small simulator (see README)",
    claim: "Under uniformly random writes an FTL amplifies as theory says, within 3 % of the closed form for its effective \
            spare space. Under skew, a separate stream for collected data is what pays; the choice of victim alone does not.",
    method: "pblk on a drive of 8 units with short chunks (64 sectors), so that lines are many (1 024) and small (about 450 \
             sectors). All blocks are written once in order, then as much again three times as the skew says, then twice \
             more, which is measured: sectors of data, moved data and fill programmed for each sector users wrote. Metadata \
             is not counted.\n\n\
             Effective utilisation: mapped blocks over the data sectors of lines that are neither free (mean of looks every \
             5 ms) nor half full (one for each stream). Closed forms are those for large blocks. Two temperatures are two \
             jobs whose I/Os fio's flow keeps at 4 : 1 or 9 : 1; zipf is fio's.\n\n\
             The simulator kept 4 of 1 024 blocks of 128 pages free and had no streams of its own to keep open, so its rows \
             are compared for order, not for equality.",
    paper: include_str!("../../../../../experiments/wa-theory/paper.csv"),
    run,
    report: report::report,
    why,
};

/// Over-provisioning, and how the paper's rows call what is exported.
const SPARE: [(u32, &str); 3] = [(7, "0.93"), (11, "0.89"), (20, "0.80")];

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["model", "utilisation", "skew", "pages_per_block", "metric"]);
    let points = points(lab.size);
    lab.expect(points.len());
    for (ftl, (spare, utilisation), skew) in points {
        lab.point(&format!("{}, {}, {spare} % spare", ftl.model(), skew.name()));
        let found = measure(ftl, spare, skew, lab.size, lab.seed)?;
        let keys = |metric| [ftl.model(), utilisation, skew.name(), ftl.pages_per_block(), metric];
        let note = found.note();
        data.push(&keys("write_amplification"), found.write_amplification, "x", &note);
        data.push(&keys("effective_utilisation"), found.effective, "fraction", "");
    }
    Ok(data)
}

/// Every point of a size.
fn points(size: Size) -> Vec<(Ftl, (u32, &'static str), Skew)> {
    if size == Size::Small {
        return vec![
            (Ftl::GREEDY, SPARE[2], Skew::Uniform),
            (Ftl::GREEDY, SPARE[2], Skew::Hot90),
            (Ftl::COST_BENEFIT_GC_STREAM, SPARE[2], Skew::Hot90),
        ];
    }
    let uniform = [Ftl::Faithful, Ftl::GREEDY, Ftl::COST_BENEFIT_GC_STREAM];
    let mut points: Vec<_> =
        SPARE.iter().flat_map(|&spare| uniform.map(|ftl| (ftl, spare, Skew::Uniform))).collect();
    for spare in &SPARE[1..] {
        for skew in [Skew::Hot80, Skew::Hot90, Skew::Zipf] {
            points.extend(Ftl::POLICIES.map(|ftl| (ftl, *spare, skew)));
        }
    }
    points
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let effective = |metric: &str| {
        let keys: Vec<(&str, &str)> = ours
            .keys()
            .iter()
            .map(String::as_str)
            .zip(row.keys.iter().map(String::as_str))
            .map(|(name, value)| if name == "metric" { (name, metric) } else { (name, value) })
            .collect();
        ours.value(&keys)
    };
    let nominal: f64 = ours.key(row, "utilisation").parse().ok()?;
    let found = effective("effective_utilisation")?;
    (percent > 0.0 && found > nominal + 0.003).then(|| {
        format!("effective utilisation {found:.3} and not {nominal}: lines kept free, open or for checkpoints are no spare")
    })
}
