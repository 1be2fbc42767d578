//! Table 1 and two measurements of the text: one unit, the whole drive, and the processor's time of an I/O.

use super::super::catalogue::{Experiment, Numbers};
use super::super::compare::FITTED;
use super::super::data::Data;
use super::super::lab::{Lab, Size};
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
            drive writes 4.0 and reads 4.5 GB/s; with garbage being collected pblk writes 3.2. pblk adds 0.35 us of processor to a read \
            and 0.9 us to a write.",
    method: "Westlake. One unit: target linear on unit 0, no host, 4 KB at depth 1, 64 KB reads in plane mode at depth 2 (their rate is \
             the channel's, which one at a time cannot reach), writes at depth 1 as pblk has one to a unit. Drive: linear on all 128 \
             units, 256 KB at depth 512. Steady: pblk on a drive of 40 lines of 512 MiB; half of its media written in order, overwritten \
             twice, then once more measured, 64 KB at depth 256, at random and in order. Processor: the target null, which answers at \
             once, behind the paper's host with and without pblk's share; latency at depth 1.\n\n\
             Sense, program and controller are set by the three rows that say so; the others come out of them. What was overwritten is not \
             in the paper: half of the media is what the closed form of uniform writes says, for which 3.2 of 4.0 GB/s are 1.25 written for one. \
             The rows of the \
             processor are what the host was given: they show that nothing is lost or counted twice on the way.",
    paper: include_str!("../../../../../experiments/fast17-t1/paper.csv"),
    run,
    report,
    why,
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
    lab.expect(UNIT.len() + 8);
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
    for what in [STEADY, IN_ORDER] {
        lab.point(what);
        let point = steady(what, lab.size, lab.seed)?;
        data.push(&["drive", what], point.rate, "GB/s", &point.note);
        data.push(&["amplification", what], point.amplification, "x", "");
    }
    Ok(data)
}

/// Half of the media overwritten at random, which is what 3.2 of 4.0 GB/s would take (`STEADY_SPAN_PERCENT`).
const STEADY: &str = "pblk_steady_rand_write_64k";
/// The same span overwritten in order.
const IN_ORDER: &str = "pblk_steady_seq_write_64k";
/// Share of the media that is overwritten, from the closed form: uniform writes amplify by 1.25 = 4.0 / 3.2 where the media are
/// twice the span (`alpha / (alpha + W(-alpha exp(-alpha)))` with `alpha` 2.01), so the paper's span was about half of its drive.
const STEADY_SPAN_PERCENT: u64 = 50;
/// Chunks of a unit and their sectors: 40 lines of 512 MiB (chosen, so that steady takes seconds and not hours; a line of the
/// paper's drive has 2 GiB).
const STEADY_CHUNKS: (u32, u32) = (40, 1024);

struct Steady {
    rate: f64,
    amplification: f64,
    note: String,
}

/// Writes the span in order, overwrites it twice, so that garbage is collected all the time, and once more measured.
fn steady(what: &str, size: Size, seed: u64) -> anyhow::Result<Steady> {
    let mut config = presets::find("westlake").context("no preset of the paper's drive")?.config();
    (config.geometry.chunks_per_pu, config.geometry.sectors_per_chunk) = STEADY_CHUNKS;
    let units = size.pick(32, 128);
    config.geometry.pus_per_group = units / config.geometry.groups;
    let media = u64::from(units) * u64::from(STEADY_CHUNKS.0 * STEADY_CHUNKS.1) * 4096;
    let mut world = World::new(config, &[Instance::new("pblk", 0..units).on_fast17_host()])?;
    let span = media * STEADY_SPAN_PERCENT / 100 / 65_536 * 65_536;
    let shown = world.blocks(0) * 4096;
    anyhow::ensure!(span <= shown, "pblk shows {shown} bytes, and {span} are to be overwritten");
    let head = format!("ioengine=libaio\ndirect=1\nnorandommap\nbs=64k\niodepth=256\nsize={span}\n");
    let rw = if what == STEADY { "randwrite" } else { "write" };
    world.run(&format!("[fill]\n{head}rw=write\n"), &[0], seed)?;
    world.run(&format!("[settle]\n{head}rw={rw}\nio_size={}\n", 2 * span), &[0], seed + 1)?;
    let counts = |world: &World| {
        ["user_written_sectors", "gc_written_sectors"].map(|name| world.counter(0, name).unwrap_or(0))
    };
    let before = counts(&world);
    let results = world.run(&format!("[{what}]\n{head}rw={rw}\n"), &[0], seed + 2)?;
    let after = counts(&world);
    let [users, collected] = [0, 1].map(|place| after[place] - before[place]);
    Ok(Steady {
        rate: megabytes(&results[0]) / 1e3,
        amplification: (users + collected) as f64 / users.max(1) as f64,
        note: format!(
            "{span} of {media} bytes of media overwritten; sectors of users {users}, collected {collected}"
        ),
    })
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let [programs, channels] = verdicts_steady(&numbers.ours);
    Ok(report.verdicts(vec![verdict(&numbers.paper, &numbers.ours), programs, channels]))
}

