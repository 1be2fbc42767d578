//! Pages as a store of OX's machines: what it has beside them, and its answers to them.
//!
//! Deliberately not here: procedures of any length; each has a file of its own.

use super::change::{Changes, Number};
use super::entry::Entry;
use super::extent::{Extent, Grid, Spot};
use super::live::LiveGrains;
use super::map::{self, Recovered};
use super::page_map::PageMap;
use super::read::{PartRead, Reads};
use super::sizes;
use super::stats::PageStats;
use crate::ox::canary::Canary;
use crate::ox::commit::AtLog;
use crate::ox::options::Options;
use crate::ox::sizes::{Demand, Sizes};
use crate::ox::state::Ending;
use crate::ox::store::Image;
use crate::ox::write_buffer::BufferUnitId;
use crate::ox::{Ox, Store};
use crate::staging::Staging;
use ocssd_base::SlabKey;
use ocssd_ftl::checkpoint::Sections;
use ocssd_ftl::log::{Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, PhysicalAddress};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogReply, PageId, SessionId, Wsn};
use ocssd_lightnvm::{BufId, Buffers, Completion, Geometry, Ppa, Status, Tag};
use std::collections::{BTreeMap, VecDeque};

/// A page store for log-structured hosts.
pub type Eleos = Ox<Pages>;

/// Whose a part in a buffer unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flush's: which part of it.
    Change(Number, u32),
    /// It is a copy of what lies there.
    Copy(Spot),
}

/// A part of a page in a buffer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub page: PageId,
    /// Its first byte in the buffer unit, and its bytes.
    pub at: u32,
    pub bytes: u32,
    pub owner: Owner,
}

/// A session as requests see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The last flush that was taken.
    pub applied: Wsn,
    /// The last that is durable.
    pub durable: Wsn,
    /// Which life: a session that ended and began again is another.
    pub life: u64,
}

/// Where the newest content of a page is that is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The flush.
    pub number: Number,
    /// Its first byte in the flush's buffer, and its bytes; none of a page that was deleted.
    pub at: u32,
    pub bytes: u32,
}

/// A request that is answered once a change is durable.
#[derive(Clone, Copy, Debug)]
pub struct Awaiting {
    pub until: Number,
    pub reply: LogReply,
    /// The session whose progress is told, in which life.
    pub session: Option<(SessionId, u64)>,
}

/// The store.
#[derive(Clone, Debug)]
pub struct Pages {
    pub(super) limits: LogLimits,
    /// What is durable.
    pub(super) map: PageMap,
    pub(super) durable_sessions: BTreeMap<SessionId, Wsn>,
    /// What requests see beyond that.
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) lives: u64,
    pub(super) newest: BTreeMap<PageId, Newest>,
    /// Pages, and bytes of them, as requests see them.
    pub(super) pages: u64,
    pub(super) bytes: u64,
    pub(super) changes: Changes,
    /// Everything up to here may be answered.
    pub(super) answerable: Number,
    pub(super) awaiting: VecDeque<Awaiting>,
    pub(super) replies: VecDeque<LogReply>,
    pub(super) staging: Staging,
    pub(super) reads: Reads,
    /// Parts that victims had when they were chosen, in order.
    pub(super) victims: BTreeMap<ChunkIndex, Vec<(PageId, Extent)>>,
    /// Parts that a page had before, while they are forgotten.
    pub(super) old: Vec<Extent>,
    pub(super) shutdown: Option<Tag>,
    pub(super) stats: PageStats,
}

impl Store for Pages {
    const NAME: &'static str = "eleos";
    const WHOLE: bool = true;
    const CAN_DROP_LOG: bool = false;
    /// What fills a buffer unit to seven eighths fills two where parts do not fit.
    const BUFFER_UNITS_PER_READ: usize = 2;
    const SECTIONS: u64 = 2;
    type Entry = Entry;
    type Slot = Slot;
    type Read = SlabKey;
    type Waiter = Number;
    type Live = LiveGrains;
    type Map = Recovered;

    fn demand(geometry: &Geometry, _: &InstanceGeometry, blocks: u64, _: &Options) -> Demand {
        sizes::demand(geometry, blocks)
    }

    fn new_map(geometry: &Geometry, shape: &InstanceGeometry, _: u64, _: &Options) -> Recovered {
        Recovered::new(Grid::new(shape, geometry.sector_bytes))
    }

    fn load_map(
        sections: &Sections,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        _: (u64, TransactionId),
        _: &Options,
    ) -> Result<Recovered, String> {
        map::decode(sections, Grid::new(shape, geometry.sector_bytes), shape)
    }

    fn replay(
        recovered: &mut Recovered,
        transaction: &Transaction<Entry>,
        shape: &InstanceGeometry,
        options: &Options,
    ) -> bool {
        recovered.replay(&transaction.entries, shape, options.has_canary(Canary::MovesStale))
    }

    fn retain(recovered: &mut Recovered, _: &InstanceGeometry, keep: &dyn Fn(PhysicalAddress) -> bool) {
        recovered.retain(keep);
    }

    fn live(recovered: &Recovered, shape: &InstanceGeometry) -> LiveGrains {
        recovered.live(shape)
    }

