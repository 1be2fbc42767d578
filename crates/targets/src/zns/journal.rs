//! What is logged of zones: records of the log's owner, which replay carries out on the table of a checkpoint.
//!
//! Write pointers are not logged: a mount finds them by how far the chunks of a zone are written. Deliberately not here: when
//! something is logged.

use super::columns::Column;
use super::segments::{Run, Segments, UnitOfZone};
use super::sizes::Sizes;
use super::zone::Zone;
use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;
use ocssd_ftl::log::LogEntry;
use ocssd_lightnvm::interface::zoned::{ZoneExtension, ZoneState};
use std::collections::{BTreeMap, BTreeSet};

/// The zone has no chunks any more; those that it has follow.
const CLEAR: u8 = 1;
/// A column of the segment that begins with a unit; columns come in order.
const COLUMN: u8 = 2;
/// Segments end before a unit.
const CUT: u8 = 3;
/// The zone is empty; what was written before is of an earlier life.
const RESET: u8 = 4;
/// The zone is full, and holds so many blocks.
const FINISH: u8 = 5;
/// The zone is offline.
const OFFLINE: u8 = 6;
/// A chunk takes tails.
const TAIL: u8 = 7;
/// A chunk takes none any more, and holds none that is needed.
const TAIL_GONE: u8 = 8;
/// The zone takes no more, because no chunk was left for it; what was durable of it can be read.
const READ_ONLY: u8 = 9;
/// A part of the zone's extension; parts come in order, in one transaction.
const EXTENSION: u8 = 10;
/// Bytes of an extension that a record carries: two numbers of six, and a count of four.
const PART: usize = 16;

fn record(code: u8, count: u32, numbers: [u64; 3]) -> LogEntry {
    LogEntry::Owner { code, count, numbers }
}

/// The columns of a segment.
pub fn columns(zone: u32, segment: Run<'_>) -> Vec<LogEntry> {
    let column = |(index, column): (u32, Column)| {
        assert!(index < 1 << 16, "a stripe over {index} units");
        let place = u64::from(column.chunk.0) << 16 | u64::from(index);
        record(COLUMN, column.sector, [u64::from(zone), u64::from(segment.start), place])
    };
    (0..).zip(segment.columns.iter()).map(column).collect()
}

/// All segments of a zone, in place of those that were logged.
pub fn whole(number: u32, zone: &Zone) -> Vec<LogEntry> {
    let mut entries = vec![record(CLEAR, 0, [u64::from(number), 0, 0])];
    for segment in zone.segments.iter() {
        if segment.columns.is_empty() {
            entries.push(record(CUT, 0, [u64::from(number), u64::from(segment.start), 0]));
        }
        entries.extend(columns(number, segment));
    }
    entries
}

/// A reset.
pub fn reset(zone: u32, since: u64) -> LogEntry {
    record(RESET, 0, [u64::from(zone), since, 0])
}

/// A zone becomes full.
pub fn finish_at(zone: u32, blocks: u32) -> LogEntry {
    record(FINISH, blocks, [u64::from(zone), 0, 0])
}

/// A zone becomes offline.
pub fn offline(zone: u32) -> LogEntry {
    record(OFFLINE, 0, [u64::from(zone), 0, 0])
}

/// A zone becomes read only.
pub fn read_only(zone: u32) -> LogEntry {
    record(READ_ONLY, 0, [u64::from(zone), 0, 0])
}

/// The extension of a zone, in as many records as it takes.
pub fn extension(zone: u32, extension: &ZoneExtension) -> Vec<LogEntry> {
    let (parts, rest) = extension.0.as_chunks::<PART>();
    assert!(rest.is_empty(), "an extension is of whole records");
    let part = |(nth, bytes): (u64, &[u8; PART])| {
        let number = |at: usize, count: usize| {
            bytes[at..at + count].iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte))
        };
        let count = u32::try_from(number(12, 4)).expect("four bytes");
        record(EXTENSION, count, [u64::from(zone) | nth << 32, number(0, 6), number(6, 6)])
    };
    (0..).zip(parts).map(part).collect()
}

/// A chunk takes tails, or does not any more.
pub fn tail(chunk: ChunkIndex, takes: bool) -> LogEntry {
    record(if takes { TAIL } else { TAIL_GONE }, 0, [u64::from(chunk.0), 0, 0])
}

/// The zone table as it is logged.
#[derive(Clone, Debug)]
pub struct Table {
    /// The zones.
    pub zones: Vec<Zone>,
    /// Chunks of tails.
    pub tails: BTreeSet<ChunkIndex>,
    /// Extensions of zones.
    pub extensions: BTreeMap<u32, ZoneExtension>,
}

impl Table {
    /// Empty zones.
    pub fn new(zone_count: u32) -> Self {
        let zones = vec![Zone::empty(); usize_of(zone_count)];
        Self { zones, tails: BTreeSet::new(), extensions: BTreeMap::new() }
    }

