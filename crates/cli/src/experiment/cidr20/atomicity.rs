//! Pages of a database that are larger than a block, when the power goes.

use super::super::catalogue::{Experiment, Numbers};
use super::super::data::Data;
use super::super::lab::Lab;
use super::rig::{self, AnyRig};
use crate::interrupt::{self, Interrupted};
use anyhow::{Context, anyhow, ensure};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Clock, Requests, RunEnd};
use ocssd_flash::Flash;
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::{BufId, Geometry, Tag};
use ocssd_report::{Axis, ChartSpec, Panel, PaperTable, Point, Report, Role, Series, Style, Verdict};
use ocssd_targets::registry::TargetSpec;
use ocssd_targets::{Layout, registry};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "cidr20-atomicity",
    aliases: &[],
    title: "Torn pages of a database",
    source: "CIDR 2020, section 4.4",
    claim: "Writing multiple blocks of a block device might result in partial failures that must be handled by the data system, \
            as by InnoDB's double buffering; a storage interface can provide transactional guarantees instead.",
    method: "A database of 64 pages of 16 KiB on a drive of 4 units (write unit 12 sectors, three pages of which are not whole ones). A \
             round writes 8 pages at random and 8 blocks of 4 KiB of its own log, all at once, then flushes. The power goes at a \
             random time of a round; the drive is mounted again and every page read: a page is torn if its four blocks are not of \
             one write. After each cut torn pages are written anew.\n\n\
             pblk: a block device with a write buffer, in its improved mode. pblk_double_write: the same, and each round first \
             writes its pages to a place of their own and flushes, as InnoDB does; a torn page counts as lost only if its copy there \
             is torn too. ox_block: every write is a transaction, durable when answered. What a flush or ox-block answered must be there \
             after the cut, or the run fails.\n\n\
             cost: rounds without cuts, in sectors programmed for each sector of a page, all causes included, and in time.",
    paper: include_str!("../../../../../experiments/cidr20-atomicity/paper.csv"),
    run,
    report,
    why: super::unexplained,
};

/// Pages of the database, and blocks of a page.
const PAGES: u64 = 64;
const PAGE_BLOCKS: u32 = 4;
/// Pages of a round, and blocks of the database's log in it.
const ROUND: u64 = 8;
/// Where the log begins, and where copies of pages go.
const LOG: u64 = 256;
const COPIES: u64 = 512;
/// Blocks of the log before it begins again.
const LOG_BLOCKS: u64 = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Pblk,
    DoubleWrite,
    OxBlock,
}

const SYSTEMS: [System; 3] = [System::Pblk, System::DoubleWrite, System::OxBlock];

impl System {
    const fn name(self) -> &'static str {
        match self {
            Self::Pblk => "pblk",
            Self::DoubleWrite => "pblk_double_write",
            Self::OxBlock => "ox_block",
        }
    }

    const fn kind(self) -> &'static str {
        if matches!(self, Self::OxBlock) { "ox-block" } else { "pblk" }
    }
}

/// A page that a round writes.
#[derive(Clone, Copy, Debug)]
struct Write {
    page: u64,
    version: u64,
    buffer: BufId,
}

struct Database {
    system: System,
    rig: AnyRig,
    /// The version of each page that must be there or be followed.
    pages: Vec<u64>,
    version: u64,
    log: u64,
    prng: Prng,
}

/// What a cut did to the pages.
#[derive(Clone, Copy, Default)]
struct Damage {
    torn: u64,
    lost: u64,
}

impl Database {
    fn new(system: System, seed: u64) -> anyhow::Result<Self> {
        let geometry = Geometry::example(2, 2, 32, 96, 12);
        let flash = rig::format(rig::drive(&geometry, Nanos::from_micros(600))?)?;
        let prng = Prng::new(seed).split(system.name());
        let rig = mount(system, flash, Nanos::ZERO)?;
        let pages = vec![0; usize::try_from(PAGES).expect("small")];
        let mut database = Self { system, rig, pages, version: 0, log: 0, prng };
        let all: Vec<u64> = (0..PAGES).collect();
        database.rewrite(&all)?;
        Ok(database)
    }

