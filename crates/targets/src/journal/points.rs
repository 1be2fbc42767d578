//! Where pages go: the log striped over units, and checkpoints over one half of the units and the other in turn.
//!
//! Two checkpoints are kept. On units of their own they are not both lost with a unit that dies; an instance on one unit has
//! both there. Deliberately not here: when a page is written, and what is in it (`pages`).

use super::pages::{JournalSizes, PageChunks, PageKind};
use ocssd_ftl::{
    Append, AppendConfig, AppendEvent, AppendPoint, ChunkIndex, InstanceGeometry, ProgramOutcome, UnitIndex,
};

/// A number as 32 bits; a larger one is taken for the largest.
pub fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Chunks lost to failures before the log or a checkpoint lacks room (chosen).
const SPARE_CHUNKS: u32 = 1;

/// Chunks that `pages` of `page` sectors take, striped over `width` chunks, wherever they begin; one may fail.
pub fn chunks_of(pages: u64, page: u32, chunk: u32, width: u32) -> u32 {
    assert!(page > 0 && chunk >= page && width > 0, "pages of {page} sectors in chunks of {chunk}");
    let per_chunk = u64::from(chunk / page);
    width * (narrow(pages.div_ceil(per_chunk * u64::from(width))) + 1) + SPARE_CHUNKS
}

/// The units of one side: every other one, or the only one.
fn side_of(units: u32, side: u32) -> Vec<UnitIndex> {
    (side..units).step_by(2).map(UnitIndex).collect()
}

/// How many sides checkpoints take turns on.
fn sides(units: u32) -> u32 {
    units.min(2)
}

/// Chunks that checkpoints of `pages` take on so many units, striped over `width` chunks of a side: of two sides one has the
/// newest, the other the one before, and the next is written beside that.
pub fn checkpoint_chunks_of(pages: u64, (unit, chunk): (u32, u32), width: u32, units: u32) -> u32 {
    if units == 1 {
        return chunks_of(3 * pages, unit, chunk, width);
    }
    let of_side = |side: u32| {
        let width = width.min((units + 1 - side) / 2);
        chunks_of(2 * pages, unit, chunk, width) - SPARE_CHUNKS
    };
    of_side(0) + of_side(1) + SPARE_CHUNKS
}

/// Where pages go.
#[derive(Clone, Debug)]
pub struct PagePoints {
    all: Vec<UnitIndex>,
    log: AppendPoint<()>,
    /// One for each side.
    checkpoints: Vec<AppendPoint<()>>,
    /// The side the checkpoint is on that was begun last.
    side: usize,
}

impl PagePoints {
    /// Points on all units.
    pub fn new(shape: &InstanceGeometry, sizes: &JournalSizes) -> Self {
        let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
        let point = |units: &[UnitIndex], width: u32| {
            let width = width.min(u32::try_from(units.len()).expect("fewer units than 2^32"));
            let config = AppendConfig {
                chunk_sectors: sizes.chunk,
                mw_cunits: sizes.mw_cunits,
                width,
                depth: sizes.depth,
            };
            AppendPoint::new(config, units)
        };
        let sides = (0..sides(shape.units())).map(|side| side_of(shape.units(), side));
        let checkpoints: Vec<AppendPoint<()>> =
            sides.map(|units| point(&units, sizes.checkpoint_width)).collect();
        assert!(!checkpoints.is_empty(), "checkpoints have nowhere to go");
        Self { log: point(&all, sizes.log_width), all, checkpoints, side: 0 }
    }

    /// A checkpoint begins: on the other side than the one before it.
    pub fn begin_checkpoint(&mut self) {
        self.side = (self.side + 1) % self.checkpoints.len();
    }

    /// The place of the next page. Where the side of a checkpoint has no free chunk, any unit will do.
    pub fn next(&mut self, kind: PageKind, sectors: u32, chunks: &mut impl PageChunks) -> Option<Append> {
        let Self { all, log, checkpoints, side } = self;
        match kind {
            PageKind::Log => log.next(sectors, |units| chunks.open_for(units, kind)),
            PageKind::Checkpoint => {
                let point = &mut checkpoints[*side];
                let at = point.next(sectors, |units| chunks.open_for(units, kind));
                at.or_else(|| point.next(sectors, |_| chunks.open_for(all, kind)))
            }
        }
    }

    /// A write of a page is over.
    pub fn programmed(
        &mut self,
        kind: PageKind,
        at: Append,
        outcome: ProgramOutcome<()>,
        events: &mut Vec<AppendEvent<()>>,
    ) {
        let point = match kind {
            PageKind::Log => &mut self.log,
            PageKind::Checkpoint => {
                let mut points = self.checkpoints.iter_mut();
                points
                    .find(|point| point.has(at.chunk))
                    .expect("a page was programmed in a chunk of neither side")
            }
        };
        point.programmed(at, outcome, events);
    }

    /// Goes on in an open chunk that was found at mount; false if there is no place for one more.
    pub fn adopt(&mut self, kind: PageKind, chunk: ChunkIndex, unit: UnitIndex, pointer: u32) -> bool {
        match kind {
            PageKind::Log => self.log.adopt(chunk, unit, pointer),
            PageKind::Checkpoint => {
                self.checkpoints.iter_mut().any(|point| point.adopt(chunk, unit, pointer))
            }
        }
    }

    /// Asserts what holds between calls.
    pub fn check(&self) {
        self.log.check();
        self.checkpoints.iter().for_each(AppendPoint::check);
        assert!(self.side < self.checkpoints.len(), "a checkpoint is on no side");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_share_no_unit_and_have_all() {
        for units in 1..9 {
            let mut all: Vec<UnitIndex> = (0..sides(units)).flat_map(|side| side_of(units, side)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..units).map(UnitIndex).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_side_has_room_for_two_checkpoints_and_one_chunk_may_fail() {
        // Ten pages in chunks of four: two and a half chunks, begun anywhere, in one stripe on each of three units.
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 1, 3), 2 * (5 + 1) + 1);
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 2, 3), 2 * (3 + 1) + (5 + 1) + 1);
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 1, 1), chunks_of(30, 8, 32, 1));
    }
}
