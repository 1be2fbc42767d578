//! The newest whole checkpoint, and the records behind it in the order in which they were stored.
//!
//! A batch counts if all of its records are there, a long value if all of its pieces are. Deliberately not here: what chunks
//! are used for after that (`mod`).

use super::counts::Counts;
use super::survey::Survey;
use crate::chunk_wear;
use crate::kv::canary::Canary;
use crate::kv::checkpoint::{INFO, Info, KEYS, LIVE, LONG, PAGES, WEAR};
use crate::kv::index::{Found, Index, Location, Need, PagePlace};
use crate::kv::index_pages::page_record_bytes;
use crate::kv::long_values::{LongValues, ValuePiece};
use crate::kv::options::Options;
use crate::kv::record::{Record, RecordHeader, RecordKind, UnitHeader, UnitNumber, records};
use crate::kv::sizes::Sizes;
use crate::kv::space::{Needed, Role};
use crate::mount_error::MountError;
use crate::recovery::found;
use crate::recovery::media::Media;
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::{CheckpointPage, Sections, Serial};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, InstanceId, PhysicalAddress};
use ocssd_lightnvm::{ChunkState, Geometry, Ppa};
use std::collections::{BTreeMap, BTreeSet};

/// An instance as recovery found it.
pub struct Recovered {
    pub instance: InstanceId,
    pub info: Info,
    pub needed: Needed,
    pub index: Index,
    pub long: LongValues,
    pub counts: Counts,
    /// How often chunks were reset, as the checkpoint has it.
    pub wear: Vec<u32>,
    /// The last sequence of any record that was found.
    pub sequence: u64,
    /// The last number of any unit that was found.
    pub number: UnitNumber,
    pub units: u64,
    pub records: u64,
    /// Records of changes that were cut short.
    pub dropped: u64,
    /// Pages of the index that cannot be read, though records behind the checkpoint change keys in them: what these keys hold
    /// nobody knows.
    pub lost_pages: Vec<PagePlace>,
    /// The checkpoint says all there is: no later page of one, no record it has not, and no value that ended with the power. So
    /// nothing that a next mount finds depends on what this one does, and it needs no checkpoint of its own.
    pub is_covered: bool,
}

/// What mount knows of the drive.
pub struct Known<'a> {
    pub geometry: &'a Geometry,
    pub shape: &'a InstanceGeometry,
    pub survey: &'a Survey,
    pub options: &'a Options,
}

/// The checkpoints that were found.
#[derive(Default)]
pub struct Pages {
    /// The newest of which there is a page, whole or not.
    pub newest: Serial,
    /// The newest in each chunk.
    pub newest_in: BTreeMap<ChunkIndex, Serial>,
}

/// A record behind the checkpoint.
struct Replayed {
    header: RecordHeader,
    unit: UnitNumber,
    key: Vec<u8>,
    at: u64,
    /// Of a piece that is lost: its bytes.
    payload_number: u32,
}

