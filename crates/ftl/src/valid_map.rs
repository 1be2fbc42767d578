//! Which places hold the newest durable version of something, line by line.
//!
//! One bit per place, a count and a time per line. A target owns it, sets a bit when a sector becomes durable, and
//! clears it when the sector is overwritten, discarded or moved; victims are chosen by the counts, and collected by
//! scanning the bits. pblk keeps the opposite bit per line (`invalid_bitmap`) and counts with it (`vsc`).
//! Memory: 1 bit per place (70 MB for 559 M places), of which an empty instance touches none.
//!
//! Time is a sequence number: user sectors written so far, as the caller counts them. Deliberately not here: which
//! place is whose (`l2p`), choosing victims (`victim`), which places hold metadata (they are never valid).

use std::fmt;

use ocssd_base::Divisor;

use crate::{InstanceGeometry, L2p, LineId, PhysicalAddress};

/// Places in a word of the map.
const WORD: u64 = 64;

/// Words whose misses are waited for together (as the map's entries: `l2p`).
const FETCHED_AT_ONCE: usize = 32;

/// Why bytes read from media cannot be a line's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidMapError {
    /// The bytes are not as many as a line has.
    Length {
        /// The line.
        line: LineId,
        /// Bytes found.
        found: usize,
        /// Bytes of a line's bits.
        expected: usize,
    },
    /// A sector is called valid that the line does not have.
    Beyond {
        /// The line.
        line: LineId,
        /// Sectors of a line.
        sectors: u64,
    },
}

impl fmt::Display for ValidMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { line, found, expected } => write!(
                f,
                "the valid bits of line {} take {expected} bytes, but {found} were found: \
                 open the instance on the units it was created on",
                line.0
            ),
            Self::Beyond { line, sectors } => write!(
                f,
                "the valid bits of line {} name a sector beyond its {sectors}: \
                 open the instance on the units it was created on",
                line.0
            ),
        }
    }
}

impl std::error::Error for ValidMapError {}

/// Which places of an instance are valid.
#[derive(Clone, Debug)]
pub struct ValidMap {
    /// One row of whole words per line, so that lines share no word.
    words: Vec<u64>,
    words_per_line: usize,
    per_line: Divisor,
    counts: Vec<u64>,
    last_invalidated: Vec<u64>,
    total: u64,
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("the map fits memory")
}

impl ValidMap {
    /// A map of an instance without anything valid.
    #[must_use]
    pub fn new(shape: &InstanceGeometry) -> Self {
        Self::of(u64::from(shape.lines()), shape.sectors_per_line())
    }

    /// The same counted by chunks instead of lines, for who empties single chunks: what this part calls a line is then a
    /// chunk ([`crate::ChunkIndex`]) of the shape.
    #[must_use]
    pub fn by_chunks(shape: &InstanceGeometry) -> Self {
        Self::of(u64::from(shape.chunks()), u64::from(shape.sectors_per_chunk()))
    }

    fn of(lines: u64, sectors: u64) -> Self {
        assert!(sectors > 0, "a line has sectors");
        let (lines, words_per_line) = (index(lines), index(sectors.div_ceil(WORD)));
        Self {
            words: vec![0; lines * words_per_line],
            words_per_line,
            per_line: Divisor::new(sectors),
            counts: vec![0; lines],
            last_invalidated: vec![0; lines],
            total: 0,
        }
    }

    /// Line, index of the word and bit in it. Cost: a multiplication.
    #[inline]
    fn locate(&self, place: PhysicalAddress) -> (usize, usize, u64) {
        let (line, sector) = self.per_line.div_rem(place.0);
        let line = index(line);
        assert!(line < self.counts.len(), "{place:?} is beyond the {} lines", self.counts.len());
        (line, line * self.words_per_line + index(sector / WORD), 1 << (sector % WORD))
    }

    /// Whether a place is valid. Cost: one cache miss.
    #[must_use]
    #[inline]
    pub fn is_valid(&self, place: PhysicalAddress) -> bool {
        let (_, word, bit) = self.locate(place);
        self.words[word] & bit != 0
    }

