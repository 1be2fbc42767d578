//! The tables of a course report that profiled a laptop's SSD: the same cells on a drive that is known, and what the linter
//! says of both sides.
//!
//! Deliberately not here: the rules (`ocssd_measure::lint`).

use super::catalogue::{Experiment, Numbers};
use super::data::Data;
use super::lab::Lab;
use super::world::{Instance, World};
use anyhow::{Context, anyhow};
use ocssd_flash::presets;
use ocssd_measure::lint::{Selection, Settings, Severity, lint, read};
use ocssd_report::{PaperRow, PaperTable, Report, Table, Verdict};
use ocssd_workload::host_cpu::HostCpuConfig;
use ocssd_workload::results::JobResult;
use std::collections::BTreeSet;

/// Rate of a PCIe 3.0 link of four lanes, which laptops of the report's year had, in bytes per second: 4 x 8 GT/s in 128b/130b.
const LINK_BYTES_PER_SECOND: f64 = 4.0 * 8e9 / 8.0 * 128.0 / 130.0;

const SOURCE: &str = "a course report of October 2024 that profiled a laptop's SSD";

const METHOD: &str = "The cells of the report on a drive like a laptop's (preset 970pro) whose own FTL is the target block_ssd, behind the \
    host of FAST'17 without its FTL. 1 GiB is written first and as much behind it, so that reads come from the media; direct I/O at random, 100 ms \
    unmeasured, then 1 s. A mix is one job (rwmixread), depth is iodepth. Latency is fio's mean total latency of all I/Os of the job.\n\n\
    Both sides then go through the honesty linter (ocssd lint) as tables of block size, share of reads, depth, mean latency and I/Os per second, with \
    a link of PCIe 3.0 x4.";

/// Table 1.
pub const T1: Experiment = Experiment {
    id: "profile-t1",
    aliases: &[],
    title: "Access size, as a course report profiled it",
    source: SOURCE,
    claim: "Latency falls from 4 to 16 KiB, so there is an access size with the least latency.",
    method: METHOD,
    paper: include_str!("../../../../experiments/profile-t1/paper.csv"),
    run: |lab| run(lab, &[(4096, 100, 1), (16_384, 100, 1), (131_072, 100, 1)]),
    report: |report, numbers| with_verdicts(report, numbers, size_verdict(&numbers.ours)),
    why,
};

/// Table 2.
pub const T2: Experiment = Experiment {
    id: "profile-t2",
    aliases: &[],
    title: "The share of reads, as a course report profiled it",
    source: SOURCE,
    claim: "An SSD performs best with a mix of reads and writes: most I/Os a second at 50/50.",
    method: METHOD,
    paper: include_str!("../../../../experiments/profile-t2/paper.csv"),
    run: |lab| run(lab, &[(4096, 100, 1), (4096, 70, 1), (4096, 50, 1), (4096, 0, 1)]),
    report: |report, numbers| with_verdicts(report, numbers, mix_verdict(&numbers.ours)),
    why,
};

/// Table 3.
pub const T3: Experiment = Experiment {
    id: "profile-t3",
    aliases: &[],
    title: "Queue depth, as a course report profiled it",
    source: SOURCE,
    claim: "From depth 10 to 100 I/Os a second grow by 5 %.",
    method: METHOD,
    paper: include_str!("../../../../experiments/profile-t3/paper.csv"),
    run: |lab| run(lab, &[(4096, 100, 1), (4096, 100, 10), (4096, 100, 100)]),
    report: |report, numbers| with_verdicts(report, numbers, depth_verdict(&numbers.ours)),
    why,
};

/// Bytes of an I/O, reads in percent, depth.
type Cell = (u32, u32, u32);

