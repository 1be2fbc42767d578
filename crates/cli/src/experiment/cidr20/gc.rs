//! Garbage collection in one marked group: how many I/Os meet it, and whether the others notice.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::rig::{self, Rig};
use super::watched::{Seen, Watched};
use anyhow::{Context, anyhow, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, RunEnd};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{BufId, Buffers, Geometry, Source, Tag, TargetId};
use ocssd_report::{
    Axis, ChartSpec, Panel, PaperRow, PaperTable, Point, Report, Role, Series, Style, Verdict,
};
use ocssd_targets::ox_block::{MountReport, OxBlock};
use std::collections::BTreeMap;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-gc",
    aliases: &[],
    title: "Who meets garbage collection",
    source: "CIDR 2020, section 4.3",
    claim: "With garbage collected in one marked group at a time, 93.7 % of I/O is unaffected on a drive of 16 groups, and 87.5 % on \
            one of 8.",
    method: "ox-block over 64 units in 16 or 8 groups (page and write unit 16 KiB, chunks of 1 MiB, read 70 us, program 600 us, erase \
             3 ms), 25 % spare. Every block is written once, then as many again at random, so that garbage is collected all the time. \
             Then 4 KiB random reads come every 160 us and 16 KiB random overwrites every 3.2 ms, whatever is answered: garbage \
             collection keeps up with as much in one group.\n\n\
             An I/O is affected if the group its block lies in (of a write: comes to lie in) is marked when the I/O comes or when it is \
             answered. unaffected counts I/Os during which some group is marked; the share of these is beside it. The log, which \
             every write waits for, is not counted as where a write lies.\n\n\
             no_gc is the same load on the drive after the first pass, while spare chunks last. marked is gc_groups_max; as \
             many as there are groups is the contrast: victims are chosen anywhere.",
    paper: include_str!("../../../../../experiments/cidr20-gc/paper.csv"),
    run,
    report,
    why,
};

const READ_EVERY: Nanos = Nanos::from_micros(160);
const WRITE_EVERY: Nanos = Nanos::from_micros(3_200);
/// Blocks of an overwrite: a write unit, so that nothing is filled.
const WRITE_BLOCKS: u32 = 4;
/// Units of either drive.
const UNITS: u32 = 64;

/// I/Os that come at their times.
struct Paced {
    prng: Prng,
    blocks: u64,
    next: [Nanos; 2],
    end: Nanos,
    /// What the target had no room for.
    refused: Option<BlockRequest>,
    in_flight: BTreeMap<u32, BufId>,
    tag: u32,
    failed: Option<&'static str>,
}

impl Paced {
    fn new(blocks: u64, seed: u64, now: Nanos, time: Nanos) -> Self {
        let prng = Prng::new(seed).split("paced");
        let next = [now + READ_EVERY, now + WRITE_EVERY];
        let (refused, in_flight, failed) = (None, BTreeMap::new(), None);
        Self { prng, blocks, next, end: now + time, refused, in_flight, tag: 0, failed }
    }
}

impl Source<Watched> for Paced {
    fn next_arrival(&self) -> Option<Nanos> {
        let next = self.next[0].min(self.next[1]);
        (next < self.end).then_some(next)
    }

    fn poll_request(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(request) = self.refused.take() {
            return Some((TargetId(0), request));
        }
        let which = usize::from(self.next[1] < self.next[0]);
        if self.next[which] > now || self.next[which] >= self.end {
            return None;
        }
        let (op, count) =
            if which == 1 { (BlockOp::Write { fua: false }, WRITE_BLOCKS) } else { (BlockOp::Read, 1) };
        self.next[which] += [READ_EVERY, WRITE_EVERY][which];
        self.tag += 1;
        let block = self.prng.below(self.blocks / u64::from(count)) * u64::from(count);
        let buffer = buffers.take(count);
        self.in_flight.insert(self.tag, buffer);
        Some((TargetId(0), BlockRequest { tag: Tag(self.tag), op, block, count, buffer: Some(buffer) }))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: BlockRequest) {
        self.refused = Some(request);
    }

    fn on_reply(&mut self, _: Nanos, _: TargetId, reply: BlockReply, buffers: &mut Buffers) {
        if !reply.status.is_success() {
            self.failed = Some(reply.status.name());
        }
        if let Some(buffer) = self.in_flight.remove(&reply.tag.0) {
            buffers.give_back(buffer);
        }
    }

    fn is_finished(&self) -> bool {
        self.next_arrival().is_none() && self.in_flight.is_empty() && self.refused.is_none()
    }
}

