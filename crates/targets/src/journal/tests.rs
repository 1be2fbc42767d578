//! The journal against lists: whatever was durable is found in the chunks it says are needed, whole and in order.
//!
//! Pages land in any order, and some fail. A chunk that nobody needs loses its pages at once, so that one let go of too early
//! shows.

use super::*;
use crate::recovery::found::LogEnd;
use ocssd_base::{Prng, usize_of};
use ocssd_ftl::checkpoint::{Checkpoints, SectionName, Serial};
use ocssd_ftl::log::{Generation, LogEntry, LogPage, Lsn, Replay, TransactionId};
use ocssd_ftl::{Append, ChunkIndex, InstanceGeometry, InstanceId, UnitIndex};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat, PuId, Status};
use std::collections::{BTreeMap, VecDeque};

/// The section about the instance: where replay begins, and what the checkpoint has.
const INFO: SectionName = *b"info    ";
/// A section of several pages.
const FILL: SectionName = *b"fill    ";
const UNITS: u32 = 3;
const CHUNKS: u32 = 16;
const CHUNK: u32 = 8;
const SIZES: JournalSizes = JournalSizes {
    chunk: CHUNK,
    mw_cunits: 4,
    reach: 4,
    depth: 2,
    page: 1,
    unit: 2,
    sector_bytes: 512,
    log_width: 2,
    checkpoint_width: 2,
    copies: 1,
    interval_pages: 6,
    log_pages_max: 40,
};

/// The same with two copies of the log, on two chunks for each.
const COPIED: JournalSizes = JournalSizes { log_width: 4, copies: 2, mw_cunits: 0, reach: 2, ..SIZES };

/// What a chunk is.
#[derive(Clone, Debug, Default)]
struct Chunk {
    kind: Option<PageKind>,
    is_closed: bool,
    newest: u64,
    /// Where the next page goes.
    pointer: u32,
    /// Pages by sector.
    pages: BTreeMap<u32, Vec<u8>>,
}

/// The drive, and the accounts of the journal's owner.
#[derive(Debug)]
struct Model {
    units: u32,
    chunks: Vec<Chunk>,
}

impl Model {
    fn new(units: u32) -> Self {
        Self { units, chunks: vec![Chunk::default(); usize_of(units * CHUNKS)] }
    }
}

impl PageChunks for Model {
    fn open_for(&mut self, units: &[UnitIndex], kind: PageKind) -> Option<ChunkIndex> {
        let is_free = |&chunk: &usize| {
            let unit = UnitIndex(u32::try_from(chunk).expect("few") % self.units);
            self.chunks[chunk].kind.is_none() && units.contains(&unit)
        };
        let chunk = (0..self.chunks.len()).find(is_free)?;
        self.chunks[chunk].kind = Some(kind);
        Some(ChunkIndex(u32::try_from(chunk).expect("few")))
    }

    fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        let newest = &mut self.chunks[chunk.index()].newest;
        *newest = (*newest).max(number);
    }

    fn close_pages(&mut self, chunk: ChunkIndex) {
        self.chunks[chunk.index()].is_closed = true;
    }

    fn closed_pages(&self) -> Vec<ChunkIndex> {
        let all = (0..).map(ChunkIndex).zip(&self.chunks);
        all.filter(|(_, chunk)| chunk.is_closed).map(|(index, _)| index).collect()
    }

    fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest) {
        let found = &mut self.chunks[chunk.index()];
        let kind = found.kind.expect("a chunk of pages is looked at");
        if found.is_closed && found.newest < oldest.of(kind) {
            *found = Chunk::default();
        }
    }
}

/// What recovery finds on the drive as it is: where the log behind the newest whole checkpoint ends, and the newest generation
/// and checkpoint of any page.
fn recover(model: &Model) -> (Option<LogEnd>, (Generation, Serial)) {
    let pages = model.chunks.iter().map(|chunk| chunk.pages.len()).sum();
    let (mut checkpoints, mut replay) = (Checkpoints::of_pages(pages), Replay::default());
    let (mut newest, mut instance) = ((Generation(0), Serial(0)), InstanceId::new(0));
    for bytes in model.chunks.iter().flat_map(|chunk| chunk.pages.values()) {
        if let Ok(page) = checkpoints.take(bytes) {
            newest.1 = newest.1.max(page.serial);
            instance = page.instance;
        } else {
            let page = LogPage::<LogEntry>::decode(bytes).expect("a page of the log");
            newest.0 = newest.0.max(page.generation);
            replay.add(page);
        }
    }
    let Some((serial, sections)) = checkpoints.newest_whole() else { return (None, newest) };
    let info = sections.get(INFO).expect("it is in each");
    let number = |at: usize| u64::from_le_bytes(info[8 * at..][..8].try_into().expect("eight bytes"));
    let [start, generation, applied] = [0, 1, 2].map(number);
    newest.0 = newest.0.max(Generation(generation));
    let found =
        replay.run(Lsn(start), Generation(generation), TransactionId(applied)).expect("no contradiction");
    let ids: Vec<TransactionId> = found.transactions.iter().map(|transaction| transaction.id).collect();
    let first = ids.first().map_or(applied + 1, |id| id.0);
    assert_eq!(first, applied + 1, "replay begins behind a transaction that nobody has");
    assert!(ids.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1), "a transaction is missing in {ids:?}");
    let applied = ids.last().copied().unwrap_or(TransactionId(applied));
    let kept = Kept { serial, start: Lsn(start) };
    (Some(LogEnd { instance, kept, end: found.end, applied }), newest)
}

