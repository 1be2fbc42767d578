//! Table 2 beyond one socket: reads with a cost of the sockets, fitted to two of them and tried on three and four.

use super::super::catalogue::{Experiment, Numbers};
use super::super::compare::FITTED;
use super::super::data::Data;
use super::super::lab::Lab;
use super::point::{Cell, Factor};
use anyhow::Context;
use ocssd_report::ksc::{self, Pattern};
use ocssd_report::{PaperRow, PaperTable, Report, Verdict};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "ksc17-sockets",
    aliases: &[],
    title: "Reads beyond one socket, with a cost for each",
    source: "KSC 2017, table 2, 36 threads and more",
    claim: "Ours: reads beyond 18 threads, which are one socket, are slowed down by the sockets: one cost for each socket beyond \
            the first, fitted to two sockets, predicts three and four.",
    method: "As ksc17-t2, whose rows have no such cost and stay as they are, with the buffers of 64 and 256 MiB. A read holds the \
             lock of pblk's map for 110 ns (a guess: as long as the ring's for a test and a place), and a contended line takes 200 ns \
             from another socket. This alone changes nothing that is seen: at 400 000 reads a second the lock is held for a tenth of the \
             time. On top a read takes 37 us longer for each socket beyond the first that has reads. This is fitted to the reads of 36 \
             threads, whose rows say so; 54 and 72 threads are predicted. What takes 37 us is not known: the paper has no profile.",
    paper: include_str!("../../../../../experiments/ksc17-sockets/paper.csv"),
    run,
    report,
    why: |_, _, _| None,
};

/// Buffers that are run: one that most reads miss, and the one with most hits.
const BUFFERS_MIB: [u32; 2] = [64, 256];
/// Two, three and four sockets; the cost is fitted to the first.
const THREADS: [u32; 3] = [36, 54, 72];

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["pattern", "buffer_mib", "threads"]);
    let buffers: &[u32] = lab.size.pick(&[256], &BUFFERS_MIB);
    let threads: &[u32] = lab.size.pick(&[36], &THREADS);
    lab.expect(buffers.len() * threads.len());
    for &buffer_mib in buffers {
        for &threads in threads {
            lab.point(&format!("{buffer_mib} MiB, {threads} threads"));
            let cell = Cell { buffer_mib, threads, factor: Factor::SocketsOfReads, reads: true };
            let mut world = cell.world()?;
            cell.prepare(&mut world, lab.seed + 1)?;
            for pattern in Pattern::ALL {
                let (rate, note) = cell.measure(&mut world, pattern, true, lab.size, lab.seed)?;
                let note = if threads == THREADS[0] { format!("{FITTED}; {note}") } else { note };
                let keys = [pattern.word(), &buffer_mib.to_string(), &threads.to_string()];
                data.push(&keys, rate, "MB/s", &note);
            }
        }
    }
    Ok(data)
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let paper = ksc::Grid::from_paper(&numbers.paper).context("the paper's table")?;
    let ours = ksc::Grid::from_paper(&numbers.ours).context("our rows")?;
    let chart = ksc::chart("Reads of more than one socket", &paper, &ours, 7.0);
    Ok(report.verdicts(vec![verdict(&numbers.paper, &numbers.ours)]).chart(chart))
}

/// Whether what was not fitted is near.
fn verdict(paper: &PaperTable, ours: &PaperTable) -> Verdict {
    let claim = "Ours: one cost for each socket beyond the first, fitted to 36 threads, predicts 54 and 72 threads within 10 %.";
    let off = |row: &PaperRow| {
        let keys = ["pattern", "buffer_mib", "threads"].map(|key| (key, ours.key(row, key)));
        let published = paper.value(&keys)?;
        (!row.note.starts_with(FITTED)).then(|| (row.value / published - 1.0) * 100.0)
    };
    let off: Vec<f64> = ours.rows().iter().filter_map(off).collect();
    if off.is_empty() {
        return Verdict::not_evaluated("SO1", claim, "only 36 threads were measured");
    }
    let told: Vec<String> = off.iter().map(|percent| format!("{percent:+.0}")).collect();
    let holds = off.iter().all(|percent| percent.abs() <= 10.0);
    Verdict::decided("SO1", claim, holds, format!("off by {} %", told.join(", ")))
}
