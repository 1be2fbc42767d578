//! Table 1 and two measurements of the text: one unit, the whole drive, and the processor's time of an I/O.

use super::super::catalogue::{Experiment, Numbers};
use super::super::compare::FITTED;
use super::super::data::Data;
use super::super::lab::Lab;
use super::super::world::{Instance, World};
use anyhow::Context;
use ocssd_flash::presets;
use ocssd_report::{PaperRow, PaperTable, Report, Verdict};
use ocssd_workload::host_cpu::HostCpuConfig;
use ocssd_workload::results::JobResult;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "fast17-t1",
    aliases: &[],
    title: "One unit, the whole drive, and the processor's time of an I/O",
    source: "FAST 2017, table 1, sections 5.1 and 5.2",
    claim: "One parallel unit writes 47 MB/s and reads 105 (4 KB) and 280 MB/s (64 KB) in sequence, 56 and 273 MB/s at random. The \
            drive writes 4.0 and reads 4.5 GB/s. pblk adds 0.35 us of processor to a read and 0.9 us to a write.",
    method: "Westlake. One unit: target linear on unit 0, no host, 4 KB at depth 1, 64 KB reads in plane mode at depth 2 (their rate is \
             the channel's, which one at a time cannot reach), writes at depth 1 as pblk has one to a unit. Drive: linear on all 128 \
             units, 256 KB at depth 512. Processor: the target null, which answers at once, behind the paper's host with and without \
             pblk's share; latency at depth 1.\n\n\
             Sense, program and controller are set by the three rows that say so; the others come out of them. The rows of the \
             processor are what the host was given: they show that nothing is lost or counted twice on the way.",
    paper: include_str!("../../../../../experiments/fast17-t1/paper.csv"),
    run,
    report,
    why: |_, _, _| None,
};

/// What is measured of one unit: name, job, and whether a setting of the drive is fitted to it.
const UNIT: [(&str, &str, bool); 5] = [
    ("seq_write_64k", "rw=write\nbs=64k\niodepth=1\nsize=8m", true),
    ("seq_read_4k", "rw=read\nbs=4k\niodepth=1\nsize=8m", true),
    ("seq_read_64k", "rw=read\nbs=64k\niodepth=2\nsize=8m", false),
    ("rand_read_4k", "rw=randread\nbs=4k\niodepth=1\nsize=8m\nnorandommap\nio_size=32m", true),
    ("rand_read_64k", "rw=randread\nbs=64k\niodepth=2\nsize=8m\nnorandommap\nio_size=64m", false),
];

fn megabytes(job: &JobResult) -> f64 {
    let direction = if job.read.total_ios > 0 { &job.read } else { &job.write };
    direction.io_bytes as f64 / direction.runtime.as_secs_f64() / 1e6
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = Data::new(&["scope", "what"]);
    let westlake =
        || presets::find("westlake").map(|preset| preset.config()).context("no preset of the paper's drive");
    let head = "ioengine=libaio\ndirect=1\n";
    lab.expect(UNIT.len() + 6);
    for (what, job, fitted) in UNIT {
        lab.point(what);
        let mut world = World::new(westlake()?, &[Instance::new("linear", 0..1)])?;
        let results = world.run(&format!("[{what}]\n{head}{job}\n"), &[0], lab.seed)?;
        let note = if fitted { FITTED } else { "" };
        data.push(&["one unit", what], megabytes(&results[0]), "MB/s", note);
    }
    for (what, rw) in [("seq_write_256k", "write"), ("seq_read_256k", "read")] {
        lab.point(what);
        let mut world = World::new(westlake()?, &[Instance::new("linear", 0..128)])?;
        let text = format!("[{what}]\n{head}rw={rw}\nbs=256k\niodepth=512\nsize=2g\n");
        let results = world.run(&text, &[0], lab.seed)?;
        data.push(&["drive", what], megabytes(&results[0]) / 1e3, "GB/s", "");
    }
    for (with, host) in
        [("pblk", HostCpuConfig::e5_2620v3()), ("no pblk", HostCpuConfig::e5_2620v3().without_ftl())]
    {
        for rw in ["randread", "randwrite"] {
            lab.point(&format!("{rw}, {with}"));
            let mut instance = Instance::new("null", 0..1);
            instance.host = Some(host.clone());
            let mut world = World::new(westlake()?, &[instance])?;
            let text =
                format!("[cpu]\n{head}rw={rw}\nbs=4k\niodepth=1\nsize=8m\nnumber_ios=1000\nnorandommap\n");
            let results = world.run(&text, &[0], lab.seed)?;
            let direction = if rw == "randread" { &results[0].read } else { &results[0].write };
            let mean = direction.clat.mean_ns() / 1e3;
            data.push(&["processor", &format!("{} {with}", &rw[4..])], mean, "us", FITTED);
        }
    }
    Ok(data)
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    Ok(report.verdicts(vec![verdict(&numbers.paper, &numbers.ours)]))
}

fn verdict(paper: &PaperTable, ours: &PaperTable) -> Verdict {
    let claim =
        "What no setting is fitted to is within 5 % of table 1: 64 KB reads of a unit, the drive's rates.";
    let off = |row: &PaperRow| {
        let published = paper.value(&[("scope", ours.key(row, "scope")), ("what", ours.key(row, "what"))])?;
        (!row.note.starts_with(FITTED)).then(|| (row.value / published - 1.0) * 100.0)
    };
    let all: Vec<f64> = ours.rows().iter().filter_map(off).collect();
    if all.is_empty() {
        return Verdict::not_evaluated("T1a", claim, "no such number was measured");
    }
    let told: Vec<String> = all.iter().map(|percent| format!("{percent:+.1}")).collect();
    let holds = all.iter().all(|percent| percent.abs() <= 5.0);
    Verdict::decided("T1a", claim, holds, format!("off by {} %", told.join(", ")))
}