/// A journal on the drive, from mount to cut.
struct World {
    sizes: JournalSizes,
    journal: Journal,
    model: Model,
    buffers: Buffers,
    flying: Vec<PageWrite>,
    /// Transactions that are not known to be durable, and when they are.
    waiting: VecDeque<Logged>,
    durable: TransactionId,
}

impl World {
    fn mount(model: Model, units: u32, sizes: JournalSizes) -> Self {
        let geometry = Geometry { sector_bytes: 512, ..Geometry::example(1, units, CHUNKS, CHUNK, 2) };
        let units: Vec<PuId> = (0..units).map(PuId).collect();
        let shape = InstanceGeometry::new(&geometry, &units);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Bytes, &geometry));
        let (found, newest) = recover(&model);
        let new = NewJournal { named: InstanceId::new(7), found, newest };
        let mut journal = Journal::new(&sizes, PagePoints::new(&shape, &sizes), &new, &mut buffers);
        let mut model = model;
        for (index, chunk) in (0..).map(ChunkIndex).zip(&mut model.chunks) {
            let Some(kind) = chunk.kind else { continue };
            let unit = UnitIndex(index.0 % model.units);
            let goes_on = sizes.copies > 1
                && !chunk.is_closed
                && chunk.pointer < CHUNK
                && journal.adopt(kind, index, unit, chunk.pointer);
            chunk.is_closed |= !goes_on;
        }
        let durable = journal.last_transaction();
        Self { sizes, journal, model, buffers, flying: Vec::new(), waiting: VecDeque::new(), durable }
    }

    fn begin_checkpoint(&mut self) {
        let start = self.journal.log.next();
        let numbers = [start.0, self.journal.generation, self.journal.last_transaction().0];
        let info: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let sections = [(INFO, info.as_slice()), (FILL, &[3; 2500][..])];
        let page_bytes = self.sizes.unit * self.sizes.sector_bytes;
        self.journal.begin_checkpoint(start, page_bytes, &sections);
    }

    /// Pages go out.
    fn pump(&mut self, is_awaited: bool) {
        while let Some(write) = self.journal.next_log_page(is_awaited, &mut self.model, &mut self.buffers) {
            self.sent(write);
        }
        while let Some(write) = self.journal.next_checkpoint_page(&mut self.model, &mut self.buffers) {
            self.sent(write);
        }
    }

    fn sent(&mut self, write: PageWrite) {
        let chunk = &mut self.model.chunks[write.at.chunk.index()];
        assert_eq!(chunk.pointer, write.at.sector, "a chunk is written out of order");
        chunk.pointer += write.sectors;
        self.flying.push(write);
    }

    /// The power goes under programs, at most one on a unit: each that is torn takes the unit before it in its chunk along.
    fn cut(mut self) -> Model {
        let mut torn: BTreeMap<u32, Append> = BTreeMap::new();
        for &PageWrite { at, .. } in &self.flying {
            let first = torn.entry(at.chunk.0 % self.model.units).or_insert(at);
            if first.chunk == at.chunk {
                *first = (*first).min(at);
            }
        }
        for at in torn.into_values() {
            let reach = at.sector.saturating_sub(self.sizes.unit)..at.sector;
            self.model.chunks[at.chunk.index()].pages.retain(|sector, _| !reach.contains(sector));
        }
        self.model
    }

    /// A page that is out lands, or fails.
    fn programmed(&mut self, prng: &mut Prng, fails_percent: u64) {
        let Ok(count) = u64::try_from(self.flying.len()) else { return };
        if count == 0 {
            return;
        }
        let which = usize_of(u32::try_from(prng.below(count)).expect("few"));
        let PageWrite { kind, key, at, sectors, buffer, .. } = self.flying.swap_remove(which);
        let status = match prng.below(100) {
            chance if chance >= fails_percent => Status::SUCCESS,
            chance if chance % 2 == 0 => Status::WRITE_NEXT_UNIT,
            _ => Status::WRITE_FAULT,
        };
        if status.is_success() {
            let bytes = self.buffers.whole(buffer, 0, sectors).to_vec();
            self.model.chunks[at.chunk.index()].pages.insert(at.sector, bytes);
        }
        match kind {
            PageKind::Log => self.journal.log_page_done(key, status, &mut self.model),
            PageKind::Checkpoint => {
                self.journal.checkpoint_page_done(key, status, &mut self.model);
            }
        }
        while let Some(&Logged { id, durable_at, .. }) = self.waiting.front() {
            if !self.journal.is_durable(durable_at) {
                break;
            }
            self.durable = id;
            self.waiting.pop_front();
        }
        self.journal.check();
    }

    /// Checkpoints until there are two: the mount is over.
    fn begin(&mut self, prng: &mut Prng) {
        while !self.journal.has_two() {
            if !self.journal.is_writing() {
                self.begin_checkpoint();
            }
            self.pump(false);
            self.programmed(prng, 0);
        }
    }

    fn step(&mut self, prng: &mut Prng, fails_percent: u64) {
        match prng.below(8) {
            0..3 => {
                let count = u32::try_from(1 + prng.below(40)).expect("few");
                let entries: Vec<LogEntry> =
                    (0..count).map(|lba| LogEntry::Discard { lba: lba.into(), count }).collect();
                if self.journal.has_room(entries.len()) {
                    let logged = self.journal.append(&entries);
                    assert!(logged.first < logged.durable_at, "{logged:?}");
                    self.waiting.push_back(logged);
                } else if !self.journal.is_writing() {
                    self.begin_checkpoint();
                }
            }
            3 => self.pump(true),
            4 if !self.journal.is_writing() && prng.below(6) == 0 => self.begin_checkpoint(),
            4 => self.pump(false),
            _ => self.programmed(prng, fails_percent),
        }
    }
}

