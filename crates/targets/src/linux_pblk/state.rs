//! The state of an instance: its parts, and what is under way.
//!
//! Deliberately not here: what happens to it.

use super::flight::Flight;
use super::format::{LineLayout, Uuid};
use super::gc::Gc;
use super::open_line::OpenLine;
use super::options::Options;
use super::requests::{REQUESTS_MAX, Requests};
use super::retry::Retries;
use super::shutdown::Shutdown;
use super::stats::LinuxPblkStats;
use crate::plane_reads::{PlaneReads, PlaneRule};
use ocssd_base::{Divisor, usize_of};
use ocssd_ftl::{
    BufferUnitId, EmptyLine, FlushQueue, InstanceGeometry, L2p, LineId, LineState, Lines, Reclaimer, Release,
    Sequence, StripeOrder, UnitIndex, ValidMap, WriteBuffer,
};
use ocssd_lightnvm::{BufId, Buffers, Geometry, Ppa, Status, VECTOR_MAX};
use std::collections::{BTreeSet, VecDeque};

/// Units of metadata and padding written at a time (chosen: as many as pblk's; more units wait their turn).
const OWN_BUFFERS_MAX: u32 = 32;
/// Units read at a time by garbage collection (chosen: half of what keeps a large drive busy; users keep the rest so).
const COLLECT_BUFFERS_MAX: u32 = 32;
/// Buffer units kept for garbage collection (chosen: one is filled while one is written).
const BUFFER_UNITS_KEPT: u32 = 2;
/// Free lines that are kept, but for what the buffer holds: Linux takes two when it mounts an instance, one to write and the
/// next, and garbage collection needs one.
const LINES_KEPT_MIN: u32 = 3;

/// The target.
#[derive(Clone, Debug)]
pub struct LinuxPblk {
    pub(super) shape: InstanceGeometry,
    pub(super) layout: LineLayout,
    pub(super) block_bytes: u32,
    pub(super) mw_cunits: u32,
    /// What lies beside sectors is in the last of each unit, and not looked at when one is read.
    pub(super) packed: bool,
    pub(super) instance: Uuid,

    pub(super) l2p: L2p,
    pub(super) valid: ValidMap,
    pub(super) lines: Lines,
    pub(super) write_buffer: WriteBuffer,
    pub(super) open: Option<Box<OpenLine>>,
    /// How far the end of the open line is.
    pub(super) end: LineEnd,
    /// The line opened last.
    pub(super) last_line: Option<LineId>,
    /// Full lines that Linux could not use as they are: they are emptied first.
    pub(super) condemned: BTreeSet<LineId>,
    /// The newest write.
    pub(super) sequence: Sequence,
    /// The buffer unit that takes sectors.
    pub(super) filling: Option<BufferUnitId>,
    /// Buffer units that wait for a unit, in order.
    pub(super) ready: VecDeque<BufferUnitId>,

    pub(super) requests: Requests,
    pub(super) flight: Flight,
    pub(super) retries: Retries,
    pub(super) flushes: FlushQueue<EmptyLine>,
    pub(super) gc: Gc,
    /// Lines on their way to be free.
    pub(super) reclaimer: Reclaimer,
    /// A free line that is reset before it is opened.
    pub(super) to_open: Option<LineId>,
    /// Lists of chunks to be reset.
    pub(super) reset_lists: Vec<BufId>,
    pub(super) shutdown: Shutdown,
    /// Nothing is changed: it was asked for, or nothing more can be written.
    pub(super) is_read_only: bool,
    /// How the drive failed, once it did: nothing is changed any more.
    pub(super) stopped: Option<Status>,
    /// Something was changed since the mount.
    pub(super) has_written: bool,
    /// Something happened that may let any procedure go on.
    pub(super) work_due: bool,
    /// The same of those that read.
    pub(super) reads_due: bool,
    /// Commands in flight for reads of users.
    pub(super) reads_in_flight: usize,

    /// Buffer units that users leave to garbage collection.
    pub(super) buffer_units_kept: usize,
    /// Free lines that users leave to it.
    pub(super) lines_kept: u32,
    /// It begins when fewer are free.
    pub(super) lines_low: u32,

    /// The write buffer's memory.
    pub(super) ring: BufId,
    /// Buffers of a unit, for metadata and padding.
    pub(super) own: Vec<BufId>,
    pub(super) stats: LinuxPblkStats,
    pub(super) options: Options,
    /// To find the line of a chunk.
    by_lines: Divisor,
}

/// How far the end of the open line is. It must not be on media before all that its list names: a mount believes the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// Data are being written.
    Ahead,
    /// They are acknowledged, and being made durable.
    Barrier,
    /// They are durable.
    Due,
    /// The end metadata are complete, and being written.
    Known,
}

/// What a mount found.
pub(super) struct Found {
    pub instance: Uuid,
    pub l2p: L2p,
    pub valid: ValidMap,
    pub lines: Lines,
    pub condemned: BTreeSet<LineId>,
    pub last_line: Option<LineId>,
    /// The line that goes on being written.
    pub open: Option<OpenLine>,
    pub is_read_only: bool,
    /// The mount itself wrote.
    pub has_written: bool,
    pub stats: LinuxPblkStats,
    pub options: Options,
}

