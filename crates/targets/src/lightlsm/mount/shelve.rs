//! The catalog becomes what the host sees: names, and for each log the chunk it goes on in and the bytes in memory.
//!
//! Deliberately not here: the catalog (`load`).

use crate::lightlsm::catalog::{Catalog, Record};
use crate::lightlsm::change::Number;
use crate::lightlsm::object::{Base, Object};
use crate::lightlsm::shelf::Shelf;
use crate::lightlsm::sizes::Sizes;
use crate::lightlsm::space::Space;
use crate::recovery::survey::Survey;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, OpenChunk, UnitIndex};
use ocssd_lightnvm::interface::table::TableKind;
use ocssd_lightnvm::{Buffers, ChunkState};
use std::collections::BTreeMap;

/// Up to where each chunk must be written so that all content in it can be read, if `window` sectors must follow.
pub fn ends(catalog: &Catalog, unit: u32, window: u32) -> Vec<(ChunkIndex, u32)> {
    let mut ends: BTreeMap<ChunkIndex, u32> = BTreeMap::new();
    for (_, run) in catalog.iter().flat_map(|(_, record)| record.layout.runs(0)) {
        let end = ends.entry(run.chunk).or_default();
        *end = (*end).max(run.sector + run.rows * unit);
    }
    ends.into_iter().map(|(chunk, end)| (chunk, end + window)).collect()
}

/// Makes an object of every record.
pub fn shelve(
    catalog: &Catalog,
    shelf: &mut Shelf,
    (space, sizes): (&mut Space, &Sizes),
    survey: &Survey,
    buffers: &mut Buffers,
) {
    for (number, record) in catalog.iter() {
        let mut object = object(number, record, (space, sizes), survey);
        if !record.tail.is_empty() {
            let buffer = buffers.take_whole(sizes.unit);
            assert!((record.tail.len() as u64) < sizes.unit_bytes, "the tail of log {} is a unit", number.0);
            buffers.whole_mut(buffer, 0, sizes.unit)[..record.tail.len()].copy_from_slice(&record.tail);
            object.memory.insert(record.layout.units(), buffer);
        }
        let has = u32::try_from(object.chunks.len()).expect("fewer chunks than 2^32");
        let more = object.demand(object.bytes, sizes).saturating_sub(has);
        if space.reserve(more) {
            object.reserved = more;
        }
        shelf.live_bytes += object.bytes;
        shelf.create(object);
        shelf.rest(number, sizes);
    }
}

fn object(number: Number, record: &Record, (space, sizes): (&mut Space, &Sizes), survey: &Survey) -> Object {
    let width = record.layout.width();
    let unit_of = |column| {
        let last = record.layout.last(column);
        last.map_or(UnitIndex(column % space.shape.units()), |run| space.shape.split_chunk(run.chunk).1)
    };
    let units: Vec<UnitIndex> = (0..width).map(unit_of).collect();
    let mut object = Object::new(number, record.name, record.kind, &units, sizes);
    object.chunks = record.layout.runs(0).map(|(_, run)| run.chunk).collect();
    object.chunks.sort_unstable();
    object.chunks.dedup();
    let mut room = 0;
    for column in 0..width {
        let last = record.layout.last(column).map(|run| run.chunk);
        if let Some(chunk) = last.filter(|&chunk| survey.get(chunk).state == ChunkState::Open) {
            let written = survey.get(chunk).written;
            assert!(written.is_multiple_of(sizes.unit), "chunk {} was not filled to a border", chunk.0);
            object.columns[usize_of(column)].open = Some(OpenChunk::new(chunk, written));
            room += u64::from((sizes.chunk - written) / sizes.unit);
        }
    }
    object.chunks.retain(|&chunk| matches!(survey.get(chunk).state, ChunkState::Open | ChunkState::Closed));
    object.chunks.iter().for_each(|&chunk| space.adopt_content(chunk));
    assert!(object.chunks.is_sorted(), "chunks of number {} are out of order", number.0);
    let chunks = u32::try_from(object.chunks.len()).expect("fewer chunks than 2^32");
    object.base = Base { chunks, units: record.layout.units(), room };
    object.layout = record.layout.clone();
    object.attributes.clone_from(&record.attributes);
    (object.bytes, object.taken, object.entitled) = (record.bytes, record.bytes, record.bytes);
    (object.is_published, object.is_finished, object.is_begun) = (true, true, true);
    if record.kind == TableKind::Log {
        object.units_logged = record.layout.units();
        (object.logged, object.sync_to) = (record.bytes, record.bytes);
    }
    object
}