fn why(ours: &PaperTable, row: &PaperRow, _: f64) -> Option<String> {
    (ours.key(row, "what") == STEADY).then(|| {
        "the paper does not say what was overwritten; on 40 lines more than 1.25 is written for one (the row below), and what is \
         collected crosses the channels twice, which are what the drive is short of then (T1c)"
            .to_owned()
    })
}

/// What the drive is short of while garbage is collected: programs, or what the channels carry. A sector that is collected is read
/// before it is written, so with `a` written for one the channels carry `2 a - 1`.
fn verdicts_steady(ours: &PaperTable) -> [Verdict; 2] {
    let programs = (
        "T1b",
        "Ours: with garbage being collected the rate times what is written for one is the drive's rate of writes, within 10 %.",
    );
    let channels = (
        "T1c",
        "Ours: with what garbage collection reads counted, the channels carry at least 85 % of what they can: the drive's rate of reads.",
    );
    let of = |scope: &str, what: &str| ours.value(&[("scope", scope), ("what", what)]);
    let measured = (
        of("drive", STEADY),
        of("amplification", STEADY),
        of("drive", "seq_write_256k"),
        of("drive", "seq_read_256k"),
    );
    let (Some(rate), Some(amplification), Some(writes), Some(reads)) = measured else {
        return [programs, channels]
            .map(|(id, claim)| Verdict::not_evaluated(id, claim, "it was not measured"));
    };
    let judge = |(id, claim), times: f64, all: f64, least: f64, most: f64| {
        let sentence = format!("{rate:.2} GB/s times {times:.2} are {:.2} of {all:.2} GB/s", rate * times);
        Verdict::decided(id, claim, (least..=most).contains(&(rate * times / all)), sentence)
    };
    [
        judge(programs, amplification, writes, 0.9, 1.1),
        judge(channels, 2.0 * amplification - 1.0, reads, 0.85, 1.0),
    ]
}

fn verdict(paper: &PaperTable, ours: &PaperTable) -> Verdict {
    let claim =
        "What no setting is fitted to is within 5 % of table 1: 64 KB reads of a unit, the drive's rates.";
    let off = |row: &PaperRow| {
        let published = paper.value(&[("scope", ours.key(row, "scope")), ("what", ours.key(row, "what"))])?;
        (!row.note.starts_with(FITTED) && ours.key(row, "what") != IN_ORDER)
            .then(|| (row.value / published - 1.0) * 100.0)
    };
    let all: Vec<f64> = ours.rows().iter().filter_map(off).collect();
    if all.is_empty() {
        return Verdict::not_evaluated("T1a", claim, "no such number was measured");
    }
    let told: Vec<String> = all.iter().map(|percent| format!("{percent:+.1}")).collect();
    let holds = all.iter().all(|percent| percent.abs() <= 5.0);
    Verdict::decided("T1a", claim, holds, format!("off by {} %", told.join(", ")))
}
