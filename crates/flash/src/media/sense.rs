//! Sensing: how much one sense takes off the array, how long that takes, and what the page registers hold after it.
//!
//! A read takes a page of one plane, or a page of every plane together (a row). Which of the two is the command's to say,
//! or the drive's ([`PlaneReads`]). Deliberately not here: when a sense begins (`pick`).

use super::part::Part;
use crate::config::{MediaConfig, PlaneReads};
use ocssd_base::{Divisor, Nanos};
use ocssd_lightnvm::{ChunkId, PlaneMode};

/// What one sense takes off the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// A page of one plane. Nothing else of the unit is sensed or loaded before its data has left: a plain read has no
    /// second register (ONFI's READ PAGE; only its cache commands have one).
    Page,
    /// A page of every plane, in one of the unit's registers: what leaves overlaps with what is sensed next.
    Row,
}

/// What the page registers hold: window `window` of a chunk's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    chunk: ChunkId,
    cycles: u32,
    span: Span,
    window: u32,
}

/// How a drive senses.
#[derive(Clone, Debug)]
pub(crate) struct Sensing {
    plane_reads: PlaneReads,
    by_page: Divisor,
    by_row: Divisor,
    planes: Divisor,
    times: Vec<Nanos>,
    registers: u32,
}

impl Sensing {
    pub(super) fn new(media: &MediaConfig) -> Self {
        let (planes, page) = (u64::from(media.planes), u64::from(media.sectors_per_page));
        Self {
            plane_reads: media.plane_reads,
            by_page: Divisor::new(page),
            by_row: Divisor::new(planes * page),
            planes: Divisor::new(planes),
            times: media.read.clone(),
            registers: media.registers,
        }
    }

    /// What a read in this mode takes off the array at once.
    #[inline(always)]
    pub(crate) fn span(&self, mode: PlaneMode) -> Span {
        match (self.plane_reads, mode) {
            (PlaneReads::Asked, PlaneMode::Single) => Span::Page,
            (PlaneReads::Asked, PlaneMode::Multi) | (PlaneReads::Always, _) => Span::Row,
        }
    }

    /// Finds the window of a sector, and how many sectors a window has.
    #[inline(always)]
    pub(crate) const fn windows(&self, span: Span) -> &Divisor {
        match span {
            Span::Page => &self.by_page,
            Span::Row => &self.by_row,
        }
    }

    /// Page registers a read takes: one, or all of them if nothing may overlap with it.
    #[inline(always)]
    pub(super) const fn registers(&self, span: Span) -> u32 {
        match span {
            Span::Page => self.registers,
            Span::Row => 1,
        }
    }

    /// The row a window is in.
    fn row(&self, span: Span, window: u32) -> u32 {
        match span {
            Span::Page => self.planes.div_rem_u32(window).0,
            Span::Row => window,
        }
    }

    /// How long the sense of a read takes.
    #[inline(always)]
    pub(super) fn time(&self, part: &Part) -> Nanos {
        match self.times[..] {
            [only] => only,
            _ => nth_of(&self.times, self.row(part.span, part.window)),
        }
    }

    /// True if the registers hold what a read wants: the same window, or the row around its page.
    #[inline(always)]
    pub(super) fn is_held(&self, held: Option<Held>, part: &Part) -> bool {
        let Some(held) = held else { return false };
        if (held.chunk, held.cycles) != (part.chunk, part.cycles) {
            return false;
        }
        let same = (held.span, held.window) == (part.span, part.window);
        same || held.span == Span::Row && held.window == self.row(part.span, part.window)
    }
}

impl Held {
    /// What a sense of this read leaves in the registers.
    #[inline(always)]
    pub(super) const fn of(part: &Part) -> Self {
        Self { chunk: part.chunk, cycles: part.cycles, span: part.span, window: part.window }
    }
}

/// The time of place `index` in a list that repeats. Most lists have one entry, which needs no division.
pub(super) fn nth_of(times: &[Nanos], index: u32) -> Nanos {
    match times {
        [only] => *only,
        _ => times[usize::try_from(index).expect("32 bits fit an index") % times.len()],
    }
}
