//! Checkpoints: the zone table, the chunks of tails and where replay begins, and when one is due.
//!
//! Deliberately not here: pages (`ocssd_ftl::checkpoint`), how they go to media (`crate::journal`), reading them (`mount`).

use super::canary::Canary;
use super::columns::Column;
use super::journal::Table;
use super::segments::Segment;
use super::sizes::{INFO_BYTES, Sizes};
use super::state::Zns;
use super::zone::Zone;
use crate::journal::{decode_info, encode_info};
use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;
use ocssd_ftl::checkpoint::SectionName;
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::interface::zoned::{EXTENSION_BYTES, ZoneExtension, ZoneState};
use std::collections::BTreeMap;

/// The section about the instance.
pub(super) const INFO: SectionName = *b"zns     ";
/// The section of the zone table.
pub(super) const ZONES: SectionName = *b"zones   ";
/// The section of the chunks of tails.
pub(super) const TAILS: SectionName = *b"tails   ";
/// The section of the extensions of zones; a checkpoint without it has none.
pub(super) const EXTENSIONS: SectionName = *b"extended";
/// The section of how often chunks were reset, of an instance that levels wear.
pub(super) const WEAR: SectionName = *b"wear    ";
/// The layout of these sections; raised when an older reader would misread it.
const VERSION: u32 = 1;
/// The same of an instance whose log and checkpoints lie apart, which an older program would write elsewhere.
const VERSION_APART: u32 = 2;
/// With the count of a zone's segments: how many of its blocks are in a row follows, which are all it had if it does not.
const HAS_GAPS: u32 = 1 << 31;
/// In place of what finished a zone: nothing did, and it is read only.
const READ_ONLY: u32 = u32::MAX - 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    pub zone_count: u32,
    pub zone_chunks: u32,
    /// Lines kept for the log and checkpoints.
    pub metadata_lines: u32,
    /// The generation of the pages that replay begins with.
    pub generation: u64,
    /// The page that replay begins with.
    pub start: Lsn,
    /// The newest transaction that the table has.
    pub applied: u64,
    /// Blocks written so far.
    pub sequence: u64,
    /// The same at the last mount: tails that are older count as far as that mount found them.
    pub mounted: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let small =
            [self.chunk, self.units, self.lines, self.zone_count, self.zone_chunks, self.metadata_lines, 0];
        let large = [self.generation, self.start.0, self.applied, self.sequence, self.mounted];
        let version = if self.metadata_lines > 0 { VERSION_APART } else { VERSION };
        encode_info(version, small, large)
    }

    /// # Errors
    /// A sentence, if the bytes are of another layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let decode = |version| decode_info::<INFO_BYTES, 7, 5>(bytes, version, "an instance of zns");
        let ([chunk, units, lines, zone_count, zone_chunks, metadata_lines, _], large) =
            decode(VERSION).or_else(|_| decode(VERSION_APART))?;
        let [generation, start, applied, sequence, mounted] = large;
        let start = Lsn(start);
        Ok(Self {
            chunk,
            units,
            lines,
            zone_count,
            zone_chunks,
            metadata_lines,
            generation,
            start,
            applied,
            sequence,
            mounted,
        })
    }
}

/// The zone table as bytes: of each zone since when it lives, what finished it, its segments, and their columns.
pub(super) fn encode_zones(zones: &[Zone]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let small = |bytes: &mut Vec<u8>, number: u32| bytes.extend_from_slice(&number.to_le_bytes());
    for zone in zones {
        bytes.extend_from_slice(&zone.since.to_le_bytes());
        let offline = u32::from(zone.state == ZoneState::Offline);
        let segments = u32::try_from(zone.segments.len()).expect("fewer segments than 2^31");
        let open_end = if zone.state == ZoneState::ReadOnly { READ_ONLY } else { u32::MAX };
        small(&mut bytes, zone.finished_at().unwrap_or(open_end));
        assert!(zone.in_row() <= zone.shown() && segments < HAS_GAPS >> 1, "a zone of {segments} segments");
        let gaps = if zone.in_row() < zone.shown() { HAS_GAPS } else { 0 };
        small(&mut bytes, gaps | segments << 1 | offline);
        small(&mut bytes, zone.shown());
        if gaps > 0 {
            small(&mut bytes, zone.in_row());
        }
        for segment in zone.segments.iter() {
            small(&mut bytes, segment.start);
            small(&mut bytes, u32::try_from(segment.columns.len()).expect("fewer columns than 2^32"));
            for column in segment.columns.iter() {
                small(&mut bytes, column.chunk.0);
                small(&mut bytes, column.sector);
            }
        }
    }
    bytes
}

