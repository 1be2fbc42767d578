//! Figure 3: how long recovery takes after a kill, with and without checkpoints.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::{Lab, Size};
use super::fit::{Line, line};
use super::rig::{self, Rig};
use crate::interrupt::{self, Interrupted};
use anyhow::{Context, bail, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, RunEnd};
use ocssd_flash::Config;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkId, ChunkState, Command, Geometry, Op, PlaneMode, Ppa,
    Source, Tag, TargetId,
};
use ocssd_report::{Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Verdict};
use ocssd_targets::ox_block::{MountReport, OxBlock, TRANSACTION_BLOCKS_MAX};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-f3",
    aliases: &[],
    title: "Recovery time against checkpoints",
    source: "CIDR 2020, figure 3 and section 4.3",
    claim: "Without checkpoints recovery takes time in proportion to the log, close to 100 s at the last of six failures. With \
            checkpoints every 10 or 30 s it is short and stays so, and the two do not differ significantly.",
    method: "ox-block over 8 groups of 4 units (chunks of 3 MiB, page and write unit 32 KiB as OX's log pages, read 70 us, program \
             1.2 ms). One writer at depth 1 writes 1 to 256 blocks at random places of a quarter of the instance; each write is a \
             transaction. Its content is its number. The paper gives neither its six times nor its rates; here they are six equal steps, \
             with the paper's 10 and 30 s and the steps shortened alike: 20 times (200 with --small), so 10 s are 0.5 s, 30 s \
             are 1.5 s and a step is 60 s, 3 s here.\n\n\
             At each time the drive is forked, loses its power, and is mounted: recovery is the drive's time from then until the first \
             request could be answered. It has no cost of the processor. Then every block of the region is read: an answered \
             transaction must be there, the one under way whole or absent, or the run fails.\n\n\
             ox-block checkpoints by the log that was written. An interval is turned into bytes with the log rate of the first step of \
             the run without checkpoints. The fourth line is the option `recovery`, which bounds the time the log is read.\n\n\
             chase: as many pages as recovery read of the log, read one after the other on the same drive, as OX follows the \
             pointer in each page to the next; log replay is what ox-block takes for them.",
    paper: include_str!("../../../../../experiments/cidr20-f3/paper.csv"),
    run,
    report,
    why,
};

/// Times at which the controller dies.
const POINTS: u32 = 6;
/// The paper's time between two of them, as chosen here, and its intervals, in seconds.
const STEP_S: u64 = 60;
/// How long recovery may read the log in the fourth series (chosen: less than the log of a step takes).
const BOUND_MS: u64 = 5;

/// What is different between the lines of the figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    Off,
    Every(u64),
    Within,
}

const SERIES: [Checkpoints; 4] =
    [Checkpoints::Off, Checkpoints::Every(30), Checkpoints::Every(10), Checkpoints::Within];

impl Checkpoints {
    const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Every(30) => "30 s",
            Self::Every(_) => "10 s",
            Self::Within => "target",
        }
    }

    fn options(self, log_bytes_per_second: f64, shorter: u64) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("over_provisioning_percent", "30".to_owned()),
            ("log_copies", "1".to_owned()),
            ("seed", "5".to_owned()),
        ];
        match self {
            // More than all of the run writes.
            Self::Off => pairs.push(("checkpoint_log_bytes", log_max(shorter).to_string())),
            Self::Every(seconds) => {
                let bytes = log_bytes_per_second * seconds as f64 / shorter as f64;
                pairs.push(("checkpoint_log_bytes", format!("{bytes:.0}")));
            }
            Self::Within => pairs.push(("recovery", format!("{BOUND_MS}ms"))),
        }
        pairs
    }
}

/// Bytes of log that the run without checkpoints writes at most: a transaction takes a program of data and one of a page.
fn log_max(shorter: u64) -> u64 {
    let seconds = STEP_S * u64::from(POINTS) / shorter.max(1) + 1;
    seconds * 416 * 32 * 1024
}

fn config(size: Size) -> anyhow::Result<Config> {
    let chunks = size.pick(48, 96);
    rig::drive(&Geometry::example(8, 4, chunks, 768, 8), Nanos::from_micros(1_200))
}

/// One writer at depth 1, who knows what must be there.
struct Writer {
    prng: Prng,
    region: u64,
    buffer: BufId,
    /// The number of the last write to each block that was answered.
    content: Vec<u64>,
    issued: u64,
    in_flight: Option<(u64, u32)>,
    failed: Option<&'static str>,
}