    /// Carries out a record.
    ///
    /// # Errors
    /// A sentence, if it names what an instance of these sizes with `chunks` chunks does not have.
    pub fn replay(&mut self, entry: &LogEntry, sizes: &Sizes, chunks: u32) -> Result<(), String> {
        let wrong = || {
            format!(
                "{entry:?} in the log names what the instance does not have: it was written by a program with a defect"
            )
        };
        let &LogEntry::Owner { code, count, numbers: [first, second, third] } = entry else {
            return Err(wrong());
        };
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).expect("masked");
        if matches!(code, TAIL | TAIL_GONE) {
            let chunk = ChunkIndex(low(first));
            if first >= u64::from(chunks) {
                return Err(wrong());
            }
            if code == TAIL {
                self.tails.insert(chunk);
            } else {
                self.tails.remove(&chunk);
            }
            return Ok(());
        }
        let zone = self.zones.get_mut(usize_of(low(first))).ok_or_else(wrong)?;
        let start: UnitOfZone = low(second);
        match code {
            CLEAR => zone.segments = Segments::none(),
            COLUMN => {
                let index = low(third & 0xFFFF);
                let column = Column { chunk: ChunkIndex(low(third >> 16)), sector: count };
                if column.chunk.0 >= chunks || count >= sizes.chunk || start >= sizes.zone_units {
                    return Err(wrong());
                }
                zone.add_column(start, index, column).map_err(|()| wrong())?;
            }
            CUT if start <= sizes.zone_units && (start == 0 || !zone.segments.is_empty()) => zone.cut(start),
            RESET if second >= zone.since => {
                zone.clear(second);
                self.extensions.remove(&low(first));
            }
            FINISH if count <= sizes.capacity() => zone.finish_at(count, sizes.unit),
            OFFLINE => zone.state = ZoneState::Offline,
            EXTENSION => {
                let nth = usize::try_from(first >> 32).expect("sixteen bits");
                let extension = self.extensions.entry(low(first)).or_insert(ZoneExtension::ZERO);
                let part = extension.0.as_chunks_mut::<PART>().0.get_mut(nth).ok_or_else(wrong)?;
                part[..6].copy_from_slice(&second.to_le_bytes()[..6]);
                part[6..12].copy_from_slice(&third.to_le_bytes()[..6]);
                part[12..].copy_from_slice(&count.to_le_bytes());
            }
            READ_ONLY => zone.state = ZoneState::ReadOnly,
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zns::Options;
    use crate::zns::segments::Segment;
    use crate::zns::sizes::Ground;
    use ocssd_ftl::InstanceGeometry;
    use ocssd_ftl::log::Record;
    use ocssd_lightnvm::{Geometry, PuId};

    fn sizes() -> Sizes {
        let geometry = Geometry::example(1, 2, 40, 24, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let good_in = |lines: u32| lines * shape.units();
        let ground = Ground { geometry: &geometry, shape: &shape, good_in: &good_in, group_units: 2 };
        Sizes::new(&ground, &Options::default(), None).expect("it fits")
    }

    fn column(chunk: u32, sector: u32) -> Column {
        Column { chunk: ChunkIndex(chunk), sector }
    }

    #[test]
    fn a_zone_comes_back_as_it_was_logged() {
        let sizes = sizes();
        let mut zone = Zone::empty();
        zone.segments.push(Segment::new(0, &[column(79, 4), column(3, 0)]));
        zone.segments.push(Segment::new(5, &[]));
        let mut table = Table::new(sizes.zone_count);
        let mut entries = vec![reset(2, 77), tail(ChunkIndex(5), true), tail(ChunkIndex(6), true)];
        entries.extend(whole(2, &zone));
        entries.extend([finish_at(1, 0), tail(ChunkIndex(5), false), read_only(2), offline(0)]);
        let bytes = ZoneExtension(std::array::from_fn(|at| 255 - u8::try_from(at * 3).expect("below 192")));
        entries.extend([0, 1, 2].into_iter().flat_map(|zone| extension(zone, &bytes)));
        entries.push(reset(2, 77));
        entries.extend(whole(2, &zone));
        for entry in &entries {
            let there = LogEntry::decode(&entry.encode()).expect("as it is on media");
            table.replay(&there, &sizes, 80).expect("sound");
        }
        assert_eq!(table.extensions, BTreeMap::from([(0, bytes), (1, bytes)]), "a reset drops it");
        assert_eq!((table.zones[2].since, &table.zones[2].segments), (77, &zone.segments));
        let states = [0, 1, 2].map(|zone: usize| table.zones[zone].state);
        assert_eq!(states, [ZoneState::Offline, ZoneState::Empty, ZoneState::ReadOnly]);
        assert_eq!(
            (table.zones[1].finished_at(), table.tails.into_iter().collect::<Vec<_>>()),
            (Some(0), vec![ChunkIndex(6)])
        );
        // A stripe over more units than an index of eight bits counts.
        let wide: Vec<Column> = (0..600).map(|nth| column(nth % 80, 0)).collect();
        let wide = Segment::new(0, &wide);
        let mut table = Table::new(1);
        for entry in columns(0, wide.as_run()) {
            table.replay(&entry, &sizes, 80).expect("sound");
        }
        assert_eq!(table.zones[0].segments, wide.into());
    }

    #[test]
    fn records_that_name_what_is_not_there_are_refused_in_words() {
        let sizes = sizes();
        let far = Segment::new(0, &[column(80, 0)]);
        let behind = Segment::new(0, &[column(7, 24)]);
        for entry in [
            reset(sizes.zone_count, 0),
            finish_at(0, sizes.capacity() + 1),
            tail(ChunkIndex(80), true),
            record(CUT, 0, [0, 1, 0]),
            columns(0, far.as_run())[0],
            columns(0, behind.as_run())[0],
            LogEntry::Owner { code: 99, count: 0, numbers: [0; 3] },
            LogEntry::Owner { code: EXTENSION, count: 0, numbers: [4 << 32, 0, 0] },
            LogEntry::Discard { lba: 0, count: 1 },
        ] {
            let error = Table::new(sizes.zone_count).replay(&entry, &sizes, 80).expect_err("refused");
            assert!(error.contains("a program with a defect"), "{error}");
        }
    }
}
