//! Table 2: reads.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::point::{Cell, Factor};
use anyhow::Context;
use ocssd_report::ksc::{self, BUFFERS_MIB, Pattern, THREADS};
use ocssd_report::{PaperRow, PaperTable, Report};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "ksc17-t2",
    aliases: &[],
    title: "Read throughput against write buffer and threads",
    source: "KSC 2017, table 2",
    claim: "Reads of an open-channel SSD under pblk get faster with more threads, and ever less so; from 54 to 72 threads nearly \
            nothing is gained. A larger write buffer reads faster at every thread count, because more reads hit it.",
    method: super::METHOD_READS,
    paper: include_str!("../../../../../experiments/ksc17-t2/paper.csv"),
    run,
    report,
    why,
};

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["pattern", "buffer_mib", "threads"]);
    let buffers: &[u32] = lab.size.pick(&[64, 256], &BUFFERS_MIB);
    let threads: &[u32] = lab.size.pick(&[2, 8], &THREADS);
    lab.expect(buffers.len() * threads.len());
    for &buffer_mib in buffers {
        for &threads in threads {
            lab.point(&format!("{buffer_mib} MiB, {threads} threads"));
            let cell = Cell { buffer_mib, threads, factor: Factor::Baseline, reads: true };
            let mut world = cell.world()?;
            cell.prepare(&mut world, lab.seed + 1)?;
            for pattern in Pattern::ALL {
                let (rate, note) = cell.measure(&mut world, pattern, true, lab.size, lab.seed)?;
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
    let verdicts = ksc::judge_reads(&ours);
    Ok(report.verdicts(verdicts).chart(ksc::chart("Reads by threads and write buffer", &paper, &ours, 7.0)))
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let reason = if ours.key(row, "pattern") == "sequential" {
        "in part: some reads find their page sensed (counted beside each row); beyond 18 threads the model has no lock and no \
         remote socket for reads"
    } else {
        "beyond 18 threads: the model has no lock of the map and no remote socket for reads"
    };
    (percent > 0.0).then(|| reason.to_owned())
}
