//! Where pages go: each copy of the log striped over one half of the units, and checkpoints over one half and the other in turn.
//!
//! Copies of a page of the log are placed so that no power cut takes both ([`LogPlaces`]). An instance on one unit has them in
//! two chunks of it.
//! Two checkpoints are kept. On units of their own they are not both lost with a unit that dies; an instance on one unit has
//! both there. Deliberately not here: when a page is written, and what is in it (`pages`).

use super::log_places::LogPlaces;
use super::pages::{JournalSizes, PageChunks, PageKind};
use ocssd_base::usize_of;
use ocssd_ftl::log::LogCopy;
use ocssd_ftl::{
    Append, AppendConfig, AppendEvent, AppendPoint, ChunkIndex, InstanceGeometry, ProgramOutcome, UnitIndex,
};

/// A number as 32 bits; a larger one is taken for the largest.
pub fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Chunks lost to failures before the log or a checkpoint lacks room (chosen).
const SPARE_CHUNKS: u32 = 1;

/// Sectors that a program cut short may take along before it: a write unit, or the cells that are written in turns, as MW_CUNITS
/// says (OCSSD 2.0, section 2.2).
pub const fn reach_of_loss(unit: u32, mw_cunits: u32) -> u32 {
    if unit > mw_cunits { unit } else { mw_cunits }
}

/// Chunks that the log is striped over, `most` at most: as many for each copy, on units of its own where there are several.
pub fn log_width(units: u32, most: u32, copies: u32) -> u32 {
    assert!(units > 0 && most >= copies && copies > 0, "{copies} copies over {most} chunks");
    let width = units.min(most).max(copies);
    width - width % copies
}

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
    /// One for each copy of a page.
    log: Vec<AppendPoint<()>>,
    log_places: LogPlaces,
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
        assert!(sizes.log_width.is_multiple_of(sizes.copies), "copies of the log have different widths");
        let halves = if sizes.copies == 1 { 1 } else { sides(shape.units()) };
        let of_copy = |copy| if halves == 1 { all.clone() } else { side_of(shape.units(), copy % halves) };
        let log =
            (0..sizes.copies).map(|copy| point(&of_copy(copy), sizes.log_width / sizes.copies)).collect();
        let log_places = LogPlaces::new(sizes.reach);
        let sides = (0..sides(shape.units())).map(|side| side_of(shape.units(), side));
        let checkpoints: Vec<AppendPoint<()>> =
            sides.map(|units| point(&units, sizes.checkpoint_width)).collect();
        assert!(!checkpoints.is_empty(), "checkpoints have nowhere to go");
        Self { log, log_places, all, checkpoints, side: 0 }
    }

    /// A checkpoint begins: on the other side than the one before it.
    pub fn begin_checkpoint(&mut self) {
        self.side = (self.side + 1) % self.checkpoints.len();
    }

    /// The place of a copy of a page of the log, where no cut takes the page with both. If there is none, the copy waits for what
    /// is in flight; with nothing in flight any unit will do.
    pub fn next_of_log(
        &mut self,
        page: LogCopy,
        sectors: u32,
        chunks: &mut impl PageChunks,
    ) -> Option<Append> {
        let is_idle = self.log.iter().all(|point| point.in_flight() == 0);
        let Self { all, log, log_places, .. } = self;
        let point = &mut log[usize_of(page.copy)];
        let may = |_: &_, chunk| log_places.is_safe(chunk);
        let at = point
            .next_among(sectors, chunks, true, may, |chunks, units| chunks.open_for(units, PageKind::Log));
        let at = match at {
            None if is_idle => point.next(sectors, |_| chunks.open_for(all, PageKind::Log)),
            at => at,
        }?;
        log_places.given(page.lsn, at, sectors);
        Some(at)
    }

    /// The place of the next page of a checkpoint. Where its side has no free chunk, any unit will do.
    pub fn next_of_checkpoint(&mut self, sectors: u32, chunks: &mut impl PageChunks) -> Option<Append> {
        let Self { all, checkpoints, side, .. } = self;
        let point = &mut checkpoints[*side];
        let kind = PageKind::Checkpoint;
        let at = point.next(sectors, |units| chunks.open_for(units, kind));
        at.or_else(|| point.next(sectors, |_| chunks.open_for(all, kind)))
    }

    /// A write of a page is over.
    pub fn programmed(
        &mut self,
        kind: PageKind,
        at: Append,
        outcome: ProgramOutcome<()>,
        events: &mut Vec<AppendEvent<()>>,
    ) {
        let points = match kind {
            PageKind::Log => {
                self.log_places.ended(at, matches!(outcome, ProgramOutcome::Written(())));
                &mut self.log
            }
            PageKind::Checkpoint => &mut self.checkpoints,
        };
        let point = points.iter_mut().find(|point| point.has(at.chunk));
        let point = point.expect("a page was programmed in a chunk of neither side");
        point.programmed(at, outcome, events);
        if kind == PageKind::Log {
            let closed = events.iter().filter_map(|event| match event {
                AppendEvent::Closed(chunk) => Some(*chunk),
                AppendEvent::Readable(()) => None,
            });
            closed.for_each(|chunk| self.log_places.closed(chunk));
        }
    }

    /// Goes on in an open chunk that was found at mount; false if there is no place for one more.
    pub fn adopt(&mut self, kind: PageKind, chunk: ChunkIndex, unit: UnitIndex, pointer: u32) -> bool {
        let points = match kind {
            PageKind::Log => &mut self.log,
            PageKind::Checkpoint => &mut self.checkpoints,
        };
        let goes_on = points.iter_mut().any(|point| point.adopt(chunk, unit, pointer));
        if goes_on && kind == PageKind::Log {
            self.log_places.adopted(chunk, pointer);
        }
        goes_on
    }

    /// Asserts what holds between calls.
    pub fn check(&self) {
        self.log.iter().for_each(AppendPoint::check);
        self.log_places.check();
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
    fn each_copy_of_the_log_has_as_many_chunks() {
        let widths = [1, 2, 3, 4, 9].map(|units| log_width(units, 4, 2));
        assert_eq!(widths, [2, 2, 2, 4, 4]);
        assert_eq!([1, 3, 9].map(|units| log_width(units, 4, 1)), [1, 3, 4]);
    }

    #[test]
    fn each_side_has_room_for_two_checkpoints_and_one_chunk_may_fail() {
        // Ten pages in chunks of four: two and a half chunks, begun anywhere, in one stripe on each of three units.
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 1, 3), 2 * (5 + 1) + 1);
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 2, 3), 2 * (3 + 1) + (5 + 1) + 1);
        assert_eq!(checkpoint_chunks_of(10, (8, 32), 1, 1), chunks_of(30, 8, 32, 1));
    }
}
