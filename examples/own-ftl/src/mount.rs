//! Makes an instance, or finds the one that lies on the units: every sector says in its tag which block it holds, and since
//! when. The newest wins.

use crate::ftl::{OwnFtl, Unit};
use ocssd_base::{Slab, usize_of};
use ocssd_ftl::{
    AppendConfig, AppendPoint, ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, Kind, L2p, Mapped,
    PhysicalAddress, SectorTag, UnitIndex, ValidMap,
};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, ChunkState, Command, Geometry, Op, PlaneMode, Tag,
};
use ocssd_targets::registry::{BlocksMade, TargetSpec};
use std::collections::VecDeque;

/// Reads, and changes, at once (chosen).
pub const REQUESTS_MAX: u32 = 1024;
/// Commands at once (chosen: those of the requests, and more than units there can be).
const COMMANDS_MAX: u32 = 16_384;
/// Percent of the blocks not kept back that users see (chosen; more is more write amplification).
const USER_PERCENT: u64 = 75;

/// Makes the target, or says in a sentence why not.
pub fn make(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    if let Some((name, _)) = spec.options.first() {
        return Err(format!("it has no options but block_bytes, and \"{name}\" was given; leave it out"));
    }
    let geometry = device.geometry().clone();
    let shape = InstanceGeometry::new(&geometry, spec.units);
    let unit = geometry.ws_opt;
    let buffer = device.buffers().take(unit);
    (0..unit).for_each(|sector| pad(device, buffer, sector));
    let chunks = || (0..shape.chunks()).map(ChunkIndex);
    let mut append = append_point(&geometry, &shape);
    for chunk in chunks() {
        go_on(device, &shape, chunk, buffer, &mut append)?;
    }
    let pool = ChunkPool::new(&shape, &vec![0; spec.units.len()], |chunk| {
        match device.chunk(shape.chunk_id(chunk)).state {
            ChunkState::Free => ChunkUse::Free,
            ChunkState::Offline => ChunkUse::Bad,
            ChunkState::Open => ChunkUse::Open,
            ChunkState::Closed => ChunkUse::Closed,
        }
    });
    let mut found: Vec<(SectorTag, PhysicalAddress)> = Vec::new();
    for chunk in chunks().filter(|&chunk| matches!(pool.get(chunk), ChunkUse::Open | ChunkUse::Closed)) {
        let written = device.chunk(shape.chunk_id(chunk)).write_pointer.unwrap_or(geometry.sectors_per_chunk);
        for sector in 0..written {
            let place = PhysicalAddress(shape.first_place(chunk).0 + u64::from(sector));
            let read = run(&shape, place, 1, Op::Read, buffer);
            if device.call(&[read]).map_err(|cut| cut.to_string())?[0].status.has_data() {
                let buffers = device.buffers();
                let tag = SectorTag::decode(buffers.oob(buffer, 0, 1), buffers.data(buffer, 0, 1));
                found.extend(tag.ok().filter(|tag| tag.kind == Kind::Data).map(|tag| (tag, place)));
            }
        }
    }
    device.buffers().give_back(buffer);
    let mut target = empty(&geometry, shape, pool, append, device.buffers())?;
    found.sort_by_key(|&(tag, place)| (tag.sequence, place));
    found.retain(|(tag, _)| tag.block < target.map.sectors());
    for (tag, place) in found {
        target.sequence = tag.sequence.0;
        target.set(tag.block, Mapped::Media(place));
    }
    let (blocks, places) = (target.map.sectors(), target.shape.places());
    let note = format!(
        "own-ftl: {blocks} of {places} blocks for users, {} of them written",
        target.map.count_mapped()
    );
    Ok(BlocksMade { target: Box::new(target), notes: vec![note] })
}

/// The one stream, over all units.
fn append_point(geometry: &Geometry, shape: &InstanceGeometry) -> AppendPoint<usize> {
    let Geometry { sectors_per_chunk: chunk_sectors, mw_cunits, .. } = *geometry;
    let width = shape.units().min(shape.chunks() / 16).max(1);
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    AppendPoint::new(AppendConfig { chunk_sectors, mw_cunits, width, depth: 2 }, &all)
}