    fn new(
        recovered: Recovered,
        geometry: &Geometry,
        sizes: &Sizes,
        _: &Options,
        buffers: &mut Buffers,
    ) -> Self {
        let limits = sizes::limits(geometry, sizes.blocks);
        let Recovered { pages: map, sessions: durable_sessions, .. } = recovered;
        let session = |(nth, (&name, &wsn)): (u64, (&SessionId, &Wsn))| {
            (name, Session { applied: wsn, durable: wsn, life: nth })
        };
        Self {
            limits,
            sessions: (0..).zip(&durable_sessions).map(session).collect(),
            lives: u64::try_from(durable_sessions.len()).expect("an index"),
            durable_sessions,
            newest: BTreeMap::new(),
            pages: map.pages(),
            bytes: map.live_bytes(),
            map,
            changes: Changes::default(),
            answerable: Number::default(),
            awaiting: VecDeque::new(),
            replies: VecDeque::new(),
            staging: Staging::new(limits.stages),
            reads: Reads::new(sizes.unit, buffers),
            victims: BTreeMap::new(),
            old: Vec::new(),
            shutdown: None,
            stats: PageStats::default(),
        }
    }

    fn image(ox: &Eleos, _: &Buffers) -> Image {
        map::encode(&ox.store.map, &ox.store.durable_sessions)
    }

    fn serve(ox: &mut Eleos, _: &mut Buffers) -> bool {
        ox.serve_reads()
    }

    fn admit(ox: &mut Eleos, buffers: &mut Buffers) -> bool {
        ox.pack_changes(buffers)
    }

    fn answer_durable(ox: &mut Eleos) -> bool {
        ox.answer_awaiting()
    }

    fn encode(ox: &mut Eleos, buffer_unit: BufferUnitId, buffers: &mut Buffers) {
        ox.encode_tags(buffer_unit, buffers);
    }

    fn programmed(ox: &mut Eleos, buffer_unit: BufferUnitId, place: PhysicalAddress) {
        ox.parts_programmed(buffer_unit, place);
    }

    fn copies_programmed(ox: &mut Eleos, buffer_unit: BufferUnitId, place: PhysicalAddress) -> Vec<Entry> {
        ox.moved_entries(buffer_unit, place)
    }

    fn dropped(ox: &mut Eleos, slots: &[Slot]) {
        for slot in slots {
            if let Owner::Copy(from) = slot.owner {
                let chunk = ox.grid().chunk(from);
                ox.copy_ended(chunk);
                ox.space.let_go(chunk);
            }
        }
    }

    fn logged(_: &mut Eleos, _: Option<Number>) -> AtLog {
        AtLog::default()
    }

    fn apply(ox: &mut Eleos, _: TransactionId, entries: &[Entry]) {
        ox.apply_entries(entries);
    }

    fn answer(ox: &mut Eleos, waiter: Number) {
        ox.store.answerable = waiter;
    }

    fn is_log_awaited(ox: &Eleos) -> bool {
        !ox.store.awaiting.is_empty()
    }

    fn is_idle(ox: &Eleos) -> bool {
        let Self { changes, awaiting, reads, .. } = &ox.store;
        changes.is_empty() && awaiting.is_empty() && reads.is_empty()
    }

    fn is_waiting(ox: &Eleos) -> bool {
        let is_ending = ox.ending == Ending::Asked && !ox.store.changes.is_empty();
        !ox.store.awaiting.is_empty() || is_ending
    }

    fn fail_changes(ox: &mut Eleos, status: Status) {
        ox.forget_changes(status);
    }

    fn end_shutdown(ox: &mut Eleos, status: Status) {
        let tag = ox.store.shutdown.take().expect("a shutdown was asked for");
        ox.store.end(tag, status);
    }

    fn read_done(ox: &mut Eleos, read: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        ox.part_read_done(read, completion, buffers);
    }

    fn place_of_read(ox: &Eleos, read: SlabKey, sector: u32, _: &Buffers) -> (Ppa, BufId, u32) {
        let &PartRead { first, buffer, .. } = ox.store.reads.get(read);
        let place = PhysicalAddress(first.0 + u64::from(sector));
        (ox.space.shape.ppa(place), buffer.expect("it was sent"), sector)
    }

    fn judge(
        _: &Eleos,
        _: SlabKey,
        status: Status,
        at: (BufId, u32),
        buffers: &Buffers,
    ) -> Result<(), Status> {
        match status {
            _ if !status.has_data() => Err(status),
            _ if !Self::is_sound(at, buffers) => Err(Status::UNRECOVERED_READ),
            _ => Ok(()),
        }
    }

    fn retried(ox: &mut Eleos, read: SlabKey, lost: u64, status: Status, buffers: &mut Buffers) {
        ox.store.stats.read_failed += u64::from(lost.count_ones());
        ox.part_read_over(read, status, buffers);
    }

    fn is_sound(at: (BufId, u32), buffers: &Buffers) -> bool {
        super::sector::is_sound(at, buffers)
    }

    fn next_run(
        ox: &mut Eleos,
        chunk: ChunkIndex,
        from: PhysicalAddress,
        most: u32,
    ) -> Option<(PhysicalAddress, u32)> {
        ox.next_run_of_victim(chunk, from, most)
    }

    fn copy(
        ox: &mut Eleos,
        first: PhysicalAddress,
        count: u32,
        buffer: BufId,
        lost: u64,
        buffers: &mut Buffers,
    ) {
        ox.copy_parts((first, count), (buffer, lost), buffers);
    }

    fn check(ox: &Eleos) {
        ox.check_pages();
    }
}
