//! What finishing a zone early costs: padding as drives do that must, and none.
//!
//! Deliberately not here: the drive, and how streams of requests go on (`rig`).

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::rig::{Does, Rig, Stream, Until};
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::zoned::ZoneAction;
use ocssd_report::{Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Verdict};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "zns-finish",
    aliases: &[],
    title: "Finishing a zone that is not full",
    source: "SilentZNS (arXiv 2511.04687); a ZN540's measurements (ConfZNS++, SYSTOR 2024)",
    claim: "A drive that must close its blocks writes the rest of a finished zone at its full bandwidth, and neighbours wait for it; \
            chunks that are bound to zones on the fly need not be written (up to 20 times fewer dummy writes, 86 to 92 % less \
            device-level write amplification).",
    method: "zns over the 32 units of the zn540 preset, with chunks of 33.7 MiB, so that a zone over all units holds the ZN540's 1,077 \
             MiB, and 1,172 MiB/s from host to drive, as was measured of it (fitted). One zone is full and is read, 8 KiB at \
             random, one at a time. Others are written to 1 to 90 % of their capacity and finished, one after the other, with finish=pad \
             (their chunks are written to the end) and finish=leave (they stay as they are).\n\n\
             dummy is padding of all kinds for each finished zone; dlwa is what was programmed while zones were written and \
             finished, for each block the host wrote: log and checkpoints count. busy is from the first finish until no chunk \
             is padded any more, for each zone. Reads are measured quietly, while zones are finished without a pause (all), and over \
             the double of that time (half): as the ZN540's numbers with finishes for half of the time.",
    paper: include_str!("../../../../../experiments/zns-finish/paper.csv"),
    run,
    report,
    why,
};

const KEYS: &[&str] = &["occupancy_percent", "finish", "metric"];
const FINISHES: [&str; 2] = ["pad", "leave"];

fn why(_: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let is_read = row.keys.iter().any(|value| value.ends_with("_us"));
    (is_read && percent < 0.0).then(|| {
        "a read waits here for the program of one unit only: the ZN540's other queues are not known"
            .to_owned()
    })
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(KEYS);
    let occupancies: &[u32] = lab.size.pick(&[10], &[1, 10, 25, 50, 75, 90]);
    let zones = lab.size.pick(1, 3);
    lab.expect(occupancies.len() * FINISHES.len());
    for &occupancy in occupancies {
        for finish in FINISHES {
            lab.point(&format!("{occupancy} %, finish={finish}"));
            point(&mut data, (occupancy, finish, zones), lab.seed)?;
        }
    }
    Ok(data)
}

fn point(data: &mut Data, (occupancy, finish, zones): (u32, &str, u32), seed: u64) -> anyhow::Result<()> {
    let mut rig = Rig::new(14, &[("finish", finish)], seed)?;
    let capacity = rig.geometry.capacity_blocks;
    rig.fill(vec![0], capacity)?;
    let count = |rig: &Rig| {
        let padding = rig.counter("padded_sectors") + rig.counter("filled_sectors");
        (padding, rig.counter("programmed_sectors"), rig.counter("user_written_sectors"))
    };
    let before = count(&rig);
    rig.fill((1..=zones).collect(), rig.part(occupancy))?;
    let reads = || Stream::new(Does::Read { zone: 0, blocks: capacity }, 1);
    let mut quiet = [reads()];
    rig.run(&mut quiet, Until::After(Nanos::from_millis(200)))?;
    let finished: Vec<u32> = (1..=zones).collect();
    let mut all = [reads(), Stream::new(Does::Manage { zones: finished, action: ZoneAction::Finish }, 1)];
    let busy = rig.run(&mut all, Until::Padded)?;
    let mut rest = [reads()];
    rig.run(&mut rest, Until::After(busy))?;
    let after = count(&rig);
    let mut half = all[0].latency.clone();
    half.merge(&rest[0].latency);
    let written = (after.2 - before.2) as f64;
    let name = occupancy.to_string();
    let keys = |metric| [name.as_str(), finish, metric];
    let dummy = (after.0 - before.0) as f64 / f64::from(zones) / capacity as f64 * 100.0;
    data.push(&keys("dummy"), dummy, "%", "of a zone's capacity, for each zone");
    data.push(&keys("dlwa"), (after.1 - before.1) as f64 / written, "x", "");
    data.push(&keys("busy"), busy.0 as f64 / 1e6 / f64::from(zones), "ms", "for each zone, to 1 ms");
    let answered = all[1].mean_us() / 1e3;
    data.push(&keys("answered"), answered, "ms", "the host's finish command");
    let rows = [("quiet", &quiet[0].latency), ("all", &all[0].latency), ("half", &half)];
    for (when, latency) in rows {
        let note = format!("{} reads", latency.count());
        let names: [&'static str; 2] = match when {
            "quiet" => ["quiet_mean_us", "quiet_p99_us"],
            "all" => ["all_mean_us", "all_p99_us"],
            _ => ["half_mean_us", "half_p99_us"],
        };
        let p99 = latency.histogram().percentile(99.0).map_or(0.0, |time| time.0 as f64 / 1e3);
        data.push(&keys(names[0]), latency.mean_ns() / 1e3, "us", &note);
        data.push(&keys(names[1]), p99, "us", "");
    }
    Ok(())
}