/// An instance without any block.
fn empty(
    geometry: &Geometry,
    shape: InstanceGeometry,
    pool: ChunkPool,
    append: AppendPoint<usize>,
    buffers: &mut Buffers,
) -> Result<OwnFtl, String> {
    let (unit_sectors, chunk_sectors, chunks) = (geometry.ws_opt, geometry.sectors_per_chunk, shape.chunks());
    let width = append.width();
    let units = width * (geometry.mw_cunits.div_ceil(unit_sectors) + 2) + 4;
    // The chunks that are open, what all units fill, and one for garbage collection to go on with.
    let reserve = width + (units * unit_sectors).div_ceil(chunk_sectors) + 2;
    let (needed, good) = (reserve + 5, pool.good());
    if good < needed || good < chunks - chunks / 8 {
        return Err(format!(
            "own-ftl needs {needed} chunks, and 7 of 8 good, but {good} of {chunks} are; give it more units"
        ));
    }
    let blocks = u64::from(chunks - needed) * u64::from(chunk_sectors) * USER_PERCENT / 100;
    let unit_of = |buffer| Unit { buffer, blocks: Vec::new(), place: None };
    Ok(OwnFtl {
        map: L2p::new(blocks, shape.places(), units * unit_sectors),
        valid: ValidMap::by_chunks(&shape),
        append,
        units: (0..units).map(|_| unit_of(buffers.take(unit_sectors))).collect(),
        spare: (0..usize_of(units)).rev().collect(),
        readers: vec![0; usize_of(chunks)],
        commands: Slab::new(COMMANDS_MAX),
        reads: Slab::new(REQUESTS_MAX),
        sector_bytes: geometry.sector_bytes,
        unit_sectors,
        reserve,
        pool,
        shape,
        ready: VecDeque::new(),
        filling: [None; 2],
        to_read: VecDeque::new(),
        changes: VecDeque::new(),
        victim: None,
        gc_reads: 0,
        dead: Vec::new(),
        to_reset: VecDeque::new(),
        flushes: Vec::new(),
        barrier: None,
        replies: Vec::new(),
        sequence: 0,
        written: [0; 3],
    })
}

/// A sector of nothing.
fn pad(device: &mut dyn BlockingDevice, buffer: BufId, sector: u32) {
    let (content, oob) = device.buffers().sectors_mut(buffer, sector, 1);
    content.fill(0);
    let tag = SectorTag::PAD.encode(content);
    oob[..tag.len()].copy_from_slice(&tag);
}

/// Goes on with an open chunk behind as much padding as the media want before they answer reads of all of it (MW_CUNITS). One
/// that the stream has no position for is written to its end.
fn go_on(
    device: &mut dyn BlockingDevice,
    shape: &InstanceGeometry,
    chunk: ChunkIndex,
    buffer: BufId,
    append: &mut AppendPoint<usize>,
) -> Result<(), String> {
    let Geometry { ws_min, ws_opt, mw_cunits, sectors_per_chunk, .. } = *device.geometry();
    let mut end = None;
    loop {
        let found = device.chunk(shape.chunk_id(chunk));
        let (ChunkState::Open, Some(pointer)) = (found.state, found.write_pointer) else { return Ok(()) };
        let readable = *end.get_or_insert((pointer + mw_cunits).next_multiple_of(ws_opt));
        if pointer >= readable
            && pointer.is_multiple_of(ws_opt)
            && append.adopt(chunk, shape.split_chunk(chunk).1, pointer)
        {
            return Ok(());
        }
        assert!(pointer < sectors_per_chunk, "an open chunk is full");
        let place = PhysicalAddress(shape.first_place(chunk).0 + u64::from(pointer));
        let write = run(shape, place, ws_min, Op::Write { fua: false }, buffer);
        device.call(&[write]).map_err(|cut| cut.to_string())?;
        if device.chunk(shape.chunk_id(chunk)) == found {
            return Err("the drive takes no writes; see what it says of its state (ocssd inspect)".to_owned());
        }
    }
}

/// A command on consecutive sectors.
pub fn run(shape: &InstanceGeometry, first: PhysicalAddress, count: u32, op: Op, buffer: BufId) -> Command {
    let addresses = Addresses::Run { first: shape.ppa(first), count };
    let plane_mode = PlaneMode::Single;
    Command { tag: Tag(0), op, addresses, buffer: Some(buffer), buffer_first: 0, oob: true, plane_mode }
}
