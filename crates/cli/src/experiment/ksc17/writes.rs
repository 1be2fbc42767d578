//! Table 3: writes.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::point::{Cell, Factor};
use anyhow::Context;
use ocssd_report::ksc::{self, BUFFERS_MIB, Pattern, THREADS};
use ocssd_report::{PaperRow, PaperTable, Report};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "ksc17-t3",
    aliases: &[],
    title: "Write throughput against write buffer and threads",
    source: "KSC 2017, table 3",
    claim: "With a write buffer of 64 MiB or more, writes gain a little from 2 to 4 threads and nothing after. With 32 MiB, \
            random writes grow up to 18 threads, and both patterns drop sharply beyond; the paper suspects that the buffer is \
            always full.",
    method: super::METHOD_WRITES,
    paper: include_str!("../../../../../experiments/ksc17-t3/paper.csv"),
    run,
    report,
    why,
};

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["pattern", "buffer_mib", "threads"]);
    let buffers: &[u32] = lab.size.pick(&[32, 64], &BUFFERS_MIB);
    let threads: &[u32] = lab.size.pick(&[4, 18, 36], &THREADS);
    lab.expect(2 * buffers.len() * threads.len());
    for &buffer_mib in buffers {
        for &threads in threads {
            for pattern in Pattern::ALL {
                lab.point(&format!("{} {buffer_mib} MiB, {threads} threads", pattern.word()));
                let cell = Cell { buffer_mib, threads, factor: Factor::Baseline, reads: false };
                let mut world = cell.world()?;
                cell.prime(&mut world, lab.seed)?;
                let (rate, note) = cell.measure(&mut world, pattern, false, lab.size, lab.seed)?;
                data.push(
                    &[pattern.word(), &buffer_mib.to_string(), &threads.to_string()],
                    rate,
                    "MB/s",
                    &super::noted(threads, &note),
                );
            }
        }
    }
    Ok(data)
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let paper = ksc::Grid::from_paper(&numbers.paper).context("the paper's table")?;
    let ours = ksc::Grid::from_paper(&numbers.ours).context("our rows")?;
    let verdicts = ksc::judge_writes(&ours);
    let chart = ksc::chart_by_buffer("Writes by threads and write buffer", &paper, &ours, 11.0);
    Ok(report.verdicts(verdicts).chart(chart))
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let threads: u32 = ours.key(row, "threads").parse().ok()?;
    (threads >= 4 && percent < 0.0).then(|| super::STARVED_WRITER.to_owned())
}