fn value(ours: &PaperTable, occupancy: &str, finish: &str, metric: &str) -> Option<f64> {
    ours.value(&[("occupancy_percent", occupancy), ("finish", finish), ("metric", metric)])
}

/// A line through all occupancies.
fn line(table: &PaperTable, finish: &str, metric: &str) -> Vec<Point> {
    let points = table.distinct("occupancy_percent").into_iter().filter_map(|occupancy| {
        Some(Point::new(occupancy.parse().ok()?, value(table, occupancy, finish, metric)?))
    });
    points.collect()
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let axis = || Axis::linear("part of the zone that was written", "%").range(0.0, 100.0);
    let panel = |metric: &str| {
        let of = |finish: &str| Series::new(finish, Role::Ours, line(ours, finish, metric));
        Panel::new("").series(of("pad")).series(of("leave"))
    };
    let dummy = ChartSpec::new("Dummy writes of a finish", axis(), Axis::linear("padding, of the zone", "%"))
        .panel(panel("dummy"));
    let papers = line(&numbers.paper, "pad", "busy");
    let busy = ChartSpec::new("How long a finish keeps the drive busy", axis(), Axis::linear("time", "ms"))
        .subtitle(
            "The ZN540's answer a finish after that time; 908 ms of an empty zone, 2.6 ms of a full one.",
        )
        .panel(panel("busy").series(Series::new("ZN540", Role::Paper, papers)));
    let reads = ChartSpec::new(
        "Reads of another zone while zones are finished",
        axis(),
        Axis::linear("99th percentile", "us"),
    )
    .panel(panel("all_p99_us").series(Series::new(
        "nothing finished",
        Role::Ours,
        line(ours, "leave", "quiet_p99_us"),
    )));
    Ok(report.verdicts(verdicts(ours)).chart(dummy).chart(busy).chart(reads))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    vec![dummies(ours), amplification(ours), linear(ours), neighbours(ours), quiet(ours)]
}

/// Judges each occupancy by two numbers of it.
fn each(
    ours: &PaperTable,
    (id, claim): (&str, &str),
    numbers: [(&str, &str); 2],
    holds: impl Fn(f64, f64) -> bool,
    words: impl Fn(f64, f64) -> String,
) -> Verdict {
    let mut told = Vec::new();
    let mut all = true;
    for occupancy in ours.distinct("occupancy_percent") {
        let [one, other] = numbers.map(|(finish, metric)| value(ours, occupancy, finish, metric));
        let (Some(one), Some(other)) = (one, other) else { continue };
        all &= holds(one, other);
        told.push(format!("{occupancy} %: {}", words(one, other)));
    }
    if told.is_empty() {
        return Verdict::not_evaluated(id, claim, "no occupancy was run".to_owned());
    }
    Verdict::decided(id, claim, all, told.join("; "))
}

fn dummies(ours: &PaperTable) -> Verdict {
    each(
        ours,
        ("ZF1", "Without padding a finish writes at least 20 times fewer dummies."),
        [("pad", "dummy"), ("leave", "dummy")],
        |pad, leave| pad >= 20.0 * leave,
        |pad, leave| format!("{pad:.1} % of the zone, {leave:.4} % without"),
    )
}

fn amplification(ours: &PaperTable) -> Verdict {
    let (id, claim) = ("ZF2", "At 10 % it lowers device-level write amplification by 86 % or more.");
    let of = |finish| value(ours, "10", finish, "dlwa");
    let (Some(pad), Some(leave)) = (of("pad"), of("leave")) else {
        return Verdict::not_evaluated(id, claim, "10 % was not run".to_owned());
    };
    let cut = (1.0 - leave / pad) * 100.0;
    Verdict::decided(id, claim, cut >= 86.0, format!("from {pad:.2} to {leave:.3}: {cut:.1} % less"))
}

fn linear(ours: &PaperTable) -> Verdict {
    let claim = "With padding the drive is busy for the rest of the zone at its bandwidth: 908 ms of an empty zone, within 15 %.";
    let mut told = Vec::new();
    let mut holds = true;
    for occupancy in ours.distinct("occupancy_percent") {
        let part: f64 = occupancy.parse().unwrap_or(f64::NAN);
        let Some(found) = value(ours, occupancy, "pad", "busy") else { continue };
        let expected = 908.0 * (1.0 - part / 100.0);
        holds &= (found / expected - 1.0).abs() <= 0.15;
        told.push(format!("{occupancy} %: {found:.0} ms, {expected:.0} expected"));
    }
    Verdict::decided("ZF3", claim, holds && !told.is_empty(), told.join("; "))
}

fn neighbours(ours: &PaperTable) -> Verdict {
    each(
        ours,
        ("ZF4", "While zones are padded, p99 of reads elsewhere is at least twice that of a quiet drive."),
        [("pad", "quiet_p99_us"), ("pad", "all_p99_us")],
        |quiet, all| all >= 2.0 * quiet,
        |quiet, all| format!("{quiet:.0} us, {all:.0} while padding"),
    )
}

fn quiet(ours: &PaperTable) -> Verdict {
    each(
        ours,
        ("ZF5", "Ours: without padding it is within 10 %, over the time of the finishes and as much again."),
        [("leave", "quiet_p99_us"), ("leave", "half_p99_us")],
        |quiet, half| (half / quiet - 1.0).abs() <= 0.10,
        |quiet, half| format!("{quiet:.0} us, {half:.0} while finishing"),
    )
}
