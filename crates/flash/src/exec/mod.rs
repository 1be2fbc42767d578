//! What commands do to the drive's state, one file per command. Rules are judged first, then everything is changed at
//! once; parts are made for the media to take their time with.

mod backing;
mod copy;
mod plain_read;
mod read;
mod reset;
mod write;

pub(crate) use copy::WholeScratch;
pub(crate) use reset::SavedChunk;

use crate::addresses::AddressList;
use crate::deferred_copies::Destination;
use crate::drive::Flash;
use crate::faults::FailedOp;
use crate::flow::{InFlight, Kind};
use crate::media::{CommandPart, PartId, PartKind, Phase, Span};
use crate::rules::Refusal;
use ocssd_base::{Divisor, Nanos, SlabKey};
use ocssd_lightnvm::{ChunkId, PlaneMode, Ppa, Rejected, Rule, Status, Tag, VECTOR_MAX, Violation};

/// Most chunks of one Dataset Management: its count has 8 bits, 0-based (NVMe base 1.4 section 6.7).
const RANGES_MAX: u32 = 256;

/// How a read is told of sectors it cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPolicy {
    /// Unwritten sectors are an error (DULBE, feature 05h) and not predefined data.
    pub unwritten_is_error: bool,
    /// High ECC is reported (media feedback, feature CAh).
    pub report_high_ecc: bool,
    /// What fills predefined data (DLFEAT): 00h or FFh.
    pub predefined: u8,
    /// Do not try hard (LR of CDW12): what would need a second sense is given up as unrecovered.
    pub limited_retry: bool,
    /// How the planes are driven, as far as the drive leaves that to the command.
    pub plane_mode: PlaneMode,
}

impl ReadPolicy {
    /// Tells everything: what targets get.
    pub const STRICT: Self = Self {
        unwritten_is_error: true,
        report_high_ecc: true,
        predefined: 0,
        limited_retry: false,
        plane_mode: PlaneMode::Single,
    };
}

/// What an operation does.
#[derive(Clone, Copy, Debug)]
pub enum OperationKind<'a> {
    /// Fills data and metadata.
    Read(ReadPolicy),
    /// Stores data and metadata.
    Write {
        /// Ends only when programmed.
        fua: bool,
    },
    /// Empties chunks.
    Reset,
    /// Moves sectors to these destinations.
    Copy(AddressList<'a>),
    /// Ends when everything before it is programmed.
    Flush,
}

/// A command with its payload, typed or raw: the one way into the drive.
#[derive(Debug)]
pub struct Operation<'a> {
    /// The issuer's name for it.
    pub tag: Tag,
    /// What to do.
    pub kind: OperationKind<'a>,
    /// Where; more than 64 sectors only as a run (scalar commands).
    pub addresses: AddressList<'a>,
    /// Payload: at least `data_bytes` per sector, or empty for a read whose data nobody wants.
    pub data: &'a mut [u8],
    /// Metadata: at least `oob_bytes` per sector, or empty for none.
    pub oob: &'a mut [u8],
    /// All bytes of the sectors beside their stamps, `sector_bytes` per sector: of all, of the first of them, or empty for
    /// stamps alone and where data are the bytes; never without data. What is written with them is whole, and a read gives
    /// them.
    pub whole: &'a mut [u8],
}

/// Parts of a command while it is being taken: linked in order, and counted.
pub(crate) struct PartList {
    command: SlabKey,
    head: Option<PartId>,
    tail: Option<PartId>,
    count: u32,
    /// Array time on top for the parts that follow: a read that has to be tried again.
    retry: Nanos,
    /// What its reads take off the array at once.
    span: Span,
    /// Where a read's content goes, if it may be copied later.
    destination: Option<Destination>,
}

impl PartList {
    const fn new(command: SlabKey, destination: Option<Destination>) -> Self {
        Self { command, head: None, tail: None, count: 0, retry: Nanos::ZERO, span: Span::Row, destination }
    }
}