impl Writer {
    fn new(region: u64, seed: u64, buffers: &mut Buffers) -> Self {
        let content = vec![0; usize::try_from(region).expect("a region fits memory")];
        let prng = Prng::new(seed).split("writer");
        let buffer = buffers.take(TRANSACTION_BLOCKS_MAX);
        Self { prng, region, buffer, content, issued: 0, in_flight: None, failed: None }
    }

    fn blocks(&self, block: u64, count: u32) -> std::ops::Range<usize> {
        let first = usize::try_from(block).expect("a region fits memory");
        first..first + usize::try_from(count).expect("a transaction is small")
    }
}

impl Source<OxBlock> for Writer {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if self.in_flight.is_some() {
            return None;
        }
        let count = 1 + u32::try_from(self.prng.below(u64::from(TRANSACTION_BLOCKS_MAX))).expect("small");
        let block = self.prng.below(self.region - u64::from(count));
        self.issued += 1;
        self.in_flight = Some((block, count));
        rig::stamp(buffers, self.buffer, count, self.issued);
        let op = BlockOp::Write { fua: false };
        Some((TargetId(0), BlockRequest { tag: Tag(1), op, block, count, buffer: Some(self.buffer) }))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, _: BlockRequest) {
        self.failed = Some("a lone write was refused");
        self.in_flight = None;
    }

    fn on_reply(&mut self, _: Nanos, _: TargetId, reply: BlockReply, _: &mut Buffers) {
        let (block, count) = self.in_flight.take().expect("one was asked");
        if !reply.status.is_success() {
            self.failed = Some(reply.status.name());
        }
        let blocks = self.blocks(block, count);
        self.content[blocks].fill(self.issued);
    }

    fn is_finished(&self) -> bool {
        self.failed.is_some()
    }
}

/// What was found at a point.
struct Found {
    report: MountReport,
    /// Reading as many pages one after the other.
    chase: Nanos,
    /// Transactions answered before.
    answered: u64,
    /// Of the transaction under way, if it was there.
    is_last_there: bool,
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["series", "point", "metric"]);
    let shorter = lab.size.pick(200, 20);
    lab.expect(SERIES.len() * usize::try_from(POINTS).expect("six"));
    let mut rate = 0.0;
    let mut without = Vec::new();
    for series in SERIES {
        let mut world = Written::new(lab.size, series, rate, shorter, lab.seed)?;
        for point in 1..=POINTS {
            lab.point(&format!("checkpoints {}, failure {point}", series.name()));
            world.write_until(Nanos::from_millis(STEP_S * 1_000 / shorter * u64::from(point)))?;
            if series == Checkpoints::Off && point == 1 {
                rate = world.log_bytes() as f64 * shorter as f64 / STEP_S as f64;
            }
            let found = world.kill(lab.seed + u64::from(point))?;
            push(&mut data, series, point, &found);
            if series == Checkpoints::Off {
                without.push((found.report.log_pages_read as f64, millis(recovery(&found.report))));
            }
        }
    }
    let growth = growth(&without, line(&without).context("six failures are a line")?);
    data.push(
        &["off", "6", "growth"],
        growth,
        "x",
        "the sixth over the first, less what it takes without any log",
    );
    Ok(data)
}

