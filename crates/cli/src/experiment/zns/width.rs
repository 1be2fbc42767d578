//! How many units a zone lies over: bandwidth of one zone and of many, and who meets whom.
//!
//! Deliberately not here: the drive, and how streams of requests go on (`rig`).

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::rig::{CHUNK_SECTORS, Does, Rig, Stream, Until, WRITE_BLOCKS, megabytes};
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::zoned::ZoneAction;
use ocssd_report::{
    Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Style, Verdict,
};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "zns-width",
    aliases: &[],
    title: "Zones over one unit to all",
    source: "ConfZNS++ (SYSTOR 2024), with a ZN540's measurements; CIDR 2020 (horizontal and vertical placement)",
    claim: "A zone over all units has the drive's bandwidth and meets every neighbour; one over few units has its units' bandwidth, and \
            neighbours on others do not notice it.",
    method: "The drive of zns-finish. Zones of 32 chunks, a stripe of which lies over 1 unit (SU), 4, 8 or 32 (FU); finish=pad. one is one \
             zone written with 64 writes of 96 KiB outstanding, many are eight zones at once. Reads of 8 KiB, one at a time, at random in \
             a zone with one chunk on each unit of its stripe are measured alone, while a neighbour is written as fast as it goes \
             (write), while two neighbours of which a tenth is written are finished (finish), and while four are reset (reset). \
             writes is the bandwidth of one writer while zones are finished.",
    paper: include_str!("../../../../../experiments/zns-width/paper.csv"),
    run,
    report,
    why,
};

/// The least time reads are measured for.
const READS: Nanos = Nanos::from_millis(200);
/// Writes outstanding.
const DEPTH: u32 = 64;

fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    let load = ours.key(row, "load");
    (load == "write" && percent < 0.0).then(|| {
        "a read waits here for the program of one unit at most; the ZN540's scheduling is not known"
            .to_owned()
    })
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["width", "load", "metric"]);
    let widths: &[u32] = lab.size.pick(&[1, 32], &[1, 4, 8, 32]);
    lab.expect(widths.len());
    for &width in widths {
        lab.point(&format!("zones over {width} units"));
        point(&mut data, width, lab.seed)?;
    }
    Ok(data)
}

fn write(zone: u32, blocks: u64) -> Stream {
    Stream::new(Does::Write { zones: vec![zone], blocks }, DEPTH)
}

/// MB a second of streams that took so long together.
fn bandwidth(streams: &[Stream], took: Nanos) -> f64 {
    megabytes(streams.iter().map(|stream| stream.blocks).sum()) / (took.0 as f64 / 1e9)
}

fn point(data: &mut Data, width: u32, seed: u64) -> anyhow::Result<()> {
    let name = width.to_string();
    let mut rig = Rig::new(20, &[("width", &name), ("zone_chunks", "32"), ("finish", "pad")], seed)?;
    let keys = |load: &'static str, metric: &'static str| [name.as_str(), load, metric];
    let in_reach = u64::from(width) * u64::from(CHUNK_SECTORS);
    rig.fill(vec![0], in_reach)?;
    let mut one = [write(1, rig.part(20))];
    let took = rig.run(&mut one, Until::After(Nanos::ZERO))?;
    let alone = bandwidth(&one, took);
    data.push(&keys("one", "bandwidth"), alone, "MB/s", "");
    let mut many: Vec<Stream> = (2..10).map(|zone| write(zone, rig.part(5))).collect();
    let took = rig.run(&mut many, Until::After(Nanos::ZERO))?;
    data.push(&keys("many", "bandwidth"), bandwidth(&many, took), "MB/s", "eight zones");
    rig.fill(vec![11, 12], rig.part(10))?;
    let reads = || Stream::new(Does::Read { zone: 0, blocks: in_reach }, 1);
    // As much as is written in a third of a second.
    let unit = u64::from(WRITE_BLOCKS);
    let enough = (1..).map(|units| units * unit * 64).find(|&blocks| megabytes(blocks) >= alone / 3.0);
    let enough = enough.unwrap_or(unit).min(rig.geometry.capacity_blocks / 2);
    let manage = |zones: Vec<u32>, action| Stream::new(Does::Manage { zones, action }, 1);
    let loads = [
        ("alone", None),
        ("write", Some(write(10, enough))),
        ("finish", Some(manage(vec![11, 12], ZoneAction::Finish))),
        ("reset", Some(manage((2..6).collect(), ZoneAction::Reset))),
    ];
    for (load, neighbour) in loads {
        let until = if load == "finish" { Until::Padded } else { Until::After(READS) };
        let mut streams = vec![reads()];
        streams.extend(neighbour);
        rig.run(&mut streams, until)?;
        let note = format!("{} reads", streams[0].latency.count());
        data.push(&keys(load, "mean"), streams[0].mean_us(), "us", &note);
        data.push(&keys(load, "p99"), streams[0].percentile_us(99.0), "us", "");
    }
    rig.fill(vec![13, 14], rig.part(10))?;
    let mut both = [write(15, enough), manage(vec![13, 14], ZoneAction::Finish)];
    let took = rig.run(&mut both, Until::After(Nanos::ZERO))?;
    data.push(&keys("finish", "writes"), bandwidth(&both[..1], took), "MB/s", "one writer");
    Ok(())
}

