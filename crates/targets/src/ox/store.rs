//! What makes an FTL of these machines its own: what it maps, whose its data are, who waits for its transactions.
//!
//! The machines call, the store answers. Deliberately not here: how a transaction becomes true, where data go.

use super::commit::AtLog;
use super::options::Options;
use super::sizes::{Demand, Sizes};
use super::space::Live;
use super::state::Ox;
use super::write_buffer::BufferUnitId;
use crate::mount_error::MountError;
use crate::recovery::found::Known;
use crate::recovery::media::Media;
use ocssd_ftl::checkpoint::{SectionName, Sections};
use ocssd_ftl::log::{Record, Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, PhysicalAddress};
use ocssd_lightnvm::{BufId, Buffers, Completion, Geometry, Ppa, Status};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// The bytes of a checkpoint's sections, by name.
pub type Image = Vec<(SectionName, Vec<u8>)>;

/// A store of some kind.
pub trait Store: Clone + Debug + Sized {
    /// The kind, as sentences call it.
    const NAME: &'static str;
    /// Buffer units hold all bytes of their sectors, also where payload is stamps.
    const WHOLE: bool;
    /// A mount may go on with a log that lost pages: what its map names wrongly then is noticed when it is read.
    const CAN_DROP_LOG: bool;
    /// Buffer units that what one read of a victim holds may begin.
    const BUFFER_UNITS_PER_READ: usize;
    /// Sections of a checkpoint beside the one about the instance.
    const SECTIONS: u64;
    /// An entry of the log.
    type Entry: Record;
    /// What a buffer unit holds, piece by piece.
    type Slot: Copy + Debug;
    /// What a read of the store's own is for.
    type Read: Copy + Debug;
    /// Who waits for a transaction.
    type Waiter: Copy + Debug + PartialEq;
    /// What is needed in each chunk.
    type Live: Live;
    /// What is mapped, as recovery knows it.
    type Map: Debug;

    /// Whether the options can be had on such a drive.
    ///
    /// # Errors
    /// A sentence, if not.
    fn suits(_: &Geometry, _: &InstanceGeometry, _: &Options) -> Result<(), String> {
        Ok(())
    }

