//! Makes an instance, or finds the one that lies on the units: of each block the newest version wins, as tags of sectors say.

use crate::ftl::OwnFtl;
use ocssd_ftl::{ChunkPool, InstanceGeometry, L2p, Mapped, ValidMap};
use ocssd_lightnvm::{BlockingDevice, Status};
use ocssd_targets::parts::{BlockIo, UnitWriter, append_point, scan};
use ocssd_targets::registry::{BlocksMade, TargetSpec, no_options};

/// Percent of the blocks not kept back that users see (chosen; more is more write amplification).
const USER_PERCENT: u64 = 75;
/// Power cuts in a row that may use up the chunks that are open, before garbage collection got any further (chosen).
const CUTS: u32 = 3;

/// Makes the target, or says in a sentence why not; `leaves_unit` is a mistake to be found.
pub fn make(
    device: &mut dyn BlockingDevice,
    spec: &TargetSpec<'_>,
    leaves_unit: bool,
) -> Result<BlocksMade, String> {
    no_options(spec)?;
    let geometry = device.geometry().clone();
    let shape = InstanceGeometry::new(&geometry, spec.units);
    let width = shape.units().min(shape.chunks() / 16).max(1);
    // The chunks that are open, also after cuts, what memory fills, and one for garbage collection to go on with.
    let memory = UnitWriter::units(&geometry, width, 2) * geometry.ws_opt;
    let reserve = width * CUTS + memory.div_ceil(geometry.sectors_per_chunk) + 2;
    let (kept, chunks) = (reserve + 5, shape.chunks());
    let shown = u64::from(chunks.saturating_sub(kept)) * u64::from(geometry.sectors_per_chunk);
    let blocks = shown * USER_PERCENT / 100;
    if blocks == 0 {
        return Err(format!("it needs more than {kept} chunks, but there are {chunks}; give it more units"));
    }
    let mut append = append_point(&geometry, &shape, width);
    let found = scan(device, &shape, &mut append)?;
    let pool = ChunkPool::new(&shape, &vec![0; spec.units.len()], |chunk| found.uses[chunk.index()]);
    let writer = UnitWriter::new(&geometry, &shape, append, 2, device.buffers());
    let mut target = OwnFtl {
        io: BlockIo::new(&geometry, &shape),
        map: L2p::new(blocks, shape.places(), writer.slots()),
        valid: ValidMap::by_chunks(&shape),
        victim: None,
        gc_reads: 0,
        dead: Vec::new(),
        sequence: 0,
        reserve,
        // As many may be bad as leave what users see an eighth of garbage.
        needed: kept + (chunks - kept) * 7 / 8,
        leaves_unit,
        shape,
        writer,
        pool,
    };
    for (tag, place) in found.blocks.into_iter().filter(|(tag, _)| tag.block < blocks) {
        target.sequence = tag.sequence.0;
        target.set(tag.block, Mapped::Media(place));
    }
    if target.pool.good() < target.needed {
        target.io.stop(Status::WRITE_TO_READ_ONLY);
    }
    let written = target.map.count_mapped();
    let note = format!("{blocks} of {} blocks for users, {written} written", target.shape.places());
    Ok(BlocksMade { target: Box::new(target), notes: vec![note] })
}
