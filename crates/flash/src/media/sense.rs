//! Sensing: how much one sense takes off the array, how long that takes, and what the page registers hold after it.
//!
//! A read takes a page of one plane, or a page of every plane together (a row). Which of the two is the command's to say,
//! or the drive's ([`PlaneReads`]). Deliberately not here: when a sense begins (`pick`).

use super::part::CommandPart;
use crate::config::{Config, PlaneReads};
use ocssd_base::{Divisor, Nanos, Prng};
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
    /// Sense times of pages, and of rows, by page type, repeating.
    times: [Vec<Nanos>; 2],
    registers: u32,
    /// Draws below this are slow pages, down to this long; rarest first.
    slow: Vec<(u64, Nanos)>,
    /// Draws of slow pages are below this.
    slow_below: u64,
    seed: u64,
}

impl Sensing {
    pub(super) fn new(config: &Config) -> Self {
        let media = &config.media;
        let slow: Vec<_> = media.slow_read.iter().rev().map(|slow| (draws(slow.share), slow.time)).collect();
        assert!(slow.iter().all(|&(below, _)| below <= 1 << 32), "more pages are slow than there are");
        assert!(slow.is_sorted_by(|rarer, other| rarer.0 <= other.0), "slow pages are kept rarest first");
        let (planes, page) = (u64::from(media.planes), u64::from(media.sectors_per_page));
        Self {
            plane_reads: media.plane_reads,
            by_page: Divisor::new(page),
            by_row: Divisor::new(planes * page),
            planes: Divisor::new(planes),
            times: times_of(&media.read, media.planes),
            registers: media.registers,
            slow_below: slow.last().map_or(0, |&(below, _)| below),
            slow,
            seed: Prng::new(config.seed).split("slow pages").next_u64(),
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
    pub(super) fn time(&self, part: &CommandPart) -> Nanos {
        let usual = match part.span {
            Span::Page => nth_of(&self.times[0], part.window),
            Span::Row => nth_of(&self.times[1], part.window),
        };
        if self.slow_below == 0 { usual } else { usual.max(self.slow_time(part)) }
    }

    /// What the slow pages among those sensed take; zero if none is slow.
    #[inline(always)]
    fn slow_time(&self, part: &CommandPart) -> Nanos {
        match part.span {
            Span::Page => self.slow_page(part.chunk, part.window),
            Span::Row => {
                let planes = u32::try_from(self.planes.value()).expect("at most 4 planes");
                let pages = (0..planes).map(|plane| self.slow_page(part.chunk, part.window * planes + plane));
                pages.max().unwrap_or_default()
            }
        }
    }

    /// What a page takes if it is slow. A page is or is not, as long as the drive lives.
    #[inline(always)]
    fn slow_page(&self, chunk: ChunkId, page: u32) -> Nanos {
        let draw = Prng::of_place(self.seed, (u64::from(chunk.0) << 32) | u64::from(page)) >> 32;
        if draw >= self.slow_below {
            return Nanos::ZERO;
        }
        assert!(!self.slow.is_empty(), "a page is slow on a drive without slow pages");
        let found = self.slow.iter().find(|&&(below, _)| draw < below);
        found.map_or(Nanos::ZERO, |&(_, time)| time)
    }

    /// True if the registers hold what a read wants: the same window, or the row around its page.
    #[inline(always)]
    pub(super) fn is_held(&self, held: Option<Held>, part: &CommandPart) -> bool {
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
    pub(super) const fn of(part: &CommandPart) -> Self {
        Self { chunk: part.chunk, cycles: part.cycles, span: part.span, window: part.window }
    }
}

/// Parts per billion as so many draws of 2^32.
fn draws(parts_per_billion: u32) -> u64 {
    (u64::from(parts_per_billion) << 32) / 1_000_000_000
}

/// The sense times of pages and of rows, from those of rows: each page of a row takes what the row does.
fn times_of(rows: &[Nanos], planes: u32) -> [Vec<Nanos>; 2] {
    let planes = usize::try_from(planes).expect("at most 4 planes");
    let pages = rows.iter().flat_map(|&time| std::iter::repeat_n(time, planes)).collect();
    [pages, rows.to_vec()]
}

/// The time of place `index` in a list that repeats. Most lists are as long as a power of two, which needs no division.
#[inline(always)]
pub(super) fn nth_of(times: &[Nanos], index: u32) -> Nanos {
    let (index, length) = (usize::try_from(index).expect("32 bits fit an index"), times.len());
    if length.is_power_of_two() { times[index & (length - 1)] } else { times[index % length] }
}