    /// Whether all of a run of places of one line are valid. Cost: one step per 64 places.
    ///
    /// # Panics
    /// If the run leaves its line.
    #[must_use]
    #[inline]
    pub fn is_valid_run(&self, first: PhysicalAddress, count: u64) -> bool {
        let (line, start) = self.per_line.div_rem(first.0);
        assert!(start + count <= self.per_line.value(), "{count} places from {first:?} leave line {line}");
        let (row, end) = (index(line) * self.words_per_line, start + count);
        let mut sector = start;
        while sector < end {
            let bits = (WORD - sector % WORD).min(end - sector);
            let mask = (u64::MAX >> (WORD - bits)) << (sector % WORD);
            if self.words[row + index(sector / WORD)] & mask != mask {
                return false;
            }
            sector += bits;
        }
        true
    }

    /// Brings the bits of places into the cache, for whoever changes them next: asked together their misses overlap, one
    /// after the other each is waited for.
    #[inline]
    pub fn fetch(&self, mut places: impl Iterator<Item = PhysicalAddress>) {
        let mut wanted = [0; FETCHED_AT_ONCE];
        loop {
            let mut count = 0;
            for (word, place) in wanted.iter_mut().zip(&mut places) {
                *word = self.locate(place).1;
                count += 1;
            }
            // Nothing but loads, as in `L2p::fetch`.
            let seen = wanted[..count].iter().fold(0, |seen, &word| seen ^ self.words[word]);
            // Without a use the loads would be left out.
            std::hint::black_box(seen);
            if count < FETCHED_AT_ONCE {
                return;
            }
        }
    }

    /// A place became valid. Cost: two cache misses at most.
    ///
    /// # Panics
    /// If it was.
    #[inline]
    pub fn set(&mut self, place: PhysicalAddress) {
        let (line, word, bit) = self.locate(place);
        assert!(self.words[word] & bit == 0, "{place:?} is valid already");
        self.words[word] |= bit;
        self.counts[line] += 1;
        self.total += 1;
        assert!(
            self.counts[line] <= self.per_line.value(),
            "line {line} has more valid sectors than sectors"
        );
    }

    /// A run of places of one line became valid, as a write unit does. Cost: one step per 64 places.
    ///
    /// # Panics
    /// If one was, or if the run leaves its line.
    pub fn set_run(&mut self, first: PhysicalAddress, count: u64) {
        assert!(count > 0, "a run of nothing at {first:?}");
        let (line, start) = self.per_line.div_rem(first.0);
        assert!(start + count <= self.per_line.value(), "{count} places from {first:?} leave line {line}");
        let line = index(line);
        let (mut sector, end) = (start, start + count);
        while sector < end {
            let bits = (WORD - sector % WORD).min(end - sector);
            let mask = (u64::MAX >> (WORD - bits)) << (sector % WORD);
            let word = &mut self.words[line * self.words_per_line + index(sector / WORD)];
            assert!(*word & mask == 0, "a place of {count} from {first:?} is valid already");
            *word |= mask;
            sector += bits;
        }
        self.counts[line] += count;
        self.total += count;
    }

    /// A place is no longer valid since `now_seq`, and says which line it is in. Cost: three cache misses at most.
    ///
    /// # Panics
    /// As [`Self::clear_run`].
    #[inline]
    pub fn clear(&mut self, place: PhysicalAddress, now_seq: u64) -> LineId {
        self.clear_run(place, 1, now_seq)
    }

    /// A run of places of one line is no longer valid since `now_seq`, as when garbage collection moved neighbours; says
    /// which line. Cost: one step per 64 places.
    ///
    /// # Panics
    /// If one was not, if the run leaves its line, or if `now_seq` is before an earlier one of the line.
    pub fn clear_run(&mut self, first: PhysicalAddress, count: u64, now_seq: u64) -> LineId {
        assert!(count > 0, "a run of nothing at {first:?}");
        let (line, start) = self.per_line.div_rem(first.0);
        assert!(start + count <= self.per_line.value(), "{count} places from {first:?} leave line {line}");
        let at = index(line);
        let (mut sector, end) = (start, start + count);
        while sector < end {
            let bits = (WORD - sector % WORD).min(end - sector);
            let mask = (u64::MAX >> (WORD - bits)) << (sector % WORD);
            let word = &mut self.words[at * self.words_per_line + index(sector / WORD)];
            assert!(*word & mask == mask, "a place of {count} from {first:?} is not valid");
            *word &= !mask;
            sector += bits;
        }
        assert!(self.counts[at] >= count, "line {line} has valid places that were not counted");
        assert!(self.last_invalidated[at] <= now_seq, "time runs backwards in line {line}");
        self.counts[at] -= count;
        self.total -= count;
        self.last_invalidated[at] = now_seq;
        LineId(u32::try_from(line).expect("a line of the instance"))
    }