/// Finds the instance; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn load(media: &mut Media<'_>, known: &Known<'_>) -> Result<(Option<Recovered>, Pages), MountError> {
    let mut pages = Pages::default();
    let newest = checkpoints(media, known, &mut pages)?;
    let Some((serial, instance, sections)) = newest else {
        // The first checkpoint comes before the first request: without one nothing was ever answered.
        if known.survey.0.iter().any(|chunk| chunk.role == Some(Role::Records)) || pages.newest > Serial(1) {
            return Err(MountError::Unreadable(
                "there was a key-value target on these units, but none of its checkpoints can be read; nothing was changed, \
                 and to use the units anew the target must be removed and its chunks reset"
                    .to_owned(),
            ));
        }
        return Ok((None, pages));
    };
    let mut found = decode(known, (serial, instance), &sections)?;
    let mut replayed = read_records(media, known, &mut found)?;
    found.is_covered =
        found.sequence == found.info.sequence && found.counts.unheld.is_empty() && pages.newest == serial;
    assert!(!found.is_covered || replayed.is_empty(), "{} records are behind the last", replayed.len());
    found.lost_pages = read_pages(media, known, &mut found.index, &replayed)?;
    if known.options.has_canary(Canary::ReplayByUnit) {
        replayed.sort_by_key(|record| record.unit);
    } else {
        // Of two copies of a record, as a failed write leaves them, the later one counts.
        replayed.sort_by_key(|record| (record.header.sequence, record.unit));
        replayed.dedup_by(|later, first| {
            let is_same = later.header.sequence == first.header.sequence;
            if is_same {
                std::mem::swap(later, first);
            }
            is_same
        });
    }
    replay(known, &mut found, &replayed);
    if !found.lost_pages.is_empty() {
        // Records that garbage collection moved are passed over if their keys were on such a page, and the chunk they were moved
        // from may have been reset since.
        let free = known.survey.iter().filter(|(_, found)| found.state == ChunkState::Free);
        free.for_each(|(chunk, _)| found.counts.nothing_in(chunk));
    } else if known.options.has_canary(Canary::ReplayedIsCovered) {
        found.is_covered = true;
        found.needed.start = UnitNumber(found.number.0 + 1);
    }
    Ok((Some(found), pages))
}

/// The newest whole checkpoint: of all pages one sector is read, of those of checkpoints that may be it the rest.
fn checkpoints(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Option<found::Whole>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let places = survey.unit_places(geometry, shape, |chunk| chunk.role == Some(Role::Checkpoint));
    let firsts: Vec<Ppa> = places.iter().map(|&(_, ppa)| ppa).collect();
    let mut by_serial = found::Places::new();
    media.read_pages(&firsts, 1, |index, bytes| {
        if let Some((serial, page)) = bytes.and_then(CheckpointPage::claimed) {
            let (chunk, ppa) = places[index];
            let newest = pages.newest_in.entry(chunk).or_default();
            *newest = (*newest).max(serial);
            pages.newest = pages.newest.max(serial);
            by_serial.entry(serial).or_default().push((page, ppa));
        }
    })?;
    found::newest_whole(media, geometry, by_serial)
}

fn decode(
    known: &Known<'_>,
    (serial, instance): (Serial, InstanceId),
    sections: &Sections,
) -> Result<Recovered, MountError> {
    let unreadable = |error: &dyn std::fmt::Display| MountError::Unreadable(error.to_string());
    let section = |name| sections.get(name).map_err(|error| unreadable(&error));
    let info = Info::decode(section(INFO)?).map_err(|error| unreadable(&error))?;
    let shape = known.shape;
    if (info.chunk, info.units, info.lines) != (shape.sectors_per_chunk(), shape.units(), shape.lines()) {
        return Err(MountError::DoesNotFit(format!(
            "the instance was made on {} units of {} chunks of {} sectors, but is opened on {} of {} of {}: lease the units it \
             was made on",
            info.units,
            info.lines,
            info.chunk,
            shape.units(),
            shape.lines(),
            shape.sectors_per_chunk()
        )));
    }
    let defect = "a checkpoint whose checksum is right should hold keys and values, but does not: it was written by a program \
                  with a defect";
    let sizes = Sizes::new(known.geometry, shape, known.options, known.survey.good(), Some(info.promised))
        .map_err(MountError::DoesNotFit)?;
    let index = Index::decode(section(KEYS)?, section(PAGES).ok(), sizes.page_bytes);
    let index = index.ok_or_else(|| unreadable(&defect))?;
    let long = LongValues::decode(section(LONG)?).ok_or_else(|| unreadable(&defect))?;
    let mut counts = Counts::new(shape, &sizes);
    match section(LIVE) {
        Ok(bytes) if counts.read(bytes) => {}
        Ok(_) => return Err(unreadable(&defect)),
        // It was written before there were counts.
        Err(_) if index.is_whole() => counts.count(&index, &long),
        Err(error) => return Err(error),
    }
    Ok(Recovered {
        instance,
        needed: Needed { start: info.start, serial: serial.0 },
        index,
        long,
        counts,
        wear: section(WEAR).map_or_else(|_| Vec::new(), chunk_wear::decode),
        sequence: info.sequence,
        number: UnitNumber(info.start.0.saturating_sub(1)),
        units: 0,
        records: 0,
        dropped: 0,
        lost_pages: Vec::new(),
        is_covered: false,
        info,
    })
}