impl Flash {
    /// Takes an operation at `now`: settles what it does, and starts it on its way.
    ///
    /// # Errors
    /// [`Rejected`] if as many commands are in flight as the drive takes; nothing was changed.
    ///
    /// # Panics
    /// If it changes content while reads that came by [`Device::submit`](ocssd_lightnvm::Device::submit) are in flight:
    /// their buffers, which are not at hand here, may still have to be filled.
    pub fn execute(&mut self, now: Nanos, operation: Operation<'_>) -> Result<(), Rejected> {
        let changes = !matches!(operation.kind, OperationKind::Read(_) | OperationKind::Flush);
        assert!(
            self.deferred_copies.is_empty() || !changes,
            "content changes under a read that is in flight"
        );
        self.take(now, operation, None)
    }

    /// As [`Self::execute`]; a read's content may be copied to `destination` later.
    pub(crate) fn take(
        &mut self,
        now: Nanos,
        mut operation: Operation<'_>,
        destination: Option<Destination>,
    ) -> Result<(), Rejected> {
        self.advance(now);
        if self.flow.is_full() {
            return Err(Rejected::QueueFull);
        }
        let kind = match operation.kind {
            OperationKind::Read(_) => Kind::Read,
            OperationKind::Write { fua } => Kind::Write { fua },
            OperationKind::Reset => Kind::Reset,
            OperationKind::Copy(_) => Kind::Copy,
            OperationKind::Flush => Kind::Flush,
        };
        let key = self.flow.insert(InFlight::new(operation.tag, kind));
        if let Some(waits) = &mut self.media.waits {
            let moves = matches!(kind, Kind::Read | Kind::Write { .. });
            let buffer = destination.filter(|_| moves).map(|destination| destination.buffer);
            waits.on_taken(now, key, buffer, kind == Kind::Read);
        }
        let mut parts = PartList::new(key, destination);
        if let Some(refusal) = self.check_shape(&operation) {
            self.refuse(key, &refusal, operation.addresses.count());
        } else if let Some(status) = self.refusal_of_backing(&operation.kind) {
            self.fail_all(key, operation.addresses.count(), status);
        } else if !self.fails_as_such(key, &mut operation) {
            match operation.kind {
                OperationKind::Read(policy) => self.read(policy, &mut operation, &mut parts),
                OperationKind::Write { .. } => self.write(&mut operation, &mut parts),
                OperationKind::Reset => self.reset(&operation.addresses, &mut parts),
                OperationKind::Copy(to) => self.copy(&operation.addresses, &to, &mut parts),
                OperationKind::Flush => self.sync_for(key, 0),
            }
        }
        let command = self.flow.command_mut(key);
        (command.waiting, command.remaining) = (parts.head, parts.count);
        self.flow.start(now, key, &mut self.media);
        Ok(())
    }

    /// True if a command ends before anything of it is done, by a fault that was asked for.
    fn fails_as_such(&mut self, key: SlabKey, operation: &mut Operation<'_>) -> bool {
        if !self.faults.commands_can_fail() {
            return false;
        }
        let (op, count) = (FailedOp::of(&operation.kind), operation.addresses.count());
        let Some(status) = self.faults.command_outcome(op, &operation.addresses) else { return false };
        if op == FailedOp::Read {
            self.poison(operation, 0, count);
        }
        self.flow.command_mut(key).fail(status, 0, count, None);
        true
    }