fn run(lab: &mut Lab, cells: &[Cell]) -> anyhow::Result<Data> {
    let mut data = lab.data(&["block_bytes", "read_percent", "queue_depth", "metric"]);
    let time = lab.size.pick("ramp_time=10ms\nruntime=50ms", "ramp_time=100ms\nruntime=1s");
    let region = lab.size.pick("128m", "1g");
    lab.expect(cells.len());
    for &(block, reads, depth) in cells {
        lab.point(&format!("{block} bytes, {reads} % reads, depth {depth}"));
        let mut world = world(region, lab.seed)?;
        let text = format!(
            "[cell]\nioengine=libaio\ndirect=1\nnorandommap\nrw=randrw\nrwmixread={reads}\nbs={block}\niodepth={depth}\nsize={region}\n\
             time_based\n{time}\n"
        );
        let results = world.run(&text, &[0], lab.seed + 1)?;
        let (latency_us, iops, ios) = both(&results[0]).context("a cell did no I/O")?;
        let keys = [block.to_string(), reads.to_string(), depth.to_string()];
        let keys = |metric| [keys[0].as_str(), &keys[1], &keys[2], metric];
        data.push(&keys("latency_mean"), latency_us, "us", &format!("I/Os {ios}"));
        data.push(&keys("iops"), iops, "IOPS", "");
    }
    Ok(data)
}

/// A laptop's drive whose first region lies on media.
fn world(region: &str, seed: u64) -> anyhow::Result<World> {
    let config = presets::find("970pro").context("no preset of a laptop's drive")?.config();
    let mut instance = Instance::new("block_ssd", 0..config.geometry.pu_count());
    instance.host = Some(HostCpuConfig::e5_2620v3().without_ftl());
    let mut world = World::new(config, &[instance])?;
    for place in ["offset=0", &format!("offset={region}")] {
        let text = format!(
            "[fill]\nioengine=libaio\ndirect=1\nrw=write\nbs=128k\niodepth=16\nsize={region}\n{place}\n"
        );
        world.run(&text, &[0], seed)?;
    }
    world.settle();
    Ok(world)
}

/// Mean latency in us, I/Os per second, and I/Os, of reads and writes together.
#[expect(clippy::cast_precision_loss, reason = "sums of one second")]
fn both(job: &JobResult) -> Option<(f64, f64, u64)> {
    let ios = job.read.total_ios + job.write.total_ios;
    let sum = job.read.lat.sum_ns() + job.write.lat.sum_ns();
    let runtime = job.read.runtime.max(job.write.runtime).as_secs_f64();
    (ios > 0 && runtime > 0.0).then(|| (sum as f64 / ios as f64 / 1e3, ios as f64 / runtime, ios))
}

fn value(table: &PaperTable, (block, reads, depth): Cell, metric: &str) -> Option<f64> {
    let (block, reads, depth) = (block.to_string(), reads.to_string(), depth.to_string());
    table.value(&[
        ("block_bytes", &block),
        ("read_percent", &reads),
        ("queue_depth", &depth),
        ("metric", metric),
    ])
}

/// The table as the linter reads it.
fn for_linter(table: &PaperTable) -> String {
    let mut text = String::from(
        "name,series,order,read_percent,block_bytes,depth,latency_mean_us,latency_is_whole,iops\n",
    );
    for row in table.rows().iter().filter(|row| table.key(row, "metric") == "latency_mean") {
        let key = |name| table.key(row, name);
        let (block, reads, depth) = (key("block_bytes"), key("read_percent"), key("queue_depth"));
        let keys =
            [("block_bytes", block), ("read_percent", reads), ("queue_depth", depth), ("metric", "iops")];
        let Some(iops) = table.value(&keys) else { continue };
        text += &format!(
            "{block} B {reads} % depth {depth},one,random,{reads},{block},{depth},{},yes,{iops}\n",
            row.value
        );
    }
    text
}

