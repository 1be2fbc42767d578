//! Buffer units go to media: a place for each, force unit access, and what becomes of it.
//!
//! Data are on media before their commit is logged, because their write is not over before: so a commit that recovery finds
//! never names what a power cut took. Deliberately not here: which buffer units there are (`write_buffer`).

use super::commit::{Commit, Done};
use super::flight::Purpose;
use super::space::{Claim, Space};
use super::state::Ox;
use super::store::Store;
use super::write_buffer::{BufferUnitId, StreamIndex};
use crate::journal::outcome;
use ocssd_base::usize_of;
use ocssd_ftl::{Append, AppendEvent, ChunkUse, PhysicalAddress, SectorTag, TAG_BYTES};
use ocssd_lightnvm::{Addresses, Buffers, Completion, Op, Ppa};

impl<S: Store> Ox<S> {
    /// Gives out ready buffer units, as far as there are places. True if any was.
    pub(crate) fn program(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for stream in (0..u32::try_from(self.data_points.len()).expect("few streams")).map(StreamIndex) {
            while self.flight.has_room(1) && self.program_next(stream, buffers) {
                any = true;
            }
        }
        any
    }

    fn program_next(&mut self, stream: StreamIndex, buffers: &mut Buffers) -> bool {
        let Some(buffer_unit) = self.buffer.next_ready(stream) else { return false };
        let claim = match stream {
            StreamIndex::USER => Claim::User,
            _ if self.buffer.is_of_map(stream) => Claim::Map,
            _ => Claim::Gc,
        };
        let Some(at) = self.place_for(stream, claim) else { return false };
        let place = PhysicalAddress(self.space.shape.first_place(at.chunk).0 + u64::from(at.sector));
        let filled = self.buffer.filled(buffer_unit);
        assert!((1..=self.sizes.unit).contains(&filled), "{filled} sectors go out in a buffer unit");
        self.buffer.issued(stream, place);
        if claim == Claim::User {
            self.group_commit.buffer_unit_given_out(buffer_unit);
        }
        self.space.pin(at.chunk, self.pieces(buffer_unit));
        S::encode(self, buffer_unit, buffers);
        self.pad(buffer_unit, filled, buffers);
        let again = self.buffer.is_again(buffer_unit);
        let unit = self.sizes.unit;
        self.stats.programmed += u64::from(unit);
        if again {
            self.stats.rewritten += u64::from(unit);
        } else {
            let written = match claim {
                Claim::User => &mut self.stats.data_written,
                Claim::Map => &mut self.stats.map_written,
                _ => &mut self.stats.gc_written,
            };
            *written += u64::from(filled);
            self.stats.padded += u64::from(unit - filled);
        }
        let addresses = self.run_at(at, unit);
        let buffer = self.buffer.buffer(buffer_unit);
        self.flight.send(
            Purpose::BufferUnit { buffer_unit, at },
            Op::Write { fua: true },
            addresses,
            Some(buffer),
            0,
        );
        true
    }

    /// A place for a unit of a stream. Users' go to a chunk of a group that is not marked, if there is any: one that was opened
    /// before its group was marked waits until garbage is collected elsewhere.
    fn place_for(&mut self, stream: StreamIndex, claim: Claim) -> Option<Append> {
        let Self { data_points, space, sizes, .. } = self;
        let point = &mut data_points[stream.index()];
        let may_open = space.allows(claim);
        if claim == Claim::User && space.is_any_marked() {
            let is_quiet = |space: &Space<S::Live>, chunk| !space.is_marked(space.pool.group_of(chunk));
            let next = point
                .next_among(sizes.unit, space, may_open, is_quiet, |space, units| space.open(units, claim));
            if next.is_some() {
                return next;
            }
        }
        point.next_among(sizes.unit, space, may_open, |_, _| true, |space, units| space.open(units, claim))
    }

    /// Pieces in a buffer unit.
    fn pieces(&self, buffer_unit: BufferUnitId) -> u32 {
        u32::try_from(self.buffer.slots(buffer_unit).len()).expect("a buffer unit is small")
    }

    /// A run of sectors of a chunk, as the drive calls it.
    pub(crate) fn run_at(&self, at: Append, count: u32) -> Addresses {
        assert!(at.sector + count <= self.sizes.chunk, "a run leaves its chunk");
        Addresses::Run { first: Ppa::new(self.space.shape.chunk_id(at.chunk), at.sector), count }
    }