struct Ssd {
    rig: Rig<Watched>,
    blocks: u64,
    seed: u64,
}

impl Ssd {
    /// A drive whose every block was written once.
    fn new(groups: u32, marked: u32, seed: u64) -> anyhow::Result<Self> {
        let geometry = Geometry::example(groups, UNITS / groups, 28, 256, 4);
        let flash = rig::format(rig::drive(&geometry, Nanos::from_micros(600))?)?;
        let units = rig::units(&flash);
        let mut rig: Rig<Watched> = rig::host(flash, Nanos::ZERO);
        let options = [
            ("over_provisioning_percent", "25".to_owned()),
            ("log_copies", "1".to_owned()),
            ("gc_groups_max", marked.to_string()),
            ("seed", seed.to_string()),
        ];
        let made: Result<(OxBlock, MountReport), _> =
            OxBlock::mount(&mut rig.caller(), &units, &rig::options(&options)?);
        let (target, _) = made.map_err(|error| anyhow!("{error}"))?;
        let watched = Watched::new(target);
        let blocks = watched.blocks();
        rig.add(Box::new(watched));
        let mut ssd = Self { rig, blocks, seed };
        let buffer = ssd.rig.buffers_mut().take(256);
        rig::fill(&mut ssd.rig, blocks, buffer, 256)?;
        Ok(ssd)
    }

    /// As many blocks as there are, written at random.
    fn age(&mut self) -> anyhow::Result<()> {
        let mut prng = Prng::new(self.seed).split("age");
        let each = u64::from(WRITE_BLOCKS);
        let units = self.blocks / each;
        let runs = (0..units).map(|_| (prng.below(units) * each, WRITE_BLOCKS));
        let runs: Vec<(u64, u32)> = runs.collect();
        let buffer = self.rig.buffers_mut().take(WRITE_BLOCKS);
        rig::write_all(&mut self.rig, runs.into_iter(), buffer)
    }

    fn measure(&mut self, time: Nanos) -> anyhow::Result<Vec<Seen>> {
        // What was asked before is not what is measured.
        self.rig.target_mut(TargetId(0)).take_seen();
        let now = self.rig.clock().now();
        let mut paced = Paced::new(self.blocks, self.seed, now, time);
        let ended = self.rig.run(&mut paced, Nanos::MAX);
        ensure!(ended == RunEnd::Finished && paced.failed.is_none(), "{ended:?}, {:?}", paced.failed);
        Ok(self.rig.target_mut(TargetId(0)).take_seen())
    }
}

/// Percentile of what some of these took, in microseconds.
fn percentile(seen: &[Seen], percent: f64, wanted: impl Fn(&Seen) -> bool) -> Option<f64> {
    let mut times: Vec<u64> = seen.iter().filter(|one| wanted(one)).map(|one| one.took.0).collect();
    times.sort_unstable();
    let rank = (times.len() as f64 * percent / 100.0).ceil().max(1.0);
    // Ranks are small and whole.
    let index = (0..times.len()).find(|&index| index as f64 + 1.0 >= rank)?;
    Some(times[index] as f64 / 1e3)
}

fn share(seen: &[Seen], of: impl Fn(&Seen) -> bool, which: impl Fn(&Seen) -> bool) -> f64 {
    let all = seen.iter().filter(|one| of(one)).count();
    let some = seen.iter().filter(|one| of(one) && which(one)).count();
    some as f64 / all.max(1) as f64 * 100.0
}

/// What is known of numbers that are off.
fn why(ours: &PaperTable, row: &PaperRow, percent: f64) -> Option<String> {
    (ours.key(row, "marked") == "4" && percent > 0.0).then(|| {
        "that number is of four groups marked at all times; here at most four are, and fewer on average, for victims end one by one"
            .to_owned()
    })
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["groups", "marked", "metric"]);
    let points: &[(u32, u32)] =
        lab.size.pick(&[(16, 1), (16, 16)], &[(16, 1), (16, 4), (16, 16), (8, 1), (8, 4), (8, 8)]);
    lab.expect(points.len() + 1);
    let time = Nanos::from_secs(lab.size.pick(3, 20));
    let mut no_gc: BTreeMap<u32, [f64; 2]> = BTreeMap::new();
    for &(groups, marked) in points {
        lab.point(&format!("{groups} groups, {marked} marked"));
        let mut ssd = Ssd::new(groups, marked, lab.seed)?;
        let names =
            [groups.to_string(), if marked == groups { "all".to_owned() } else { marked.to_string() }];
        let keys = |metric| [names[0].as_str(), names[1].as_str(), metric];
        if let std::collections::btree_map::Entry::Vacant(place) = no_gc.entry(groups) {
            let quiet = ssd.measure(Nanos::from_secs(2))?;
            let collected = share(&quiet, |_| true, |one| one.is_any_marked);
            ensure!(collected == 0.0, "garbage was collected in {collected} % of I/O of a drive with room");
            let of = |is_read| percentile(&quiet, 99.0, move |one| one.is_read == is_read).context("no I/O");
            place.insert([of(true)?, of(false)?]);
        }
        ssd.age()?;
        let seen = ssd.measure(time)?;
        push(&mut data, &seen, &keys, no_gc[&groups])?;
    }
    Ok(data)
}