    /// Length and buffers, which every command shares.
    fn check_shape(&self, operation: &Operation<'_>) -> Option<Refusal> {
        let count = operation.addresses.count();
        let vector = matches!(operation.addresses, AddressList::List(_));
        let (limit, needs_data, flush) = match operation.kind {
            OperationKind::Flush => (0, false, true),
            OperationKind::Reset => (RANGES_MAX, false, false),
            OperationKind::Copy(_) => (VECTOR_MAX, false, false),
            OperationKind::Read(_) => {
                (u32::MAX, !operation.data.is_empty() || !operation.whole.is_empty(), false)
            }
            OperationKind::Write { .. } => (u32::MAX, true, false),
        };
        let limit = if vector { limit.min(VECTOR_MAX) } else { limit };
        let refusal = |rule| {
            let at = operation.addresses.runs().next().map_or(Ppa::NOWHERE, |run| run.first);
            let violation = Violation { rule, at, chunk: None };
            Some(Refusal { status: Status::INVALID_FIELD, entry: 0, entries: count, violation })
        };
        if !flush && (count == 0 || count > limit) {
            return refusal(Rule::VectorLength);
        }
        let sectors = usize::try_from(count).expect("32 bits fit an index");
        let short = needs_data && operation.data.len() < sectors * self.format.data_bytes;
        let short_oob = !operation.oob.is_empty() && operation.oob.len() < sectors * self.format.oob_bytes;
        let whole = &operation.whole;
        let half_whole = !whole.len().is_multiple_of(self.format.sector_bytes);
        if short || (needs_data && (short_oob || half_whole)) {
            return refusal(Rule::BufferLength);
        }
        None
    }

    /// A command that broke a rule: nothing was changed, no entry was done.
    fn refuse(&mut self, key: SlabKey, refusal: &Refusal, entries: u32) {
        self.counters.refused += 1;
        let command = self.flow.command_mut(key);
        command.fail(refusal.status, 0, entries, Some(refusal.violation));
    }

    /// Adds a part for the media.
    fn add_part(&mut self, parts: &mut PartList, kind: PartKind, chunk: ChunkId, first: u32, count: u32) {
        let window = self.media.sensing.windows(parts.span).div_rem_u32(first).0;
        assert!(first + count <= self.config.geometry.sectors_per_chunk, "a part reaches beyond its chunk");
        let entry = self.chunks.get(chunk);
        let (cycles, scheduled) = (entry.cycles, entry.has_scheduled);
        let part = CommandPart {
            command: parts.command,
            kind,
            phase: Phase::Waiting,
            pu: self.chunks.pu_of(chunk),
            chunk,
            first,
            count,
            moved: 0,
            span: parts.span,
            window,
            cycles,
            delay: self.faults.delay(chunk, first, count, scheduled) + parts.retry,
            epoch: self.flow.epoch(),
            sequence: 0,
            next: None,
        };
        let id = self.media.add(part);
        match parts.tail {
            Some(tail) => self.media.part_mut(tail).next = Some(id),
            None => parts.head = Some(id),
        }
        parts.tail = Some(id);
        parts.count += 1;
        if kind == PartKind::Program {
            self.flow.count_program();
        }
    }

    /// Adds a part per window of so many sectors that `first .. first + count` touches.
    fn add_windows(&mut self, parts: &mut PartList, kind: PartKind, first: Ppa, count: u32, window: Divisor) {
        assert!(count > 0, "nothing to do was given to the media");
        let end = first.sector + count;
        let sectors = u32::try_from(window.value()).expect("a window is within a chunk");
        let mut at = first.sector;
        while at < end {
            let until = end.min(at - window.div_rem_u32(at).1 + sectors);
            if kind != PartKind::Read || !self.joins_last(parts, first.chunk, at, until - at) {
                self.add_part(parts, kind, first.chunk, at, until - at);
            }
            at = until;
        }
    }

    /// Lets the part added last read these sectors as well, if they are of the page or row it reads: a command senses that
    /// once, and all it wants of it leaves the register in one transfer. True if it does.
    fn joins_last(&mut self, parts: &PartList, chunk: ChunkId, first: u32, count: u32) -> bool {
        let Some(last) = parts.tail.filter(|_| parts.retry == Nanos::ZERO) else { return false };
        let windows = self.media.sensing.windows(parts.span);
        let (window, most) = (windows.div_rem_u32(first).0, windows.value());
        let part = self.media.part_mut(last);
        let is_same = part.kind == PartKind::Read && part.chunk == chunk && part.window == window;
        // No more leaves the register at once than it holds, whatever a list names twice.
        let joins = is_same && part.delay == Nanos::ZERO && u64::from(part.count + count) <= most;
        if joins {
            part.count += count;
        }
        joins
    }
}