fn value(ours: &PaperTable, width: &str, load: &str, metric: &str) -> Option<f64> {
    ours.value(&[("width", width), ("load", load), ("metric", metric)])
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let widths = ours.distinct("width");
    let labels: Vec<String> = widths.iter().map(|width| format!("{width} units")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let bars = |name: &str, role, table: &PaperTable, load: &str, metric: &str| {
        let places = (0_u32..).zip(&widths);
        let points = places
            .filter_map(|(x, width)| Some(Point::new(f64::from(x), value(table, width, load, metric)?)));
        Series::new(name, role, points.collect()).style(Style::Bars)
    };
    let speed = ChartSpec::new(
        "Sequential writes",
        Axis::categories("units of a zone", &labels),
        Axis::linear("bandwidth", "MB/s"),
    )
    .panel(
        Panel::new("")
            .series(bars("one zone", Role::Ours, ours, "one", "bandwidth"))
            .series(bars("eight zones", Role::Ours, ours, "many", "bandwidth"))
            .series(bars("one zone, ZN540", Role::Paper, &numbers.paper, "one", "bandwidth")),
    );
    let mut tails = Panel::new("");
    for load in ["alone", "write", "finish", "reset"] {
        tails = tails.series(bars(load, Role::Ours, ours, load, "p99"));
    }
    let tails = ChartSpec::new(
        "Reads of a zone while others are used",
        Axis::categories("units of a zone", &labels),
        Axis::linear("99th percentile", "us"),
    )
    .panel(tails);
    Ok(report.verdicts(verdicts(ours)).chart(speed).chart(tails))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    vec![whole(ours), scales(ours), many(ours), isolated(ours), shared(ours)]
}

fn whole(ours: &PaperTable) -> Verdict {
    let (id, claim) =
        ("ZW1", "One zone over all units is written at 1,229 MB/s, within 5 %, as the ZN540's.");
    match value(ours, "32", "one", "bandwidth") {
        Some(found) => {
            Verdict::decided(id, claim, (found / 1_229.0 - 1.0).abs() <= 0.05, format!("{found:.0} MB/s"))
        }
        None => Verdict::not_evaluated(id, claim, "32 units were not run".to_owned()),
    }
}

fn scales(ours: &PaperTable) -> Verdict {
    let claim = "Until the link is full one zone has the bandwidth of its units: four times as many are four times as fast, within 5 %.";
    let of = |width| value(ours, width, "one", "bandwidth");
    match (of("1"), of("4")) {
        (Some(one), Some(four)) => {
            let told = format!("{one:.0} MB/s over one unit, {four:.0} over four");
            Verdict::decided("ZW2", claim, (four / one / 4.0 - 1.0).abs() <= 0.05, told)
        }
        _ => Verdict::not_evaluated("ZW2", claim, "one and four units were not run".to_owned()),
    }
}

fn many(ours: &PaperTable) -> Verdict {
    let claim =
        "Eight zones over one unit each have eight times the bandwidth of one, or the link's, within 5 %.";
    let of = |load| value(ours, "1", load, "bandwidth");
    match (of("one"), of("many")) {
        (Some(one), Some(many)) => {
            let expected = (8.0 * one).min(1_229.0);
            let told = format!("{many:.0} MB/s of {expected:.0}");
            Verdict::decided("ZW3", claim, (many / expected - 1.0).abs() <= 0.05, told)
        }
        _ => Verdict::not_evaluated("ZW3", claim, "one unit was not run".to_owned()),
    }
}

/// Loads beside which p99 of reads is judged against reading alone.
fn beside(ours: &PaperTable, width: &str, holds: impl Fn(f64) -> bool) -> Option<(bool, String)> {
    let alone = value(ours, width, "alone", "p99")?;
    let mut all = true;
    let mut told = vec![format!("{alone:.0} us alone")];
    for load in ["write", "finish"] {
        let found = value(ours, width, load, "p99")?;
        all &= holds(found / alone);
        told.push(format!("{found:.0} beside a {load}"));
    }
    Some((all, told.join(", ")))
}

fn isolated(ours: &PaperTable) -> Verdict {
    let claim = "Beside zones over one unit each p99 of reads is within 20 % of reading alone, whatever the neighbour does.";
    match beside(ours, "1", |factor| factor <= 1.2) {
        Some((holds, told)) => Verdict::decided("ZW4", claim, holds, told),
        None => Verdict::not_evaluated("ZW4", claim, "one unit was not run".to_owned()),
    }
}

fn shared(ours: &PaperTable) -> Verdict {
    let claim = "Beside zones over all units it is twice as long or more.";
    match beside(ours, "32", |factor| factor >= 2.0) {
        Some((holds, told)) => Verdict::decided("ZW5", claim, holds, told),
        None => Verdict::not_evaluated("ZW5", claim, "32 units were not run".to_owned()),
    }
}