    fn write(&mut self, page: u64) -> Write {
        self.version += 1;
        let buffer = self.rig.buffers_mut().take(PAGE_BLOCKS);
        let version = self.version;
        rig::stamp(self.rig.buffers_mut(), buffer, PAGE_BLOCKS, version);
        Write { page, version, buffer }
    }

    /// Writes pages and waits until they are there for good.
    fn rewrite(&mut self, pages: &[u64]) -> anyhow::Result<()> {
        let writes: Vec<Write> = pages.iter().map(|&page| self.write(page)).collect();
        let phases = [in_place(&writes), vec![flush()]];
        let done = self.run(&phases, Nanos::MAX)?;
        ensure!(done == phases.len(), "pages cannot be written");
        for write in &writes {
            self.pages[index(write.page)] = write.version;
            self.rig.buffers_mut().give_back(write.buffer);
        }
        Ok(())
    }

    /// Runs phases one after the other until a time; how many ended. A reply that is no success is an error.
    fn run(&mut self, phases: &[Vec<BlockRequest>], until: Nanos) -> anyhow::Result<usize> {
        for (done, phase) in phases.iter().enumerate() {
            let mut requests = Requests::default();
            phase.iter().for_each(|&request| requests.push(request));
            let ended = self.rig.run(&mut requests, until);
            let failed = requests.take_replies().into_iter().find(|reply| !reply.status.is_success());
            if let Some(reply) = failed {
                return Err(anyhow!("{}: a request failed: {}", self.system.name(), reply.status.name()));
            }
            if ended != RunEnd::Finished {
                return Ok(done);
            }
        }
        Ok(phases.len())
    }

    /// A round: what it writes, and its phases.
    fn round(&mut self) -> (Vec<Write>, Vec<Vec<BlockRequest>>) {
        let mut chosen: Vec<u64> = Vec::new();
        while chosen.len() < index(ROUND) {
            let page = self.prng.below(PAGES);
            if !chosen.contains(&page) {
                chosen.push(page);
            }
        }
        let writes: Vec<Write> = chosen.into_iter().map(|page| self.write(page)).collect();
        let mut mixed = Vec::new();
        for (number, write) in (0..).zip(in_place(&writes)) {
            let block = LOG + (self.log + number) % LOG_BLOCKS;
            mixed.push(request(tag(ROUND + number), block, 1, write.buffer));
            mixed.push(write);
        }
        self.log += ROUND;
        let mut phases = vec![mixed, vec![flush()]];
        if self.system == System::DoubleWrite {
            let copies = (0..).zip(&writes).map(|(number, write)| {
                request(
                    tag(number),
                    COPIES + number * u64::from(PAGE_BLOCKS),
                    PAGE_BLOCKS,
                    Some(write.buffer),
                )
            });
            phases.splice(0..0, [copies.collect(), vec![flush()]]);
        }
        (writes, phases)
    }

    /// A round that the power ends within `time`, or that ends before it.
    fn cut(&mut self, time: Nanos) -> anyhow::Result<Damage> {
        let (writes, phases) = self.round();
        let until = self.rig.clock().now() + Nanos(self.prng.below(time.0));
        let done = self.run(&phases, until)?;
        let is_durable = done == phases.len();
        let now = self.rig.clock().now();
        let flash = self.rig.device().fork().context("a drive in memory can be forked")?;
        let flash = rig::cut(flash, now, &mut self.prng)?;
        self.rig = mount(self.system, flash, now)?;
        self.look(&writes, is_durable)
    }