/// Extensions as bytes: of each the zone, and itself.
pub(super) fn encode_extensions(extensions: &BTreeMap<u32, ZoneExtension>) -> Vec<u8> {
    let each = extensions.iter().map(|(zone, extension)| [&zone.to_le_bytes()[..], &extension.0].concat());
    each.collect::<Vec<_>>().concat()
}

/// The extensions in these bytes; `None` if they are none of an instance with `zone_count` zones.
pub(super) fn decode_extensions(bytes: &[u8], zone_count: u32) -> Option<BTreeMap<u32, ZoneExtension>> {
    let (each, rest) = bytes.as_chunks::<{ 4 + EXTENSION_BYTES }>();
    let decode = |bytes: &[u8; 4 + EXTENSION_BYTES]| {
        let (zone, extension) = bytes.split_first_chunk::<4>()?;
        let zone = u32::from_le_bytes(*zone);
        (zone < zone_count).then_some((zone, ZoneExtension(extension.try_into().ok()?)))
    };
    if rest.is_empty() { each.iter().map(decode).collect() } else { None }
}

/// The numbers of a section, one after the other.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }
}

/// The zone table in these bytes; `None` if it is none of an instance of these sizes with `chunks` chunks.
pub(super) fn decode_zones(bytes: &[u8], sizes: &Sizes, chunks: u32) -> Option<Table> {
    let mut numbers = Numbers(bytes);
    let mut table = Table::new(sizes.zone_count);
    for zone in &mut table.zones {
        let since = u64::from(numbers.next()?) | u64::from(numbers.next()?) << 32;
        zone.since = since;
        let (finished_at, flags) = (numbers.next()?, numbers.next()?);
        let shown = numbers.next()?;
        let in_row = if flags & HAS_GAPS > 0 { numbers.next()? } else { shown };
        if in_row > shown {
            return None;
        }
        zone.found(shown, in_row);
        if flags & 1 == 1 {
            zone.state = ZoneState::Offline;
        }
        let mut segments = Vec::new();
        for _ in 0..(flags & !HAS_GAPS) >> 1 {
            let (start, width) = (numbers.next()?, numbers.next()?);
            if usize_of(width) > numbers.0.len() / 8 {
                return None;
            }
            let mut columns = Vec::with_capacity(usize_of(width));
            for _ in 0..width {
                let column = Column { chunk: ChunkIndex(numbers.next()?), sector: numbers.next()? };
                if column.chunk.0 >= chunks || column.sector >= sizes.chunk {
                    return None;
                }
                columns.push(column);
            }
            segments.push(Segment::new(start, &columns));
        }
        let is_sorted = segments.is_sorted_by(|one, other| one.start < other.start);
        if !is_sorted || segments.first().is_some_and(|first| first.start != 0 || first.columns().is_empty())
        {
            return None;
        }
        zone.segments = segments.into_iter().collect();
        if finished_at == READ_ONLY {
            zone.state = ZoneState::ReadOnly;
        } else if finished_at != u32::MAX {
            if finished_at > sizes.capacity() {
                return None;
            }
            zone.finish_at(finished_at, sizes.unit);
        }
    }
    numbers.0.is_empty().then_some(table)
}

impl Zns {
    pub(super) fn is_checkpoint_due(&mut self) -> bool {
        let Some(current) = self.journal.current() else { return true };
        let since = self.journal.log.next().0 - current.start.0;
        let is_full = std::mem::take(&mut self.log_is_full) && since > 0;
        let is_first = self.is_mounting && !self.journal.has_two();
        is_first || since >= u64::from(self.sizes.interval_pages) || is_full || self.is_last_due()
    }