/// Buffer units of the write buffer: what MW_CUNITS hides, a unit in flight to every parallel unit, and as much to be filled.
pub(super) fn buffer_unit_count(geometry: &Geometry, layout: &LineLayout) -> u32 {
    let hidden = geometry.mw_cunits.div_ceil(layout.unit);
    layout.units() * (hidden + 2) + BUFFER_UNITS_KEPT
}

impl LinuxPblk {
    /// An instance whose map is known.
    pub(super) fn new(
        geometry: &Geometry,
        shape: InstanceGeometry,
        layout: LineLayout,
        packed: bool,
        found: Found,
        buffers: &mut Buffers,
    ) -> Self {
        let Found { instance, l2p, valid, lines, condemned, last_line, .. } = found;
        assert_eq!(l2p.count_mapped(), valid.total(), "the map and what is valid disagree");
        let (count, unit) = (buffer_unit_count(geometry, &layout), layout.unit);
        let slots = count * unit;
        let many = |count: u32, buffers: &mut Buffers| -> Vec<BufId> {
            (0..count).map(|_| buffers.take_whole(unit)).collect()
        };
        let units = layout.units();
        let own = many(units.min(OWN_BUFFERS_MAX), buffers);
        let read = many(units.min(COLLECT_BUFFERS_MAX), buffers);
        let order = (0..units).map(UnitIndex).collect();
        let order = StripeOrder::new(order, shape.sectors_per_chunk(), unit);
        let lists = (0..units.div_ceil(VECTOR_MAX) + 1).map(|_| buffers.take(1)).collect();
        let lines_kept = LINES_KEPT_MIN + slots / layout.sectors();
        Self {
            by_lines: Divisor::new(u64::from(shape.lines())),
            ring: if packed { buffers.take_whole(slots) } else { buffers.take(slots) },
            write_buffer: WriteBuffer::new(count, unit, Release::AsReadable),
            block_bytes: geometry.sector_bytes,
            mw_cunits: geometry.mw_cunits,
            shape,
            layout,
            packed,
            instance,
            l2p,
            valid,
            lines,
            condemned,
            last_line,
            open: found.open.map(Box::new),
            end: LineEnd::Ahead,
            sequence: Sequence(0),
            filling: None,
            ready: VecDeque::with_capacity(usize_of(count)),
            requests: Requests::new(REQUESTS_MAX),
            retries: Retries::default(),
            flight: Flight::new(
                crate::flight::COMMANDS_MAX,
                PlaneRule::new(PlaneReads::Aligned, geometry.ws_opt),
            ),
            flushes: FlushQueue::new(usize_of(REQUESTS_MAX)),
            gc: Gc::new(read, order),
            reclaimer: Reclaimer::new(),
            to_open: None,
            reset_lists: lists,
            shutdown: Shutdown::default(),
            is_read_only: found.is_read_only,
            stopped: None,
            has_written: found.has_written,
            work_due: true,
            reads_due: false,
            reads_in_flight: 0,
            buffer_units_kept: usize_of(BUFFER_UNITS_KEPT),
            lines_kept,
            lines_low: lines_kept + 2,
            own,
            stats: found.stats,
            options: found.options,
        }
        .looked_at()
    }

    /// Lines that hold nothing are reset before anything is written.
    fn looked_at(mut self) -> Self {
        let closed = self.lines.iter().filter(|(_, line)| line.state == LineState::Closed);
        closed.for_each(|(line, _)| self.reclaimer.suspect(line));
        self
    }

    /// The line a sector of this instance is in.
    pub(super) fn line_of(&self, ppa: Ppa) -> LineId {
        LineId(self.by_lines.div_rem_u32(ppa.chunk.0).1)
    }

    /// Nothing can be written any more: what waits for it fails. True if that was found. Reads go on meanwhile, and may never
    /// end.
    pub(super) fn give_up(&mut self) -> bool {
        let waits_to_write = self.requests.next_change().is_some() || !self.flushes.is_idle();
        // A line that waits for the ends of reads to be reset is something to come.
        let only_reads_go_on = self.flight.has_only(self.reads_in_flight) && self.reclaimer.due().len() == 0;
        let is_stuck = match self.flight.len() {
            0 => waits_to_write || self.shutdown.is_waiting(),
            _ => waits_to_write && only_reads_go_on,
        };
        if !is_stuck {
            return false;
        }
        if self.is_read_only {
            // A flush that came later waits for what cannot be written, too.
            return self.fail_flushes(Status::WRITE_FAULT);
        }
        self.is_read_only = true;
        self.fail_flushes(Status::WRITE_FAULT);
        true
    }

    /// Asserts every invariant.
    pub(super) fn check_all(&self) {
        self.flight.check();
        self.l2p.check();
        self.write_buffer.check();
        // A line that was taken is free until its reset begins.
        let is_free = |line: LineId| matches!(self.lines.get(line).state, LineState::Free { .. });
        self.lines.check(usize::from(self.to_open.is_some_and(is_free)));
        self.requests.check();
        assert!(self.requests.parts() <= self.flight.len(), "reads have more commands than there are");
        self.check_gc();
        let newest = u64::try_from(self.write_buffer.count_newest()).expect("a buffer's slots");
        assert!(newest <= self.l2p.count_mapped(), "more blocks are in the buffer than are somewhere");
        if let Some(open) = &self.open {
            open.check();
        }
    }
}