    /// Fills the rest of a buffer unit.
    fn pad(&mut self, buffer_unit: BufferUnitId, filled: u32, buffers: &mut Buffers) {
        let buffer = self.buffer.buffer(buffer_unit);
        for sector in filled..self.sizes.unit {
            let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
            data.fill(0);
            oob.fill(0);
            oob[..TAG_BYTES].copy_from_slice(&SectorTag::PAD.encode(data));
        }
    }

    /// A write of a buffer unit ended.
    pub(crate) fn buffer_unit_done(
        &mut self,
        buffer_unit: BufferUnitId,
        at: Append,
        completion: &Completion,
    ) {
        let (status, stream) = (completion.status, self.buffer.stream(buffer_unit));
        let place = self.buffer.place(buffer_unit).expect("it was given out");
        assert_eq!(
            self.space.shape.chunk_of(place),
            (at.chunk, at.sector),
            "{buffer_unit:?} was programmed elsewhere"
        );
        if status.is_drive_failure() {
            self.stop(status);
        }
        if stream == StreamIndex::USER {
            self.group_commit.buffer_unit_ended(buffer_unit);
        }
        if status.is_success() {
            self.buffer_unit_programmed(buffer_unit, stream, place);
        } else {
            self.space.unpin(at.chunk, self.pieces(buffer_unit));
        }
        let mut events = Vec::new();
        let outcome = outcome(status, buffer_unit);
        self.data_points[stream.index()].programmed(at, outcome, &mut events);
        for event in events {
            match event {
                AppendEvent::Readable(buffer_unit) => self.buffer.release(buffer_unit),
                AppendEvent::Closed(chunk) => {
                    self.space.close(chunk);
                    self.look_at(chunk);
                }
            }
        }
        if !status.is_success() {
            self.buffer.failed(buffer_unit);
            if self.refuses_changes().is_some() {
                self.drop_waiting();
            }
        }
    }

    /// A buffer unit is on media.
    fn buffer_unit_programmed(
        &mut self,
        buffer_unit: BufferUnitId,
        stream: StreamIndex,
        place: PhysicalAddress,
    ) {
        let is_of_map = self.buffer.is_of_map(stream);
        // They are read from where they were programmed, also if that is never logged.
        let pages = if is_of_map { S::pages_programmed(self, buffer_unit, place) } else { Vec::new() };
        if self.refuses_changes().is_some() {
            let chunk = self.space.shape.chunk_of(place).0;
            self.space.unpin(chunk, self.pieces(buffer_unit));
        } else if is_of_map {
            self.urgent.push_back(Commit { entries: pages, blocks: 0, done: Done::Gc });
        } else if stream == StreamIndex::USER {
            S::programmed(self, buffer_unit, place);
        } else {
            assert!(self.pieces(buffer_unit) > 0, "a buffer unit of nothing was programmed");
            let entries = S::copies_programmed(self, buffer_unit, place);
            if !entries.is_empty() {
                self.commits.push_back(Commit { entries, blocks: 0, done: Done::Gc });
            }
        }
    }

    /// The buffer unit that holds what lies at a place which cannot be read yet, and which of its sectors that is.
    pub(crate) fn held(&self, place: PhysicalAddress) -> Option<(BufferUnitId, u32)> {
        let (chunk, sector) = self.space.shape.chunk_of(place);
        self.held_at(Append { chunk, sector })
    }

    /// The same, of a sector of a chunk.
    #[inline]
    pub(crate) fn held_at(&self, at: Append) -> Option<(BufferUnitId, u32)> {
        if self.space.pool.get(at.chunk) == ChunkUse::Open { self.held_in_open(at) } else { None }
    }

    fn held_in_open(&self, at: Append) -> Option<(BufferUnitId, u32)> {
        // Users' point comes first, and has most open chunks.
        let held = self.data_points.iter().find(|point| point.has(at.chunk)).and_then(|point| point.held(at));
        assert!(
            held.is_none_or(|(_, offset)| usize_of(offset) < usize_of(self.sizes.unit)),
            "beyond a buffer unit"
        );
        held
    }
}