    pub(super) fn begin_checkpoint(&mut self) {
        // What the log has by now is in the table: replay skips it by its number.
        let start = self.journal.log.next();
        let info = Info {
            chunk: self.sizes.chunk,
            units: self.space.shape.units(),
            lines: self.space.shape.lines(),
            zone_count: self.sizes.zone_count,
            zone_chunks: self.sizes.zone_chunks,
            metadata_lines: self.sizes.metadata_lines,
            generation: self.journal.generation,
            start,
            applied: self.journal.last_transaction().0,
            sequence: self.sequence,
            mounted: self.mounted,
        };
        let zones = encode_zones(&self.zones);
        let tails: Vec<u8> = self.tails.chunks().flat_map(|chunk| chunk.0.to_le_bytes()).collect();
        let page_bytes = self.sizes.unit * self.geometry.block_bytes;
        let mut extensions = encode_extensions(self.extensions.all_logged());
        if self.has_canary(Canary::ExtensionNotInCheckpoint) && !self.is_mounting {
            extensions.clear();
        }
        let info = info.encode();
        let wear = self.wear.encode();
        let mut sections =
            vec![(INFO, &info[..]), (ZONES, &zones), (TAILS, &tails), (EXTENSIONS, &extensions)];
        if self.wear.bound().is_some() {
            sections.push((WEAR, &wear));
        }
        self.journal.begin_checkpoint(start, page_bytes, &sections);
        if self.has_canary(Canary::TruncatedTooEarly) && !self.is_mounting {
            self.journal.cut_log(start, &mut self.space);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zns::Options;
    use crate::zns::sizes::Ground;
    use ocssd_ftl::InstanceGeometry;
    use ocssd_lightnvm::{Geometry, PuId};

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let info = Info {
            chunk: 1,
            units: 2,
            lines: 3,
            zone_count: 4,
            zone_chunks: 5,
            metadata_lines: 0,
            generation: 6,
            start: Lsn(7),
            applied: 8,
            sequence: 1 << 40,
            mounted: 9,
        };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        let apart = Info { metadata_lines: 10, ..info };
        assert_eq!(Info::decode(&apart.encode()), Ok(apart));
        assert_ne!(apart.encode()[0], bytes[0], "an older program would write the log elsewhere");
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("80 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }

    #[test]
    fn extensions_come_back_and_no_cut_of_their_bytes_is_any() {
        let extensions = BTreeMap::from([(2, ZoneExtension([7; 64])), (5, ZoneExtension([9; 64]))]);
        let bytes = encode_extensions(&extensions);
        assert_eq!(decode_extensions(&bytes, 6), Some(extensions));
        assert_eq!(decode_extensions(&bytes, 5), None, "there is no zone 5");
        assert_eq!(decode_extensions(&bytes[1..], 6), None);
        assert_eq!(decode_extensions(&[], 6), Some(BTreeMap::new()));
    }

    #[test]
    fn the_zone_table_comes_back_and_no_cut_of_its_bytes_is_one() {
        let geometry = Geometry::example(1, 2, 40, 24, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let good_in = |lines: u32| lines * shape.units();
        let ground = Ground { geometry: &geometry, shape: &shape, good_in: &good_in, group_units: 2 };
        let sizes = Sizes::new(&ground, &Options::default(), None).expect("it fits");
        let mut zones = Table::new(sizes.zone_count).zones;
        let column = |chunk| Column { chunk: ChunkIndex(chunk), sector: 4 };
        zones[1].segments = Segment::new(0, &[column(3), column(4)]).into();
        zones[1].segments.push(Segment::new(7, &[]));
        (zones[1].since, zones[2].state) = (1 << 40, ZoneState::Offline);
        zones[3].finish_at(5, sizes.unit);
        zones[4].found(7, 7);
        zones[4].state = ZoneState::ReadOnly;
        zones[5].found(28, 20);
        let bytes = encode_zones(&zones);
        let table = decode_zones(&bytes, &sizes, 80).expect("sound");
        let facts = |zone: &Zone| {
            let found = (zone.shown(), zone.in_row(), zone.since);
            (found, zone.finished_at(), zone.segments.clone(), zone.state)
        };
        assert!(table.zones.iter().map(facts).eq(zones.iter().map(facts)));
        for length in 0..bytes.len() {
            assert!(decode_zones(&bytes[..length], &sizes, 80).is_none(), "{length} bytes");
        }
        assert!(decode_zones(&bytes, &sizes, 4).is_none(), "chunk 4 is none of four");
    }
}