/// Every record behind the checkpoint.
fn read_records(
    media: &mut Media<'_>,
    known: &Known<'_>,
    found: &mut Recovered,
) -> Result<Vec<Replayed>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let start = if known.options.has_canary(Canary::CheckpointTooLate) {
        UnitNumber(found.info.start.0 + 2)
    } else {
        found.info.start
    };
    let places = survey
        .unit_places(geometry, shape, |chunk| chunk.role == Some(Role::Records) && chunk.newest >= start);
    let firsts: Vec<Ppa> = places.iter().map(|&(_, ppa)| ppa).collect();
    let mut all = Vec::new();
    media.read_pages(&firsts, geometry.ws_opt, |index, bytes| {
        let Some(bytes) = bytes else { return };
        let Some(unit) = UnitHeader::decode(bytes) else { return };
        if unit.instance != found.instance || unit.number < start {
            return;
        }
        found.number = found.number.max(unit.number);
        found.units += 1;
        let (chunk, ppa) = places[index];
        let first = shape.first_place(chunk).0 + u64::from(ppa.sector);
        let base = first * u64::from(geometry.sector_bytes);
        let filled = usize_of(unit.filled).min(bytes.len());
        for (begin, record) in records(&bytes[..filled]) {
            let header = record.header;
            found.sequence = found.sequence.max(header.sequence);
            if header.sequence <= found.info.sequence || !record.is_sound(&bytes[begin..]) {
                continue;
            }
            let at = base + u64::try_from(begin).expect("an index");
            let payload_number = record.payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            all.push(Replayed { header, unit: unit.number, key: record.key.to_vec(), at, payload_number });
        }
    })?;
    Ok(all)
}

/// Makes true what the records say, in their order.
fn replay(known: &Known<'_>, found: &mut Recovered, replayed: &[Replayed]) {
    let mut parts = BTreeMap::new();
    for Replayed { header, .. } in replayed {
        let first = header.sequence - u64::from(header.part);
        *parts.entry(first).or_insert(0_u16) += 1;
    }
    let takes_torn = known.options.has_canary(Canary::LongWithoutPieces);
    for record in replayed {
        let header = record.header;
        let first = header.sequence - u64::from(header.part);
        let is_whole = parts.get(&first) == Some(&header.parts)
            && (takes_torn || is_batch_of_whole(found, replayed, first, header.parts));
        if !is_whole {
            found.dropped += 1;
            continue;
        }
        assert!(header.sequence > found.info.sequence || takes_torn, "{header:?} is in the checkpoint");
        found.records += 1;
        apply(found, record);
    }
    for value in std::mem::take(&mut found.counts.unheld) {
        found.long.remove(value).into_iter().for_each(|piece| found.counts.drop_piece(piece));
    }
}

/// True if every long value that a batch gives to a key has all its pieces.
fn is_batch_of_whole(found: &Recovered, replayed: &[Replayed], first: u64, parts: u16) -> bool {
    let begin = replayed.partition_point(|record| record.header.sequence < first);
    let batch = replayed[begin..].iter().take(usize::from(parts));
    batch
        .map(|record| record.header)
        .filter(|header| header.kind == RecordKind::Long)
        .all(|header| found.long.is_whole(header.value, header.offset))
}

