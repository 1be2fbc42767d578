//! Where the parts of one line lie among its bad chunks: start metadata, data, end metadata.

use super::layout::{LineLayout, LineOffset, Position};
use ocssd_base::usize_of;

/// The parts of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineParts {
    /// A bit for every position whose chunk is bad.
    bad: Vec<u64>,
    /// Chunks that are good.
    pub good_chunks: u32,
    /// Where the start metadata begin; they are one unit.
    pub smeta: LineOffset,
    /// Where the end metadata begin.
    pub emeta: LineOffset,
    /// Sectors of data: `N`.
    pub data_sectors: u32,
}

impl LineParts {
    /// The parts of a line with these bad chunks; none if it has too few good ones, and is not used.
    #[must_use]
    pub fn new(layout: &LineLayout, is_bad: impl Fn(Position) -> bool) -> Option<Self> {
        let units = layout.units();
        let mut bad = vec![0; layout.unit_bitmap_bytes() / 8];
        for position in (0..units).filter(|&position| is_bad(Position(position))) {
            bad[usize_of(position / 64)] |= 1u64 << (position % 64);
        }
        let bad_chunks: u32 = bad.iter().map(|word| word.count_ones()).sum();
        assert!(bad_chunks <= units, "{bad_chunks} of {units} chunks are bad");
        let good_chunks = units - bad_chunks;
        if good_chunks < layout.chunks_min() {
            return None;
        }
        let first = (0..units).find(|&position| !bit(&bad, Position(position)))?;
        let mut parts = Self {
            bad,
            good_chunks,
            smeta: LineOffset(first * layout.unit),
            emeta: LineOffset(0),
            data_sectors: (good_chunks * layout.chunk).checked_sub(layout.unit + layout.emeta_sectors())?,
        };
        parts.emeta = parts.emeta_start(layout);
        assert!(parts.emeta >= parts.data(layout), "the metadata of a line overlap");
        Some(parts)
    }

    /// Walks back from the end, a unit at a time, over good chunks only.
    fn emeta_start(&self, layout: &LineLayout) -> LineOffset {
        let (mut left, mut at) = (layout.emeta_sectors(), layout.sectors());
        while left > 0 {
            at -= layout.unit;
            if !self.is_bad(layout.split(LineOffset(at)).0) {
                left -= layout.unit;
            }
        }
        LineOffset(at)
    }

    /// Whether the chunk at a position is bad.
    #[must_use]
    pub fn is_bad(&self, position: Position) -> bool {
        bit(&self.bad, position)
    }

    /// The bitmap of bad chunks, in words.
    #[must_use]
    pub fn bad_words(&self) -> &[u64] {
        &self.bad
    }

    /// Where data begin: right behind the start metadata. The offset may be of a bad chunk.
    #[must_use]
    pub const fn data(&self, layout: &LineLayout) -> LineOffset {
        LineOffset(self.smeta.0 + layout.unit)
    }

    /// The units of a part of the line, from one offset to another, in the order they are written: the first offset of each
    /// that is on a good chunk.
    pub fn units<'a>(
        &'a self,
        layout: &'a LineLayout,
        range: std::ops::Range<LineOffset>,
    ) -> impl Iterator<Item = LineOffset> + 'a {
        assert!(range.end.0 <= layout.sectors(), "a part of a line ends at {}", range.end.0);
        assert!(range.start.0.is_multiple_of(layout.unit), "a part of a line begins at {}", range.start.0);
        let starts = (range.start.0..range.end.0).step_by(usize_of(layout.unit)).map(LineOffset);
        starts.filter(|&offset| !self.is_bad(layout.split(offset).0))
    }

    /// The units of data.
    pub fn data_units<'a>(&'a self, layout: &'a LineLayout) -> impl Iterator<Item = LineOffset> + 'a {
        self.units(layout, self.data(layout)..self.emeta)
    }

    /// The units of the end metadata.
    pub fn emeta_units<'a>(&'a self, layout: &'a LineLayout) -> impl Iterator<Item = LineOffset> + 'a {
        self.units(layout, self.emeta..LineOffset(layout.sectors()))
    }
}

fn bit(words: &[u64], Position(position): Position) -> bool {
    words[usize_of(position / 64)] >> (position % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PuId};

    fn layout() -> LineLayout {
        let geometry = Geometry::example(4, 2, 64, 64, 8);
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        LineLayout::new(&geometry, &units).expect("Linux takes it")
    }

    #[test]
    fn a_line_without_bad_chunks_begins_and_ends_where_it_does() {
        let parts = LineParts::new(&layout(), |_| false).expect("it is used");
        assert_eq!((parts.smeta, parts.emeta), (LineOffset(0), LineOffset(504)));
        assert_eq!((parts.good_chunks, parts.data_sectors), (8, 512 - 16));
        assert_eq!(parts.data_units(&layout()).count(), 62);
        assert_eq!(parts.emeta_units(&layout()).collect::<Vec<_>>(), [LineOffset(504)]);
    }

    #[test]
    fn bad_chunks_move_both_ends_inwards() {
        // The first two and the last of the eight.
        let parts = LineParts::new(&layout(), |position| [0, 1, 7].contains(&position.0)).expect("used");
        assert_eq!((parts.smeta, parts.emeta), (LineOffset(16), LineOffset(496)));
        assert_eq!((parts.good_chunks, parts.data_sectors), (5, 320 - 16));
        assert_eq!(parts.bad_words(), [0b1000_0011]);
        let units: Vec<u32> = parts.data_units(&layout()).map(|offset| offset.0).collect();
        assert_eq!((&units[..5], units.len()), (&[24, 32, 40, 48, 80][..], 38));
    }

    #[test]
    fn a_line_with_too_few_chunks_is_not_used() {
        let layout = layout();
        assert_eq!(layout.chunks_min(), 2);
        assert!(LineParts::new(&layout, |position| position.0 > 1).is_some());
        assert_eq!(LineParts::new(&layout, |position| position.0 > 0), None);
        assert_eq!(LineParts::new(&layout, |_| true), None);
    }

    #[test]
    fn the_parts_are_all_good_sectors_of_any_line() {
        let (layout, seed) = (layout(), 19);
        let mut prng = ocssd_base::Prng::new(seed);
        for round in 0..500 {
            let bad = prng.below(256);
            let Some(parts) = LineParts::new(&layout, |position| bad >> position.0 & 1 == 1) else {
                continue;
            };
            let sectors = |units: usize| u32::try_from(units).expect("small") * layout.unit;
            let emeta = sectors(parts.emeta_units(&layout).count());
            assert_eq!(emeta, layout.emeta_sectors(), "seed {seed}, round {round}");
            let data = sectors(parts.data_units(&layout).count());
            assert_eq!(data, parts.data_sectors, "seed {seed}, round {round}");
            assert_eq!(
                data + emeta + layout.unit,
                parts.good_chunks * layout.chunk,
                "seed {seed}, round {round}"
            );
        }
    }
}