fn check_seed(seed: u64, fails_percent: u64) {
    check_cuts(seed, fails_percent, (UNITS, SIZES), |world| world.model);
}

fn check_cuts(
    seed: u64,
    fails_percent: u64,
    (units, sizes): (u32, JournalSizes),
    cut: impl Fn(World) -> Model,
) {
    let mut prng = Prng::new(seed);
    let mut model = Model::new(units);
    for mount in 0..4 {
        let mut world = World::mount(model, units, sizes);
        world.begin(&mut prng);
        for _ in 0..prng.below(600) {
            world.step(&mut prng, fails_percent);
        }
        // The power goes.
        let (durable, last) = (world.durable, world.journal.last_transaction());
        model = cut(world);
        let (found, _) = recover(&model);
        let end = found.unwrap_or_else(|| panic!("seed {seed}, mount {mount}: no checkpoint"));
        assert!(
            end.applied >= durable && end.applied <= last,
            "seed {seed}, mount {mount}, {units} units: {} was durable, and recovery ends with {}",
            durable.0,
            end.applied.0
        );
    }
}

#[test]
fn what_was_durable_is_found_in_the_chunks_that_are_needed() {
    (0..150).for_each(|seed| check_seed(seed, 0));
}

#[test]
fn pages_that_fail_go_out_again_elsewhere() {
    (0..150).for_each(|seed| check_seed(seed, 6));
}

#[test]
fn a_cut_that_takes_what_lies_before_torn_pages_takes_no_page_of_the_log() {
    for units in 1..5 {
        let sizes = JournalSizes { log_width: log_width(units, 4, 2), ..COPIED };
        (0..100).for_each(|seed| check_cuts(seed, 0, (units, sizes), World::cut));
    }
}

#[test]
fn a_journal_that_is_stopped_makes_nothing_durable_and_gives_its_checkpoint_up() {
    let mut prng = Prng::new(5);
    let mut world = World::mount(Model::new(UNITS), UNITS, SIZES);
    world.begin(&mut prng);
    let logged = world.journal.append(&[LogEntry::Discard { lba: 1, count: 2 }]);
    world.begin_checkpoint();
    world.pump(true);
    world.journal.stop();
    assert!(!world.journal.is_writing(), "the checkpoint goes on");
    let current = world.journal.current();
    while !world.flying.is_empty() {
        world.programmed(&mut prng, 0);
    }
    assert!(!world.journal.is_durable(logged.durable_at), "a transaction of a stopped journal counts");
    assert_eq!(world.journal.current(), current);
}