    /// What an instance of `blocks` sectors of data needs.
    fn demand(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> Demand;

    /// The map of a new instance.
    fn new_map(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> Self::Map;

    /// The map in a checkpoint of an instance of so many sectors of data, of transactions up to this one.
    ///
    /// # Errors
    /// A sentence, if there is none that fits.
    fn load_map(
        sections: &Sections,
        geometry: &Geometry,
        shape: &InstanceGeometry,
        of: (u64, TransactionId),
        options: &Options,
    ) -> Result<Self::Map, String>;

    /// Makes a transaction true in a map that is being recovered; false if it names what the instance does not have.
    fn replay(
        map: &mut Self::Map,
        transaction: &Transaction<Self::Entry>,
        shape: &InstanceGeometry,
        options: &Options,
    ) -> bool;

    /// The whole log was replayed: brings in what of the map lies on media beside checkpoints.
    ///
    /// # Errors
    /// If the drive fails, or what lies there does not go with the options.
    fn complete(_: &mut Self::Map, _: &mut Media<'_>, _: &Known<'_>, _: &Options) -> Result<(), MountError> {
        Ok(())
    }

    /// Takes from a map that was found what an instance keeps, whatever the options say.
    ///
    /// # Errors
    /// A sentence, if the options say something else.
    fn take_over(_: &Self::Map, _: &mut Options) -> Result<(), String> {
        Ok(())
    }

    /// Chunks that hold pages of a recovered map.
    fn page_chunks(_: &Self::Map, _: &InstanceGeometry) -> BTreeSet<ChunkIndex> {
        BTreeSet::new()
    }

    /// True if pages of a recovered map take room from now on that they did not before.
    fn takes_more(_: &Self::Map) -> bool {
        false
    }

    /// Nothing lies any more in sectors for which `keep` is false: what was reset since can only be named by a map whose log the
    /// media lost.
    fn retain(map: &mut Self::Map, shape: &InstanceGeometry, keep: &dyn Fn(PhysicalAddress) -> bool);

    /// What a recovered map needs in each chunk.
    fn live(map: &Self::Map, shape: &InstanceGeometry) -> Self::Live;

    /// The store of a recovered map, with its buffers.
    fn new(
        map: Self::Map,
        geometry: &Geometry,
        sizes: &Sizes,
        options: &Options,
        buffers: &mut Buffers,
    ) -> Self;

    /// What a checkpoint has of the map.
    fn image(ox: &Ox<Self>, buffers: &Buffers) -> Image;

    /// Carries out reads. True if any could be.
    fn serve(ox: &mut Ox<Self>, buffers: &mut Buffers) -> bool;

    /// Takes changes into buffer units, as far as there is room. True if any was.
    fn admit(ox: &mut Ox<Self>, buffers: &mut Buffers) -> bool;

    /// True if what the transaction in front changes is in memory, so that it may be logged; if not it was asked for.
    fn is_ready(_: &mut Ox<Self>, _: &Buffers) -> bool {
        true
    }

    /// Goes on with what of the map lies on media. True if anything was done.
    fn tend(_: &mut Ox<Self>, _: &mut Buffers) -> bool {
        false
    }

    /// A buffer unit of pages of the map was programmed at a place: the entries that make them true.
    fn pages_programmed(_: &mut Ox<Self>, buffer_unit: BufferUnitId, _: PhysicalAddress) -> Vec<Self::Entry> {
        unreachable!("{buffer_unit:?} is of a map that lies in checkpoints only")
    }

    /// A chunk was reset, or cannot be: nothing is in it.
    fn was_reset(_: &mut Ox<Self>, _: ChunkIndex) {}

    /// Answers what waits for the log, and nothing else. True if there was anything.
    fn answer_durable(ox: &mut Ox<Self>) -> bool;

    /// A buffer unit goes out: its tags are written if they are not yet.
    fn encode(ox: &mut Ox<Self>, buffer_unit: BufferUnitId, buffers: &mut Buffers);

    /// A buffer unit of users was programmed at a place.
    fn programmed(ox: &mut Ox<Self>, buffer_unit: BufferUnitId, place: PhysicalAddress);

    /// A buffer unit of copies was programmed at a place: the entries that make them true.
    fn copies_programmed(
        ox: &mut Ox<Self>,
        buffer_unit: BufferUnitId,
        place: PhysicalAddress,
    ) -> Vec<Self::Entry>;

    /// Slots of buffer units that will not be written: of copies, what they are made of may be reset again.
    fn dropped(ox: &mut Ox<Self>, slots: &[Self::Slot]);

    /// A transaction was logged: what becomes of it before it is durable.
    fn logged(ox: &mut Ox<Self>, waiter: Option<Self::Waiter>) -> AtLog;

    /// A transaction is true.
    fn apply(ox: &mut Ox<Self>, id: TransactionId, entries: &[Self::Entry]);

    /// A transaction's waiter need not wait any more.
    fn answer(ox: &mut Ox<Self>, waiter: Self::Waiter);

    /// True if somebody waits for what is in the log to be durable.
    fn is_log_awaited(ox: &Ox<Self>) -> bool;

    /// True if nothing but a shutdown was asked for and not answered.
    fn is_idle(ox: &Ox<Self>) -> bool;

    /// True if somebody waits for something that only room can bring.
    fn is_waiting(ox: &Ox<Self>) -> bool;

    /// No more changes are taken: those under way end with this status.
    fn fail_changes(ox: &mut Ox<Self>, status: Status);

    /// The shutdown is over.
    fn end_shutdown(ox: &mut Ox<Self>, status: Status);

    /// A read of the store's own ended.
    fn read_done(ox: &mut Ox<Self>, read: Self::Read, completion: &Completion, buffers: &mut Buffers);

    /// Where a sector of such a read is, and where it goes to.
    fn place_of_read(ox: &Ox<Self>, read: Self::Read, sector: u32, buffers: &Buffers) -> (Ppa, BufId, u32);

    /// Judges a sector of such a read.
    ///
    /// # Errors
    /// How it failed: the drive's status, or 281h if it holds something else.
    fn judge(
        ox: &Ox<Self>,
        read: Self::Read,
        status: Status,
        at: (BufId, u32),
        buffers: &Buffers,
    ) -> Result<(), Status>;

    /// Sectors of such a read were asked for again; `lost` are those that were given up.
    fn retried(ox: &mut Ox<Self>, read: Self::Read, lost: u64, status: Status, buffers: &mut Buffers);

    /// True if a sector of a victim is sound.
    fn is_sound(at: (BufId, u32), buffers: &Buffers) -> bool;

    /// The next run of sectors of a victim that hold something needed, of at most `most`.
    fn next_run(
        ox: &mut Ox<Self>,
        chunk: ChunkIndex,
        from: PhysicalAddress,
        most: u32,
    ) -> Option<(PhysicalAddress, u32)>;

    /// What was read of a victim goes to buffer units; `lost` are sectors that cannot be read.
    fn copy(
        ox: &mut Ox<Self>,
        first: PhysicalAddress,
        count: u32,
        buffer: BufId,
        lost: u64,
        buffers: &mut Buffers,
    );

    /// Asserts what must hold between calls.
    fn check(ox: &Ox<Self>);
}
