//! A table or a log while the instance runs: what the host was told of it, what of it is in memory, in flight and on media.
//!
//! Deliberately not here: procedures.

use super::change::Number;
use super::layout::Layout;
use super::sizes::Sizes;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{ChunkIndex, OpenChunk, UnitIndex};
use ocssd_lightnvm::BufId;
use ocssd_lightnvm::interface::table::{TableId, TableKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One column: the chunk it is written to, and those before with writes in flight.
#[derive(Clone, Debug)]
pub struct Column {
    /// Where its chunks should be.
    pub unit: UnitIndex,
    /// Units that wait for a place, in order.
    pub waiting: VecDeque<u64>,
    /// The chunk being written. What is written is a unit, or padding.
    pub open: Option<OpenChunk<Option<u64>>>,
    /// Chunks that take no more.
    pub ending: Vec<OpenChunk<Option<u64>>>,
}

impl Column {
    /// No chunk yet.
    pub const fn new(unit: UnitIndex) -> Self {
        Self { unit, waiting: VecDeque::new(), open: None, ending: Vec::new() }
    }
}

/// What there is when the instance meets a table or log: chunks, units in them, and what the last still takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    pub chunks: u32,
    pub units: u64,
    pub room: u64,
}

/// A table or a log.
#[derive(Clone, Debug)]
pub struct Object {
    pub number: Number,
    pub name: TableId,
    pub kind: TableKind,
    /// Who writes it.
    pub stream: u8,
    /// Its bytes, as the host was told.
    pub bytes: u64,
    pub attributes: Vec<u8>,
    /// The host sees it.
    pub is_published: bool,
    /// The host deleted it.
    pub is_deleted: bool,
    /// Bytes that were taken into memory.
    pub taken: u64,
    /// Appends that wait for memory, or for chunks.
    pub appends: VecDeque<SlabKey>,
    /// The bytes of the append that is taken in now.
    pub gathered: Option<Vec<u8>>,
    /// Bytes that chunks are reserved for.
    pub entitled: u64,
    /// Units whose content is in memory: being filled, waiting, in flight, or not readable yet.
    pub memory: BTreeMap<u64, BufId>,
    /// None once it is at rest.
    pub columns: Vec<Column>,
    /// Chunks that it leaves unfilled at rest, each with its next sector.
    pub unfilled: Vec<(ChunkIndex, u32)>,
    pub layout: Layout,
    pub base: Base,
    /// Chunks it has.
    pub chunks: Vec<ChunkIndex>,
    /// Chunks that are reserved for it and not opened.
    pub reserved: u32,
    /// Reads that were taken and are not over.
    pub holds: u32,
    pub in_flight: u32,
    /// Units that go out once more, because the media failed a write.
    pub again: BTreeSet<u64>,
    /// All of a published table was given out.
    pub is_finished: bool,
    /// The log says that it began.
    pub is_begun: bool,
    /// Runs of a table that the log has.
    pub runs_logged: usize,
    /// Units of a log that the log has.
    pub units_logged: u64,
    /// Bytes of a log that the log has.
    pub logged: u64,
    /// Bytes of a log that somebody wants to be durable.
    pub sync_to: u64,
    /// The log has its deletion.
    pub is_gone: bool,
}

impl Object {
    /// A new one with a column on each of these units.
    pub fn new(number: Number, name: TableId, kind: TableKind, units: &[UnitIndex], sizes: &Sizes) -> Self {
        let width = u32::try_from(units.len()).expect("fewer units than 2^32");
        assert!(kind == TableKind::Table || width == 1, "log {} has {width} columns", number.0);
        Self {
            number,
            name,
            kind,
            stream: 0,
            bytes: 0,
            attributes: Vec::new(),
            is_published: kind == TableKind::Log,
            is_deleted: false,
            taken: 0,
            appends: VecDeque::new(),
            gathered: None,
            entitled: 0,
            memory: BTreeMap::new(),
            columns: units.iter().map(|&unit| Column::new(unit)).collect(),
            unfilled: Vec::new(),
            layout: Layout::new(width, sizes.unit),
            base: Base::default(),
            chunks: Vec::new(),
            reserved: 0,
            holds: 0,
            in_flight: 0,
            again: BTreeSet::new(),
            is_finished: false,
            is_begun: false,
            runs_logged: 0,
            units_logged: 0,
            logged: 0,
            sync_to: 0,
            is_gone: false,
        }
    }

    /// Chunks that `bytes` bytes take: rows fill all columns before the next chunk of each is opened.
    pub fn demand(&self, bytes: u64, sizes: &Sizes) -> u32 {
        let Base { chunks, units, room } = self.base;
        let more = sizes.units_of(bytes).saturating_sub(units + room);
        let width = u64::from(self.layout.width());
        let round = width * u64::from(sizes.chunk_units);
        assert!(round > 0, "number {} has no column", self.number.0);
        let fresh = more / round * width + (more % round).min(width);
        chunks + u32::try_from(fresh).expect("fewer chunks than 2^32")
    }