    /// Reads all pages, and writes anew those that are torn.
    fn look(&mut self, writes: &[Write], is_durable: bool) -> anyhow::Result<Damage> {
        let (mut damage, mut torn) = (Damage::default(), Vec::new());
        for page in 0..PAGES {
            let found = self.read(page * u64::from(PAGE_BLOCKS))?;
            let written = writes.iter().position(|write| write.page == page);
            let new = written.map(|at| writes[at].version);
            let old = self.pages[index(page)];
            let is_whole = found.iter().all(|&version| version == found[0]);
            if is_whole {
                ensure!(
                    Some(found[0]) == new || found[0] == old && !(is_durable && new.is_some()),
                    "{}: page {page} holds write {}, but {old} or {new:?} was written (flushed: {is_durable})",
                    self.system.name(),
                    found[0]
                );
                self.pages[index(page)] = found[0];
                continue;
            }
            let at = written.ok_or_else(|| anyhow!("page {page} is torn, and nobody wrote it: {found:?}"))?;
            ensure!(!is_durable, "page {page} is torn, and was flushed");
            damage.torn += 1;
            torn.push(page);
            let copy = COPIES + u64::try_from(at).expect("small") * u64::from(PAGE_BLOCKS);
            let is_copied =
                self.system == System::DoubleWrite && self.read(copy)?.iter().all(|&v| Some(v) == new);
            damage.lost += u64::from(!is_copied);
        }
        self.rewrite(&torn)?;
        Ok(damage)
    }

    fn read(&mut self, block: u64) -> anyhow::Result<[u64; 4]> {
        let buffer = self.rig.buffers_mut().take(PAGE_BLOCKS);
        let request = BlockRequest { op: BlockOp::Read, ..request(Tag(0), block, PAGE_BLOCKS, Some(buffer)) };
        let reply = self.rig.ask(request);
        ensure!(reply.status.is_success(), "block {block} cannot be read: {}", reply.status.name());
        let found = [0, 1, 2, 3].map(|sector| rig::stamped(self.rig.buffers_mut(), buffer, sector));
        self.rig.buffers_mut().give_back(buffer);
        Ok(found)
    }

