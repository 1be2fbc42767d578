//! The access rules of OCSSD 2.0 section 2.2, decided before anything is changed (see `docs/ppa.md` for the tables).
//!
//! Deliberately not here: changing anything.

use crate::addresses::{AddressList, Run};
use crate::chunks::Chunks;
use ocssd_lightnvm::{ChunkId, ChunkState, Geometry, Ppa, Rule, Status, VECTOR_MAX, Violation};

/// A broken rule: its status, which entry, and the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    /// The first entry that broke the rule, and how many share its fate.
    pub(crate) entry: u32,
    pub(crate) entries: u32,
    pub(crate) violation: Violation,
}

fn refusal(chunks: &Chunks, status: Status, rule: Rule, run: Run) -> Refusal {
    let chunk = chunks.find(run.first.chunk).map(|chunk| (chunk.state, chunk.write_pointer));
    Refusal {
        status,
        entry: run.entry,
        entries: run.count,
        violation: Violation { rule, at: run.first, chunk },
    }
}

/// Most runs of one write: each is at least one sector.
const RUNS_MAX: usize = 64;
const _: () = assert!(RUNS_MAX == 64 && VECTOR_MAX == 64, "a vector write has at most one run per sector");

/// The runs of a write that were found sound, so that a later run of the same chunk is judged by where the earlier one
/// ends, and so that chunks they open or close are counted.
struct Planned {
    runs: [(ChunkId, u32); RUNS_MAX],
    len: usize,
}

impl Planned {
    /// What the chunk's state and write pointer will be after the runs so far.
    fn pointer(&self, chunks: &Chunks, size: u32, chunk: ChunkId) -> (ChunkState, u32) {
        let entry = chunks.get(chunk);
        let planned = self.runs[..self.len].iter().rev().find(|(of, _)| *of == chunk);
        match planned {
            Some(&(_, end)) if end == size => (ChunkState::Closed, end),
            Some(&(_, end)) => (ChunkState::Open, end),
            None => (entry.state, entry.write_pointer),
        }
    }

    /// How many of the `open` chunks among those `counted` there are after the runs so far: some were opened, some closed.
    fn open_after(&self, chunks: &Chunks, size: u32, open: u32, counted: impl Fn(ChunkId) -> bool) -> u32 {
        let runs = &self.runs[..self.len];
        let last_of_its_chunk = |index: usize| !runs[index + 1..].iter().any(|(of, _)| *of == runs[index].0);
        let (mut opened, mut closed) = (0, 0);
        for (index, &(of, end)) in runs.iter().enumerate() {
            if counted(of) && last_of_its_chunk(index) {
                let was_open = chunks.get(of).state == ChunkState::Open;
                opened += u32::from(!was_open && end < size);
                closed += u32::from(was_open && end == size);
            }
        }
        open + opened - closed
    }
}

/// Judges a write as a whole; the first broken rule refuses it.
pub(crate) fn check_write(
    geometry: &Geometry,
    chunks: &Chunks,
    addresses: &AddressList<'_>,
) -> Result<(), Refusal> {
    let mut planned = Planned { runs: [(ChunkId(0), 0); RUNS_MAX], len: 0 };
    for run in addresses.runs() {
        check_write_run(geometry, chunks, &mut planned, run)?;
    }
    Ok(())
}

fn check_write_run(
    geometry: &Geometry,
    chunks: &Chunks,
    planned: &mut Planned,
    run: Run,
) -> Result<(), Refusal> {
    let Run { first, count, .. } = run;
    let refuse = |status, rule| Err(refusal(chunks, status, rule, run));
    if !chunks.exists(first) {
        return refuse(Status::WRITE_FAULT, Rule::AddressExists);
    }
    let (state, pointer) = planned.pointer(chunks, geometry.sectors_per_chunk, first.chunk);
    if !matches!(state, ChunkState::Free | ChunkState::Open) {
        return refuse(Status::WRITE_FAULT, Rule::Writable);
    }
    if count > geometry.sectors_per_chunk - first.sector {
        return refuse(Status::WRITE_FAULT, Rule::WithinChunk);
    }
    if !count.is_multiple_of(geometry.ws_min) {
        return refuse(Status::INVALID_FIELD, Rule::WriteUnit);
    }
    if first.sector != pointer {
        return refuse(Status::OUT_OF_ORDER, Rule::WritePointer);
    }
    let end = first.sector + count;
    assert!(end <= geometry.sectors_per_chunk, "a sound write ends inside its chunk");
    if state == ChunkState::Free && end < geometry.sectors_per_chunk {
        check_open_limits(geometry, chunks, planned, run)?;
    }
    assert!(planned.len < RUNS_MAX, "a write has at most 64 runs");
    planned.runs[planned.len] = (first.chunk, end);
    planned.len += 1;
    Ok(())
}

fn check_open_limits(
    geometry: &Geometry,
    chunks: &Chunks,
    planned: &Planned,
    run: Run,
) -> Result<(), Refusal> {
    let refuse = |rule| Err(refusal(chunks, Status::WRITE_FAULT, rule, run));
    let size = geometry.sectors_per_chunk;
    let limit = geometry.max_open_chunks;
    if limit > 0 && planned.open_after(chunks, size, chunks.open_count(), |_| true) >= limit {
        return refuse(Rule::MaxOpenChunks);
    }
    let (limit, pu) = (geometry.max_open_chunks_per_pu, geometry.pu_of(run.first.chunk));
    let open = chunks.open_count_of(run.first.chunk);
    if limit > 0 && planned.open_after(chunks, size, open, |of| geometry.pu_of(of) == pu) >= limit {
        return refuse(Rule::MaxOpenChunksPerPu);
    }
    Ok(())
}

/// Judges one entry of a reset.
pub(crate) fn check_reset(geometry: &Geometry, chunks: &Chunks, ppa: Ppa, entry: u32) -> Result<(), Refusal> {
    let run = Run { entry, first: ppa, count: 1 };
    let refuse = |status, rule| Err(refusal(chunks, status, rule, run));
    if ppa.chunk.0 >= geometry.chunk_count() {
        return refuse(Status::INVALID_RESET, Rule::AddressExists);
    }
    if ppa.sector != 0 {
        return refuse(Status::INVALID_RESET, Rule::ResetAddress);
    }
    let allowed = match chunks.get(ppa.chunk).state {
        ChunkState::Closed => true,
        ChunkState::Free => geometry.capabilities.multiple_resets,
        ChunkState::Open => geometry.capabilities.early_reset,
        ChunkState::Offline => return refuse(Status::OFFLINE_CHUNK, Rule::Resettable),
    };
    if allowed { Ok(()) } else { refuse(Status::INVALID_RESET, Rule::Resettable) }
}

/// How many sectors from the start of a chunk can be read.
pub(crate) fn readable_sectors(geometry: &Geometry, chunks: &Chunks, chunk: ChunkId) -> u32 {
    let Some(entry) = chunks.find(chunk) else { return 0 };
    match entry.state {
        ChunkState::Free | ChunkState::Offline => 0,
        ChunkState::Open => entry.write_pointer.saturating_sub(geometry.mw_cunits),
        ChunkState::Closed => entry.write_pointer,
    }
}

/// What an unwritten read is told when it wants to be told (DULBE).
pub(crate) fn unreadable(chunks: &Chunks, run: Run) -> Refusal {
    refusal(chunks, Status::UNWRITTEN, Rule::Readable, run)
}
