//! Plain reads: the short way of the most frequent command.
//!
//! A read of neighbouring sectors that one sense takes off the array, all on media, that can meet no fault needs one
//! part and no decision.
//! It is recognized and begun here; every other read takes the long way (`read`). Both come to the same, and tests
//! compare them. Deliberately not here: refusing anything.

use crate::config::Config;
use crate::deferred_copies::{DEFERRED_BYTES_MAX, DeferredCopy, Destination, WantedBytes};
use crate::drive::Flash;
use crate::faults::Faults;
use crate::flow::{InFlight, Kind};
use crate::media::{CommandPart, PartKind, Phase, Span};
use crate::store::Store;
use ocssd_base::Nanos;
use ocssd_lightnvm::{Addresses, Buffers, ChunkState, Command, Op, PayloadFormat, Ppa};

/// Where a plain read reads.
struct Place {
    first: Ppa,
    count: u32,
    /// What one sense takes off the array, and the window of it all of the read lies in.
    span: Span,
    window: u32,
    /// The chunk's life.
    cycles: u32,
}

impl Flash {
    /// Takes a read if it is plain; false, and nothing changed, if it has to go the long way.
    #[inline(always)]
    pub(crate) fn take_plain_read(&mut self, now: Nanos, command: &Command, buffers: &Buffers) -> bool {
        self.advance(now);
        assert!(
            command.op == Op::Read && !self.deferred_copies.is_full(),
            "only reads are plain, and there is room for one"
        );
        if self.flow.is_full() {
            return false;
        }
        let Some(Place { first, count, span, window, cycles }) = self.plain_place(command, buffers) else {
            return false;
        };
        let deferred_copy = match command.buffer {
            Some(buffer) => {
                let to = Destination { buffer, first: command.buffer_first, oob: command.oob };
                self.deferred_copies.push(DeferredCopy { first, count, bytes: WantedBytes::default(), to })
            }
            None => 0,
        };
        self.counters.sectors_read += u64::from(count);
        let taken = InFlight {
            sectors: count,
            remaining: 1,
            deferred_copy,
            ..InFlight::new(command.tag, Kind::Read)
        };
        let key = self.flow.insert(taken);
        if let Some(waits) = &mut self.media.waits {
            waits.on_taken(now, key, command.buffer, true);
        }
        let id = self.media.add(CommandPart {
            command: key,
            kind: PartKind::Read,
            phase: Phase::Waiting,
            pu: self.chunks.pu_of(first.chunk),
            chunk: first.chunk,
            first: first.sector,
            count,
            moved: 0,
            span,
            window,
            cycles,
            delay: Nanos::ZERO,
            epoch: self.flow.epoch(),
            sequence: 0,
            next: None,
        });
        self.media.enqueue(now, id);
        true
    }

    /// Where the read reads, if it is plain.
    #[inline(always)]
    fn plain_place(&self, command: &Command, buffers: &Buffers) -> Option<Place> {
        let (first, count) = match (command.addresses, command.buffer) {
            (Addresses::Run { first, count }, _) => (first, count),
            (Addresses::List { offset, count: 1 }, Some(buffer)) => {
                let offset = usize::try_from(offset).expect("32 bits fit an index");
                (*buffers.addresses(buffer).get(offset)?, 1)
            }
            _ => return None,
        };
        let chunk = self.chunks.find(first.chunk)?;
        let end = first.sector.checked_add(count)?;
        let on_media = end <= chunk.programmed && count > 0;
        // In an OPEN chunk the newest MW_CUNITS sectors cannot be read yet.
        let readable = match chunk.state {
            ChunkState::Closed => true,
            ChunkState::Open => end.checked_add(self.config.geometry.mw_cunits)? <= chunk.write_pointer,
            ChunkState::Free | ChunkState::Offline => false,
        };
        let flagged = chunk.has_unreadable || chunk.has_scheduled;
        if !on_media || !readable || flagged || count > self.plain_max || self.flow.has_copies() {
            return None;
        }
        assert!(chunk.programmed <= chunk.write_pointer, "more is on media than was written");
        let span = self.media.sensing.span(command.plane_mode);
        let windows = self.media.sensing.windows(span);
        let (window, within) = windows.div_rem_u32(first.sector);
        let fits = u64::from(within) + u64::from(count) <= windows.value();
        let has_room = command.buffer.is_none_or(|buffer| {
            let end = u64::from(command.buffer_first) + u64::from(count);
            end <= u64::from(buffers.stamp_sectors(buffer))
        });
        (fits && has_room).then_some(Place { first, count, span, window, cycles: chunk.cycles })
    }

    /// Most sectors of a plain read; 0 if none is: reads can meet faults at any place, or content lies in a backing or is
    /// too long to be copied later.
    pub(crate) fn plain_read_max(config: &Config, faults: &Faults, store: &Store) -> u32 {
        if faults.can_meet_reads() || matches!(store, Store::Backed(_)) {
            return 0;
        }
        let format = PayloadFormat::new(config.payload, &config.geometry);
        u32::try_from(DEFERRED_BYTES_MAX / format.data_bytes).unwrap_or(u32::MAX)
    }
}