/// How much longer the last takes than the first, less what recovery takes without any log.
fn growth(points: &[(f64, f64)], fitted: Line) -> f64 {
    let of = |point: Option<&(f64, f64)>| point.map_or(f64::NAN, |point| point.1 - fitted.intercept);
    of(points.last()) / of(points.first())
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

fn recovery(report: &MountReport) -> Nanos {
    let phases = report.phases;
    phases.blocks + phases.checkpoint + phases.log + phases.new_checkpoint
}

fn push(data: &mut Data, series: Checkpoints, point: u32, found: &Found) {
    let report = &found.report;
    let note = format!(
        "{}; pages read {}, replayed {}; transactions answered {}, replayed {}; the one under way was {}; entries dropped {}",
        report.phases,
        report.log_pages_read,
        report.log_pages,
        found.answered,
        report.transactions,
        if found.is_last_there { "there" } else { "absent" },
        report.aborted_entries
    );
    let point = point.to_string();
    let keys = |metric| [series.name(), point.as_str(), metric];
    data.push(&keys("recovery"), millis(recovery(report)), "ms", &note);
    data.push(&keys("log_replay"), millis(report.phases.log), "ms", "");
    data.push(&keys("chase"), millis(found.chase), "ms", "");
    data.push(&keys("log_pages"), report.log_pages_read as f64, "x", "pages of the log that were read");
}

/// A run that is going on.
struct Written {
    rig: Rig<OxBlock>,
    writer: Writer,
    options: Vec<(&'static str, String)>,
    sector_bytes: u64,
}

impl Written {
    fn new(size: Size, series: Checkpoints, rate: f64, shorter: u64, seed: u64) -> anyhow::Result<Self> {
        let flash = rig::format(config(size)?)?;
        let geometry = flash.config().geometry.clone();
        let sector_bytes = u64::from(geometry.sector_bytes);
        let options = series.options(rate, shorter);
        let mut rig = rig::host(flash, Nanos::ZERO);
        rig::mount(&mut rig, &rig::options(&options)?)?;
        let sectors = u64::from(geometry.chunks_per_pu) * u64::from(geometry.sectors_per_chunk) * 32;
        let writer = Writer::new(sectors / 8, seed, rig.buffers_mut());
        Ok(Self { rig, writer, options, sector_bytes })
    }

    fn write_until(&mut self, until: Nanos) -> anyhow::Result<()> {
        let ended = self.rig.run(&mut self.writer, until);
        if interrupt::is_heard() {
            return Err(Interrupted.into());
        }
        if let Some(failed) = self.writer.failed {
            bail!("a write of the experiment failed: {failed}");
        }
        ensure!(ended == RunEnd::Stopped, "the writer stopped at {:?}", self.rig.clock().now());
        Ok(())
    }

    /// Bytes of log since the start.
    fn log_bytes(&self) -> u64 {
        rig::counter(&self.rig, "log_written_sectors") * self.sector_bytes
    }

    /// Power goes on a copy of the drive, which is mounted and looked at.
    fn kill(&self, seed: u64) -> anyhow::Result<Found> {
        let now = self.rig.clock().now();
        let flash = self.rig.device().fork().context("a drive in memory can be forked")?;
        let flash = rig::cut(flash, now, &mut Prng::new(seed))?;
        let mut rig = rig::host(flash, now);
        let report = rig::mount(&mut rig, &rig::options(&self.options)?)?;
        let is_last_there = self.verify(&mut rig)?;
        let chase = chase(&mut rig, report.log_pages_read)?;
        let answered = self.writer.issued - u64::from(self.writer.in_flight.is_some());
        Ok(Found { report, chase, answered, is_last_there })
    }

    /// Every answered transaction is there, and the one under way as a whole or not at all; which of the two.
    fn verify(&self, rig: &mut Rig<OxBlock>) -> anyhow::Result<bool> {
        let buffer = rig.buffers_mut().take(TRANSACTION_BLOCKS_MAX);
        let under_way = self.writer.in_flight.map(|(block, count)| self.writer.blocks(block, count));
        let under_way = under_way.unwrap_or(0..0);
        let mut seen = (0_usize, 0_usize);
        let step = usize::try_from(TRANSACTION_BLOCKS_MAX).expect("small");
        for (number, part) in (0_u64..).zip(self.writer.content.chunks(step)) {
            let block = number * u64::from(TRANSACTION_BLOCKS_MAX);
            let count = u32::try_from(part.len()).expect("small");
            let op = BlockOp::Read;
            let request = BlockRequest { tag: Tag(1), op, block, count, buffer: Some(buffer) };
            let reply = rig.ask(request);
            ensure!(reply.status.is_success(), "blocks from {block} on: {}", reply.status.name());
            for (sector, (&wanted, index)) in (0..).zip(part.iter().zip(number_to_index(block)..)) {
                let found = rig::stamped(rig.buffers_mut(), buffer, sector);
                if under_way.contains(&index) {
                    seen = (seen.0 + usize::from(found == self.writer.issued), seen.1 + 1);
                    if found == self.writer.issued {
                        continue;
                    }
                }
                ensure!(found == wanted, "block {index} holds {found}, but write {wanted} was answered");
            }
        }
        ensure!(
            seen.0 == 0 || seen.0 == seen.1,
            "{} of {} blocks of a transaction are there",
            seen.0,
            seen.1
        );
        rig.buffers_mut().give_back(buffer);
        Ok(seen.0 > 0)
    }
}

fn number_to_index(block: u64) -> usize {
    usize::try_from(block).expect("a region fits memory")
}

/// Reads as many pages of what is written on the drive, one when the other is there.
fn chase(rig: &mut Rig<OxBlock>, pages: u64) -> anyhow::Result<Nanos> {
    let mut caller = rig.caller();
    let geometry = caller.geometry().clone();
    let chunks = geometry.groups * geometry.pus_per_group * geometry.chunks_per_pu;
    let buffer = caller.buffers().take(geometry.ws_min);
    let (began, mut left, mut lost) = (caller.now(), pages, 0);
    'all: for chunk in (0..chunks).map(ChunkId) {
        let found = caller.chunk(chunk);
        let pages = if found.state == ChunkState::Closed { found.sectors / geometry.ws_min } else { 0 };
        for page in 0..pages {
            if left == 0 {
                break 'all;
            }
            let addresses =
                Addresses::Run { first: Ppa::new(chunk, page * geometry.ws_min), count: geometry.ws_min };
            let command = Command {
                tag: Tag(0),
                op: Op::Read,
                addresses,
                buffer: Some(buffer),
                buffer_first: 0,
                oob: true,
                plane_mode: PlaneMode::Single,
            };
            let ends = caller.call(&[command]).map_err(|_| anyhow::anyhow!("the power went in a chase"))?;
            lost += u64::from(!ends[0].status.is_success());
            left -= 1;
        }
    }
    let took = caller.now().saturating_since(began);
    caller.buffers().give_back(buffer);
    // What was being written when the power went cannot be read, and takes its time all the same.
    ensure!(lost <= u64::from(geometry.groups * geometry.pus_per_group) * 4, "{lost} pages cannot be read");
    ensure!(left == 0, "the drive has {left} pages fewer than its log");
    Ok(took)
}

/// What is known of numbers that are off.
fn why(ours: &PaperTable, row: &PaperRow, _: f64) -> Option<String> {
    let chase = all(ours, "off", "chase");
    let grown = chase.last()? / chase.first()?;
    (ours.key(row, "metric") == "growth").then(|| {
        format!(
            "most of it does not depend on the log (a new checkpoint, the map), and the log is read from all units together; read one \
             page after the other, as OX reads it, it grows {grown:.1} times"
        )
    })
}

fn value(ours: &PaperTable, series: &str, point: u32, metric: &str) -> Option<f64> {
    ours.value(&[("series", series), ("point", &point.to_string()), ("metric", metric)])
}

/// A metric of a series at all its points.
fn all(ours: &PaperTable, series: &str, metric: &str) -> Vec<f64> {
    (1..=POINTS).filter_map(|point| value(ours, series, point, metric)).collect()
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let steps = Axis::linear("failure", "").ticks(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut panel = Panel::new("recovery");
    let points = |values: &[f64]| -> Vec<Point> {
        (1_u32..).zip(values).map(|(x, &y)| Point::new(f64::from(x), y)).collect()
    };
    for series in SERIES {
        let name = match series {
            Checkpoints::Off => "no checkpoints".to_owned(),
            Checkpoints::Every(_) => format!("every {}", series.name()),
            Checkpoints::Within => format!("log read within {BOUND_MS} ms"),
        };
        panel = panel.series(Series::new(&name, Role::Ours, points(&all(ours, series.name(), "recovery"))));
    }
    let chase = Series::new("one page after the other", Role::Ours, points(&all(ours, "off", "chase")));
    let striped = Series::new("striped, all together", Role::Ours, points(&all(ours, "off", "log_replay")));
    let chart = ChartSpec::new("Recovery after a kill", steps, Axis::linear("time", "ms"))
        .subtitle("Times are shortened; the paper's last point without checkpoints is close to 100 s.")
        .source("Paper: CIDR 2020, figure 3; only its text gives numbers.")
        .panel(panel)
        .panel(Panel::new("the log without checkpoints").series(chase).series(striped));
    Ok(report.verdicts(verdicts(ours)).chart(chart))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let off = all(ours, "off", "recovery");
    let pages = all(ours, "off", "log_pages");
    let points: Vec<(f64, f64)> = pages.into_iter().zip(off.iter().copied()).collect();
    let linear = "Without checkpoints recovery is linear in the log (R2 of 0.98 or more), and six times the first at the sixth \
                  failure, less what it takes without any log (15 %).";
    let (Some(fitted), true) = (line(&points), points.len() == 6) else {
        return vec![Verdict::not_evaluated("F3a", linear, "not all six failures were run")];
    };
    let growth = growth(&points, fitted);
    let sentence = format!(
        "R2 {:.4}; {:.2} ms and {:.4} ms a page; from the first to the sixth {growth:.2} times",
        fitted.fit, fitted.intercept, fitted.slope
    );
    let holds = fitted.fit >= 0.98 && (growth / 6.0 - 1.0).abs() <= 0.15;
    vec![
        Verdict::decided("F3a", linear, holds, sentence),
        bounded(ours, fitted),
        flat(ours, off[5] - off[0]),
        alike(ours, off[5]),
        short(ours, off[5]),
        within(ours),
        chased(ours),
        chase_is_linear(ours),
    ]
}

/// Pages of log between checkpoints: what is written in an interval, by the rate of the run without.
fn interval_pages(ours: &PaperTable, seconds: f64) -> Option<f64> {
    Some(value(ours, "off", 6, "log_pages")? / (STEP_S as f64 * f64::from(POINTS)) * seconds)
}

fn bounded(ours: &PaperTable, fitted: Line) -> Verdict {
    let claim = "With checkpoints recovery takes no longer than an interval of log, and a quarter.";
    let mut told = Vec::new();
    let mut holds = true;
    for (name, seconds) in [("30 s", 30.0), ("10 s", 10.0)] {
        let most = all(ours, name, "recovery").into_iter().fold(0.0, f64::max);
        let bound = interval_pages(ours, seconds).unwrap_or(0.0) * fitted.slope * 1.25 + fitted.intercept;
        holds &= most <= bound;
        told.push(format!("{name}: at most {most:.2} ms, bound {bound:.2} ms"));
    }
    Verdict::decided("F3b", claim, holds, told.join("; "))
}

fn flat(ours: &PaperTable, rise: f64) -> Verdict {
    let claim = "With checkpoints recovery does not grow: from the second failure on it rises by less than 5 % of what it does \
                 without.";
    let rises: Vec<(&str, f64)> = ["30 s", "10 s"]
        .into_iter()
        .filter_map(|name| {
            let points: Vec<(f64, f64)> =
                (2_u32..).map(f64::from).zip(all(ours, name, "recovery").into_iter().skip(1)).collect();
            Some((name, line(&points)?.slope))
        })
        .collect();
    let percent = |slope: f64| slope / (rise / 5.0) * 100.0;
    let told: Vec<String> =
        rises.iter().map(|(name, slope)| format!("{name}: {:+.1} %", percent(*slope))).collect();
    let holds = rises.iter().all(|(_, slope)| percent(*slope).abs() < 5.0);
    Verdict::decided("F3c", claim, holds, told.join(", "))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn alike(ours: &PaperTable, last: f64) -> Verdict {
    let claim = "10 and 30 s do not differ significantly: their means are within 10 % of the last without checkpoints.";
    let (ten, thirty) = (mean(&all(ours, "10 s", "recovery")), mean(&all(ours, "30 s", "recovery")));
    let sentence = format!("{ten:.2} and {thirty:.2} ms of {last:.2} ms");
    Verdict::decided("F3d", claim, (ten - thirty).abs() < last / 10.0, sentence)
}

fn short(ours: &PaperTable, last: f64) -> Verdict {
    let claim =
        "Recovery becomes dramatically shorter: at the last failure by half of what the log is, or more.";
    let thirty = mean(&all(ours, "30 s", "recovery"));
    let ratio = STEP_S as f64 * f64::from(POINTS) / 30.0;
    let sentence = format!("x{:.1}, where the log of the run is x{ratio:.0} that of 30 s", last / thirty);
    Verdict::decided("F3e", claim, last / thirty >= ratio / 2.0, sentence)
}

fn within(ours: &PaperTable) -> Verdict {
    let claim = "Ours: a bound on the time the log is read holds at every failure.";
    let most = all(ours, "target", "log_replay").into_iter().fold(0.0, f64::max);
    Verdict::decided("F3f", claim, most <= BOUND_MS as f64, format!("at most {most:.2} ms of {BOUND_MS} ms"))
}

fn chase_is_linear(ours: &PaperTable) -> Verdict {
    let claim = "Read one page after the other, as OX reads it, the log alone takes time linear in its length (R2 of 0.98 or more), \
                 six times the first at the sixth failure (15 %).";
    let chase = all(ours, "off", "chase");
    let points: Vec<(f64, f64)> =
        all(ours, "off", "log_pages").into_iter().zip(chase.iter().copied()).collect();
    let (Some(fitted), Some(first), Some(last)) = (line(&points), chase.first(), chase.last()) else {
        return Verdict::not_evaluated("F3h", claim, "no log was read so");
    };
    let growth = last / first;
    let holds = fitted.fit >= 0.98 && (growth / 6.0 - 1.0).abs() <= 0.15;
    Verdict::decided("F3h", claim, holds, format!("R2 {:.4}, x{growth:.2}", fitted.fit))
}

fn chased(ours: &PaperTable) -> Verdict {
    let claim = "Ours: pages read all together take a twentieth of one after the other, at the last failure without checkpoints.";
    let get = |metric| value(ours, "off", POINTS, metric).unwrap_or(f64::NAN);
    let (chase, replay) = (get("chase"), get("log_replay"));
    let sentence =
        format!("{chase:.2} ms one after the other, {replay:.2} ms together: x{:.1}", chase / replay);
    Verdict::decided("F3g", claim, chase >= 20.0 * replay, sentence)
}