    /// Whatever was valid in a run of places of one line is not, and never was: its line was not looked at yet by anybody
    /// who asks since when. Cost: one step per 64 places.
    ///
    /// # Panics
    /// If the run leaves its line.
    pub fn forget_run(&mut self, first: PhysicalAddress, count: u64) {
        let (line, start) = self.per_line.div_rem(first.0);
        assert!(start + count <= self.per_line.value(), "{count} places from {first:?} leave line {line}");
        let at = index(line);
        let (mut sector, end, mut gone) = (start, start + count, 0);
        while sector < end {
            let bits = (WORD - sector % WORD).min(end - sector);
            let mask = (u64::MAX >> (WORD - bits)) << (sector % WORD);
            let word = &mut self.words[at * self.words_per_line + index(sector / WORD)];
            gone += u64::from((*word & mask).count_ones());
            *word &= !mask;
            sector += bits;
        }
        assert!(self.counts[at] >= gone, "line {line} has valid places that were not counted");
        self.counts[at] -= gone;
        self.total -= gone;
    }

    /// A line was reset: nothing of it is valid, and nothing was ever invalidated in it.
    pub fn clear_line(&mut self, line: LineId) {
        assert!(self.total >= self.count(line), "the total is less than {line:?}");
        self.row_mut(line).fill(0);
        self.total -= self.counts[line.index()];
        self.counts[line.index()] = 0;
        self.last_invalidated[line.index()] = 0;
    }

    /// Valid places of a line. Cost: one load.
    #[must_use]
    pub fn count(&self, line: LineId) -> u64 {
        self.counts[line.index()]
    }

    /// Places of a line, or of a chunk, valid or not.
    #[must_use]
    pub const fn sectors_per_line(&self) -> u64 {
        self.per_line.value()
    }

    /// Valid places of the instance. Cost: one load.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// When a place of the line was last cleared; 0 if none was since the line was reset.
    ///
    /// The age of a line for cost-benefit is the time since then or since it was closed, whichever is shorter.
    #[must_use]
    pub fn last_invalidated(&self, line: LineId) -> u64 {
        self.last_invalidated[line.index()]
    }

    /// The first valid place of a line at or after `from`. Cost: one step per 64 places passed.
    ///
    /// # Panics
    /// If `from` is neither in the line nor right after it.
    #[must_use]
    pub fn next_valid(&self, line: LineId, from: PhysicalAddress) -> Option<PhysicalAddress> {
        let start = u64::from(line.0) * self.per_line.value();
        let sector = from.0.checked_sub(start).filter(|&sector| sector <= self.per_line.value());
        let sector = sector.unwrap_or_else(|| panic!("{from:?} is not in {line:?}"));
        let row = self.row(line);
        let mut at = index(sector / WORD);
        let mut word = row.get(at)? & (u64::MAX << (sector % WORD));
        while word == 0 {
            at += 1;
            word = *row.get(at)?;
        }
        let found = u64::try_from(at).expect("an index") * WORD + u64::from(word.trailing_zeros());
        assert!(found < self.per_line.value(), "a bit behind {line:?} is set");
        Some(PhysicalAddress(start + found))
    }

    /// The first run of valid places of a line at or after `from`, of at most `most`: where it starts, and how many there
    /// are. Panics as [`ValidMap::next_valid`]. Cost: one step per 64 places passed or found.
    #[must_use]
    pub fn next_run(&self, line: LineId, from: PhysicalAddress, most: u64) -> Option<(PhysicalAddress, u64)> {
        let first = self.next_valid(line, from)?;
        let start = first.0 - u64::from(line.0) * self.per_line.value();
        let row = self.row(line);
        let mut count = 0;
        while count < most {
            let (at, bit) = (index((start + count) / WORD), (start + count) % WORD);
            // A line that ends within a word has no bits behind its end.
            let Some(word) = row.get(at) else { break };
            let ones = u64::from((!(word >> bit)).trailing_zeros()).min(WORD - bit);
            count += ones;
            if ones < WORD - bit {
                break;
            }
        }
        Some((first, count.min(most)))
    }