    /// Rounds without cuts: sectors programmed for each of a page, and the time of a round.
    fn cost(&mut self, rounds: u32) -> anyhow::Result<(f64, Nanos)> {
        let written = self.rig.device().counters().sectors_written;
        let began = self.rig.clock().now();
        for _ in 0..rounds {
            let (writes, phases) = self.round();
            ensure!(self.run(&phases, Nanos::MAX)? == phases.len(), "a round did not end");
            for write in writes {
                self.pages[index(write.page)] = write.version;
                self.rig.buffers_mut().give_back(write.buffer);
            }
        }
        let written = self.rig.device().counters().sectors_written - written;
        let of_pages = f64::from(rounds) * ROUND as f64 * f64::from(PAGE_BLOCKS);
        let took = self.rig.clock().now().saturating_since(began);
        Ok((written as f64 / of_pages, Nanos(took.0 / u64::from(rounds))))
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

fn tag(number: u64) -> Tag {
    Tag(u32::try_from(number).expect("a round is small"))
}

fn request(tag: Tag, block: u64, count: u32, buffer: Option<BufId>) -> BlockRequest {
    BlockRequest { tag, op: BlockOp::Write { fua: false }, block, count, buffer }
}

fn flush() -> BlockRequest {
    BlockRequest { op: BlockOp::Flush, ..request(Tag(1_000), 0, 0, None) }
}

fn in_place(writes: &[Write]) -> Vec<BlockRequest> {
    let block = |write: &Write| write.page * u64::from(PAGE_BLOCKS);
    let one =
        |(number, write): (u64, &Write)| request(tag(number), block(write), PAGE_BLOCKS, Some(write.buffer));
    (0..).zip(writes).map(one).collect()
}

fn mount(system: System, flash: Flash, now: Nanos) -> anyhow::Result<AnyRig> {
    let units = rig::units(&flash);
    let mut rig: AnyRig = rig::host(flash, now);
    let options = [("over_provisioning_percent".to_owned(), "60".to_owned())];
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
    let kind = registry::find(system.kind()).map_err(anyhow::Error::msg)?;
    let made = kind.make(&mut rig.caller(), &spec).map_err(anyhow::Error::msg)?;
    rig.add(made.target);
    Ok(rig)
}

fn run(lab: &mut Lab) -> anyhow::Result<Data> {
    let mut data = lab.data(&["system", "metric"]);
    lab.expect(SYSTEMS.len());
    let cuts = lab.size.pick(150, 10_000);
    for system in SYSTEMS {
        lab.point(&format!("{}, {cuts} cuts", system.name()));
        let mut database = Database::new(system, lab.seed)?;
        let (programmed, round) = database.cost(lab.size.pick(50, 500))?;
        let (mut torn, mut lost, mut met) = (0, 0, 0);
        for _ in 0..cuts {
            if interrupt::is_heard() {
                return Err(Interrupted.into());
            }
            let damage = database.cut(round)?;
            torn += damage.torn;
            lost += damage.lost;
            met += u64::from(damage.torn > 0);
        }
        let share = |number: u64| number as f64 / f64::from(cuts) * 100.0;
        let keys = |metric| [system.name(), metric];
        let note = format!("{cuts} cuts: {met} tore pages, {torn} in all, of which {lost} were lost");
        data.push(&keys("cuts_that_tear"), share(met), "%", &note);
        data.push(&keys("pages_lost_by_a_cut"), lost as f64 / f64::from(cuts), "x", "");
        data.push(&keys("programmed_by_page"), programmed, "x", "sectors for each sector of a page");
        data.push(&keys("round"), round.0 as f64 / 1e3, "us", "8 pages, 8 blocks of log, and a flush");
    }
    Ok(data)
}

fn value(ours: &PaperTable, system: System, metric: &str) -> f64 {
    ours.value(&[("system", system.name()), ("metric", metric)]).unwrap_or(f64::NAN)
}

fn report(report: Report, numbers: &Numbers) -> anyhow::Result<Report> {
    let ours = &numbers.ours;
    let names = ["pblk", "pblk, written twice", "ox-block"];
    let points = |metric: &str| -> Vec<Point> {
        let found = [0.0, 1.0, 2.0].into_iter().zip(SYSTEMS);
        found.map(|(x, system)| Point::new(x, value(ours, system, metric))).collect()
    };
    let chart = |title: &str, axis: Axis, metric: &str| {
        let series = Series::new(title, Role::Ours, points(metric)).style(Style::Bars);
        ChartSpec::new(title, Axis::categories("device", &names), axis).panel(Panel::new("").series(series))
    };
    let report = report
        .verdicts(verdicts(ours))
        .chart(chart("Power cuts that tear a page", Axis::linear("of all cuts", "%"), "cuts_that_tear"))
        .chart(chart(
            "Sectors programmed for each of a page",
            Axis::linear("programmed", "x"),
            "programmed_by_page",
        ))
        .chart(chart("Time of a round of 8 pages", Axis::linear("time", "us"), "round"));
    Ok(report)
}

fn verdicts(ours: &PaperTable) -> Vec<Verdict> {
    let [plain, twice, ox] = SYSTEMS;
    let tears = value(ours, plain, "cuts_that_tear");
    let lost = |system| value(ours, system, "pages_lost_by_a_cut");
    let programmed = |system| value(ours, system, "programmed_by_page");
    let round = |system| value(ours, system, "round");
    vec![
        Verdict::decided(
            "AT1",
            "A plain block device tears pages of several blocks.",
            tears > 0.0,
            format!("{tears:.2} % of cuts, {:.3} pages lost by a cut", lost(plain)),
        ),
        Verdict::decided(
            "AT2",
            "Writing twice saves every page (the data system handles it).",
            lost(twice) == 0.0,
            format!("{:.2} % of cuts tear, {} pages lost", value(ours, twice, "cuts_that_tear"), lost(twice)),
        ),
        Verdict::decided(
            "AT3",
            "A device of transactions tears none.",
            value(ours, ox, "cuts_that_tear") == 0.0 && lost(ox) == 0.0,
            format!("{} % of cuts tear", value(ours, ox, "cuts_that_tear")),
        ),
        Verdict::decided(
            "AT4",
            "Ours: transactions program less than writing twice.",
            programmed(ox) < programmed(twice),
            format!(
                "{:.2} against {:.2} sectors a sector ({:.2} without either)",
                programmed(ox),
                programmed(twice),
                programmed(plain)
            ),
        ),
        Verdict::decided(
            "AT5",
            "Ours: a round with transactions takes less time than one that writes twice.",
            round(ox) < round(twice),
            format!("{:.0} against {:.0} us ({:.0} without either)", round(ox), round(twice), round(plain)),
        ),
    ]
}