    /// Chunks it may leave unfilled at most: as a rule all columns but one.
    pub fn slack(&self, sizes: &Sizes) -> u32 {
        if !self.is_published {
            return self.layout.width() - 1;
        }
        let least = sizes.units_of(self.bytes).div_ceil(u64::from(sizes.chunk_units));
        self.demand(self.bytes, sizes).saturating_sub(u32::try_from(least).expect("fewer chunks than 2^32"))
    }

    /// All of a published table is on media.
    pub fn is_settled(&self, sizes: &Sizes) -> bool {
        self.taken == self.bytes && self.layout.units() == sizes.units_of(self.bytes)
    }

    /// The column a unit is in.
    pub fn column_of(&self, unit: u64) -> u32 {
        self.layout.split(unit).0
    }

    pub fn column(&mut self, column: u32) -> &mut Column {
        &mut self.columns[usize_of(column)]
    }

    /// Nothing of it is under way.
    pub fn is_quiet(&self) -> bool {
        self.holds == 0 && self.in_flight == 0 && self.appends.is_empty()
    }

    /// A published table that is on media and can be read lets go of what writing takes: it is at rest.
    /// True if it was not before.
    pub fn rest(&mut self, sizes: &Sizes) -> bool {
        let is_whole = self.kind == TableKind::Table
            && self.is_published
            && !self.is_deleted
            && self.is_finished
            && self.is_settled(sizes);
        let is_over = |column: &Column| {
            let is_holding = column.open.as_ref().is_some_and(OpenChunk::is_holding);
            column.waiting.is_empty() && column.ending.is_empty() && !is_holding
        };
        let is_at_rest = self.columns.is_empty();
        if is_at_rest || !is_whole || self.in_flight > 0 || !self.columns.iter().all(is_over) {
            return false;
        }
        assert!(self.memory.is_empty(), "table {} can be read and is in memory", self.number.0);
        assert!(self.again.is_empty(), "table {} is on media and is written again", self.number.0);
        let open = std::mem::take(&mut self.columns).into_iter().filter_map(|column| column.open);
        self.unfilled.extend(open.map(|open| (open.chunk(), open.pointer())));
        self.unfilled.shrink_to_fit();
        self.chunks.shrink_to_fit();
        self.appends.shrink_to_fit();
        self.layout.shrink();
        true
    }

    /// Asserts what holds between calls.
    pub fn check(&self, sizes: &Sizes) {
        let name = (self.kind, self.number.0);
        assert!(self.entitled <= self.bytes, "{name:?}: chunks are reserved for more than was appended");
        assert!(self.taken <= self.entitled, "{name:?}: more was taken than chunks are reserved for");
        let tail = u64::from(!self.taken.is_multiple_of(sizes.unit_bytes));
        assert!(
            self.units_logged <= self.layout.units(),
            "{name:?}: units are logged that was not programmed"
        );
        assert!(
            tail == 0
                || self.is_finished
                || self.is_deleted
                || self.memory.contains_key(&(self.taken / sizes.unit_bytes)),
            "{name:?}: what is being filled is lost"
        );
        assert!(self.taken <= self.bytes, "{name:?}: more was taken than appended");
        assert!(self.logged <= self.taken, "{name:?}: more is logged than was taken");
        self.layout.check();
        let written = self.layout.units();
        assert!(written <= sizes.units_of(self.taken), "{name:?}: more is on media than was taken");
        let flying: usize = self
            .columns
            .iter()
            .flat_map(|column| column.open.iter().chain(&column.ending))
            .map(OpenChunk::in_flight)
            .sum();
        assert_eq!(u64::from(self.in_flight), flying as u64, "{name:?}: writes in flight are counted wrong");
        let waiting: usize = self.columns.iter().map(|column| column.waiting.len()).sum();
        assert!(waiting <= self.memory.len(), "{name:?}: a unit waits that is not in memory");
        let is_at_rest = self.columns.is_empty();
        assert!(!is_at_rest || self.is_settled(sizes), "{name:?} is at rest and not on media");
        assert!(is_at_rest || self.unfilled.is_empty(), "{name:?} is written and at rest");
        assert!(self.sync_to <= self.bytes, "{name:?} is synced beyond its end");
        assert!(self.kind == TableKind::Table || self.is_published, "{name:?} is a log nobody sees");
        if self.is_gone {
            assert!(self.is_deleted, "{name:?} is gone and was not deleted");
        }
    }
}