fn push<'a>(
    data: &mut Data,
    seen: &[Seen],
    keys: &dyn Fn(&'a str) -> [&'a str; 3],
    no_gc: [f64; 2],
) -> anyhow::Result<()> {
    let note = format!(
        "reads {}, writes {}; a group was marked in {:.1} % of I/O; p50 of reads {:.0} us",
        seen.iter().filter(|one| one.is_read).count(),
        seen.iter().filter(|one| !one.is_read).count(),
        share(seen, |_| true, |one| one.is_any_marked),
        percentile(seen, 50.0, |one| one.is_read).unwrap_or(0.0)
    );
    let free = |one: &Seen| !one.is_affected;
    data.push(&keys("unaffected"), share(seen, |one| one.is_any_marked, free), "%", &note);
    data.push(&keys("unaffected_reads"), share(seen, |one| one.is_any_marked && one.is_read, free), "%", "");
    data.push(
        &keys("unaffected_writes"),
        share(seen, |one| one.is_any_marked && !one.is_read, free),
        "%",
        "",
    );
    for (is_read, name) in [(true, "reads"), (false, "writes")] {
        for (affected, word) in [(false, "unaffected"), (true, "affected")] {
            let wanted =
                |one: &Seen| one.is_read == is_read && one.is_any_marked && one.is_affected == affected;
            let Some(p99) = percentile(seen, 99.0, wanted) else { continue };
            let metric: &'static str = match (name, word) {
                ("reads", "unaffected") => "p99_unaffected_reads",
                ("reads", _) => "p99_affected_reads",
                (_, "unaffected") => "p99_unaffected_writes",
                _ => "p99_affected_writes",
            };
            data.push(&keys(metric), p99, "us", "");
        }
    }
    data.push(&keys("p99_no_gc_reads"), no_gc[0], "us", "");
    data.push(&keys("p99_no_gc_writes"), no_gc[1], "us", "");
    Ok(())
}

fn value(ours: &PaperTable, groups: &str, marked: &str, metric: &str) -> Option<f64> {
    ours.value(&[("groups", groups), ("marked", marked), ("metric", metric)])
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let names = ["one", "four", "anywhere"];
    let mut shares = ChartSpec::new(
        "I/O that meets no garbage collection",
        Axis::categories("groups marked", &names),
        Axis::linear("unaffected", "%").range(0.0, 100.0),
    )
    .source("Paper: CIDR 2020, section 4.3; with four marked: computed, 1 - 4/N.");
    let mut tails = ChartSpec::new(
        "99th percentile of reads",
        Axis::categories("groups marked", &names),
        Axis::linear("latency", "us"),
    )
    .subtitle("Reads whose group is marked, reads whose group is not, and the same reads without garbage collection.");
    for groups in ours.distinct("groups") {
        let points = |table: &PaperTable, metric: &str| -> Vec<Point> {
            let marks = [(0.0, "1"), (1.0, "4"), (2.0, "all")];
            let found = marks
                .iter()
                .filter_map(|&(x, marked)| Some(Point::new(x, value(table, groups, marked, metric)?)));
            found.collect()
        };
        let bars = |name: &str, role, points| Series::new(name, role, points).style(Style::Bars);
        let panel = Panel::new(&format!("{groups} groups"))
            .series(bars("all I/O", Role::Ours, points(ours, "unaffected")))
            .series(bars("reads", Role::Ours, points(ours, "unaffected_reads")))
            .series(bars("writes", Role::Ours, points(ours, "unaffected_writes")))
            .series(bars("all I/O", Role::Paper, points(&numbers.paper, "unaffected")));
        shares = shares.panel(panel);
        let panel = Panel::new(&format!("{groups} groups"))
            .series(bars("affected", Role::Ours, points(ours, "p99_affected_reads")))
            .series(bars("unaffected", Role::Ours, points(ours, "p99_unaffected_reads")))
            .series(bars("no collection", Role::Ours, points(ours, "p99_no_gc_reads")));
        tails = tails.panel(panel);
    }
    Ok(report.verdicts(verdicts(ours)).chart(shares).chart(tails))
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let mut verdicts = vec![
        at_least(ours, "GC1", "1", "With one marked group of N, at least 1 - 1/N of I/O is unaffected."),
        at_least(ours, "GC2", "4", "With four, at least 1 - 4/N (75 and 50 %)."),
    ];
    let claim = "Reads spread evenly: with one marked group 1/N of reads meet it, within 1 point.";
    let mut told = Vec::new();
    let mut holds = true;
    for groups in ours.distinct("groups") {
        let Some(reads) = value(ours, groups, "1", "unaffected_reads") else { continue };
        let expected = 100.0 / groups.parse::<f64>().unwrap_or(f64::NAN);
        holds &= (100.0 - reads - expected).abs() <= 1.0;
        told.push(format!("{groups} groups: {:.2} %, {expected:.2} % expected", 100.0 - reads));
    }
    verdicts.push(Verdict::decided("GC3", claim, holds, told.join("; ")));
    verdicts.push(avoided(ours));
    verdicts.push(near(ours, "GC5", "reads"));
    verdicts.push(near(ours, "GC6", "writes"));
    verdicts.push(contrast(ours));
    verdicts
}

