//! Blocks as a store of OX's machines: what it has beside them, and its answers to them.
//!
//! Deliberately not here: procedures of any length; each has a file of its own.

use super::map_cache::{self, BlockMap, MapCache};
use super::requests::{REQUESTS_MAX, Requests};
use super::sizes;
use super::stats::BlockStats;
use super::transaction::OpenTransactions;
use crate::mount_error::MountError;
use crate::ox::commit::AtLog;
use crate::ox::options::{Durability, Options};
use crate::ox::sizes::{Demand, Sizes};
use crate::ox::store::Image;
use crate::ox::write_buffer::{BufferUnitId, StreamIndex};
use crate::ox::{Ox, Store};
use crate::recovery::found::Known;
use crate::recovery::media::Media;
use ocssd_base::{Slab, SlabKey};
use ocssd_ftl::checkpoint::Sections;
use ocssd_ftl::log::{LogEntry, Lsn, Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, Kind, L2p, Mapped, PhysicalAddress, SectorTag, ValidMap};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::transaction::BlockTransaction;
use ocssd_lightnvm::{BufId, Buffers, Completion, Geometry, Ppa, Status};
use std::collections::{BTreeSet, VecDeque};

/// A block device whose requests are transactions.
pub type OxBlock = Ox<Blocks>;

/// Whose a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A part's of a request.
    User(SlabKey),
    /// A transaction's over several requests: which of its blocks, as they came.
    Transaction(BlockTransaction, u32),
    /// It is a copy of this place.
    Copy(PhysicalAddress),
    /// It is a page of the map: the number goes on where the blocks' end.
    Page,
}

/// A sector of a buffer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The logical sector.
    pub lba: u64,
    /// Whose it is.
    pub owner: Owner,
}

/// A transaction whose data are on their way.
#[derive(Clone, Debug)]
pub struct TransactionPart {
    pub request: SlabKey,
    /// Blocks that were not programmed.
    pub left: u32,
    /// Blocks it has.
    pub blocks: u32,
    /// Where those lie that did.
    pub entries: Vec<LogEntry>,
}

/// What a read is for: blocks of a request from the `index`th on.
#[derive(Clone, Copy, Debug)]
pub struct UserRead {
    pub request: SlabKey,
    pub index: u32,
    pub count: u32,
}

/// A read of this store.
#[derive(Clone, Copy, Debug)]
pub enum BlockRead {
    /// For a user.
    User(UserRead),
    /// A page of the map.
    Page(SlabKey),
}

/// The store.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub(super) l2p: L2p,
    /// Which pages of it are in memory; none if all of it is.
    pub(super) cache: Option<MapCache>,
    pub(super) requests: Requests,
    /// Transactions whose data are on their way.
    pub(super) parts: Slab<TransactionPart>,
    /// The transaction whose blocks are being taken into the buffer.
    pub(super) open_part: Option<SlabKey>,
    /// Transactions over several requests.
    pub(super) transactions: OpenTransactions,
    /// Flushes, and the page before which everything must be durable.
    pub(super) flushes: VecDeque<(Lsn, SlabKey)>,
    /// The shutdown that was asked for.
    pub(super) shutdown: Option<SlabKey>,
    pub(super) stats: BlockStats,
}

impl Store for Blocks {
    const NAME: &'static str = "ox-block";
    const WHOLE: bool = false;
    const CAN_DROP_LOG: bool = true;
    const BUFFER_UNITS_PER_READ: usize = 1;
    const SECTIONS: u64 = 2;
    type Entry = LogEntry;
    type Slot = Slot;
    type Read = BlockRead;
    type Waiter = SlabKey;
    type Live = ValidMap;
    type Map = BlockMap;

    fn suits(geometry: &Geometry, shape: &InstanceGeometry, options: &Options) -> Result<(), String> {
        map_cache::page_size(geometry, shape, options).map(drop)
    }