    /// Which of up to 64 places from `first` on are valid: the lowest bit is `first`'s. Cost: two loads.
    ///
    /// # Panics
    /// If it is no place or more than 64, or the run leaves the line of `first`.
    #[must_use]
    pub fn bits(&self, first: PhysicalAddress, count: u32) -> u64 {
        assert!((1..=64).contains(&count), "{count} places do not fit a word");
        let (line, start) = self.per_line.div_rem(first.0);
        let end = start + u64::from(count);
        assert!(end <= self.per_line.value(), "{count} places from {first:?} leave line {line}");
        let row = &self.words[index(line) * self.words_per_line..][..self.words_per_line];
        let (at, bit) = (index(start / WORD), start % WORD);
        let low = row[at] >> bit;
        let high = if end > (start / WORD + 1) * WORD { row[at + 1] << (WORD - bit) } else { 0 };
        (low | high) & (u64::MAX >> (WORD - u64::from(count)))
    }

    /// The valid places of a line at or after `from`, in order. Panics as [`ValidMap::next_valid`].
    pub fn iter_line(&self, line: LineId, from: PhysicalAddress) -> impl Iterator<Item = PhysicalAddress> {
        let mut next = self.next_valid(line, from);
        std::iter::from_fn(move || {
            let found = next?;
            next = self.next_valid(line, PhysicalAddress(found.0 + 1));
            Some(found)
        })
    }

    /// Bytes of a line's bits on media: whole 64-bit words.
    #[must_use]
    pub const fn line_bytes(&self) -> usize {
        self.words_per_line * 8
    }

    /// Writes a part of a line's bits, from byte `from` on, as they go to media: the first sector is the lowest bit of the
    /// first byte.
    ///
    /// # Panics
    /// If the part is not whole words, or is not within [`ValidMap::line_bytes`].
    pub fn encode_part(&self, line: LineId, from: usize, out: &mut [u8]) {
        assert!(
            from.is_multiple_of(8) && out.len().is_multiple_of(8),
            "a part of {line:?} is no whole words"
        );
        let words = &self.row(line)[from / 8..][..out.len() / 8];
        for (bytes, word) in out.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Takes a line's bits as media hold them, and when one was last cleared; what was known of the line is forgotten.
    ///
    /// # Errors
    /// If the bytes are not as many as a line has, or name sectors it does not have. The map is unchanged then.
    pub fn decode_line(
        &mut self,
        line: LineId,
        bytes: &[u8],
        last_invalidated_seq: u64,
    ) -> Result<(), ValidMapError> {
        let (groups, rest) = bytes.as_chunks::<8>();
        if groups.len() != self.words_per_line || !rest.is_empty() {
            let (found, expected) = (bytes.len(), self.line_bytes());
            return Err(ValidMapError::Length { line, found, expected });
        }
        let sectors = self.per_line.value();
        let last = groups.last().map_or(0, |group| u64::from_le_bytes(*group));
        if !sectors.is_multiple_of(WORD) && last >> (sectors % WORD) != 0 {
            return Err(ValidMapError::Beyond { line, sectors });
        }
        for (word, group) in self.row_mut(line).iter_mut().zip(groups) {
            *word = u64::from_le_bytes(*group);
        }
        let count = count_ones(self.row(line));
        assert!(count <= sectors, "{line:?} has {count} bits for {sectors} sectors");
        self.total = self.total - self.counts[line.index()] + count;
        self.counts[line.index()] = count;
        self.last_invalidated[line.index()] = last_invalidated_seq;
        Ok(())
    }

    fn row(&self, line: LineId) -> &[u64] {
        &self.words[line.index() * self.words_per_line..][..self.words_per_line]
    }

    fn row_mut(&mut self, line: LineId) -> &mut [u64] {
        &mut self.words[line.index() * self.words_per_line..][..self.words_per_line]
    }

    /// Asserts, beside what [`Self::check`] does, that the places the map names on media are valid, and no others: of a target
    /// whose map names what is newest, and that calls nothing else valid. Cost: the whole of both.
    pub fn check_against(&self, map: &L2p) {
        self.check();
        let mut mapped = 0;
        map.for_each_media(|block, place| {
            mapped += 1;
            assert!(self.is_valid(place), "block {block} is at {place:?}, which is not valid");
        });
        assert_eq!(mapped, self.total(), "a place is valid that no block is at");
    }

    /// Asserts that counts and bits agree. Cost: the whole map; for simulators and tests.
    pub fn check(&self) {
        for (line, (row, &count)) in self.words.chunks(self.words_per_line).zip(&self.counts).enumerate() {
            assert_eq!(count_ones(row), count, "the count of line {line} is wrong");
        }
        assert_eq!(self.counts.iter().sum::<u64>(), self.total, "the total is wrong");
    }
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests;