fn at_least(ours: &PaperTable, id: &str, marked: &str, claim: &str) -> Verdict {
    let mut told = Vec::new();
    let mut holds = true;
    for groups in ours.distinct("groups") {
        let Some(found) = value(ours, groups, marked, "unaffected") else { continue };
        let (n, g) = (groups.parse::<f64>().unwrap_or(f64::NAN), marked.parse::<f64>().unwrap_or(f64::NAN));
        holds &= found >= (1.0 - g / n) * 100.0;
        told.push(format!("{groups} groups: {found:.2} % of at least {:.2} %", (1.0 - g / n) * 100.0));
    }
    if told.is_empty() {
        return Verdict::not_evaluated(id, claim, format!("{marked} marked groups were not run"));
    }
    Verdict::decided(id, claim, holds, told.join("; "))
}

fn avoided(ours: &PaperTable) -> Verdict {
    let claim = "Users' writes avoid the marked group: less than 1 % of them come to lie there.";
    let found: Vec<(&str, f64)> = ours
        .distinct("groups")
        .into_iter()
        .filter_map(|groups| Some((groups, 100.0 - value(ours, groups, "1", "unaffected_writes")?)))
        .collect();
    let told: Vec<String> =
        found.iter().map(|(groups, percent)| format!("{groups} groups: {percent:.2} %")).collect();
    Verdict::decided("GC4", claim, found.iter().all(|(_, percent)| *percent < 1.0), told.join("; "))
}

fn near(ours: &PaperTable, id: &str, what: &str) -> Verdict {
    let claim =
        format!("p99 of {what} whose group is not marked is within 5 % of that without garbage collection.");
    let mut told = Vec::new();
    let mut holds = true;
    for groups in ours.distinct("groups") {
        let get = |metric: &str| value(ours, groups, "1", &format!("{metric}_{what}"));
        let (Some(found), Some(quiet)) = (get("p99_unaffected"), get("p99_no_gc")) else { continue };
        let percent = (found / quiet - 1.0) * 100.0;
        holds &= percent.abs() <= 5.0;
        told.push(format!("{groups} groups: {found:.0} us, {quiet:.0} us without, {percent:+.1} %"));
    }
    Verdict::decided(id, &claim, holds, told.join("; "))
}

fn contrast(ours: &PaperTable) -> Verdict {
    let claim = "Ours: with victims anywhere clearly more I/O is affected, twice as much or more.";
    let mut told = Vec::new();
    let mut holds = true;
    for groups in ours.distinct("groups") {
        let get = |marked| value(ours, groups, marked, "unaffected").map(|found| 100.0 - found);
        let (Some(one), Some(all)) = (get("1"), get("all")) else { continue };
        holds &= all >= 2.0 * one;
        told.push(format!("{groups} groups: {all:.1} % against {one:.1} %"));
    }
    Verdict::decided("GC7", claim, holds, told.join("; "))
}
