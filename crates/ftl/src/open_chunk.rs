//! A chunk that is being written: places given out in order, writes that end in any, and what cannot be read yet.
//!
//! Deliberately not here: which chunk is written next (`append_point`), data, commands.

use crate::append_point::{Append, AppendConfig, AppendEvent, ProgramOutcome};
use crate::instance_geometry::ChunkIndex;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct InFlight<T> {
    end: u32,
    sector: u32,
    /// `None` while it is in flight.
    outcome: Option<ProgramOutcome<T>>,
}

/// A chunk that is being written: places given out in order, writes that end in any, and what cannot be read yet.
///
/// An [`AppendPoint`](crate::AppendPoint) has one for each position; an owner that decides itself where each write goes has them
/// directly.
#[derive(Clone, Debug)]
pub struct OpenChunk<T> {
    pub(crate) chunk: ChunkIndex,
    /// Next sector to write.
    pub(crate) pointer: u32,
    /// Every write before this sector is over.
    pub(crate) acknowledged: u32,
    /// The drive closed it.
    pub(crate) is_closed: bool,
    /// The drive failed under a write to it: nothing follows, and nothing more of it can be read.
    pub(crate) is_refused: bool,
    /// Writes given out, in order, from the oldest that is in flight on.
    writes: VecDeque<InFlight<T>>,
    /// What was programmed and cannot be read yet, with where it begins and ends.
    held: VecDeque<(u32, u32, T)>,
}

impl<T: Copy> OpenChunk<T> {
    /// A chunk that was written up to `pointer` before, all of which can be read.
    #[must_use]
    pub const fn new(chunk: ChunkIndex, pointer: u32) -> Self {
        Self {
            chunk,
            pointer,
            acknowledged: pointer,
            is_closed: false,
            is_refused: false,
            writes: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// Which chunk it is.
    #[must_use]
    pub const fn chunk(&self) -> ChunkIndex {
        self.chunk
    }

    /// The next sector to be written.
    #[must_use]
    pub const fn pointer(&self) -> u32 {
        self.pointer
    }

    /// Writes in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.writes.iter().filter(|write| write.outcome.is_none()).count()
    }

    /// True if more may be written to it: neither the drive closed it, nor failed under a write to it.
    #[must_use]
    pub const fn takes_more(&self, config: &AppendConfig) -> bool {
        !self.is_closed && !self.is_refused && self.pointer < config.chunk_sectors
    }

    /// True if it takes no more, and nothing to it is in flight.
    #[must_use]
    pub fn is_over(&self, config: &AppendConfig) -> bool {
        !self.takes_more(config) && self.writes.is_empty()
    }

    /// True if something was programmed that cannot be read yet.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty() || self.writes.iter().any(|write| write.outcome.is_some())
    }

    /// True if the drive did not fail under a write to it, and nothing to it is in flight.
    pub(crate) fn has_ended(&self) -> bool {
        self.writes.is_empty() && !self.is_refused
    }

    /// What was programmed at a sector that cannot be read yet, and which of its sectors that is.
    pub(crate) fn held_at(&self, sector: u32) -> Option<(T, u32)> {
        let held = self.held.iter().copied();
        let behind = self.writes.iter().filter_map(|write| match write.outcome {
            Some(ProgramOutcome::Written(what)) => Some((write.sector, write.end, what)),
            _ => None,
        });
        let (start, _, what) = held.chain(behind).find(|&(start, end, _)| (start..end).contains(&sector))?;
        Some((what, sector - start))
    }

    /// The place for a write of `sectors`, which counts as given out.
    ///
    /// # Panics
    /// If the chunk has no room for it.
    pub fn give(&mut self, sectors: u32, config: &AppendConfig) -> Append {
        let place = Append { chunk: self.chunk, sector: self.pointer };
        self.pointer += sectors;
        assert!(self.pointer <= config.chunk_sectors, "a chunk is written beyond its end");
        self.writes.push_back(InFlight { sector: place.sector, end: self.pointer, outcome: None });
        place
    }

    /// A write is over: what can be read now.
    ///
    /// # Panics
    /// If it was not given out, or ended before.
    pub fn programmed(
        &mut self,
        config: &AppendConfig,
        sector: u32,
        outcome: ProgramOutcome<T>,
        events: &mut Vec<AppendEvent<T>>,
    ) {
        let write = self.writes.iter_mut().find(|write| write.sector == sector && write.outcome.is_none());
        write.expect("a write ends once").outcome = Some(outcome);
        self.is_closed |= matches!(outcome, ProgramOutcome::Closed);
        while let Some(write) = self.writes.pop_front_if(|write| write.outcome.is_some()) {
            assert!(write.end > self.acknowledged, "writes to a chunk are out of order");
            self.is_refused |= matches!(write.outcome, Some(ProgramOutcome::Refused));
            if !self.is_refused {
                self.acknowledged = write.end;
            }
            if let Some(ProgramOutcome::Written(what)) = write.outcome {
                self.held.push_back((write.sector, write.end, what));
            }
        }
        let limit = self.readable(config);
        while let Some((.., what)) = self.held.pop_front_if(|&mut (_, end, _)| end <= limit) {
            events.push(AppendEvent::Readable(what));
        }
    }

    /// How many sectors can be read.
    fn readable(&self, config: &AppendConfig) -> u32 {
        if self.is_closed || self.acknowledged >= config.chunk_sectors {
            self.acknowledged
        } else {
            self.acknowledged.saturating_sub(config.mw_cunits)
        }
    }
}