/// What the linter fails a side for: the verdict, and its sentences.
fn linted(id: &str, whose: &str, table: &PaperTable) -> anyhow::Result<(Verdict, Table)> {
    let claim = format!("The linter fails none of {whose}.");
    let evidence = read(whose, for_linter(table).as_bytes()).map_err(|error| anyhow!("{error}"))?;
    let files = [evidence];
    let settings = Settings { link_bytes_per_second: Some(LINK_BYTES_PER_SECOND), ..Settings::default() };
    let report = lint(&files, &settings, &Selection::all());
    let mut listed =
        Table::new(&format!("What the linter says of {whose}"), &["rule", "level", "cell", "sentence"]);
    let (mut rules, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for (judged, severity, sentence) in report.findings() {
        let cell = &report.cell(&files, judged).name;
        listed.push(vec![judged.rule.id.to_owned(), severity.to_string(), cell.clone(), sentence.to_owned()]);
        if severity == Severity::Fail {
            rules.insert(judged.rule.id);
            cells.insert(judged.cell);
        }
    }
    let all = files[0].cells.len();
    let rules: Vec<&str> = rules.into_iter().collect();
    let sentence = if rules.is_empty() {
        format!("0 of {all} rows")
    } else {
        format!("{} of {all} rows, by {}", cells.len(), rules.join(", "))
    };
    Ok((Verdict::decided(id, &claim, rules.is_empty(), sentence), listed))
}

fn with_verdicts(report: Report, numbers: &Numbers, claim: Verdict) -> anyhow::Result<Report> {
    let (theirs, their_findings) = linted("PL1", "the report's rows", &numbers.paper)?;
    let (ours, our_findings) = linted("PL2", "our rows", &numbers.ours)?;
    let mut report = report.verdicts(vec![theirs, ours, claim]);
    for findings in [their_findings, our_findings] {
        if !findings.rows.is_empty() {
            report = report.table(findings);
        }
    }
    Ok(report)
}

fn size_verdict(ours: &PaperTable) -> Verdict {
    let claim = "Reads of 16 KiB take less than reads of 4 KiB, as the report has it.";
    let at = |block| value(ours, (block, 100, 1), "latency_mean");
    match (at(4096), at(16_384)) {
        (Some(small), Some(large)) => Verdict::decided(
            "PT1",
            claim,
            large < small,
            format!("{small:.1} us of 4 KiB, {large:.1} us of 16 KiB"),
        ),
        _ => Verdict::not_evaluated("PT1", claim, "not measured: 4 and 16 KiB"),
    }
}

fn mix_verdict(ours: &PaperTable) -> Verdict {
    let claim = "I/Os a second are most at 50/50, as the report has it.";
    let rates: Option<Vec<f64>> =
        [100, 70, 50, 0].map(|reads| value(ours, (4096, reads, 1), "iops")).into_iter().collect();
    let Some(rates) = rates else { return Verdict::not_evaluated("PT2", claim, "not measured: all mixes") };
    let most = rates.iter().copied().fold(0.0, f64::max);
    let told: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    let sentence = format!("{} a second at 100, 70, 50, 0 % reads", told.join(", "));
    Verdict::decided("PT2", claim, rates[2] >= most, sentence)
}

fn depth_verdict(ours: &PaperTable) -> Verdict {
    let claim = "From depth 10 to 100 I/Os a second grow by a tenth or less, as the report has it.";
    let at = |depth| value(ours, (4096, 100, depth), "iops");
    match (at(10), at(100)) {
        (Some(ten), Some(hundred)) => {
            let sentence = format!("x{:.2}: {ten:.0} and {hundred:.0} a second", hundred / ten);
            Verdict::decided("PT3", claim, hundred <= 1.1 * ten, sentence)
        }
        _ => Verdict::not_evaluated("PT3", claim, "not measured: depths 10 and 100"),
    }
}

fn why(ours: &PaperTable, row: &PaperRow, _percent: f64) -> Option<String> {
    let reason = if ours.key(row, "read_percent") == "100" {
        "another drive; and the report's reads came from the page cache, or its scripts had no more than two I/Os in flight"
    } else {
        "another drive; and the report's writes ended in its own process: what flushed them was not timed"
    };
    Some(reason.to_owned())
}