fn apply(found: &mut Recovered, record: &Replayed) {
    let header = record.header;
    let now = |location, bytes| Some(Found { location, bytes });
    match header.kind {
        RecordKind::Whole => put(found, record, now(Location::Record(record.at), header.payload_bytes)),
        RecordKind::Long => put(found, record, now(Location::Long(header.value), header.offset)),
        RecordKind::Delete => put(found, record, None),
        RecordKind::Lost => put(found, record, now(Location::Lost, header.offset)),
        RecordKind::Piece => put_piece(found, header, header.payload_bytes, Some(record.at)),
        RecordKind::PieceLost => put_piece(found, header, record.payload_number, None),
        // It says what the index was when it was written, and only a checkpoint knows when that was.
        RecordKind::Index => {}
    }
}

/// A key holds something else, or nothing. Of one whose page is lost that is not noted anywhere.
fn put(found: &mut Recovered, record: &Replayed, now: Option<Found>) {
    let key = record.key.as_slice();
    if !found.index.is_here(key) {
        assert!(!found.lost_pages.is_empty(), "a page is missing that replay needs, and none is lost");
        return;
    }
    let before = match now {
        Some(now) => found.index.set(key, now),
        None => found.index.remove(key),
    };
    if let Some(before) = before {
        found.counts.held(key, before);
    }
    if let Some(now) = now {
        found.counts.holds(key, now);
    }
}

fn put_piece(found: &mut Recovered, header: RecordHeader, bytes: u32, at: Option<u64>) {
    if found.long.pieces(header.value).is_empty() {
        // Until a key does.
        found.counts.unheld.insert(header.value);
    }
    let piece = ValuePiece { offset: header.offset, bytes, at };
    if let Some(before) = found.long.set(header.value, piece) {
        found.counts.drop_piece(before);
    }
    found.counts.add_piece(piece);
}

/// Reads the pages of the index that records behind the checkpoint change: those that cannot be read.
fn read_pages(
    media: &mut Media<'_>,
    known: &Known<'_>,
    index: &mut Index,
    replayed: &[Replayed],
) -> Result<Vec<PagePlace>, MountError> {
    let Known { geometry, shape, .. } = known;
    let mut lost = Vec::new();
    let sector = u64::from(geometry.sector_bytes);
    // By sectors, for reads of one length go together, and place.
    let mut missing: BTreeMap<(u32, u64), PagePlace> = BTreeMap::new();
    for record in replayed.iter().filter(|record| !record.key.is_empty()) {
        if let Some(place) = index.want(&record.key, Need::Request) {
            let bytes = place.at % sector + u64::from(page_record_bytes(place));
            let sectors = u32::try_from(bytes.div_ceil(sector)).expect("a page is short");
            missing.insert((sectors, place.at), place);
        }
    }
    let lengths: BTreeSet<u32> = missing.keys().map(|&(sectors, _)| sectors).collect();
    for sectors in lengths {
        let places: Vec<PagePlace> =
            missing.range((sectors, 0)..=(sectors, u64::MAX)).map(|(_, &place)| place).collect();
        let first = |place: &PagePlace| {
            let (chunk, first) = shape.chunk_of(PhysicalAddress(place.at / sector));
            Ppa::new(shape.chunk_id(chunk), first)
        };
        let firsts: Vec<Ppa> = places.iter().map(first).collect();
        media.read_pages(&firsts, sectors, |page, bytes| {
            let place = places[page];
            let begin = usize::try_from(place.at % sector).expect("within a sector");
            let record = bytes.and_then(|bytes| {
                let record = Record::decode(&bytes[begin..])?;
                let is_it = record.header.kind == RecordKind::Index && record.is_sound(&bytes[begin..]);
                is_it.then_some(record.payload)
            });
            if !record.is_some_and(|payload| index.arrived(place, payload, false)) {
                lost.push(place);
            }
        })?;
    }
    index.needs_no_more(Need::Request);
    Ok(lost)
}
