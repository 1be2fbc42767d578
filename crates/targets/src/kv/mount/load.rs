//! The newest whole checkpoint, and the records behind it in the order in which they were stored.
//!
//! A batch counts if all of its records are there, a long value if all of its pieces are. Deliberately not here: what chunks
//! are used for after that (`mod`).

use super::survey::Survey;
use crate::kv::canary::Canary;
use crate::kv::checkpoint::{INFO, Info, KEYS, LONG};
use crate::kv::index::{Found, Index, Location};
use crate::kv::long_values::{LongValues, ValuePiece};
use crate::kv::options::Options;
use crate::kv::record::{RecordHeader, RecordKind, UnitHeader, UnitNumber, records};
use crate::kv::space::{Needed, Role};
use crate::mount_error::MountError;
use crate::recovery::media::Media;
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::{CheckpointPage, Checkpoints, Sections, Serial};
use ocssd_ftl::{ChunkIndex, InstanceId, Shape};
use ocssd_lightnvm::{Geometry, Ppa};
use std::collections::BTreeMap;

/// An instance as recovery found it.
pub struct Recovered {
    pub instance: InstanceId,
    pub info: Info,
    pub needed: Needed,
    pub index: Index,
    pub long: LongValues,
    /// The last sequence of any record that was found.
    pub sequence: u64,
    /// The last number of any unit that was found.
    pub number: UnitNumber,
    pub units: u64,
    pub records: u64,
    /// Records of changes that were cut short.
    pub dropped: u64,
}

/// What mount knows of the drive.
pub struct Known<'a> {
    pub geometry: &'a Geometry,
    pub shape: &'a Shape,
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
    Ok((Some(found), pages))
}

type Whole = (Serial, InstanceId, Sections);

fn checkpoints(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Option<Whole>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let places = survey.unit_places(geometry, shape, |chunk| chunk.role == Some(Role::Checkpoint));
    let firsts: Vec<Ppa> = places.iter().map(|&(_, ppa)| ppa).collect();
    let (mut found, mut instance) = (Checkpoints::default(), None);
    media.read_pages(&firsts, geometry.ws_opt, |index, bytes| {
        if let Some(Ok((page, piece))) = bytes.map(CheckpointPage::decode) {
            let newest = pages.newest_in.entry(places[index].0).or_default();
            *newest = (*newest).max(page.serial);
            pages.newest = pages.newest.max(page.serial);
            instance = Some(page.instance);
            found.add(page, piece);
        }
    })?;
    let whole = found.newest_whole();
    Ok(whole.map(|(serial, sections)| (serial, instance.expect("a page was found"), sections)))
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
    let index = Index::decode(section(KEYS)?).ok_or_else(|| unreadable(&defect))?;
    let long = LongValues::decode(section(LONG)?).ok_or_else(|| unreadable(&defect))?;
    Ok(Recovered {
        instance,
        needed: Needed { start: info.start, serial: serial.0 },
        index,
        long,
        sequence: info.sequence,
        number: UnitNumber(info.start.0.saturating_sub(1)),
        units: 0,
        records: 0,
        dropped: 0,
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
    let index = &found.index;
    let held: std::collections::BTreeSet<u64> = index
        .from(&[])
        .filter_map(|(_, found)| if let Location::Long(value) = found.location { Some(value) } else { None })
        .collect();
    found.long.retain(|value| held.contains(&value));
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
    let key = record.key.as_slice();
    match header.kind {
        RecordKind::Whole => {
            let now = Found { location: Location::Record(record.at), bytes: header.payload_bytes };
            found.index.set(key, now);
        }
        RecordKind::Piece => {
            let piece =
                ValuePiece { offset: header.offset, bytes: header.payload_bytes, at: Some(record.at) };
            found.long.set(header.value, piece);
        }
        RecordKind::Long => {
            found.index.set(key, Found { location: Location::Long(header.value), bytes: header.offset });
        }
        RecordKind::Delete => {
            found.index.remove(key);
        }
        RecordKind::Lost => {
            found.index.set(key, Found { location: Location::Lost, bytes: header.offset });
        }
        RecordKind::PieceLost => {
            let piece = ValuePiece { offset: header.offset, bytes: record.payload_number, at: None };
            found.long.set(header.value, piece);
        }
    }
}