    fn demand(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> Demand {
        sizes::demand(geometry, shape, blocks, options)
    }

    fn new_map(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> BlockMap {
        BlockMap::fresh(geometry, shape, blocks, options)
    }

    fn load_map(
        sections: &Sections,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        of: (u64, TransactionId),
        options: &Options,
    ) -> Result<BlockMap, String> {
        BlockMap::load(sections, geometry, shape, of, options)
    }

    fn replay(
        map: &mut BlockMap,
        transaction: &Transaction<LogEntry>,
        shape: &InstanceGeometry,
        options: &Options,
    ) -> bool {
        map.replay(transaction, shape, options)
    }

    fn complete(
        map: &mut BlockMap,
        media: &mut Media<'_>,
        known: &Known<'_>,
        options: &Options,
    ) -> Result<(), MountError> {
        map.complete(media, known, options)
    }

    fn take_over(map: &BlockMap, options: &mut Options) -> Result<(), String> {
        map.take_over(options)
    }

    fn page_chunks(map: &BlockMap, shape: &InstanceGeometry) -> BTreeSet<ChunkIndex> {
        map.page_chunks(shape)
    }

    fn takes_more(map: &BlockMap) -> bool {
        map.is_new_in_pages()
    }

    fn retain(map: &mut BlockMap, shape: &InstanceGeometry, keep: &dyn Fn(PhysicalAddress) -> bool) {
        let (lost, mut gone) = (map_cache::lost_place(shape.places()), Vec::new());
        map.l2p.for_each_media(|block, place| {
            if place != lost && !keep(place) {
                gone.push(block);
            }
        });
        // They held something, and nobody knows what they hold now: errors, and not zeroes.
        for block in gone {
            map.l2p.set(block, Mapped::Media(lost));
        }
    }

    fn live(map: &BlockMap, shape: &InstanceGeometry) -> ValidMap {
        map.valid(shape)
    }

    fn new(map: BlockMap, _: &Geometry, _: &Sizes, _: &Options, buffers: &mut Buffers) -> Self {
        Self {
            l2p: map.l2p,
            cache: map.pages.map(|pages| MapCache::new(pages, buffers)),
            requests: Requests::new(REQUESTS_MAX),
            parts: Slab::new(2 * REQUESTS_MAX),
            open_part: None,
            transactions: OpenTransactions::default(),
            flushes: VecDeque::new(),
            shutdown: None,
            stats: BlockStats::default(),
        }
    }

    fn image(ox: &OxBlock, buffers: &Buffers) -> Image {
        if let Some(cache) = &ox.store.cache {
            return ox.image_of_pages(cache, buffers);
        }
        let entry = usize::try_from(ox.store.l2p.entry_bytes()).expect("small");
        let mut map = vec![0; usize::try_from(ox.sizes.blocks).expect("the map fits memory") * entry];
        ox.store.l2p.encode(0, &mut map, |_, slot| unreachable!("{slot:?} is no place of this target"));
        vec![(map_cache::MAP, map)]
    }

    fn is_ready(ox: &mut OxBlock, buffers: &Buffers) -> bool {
        ox.has_pages_of_front(buffers)
    }

    fn tend(ox: &mut OxBlock, buffers: &mut Buffers) -> bool {
        ox.tend_pages(buffers)
    }

    fn pages_programmed(
        ox: &mut OxBlock,
        buffer_unit: BufferUnitId,
        place: PhysicalAddress,
    ) -> Vec<LogEntry> {
        ox.pages_programmed_at(buffer_unit, place)
    }

    fn serve(ox: &mut OxBlock, buffers: &mut Buffers) -> bool {
        ox.serve_reads(buffers)
    }

    fn admit(ox: &mut OxBlock, buffers: &mut Buffers) -> bool {
        ox.admit(buffers)
    }

    fn was_reset(ox: &mut OxBlock, chunk: ChunkIndex) {
        ox.forget_owners_in(chunk);
    }

    fn answer_durable(ox: &mut OxBlock) -> bool {
        ox.flush()
    }

    /// Tags are written when a block is taken.
    fn encode(_: &mut OxBlock, _: BufferUnitId, _: &mut Buffers) {}

    fn programmed(ox: &mut OxBlock, buffer_unit: BufferUnitId, place: PhysicalAddress) {
        ox.user_programmed(buffer_unit, place);
    }

    fn copies_programmed(
        ox: &mut OxBlock,
        buffer_unit: BufferUnitId,
        place: PhysicalAddress,
    ) -> Vec<LogEntry> {
        ox.copies_entries(buffer_unit, place)
    }

    fn dropped(ox: &mut OxBlock, slots: &[Slot]) {
        for slot in slots {
            if let Owner::Copy(from) = slot.owner {
                let chunk = ox.space.shape.chunk_of(from).0;
                ox.copy_ended(chunk);
                ox.space.let_go(chunk);
            }
        }
    }

    fn logged(ox: &mut OxBlock, waiter: Option<SlabKey>) -> AtLog {
        let is_volatile = ox.options.durability == Durability::Flush;
        let is_forced =
            waiter.is_some_and(|key| ox.store.requests.get(key).request.op == BlockOp::Write { fua: true });
        AtLog { is_true: is_volatile, is_answered: is_volatile && !is_forced }
    }

    fn apply(ox: &mut OxBlock, _: TransactionId, entries: &[LogEntry]) {
        ox.apply_entries(entries);
    }

    fn answer(ox: &mut OxBlock, waiter: SlabKey) {
        ox.store.requests.part_done(waiter);
    }

    fn is_log_awaited(ox: &OxBlock) -> bool {
        !ox.store.flushes.is_empty()
            || ox.pages_wait_for_log()
            || ox.logged.iter().any(|logged| logged.is_awaited())
    }

    fn is_idle(ox: &OxBlock) -> bool {
        ox.store.requests.is_idle_but_for(usize::from(ox.store.shutdown.is_some()))
    }

    fn is_waiting(ox: &OxBlock) -> bool {
        let is_ready = ox.buffer.ready(StreamIndex::USER) > 0;
        ox.store.requests.next_change().is_some() || !ox.store.flushes.is_empty() || is_ready
    }

    fn fail_changes(ox: &mut OxBlock, status: Status) {
        ox.store.parts.clear();
        ox.store.open_part = None;
        ox.store.transactions.clear();
        ox.forget_pins();
        ox.store.requests.fail_changes(status);
    }

    fn end_shutdown(ox: &mut OxBlock, status: Status) {
        let key = ox.store.shutdown.take().expect("a shutdown was asked for");
        if !status.is_success() {
            ox.store.requests.fail(key, status);
        }
        ox.store.requests.end(key);
    }

    fn read_done(ox: &mut OxBlock, read: BlockRead, completion: &Completion, buffers: &mut Buffers) {
        match read {
            BlockRead::User(read) => ox.user_read_done(read, completion, buffers),
            BlockRead::Page(read) => ox.page_read_done(read, completion, buffers),
        }
    }

    fn place_of_read(ox: &OxBlock, read: BlockRead, sector: u32, buffers: &Buffers) -> (Ppa, BufId, u32) {
        match read {
            BlockRead::User(read) => ox.place_of_user_read(read, sector, buffers),
            BlockRead::Page(read) => {
                let (place, buffer) = ox.place_of_page_read(read);
                (ox.space.shape.ppa(place), buffer, 0)
            }
        }
    }

    fn judge(
        ox: &OxBlock,
        read: BlockRead,
        status: Status,
        at: (BufId, u32),
        buffers: &Buffers,
    ) -> Result<(), Status> {
        let read = match read {
            BlockRead::User(read) => read,
            BlockRead::Page(read) => return ox.judge_page(read, status, buffers),
        };
        let block = ox.store.requests.get(read.request).request.block + u64::from(at.1);
        OxBlock::judge_block(status, block, at, buffers)
    }

    fn retried(ox: &mut OxBlock, read: BlockRead, lost: u64, status: Status, buffers: &mut Buffers) {
        let read = match read {
            BlockRead::User(read) => read,
            BlockRead::Page(read) => return ox.page_read_over(read, status, buffers),
        };
        if lost != 0 {
            ox.store.stats.read_failed += u64::from(lost.count_ones());
            ox.store.requests.fail(read.request, status);
        }
        ox.read_over(read, buffers);
    }

    fn is_sound((buffer, sector): (BufId, u32), buffers: &Buffers) -> bool {
        let tag = SectorTag::decode(buffers.oob(buffer, sector, 1), buffers.data(buffer, sector, 1));
        tag.is_ok_and(|tag| matches!(tag.kind, Kind::Data | Kind::Lost))
    }

    fn next_run(
        ox: &mut OxBlock,
        chunk: ChunkIndex,
        from: PhysicalAddress,
        most: u32,
    ) -> Option<(PhysicalAddress, u32)> {
        ox.next_valid_run(chunk, from, most)
    }

    fn copy(
        ox: &mut OxBlock,
        first: PhysicalAddress,
        count: u32,
        buffer: BufId,
        lost: u64,
        buffers: &mut Buffers,
    ) {
        for offset in 0..count {
            let from = PhysicalAddress(first.0 + u64::from(offset));
            ox.copy_sector(from, (buffer, offset), lost >> offset & 1 == 1, buffers);
        }
    }

    fn check(ox: &OxBlock) {
        let (l2p, valid) = (&ox.store.l2p, &ox.space.live);
        l2p.check();
        ox.store.requests.check();
        if let Some(cache) = &ox.store.cache {
            return ox.check_pages(cache);
        }
        let (mut lost, none) = (0, map_cache::lost_place(ox.space.shape.places()));
        l2p.for_each_media(|lba, place| {
            lost += u64::from(place == none);
            assert!(
                place == none || valid.is_valid(place),
                "block {lba} is at {place:?}, which is not valid"
            );
        });
        let mapped = l2p.count_mapped() + ox.store.transactions.uncommitted;
        assert_eq!(mapped, valid.total() + lost, "map and valid sectors disagree");
    }
}
